"""The weather at JFK airport: what the calendar and the clock say of it."""

from datetime import date

import numpy as np

from structent.datasets import load_jfk_weather


def test_hours_are_those_of_the_days_of_one_year():
    weather = load_jfk_weather()
    days = [date.fromisoformat(day) for day in np.unique(weather.days)]
    assert (days[0], days[-1]) == (date(2013, 1, 1), date(2013, 12, 30))
    assert len(days) == 364
    assert set(weather.labels.tolist()) == set(range(24))
    pairs = list(zip(weather.days.tolist(), weather.labels.tolist(), strict=True))
    # On the day when clocks go back there is an hour twice.
    assert len(pairs) - len(set(pairs)) <= 1
    months = weather.features[:, weather.feature_names.index("month")]
    assert months.tolist() == [date.fromisoformat(day).month for day in weather.days.tolist()]


def test_numbers_are_missing_where_the_source_has_none():
    weather = load_jfk_weather()
    missing = dict(zip(weather.feature_names, np.isnan(weather.features).sum(axis=0), strict=True))
    assert missing["temp"] == 0
    assert missing["wind_gust"] == 7199
    assert missing["pressure"] == 831


def test_afternoons_are_warmer_than_nights():
    weather = load_jfk_weather()
    mean = {h: weather.features[weather.labels == h, 1].mean() for h in (5, 15)}
    assert mean[15] > mean[5] + 5


def test_hours_form_a_circle():
    structure = load_jfk_weather().structure
    assert structure.classes == tuple(range(24))
    assert structure.distance(23, 0) == structure.distance(0, 1)
