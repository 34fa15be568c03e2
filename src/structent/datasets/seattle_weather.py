"""The weather of 1,461 days in Seattle: which month is it?"""

import csv
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray
from structent.structure.catalog import months
from structent.structure.random_partition import RandomPartition

_FEATURES = ("precipitation", "temp_max", "temp_min", "wind")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class SeattleWeather(NamedTuple):
    """Days with their weather, the month of each, and how the months are related.

    Attributes
    ----------
    features
        Precipitation in mm, highest and lowest temperature in degrees Celsius and wind speed in
        m/s, (n, features).
    feature_names
        Their names.
    labels
        The month of each day, ``"jan"`` to ``"dec"``, (n,).
    structure
        The months as a circle: the paper's structure of width 3.
    """

    features: FloatArray
    feature_names: tuple[str, ...]
    labels: NDArray[np.str_]
    structure: RandomPartition


def load_seattle_weather() -> SeattleWeather:
    """Return the paper's Problem 2 in small: tell the month from the weather of a day.

    Daily observations of 2012 to 2015 in Seattle, by the National Oceanic and Atmospheric
    Administration (NOAA) of the United States, in the public domain, as collected in the
    ``vega_datasets`` package; the month is taken from the date.

    Examples
    --------
    >>> weather = load_seattle_weather()
    >>> weather.features.shape, weather.feature_names
    ((1461, 4), ('precipitation', 'temp_max', 'temp_min', 'wind'))
    >>> weather.features[0].tolist(), str(weather.labels[0])
    ([0.0, 12.8, 5.0, 4.7], 'jan')
    >>> weather.structure.distance("dec", "jan") < weather.structure.distance("dec", "jul")
    True
    """
    with seattle_weather_file().open(encoding="utf-8", newline="") as file:
        days = list(csv.DictReader(file))
    features = np.array([[float(day[name]) for name in _FEATURES] for day in days])
    labels: NDArray[Any] = np.array([day["month"] for day in days])
    structure = months().relabel(dict(enumerate(_MONTHS, start=1)))
    return SeattleWeather(features, _FEATURES, labels, structure)


def seattle_weather_file() -> Path:
    """Return the path of the data as a CSV file, for the command line.

    It has the columns of the source, and ``month``, taken from ``date``, as the last one.

    Examples
    --------
    >>> seattle_weather_file().name
    'seattle_weather.csv'
    """
    return Path(str(resources.files("structent.datasets") / "data" / "seattle_weather.csv"))
