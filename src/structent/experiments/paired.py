"""Means over trials with their standard errors, and differences between methods trial by trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import t

_CONFIDENCE = 0.95


class Mean(NamedTuple):
    """A mean over trials: its value, its standard error (NaN for one trial), how many trials."""

    value: float
    error: float
    n_trials: int

    @property
    def half_width(self) -> float:
        """Half the 95 % interval, by Student's t."""
        return float(self.error * t.ppf(0.5 + _CONFIDENCE / 2, max(self.n_trials - 1, 1)))

    @property
    def is_lower(self) -> bool:
        """Whether the mean is below zero beyond its 95 % interval."""
        return bool(self.value + self.half_width < 0)

    @property
    def is_higher(self) -> bool:
        """Whether the mean is above zero beyond its 95 % interval."""
        return bool(self.value - self.half_width > 0)


def mean_of(by_trial: Mapping[int, float]) -> Mean:
    """Return the mean over trials.

    >>> mean_of({0: 1.0, 1: 2.0, 2: 3.0})
    Mean(value=2.0, error=0.5773502691896258, n_trials=3)
    """
    values = np.array(list(by_trial.values()), dtype=np.float64)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Mean(float(values.mean()), float(error), len(values))


def difference_of(by_trial: Mapping[int, float], baseline: Mapping[int, float]) -> Mean:
    """Return the mean of a method minus the baseline, over the trials that both have.

    >>> difference_of({0: 1.0, 1: 2.5}, {0: 2.0, 1: 3.0, 2: 9.0})
    Mean(value=-0.75, error=0.25, n_trials=2)
    """
    shared = sorted(set(by_trial) & set(baseline))
    return mean_of({trial: by_trial[trial] - baseline[trial] for trial in shared})
