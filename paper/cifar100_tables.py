"""Tables on CIFAR-100: our values and the paper's, all losses compared, and the paper's claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from paper.cifar100_results import (
    LOSSES,
    READINGS,
    SEVERITY,
    Case,
    Place,
    Reading,
    Trials,
    as_gain,
    chosen,
    difference,
    losses_of,
    mean_value,
    papers_way,
    places,
    runs_of,
    trials_of,
)
from paper.experiment import Finished
from paper.pages import NOT_RUN, Claim, Mean, in_trials, signed, table, with_error
from paper.paper_numbers import ACCURACIES, COLUMNS, PAPER_LOSSES, PaperCase

HEADING = dict(zip(COLUMNS, ("cross-entropy", "Acc", "Acc2", "Acc3", "Acc4"), strict=True))
HEADING[SEVERITY] = SEVERITY
_METRICS = (*COLUMNS, SEVERITY)
_BEST = {
    "cross-entropy": "Lowest cross-entropy",
    "accuracy": "Highest class accuracy",
    SEVERITY: "Mildest mistakes",
}
_VALUES = (
    "Test values at the chosen epoch. Bold is the best over the trials that all losses share; the "
    "sentences above use the same trials. The best of several on the same test images looks "
    "slightly better than it is."
)
_MINUS = (
    "Differences to the standard loss, trial by trial; bold ones are beyond their 95 % interval."
)
HOW_JUDGED = (
    'Judged by the mean differences at the chosen epoch. A claim holds ("yes") if they agree with '
    'it wherever it was run, and "in part" if they do in more than half of the places. The claim '
    "that gains are larger with less data holds if all gains fall with every step to more images, "
    "and in part if more than half do. Intervals are Student's t over the trials, for each number "
    "by itself: among many, a few are beyond their interval by chance."
)


def beside_paper(
    places: Sequence[Place],
    runs: Sequence[Finished],
    *,
    losses: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    readings: Sequence[str],
) -> str:
    """Return a Markdown table of values and differences, with the paper's beneath ours.

    Parameters
    ----------
    places
        The places of the table.
    runs
        The finished runs of the experiment.
    losses
        The losses whose values are given.
    pairs
        The differences: of the first loss minus the second.
    readings
        The names of the readings.
    """
    rows = [
        [place.label, what, *cells]
        for place in places
        for what, cells in _rows(place, runs, losses, pairs, readings)
    ]
    header = ["case", "loss", "read at", *(HEADING[metric] for metric in COLUMNS)]
    return table(header, _without_repeats(rows), n_left=3)


def which_loss(runs: Sequence[Finished], case: Case | None) -> str:
    """Return, in Markdown, the values of all losses at the chosen epoch, and the best of them.

    Parameters
    ----------
    runs
        The finished runs of the experiment.
    case
        The case; None if nothing was run.
    """
    others = [] if case is None else [x for x in losses_of(runs, case) if x not in LOSSES]
    trials = {loss: trials_of(runs, case, loss) for loss in (*LOSSES, *others)}
    header = ["loss", "trials", *(HEADING[metric] for metric in _METRICS)]
    values = [_row(loss, trials[loss], best=_all_best(trials)) for loss in trials]
    minus = [_minus_row(loss, trials) for loss in trials if loss != "standard"]
    sentences = "\n".join(f"- {_sentence(trials, metric)}" for metric in _BEST)
    return "\n\n".join([sentences, _VALUES, table(header, values), _MINUS, table(header, minus)])


def claims(name: str, finished: Sequence[Finished]) -> list[Claim]:
    """Return the claims of an experiment, each with whether it holds here, and the numbers."""
    runs = runs_of(name, finished)
    return _CLAIMS[name](runs, places(name, runs))


def best_loss(trials: dict[str, Trials], metric: str) -> list[str]:
    """Return the losses from the best to the worst, over the trials that all of them have."""
    means = {
        loss: mean
        for loss, results in _shared_trials(trials).items()
        if (mean := mean_value(results, metric, chosen)) is not None
    }
    return sorted(means, key=lambda loss: as_gain(means[loss], metric).value, reverse=True)


def _rows(
    place: Place,
    runs: Sequence[Finished],
    losses: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    readings: Sequence[str],
) -> Iterator[tuple[str, list[str]]]:
    trials = {loss: trials_of(runs, place.case, loss) for loss in losses}
    for loss in losses:
        for cells in _of_loss(trials[loss], readings):
            yield loss, cells
        papers = place.paper and place.paper.of(loss)
        if place.paper and papers:
            yield loss, _of_paper(place.paper, papers, "")
    for first, second in pairs:
        what = f"{first} - {second}"
        for cells in _of_pair(trials[first], trials[second], readings):
            yield what, cells
        papers = place.paper and _paper_difference(place.paper, first, second)
        if place.paper and papers:
            yield what, _of_paper(place.paper, papers, "+")


def _of_loss(trials: Trials, readings: Sequence[str]) -> Iterator[list[str]]:
    def values(reading: Reading) -> list[Mean | None]:
        return [mean_value(trials, metric, reading) for metric in COLUMNS]

    return _of_ours(values, with_error, readings)


def _of_pair(trials: Trials, baseline: Trials, readings: Sequence[str]) -> Iterator[list[str]]:
    def values(reading: Reading) -> list[Mean | None]:
        return [difference(trials, baseline, metric, reading) for metric in COLUMNS]

    return _of_ours(values, _emphasised_difference, readings)


def _of_ours(
    values: Callable[[Reading], list[Mean | None]],
    write: Callable[[Mean], str],
    readings: Sequence[str],
) -> Iterator[list[str]]:
    for name in readings:
        means = [mean for mean in values(READINGS[name]) if mean is not None]
        if not means:
            yield [NOT_RUN, *[""] * len(COLUMNS)]
            return
        yield [f"{name}, {in_trials(means[0].n_trials)}", *map(write, means)]


def _emphasised_difference(minus: Mean) -> str:
    """Return a difference with its error, in bold if it is beyond its 95 % interval.

    >>> _emphasised_difference(Mean(-0.1, 0.01, 3)), _emphasised_difference(Mean(-0.1, 0.05, 3))
    ('**-0.1000 ± 0.0100**', '-0.1000 ± 0.0500')
    """
    return f"**{signed(minus)}**" if minus.is_lower or minus.is_higher else signed(minus)


def _of_paper(paper: PaperCase, values: dict[str, float], sign: str) -> list[str]:
    decimals = [paper.decimals if metric == "cross-entropy" else 4 for metric in COLUMNS]
    cells = [f"{values[m]:{sign}.{n}f}" for m, n in zip(COLUMNS, decimals, strict=True)]
    return [f"in the paper, {paper.setting}", *cells]


def _paper_difference(paper: PaperCase, first: str, second: str) -> dict[str, float] | None:
    values, baseline = paper.of(first), paper.of(second)
    if values is None or baseline is None:
        return None
    return {metric: values[metric] - baseline[metric] for metric in COLUMNS}


def _without_repeats(rows: list[list[str]]) -> list[list[str]]:
    """Return rows whose place and loss are named on their first line only."""
    shown = []
    before = ["", ""]
    for place, what, *cells in rows:
        same_place = place == before[0]
        same_what = same_place and what == before[1]
        shown.append(["" if same_place else place, "" if same_what else what, *cells])
        before = [place, what]
    return shown


def _all_best(trials: dict[str, Trials]) -> dict[str, str]:
    ranks = {metric: best_loss(trials, metric) for metric in _METRICS}
    return {metric: ranked[0] for metric, ranked in ranks.items() if len(ranked) > 1}


def _row(loss: str, trials: Trials, *, best: dict[str, str]) -> list[str]:
    means = [mean_value(trials, metric, chosen) for metric in _METRICS]
    cells = [with_error(mean) for mean in means if mean is not None]
    if not cells:
        return _row_not_run(loss)
    return [
        loss,
        str(len(trials)),
        *(
            f"**{cell}**" if best.get(metric) == loss else cell
            for metric, cell in zip(_METRICS, cells, strict=True)
        ),
    ]


def _minus_row(loss: str, trials: dict[str, Trials]) -> list[str]:
    minus = [difference(trials[loss], trials["standard"], m, chosen) for m in _METRICS]
    found = [mean for mean in minus if mean is not None]
    if not found:
        return _row_not_run(loss)
    return [loss, str(found[0].n_trials), *map(_emphasised_difference, found)]


def _row_not_run(loss: str) -> list[str]:
    return [loss, NOT_RUN, *[""] * len(_METRICS)]


def _sentence(trials: dict[str, Trials], metric: str) -> str:
    ranked, shared = best_loss(trials, metric), _shared_trials(trials)
    if len(ranked) < 2:
        return f"{_BEST[metric]}: no two losses share a trial yet."
    best = ranked[0]
    text = f"{_BEST[metric]}: {best}"
    values = mean_value(shared[best], metric, chosen)
    if values is not None:
        text += f", {with_error(values)} ({in_trials(values.n_trials)})"
    if "structured" not in shared:
        return f"{text}; the structured loss was not run."
    other = ranked[1] if best == "structured" else "structured"
    minus = difference(shared[best], shared[other], metric, chosen)
    name = f"the next, {other}," if best == "structured" else "the structured loss"
    return text if minus is None else f"{text}; {_against(as_gain(minus, metric), name)}."


def _against(gain: Mean, name: str) -> str:
    by = f"better than {name} by {with_error(gain)}"
    if math.isnan(gain.error):
        return f"{by}, on one trial only, so without an interval"
    return f"{by}, {'beyond' if gain.is_higher else 'within'} its 95 % interval"


def _shared_trials(trials: dict[str, Trials]) -> dict[str, Trials]:
    """Return the losses that were run, each with the trials that all of them have."""
    run = {loss: results for loss, results in trials.items() if results}
    shared = set.intersection(*map(set, run.values())) if run else set()
    return {
        loss: {trial: result for trial, result in results.items() if trial in shared}
        for loss, results in run.items()
    }


class _Gain(NamedTuple):
    """How much better one loss is than another in a place, on a metric; below 0 it is worse."""

    place: str
    metric: str
    mean: Mean


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
) -> list[_Gain]:
    gains = []
    for place in found:
        first, second = (trials_of(runs, place.case, loss) for loss in (better, than))
        for metric in COLUMNS:
            minus = difference(first, second, metric, reading)
            if minus is not None:
                gains.append(_Gain(place.label, metric, as_gain(minus, metric)))
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


def _more_with_less_data(gains: list[_Gain], found: list[Place]) -> Claim:
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


def _more_at_coarser_levels(gains: list[_Gain]) -> Claim:
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


def _metric_and_gain(gain: _Gain) -> str:
    return f"{HEADING[gain.metric]} {signed(gain.mean)}"


def _count(gains: list[_Gain]) -> str:
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
