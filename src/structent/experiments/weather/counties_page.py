"""The page on counties (Problem 3): the paper's table of log losses, ours beside the paper's."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from structent.experiments.claim import Claim
from structent.experiments.kept import Finished
from structent.experiments.markdown import table
from structent.experiments.weather.claims import (
    Cell,
    all_higher,
    all_lower,
    best_at,
    shrinking_gain,
)
from structent.experiments.weather.counties_figure import caption, combination_name, counties_figure
from structent.experiments.weather.page import (
    CHOSEN,
    NOT_RUN,
    PAPERS_WAY,
    difference_cell,
    loss_cell,
    opening,
    plain,
)
from structent.experiments.weather.paper_numbers import COUNTIES, COUNTY_COMBINATIONS
from structent.experiments.weather.results import (
    STANDARD,
    Arm,
    Readings,
    average_difference,
    chosen_on_validation,
    difference,
    mean_loss,
    most_trials,
    scrambled,
    the_papers_way,
)

_ARMS = [Arm("variable", n_blocks, weight) for n_blocks, weight in COUNTY_COMBINATIONS]
_PAPERS_BEST = Arm("variable", 10, 0.5)
_INTRODUCTION = (
    "Which county is it, given the rain and the temperatures of a day at a station? The graph of "
    "neighbouring counties is cut at random into connected blocks, anew for every tree. A column "
    "has its number of blocks and its singleton weight, which is the share of ordinary "
    "cross-entropy in the loss. Scrambled is the control that the paper ran for images only: the "
    "same graph with the counties in a random order."
)


def page(finished: list[Finished], about: list[str]) -> str:
    """Return the Markdown page.

    Parameters
    ----------
    finished
        The runs that were done, under one preset; what is missing is said to be.
    about
        Paragraphs on the command, the preset, the machine and the date.
    """
    chosen, papers_way = chosen_on_validation(finished), the_papers_way(finished)
    parts = [
        *opening("Counties", about, _INTRODUCTION, claims(finished), most_trials(chosen)),
        f"## Ours beside the paper's, {CHOSEN}",
        "Log losses, ours with the depth of the trees chosen on validation:",
        _loss_table(chosen),
        "Differences to standard:",
        _difference_table(chosen),
        *caption(chosen),
        f"## Ours beside the paper's, {PAPERS_WAY}",
        "The same with the depth chosen as the paper does. Log losses:",
        _loss_table(papers_way),
        "Differences to standard:",
        _difference_table(papers_way),
        "## Scrambled",
        f"Differences to standard, {CHOSEN}, and from the structure to its scrambled control:",
        _scrambled_table(chosen),
    ]
    return "\n\n".join(parts) + "\n"


def figures(finished: list[Finished]) -> dict[str, Figure]:
    """Return the figure of the page by the name of its file; none where nothing was run."""
    return counties_figure(chosen_on_validation(finished))


def summary(finished: list[Finished]) -> dict[str, Any]:
    """Return the numbers of the tables as plain JSON values."""
    return {
        CHOSEN: _numbers(chosen_on_validation(finished)),
        PAPERS_WAY: _numbers(the_papers_way(finished)),
        "the paper's": [
            {"size": size, **arm._asdict(), "loss": loss}
            for size, losses in COUNTIES.items()
            for arm, loss in zip(
                [STANDARD, *_ARMS], [losses.standard, *losses.variable], strict=True
            )
        ],
    }


def claims(finished: list[Finished]) -> list[Claim]:
    """Return the paper's claims, each with whether it holds here."""
    readings = chosen_on_validation(finished)
    cells = [(size, arm) for size in COUNTIES for arm in _ARMS]
    controlled = [(size, arm) for size in COUNTIES for arm in _controlled(readings)]
    return [
        all_lower(
            "all five combinations are better than standard, at every size",
            [_against(readings, size, arm, STANDARD) for size, arm in cells],
        ),
        best_at(
            f"{combination_name(_PAPERS_BEST)} is best in general (at more than half of the sizes)",
            readings,
            list(COUNTIES),
            [_PAPERS_BEST],
            enough=len(COUNTIES) // 2 + 1,
            name=combination_name,
        ),
        shrinking_gain(
            "the gain, on average over the five combinations, is larger for small data",
            {size: average_difference(readings, size, _ARMS) for size in COUNTIES},
        ),
        all_higher(
            "a scrambled structure is worse than standard (the paper shows it for images only)",
            [_against(readings, size, scrambled(arm), STANDARD) for size, arm in controlled],
        ),
        all_higher(
            "a scrambled structure is worse than the structure itself (for images only)",
            [_against(readings, size, scrambled(arm), arm) for size, arm in controlled],
        ),
    ]


def _against(readings: Readings, size: int, arm: Arm, baseline: Arm) -> Cell:
    name = f"{combination_name(arm)} with {size:,} rows"
    return Cell(name, difference(readings, size, arm, baseline))


def _controlled(readings: Readings) -> list[Arm]:
    """Return the combinations whose scrambled control was run."""
    run = {arm for _, arm in readings}
    return [arm for arm in _ARMS if scrambled(arm) in run]


def _sizes(readings: Readings) -> list[int]:
    """Return the paper's sizes, and those that were run besides."""
    return sorted({*COUNTIES, *(size for size, _ in readings)})


def _numbers(readings: Readings) -> list[dict[str, Any]]:
    return [
        {
            "size": size,
            **arm._asdict(),
            "loss": plain(mean_loss(readings, size, arm)),
            "difference": plain(difference(readings, size, arm)),
            "depths": sorted(readings[size, arm].depth.values()),
        }
        for size in _sizes(readings)
        for arm in [STANDARD, *_ARMS, *map(scrambled, _ARMS)]
        if (size, arm) in readings
    ]


def _loss_table(readings: Readings) -> str:
    rows = []
    for size in _sizes(readings):
        means = [mean_loss(readings, size, arm) for arm in [STANDARD, *_ARMS]]
        cells = [loss_cell(mean, most_trials(readings)) for mean in means]
        rows.append([f"{size:,}", "ours", *cells])
        if size in COUNTIES:
            losses = [COUNTIES[size].standard, *COUNTIES[size].variable]
            rows.append([f"{size:,}", "the paper's", *(f"{loss:.3f}" for loss in losses)])
    return table(
        ["training rows", "whose", "standard", *map(combination_name, _ARMS)], rows, n_left=2
    )


def _difference_table(readings: Readings) -> str:
    rows = []
    for size in _sizes(readings):
        means = [difference(readings, size, arm) for arm in _ARMS]
        cells = [difference_cell(mean, most_trials(readings)) for mean in means]
        rows.append([f"{size:,}", "ours", *cells])
        if size in COUNTIES:
            standard, losses = COUNTIES[size]
            rows.append([f"{size:,}", "the paper's", *(f"{x - standard:+.3f}" for x in losses)])
    return table(["training rows", "whose", *map(combination_name, _ARMS)], rows, n_left=2)


def _scrambled_table(readings: Readings) -> str:
    arms = _controlled(readings)
    if not arms:
        return f"{NOT_RUN.capitalize()}."
    rows = []
    for size in _sizes(readings):
        of_rows = {
            "structure": [difference(readings, size, arm) for arm in arms],
            "scrambled": [difference(readings, size, scrambled(arm)) for arm in arms],
            "scrambled minus structure": [
                difference(readings, size, scrambled(arm), arm) for arm in arms
            ],
        }
        for name, means in of_rows.items():
            cells = [difference_cell(mean, most_trials(readings)) for mean in means]
            rows.append([f"{size:,}", name, *cells])
    return table(["training rows", "", *map(combination_name, arms)], rows, n_left=2)
