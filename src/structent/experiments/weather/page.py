"""What the pages on the weather experiments share: how they open, and how a cell is written."""

from __future__ import annotations

import math
from typing import Any

from structent.experiments.claim import Claim, claims_table
from structent.experiments.markdown import signed, with_error
from structent.experiments.paired import Mean
from structent.experiments.weather.claims import HOW_JUDGED, counts
from structent.experiments.weather.results import Reading

NOT_RUN = "not run"
CHOSEN = "chosen on validation"
PAPERS_WAY = "the paper's way"

_DATA = (
    "**The data are not the paper's.** Its 2.4 million rows of 58 counties cannot be had. These "
    "are California's station-days in NOAA's GHCN-Daily, with the same columns: 37 counties, 54 "
    "stations. Absolute log losses differ from the paper's; what is reproduced is the comparison "
    "of standard with structured cross-entropy."
)
_SELECTION = (
    f'Log losses are in nats a row, on test rows. "{CHOSEN.capitalize()}": in every trial the '
    f'depth of trees with the least validation log loss. "{PAPERS_WAY.capitalize()}": the depth '
    "with the least mean test log loss, which is too good, as the test rows choose. Differences "
    "are method minus standard, trial by trial (below 0 the method is better); ± is the standard "
    "error over trials, **bold** is below 0 beyond the 95 % interval."
)


def opening(
    title: str, about: list[str], introduction: str, claimed: list[Claim], n_trials: int
) -> list[str]:
    """Return the title, whose data these are, what was run, how it is judged, and the claims."""
    trials = (
        f"At most {n_trials} {'trial' if n_trials == 1 else 'trials'} of each method were run; "
        "where there are fewer, the cell says so."
    )
    return [
        f"# {title}",
        _DATA,
        *about,
        f"{_SELECTION} {trials}",
        introduction,
        "## Does the paper hold here?",
        f"{counts(claimed)} {HOW_JUDGED}",
        claims_table(claimed),
    ]


def loss_cell(mean: Mean | None, n_trials: int) -> str:
    """Return a mean log loss, with its trials if they are fewer than the others have.

    >>> loss_cell(Mean(2.1, 0.01, 3), n_trials=5), loss_cell(None, n_trials=5)
    ('2.1000 ± 0.0100 (3 trials)', 'not run')
    """
    return NOT_RUN if mean is None else with_error(mean) + _fewer(mean, n_trials)


def difference_cell(mean: Mean | None, n_trials: int) -> str:
    """Return a difference, in bold if it is below zero beyond its interval.

    >>> difference_cell(Mean(-0.01, 0.001, 5), n_trials=5)
    '**-0.0100 ± 0.0010**'
    """
    if mean is None:
        return NOT_RUN
    text = f"**{signed(mean)}**" if mean.is_lower else signed(mean)
    return text + _fewer(mean, n_trials)


def depth_cell(reading: Reading | None) -> str:
    """Return the depths of the trials: one, or from the least to the largest.

    >>> depth_cell(Reading({}, {}, {0: 2, 1: 4, 2: 2}))
    '2 to 4'
    """
    if reading is None:
        return ""
    least, largest = min(reading.depth.values()), max(reading.depth.values())
    return f"{least}" if least == largest else f"{least} to {largest}"


def plain(mean: Mean | None) -> dict[str, Any] | None:
    """Return a mean as JSON has it; the standard error of one trial is null."""
    if mean is None:
        return None
    error = None if math.isnan(mean.error) else round(mean.error, 6)
    return {"mean": round(mean.value, 6), "error": error, "trials": mean.n_trials}


def _fewer(mean: Mean, n_trials: int) -> str:
    if mean.n_trials >= n_trials:
        return ""
    return f" ({mean.n_trials} {'trial' if mean.n_trials == 1 else 'trials'})"
