"""The page of pairs of labels: what the product of two structures gains, and where it does not."""

from collections.abc import Mapping, Sequence

from structent.experiments.kept import Finished
from structent.experiments.markdown import table, with_error
from structent.experiments.paired import Mean, difference_of, mean_of

MEANINGS = {
    "none": "no structure",
    "product": "circle x graph",
    "product and marginals": "circle x graph, half; month and county alone, a quarter each",
    "circle alone": "circle x no structure",
    "graph alone": "no structure x graph",
    "scrambled": "circle x graph, the pairs shuffled",
    "two models": "a model for each label, with circle and graph",
}
LOSSES = ("pair", "month", "county")
# From the first to the second, whatever the size.
OTHER_PAIRS = (("scrambled", "product"), ("product", "product and marginals"),
               ("two models", "product"))  # fmt: skip
FEWEST_TRIALS = 3

# Of each arm and loss: its value in each trial.
Losses = Mapping[tuple[str, str], Mapping[int, float]]


def page(finished: Sequence[Finished], command: str) -> str:
    """Return the page as Markdown, with the sizes that enough trials are done of."""
    by_size = {
        size: _losses([run for run in finished if run.settings["size"] == size])
        for size in sorted({run.settings["size"] for run in finished})
    }
    told = {size: losses for size, losses in by_size.items() if _n_trials(losses) >= FEWEST_TRIALS}
    runs = [run for run in finished if run.settings["size"] in told]
    minutes = sum(run.seconds for run in runs) / 60
    parts = [
        "# Month and county at once",
        (
            "A day's weather in California (three numbers), and two questions: which month is it, "
            "and which county? One model answers both, with 12 x 37 = 444 pairs for classes. The "
            "months are a circle (width 3, singletons 0.3), the counties a graph (10 connected "
            "blocks, drawn for every tree, singletons 0.5), and the pairs have their product: for "
            "each tree 8 partitions, of which the pairs by themselves weigh 0.15. Boosted trees of "
            "depth 3, steps of 0.1, stopped by the log loss of 2,000 validation rows; nothing is "
            "tuned. All arms of a trial share its rows; 10,000 test rows. "
            "[How it is done](../tutorials/joint-targets.md)."
        ),
        (
            f"Command: `{command}`. {len(runs)} runs took {minutes:.0f} minutes on a share of one "
            f"busy processor, until {max(run.date for run in runs)}."
        ),
        f"Machine: {runs[-1].machine}.",
        *(part for size, losses in told.items() for part in _of_size(size, losses)),
    ]
    return "\n\n".join(parts) + "\n"


def _losses(runs: Sequence[Finished]) -> Losses:
    return {
        (arm, loss): {
            run.settings["trial"]: run.result[loss] for run in runs if run.settings["arm"] == arm
        }
        for arm in MEANINGS
        for loss in (*LOSSES, "trees")
    }


def _n_trials(losses: Losses) -> int:
    """Return how many trials every arm has."""
    return min(len(by_trial) for by_trial in losses.values())


def _of_size(size: int, losses: Losses) -> list[str]:
    rows = [
        [
            arm,
            meaning,
            *(with_error(mean_of(losses[arm, loss])) for loss in LOSSES),
            f"{mean_of(losses[arm, 'trees']).value:.0f}",
        ]
        for arm, meaning in MEANINGS.items()
    ]
    pairs = [*(("none", arm) for arm in MEANINGS if arm != "none"), *OTHER_PAIRS]
    return [
        f"## {size:,} training rows",
        f"Test log loss in nats, mean and standard error over {_n_trials(losses)} trials:",
        table(["arm", "structure", *LOSSES, "trees"], rows, n_left=2),
        "Differences, paired by trial, with their 95 % interval:",
        table(
            ["from", "to", *LOSSES],
            [[*pair, *map(_with_interval, _differences(losses, *pair))] for pair in pairs],
            n_left=2,
        ),
        "\n".join(f"- {_finding(losses, *pair)}" for pair in pairs),
    ]


def _differences(losses: Losses, first: str, second: str) -> list[Mean]:
    return [difference_of(losses[second, loss], losses[first, loss]) for loss in LOSSES]


def _with_interval(difference: Mean) -> str:
    low, high = (difference.value + side * difference.half_width for side in (-1, 1))
    return f"{difference.value:+.4f} [{low:+.4f}, {high:+.4f}]"


def _finding(losses: Losses, first: str, second: str) -> str:
    """Return what the step from one arm to another does to the three losses, in a sentence."""
    named = dict(zip(LOSSES, _differences(losses, first, second), strict=True))
    lower = [loss for loss, difference in named.items() if difference.is_lower]
    higher = [loss for loss, difference in named.items() if difference.is_higher]
    unclear = [loss for loss in LOSSES if loss not in (*lower, *higher)]
    said = [
        f"{verb} for the {' and the '.join(which)}"
        for verb, which in (("better", lower), ("worse", higher), ("no clear difference", unclear))
        if which
    ]
    return f"**{second}** against {first}: {', '.join(said)}."
