"""The page on drawing: whether a partition drawn for every tree does more than its average."""

from collections.abc import Sequence

from structent.experiments.kept import Finished
from structent.experiments.markdown import table
from structent.experiments.pages import about
from structent.experiments.weather.page import difference_cell, loss_cell
from structent.experiments.weather.results import (
    STANDARD,
    Arm,
    Readings,
    chosen_on_validation,
    difference,
    mean_loss,
    scrambled,
)

SIZES = (1000, 2000)
DRAWN, AVERAGED = Arm("variable", 10, 0.5), Arm("averaged", 10, 0.5)
SLOWER = Arm("standard, half the learning rate", None, 1.0)
N_TRIALS = 5
_OF_SIZES = [f"{size:,} rows" for size in SIZES]

_STEPS = (
    ("slower learning alone", STANDARD, SLOWER),
    ("the average of scrambled graphs", STANDARD, scrambled(AVERAGED)),
    ("drawing a scrambled graph for every tree", scrambled(AVERAGED), scrambled(DRAWN)),
    ("both: what the control gains", STANDARD, scrambled(DRAWN)),
    ("the average of the true graph", STANDARD, AVERAGED),
    ("drawing the true graph for every tree", AVERAGED, DRAWN),
    ("both: what the structure gains", STANDARD, DRAWN),
)


def page(
    own: Sequence[Finished],
    of_counties: Sequence[Finished],
    command: str,
    *,
    n_runs: int,
    n_draws: int,
) -> str:
    """Return the page as Markdown, of its own runs and of those they are compared with."""
    readings = chosen_on_validation([*own, *of_counties])
    parts = [
        "# Why a scrambled graph helps the counties",
        (
            "On [counties](counties.md) a scrambled graph is better than the standard loss, though "
            "it tells nothing true. Two things could do that: the loss, which any partition makes "
            "more lenient, or the drawing, which gives every tree another loss and so makes trees "
            "differ, as sampling rows or columns does. To tell them apart, the partitions of "
            f"{n_draws} draws are averaged once for all trees: the loss is then the same on "
            "average, and nothing is random. Half the learning rate shows what smaller steps alone "
            "would do, as a lenient loss makes them smaller, too. 10 blocks, singleton weight 0.5."
        ),
        *about(own, n_runs, command),
        (
            "The other runs are those of [counties](counties.md), on the same rows. Differences "
            "are in nats of test log loss, trial by trial, with standard errors, the depth of the "
            "trees chosen on validation; **bold** is below 0 beyond the 95 % interval."
        ),
        table(["what it is", *_OF_SIZES], _step_rows(readings)),
        "Test log losses:",
        table(["method", *_OF_SIZES], _loss_rows(readings)),
    ]
    return "\n\n".join(parts) + "\n"


def _step_rows(readings: Readings) -> list[list[str]]:
    return [
        [
            name,
            *(
                difference_cell(difference(readings, size, after, before), N_TRIALS)
                for size in SIZES
            ),
        ]
        for name, before, after in _STEPS
    ]


def _loss_rows(readings: Readings) -> list[list[str]]:
    arms = (STANDARD, SLOWER, AVERAGED, DRAWN, scrambled(AVERAGED), scrambled(DRAWN))
    return [
        [arm.method, *(loss_cell(mean_loss(readings, size, arm), N_TRIALS) for size in SIZES)]
        for arm in arms
    ]
