"""Small real data sets that ship with the package, for examples and the demonstration."""

from structent.datasets.jfk_weather import JfkWeather, jfk_weather_file, load_jfk_weather
from structent.datasets.seattle_weather import (
    SeattleWeather,
    load_seattle_weather,
    seattle_weather_file,
)

__all__ = [
    "JfkWeather",
    "SeattleWeather",
    "jfk_weather_file",
    "load_jfk_weather",
    "load_seattle_weather",
    "seattle_weather_file",
]
