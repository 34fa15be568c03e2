"""Results of the runs on CIFAR-100: test values by trial, read in four ways, and the paper's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from paper.experiment import Finished, Result
from paper.pages import Mean, as_numbers, difference_of, mean_of
from paper.paper_numbers import (
    ACCURACIES,
    MEASURES,
    OTHER_LOSSES,
    PAPER_LOSSES,
    SIZE_OF_1B,
    TABLE_1A,
    TABLE_1C,
    TABLE_1D,
    PaperCase,
)
from structent._typing import FloatArray
from structent.errors import StructentError

# The results of one loss in one case, by the number of the trial.
Trials: TypeAlias = dict[int, Result]
# Takes trials and the name of a metric, returns the test value of every trial.
Reading: TypeAlias = Callable[[Trials, str], dict[int, float]]
SEVERITY = "mistake severity"
_LOWER_IS_BETTER = frozenset({"cross-entropy", "structured", SEVERITY})
LOSSES = (*PAPER_LOSSES, *OTHER_LOSSES)
LOSSES_OF = {
    "1A": PAPER_LOSSES,
    "1B": (*PAPER_LOSSES, "scrambled"),
    "1C": PAPER_LOSSES,
    "1D": PAPER_LOSSES,
}
# Experiments whose table is by the number of training images.
_BY_SIZE: Mapping[str, Mapping[int, PaperCase]] = {
    "1A": TABLE_1A,
    "1B": {SIZE_OF_1B: TABLE_1A[SIZE_OF_1B]},
    "1D": TABLE_1D,
}
# Names of the paper's networks, in lowercase letters and digits; ResNet50V2 is another network.
_PATTERN = {"ResNet50": r"resnet50(?!v2)", "MobileNetV2": r"mobilenetv2"}
_METRICS = (*MEASURES, SEVERITY)


class Case(NamedTuple):
    """A case in which losses are compared: a number of training images, and a network."""

    size: int
    network: str


def runs_of(name: str, finished: Sequence[Finished]) -> list[Finished]:
    """Return the runs of an experiment; 1B includes the runs of 1A that it is compared with."""
    if name not in LOSSES_OF:
        raise StructentError(
            f"an experiment on CIFAR-100 is one of {', '.join(LOSSES_OF)}, got {name!r}"
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
    """Return the losses that were run in a case, the paper's losses first."""
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
    """Return the test values of a run, one for every measured epoch.

    Mistake severity is the mean number of levels that a mistake gets wrong: the sum over the four
    levels of the share of wrong rows, divided by the share of wrong classes.

    >>> result = {"test": {name: [0.6] for name in ACCURACIES} | {"accuracy 4": [0.8]}}
    >>> round(float(trajectory(result, "mistake severity")[0]), 9)  # (3 * .4 + .2) / .4
    3.5
    """
    if metric != SEVERITY:
        return np.array(result["test"][metric], dtype=np.float64)
    wrong = 1.0 - np.array([result["test"][name] for name in ACCURACIES], dtype=np.float64)
    severity = np.full(wrong.shape[1], np.nan)  # NaN if there are no mistakes
    np.divide(wrong.sum(axis=0), wrong[0], out=severity, where=wrong[0] > 0)
    return severity


def epochs_of(trials: Trials) -> list[int]:
    """Return the measured epochs, the same in every trial."""
    (first, *others) = trials.values()
    for other in others:
        if other["epochs"] != first["epochs"]:
            raise StructentError(
                f"trials must have been measured after the same epochs, got {first['epochs']} "
                f"and {other['epochs']}; give the runs of one schedule"
            )
    return [int(epoch) for epoch in first["epochs"]]


def chosen(trials: Trials, metric: str) -> dict[int, float]:
    """Return test values at the epoch whose validation value of the metric is best, by trial.

    The paper chooses the epoch on the test images; here validation images choose it. The severity
    of mistakes is read at the epoch with the best accuracy, because early epochs make many
    mistakes, most of them mild.
    """
    return _read_where_best(trials, metric, judge=_judge(metric))


def one_epoch(trials: Trials, metric: str) -> dict[int, float]:
    """Return test values at the epoch with the lowest validation cross-entropy, for any metric.

    If cross-entropy starts to rise early, a loss is then read while its accuracy still rises.
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
    """Return the mean over trials; None if there are none."""
    by_trial = reading(trials, metric)
    return mean_of(by_trial) if by_trial else None


def difference(trials: Trials, baseline: Trials, metric: str, reading: Reading) -> Mean | None:
    """Return the mean difference from the baseline over shared trials; None if there are none."""
    if not set(trials) & set(baseline):
        return None
    return difference_of(reading(trials, metric), reading(baseline, metric))


def as_gain(minus: Mean, metric: str) -> Mean:
    """Return a difference as a gain: the sign is reversed for metrics where lower is better.

    >>> as_gain(Mean(-0.1, 0.02, 3), "cross-entropy")
    Mean(value=0.1, error=0.02, n_trials=3)
    """
    return minus._replace(value=-minus.value) if metric in _LOWER_IS_BETTER else minus


@dataclass(frozen=True)
class Place:
    """A place in the table of an experiment.

    Attributes
    ----------
    label
        Its name, for readers.
    slug
        Its name, for files.
    case
        The case that was run; None if nothing was.
    paper
        The paper's numbers there, if any.
    """

    label: str
    slug: str
    case: Case | None
    paper: PaperCase | None


def places(name: str, runs: Sequence[Finished]) -> list[Place]:
    """Return the places of an experiment's table, in the paper's order."""
    found = cases(runs)
    return _by_network(found) if name == "1C" else _by_size(found, _BY_SIZE[name])


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
    """Return where values are best, among the finite ones: training may have diverged."""
    costs = values if metric in _LOWER_IS_BETTER else -values
    return int(np.where(np.isfinite(costs), costs, np.inf).argmin())


def _by_size(run: list[Case], papers: Mapping[int, PaperCase]) -> list[Place]:
    n_networks = len({case.network for case in run})
    found = []
    for size in sorted({*papers, *(case.size for case in run)}):
        here: list[Case | None] = [case for case in run if case.size == size]
        for case in here or [None]:
            network = case.network if case is not None and n_networks > 1 else ""
            label = f"{size:,} images" + f", {network}" * bool(network)
            found.append(Place(label, _slug(f"{size} {network}"), case, papers.get(size)))
    return found


def _by_network(run: list[Case]) -> list[Place]:
    found = []
    for network, paper in TABLE_1C.items():
        same = [case for case in run if _is_network(case.network, network)]
        found += [_of_network(case, network, paper) for case in same]
        if not same:
            found.append(Place(network, _slug(network), None, paper))
    known = {place.case for place in found}
    others = [case for case in run if case not in known]
    return found + [_of_network(case, case.network, None) for case in others]


def _of_network(case: Case, network: str, paper: PaperCase | None) -> Place:
    name = network if case.network == network else f"{network} ({case.network})"
    return Place(f"{name}, {case.size:,} images", _slug(f"{case.network} {case.size}"), case, paper)


def _is_network(ours: str, papers: str) -> bool:
    letters = re.sub(r"[^a-z0-9]", "", ours.lower())
    return re.search(_PATTERN[papers], letters) is not None


def _slug(text: str) -> str:
    return "-".join(re.findall(r"\w+", text))


def _of_loss(case: Case, loss: str, runs: list[Finished]) -> dict[str, Any]:
    trials = trials_of(runs, case, loss)
    readings: dict[str, Any] = {
        label: {m: as_numbers(mean_value(trials, m, reading)) for m in _METRICS}
        for label, reading in READINGS.items()
    }
    if loss != "standard":
        standard = trials_of(runs, case, "standard")
        for label, reading in READINGS.items():
            minus = {m: as_numbers(difference(trials, standard, m, reading)) for m in _METRICS}
            readings[f"{label}, minus standard"] = minus
    return {
        "size": case.size,
        "network": case.network,
        "loss": loss,
        "chosen epochs": {m: list(chosen_epochs(trials, m).values()) for m in _METRICS},
        **readings,
    }
