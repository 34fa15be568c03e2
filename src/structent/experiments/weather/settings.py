"""The settings of a run on the weather: all but the data that decides its result."""

from __future__ import annotations

from structent.experiments.experiment import Settings
from structent.experiments.weather.boosted_trial import SCHEDULES


def settings_of(
    experiment: str,
    preset: str,
    *,
    size: int,
    method: str,
    n_blocks: int | None,
    singleton_weight: float,
    trial: int,
) -> Settings:
    """Return the settings of a run."""
    return {
        "experiment": experiment,
        "preset": preset,
        "size": size,
        "method": method,
        "n_blocks": n_blocks,
        "singleton_weight": singleton_weight,
        "trial": trial,
        "schedule": SCHEDULES[preset].as_settings(),
    }
