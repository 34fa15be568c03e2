"""Figures of test values after every epoch: each trial thin, the mean over trials thick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, MaxNLocator

from structent._typing import FloatArray
from structent.experiments.cifar100.names import MEASURES
from structent.experiments.cifar100.places import Place, places
from structent.experiments.cifar100.readings import (
    PAPERS_LOSSES,
    Trials,
    epochs_of,
    runs_of,
    trajectory,
    trials_of,
)
from structent.experiments.cifar100.tables import n_trials
from structent.experiments.kept import Finished
from structent.plots.style import BLUE, GREY, VERMILLION

_COLOUR = {"standard": GREY, "structured": BLUE, "scrambled": VERMILLION}
_DASHES = {"standard": "-", "structured": "-", "scrambled": (0, (5, 1.5))}
_TITLE = {
    "cross-entropy": "cross-entropy",
    "structured": "structured cross-entropy",
    "accuracy": "accuracy: classes",
    "accuracy 2": "accuracy 2: superclasses",
    "accuracy 3": "accuracy 3: categories",
    "accuracy 4": "accuracy 4: supercategories",
}
# The share of the epochs whose values need not be in sight.
_START = 0.2
_STEPS = [1, 2, 2.5, 5, 10]


def figures(name: str, finished: Sequence[Finished]) -> dict[str, Figure]:
    """Return a figure for every case of an experiment that was run, by its file name."""
    runs = runs_of(name, finished)
    return {
        figure_name(name, place): trajectories_figure(by_loss, place.label)
        for place in places(name, runs)
        if (by_loss := drawn(name, runs, place))
    }


def figure_name(name: str, place: Place) -> str:
    """Return the file name of a place's figure, without a suffix.

    >>> figure_name("1A", Place("1,000 images", "1000", None, None))
    'cifar100-1A-1000'
    """
    return f"cifar100-{name}-{place.slug}"


def drawn(name: str, runs: Sequence[Finished], place: Place) -> dict[str, Trials]:
    """Return what the figure of a place shows: the losses of the paper that were run there."""
    by_loss = {loss: trials_of(runs, place.case, loss) for loss in PAPERS_LOSSES[name]}
    return {loss: trials for loss, trials in by_loss.items() if trials}


def trajectories_figure(by_loss: Mapping[str, Trials], title: str) -> Figure:
    """Return a figure with a panel for every recorded metric.

    Parameters
    ----------
    by_loss
        The results of each loss, by trial.
    title
        What they were trained on.
    """
    # White on a dark page too; and a user's style must not whiten the letters on it.
    with style.context(["default", {"font.size": 9}]):
        layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
        figure = Figure(figsize=(9.6, 5.8), layout=layout, facecolor="white")
        panels = figure.subplots(2, 3, sharex=True)
        for ax, metric in zip(panels.flat, MEASURES, strict=True):
            plot_trajectories(by_loss, metric, ax)
            ax.set_title(_TITLE[metric], fontsize=9)
        for ax in panels[-1]:
            ax.set_xlabel("epoch")
        handles, _ = panels[0, 0].get_legend_handles_labels()
        figure.legend(
            handles,
            [f"{loss} ({n_trials(len(trials))})" for loss, trials in by_loss.items()],
            loc="outside upper center",
            ncols=len(by_loss),
            frameon=False,
            title=f"{title}: test values{_lines_of(by_loss)}",
        )
    return figure


def plot_trajectories(by_loss: Mapping[str, Trials], metric: str, ax: Axes) -> Axes:
    """Plot the test values of a metric after every epoch that was looked at.

    What lies beyond the values of later epochs at the start is cut off, or else it would flatten
    all the rest.

    Parameters
    ----------
    by_loss
        The results of each loss, by trial.
    metric
        A recorded metric.
    ax
        The axes.
    """
    seen = []
    for loss, trials in by_loss.items():
        epochs = epochs_of(trials)
        lines = np.stack([trajectory(result, metric) for result in trials.values()])
        if len(lines) > 1:
            ax.plot(epochs, lines.T, color=_COLOUR[loss], linewidth=0.6, alpha=0.45)
        # One epoch makes no line.
        marker = "o" if len(epochs) == 1 else ""
        ax.plot(epochs, lines.mean(axis=0), color=_COLOUR[loss], linestyle=_DASHES[loss],
                linewidth=1.8, marker=marker, label=loss)  # fmt: skip
        seen.append(lines[:, np.array(epochs) >= _START * epochs[-1]].ravel())
    _fit(np.concatenate(seen), ax)
    # Else a single epoch would stand among fractions of one.
    few = len(epochs) <= 5
    ax.xaxis.set_major_locator(
        FixedLocator(epochs) if few else MaxNLocator(5, steps=_STEPS, integer=True)
    )
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS, min_n_ticks=3))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, linewidth=0.4, alpha=0.4)
    return ax


def _fit(values: FloatArray, ax: Axes) -> None:
    """Make the axes as high as values are; training that diverged has some that are not finite."""
    finite = values[np.isfinite(values)]
    if len(finite):
        margin = 0.06 * np.ptp(finite) or 0.01
        ax.set_ylim(finite.min() - margin, finite.max() + margin)


def _lines_of(by_loss: Mapping[str, Trials]) -> str:
    several = any(len(trials) > 1 for trials in by_loss.values())
    return "; each trial thin, their mean thick" if several else ""
