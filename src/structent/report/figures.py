"""The figures of the page, each with a caption and a summary in words."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from io import StringIO
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structent.plots import (
    confusion_shares,
    drawing_of,
    plot_confusion,
    plot_differences,
    plot_gain,
    plot_learning_curve,
    plot_null_distribution,
    plot_reliability,
    reliability,
    structure_order,
)
from structent.plots.studies import split_dots
from structent.plots.style import OF_ARM
from structent.studies.comparison import ARMS, ArmName, Comparison
from structent.studies.differences import Difference
from structent.studies.significance import StructureTest

_BOTH: tuple[ArmName, ...] = ("none", "structure")
_MOST_TIPS = 1000  # of one figure, so that the page of a hundred classes stays small
_LEAST_TIP = 9.0  # points: a dot must be easy to hit


def structure_figure(comparison: Comparison | StructureTest) -> PageFigure:
    """Return the structure, drawn by its kind."""
    drawing = drawing_of(comparison.structure)
    return page_figure(
        "structure",
        drawing.draw,
        drawing.size,
        caption="The structure",
        summary=drawing.summary,
        least=0.85,
    )


def gain_figure(comparison: Comparison) -> PageFigure:
    """Return the size of the gain and its interval, against both controls."""
    gained = "accuracy" if comparison.metric == "accuracy" else "log loss"
    intervals = "; ".join(
        f"compared with {name}: {_gain(difference)}" for name, difference in _pairs(comparison)
    )
    return page_figure(
        "gain",
        lambda ax: plot_gain(comparison, ax),
        (5.0, 1.8),
        caption="The diamond is the gain, the bar its 95 % confidence interval. Use the structure "
        "if both bars are right of 0.",
        summary=f"Gain in {gained}, {intervals}.",
        tips=[
            Tip(-each.high, place - 0.3, -each.low, place + 0.3, f"{name}: {_gain(each)}")
            for place, (name, each) in enumerate(reversed(_pairs(comparison)))
        ],
    )


def measured(metric: str) -> str:
    """Return what the differences of a metric are differences of, with its unit.

    Examples
    --------
    >>> measured("accuracy")
    'class error, as a share of the rows'
    """
    if metric == "accuracy":
        return "class error, as a share of the rows"
    return "class log loss, in nats per row"


def differences_figure(comparison: Comparison | StructureTest, metric: str) -> PageFigure:
    """Return the paired differences."""
    pairs = _pairs(comparison)
    intervals = "; ".join(f"against {name} {_interval(difference)}" for name, difference in pairs)
    tips = []
    for place, (name, difference) in enumerate(reversed(pairs)):
        low, mean, high = difference.low, difference.mean, difference.high
        text = f"against {name}: {_interval(difference)}"
        tips += [Tip(low, place, high, place, text), Tip(mean, place, mean, place, text)]
        for number, (value, height) in enumerate(split_dots(difference, place), start=1):
            text = f"split {number}, against {name}: {value:+.4f}"
            tips.append(Tip(value, height, value, height, text))
    return page_figure(
        "differences",
        lambda ax: plot_differences(comparison, ax),
        (5.2, 3.2),
        caption="Dots are splits, diamonds their means, bars their 95 % confidence intervals.",
        summary=f"Difference of the {measured(metric)}: {intervals}.",
        tips=tips,
    )


def null_figure(found: StructureTest) -> PageFigure:
    """Return the null distribution of a test, with the structure in it."""
    null, without = found.null, found.losses_without.mean()
    return page_figure(
        "null",
        lambda ax: plot_null_distribution(found, ax),
        (6.0, 3.8),
        caption="Bars count scrambled copies by their log loss; every tick below is one of them.",
        summary=(
            f"Mean log loss of {len(null):,} scrambled copies: {null.min():.4f} to "
            f"{null.max():.4f}, {found.p.n_as_good:,} of them as good as the structure, which has "
            f"{found.loss:.4f}; without structure it is {without:.4f}."
        ),
    )


def learning_curve_figure(comparison: Comparison) -> PageFigure | None:
    """Return the learning curve, where one was asked for."""
    curve = comparison.learning_curve
    if curve is None:
        return None
    steps = zip(curve.sizes, curve.none.mean(axis=1), curve.structure.mean(axis=1), strict=True)
    text = "; ".join(
        f"{size:,} rows: {none:.3f} without, {structure:.3f} with the structure"
        for size, none, structure in steps
    )
    losses = {"none": curve.none.mean(axis=1), "structure": curve.structure.mean(axis=1)}
    return page_figure(
        "learning-curve",
        lambda ax: plot_learning_curve(curve, ax),
        (6.0, 3.4),
        caption="Means over the folds; the bars are their standard errors.",
        summary=f"Class log loss at growing numbers of training rows. {text}.",
        tips=[
            Tip(size, loss, size, loss, f"{size:,} rows, {ARMS[arm]}: {loss:.4f}")
            for arm in _BOTH
            for size, loss in zip(curve.sizes, losses[arm].tolist(), strict=True)
        ],
    )


def confusion_figures(comparison: Comparison) -> list[PageFigure]:
    """Return the confusion matrix of each model."""
    classes = comparison.task.classes
    longest = min(max(len(str(label)) for label in classes), 20)
    side = float(np.clip(2.9 + 0.085 * len(classes) + 0.05 * longest, 4.0, 8.0))

    def draw(arm: ArmName, ax: Axes) -> None:
        plot_confusion(
            _labels(comparison), comparison.proba[arm], comparison.structure, ax, classes=classes
        )

    return [
        page_figure(
            f"confusion-{arm}",
            partial(draw, arm),
            (side + 0.5, side),
            caption=f"Confusion matrix, {ARMS[arm]}",
            summary=_confusion_summary(comparison, arm),
            least=0.68 if len(classes) <= 30 else 1.0,  # many names are small already
            tips=_confusion_tips(comparison, arm),
        )
        for arm in _BOTH
    ]


def reliability_figures(comparison: Comparison) -> list[PageFigure]:
    """Return the reliability diagram of each level, with both models."""
    structure, labels = comparison.scored_structure, _labels(comparison)

    def draw(level: str, ax: Axes) -> None:
        for arm, marker in zip(_BOTH, "os", strict=True):
            plot_reliability(
                labels,
                comparison.proba[arm],
                structure,
                level,
                ax,
                classes=comparison.task.classes,
                name=ARMS[arm],
                colour=OF_ARM[arm],
                marker=marker,
            )

    return [
        page_figure(
            f"reliability-{place}",
            partial(draw, level),
            (3.6, 3.8),
            caption=f"Reliability at the level {level}",
            summary=_reliability_summary(comparison, level),
            tips=_reliability_tips(comparison, level),
        )
        for place, level in enumerate(comparison.levels)
    ]


def _labels(comparison: Comparison) -> list[Any]:
    """Return the class of each row, by name."""
    return [comparison.task.classes[place] for place in comparison.labels.tolist()]


def _interval(difference: Difference) -> str:
    return f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"


def _gain(difference: Difference) -> str:
    return (
        f"{-difference.mean:+.4f} (95 % interval {-difference.high:+.4f} to {-difference.low:+.4f})"
    )


def _pairs(comparison: Comparison | StructureTest) -> list[tuple[str, Difference]]:
    return [
        (ARMS["none"], comparison.against_none),
        (ARMS["scrambled"], comparison.against_scrambled),
    ]


def _confusion_tips(comparison: Comparison, arm: ArmName) -> list[Tip]:
    """Return the numbers behind the cells; of very many, those with the most rows."""
    classes, order = comparison.task.classes, structure_order(comparison.structure)
    place = np.argsort(order)
    predicted = comparison.proba[arm].argmax(axis=1)
    pairs, counts = np.unique(
        np.stack([comparison.labels, predicted], axis=1), axis=0, return_counts=True
    )
    n_true = np.bincount(comparison.labels, minlength=len(classes))
    tips = []
    for cell in np.argsort(-counts, kind="stable")[:_MOST_TIPS]:
        true, taken = pairs[cell].tolist()
        what = "is right" if true == taken else f"predicted as {classes[taken]}"
        share = f"{counts[cell]:,} of {n_true[true]:,} rows ({counts[cell] / n_true[true]:.0%})"
        x, y = int(place[taken]), int(place[true])
        text = f"{classes[true]} {what}: {share}"
        tips.append(Tip(x - 0.5, y - 0.5, x + 0.5, y + 0.5, text))
    return tips


def _reliability_tips(comparison: Comparison, level: str) -> list[Tip]:
    tips = []
    for arm in _BOTH:
        bins = reliability(
            _labels(comparison), comparison.proba[arm], comparison.scored_structure, level,
            classes=comparison.task.classes,
        )  # fmt: skip
        for said, right in zip(bins.confidence.tolist(), bins.hits.tolist(), strict=True):
            text = f"{ARMS[arm]}: says {said:.0%}, right in {right:.0%} of the rows"
            tips.append(Tip(said, right, said, right, text))
    return tips


def _confusion_summary(comparison: Comparison, arm: ArmName) -> str:
    classes = comparison.task.classes
    proba, structure = comparison.proba[arm], comparison.structure
    shares = confusion_shares(_labels(comparison), proba, structure, classes=classes)
    accuracy = (comparison.proba[arm].argmax(axis=1) == comparison.labels).mean()
    text = f"Confusion matrix of {ARMS[arm]}: {accuracy:.1%} of the rows are right"
    mistakes = np.where(np.isnan(shares), 0.0, shares)
    np.fill_diagonal(mistakes, 0.0)
    true, predicted = np.unravel_index(mistakes.argmax(), mistakes.shape)
    if mistakes[true, predicted] == 0:
        return f"{text}."
    return (
        f"{text}; the most frequent confusion is {classes[true]} predicted as "
        f"{classes[predicted]}, in {mistakes[true, predicted]:.0%} of its rows."
    )


def _reliability_summary(comparison: Comparison, level: str) -> str:
    errors = ", ".join(
        f"{ARMS[arm]} {comparison.mean(arm, level, 'calibration error'):.4f}" for arm in _BOTH
    )
    return f"Reliability diagram at {level}; mean calibration error: {errors}."


# Placeholder for the page's text colour: matplotlib does not know "currentColor".
_INK = "#012345"
_TIP = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
_TIPS, _CLOSING = Markup('<g class="tips">{}</g>'), Markup("</svg>")
_SETTINGS: dict[Any, Any] = {
    # Axes start as large as the figure; the layout then makes room for names.
    "figure.subplot.left": 0.01,
    "figure.subplot.right": 0.99,
    "figure.subplot.bottom": 0.01,
    "figure.subplot.top": 0.99,
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, and is wider than most
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.labelcolor": _INK,
}


class Tip(NamedTuple):
    """The text shown when the pointer is over a part of a figure: a box in data coordinates."""

    left: float
    low: float
    right: float
    high: float
    text: str


class PageFigure(NamedTuple):
    """A figure of the page.

    Attributes
    ----------
    svg
        The drawing, labelled for those who cannot see it.
    summary
        The same label: a description of what the figure shows.
    caption
        What the figure is.
    """

    svg: Markup
    summary: str
    caption: str


def page_figure(
    name: str,
    draw: Callable[[Axes], object],
    size: tuple[float, float],
    *,
    caption: str,
    summary: str,
    least: float = 0.68,
    tips: Sequence[Tip] = (),
) -> PageFigure:
    """Return what a function draws into axes as a figure of the page.

    Parameters
    ----------
    name
        A name that no other figure of the page has.
    draw
        Draws into axes.
    size
        Width and height in inches.
    caption, summary
        What it is, and a description of what it shows.
    least
        The share of its size to which a narrow screen may shrink it before it is scrolled; letters
        of 9 points are 8 pixels high at .68.
    tips
        The numbers that are shown when the pointer is over a part of it.
    """
    with mpl.rc_context({**_defaults(), **_SETTINGS, "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained", dpi=72)  # SVG counts in points
        ax = figure.add_subplot()
        draw(ax)
        text = StringIO()
        with warnings.catch_warnings():
            # The reader's browser has fonts for all scripts, whatever matplotlib has.
            warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = _for_page(text.getvalue(), least * size[0], summary)
    if tips:
        svg = Markup("").join(
            [svg.removesuffix("</svg>"), _tip_boxes(ax, 72 * size[1], tips), _CLOSING]
        )
    return PageFigure(svg, summary, caption)


def _tip_boxes(ax: Axes, height: float, tips: Sequence[Tip]) -> Markup:
    """Return invisible boxes over a drawing, each with the text that the browser shows on hover.

    SVG counts from the top, hence the height of the drawing, in points.
    """
    ends = ax.transData.transform([corner for t in tips for corner in (t[:2], t[2:4])])
    boxes = []
    for (x0, y0), (x1, y1), tip in zip(ends[::2], ends[1::2], tips, strict=True):
        wide, high = (max(abs(b - a), _LEAST_TIP) for a, b in ((x0, x1), (y0, y1)))
        left, top = (x0 + x1 - wide) / 2, height - (y0 + y1 + high) / 2
        boxes.append(_TIP.format(left, top, wide, high, " ".join(tip.text.split())))
    return _TIPS.format(Markup("").join(boxes))


def _defaults() -> dict[Any, Any]:
    """Return matplotlib's own settings, so that a user's style does not change the page."""
    # The backend is no setting of a figure: the user's would be gone afterwards.
    return {name: value for name, value in mpl.rcParamsDefault.items() if name != "backend"}


def _for_page(svg: str, least_width: float, summary: str) -> Markup:
    drawing = svg[svg.index("<svg") :].rstrip()
    # matplotlib's style of all elements would apply to the whole page, which has its own.
    drawing = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawing, count=1, flags=re.S)
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, count=1, flags=re.S)
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", drawing))
    # Only inside of tags: text has no "<", so that a class may be called anything.
    drawing = re.sub(r"<[^>]*>", lambda tag: _for_page_tag(tag.group(), used), drawing)
    style = f"max-width: max(100%, {96 * least_width:.0f}px)"  # 96 pixels an inch
    opening = f'<svg role="img" aria-label="{escape(summary)}" style="{style}"'
    return Markup(opening + drawing.removeprefix("<svg"))  # noqa: S704  matplotlib escapes text


def _for_page_tag(tag: str, used: set[str]) -> str:
    tag = tag.replace(_INK, "currentColor")
    return re.sub(r' id="([^"]*)"', lambda m: m.group() if m[1] in used else "", tag)
