"""The settings of a run on CIFAR-100: all but the data that decides its result."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from structent.experiments.experiment import Settings


def settings_of(
    experiment: str,
    preset: str,
    *,
    size: int,
    network: str,
    loss: str,
    trial: int,
    schedule: Any,
) -> Settings:
    """Return the settings of a run; the schedule is a dataclass of the experiment.

    How many trials there are decides none of them: more can be added later.
    """
    deciding = {name: value for name, value in asdict(schedule).items() if name != "n_trials"}
    return {
        "experiment": experiment,
        "preset": preset,
        "size": size,
        "network": network,
        "loss": loss,
        "trial": trial,
        "schedule": deciding,
    }
