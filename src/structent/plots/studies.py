"""Figures of what studies find: gains, differences, learning curves, null distributions."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from structent._typing import FloatArray
from structent.plots.style import GREEN, GREY, OF_ARM, VERMILLION, axes_or_new, ink

if TYPE_CHECKING:
    from structent.studies.comparison import ArmName, Comparison, LearningCurve
    from structent.studies.differences import Difference
    from structent.studies.significance import StructureTest

_DIFFERENCE_OF = {
    "log loss": "difference of class log loss, nats per row",
    "accuracy": "difference of class error, share of the rows",
}
_GAIN_OF = {
    "log loss": "gain: by how much log loss is lower, nats per row",
    "accuracy": "gain: by how much accuracy is higher, share of the rows",
}
_MARKER_OF_ARM = {"none": "o", "structure": "s"}
_MOST_BINS = 30


def plot_gain(comparison: Comparison, ax: Axes | None = None) -> Axes:
    r"""Plot the gain by the structure and its confidence interval, against both controls.

    The gain is in what was compared: log loss, or accuracy. Right of 0 the structure is better.

    Parameters
    ----------
    comparison
        The result of a comparison.
    ax
        The axes; those of a new figure if None.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> from structent.studies.differences import Difference
    >>> lower = Difference(np.array([-0.03, -0.01]), mean=-0.02, low=-0.04, high=0.0)
    >>> found = SimpleNamespace(against_none=lower, against_scrambled=lower, metric="log loss")
    >>> ax = plot_gain(found, Figure().add_subplot())  # found may be a Comparison
    >>> ax.texts[0].get_text()
    '+0.020\n(+0.000 to +0.040)'
    """
    ax = axes_or_new(ax, (6.0, 2.2))
    for place, (_, difference) in enumerate(_against(comparison)):
        gain, low, high = -difference.mean, -difference.high, -difference.low
        colour = GREEN if low > 0 else VERMILLION if high < 0 else GREY
        ax.plot([low, high], [place, place], color=colour, linewidth=7, alpha=0.6,
                solid_capstyle="butt")  # fmt: skip
        ax.plot(gain, place, "D", markersize=8, color=colour)
        _beside(ax, place, _gain_label(difference))
    ax.axvline(0.0, color=ink(), linewidth=1.2)
    names = [f"compared with\n{_name_of(arm)}" for arm, _ in _against(comparison)]
    ax.set_yticks([0, 1], labels=names)
    ax.set_ylim(-0.5, 1.5)
    ax.margins(x=0.1)
    for text, side, offset in (("← worse", "right", -6), ("better →", "left", 6)):
        ax.annotate(text, (0.0, 1.0), (offset, 3), xycoords=("data", "axes fraction"),
                    textcoords="offset points", ha=side, va="bottom", fontsize=8)  # fmt: skip
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.set_xlabel(_GAIN_OF[comparison.metric])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def plot_differences(comparison: Comparison | StructureTest, ax: Axes | None = None) -> Axes:
    r"""Plot the difference of every split, their mean and its interval, against both controls.

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
    '-0.0200\n[-0.0400, +0.0000]'
    """
    pairs = _against(comparison)
    ax = axes_or_new(ax, (7.0, 3.0))
    ax.axvline(0.0, color=ink(), linewidth=1)
    for place, (arm, difference) in enumerate(pairs):
        colour = OF_ARM[arm]
        ax.plot(*split_dots(difference, place).T, "o", markersize=4, color=colour)
        ax.plot([difference.low, difference.high], [place, place], color=colour, linewidth=3)
        ax.plot(difference.mean, place, "D", markersize=8, color=colour)
        label = f"{difference.mean:+.4f}\n[{difference.low:+.4f}, {difference.high:+.4f}]"
        _beside(ax, place, label)
    ax.set_yticks([0, 1], labels=[f"against\n{_name_of(arm)}" for arm, _ in pairs])
    ax.set_ylim(-0.45, 1.55)
    ax.margins(x=0.1)
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
    # Above the axes: inside, it would lie over the curves of some comparison.
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_null_distribution(found: StructureTest, ax: Axes | None = None) -> Axes:
    """Plot the log losses of the scrambled copies, with the structure's and that without structure.

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


def split_dots(difference: Difference, place: int) -> FloatArray:
    """Return where the dots of the splits are, (splits, 2).

    They are stacked in their order, so that equal ones can both be seen.
    """
    heights = place + np.linspace(0.12, 0.36, len(difference.per_split))
    return np.column_stack([difference.per_split, heights])


def _against(comparison: Comparison | StructureTest) -> tuple[tuple[ArmName, Difference], ...]:
    return ("scrambled", comparison.against_scrambled), ("none", comparison.against_none)


def _beside(ax: Axes, place: int, label: str) -> None:
    """Write numbers on the right of the axes, where no line crosses them."""
    ax.annotate(label, (1.0, place), (4, 0), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="left", va="center", fontsize=8)  # fmt: skip


def _gain_label(difference: Difference) -> str:
    r"""Return a gain and its interval, with three decimals, or two digits of a narrow interval.

    Examples
    --------
    >>> from structent.studies.differences import Difference
    >>> _gain_label(Difference(np.zeros(2), mean=0.0001, low=-0.016, high=0.0159))
    '+0.000\n(-0.016 to +0.016)'
    """
    half = difference.half_width
    decimals = 3 if not 0 < half < 0.0005 else 1 - floor(log10(half))
    values = (-difference.mean, -difference.high, -difference.low)
    gain, low, high = (f"{value:+z.{decimals}f}" for value in values)
    return f"{gain}\n({low} to {high})"


def _name_of(arm: ArmName) -> str:
    # Not imported above: structures are drawn without scikit-learn, which studies need.
    from structent.studies.comparison import ARMS  # noqa: PLC0415  see above

    return ARMS[arm]
