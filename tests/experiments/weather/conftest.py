"""The made-up weather that all tests of these experiments share."""

import pytest

from tests.experiments.weather.made_up import write_weather


@pytest.fixture(scope="session")
def weather(tmp_path_factory):
    return write_weather(tmp_path_factory.mktemp("weather"))
