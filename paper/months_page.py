"""The page on months (Problem 2): log loss against singleton weight, ours and the paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paper.experiment import Finished
from paper.pages import (
    NOT_RUN,
    Claim,
    Look,
    Mean,
    Page,
    as_numbers,
    as_svg,
    difference_cell,
    draw_line,
    loss_cell,
    page_style,
    picture,
    table,
)
from paper.paper_numbers import MONTH_BLOCKS, MONTH_LOSSES, SINGLETON_WEIGHTS
from paper.weather_results import (
    CHOSEN,
    PAPERS_WAY,
    STANDARD,
    Arm,
    Cell,
    Readings,
    all_higher,
    all_lower,
    best_at,
    best_weight,
    chosen_on_validation,
    depth_cell,
    difference,
    mean_loss,
    most_trials,
    opening,
    scrambled,
    shrinking_gain,
    the_papers_way,
)
from structent.plots.style import BLUE, GREEN, GREY, PURPLE, VERMILLION

_BLOCKS = {"fixed": None, "variable": MONTH_BLOCKS}
_INTRODUCTION = (
    "Which month is it, given the rain and the temperatures of a day at a station? Fixed is the "
    "circle of months cut into quarters in three ways; variable cuts it into "
    f"{MONTH_BLOCKS} blocks at random, in another way for every tree. The singleton weight is the "
    "share of ordinary cross-entropy in the loss. Scrambled is the control that the paper ran "
    "for images only: the same partitions of months in a random order. The trees are "
    "XGBoost's, with vector leaves."
)
_BEST = (
    "Fixed and variable are shown at their best singleton weight, which is named. It is chosen "
    "like the depth: by the mean validation log loss, or in the paper's way by the mean test log "
    "loss. "
    "The paper's values are the numbers behind its figure, chosen in its way."
)
_CURVATURE = (
    "The booster of the paper's author has the wrong sign in its diagonal Hessian inside the true "
    "block, and uses only the weight of the first partition. We do not reproduce these errors."
)
# Returns the value that a figure shows for an arm at a size.
_Quantity: TypeAlias = Callable[[Readings, int, Arm], Mean | None]
# By method, then by singleton weight.
_Curves: TypeAlias = dict[str, dict[float, Mean]]
# Each is shifted sideways, so that error bars of two lines do not overlap.
_LINES = (
    (Look("fixed", BLUE, "o", is_control=False), -0.006),
    (Look("variable", GREEN, "s", is_control=False), 0.006),
    (Look("fixed, scrambled", VERMILLION, "o", is_control=True), -0.012),
    (Look("variable, scrambled", PURPLE, "s", is_control=True), 0.012),
)
_COLUMNS = 3
# How far controls may extend a panel upwards, as a share of the height of the other curves.
_STRETCH = 0.6


def page(finished: list[Finished], about: list[str]) -> Page:
    """Return the page, its figures and its numbers; see :func:`markdown`."""
    numbers = {"about": about, **summary(finished)}
    return Page("months", markdown(finished, about), as_svg(figures(finished)), numbers)


def markdown(finished: list[Finished], about: list[str]) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    finished
        The finished runs of one preset; the page says what is missing.
    about
        Paragraphs on the command, the preset, the machine and the date.
    """
    chosen = chosen_on_validation(finished)
    parts = [
        *opening("Months", about, _INTRODUCTION, claims(finished), most_trials(chosen)),
        _CURVATURE,
        "## Ours beside the paper's",
        _BEST,
        _best_table(chosen, the_papers_way(finished)),
        *_captions(chosen),
        "## Every singleton weight",
        f"Differences to standard, with the depth of the trees {CHOSEN}.",
        *[_grid(chosen, size) for size in _sizes(chosen)],
    ]
    return "\n\n".join(parts) + "\n"


def figures(finished: list[Finished]) -> dict[str, Figure]:
    """Return the figures of the page by the name of their file; none if nothing was run."""
    readings = chosen_on_validation(finished)
    if not readings:
        return {}
    with page_style():
        return {
            "months-log-loss": _figure(readings, _loss, "test log loss, nats a row"),
            "months-differences": _figure(
                readings, difference, "log loss minus standard, nats a row"
            ),
        }


def summary(finished: list[Finished]) -> dict[str, Any]:
    """Return the numbers of the tables as plain JSON values."""
    chosen, papers_way = chosen_on_validation(finished), the_papers_way(finished)
    return {
        CHOSEN: {f"{size}": _best_numbers(chosen, size) for size in _sizes(chosen)},
        PAPERS_WAY: {f"{size}": _best_numbers(papers_way, size) for size in _sizes(chosen)},
        "the paper's": {f"{size}": losses._asdict() for size, losses in MONTH_LOSSES.items()},
        "differences": [
            {
                "size": size,
                **arm._asdict(),
                "difference": as_numbers(difference(chosen, size, arm)),
                "depths": sorted(chosen[size, arm].depth.values()),
            }
            for size in _sizes(chosen)
            for weight in _weights(chosen, size)
            for arm in _arms(weight)
            if (size, arm) in chosen
        ],
    }


def claims(finished: list[Finished]) -> list[Claim]:
    """Return the paper's claims, each with whether it holds here."""
    readings = chosen_on_validation(finished)
    return [
        all_lower(
            "fixed is better than standard at every singleton weight and size",
            _cells(readings, "fixed", SINGLETON_WEIGHTS),
        ),
        _best_at(readings, "fixed", "around 0.2 or 0.3", (0.2, 0.3)),
        all_lower(
            "variable is better than standard at all but the smallest singleton weights (0.1, 0.2)",
            _cells(readings, "variable", SINGLETON_WEIGHTS[2:]),
        ),
        all_lower(
            "(not the paper, whose own code failed there) with the right curvature variable is "
            "better than standard at 0.1 and 0.2 too",
            _cells(readings, "variable", SINGLETON_WEIGHTS[:2]),
        ),
        _best_at(readings, "variable", "around 0.5 (0.4 to 0.6)", (0.4, 0.5, 0.6)),
        *[_shrinking_gain(readings, method) for method in _BLOCKS],
        all_higher(
            "a scrambled structure is worse than standard (the paper shows it for images only)",
            [_against(readings, size, control, STANDARD) for size, _, control in _pairs(readings)],
        ),
        all_higher(
            "a scrambled structure is worse than the structure itself (for images only)",
            [_against(readings, size, control, arm) for size, arm, control in _pairs(readings)],
        ),
    ]


def _sizes(readings: Readings) -> list[int]:
    """Return the paper's sizes, and other sizes that were run."""
    return sorted({*MONTH_LOSSES, *(size for size, _ in readings)})


def _weights(readings: Readings, size: int) -> list[float]:
    """Return the paper's singleton weights, and other weights that were run."""
    run = {arm.singleton_weight for at, arm in readings if at == size and arm != STANDARD}
    return sorted({*SINGLETON_WEIGHTS, *run})


def _arms(weight: float) -> list[Arm]:
    """Return both structures at a singleton weight, and then their controls."""
    structured = [Arm(method, n_blocks, weight) for method, n_blocks in _BLOCKS.items()]
    return structured + [scrambled(arm) for arm in structured]


def _cells(readings: Readings, method: str, weights: Sequence[float]) -> list[Cell]:
    return [
        _against(readings, size, Arm(method, _BLOCKS[method], weight), STANDARD)
        for size in MONTH_LOSSES
        for weight in weights
    ]


def _pairs(readings: Readings) -> list[tuple[int, Arm, Arm]]:
    """Return every size with every arm whose scrambled control was run, and that control."""
    run = {arm for _, arm in readings}
    arms = [arm for weight in SINGLETON_WEIGHTS for arm in _arms(weight)]
    return [
        (size, arm, scrambled(arm))
        for size in MONTH_LOSSES
        for arm in arms
        if scrambled(arm) in run
    ]


def _against(readings: Readings, size: int, arm: Arm, baseline: Arm) -> Cell:
    name = f"{arm.method} {arm.singleton_weight:g} with {size:,} rows"
    return Cell(name, difference(readings, size, arm, baseline))


def _best_at(readings: Readings, method: str, where: str, weights: Sequence[float]) -> Claim:
    return best_at(
        f"{method} is best at a singleton weight {where}",
        readings,
        list(MONTH_LOSSES),
        [Arm(method, _BLOCKS[method], weight) for weight in weights],
        enough=len(MONTH_LOSSES),
        name=lambda arm: f"{arm.singleton_weight:g}",
    )


def _shrinking_gain(readings: Readings, method: str) -> Claim:
    gains = {size: _best_difference(readings, size, method) for size in MONTH_LOSSES}
    return shrinking_gain(
        f"the gain of {method}, at its best weight, is larger for small data", gains
    )


def _best_difference(readings: Readings, size: int, method: str) -> Mean | None:
    best = best_weight(readings, size, method)
    return None if best is None else difference(readings, size, best)


def _best_numbers(readings: Readings, size: int) -> dict[str, Any]:
    numbers: dict[str, Any] = {"standard": as_numbers(mean_loss(readings, size, STANDARD))}
    for method in _BLOCKS:
        best = best_weight(readings, size, method)
        numbers[method] = best and {
            "singleton_weight": best.singleton_weight,
            "loss": as_numbers(mean_loss(readings, size, best)),
            "difference": as_numbers(difference(readings, size, best)),
        }
    return numbers


def _best_table(chosen: Readings, papers_way: Readings) -> str:
    header = [
        "training rows", "method",
        f"log loss, {CHOSEN}", f"log loss, {PAPERS_WAY}", "log loss, the paper's",
        f"difference, {CHOSEN}", f"difference, {PAPERS_WAY}", "difference, the paper's",
    ]  # fmt: skip
    rows = []
    for size in _sizes(chosen):
        paper = MONTH_LOSSES[size]._asdict() if size in MONTH_LOSSES else None
        for method in ("standard", *_BLOCKS):
            losses = [_best_loss_cell(readings, size, method) for readings in (chosen, papers_way)]
            losses.append(f"{paper[method]:.4f}" if paper else "")
            differences = ["", "", ""]
            if method != "standard":
                differences = [
                    difference_cell(_best_difference(readings, size, method), most_trials(readings))
                    for readings in (chosen, papers_way)
                ]
                differences.append(f"{paper[method] - paper['standard']:+.4f}" if paper else "")
            rows.append([f"{size:,}", method, *losses, *differences])
    return table(header, rows, n_left=2)


def _best_loss_cell(readings: Readings, size: int, method: str) -> str:
    best = best_weight(readings, size, method)
    if best is None:
        return NOT_RUN
    cell = loss_cell(mean_loss(readings, size, best), most_trials(readings))
    return cell if best == STANDARD else f"{cell} at {best.singleton_weight:g}"


def _grid(readings: Readings, size: int) -> str:
    """Return the differences at every singleton weight of a size, with the depths chosen."""
    title, n_trials = f"### {size:,} training rows", most_trials(readings)
    if all(at != size for at, _ in readings):
        return f"{title}\n\n{NOT_RUN.capitalize()}."
    header = ["singleton weight"]
    for arm in _arms(1.0):
        header += [arm.method, "depth"]
    rows = []
    for weight in _weights(readings, size):
        row = [f"{weight:g}"]
        for arm in _arms(weight):
            row.append(difference_cell(difference(readings, size, arm), n_trials))
            row.append(depth_cell(readings.get((size, arm))))
        rows.append(row)
    standard = loss_cell(mean_loss(readings, size, STANDARD), n_trials)
    depth = depth_cell(readings.get((size, STANDARD)))
    said = f"Standard: {standard}, depth {depth}." if depth else f"Standard: {standard}."
    return f"{title}\n\n{said}\n\n{table(header, rows)}"


def _captions(readings: Readings) -> list[str]:
    """Return the pictures as the page shows them, each with its caption."""
    if not readings:
        return []
    panels = "against singleton weight, a panel for each number of training rows"
    return [
        *picture(
            "months-log-loss",
            f"Test log loss {panels}",
            "Test log loss, with the depth of the trees chosen on validation. The band is the "
            "standard error of the standard loss over trials; the next figure has paired errors of "
            "the other methods. Methods with fewer trials than others of their size are left out."
            f"{_on_cuts(readings, _loss)}",
        ),
        *picture(
            "months-differences",
            f"Paired difference to standard {panels}",
            "Paired differences to standard with their standard errors; below 0 the method is "
            f"better.{_on_cuts(readings, difference)}",
        ),
    ]


def _figure(readings: Readings, quantity: _Quantity, label: str) -> Figure:
    sizes = _run_sizes(readings)
    n_rows = ceil((len(sizes) + 1) / _COLUMNS)
    figure = Figure(figsize=(3.6 * _COLUMNS, 3.2 * n_rows), layout="constrained", facecolor="white")
    panels = figure.subplots(n_rows, _COLUMNS, squeeze=False).ravel()
    for place, size in enumerate(sizes):
        _draw_panel(panels[place], _curves(readings, size, quantity))
        panels[place].set_title(f"{size:,} rows", loc="left", weight="bold", fontsize=9)
        if place % _COLUMNS == 0:
            panels[place].set_ylabel(label)
    for panel in panels[len(sizes) :]:
        panel.axis("off")
    drawn = {
        name: handle
        for panel in panels[: len(sizes)]
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    panels[len(sizes)].legend(drawn.values(), drawn.keys(), loc="center left", frameon=False)
    return figure


def _draw_panel(ax: Axes, curves: _Curves) -> None:
    for mean in curves.get(STANDARD.method, {}).values():
        error = np.nan_to_num(mean.error)
        ax.axhspan(mean.value - error, mean.value + error, color=GREY, alpha=0.2, linewidth=0)
        ax.axhline(mean.value, color=GREY, linewidth=1.5, label=STANDARD.method)
    for look, shift in _LINES:
        curve = dict(sorted(curves.get(look.name, {}).items()))
        draw_line(ax, [weight + shift for weight in curve], list(curve.values()), look)
    bottom, top = _limits(curves)
    ax.set_ylim(bottom, top)
    ax.set_xlim(0.05, 0.95)
    ax.set_xticks([k / 10 for k in range(1, 10)])
    ax.set_xlabel("singleton weight")
    ax.yaxis.set_major_locator(MaxNLocator(6))
    ax.spines[["top", "right"]].set_visible(False)
    # Outside the axes, because inside it could cover a curve.
    ax.annotate("\n".join(_cuts(curves)), (1, 1), (0, 3), textcoords="offset points",
                xycoords="axes fraction", ha="right", va="bottom", fontsize=7)  # fmt: skip


def _loss(readings: Readings, size: int, arm: Arm) -> Mean | None:
    """Return the mean log loss, with an error only for standard; None if trials are missing.

    All methods share the trials, and trials differ more than methods do.
    """
    mean = mean_loss(readings, size, arm)
    if mean is None or mean.n_trials < max(
        len(r.test) for (at, _), r in readings.items() if at == size
    ):
        return None
    return mean if arm == STANDARD else mean._replace(error=np.nan)


def _run_sizes(readings: Readings) -> list[int]:
    return sorted({size for size, _ in readings})


def _curves(readings: Readings, size: int, quantity: _Quantity) -> _Curves:
    curves: _Curves = {}
    for arm in [arm for at, arm in readings if at == size]:
        mean = quantity(readings, size, arm)
        if mean is not None:
            curves.setdefault(arm.method, {})[arm.singleton_weight] = mean
    return curves


def _limits(curves: _Curves) -> tuple[float, float]:
    """Return the range of a panel: it contains all methods, and controls that are close."""
    controls = {look.name for look, _ in _LINES if look.is_control}
    near = _reach(
        [m for name, curve in curves.items() if name not in controls for m in curve.values()]
    )
    far = _reach([m for curve in curves.values() for m in curve.values()])
    ends = near or far or [0.0]
    height = max(ends) - min(ends) or 0.01
    bottom = min(ends + far)
    top = min(max(ends + far), max(ends) + _STRETCH * height)
    return bottom - 0.06 * height, top + 0.06 * height


def _cuts(curves: _Curves) -> list[str]:
    """Return, for each method that leaves its panel, how far up it goes."""
    _, top = _limits(curves)
    highest = {name: max(m.value for m in curve.values()) for name, curve in curves.items()}
    return [
        f"{look.name}: up to {highest[look.name]:.3f}"
        for look, _ in _LINES
        if highest.get(look.name, top) > top
    ]


def _on_cuts(readings: Readings, quantity: _Quantity) -> str:
    if not any(_cuts(_curves(readings, size, quantity)) for size in _run_sizes(readings)):
        return ""
    return " A curve that leaves its panel is named above it, with its largest value."


def _reach(means: Sequence[Mean | None]) -> list[float]:
    """Return the ends of the bars of standard error."""
    run = [mean for mean in means if mean is not None]
    return [m.value + sign * float(np.nan_to_num(m.error)) for m in run for sign in (-1, 1)]
