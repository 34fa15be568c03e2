"""Tables of test values: ours under the readings, with the paper's beneath."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from structent.experiments.cifar100.paper_numbers import COLUMNS, PaperCase
from structent.experiments.cifar100.places import Place
from structent.experiments.cifar100.readings import (
    READINGS,
    SEVERITY,
    Reading,
    Trials,
    difference,
    mean_value,
    trials_of,
)
from structent.experiments.kept import Finished
from structent.experiments.markdown import signed, table, with_error
from structent.experiments.paired import Mean

HEADING = dict(zip(COLUMNS, ("cross-entropy", "Acc", "Acc2", "Acc3", "Acc4"), strict=True))
HEADING[SEVERITY] = SEVERITY

NOT_RUN = "not run"


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


def emphasised_difference(minus: Mean) -> str:
    """Return a difference with its error, in bold where it is beyond its 95 % interval.

    >>> emphasised_difference(Mean(-0.1, 0.01, 3)), emphasised_difference(Mean(-0.1, 0.05, 3))
    ('**-0.1000 ± 0.0100**', '-0.1000 ± 0.0500')
    """
    return f"**{signed(minus)}**" if minus.is_lower or minus.is_higher else signed(minus)


def n_trials(count: int) -> str:
    """Return how many trials, in words.

    >>> n_trials(1), n_trials(3)
    ('1 trial', '3 trials')
    """
    return f"{count} trial" + "s" * (count != 1)


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

    return _of_ours(values, emphasised_difference, readings)


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
        yield [f"{name}, {n_trials(means[0].n_trials)}", *map(write, means)]


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
