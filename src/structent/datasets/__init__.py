"""Small real data sets that ship with the package, for examples and the demonstration."""

from structent.datasets.seattle_weather import (
    SeattleWeather,
    load_seattle_weather,
    seattle_weather_file,
)

__all__ = ["SeattleWeather", "load_seattle_weather", "seattle_weather_file"]
