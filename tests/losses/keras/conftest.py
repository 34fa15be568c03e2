"""What the tests of Keras share."""

from pathlib import Path

import pytest

# Keras's own conversions to NumPy, which is newer than they are.
_OLD_CONVERSION = "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore a warning of Keras's own in all tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(_OLD_CONVERSION))
