"""Figures: functions that take matplotlib axes and data, and return the axes."""

from structent._optional import load_optional

load_optional("matplotlib", extra="plots", purpose="Plots")

from structent.plots.confusion import confusion_shares, plot_confusion  # noqa: E402  checked first
from structent.plots.matrix import plot_similarity  # noqa: E402
from structent.plots.order import structure_order  # noqa: E402
from structent.plots.reliability import plot_reliability, reliability  # noqa: E402
from structent.plots.structure import Drawing, draw_structure, drawing_of  # noqa: E402
from structent.plots.studies import (  # noqa: E402
    plot_differences,
    plot_gain,
    plot_learning_curve,
    plot_null_distribution,
)

__all__ = [
    "Drawing",
    "confusion_shares",
    "draw_structure",
    "drawing_of",
    "plot_confusion",
    "plot_differences",
    "plot_gain",
    "plot_learning_curve",
    "plot_null_distribution",
    "plot_reliability",
    "plot_similarity",
    "reliability",
    "structure_order",
]
