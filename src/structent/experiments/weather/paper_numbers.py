"""The paper's own log losses on weather: what ours are put beside."""

from __future__ import annotations

from typing import NamedTuple


class MonthLosses(NamedTuple):
    """Test log loss by standard cross-entropy, and at the best weight of both structures."""

    standard: float
    fixed: float
    variable: float


class CountyLosses(NamedTuple):
    """Test log loss by standard cross-entropy, and by each of ``COUNTY_COMBINATIONS``."""

    standard: float
    variable: tuple[float, ...]


SINGLETON_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MONTH_BLOCKS = 4

# By training rows: the figure "Log Loss vs Singleton Weight", as its author's notebooks have it.
MONTHS = {
    500: MonthLosses(2.2196, 2.2058, 2.2133),
    1_000: MonthLosses(2.1846, 2.1746, 2.1809),
    2_000: MonthLosses(2.1633, 2.1550, 2.1602),
    5_000: MonthLosses(2.1471, 2.1432, 2.1454),
    10_000: MonthLosses(2.1363, 2.1343, 2.1356),
}

# Number of blocks and singleton weight, in the order of the paper's columns.
COUNTY_COMBINATIONS = ((10, 0.25), (10, 0.5), (10, 0.75), (5, 0.5), (20, 0.5))

# By training rows: the table "Log Loss values for County Prediction".
COUNTIES = {
    500: CountyLosses(3.883, (3.865, 3.866, 3.876, 3.868, 3.869)),
    1_000: CountyLosses(3.650, (3.639, 3.634, 3.643, 3.636, 3.637)),
    2_000: CountyLosses(3.534, (3.532, 3.521, 3.529, 3.523, 3.522)),
    5_000: CountyLosses(3.473, (3.466, 3.462, 3.468, 3.465, 3.463)),
    10_000: CountyLosses(3.441, (3.440, 3.434, 3.438, 3.435, 3.434)),
    20_000: CountyLosses(3.417, (3.416, 3.412, 3.415, 3.413, 3.412)),
}
