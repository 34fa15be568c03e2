"""The page on counties (Problem 3): log losses, ours and those of the paper's table.

Runs of several engines are shown side by side, and the claims are judged with each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from paper.counties import ENGINES, OURS, XGBOOST, engine_of
from paper.experiment import Finished
from paper.pages import (
    NOT_RUN,
    Claim,
    Look,
    Page,
    as_numbers,
    as_svg,
    claims_counted,
    claims_table,
    difference_cell,
    difference_of,
    draw_line,
    loss_cell,
    page_style,
    picture,
    table,
)
from paper.paper_numbers import COUNTY_COMBINATIONS, COUNTY_LOSSES
from paper.weather_results import (
    CHOSEN,
    PAPERS_WAY,
    STANDARD,
    Arm,
    Cell,
    Readings,
    all_higher,
    all_lower,
    average_difference,
    best_at,
    chosen_on_validation,
    difference,
    mean_loss,
    most_trials,
    opening,
    scrambled,
    shrinking_gain,
    the_papers_way,
)
from structent.plots.style import OF_LEVELS, ink

_ARMS = [Arm("variable", n_blocks, weight) for n_blocks, weight in COUNTY_COMBINATIONS]
_PAPERS_BEST = Arm("variable", 10, 0.5)
_INTRODUCTION = (
    "Which county is it, given the rain and the temperatures of a day at a station? The graph of "
    "neighbouring counties is cut at random into connected blocks, in another way for every "
    "tree. A column names the number of blocks and the singleton weight, which is the share of "
    "ordinary cross-entropy in the loss. Scrambled is the control that the paper ran for images "
    "only: the same graph with the counties in a random order. All trees have vector leaves; they "
    "are grown by our own engine or by XGBoost, with the same settings."
)
_NAMES = {OURS: "our engine", XGBOOST: "XGBoost"}
_OF_WHOM = {OURS: "our own engine's trees", XGBOOST: "XGBoost's trees"}
_MARKERS = "osD^v"


class _OfEngine(NamedTuple):
    """The runs of an engine, read in both ways."""

    engine: str
    finished: list[Finished]
    chosen: Readings
    papers_way: Readings

    @property
    def name(self) -> str:
        return _NAMES[self.engine]


def page(finished: list[Finished], about: list[str]) -> Page:
    """Return the page, its figures and its numbers; see :func:`markdown`."""
    numbers = {"about": about, **summary(finished)}
    return Page("counties", markdown(finished, about), as_svg(figures(finished)), numbers)


def markdown(finished: list[Finished], about: list[str]) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    finished
        The finished runs of one preset; the page says what is missing.
    about
        Paragraphs on the command, the preset, the machine and the date.
    """
    engines = _engines(finished)
    chosen = {each.name: each.chosen for each in engines}
    papers_way = {each.name: each.papers_way for each in engines}
    first, *others = engines
    n_trials = max(most_trials(each.chosen) for each in engines)
    introduction = f"{_INTRODUCTION} {_judged_with(engines)}"
    parts = [
        *opening("Counties", about, introduction, claims(first.finished), n_trials),
        *[part for other in others for part in _claims_again(other)],
        f"## Ours beside the paper's, {CHOSEN}",
        "Log losses, ours with the depth of the trees chosen on validation:",
        _loss_table(chosen),
        "Differences to standard:",
        _difference_table(chosen),
        *_caption(engines),
        *_between_engines(engines),
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
    """Return the figure of the page by the name of its file; none if nothing was run."""
    engines = _engines(finished)
    if not engines[0].chosen:
        return {}
    with page_style():
        figure = Figure(
            figsize=(4.0 + 5.0 * len(engines), 4.6), layout="constrained", facecolor="white"
        )
        panels = figure.subplots(1, len(engines), sharey=True, squeeze=False)[0]
        for each, ax in zip(engines, panels, strict=True):
            _draw_differences(ax, each.chosen)
            if len(engines) > 1:
                ax.set_title(each.name)
        panels[0].set_ylabel("log loss minus standard, nats a row\n(below 0 better than standard)")
        # The controls that were not run have no label in the first panel.
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center",
                      frameon=False)  # fmt: skip
        return {"counties-differences": figure}


def _draw_differences(ax: Axes, readings: Readings) -> None:
    """Draw the difference to standard at every size, a line for each combination."""
    sizes = sorted({size for size, _ in readings})
    ax.axhline(0.0, color=ink(), linewidth=1, label="standard")
    for place, (arm, look) in enumerate(_looks()):
        # Shifted sideways, so that error bars of two lines do not overlap.
        shift = 1 + 0.018 * (place - (len(_looks()) - 1) / 2)
        means = [difference(readings, size, arm) for size in sizes]
        draw_line(ax, [size * shift for size in sizes], means, look)
    ax.set_xscale("log")
    ax.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
    ax.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("training rows")
    ax.spines[["top", "right"]].set_visible(False)


def summary(finished: list[Finished]) -> dict[str, Any]:
    """Return the numbers of the tables as plain JSON values."""
    engines = _engines(finished)
    return {
        CHOSEN: [row for each in engines for row in _numbers(each.engine, each.chosen)],
        PAPERS_WAY: [row for each in engines for row in _numbers(each.engine, each.papers_way)],
        "the paper's": [
            {"size": size, **arm._asdict(), "loss": loss}
            for size, losses in COUNTY_LOSSES.items()
            for arm, loss in zip(
                [STANDARD, *_ARMS], [losses.standard, *losses.variable], strict=True
            )
        ],
    }


def claims(finished: list[Finished]) -> list[Claim]:
    """Return the paper's claims, each with whether it holds in the runs of one engine."""
    readings = chosen_on_validation(finished)
    cells = [(size, arm) for size in COUNTY_LOSSES for arm in _ARMS]
    controlled = [(size, arm) for size in COUNTY_LOSSES for arm in _controlled(readings)]
    return [
        all_lower(
            "all five combinations are better than standard, at every size",
            [_against(readings, size, arm, STANDARD) for size, arm in cells],
        ),
        best_at(
            f"{_combination(_PAPERS_BEST)} is best in general (at more than half of the sizes)",
            readings,
            list(COUNTY_LOSSES),
            [_PAPERS_BEST],
            enough=len(COUNTY_LOSSES) // 2 + 1,
            name=_combination,
        ),
        shrinking_gain(
            "the gain, on average over the five combinations, is larger for small data",
            {size: average_difference(readings, size, _ARMS) for size in COUNTY_LOSSES},
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
    name = f"{_combination(arm)} with {size:,} rows"
    return Cell(name, difference(readings, size, arm, baseline))


def _controlled(readings: Readings) -> list[Arm]:
    """Return the combinations whose scrambled control was run."""
    run = {arm for _, arm in readings}
    return [arm for arm in _ARMS if scrambled(arm) in run]


def _sizes(readings: Readings) -> list[int]:
    """Return the paper's sizes, and other sizes that were run."""
    return sorted({*COUNTY_LOSSES, *(size for size, _ in readings)})


def _engines(finished: Sequence[Finished]) -> list[_OfEngine]:
    """Return the runs of each engine that has some; of the first engine if there are none."""
    found = []
    for engine in ENGINES:
        runs = [run for run in finished if engine_of(run.settings) == engine]
        if runs:
            read = chosen_on_validation(runs), the_papers_way(runs)
            found.append(_OfEngine(engine, runs, *read))
    return found or [_OfEngine(ENGINES[0], [], {}, {})]


def _judged_with(engines: Sequence[_OfEngine]) -> str:
    """Return with whose trees the first table of claims is judged, and where the others are."""
    first, *others = [_OF_WHOM[each.engine] for each in engines]
    rest = f"; the next section has them with {' and '.join(others)}" if others else ""
    return f"The claims are judged with {first}{rest}."


def _claims_again(each: _OfEngine) -> list[str]:
    claimed = claims(each.finished)
    heading = f"## The same with {_OF_WHOM[each.engine]}"
    return [heading, claims_counted(claimed), claims_table(claimed)]


def _between_engines(engines: Sequence[_OfEngine]) -> list[str]:
    """Return the section that compares the losses of two engines; nothing if there is one."""
    if len(engines) < 2:
        return []
    ours, theirs = engines
    rows = []
    for size in _sizes(ours.chosen):
        pairs = [
            [each.chosen.get((size, arm)) for each in (ours, theirs)] for arm in [STANDARD, *_ARMS]
        ]
        means = [
            None if one is None or other is None else difference_of(one.test, other.test)
            for one, other in pairs
        ]
        rows.append(
            [f"{size:,}", *(difference_cell(mean, most_trials(ours.chosen)) for mean in means)]
        )
    told = (
        f"Log loss with {_OF_WHOM[ours.engine]} minus log loss with {_OF_WHOM[theirs.engine]}, on "
        f"the same rows, {CHOSEN}. Both draw rows for each tree, but not the same ones:"
    )
    losses = table(["training rows", "standard", *map(_combination, _ARMS)], rows)
    return ["## One engine beside the other", told, losses]


def _numbers(engine: str, readings: Readings) -> list[dict[str, Any]]:
    return [
        {
            "engine": engine,
            "size": size,
            **arm._asdict(),
            "loss": as_numbers(mean_loss(readings, size, arm)),
            "difference": as_numbers(difference(readings, size, arm)),
            "depths": sorted(readings[size, arm].depth.values()),
        }
        for size in _sizes(readings)
        for arm in [STANDARD, *_ARMS, *map(scrambled, _ARMS)]
        if (size, arm) in readings
    ]


def _loss_table(readings_of: dict[str, Readings]) -> str:
    rows = []
    for size in _all_sizes(readings_of):
        for name, readings in readings_of.items():
            means = [mean_loss(readings, size, arm) for arm in [STANDARD, *_ARMS]]
            cells = [loss_cell(mean, most_trials(readings)) for mean in means]
            rows.append([f"{size:,}", name, *cells])
        if size in COUNTY_LOSSES:
            losses = [COUNTY_LOSSES[size].standard, *COUNTY_LOSSES[size].variable]
            rows.append([f"{size:,}", "the paper's", *(f"{loss:.3f}" for loss in losses)])
    return table(["training rows", "whose", "standard", *map(_combination, _ARMS)], rows, n_left=2)


def _difference_table(readings_of: dict[str, Readings]) -> str:
    rows = []
    for size in _all_sizes(readings_of):
        for name, readings in readings_of.items():
            means = [difference(readings, size, arm) for arm in _ARMS]
            cells = [difference_cell(mean, most_trials(readings)) for mean in means]
            rows.append([f"{size:,}", name, *cells])
        if size in COUNTY_LOSSES:
            standard, losses = COUNTY_LOSSES[size]
            rows.append([f"{size:,}", "the paper's", *(f"{x - standard:+.3f}" for x in losses)])
    return table(["training rows", "whose", *map(_combination, _ARMS)], rows, n_left=2)


def _scrambled_table(readings_of: dict[str, Readings]) -> str:
    arms = [arm for arm in _ARMS if any(arm in _controlled(each) for each in readings_of.values())]
    if not arms:
        return f"{NOT_RUN.capitalize()}."
    rows = []
    for size in _all_sizes(readings_of):
        for whose, readings in readings_of.items():
            of_rows = {
                "structure": [difference(readings, size, arm) for arm in arms],
                "scrambled": [difference(readings, size, scrambled(arm)) for arm in arms],
                "scrambled minus structure": [
                    difference(readings, size, scrambled(arm), arm) for arm in arms
                ],
            }
            for name, means in of_rows.items():
                cells = [difference_cell(mean, most_trials(readings)) for mean in means]
                rows.append([f"{size:,}", whose, name, *cells])
    return table(["training rows", "whose", "", *map(_combination, arms)], rows, n_left=3)


def _all_sizes(readings_of: dict[str, Readings]) -> list[int]:
    return sorted({size for readings in readings_of.values() for size in _sizes(readings)})


def _caption(engines: Sequence[_OfEngine]) -> list[str]:
    """Return the picture as the page shows it, with its caption."""
    if not engines[0].chosen:
        return []
    return picture(
        "counties-differences",
        "Paired difference to standard against training rows, a line for each combination",
        "Paired differences to standard with their standard errors, the depth of the trees chosen "
        "on validation. Dashes and hollow markers are the scrambled controls.",
    )


def _combination(arm: Arm) -> str:
    """Return the number of blocks and the singleton weight of an arm.

    >>> _combination(Arm("variable, scrambled", 10, 0.25))
    '10 blocks, 0.25, scrambled'
    """
    control = ", scrambled" if arm.method.endswith("scrambled") else ""
    return f"{arm.n_blocks} blocks, {arm.singleton_weight:g}{control}"


def _looks() -> list[tuple[Arm, Look]]:
    """Return every combination followed by its control, and the look of their lines."""
    return [
        (each, Look(_combination(each), colour, marker, is_control=each != arm))
        for arm, colour, marker in zip(_ARMS, OF_LEVELS, _MARKERS, strict=True)
        for each in (arm, scrambled(arm))
    ]
