"""The pages of experiments 1A to 1D, with all that goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from structent.experiments.cifar100.choice import which_loss
from structent.experiments.cifar100.claims import HOW_JUDGED, claims
from structent.experiments.cifar100.names import PAPER_LOSSES, SIZE_OF_1B
from structent.experiments.cifar100.places import Place, places
from structent.experiments.cifar100.readings import (
    LOSSES,
    PAPERS_LOSSES,
    READINGS,
    Trials,
    chosen_epochs,
    epochs_of,
    losses_of,
    runs_of,
)
from structent.experiments.cifar100.summary import summary
from structent.experiments.cifar100.tables import HEADING, beside_paper
from structent.experiments.cifar100.trajectories import drawn, figure_name, figures
from structent.experiments.claim import claims_table
from structent.experiments.kept import Finished
from structent.experiments.paired import mean_of

__all__ = ["claims", "figures", "page", "summary"]


@dataclass(frozen=True)
class _Experiment:
    """What a page says of its experiment, and which losses it subtracts from each other."""

    title: str
    what: str
    pairs: tuple[tuple[str, str], ...] = (("structured", "standard"),)


_EXPERIMENTS = {
    "1A": _Experiment(
        "a small network on few images",
        "A small convolutional network is trained from scratch, with the standard and with the "
        "structured cross-entropy, on training sets of several sizes. Of all 50,000 images 2,000 "
        "are validation images, so that it learns from 48,000.",
    ),
    "1B": _Experiment(
        "a scrambled structure",
        "The training sets of 5,000 images again, with a third loss: the structured cross-entropy "
        "with the classes permuted at random, by one permutation in all trials, so that its "
        "blocks mean nothing. The paper shows "
        "this as a figure, without numbers; its values for the other two losses are those of 1A.",
        (("structured", "standard"), ("scrambled", "standard"), ("scrambled", "structured")),
    ),
    "1C": _Experiment(
        "fine-tuning a whole pre-trained network",
        "All layers of a network with ImageNet weights are trained on. The paper took all 50,000 "
        "images; how many we took stands with each network. Of all 50,000 images 2,000 are "
        "validation images.",
    ),
    "1D": _Experiment(
        "the last layer of a frozen network",
        "Only the last layer of a network with ImageNet weights is trained.",
    ),
}
_VALUES = (
    "Test values, mean and standard error over trials. The chosen epoch is the one whose "
    "validation value is best, for each metric by itself, as the paper reads each metric at its "
    "best test value (next section). Acc, Acc2, Acc3 and Acc4 are the accuracies for classes, "
    "superclasses, categories and supercategories. Differences are taken trial by trial; bold are "
    "those beyond their 95 % interval. All trials are measured on the same test images: intervals "
    "speak of other training images, not of other test images."
)
_OTHER_GROUPS = (
    "**The paper's Acc3 and Acc4 are those of other groups.** In the author's notebooks of 1C and "
    "1D the tables that turn classes into categories and supercategories list the classes by one "
    "order of superclasses and the groups by another: flowers, food containers and fruit become "
    "one category, ten superclasses from fish to insects and bridges one supercategory. The loss "
    "there, and Acc2, have the groups of the paper. The notebook of 1A is not public; its Acc4 is "
    "as low. Ours are the groups of the paper's appendix, so compare Acc and Acc2 with the paper, "
    "and of Acc3 and Acc4 no more than the sign of the differences."
)
_PAPERS_WAY = (
    "Least cross-entropy: all metrics at the epoch of least validation cross-entropy. Where that "
    "turns early, accuracies are read while they still rise, which is earlier for one loss than "
    "for the other. The paper's way: trajectories are averaged over trials, and every metric is "
    "read where its own mean on the test images is best. Such a value is better than one can "
    "count on."
)
_CHOICE = (
    "Label smoothing, and hierarchical cross-entropy (alpha .1, .3, .5) and soft labels (beta 10, "
    "30) of Bertinetto et al. (2020), on the same trials. Mistake severity is the mean number of "
    "levels, of four, that a wrong answer gets wrong, at the epoch chosen for Acc."
)
_CUT_OFF = (
    "Test values after every epoch that was looked at. The first epochs are cut off where they "
    "would flatten the rest."
)


def page(name: str, finished: Sequence[Finished], about: Sequence[str]) -> str:
    """Return the page of an experiment as Markdown.

    Its figures are expected beside it, as ``.svg`` under the names that ``figures`` gives.

    Parameters
    ----------
    name
        "1A", "1B", "1C" or "1D".
    finished
        The finished runs of one preset. Those of other experiments are left aside, but that 1B
        needs 1A's.
    about
        Paragraphs that stand under the title: the command, preset, machine, date and schedule.
    """
    runs = runs_of(name, finished)
    experiment, found = _EXPERIMENTS[name], places(name, runs)
    honest, *others = READINGS

    def values(readings: list[str]) -> str:
        losses, pairs = PAPERS_LOSSES[name], experiment.pairs
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


def _epochs(name: str, runs: list[Finished], found: list[Place]) -> list[str]:
    """Return when epochs were chosen, which shows whether training went on for long enough."""
    lines = [
        f"- {place.label}: "
        + "; ".join(f"{loss} {_chosen_epoch(trials)}" for loss, trials in by_loss.items())
        for place in found
        if (by_loss := drawn(name, runs, place))
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
    """Return whether all losses are meant to be run in a place."""
    return name == "1D" or (name == "1A" and place.slug == str(SIZE_OF_1B))


def _trajectories(name: str, runs: list[Finished], found: list[Place]) -> list[str]:
    links = [
        f"![Test values after every epoch, {place.label}: {', '.join(by_loss)}]"
        f"({figure_name(name, place)}.svg)"
        for place in found
        if (by_loss := drawn(name, runs, place))
    ]
    return ["## Trajectories", _CUT_OFF, *links] if links else []
