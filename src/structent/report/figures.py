"""The figures of the page, each with a caption and a summary in words."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes

from structent.comparison.result import ArmName, Comparison, Difference
from structent.plots import (
    confusion_shares,
    drawing_of,
    plot_confusion,
    plot_differences,
    plot_learning_curve,
    plot_null_distribution,
    plot_reliability,
)
from structent.plots.colours import NAME_OF_ARM, OF_ARM
from structent.report.svg import PageFigure, page_figure
from structent.significance import StructureTest

_BOTH: tuple[ArmName, ...] = ("none", "structure")


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


def differences_figure(comparison: Comparison | StructureTest) -> PageFigure:
    """Return the paired differences."""
    pairs = (
        ("no structure", comparison.against_none),
        ("scrambled copies", comparison.against_scrambled),
    )
    summary = "Difference of class log loss: " + "; ".join(
        f"against {name} {_interval(difference)}" for name, difference in pairs
    )
    return page_figure(
        "differences",
        lambda ax: plot_differences(comparison, ax),
        (5.4, 3.2),
        caption="Dots are folds, diamonds their means, bars their confidence intervals.",
        summary=f"{summary}, in nats a row.",
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
    return page_figure(
        "learning-curve",
        lambda ax: plot_learning_curve(curve, ax),
        (4.8, 3.2),
        caption="Means over the folds, with their standard errors.",
        summary=f"Class log loss at growing numbers of training rows. {text}.",
    )


def confusion_figures(comparison: Comparison) -> list[PageFigure]:
    """Return the confusion matrix of each model."""
    classes = comparison.task.classes
    longest = min(max(len(str(label)) for label in classes), 20)
    side = float(np.clip(2.9 + 0.085 * len(classes) + 0.05 * longest, 4.0, 8.0))

    def draw(arm: ArmName, ax: Axes) -> None:
        plot_confusion(comparison.labels, comparison.proba[arm], comparison.structure, ax)

    return [
        page_figure(
            f"confusion-{arm}",
            partial(draw, arm),
            (side + 0.5, side),
            caption=f"Confusion matrix, {NAME_OF_ARM[arm]}",
            summary=_confusion_summary(comparison, arm),
            least=0.68 if len(classes) <= 30 else 1.0,  # many names are small already
        )
        for arm in _BOTH
    ]


def reliability_figures(comparison: Comparison) -> list[PageFigure]:
    """Return the reliability diagram of each level, with both models."""
    structure = comparison.scored_structure

    def draw(level: str, ax: Axes) -> None:
        for arm, marker in zip(_BOTH, "os", strict=True):
            plot_reliability(
                comparison.labels,
                comparison.proba[arm],
                structure,
                level,
                ax,
                name=NAME_OF_ARM[arm],
                colour=OF_ARM[arm],
                marker=marker,
            )

    return [
        page_figure(
            f"reliability-{place}",
            partial(draw, level),
            (2.9, 3.0),
            caption=f"Reliability at {level}",
            summary=_reliability_summary(comparison, level),
        )
        for place, level in enumerate(comparison.levels)
    ]


def _interval(difference: Difference) -> str:
    return f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"


def _confusion_summary(comparison: Comparison, arm: ArmName) -> str:
    classes = comparison.task.classes
    shares = confusion_shares(comparison.labels, comparison.proba[arm], len(classes))
    accuracy = (comparison.proba[arm].argmax(axis=1) == comparison.labels).mean()
    text = f"Confusion matrix of {NAME_OF_ARM[arm]}: {accuracy:.1%} of the rows are right"
    mistakes = np.where(np.isnan(shares), 0.0, shares)
    np.fill_diagonal(mistakes, 0.0)
    true, predicted = np.unravel_index(mistakes.argmax(), mistakes.shape)
    if mistakes[true, predicted] == 0:
        return f"{text}."
    return (
        f"{text}; the class most often taken for another is {classes[true]}, "
        f"taken for {classes[predicted]} in {mistakes[true, predicted]:.0%} of its rows."
    )


def _reliability_summary(comparison: Comparison, level: str) -> str:
    errors = ", ".join(
        f"{NAME_OF_ARM[arm]} {comparison.mean(arm, level, 'calibration error'):.4f}"
        for arm in _BOTH
    )
    return f"Reliability diagram at {level}; mean calibration error: {errors}."
