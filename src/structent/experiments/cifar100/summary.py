"""The numbers of an experiment's tables as plain JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from structent.experiments.cifar100.names import MEASURES
from structent.experiments.cifar100.readings import (
    READINGS,
    SEVERITY,
    Case,
    cases,
    chosen_epochs,
    difference,
    losses_of,
    mean_value,
    runs_of,
    trials_of,
)
from structent.experiments.kept import Finished
from structent.experiments.paired import Mean

_METRICS = (*MEASURES, SEVERITY)


def summary(name: str, finished: Sequence[Finished]) -> dict[str, Any]:
    """Return the means over trials, and their differences to the standard loss.

    Parameters
    ----------
    name
        "1A", "1B", "1C" or "1D".
    finished
        The finished runs of one preset.
    """
    runs = runs_of(name, finished)
    results = [_of_loss(case, loss, runs) for case in cases(runs) for loss in losses_of(runs, case)]
    return {"experiment": name, "results": results}


def _of_loss(case: Case, loss: str, runs: list[Finished]) -> dict[str, Any]:
    trials = trials_of(runs, case, loss)
    readings: dict[str, Any] = {
        label: {m: _plain(mean_value(trials, m, reading)) for m in _METRICS}
        for label, reading in READINGS.items()
    }
    if loss != "standard":
        standard = trials_of(runs, case, "standard")
        for label, reading in READINGS.items():
            minus = {m: _plain(difference(trials, standard, m, reading)) for m in _METRICS}
            readings[f"{label}, minus standard"] = minus
    return {
        "size": case.size,
        "network": case.network,
        "loss": loss,
        "chosen epochs": {m: list(chosen_epochs(trials, m).values()) for m in _METRICS},
        **readings,
    }


def _plain(mean: Mean | None) -> dict[str, Any] | None:
    """Return a mean as JSON has it, which knows finite numbers only; None where there is none."""
    if mean is None:
        return None
    value, error = (round(x, 6) if math.isfinite(x) else None for x in (mean.value, mean.error))
    return {"mean": value, "error": error, "trials": mean.n_trials}
