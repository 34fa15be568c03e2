"""What the paper claims of experiments 1A to 1D, judged by the values at the chosen epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from structent.experiments.cifar100.names import ACCURACIES, PAPER_LOSSES
from structent.experiments.cifar100.paper_numbers import COLUMNS
from structent.experiments.cifar100.places import Place, places
from structent.experiments.cifar100.readings import (
    Reading,
    as_gain,
    chosen,
    difference,
    papers_way,
    runs_of,
    trials_of,
)
from structent.experiments.cifar100.tables import HEADING, NOT_RUN
from structent.experiments.claim import Claim
from structent.experiments.kept import Finished
from structent.experiments.markdown import signed
from structent.experiments.paired import Mean

HOW_JUDGED = (
    'Judged by the mean differences at the chosen epoch. A claim holds ("yes") if they go its way '
    'wherever it was run, and "in part" if they do in more than half; that gains are larger with '
    "less data, if all of them fall with every step to more images, or more than half of them do. "
    "Intervals are Student's t over the trials, for each number by itself: of many, a few are "
    "beyond theirs by chance."
)


class Gain(NamedTuple):
    """By how much one loss is better than another in a place, on a metric; below 0 it is worse."""

    place: str
    metric: str
    mean: Mean


def claims(name: str, finished: Sequence[Finished]) -> list[Claim]:
    """Return the claims of an experiment, each with whether it holds here, and the numbers."""
    runs = runs_of(name, finished)
    return _CLAIMS[name](runs, places(name, runs))


def _of_1a(runs: list[Finished], found: list[Place]) -> list[Claim]:
    says = "structured is better than standard at every size, on every metric"
    gains = _gains(runs, found, "structured", "standard", chosen)
    return [
        _all_gain(says, runs, found, "structured", "standard"),
        _more_with_less_data(gains, found),
        _more_at_coarser_levels(gains),
    ]


def _of_1b(runs: list[Finished], found: list[Place]) -> list[Claim]:
    says = "the scrambled structure is worse than the {} loss, on every metric"
    return [_all_gain(says.format(loss), runs, found, loss, "scrambled") for loss in PAPER_LOSSES]


def _of_1c(runs: list[Finished], found: list[Place]) -> list[Claim]:
    says = "structured is better than standard on every metric: {}"
    return [
        _all_gain(says.format(place.label), runs, [place], "structured", "standard")
        for place in found
    ]


def _of_1d(runs: list[Finished], found: list[Place]) -> list[Claim]:
    says = "structured is better than standard on every metric"
    return [
        _all_gain(says, runs, found, "structured", "standard"),
        _more_at_coarser_levels(_gains(runs, found, "structured", "standard", chosen)),
    ]


_CLAIMS: dict[str, Callable[[list[Finished], list[Place]], list[Claim]]] = {
    "1A": _of_1a,
    "1B": _of_1b,
    "1C": _of_1c,
    "1D": _of_1d,
}


def _gains(
    runs: list[Finished], found: list[Place], better: str, than: str, reading: Reading
) -> list[Gain]:
    gains = []
    for place in found:
        first, second = (trials_of(runs, place.case, loss) for loss in (better, than))
        for metric in COLUMNS:
            minus = difference(first, second, metric, reading)
            if minus is not None:
                gains.append(Gain(place.label, metric, as_gain(minus, metric)))
    return gains


def _all_gain(says: str, runs: list[Finished], found: list[Place], better: str, than: str) -> Claim:
    """Return the claim that one loss is better than another everywhere."""
    gains = _gains(runs, found, better, than, chosen)
    if not gains:
        return Claim(says, NOT_RUN, "")
    true = [gain for gain in gains if gain.mean.value > 0]
    run = list(dict.fromkeys(gain.place for gain in gains))
    numbers = [_count(gains)]
    if len(run) == 1:
        numbers.append("by " + ", ".join(_metric_and_gain(gain) for gain in gains))
    elif len(true) < len(gains):
        others = [f"{_metric_and_gain(gain)} at {gain.place}" for gain in gains if gain not in true]
        numbers.append("not so: " + ", ".join(others))
    numbers.append(f"the paper's way {_count(_gains(runs, found, better, than, papers_way))}")
    numbers += _not_run(found, run)
    return Claim(says, _verdict(len(true), len(gains)), "; ".join(numbers))


def _more_with_less_data(gains: list[Gain], found: list[Place]) -> Claim:
    says = "gains are larger with less data"
    run = [place.label for place in found if place.label in {gain.place for gain in gains}]
    if len(run) < 2:
        return Claim(says, NOT_RUN, "")
    of = {(gain.place, gain.metric): gain.mean for gain in gains}
    smaller = [
        of[less, metric].value > max(of[more, metric].value, 0)
        for metric in COLUMNS
        for less, more in pairwise(run)
    ]
    listed = [f"{HEADING[m]} " + ", ".join(signed(of[label, m]) for label in run) for m in COLUMNS]
    numbers = [
        f"the gain is smaller after {sum(smaller)} of {len(smaller)} steps to more images",
        f"with {', '.join(run)}: {'; '.join(listed)}",
        *_not_run(found, run),
    ]
    return Claim(says, _verdict(sum(smaller), len(smaller)), "; ".join(numbers))


def _more_at_coarser_levels(gains: list[Gain]) -> Claim:
    says = "gains are higher at the coarser levels than for classes"
    finest, *coarser = ACCURACIES
    of = {(gain.place, gain.metric): gain.mean for gain in gains}
    labels = list(dict.fromkeys(gain.place for gain in gains))
    if not labels:
        return Claim(says, NOT_RUN, "")
    higher = [
        of[label, level].value > max(of[label, finest].value, 0)
        for label in labels
        for level in coarser
    ]
    listed = "; ".join(
        f"{label}: " + ", ".join(f"{HEADING[m]} {of[label, m].value:+.4f}" for m in ACCURACIES)
        for label in labels
    )
    numbers = f"higher in {sum(higher)} of {len(higher)}; {listed}"
    return Claim(says, _verdict(sum(higher), len(higher)), numbers)


def _metric_and_gain(gain: Gain) -> str:
    return f"{HEADING[gain.metric]} {signed(gain.mean)}"


def _count(gains: list[Gain]) -> str:
    """Return how many gains there are, and how many of them are beyond their interval."""
    text = f"in {sum(gain.mean.value > 0 for gain in gains)} of {len(gains)}"
    n_without = sum(math.isnan(gain.mean.error) for gain in gains)
    if n_without == len(gains):
        return f"{text} (one trial, so no intervals)"
    text += f", {sum(gain.mean.is_higher for gain in gains)} beyond their 95 % interval"
    n_against = sum(gain.mean.is_lower for gain in gains)
    if n_against:
        text += f" and {n_against} beyond it the other way"
    return f"{text} ({n_without} have one trial, so no interval)" if n_without else text


def _not_run(found: list[Place], run: list[str]) -> list[str]:
    missing = [place.label for place in found if place.label not in run]
    return [f"not run: {', '.join(missing)}"] if missing else []


def _verdict(n_true: int, n: int) -> str:
    if n_true == n:
        return "yes"
    return "in part" if 2 * n_true > n else "no"
