"""Log loss at growing numbers of training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from structent.plots.colours import NAME_OF_ARM, OF_ARM

if TYPE_CHECKING:  # it needs scikit-learn, which a figure does not
    from structent.comparison.result import LearningCurve

_MARKER_OF_ARM = {"none": "o", "structure": "s"}


def plot_learning_curve(curve: LearningCurve, ax: Axes) -> Axes:
    """Plot class log loss with and without the structure, mean and standard error over folds.

    Parameters
    ----------
    curve
        The losses at each number of training rows.
    ax
        The axes; the number of rows is on a logarithmic scale.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent.comparison.result import LearningCurve
    >>> curve = LearningCurve((10, 100), np.array([[2.0], [1.5]]), np.array([[1.75], [1.25]]))
    >>> ax = plot_learning_curve(curve, Figure().add_subplot())
    >>> [bars.lines[0].get_ydata().tolist() for bars in ax.containers]
    [[2.0, 1.5], [1.75, 1.25]]
    """
    sizes = np.array(curve.sizes, dtype=np.float64)
    for arm, losses in (("none", curve.none), ("structure", curve.structure)):
        n_folds = losses.shape[1]
        error = losses.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else None
        ax.errorbar(sizes, losses.mean(axis=1), error, color=OF_ARM[arm], capsize=3,
                    marker=_MARKER_OF_ARM[arm], markersize=5, label=NAME_OF_ARM[arm])  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(sizes, labels=[f"{size:,}" for size in curve.sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("training rows")
    ax.set_ylabel("class log loss, nats a row")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
