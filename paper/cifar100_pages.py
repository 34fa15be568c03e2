"""The pages of Experiments 1A to 1D, and their figures of test values after every epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, MaxNLocator

from paper.cifar100_results import (
    LOSSES,
    LOSSES_OF,
    READINGS,
    Place,
    Trials,
    chosen_epochs,
    epochs_of,
    losses_of,
    places,
    runs_of,
    summary,
    trajectory,
    trials_of,
)
from paper.cifar100_tables import HEADING, HOW_JUDGED, beside_paper, claims, which_loss
from paper.experiment import Finished
from paper.pages import Page, as_svg, claims_table, in_trials, mean_of, page_style
from paper.paper_numbers import MEASURES, PAPER_LOSSES, SIZE_OF_1B
from structent._typing import FloatArray
from structent.plots.style import BLUE, GREY, VERMILLION

_VALUES = (
    "Test values, mean and standard error over trials. The chosen epoch is the one whose "
    "validation value is best, for each metric by itself, as the paper reads each metric at its "
    "best test value (next section). Acc, Acc2, Acc3 and Acc4 are the accuracies for classes, "
    "superclasses, categories and supercategories. Differences are taken trial by trial; bold ones "
    "are beyond their 95 % interval. All trials use the same test images, so intervals account for "
    "the choice of training images, not of test images."
)
_OTHER_GROUPS = (
    "**The paper's Acc3 and Acc4 use other groups.** In the author's notebooks of 1C and "
    "1D the tables that turn classes into categories and supercategories list the classes by one "
    "order of superclasses and the groups by another: flowers, food containers and fruit become "
    "one category, ten superclasses from fish to insects and bridges one supercategory. The loss "
    "there, and Acc2, have the groups of the paper. The notebook of 1A is not public; its Acc4 is "
    "as low. We use the groups of the paper's appendix, so compare Acc and Acc2 with the paper, "
    "but only the sign of the differences of Acc3 and Acc4."
)
_PAPERS_WAY = (
    "Least cross-entropy: all metrics at the epoch with the lowest validation cross-entropy. If "
    "that epoch is early, accuracies are read while they still rise, and it is earlier for one "
    "loss than for the other. The paper's way: trajectories are averaged over trials, and every "
    "metric is read where its own mean on the test images is best. Such a value is too optimistic."
)
_CHOICE = (
    "Label smoothing, and hierarchical cross-entropy (alpha .1, .3, .5) and soft labels (beta 10, "
    "30) of Bertinetto et al. (2020), on the same trials. Mistake severity is the mean number of "
    "levels, of four, that a wrong answer gets wrong, at the epoch chosen for Acc."
)
_CUT_OFF = (
    "Test values after every measured epoch. The first epochs are cut off if they would flatten "
    "the rest."
)
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
# The share of the epochs whose values may be cut off.
_START = 0.2
_STEPS = [1, 2, 2.5, 5, 10]


@dataclass(frozen=True)
class _Experiment:
    """The text of a page on its experiment, and which differences of losses it shows."""

    title: str
    what: str
    pairs: tuple[tuple[str, str], ...] = (("structured", "standard"),)


_EXPERIMENTS = {
    "1A": _Experiment(
        "a small network on few images",
        "A small convolutional network is trained from scratch, with the standard and with the "
        "structured cross-entropy, on training sets of several sizes. If all 50,000 images are "
        "used, 2,000 of them are validation images, so the network learns from 48,000.",
    ),
    "1B": _Experiment(
        "a scrambled structure",
        "The training sets of 5,000 images again, with a third loss: the structured cross-entropy "
        "with the classes permuted at random, by the same permutation in all trials, so that its "
        "blocks mean nothing. The paper shows "
        "this as a figure, without numbers; its values for the other two losses are from 1A.",
        (("structured", "standard"), ("scrambled", "standard"), ("scrambled", "structured")),
    ),
    "1C": _Experiment(
        "fine-tuning a whole pre-trained network",
        "All layers of a network with ImageNet weights are trained. The paper uses all 50,000 "
        "images; the number we use is given with each network. If all 50,000 images are used, "
        "2,000 of them are validation images.",
    ),
    "1D": _Experiment(
        "the last layer of a frozen network",
        "Only the last layer of a network with ImageNet weights is trained.",
    ),
}


def page(name: str, finished: Sequence[Finished], about: Sequence[str]) -> Page:
    """Return the page of an experiment, its figures and its numbers; see :func:`markdown`."""
    numbers = {"about": list(about), **summary(name, finished)}
    drawn = as_svg(figures(name, finished))
    return Page(f"cifar100-{name}", markdown(name, finished, about), drawn, numbers)


def markdown(name: str, finished: Sequence[Finished], about: Sequence[str]) -> str:
    """Return the page of an experiment as Markdown.

    Its figures are expected beside it, as ``.svg`` under the names that ``figures`` gives.

    Parameters
    ----------
    name
        "1A", "1B", "1C" or "1D".
    finished
        The finished runs of one preset. Runs of other experiments are ignored, but 1B needs the
        runs of 1A.
    about
        Paragraphs below the title: the command, preset, machine, date and schedule.
    """
    runs = runs_of(name, finished)
    experiment, found = _EXPERIMENTS[name], places(name, runs)
    honest, *others = READINGS

    def values(readings: list[str]) -> str:
        losses, pairs = LOSSES_OF[name], experiment.pairs
        return beside_paper(found, runs, losses=losses, pairs=pairs, readings=readings)

    parts = [
        f"# CIFAR-100, experiment {name}: {experiment.title}",
        *about,
        experiment.what,
        "## What the paper says, and what is found here",
        HOW_JUDGED,
        claims_table(claims(name, finished)),
        "## Ours beside the paper's",
        _VALUES,
        _OTHER_GROUPS,
        values([honest]),
        *_epochs(name, runs, found),
        "## At one epoch for all metrics, and the paper's way",
        _PAPERS_WAY,
        values(others),
        *_choice(name, runs, found),
        *_trajectories(name, runs, found),
    ]
    return "\n\n".join(parts) + "\n"


def figures(name: str, finished: Sequence[Finished]) -> dict[str, Figure]:
    """Return a figure for every case of an experiment that was run, by its file name."""
    runs = runs_of(name, finished)
    return {
        _figure_name(name, place): trajectories_figure(by_loss, place.label)
        for place in places(name, runs)
        if (by_loss := _drawn(name, runs, place))
    }


def trajectories_figure(by_loss: Mapping[str, Trials], title: str) -> Figure:
    """Return a figure with a panel for every recorded metric.

    Parameters
    ----------
    by_loss
        The results of each loss, by trial.
    title
        What they were trained on.
    """
    # The background is white even on a dark page, so a user's style must not make text white.
    with page_style():
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
            [f"{loss} ({in_trials(len(trials))})" for loss, trials in by_loss.items()],
            loc="outside upper center",
            ncols=len(by_loss),
            frameon=False,
            title=f"{title}: test values{_lines_of(by_loss)}",
        )
    return figure


def plot_trajectories(by_loss: Mapping[str, Trials], metric: str, ax: Axes) -> Axes:
    """Plot the test values of a metric after every measured epoch.

    Values of the first epochs outside the range of later ones are cut off, because they would
    flatten the rest.

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
        # A single epoch needs a marker, because it has no line.
        marker = "o" if len(epochs) == 1 else ""
        ax.plot(epochs, lines.mean(axis=0), color=_COLOUR[loss], linestyle=_DASHES[loss],
                linewidth=1.8, marker=marker, label=loss)  # fmt: skip
        seen.append(lines[:, np.array(epochs) >= _START * epochs[-1]].ravel())
    _fit(np.concatenate(seen), ax)
    # Otherwise a single epoch would have fractional ticks around it.
    few = len(epochs) <= 5
    ax.xaxis.set_major_locator(
        FixedLocator(epochs) if few else MaxNLocator(5, steps=_STEPS, integer=True)
    )
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS, min_n_ticks=3))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, linewidth=0.4, alpha=0.4)
    return ax


def _epochs(name: str, runs: list[Finished], found: list[Place]) -> list[str]:
    """Return which epochs were chosen, which shows whether training was long enough."""
    lines = [
        f"- {place.label}: "
        + "; ".join(f"{loss} {_chosen_epoch(trials)}" for loss, trials in by_loss.items())
        for place in found
        if (by_loss := _drawn(name, runs, place))
    ]
    return ["The chosen epoch, mean over trials:", "\n".join(lines)] if lines else []


def _chosen_epoch(trials: Trials) -> str:
    of_metric = [
        f"{mean_of(chosen_epochs(trials, metric)).value:.0f} for {HEADING[metric]}"
        for metric in ("cross-entropy", "accuracy")
    ]
    return f"{', '.join(of_metric)}, of {epochs_of(trials)[-1]}"


def _choice(name: str, runs: list[Finished], found: list[Place]) -> list[str]:
    shown = [place for place in found if _has_other_losses(runs, place) or _is_meant(name, place)]
    if not shown:
        return []
    tables = [f"### {place.label}\n\n{which_loss(runs, place.case)}" for place in shown]
    return ["## Which loss to choose", _CHOICE, *tables]


def _has_other_losses(runs: list[Finished], place: Place) -> bool:
    others = set(LOSSES) - set(PAPER_LOSSES)
    return place.case is not None and bool(others & set(losses_of(runs, place.case)))


def _is_meant(name: str, place: Place) -> bool:
    """Return whether all losses should be run in a place."""
    return name == "1D" or (name == "1A" and place.slug == str(SIZE_OF_1B))


def _trajectories(name: str, runs: list[Finished], found: list[Place]) -> list[str]:
    links = [
        f"![Test values after every epoch, {place.label}: {', '.join(by_loss)}]"
        f"({_figure_name(name, place)}.svg)"
        for place in found
        if (by_loss := _drawn(name, runs, place))
    ]
    return ["## Trajectories", _CUT_OFF, *links] if links else []


def _figure_name(name: str, place: Place) -> str:
    """Return the file name of a place's figure, without a suffix.

    >>> _figure_name("1A", Place("1,000 images", "1000", None, None))
    'cifar100-1A-1000'
    """
    return f"cifar100-{name}-{place.slug}"


def _drawn(name: str, runs: Sequence[Finished], place: Place) -> dict[str, Trials]:
    """Return the results in the figure of a place: the losses of the paper that were run there."""
    by_loss = {loss: trials_of(runs, place.case, loss) for loss in LOSSES_OF[name]}
    return {loss: trials for loss, trials in by_loss.items() if trials}


def _fit(values: FloatArray, ax: Axes) -> None:
    """Fit the axes to the finite values; training that diverged has others."""
    finite = values[np.isfinite(values)]
    if len(finite):
        margin = 0.06 * np.ptp(finite) or 0.01
        ax.set_ylim(finite.min() - margin, finite.max() + margin)


def _lines_of(by_loss: Mapping[str, Trials]) -> str:
    several = any(len(trials) > 1 for trials in by_loss.values())
    return "; each trial thin, their mean thick" if several else ""
