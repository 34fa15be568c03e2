"""Finished CIFAR-100 runs as numbers: test values by trial, read in four ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from structent._typing import FloatArray
from structent.errors import StructentError
from structent.experiments.cifar100.names import (
    ACCURACIES,
    OTHER_LOSSES,
    PAPER_LOSSES,
    SIZE_OF_1B,
)
from structent.experiments.experiment import Result
from structent.experiments.kept import Finished
from structent.experiments.paired import Mean, difference_of, mean_of

# The results of one loss in one case, by the number of the trial.
Trials: TypeAlias = dict[int, Result]
# From trials and the name of a metric to the test value of every trial.
Reading: TypeAlias = Callable[[Trials, str], dict[int, float]]

SEVERITY = "mistake severity"
LOWER_IS_BETTER = frozenset({"cross-entropy", "structured", SEVERITY})

LOSSES = (*PAPER_LOSSES, *OTHER_LOSSES)
PAPERS_LOSSES = {
    "1A": PAPER_LOSSES,
    "1B": (*PAPER_LOSSES, "scrambled"),
    "1C": PAPER_LOSSES,
    "1D": PAPER_LOSSES,
}


class Case(NamedTuple):
    """What losses are compared on: a number of training images, and a network."""

    size: int
    network: str


def runs_of(name: str, finished: Sequence[Finished]) -> list[Finished]:
    """Return the runs of an experiment; 1B has those of 1A that it is compared with."""
    if name not in PAPERS_LOSSES:
        raise StructentError(
            f"an experiment on CIFAR-100 is one of {', '.join(PAPERS_LOSSES)}, got {name!r}"
        )
    own = [run for run in finished if run.settings["experiment"] == name]
    if name != "1B":
        return own
    sizes = {run.settings["size"] for run in own} or {SIZE_OF_1B}
    return own + [
        run
        for run in finished
        if run.settings["experiment"] == "1A"
        and run.settings["size"] in sizes
        and run.settings["loss"] in PAPER_LOSSES
    ]


def cases(runs: Sequence[Finished]) -> list[Case]:
    """Return the cases that were run, by size and network."""
    return sorted({_case(run) for run in runs})


def losses_of(runs: Sequence[Finished], case: Case) -> list[str]:
    """Return the losses that were run in a case: those of the paper first."""
    found = {str(run.settings["loss"]) for run in runs if _case(run) == case}
    known = [loss for loss in LOSSES if loss in found]
    return known + sorted(found - set(known))


def trials_of(runs: Sequence[Finished], case: Case | None, loss: str) -> Trials:
    """Return the results of a loss in a case, by trial; none without a case."""
    trials: Trials = {}
    for run in runs:
        if _case(run) != case or run.settings["loss"] != loss:
            continue
        trial = run.settings["trial"]
        if trial in trials:
            raise StructentError(
                f"a trial must have one run, got two of trial {trial} with the loss {loss!r} on "
                f"{case.size} images; give the runs of one preset and one schedule"
            )
        trials[trial] = run.result
    return dict(sorted(trials.items()))


def trajectory(result: Result, metric: str) -> FloatArray:
    """Return the test values of a run, one for every epoch that was looked at.

    Mistake severity is the mean number of levels that a mistake gets wrong: of the four levels,
    the sum of the shares that are wrong, divided by the share of wrong classes.

    >>> result = {"test": {name: [0.6] for name in ACCURACIES} | {"accuracy 4": [0.8]}}
    >>> round(float(trajectory(result, "mistake severity")[0]), 9)  # (3 * .4 + .2) / .4
    3.5
    """
    if metric != SEVERITY:
        return np.array(result["test"][metric], dtype=np.float64)
    wrong = 1.0 - np.array([result["test"][name] for name in ACCURACIES], dtype=np.float64)
    severity = np.full(wrong.shape[1], np.nan)  # where there are no mistakes
    np.divide(wrong.sum(axis=0), wrong[0], out=severity, where=wrong[0] > 0)
    return severity


def epochs_of(trials: Trials) -> list[int]:
    """Return the epochs that were looked at, the same in every trial."""
    (first, *others) = trials.values()
    for other in others:
        if other["epochs"] != first["epochs"]:
            raise StructentError(
                f"trials must have been looked at after the same epochs, got {first['epochs']} "
                f"and {other['epochs']}; give the runs of one schedule"
            )
    return [int(epoch) for epoch in first["epochs"]]


def chosen(trials: Trials, metric: str) -> dict[int, float]:
    """Return test values at the epoch whose validation value of the metric is best, by trial.

    What the paper does on the test images, done on the validation images. The severity of mistakes
    is that of the epoch with the best accuracy: at first mistakes are many, and so the mild ones.
    """
    return _read_where_best(trials, metric, judge=_judge(metric))


def one_epoch(trials: Trials, metric: str) -> dict[int, float]:
    """Return test values at the epoch of least validation cross-entropy, whatever the metric.

    A loss under which cross-entropy turns early is then read while its accuracy still rises.
    """
    return _read_where_best(trials, metric, judge="cross-entropy")


def last(trials: Trials, metric: str) -> dict[int, float]:
    """Return test values at the last epoch."""
    return {trial: float(trajectory(result, metric)[-1]) for trial, result in trials.items()}


def papers_way(trials: Trials, metric: str) -> dict[int, float]:
    """Return test values where the mean trajectory over trials is best, each metric by itself.

    Their mean is what the paper reports: the best of the averaged trajectory.
    """
    if not trials:
        return {}
    epochs_of(trials)
    lines = np.stack([trajectory(result, metric) for result in trials.values()])
    place = _best_place(lines.mean(axis=0), metric)
    return dict(zip(trials, lines[:, place].tolist(), strict=True))


READINGS: Mapping[str, Reading] = {
    "chosen epoch": chosen,
    "least cross-entropy": one_epoch,
    "last epoch": last,
    "the paper's way": papers_way,
}


def chosen_epochs(trials: Trials, metric: str) -> dict[int, float]:
    """Return the epoch at which :func:`chosen` reads the metric, by trial."""
    return {
        trial: float(result["epochs"][_chosen_place(result, _judge(metric))])
        for trial, result in trials.items()
    }


def mean_value(trials: Trials, metric: str, reading: Reading) -> Mean | None:
    """Return the mean over trials; None without any."""
    by_trial = reading(trials, metric)
    return mean_of(by_trial) if by_trial else None


def difference(trials: Trials, baseline: Trials, metric: str, reading: Reading) -> Mean | None:
    """Return the mean of trials minus those of the baseline; None where they share no trial."""
    if not set(trials) & set(baseline):
        return None
    return difference_of(reading(trials, metric), reading(baseline, metric))


def as_gain(minus: Mean, metric: str) -> Mean:
    """Return a difference with its sign turned where lower is better: above 0 is a gain.

    >>> as_gain(Mean(-0.1, 0.02, 3), "cross-entropy")
    Mean(value=0.1, error=0.02, n_trials=3)
    """
    return minus._replace(value=-minus.value) if metric in LOWER_IS_BETTER else minus


def _case(run: Finished) -> Case:
    return Case(int(run.settings["size"]), str(run.settings["network"]))


def _judge(metric: str) -> str:
    return "accuracy" if metric == SEVERITY else metric


def _read_where_best(trials: Trials, metric: str, judge: str) -> dict[int, float]:
    return {
        trial: float(trajectory(result, metric)[_chosen_place(result, judge)])
        for trial, result in trials.items()
    }


def _chosen_place(result: Result, judge: str) -> int:
    return _best_place(np.array(result["validation"][judge], dtype=np.float64), judge)


def _best_place(values: FloatArray, metric: str) -> int:
    """Return where values are best; training that diverged has some that are not finite."""
    costs = values if metric in LOWER_IS_BETTER else -values
    return int(np.where(np.isfinite(costs), costs, np.inf).argmin())
