"""The weather of Seattle: what the calendar and the source say of it."""

import calendar
import csv
import subprocess
import sys
from collections import Counter
from datetime import date

import numpy as np
import pytest

from structent.datasets import load_seattle_weather, seattle_weather_file
from structent.structure import catalog

MONTHS = [name.lower() for name in calendar.month_abbr[1:]]


def test_each_month_has_its_days_of_the_four_years():
    days = Counter(load_seattle_weather().labels.tolist())
    for number, month in enumerate(MONTHS, start=1):
        lengths = [calendar.monthrange(year, number)[1] for year in range(2012, 2016)]
        assert days[month] == sum(lengths)


def test_the_features_are_numbers_without_gaps():
    weather = load_seattle_weather()
    assert weather.features.dtype == np.float64
    assert weather.features.shape == (1461, len(weather.feature_names))
    assert np.isfinite(weather.features).all()
    highest, lowest = weather.features[:, 1], weather.features[:, 2]
    assert (highest >= lowest).all()


def test_july_is_warmer_than_january():
    weather = load_seattle_weather()
    mean = {m: weather.features[weather.labels == m, 1].mean() for m in ("jan", "jul")}
    assert mean["jul"] > mean["jan"] + 10


def test_the_structure_is_the_circle_of_the_months_under_their_names():
    structure = load_seattle_weather().structure
    assert list(structure.classes) == MONTHS
    assert np.array_equal(structure.block_of, catalog.months().block_of)
    assert np.array_equal(structure.weights, catalog.months().weights)


def test_the_month_in_the_file_is_that_of_its_date():
    with seattle_weather_file().open(newline="") as file:
        rows = list(csv.DictReader(file))
    days = [date(*map(int, row["date"].split("/"))) for row in rows]
    assert [row["month"] for row in rows] == [MONTHS[day.month - 1] for day in days]
    assert days[0] == date(2012, 1, 1)
    assert np.diff([day.toordinal() for day in days]).tolist() == [1] * 1460


@pytest.mark.requires("shared-data")
def test_the_rest_of_the_file_is_the_source(shared_data):
    source = (shared_data / "weather" / "seattle_weather.csv").read_text().splitlines()
    ours = seattle_weather_file().read_text().splitlines()
    assert [line.rpartition(",")[0] for line in ours] == source


def test_loading_needs_no_framework():
    code = (
        "import sys; from structent.datasets import load_seattle_weather as load; load();"
        "print({'pandas', 'polars', 'sklearn', 'pyarrow'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
