"""Figures of what studies find: paired differences, learning curves, null distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from structent._typing import FloatArray
from structent.plots.style import OF_ARM, axes_or_new, ink

if TYPE_CHECKING:
    from structent.studies.comparison import ArmName, Comparison, LearningCurve
    from structent.studies.differences import Difference
    from structent.studies.significance import StructureTest

_DIFFERENCE_OF = {
    "log loss": "difference of class log loss, nats per row",
    "accuracy": "difference of class error, share of the rows",
}
_MARKER_OF_ARM = {"none": "o", "structure": "s"}
_MOST_BINS = 30


def plot_differences(comparison: Comparison | StructureTest, ax: Axes | None = None) -> Axes:
    """Plot the difference of every split, their mean and its interval, against both controls.

    Differences are of what was compared: class log loss, or class error if the comparison is about
    accuracy. Below 0, on the left of the line, the structure is better.

    Parameters
    ----------
    comparison
        The result of a comparison or of a test.
    ax
        The axes; those of a new figure if None.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> from structent.studies.differences import Difference
    >>> lower = Difference(np.array([-0.03, -0.01]), mean=-0.02, low=-0.04, high=0.0)
    >>> found = SimpleNamespace(against_none=lower, against_scrambled=lower)  # or a Comparison
    >>> ax = plot_differences(found, Figure().add_subplot())
    >>> ax.texts[0].get_text()
    '-0.0200 [-0.0400, +0.0000]'
    """
    pairs: tuple[tuple[ArmName, Difference], ...] = (
        ("scrambled", comparison.against_scrambled),
        ("none", comparison.against_none),
    )
    ax = axes_or_new(ax, (7.0, 3.0))
    ax.axvline(0.0, color=ink(), linewidth=1)
    for place, (arm, difference) in enumerate(pairs):
        colour, n = OF_ARM[arm], len(difference.per_split)
        # Splits are drawn above each other in their order, so that equal ones are both seen.
        height = place + np.linspace(0.12, 0.36, n)
        ax.plot(difference.per_split, height, "o", markersize=4, color=colour)
        ax.plot([difference.low, difference.high], [place, place], color=colour, linewidth=3)
        ax.plot(difference.mean, place, "D", markersize=8, color=colour)
        label = f"{difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}]"
        ax.annotate(label, (difference.mean, place), (0, -10), textcoords="offset points",
                    ha="center", va="top", fontsize=8)  # fmt: skip
    ax.set_yticks([0, 1], labels=[f"against\n{_name_of(arm)}" for arm, _ in pairs])
    ax.set_ylim(-0.45, 1.55)
    ax.margins(x=0.25)  # room for the numbers of a mean at the edge
    ax.xaxis.set_major_locator(MaxNLocator(5))
    metric = getattr(comparison, "metric", "log loss")  # a test is always about log loss
    ax.set_xlabel(f"{_DIFFERENCE_OF[metric]}\n(below 0 the structure is better)")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def plot_learning_curve(curve: LearningCurve, ax: Axes | None = None) -> Axes:
    """Plot class log loss with and without the structure, mean and standard error over folds.

    Parameters
    ----------
    curve
        The losses at each number of training rows.
    ax
        The axes, those of a new figure if None; the number of rows is on a logarithmic scale.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent.studies.comparison import LearningCurve
    >>> curve = LearningCurve((10, 100), np.array([[2.0], [1.5]]), np.array([[1.75], [1.25]]))
    >>> ax = plot_learning_curve(curve, Figure().add_subplot())
    >>> [bars.lines[0].get_ydata().tolist() for bars in ax.containers]
    [[2.0, 1.5], [1.75, 1.25]]
    """
    ax = axes_or_new(ax)
    sizes = np.array(curve.sizes, dtype=np.float64)
    arms: tuple[tuple[ArmName, FloatArray], ...] = (
        ("none", curve.none),
        ("structure", curve.structure),
    )
    for arm, losses in arms:
        n_folds = losses.shape[1]
        error = losses.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else None
        ax.errorbar(sizes, losses.mean(axis=1), error, color=OF_ARM[arm], capsize=3,
                    marker=_MARKER_OF_ARM[arm], markersize=5, label=_name_of(arm))  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(sizes, labels=[f"{size:,}" for size in curve.sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("training rows")
    ax.set_ylabel("class log loss, nats per row")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_null_distribution(found: StructureTest, ax: Axes | None = None) -> Axes:
    """Plot the log losses of the scrambled copies, beside those with the structure and with none.

    Parameters
    ----------
    found
        The result of a test.
    ax
        The axes, those of a new figure if None; further to the left is better.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> found = SimpleNamespace(  # or a StructureTest
    ...     null=np.array([2.1, 2.2, 2.2]), loss=2.0, losses_without=np.array([2.05]), p_value=0.25
    ... )
    >>> ax = plot_null_distribution(found, Figure().add_subplot())
    >>> float(sum(bar.get_height() for bar in ax.patches))
    3.0
    """
    ax = axes_or_new(ax)
    n_bins = min(_MOST_BINS, max(5, int(2 * np.sqrt(len(found.null)))))
    colour = OF_ARM["scrambled"]
    name = f"{_name_of('scrambled')} ({len(found.null):,})"
    ax.hist(found.null, bins=n_bins, color=colour, alpha=0.55, label=name)
    # Every copy is also a tick, because bars hide how few there may be.
    ax.plot(found.null, np.zeros(len(found.null)), "|", color=colour, markersize=9, clip_on=False)
    without = float(found.losses_without.mean())
    structure = f"{_name_of('structure')}: {found.loss:.4f}, p = {found.p_value:.3g}"
    ax.axvline(found.loss, color=OF_ARM["structure"], linewidth=2.5, label=structure)
    none = f"{_name_of('none')}: {without:.4f}"
    ax.axvline(without, color=OF_ARM["none"], linewidth=2, linestyle="--", label=none)
    ax.set_xlabel("mean log loss over the folds, nats per row\n(further left is better)")
    ax.set_ylabel("copies")
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.margins(x=0.05)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)
    return ax


def _name_of(arm: ArmName) -> str:
    # Not imported above: structures are drawn without scikit-learn, which studies need.
    from structent.studies.comparison import ARMS  # noqa: PLC0415  see above

    return ARMS[arm]
