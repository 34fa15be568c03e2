"""What the weather runs found: log losses by trial at a chosen depth, and paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from structent.errors import StructentError
from structent.experiments.experiment import Result
from structent.experiments.kept import Finished
from structent.experiments.paired import Mean, difference_of, mean_of


class Arm(NamedTuple):
    """What was trained: a method, its number of blocks where it has one, its singleton weight."""

    method: str
    n_blocks: int | None
    singleton_weight: float


class Reading(NamedTuple):
    """The runs of an arm at one size, each read at one depth; all by trial.

    Attributes
    ----------
    test
        The test log loss at that depth.
    judged_by
        The log loss by which the depth was chosen, and by which singleton weights are.
    depth
        The depth of the trees.
    """

    test: dict[int, float]
    judged_by: dict[int, float]
    depth: dict[int, int]


Readings: TypeAlias = dict[tuple[int, Arm], Reading]

STANDARD = Arm("standard", None, 1.0)
_SCRAMBLED = ", scrambled"


def chosen_on_validation(finished: Iterable[Finished]) -> Readings:
    """Return every size and arm, each trial at the depth with its least validation log loss."""
    return {cell: _least_validation(runs) for cell, runs in _by_cell(finished).items()}


def the_papers_way(finished: Iterable[Finished]) -> Readings:
    """Return every size and arm, all trials at the depth with the least mean test log loss.

    The test rows choose and are reported on: the losses are too good, as the paper's are.
    """
    return {cell: _least_mean_test(runs) for cell, runs in _by_cell(finished).items()}


def scrambled(arm: Arm) -> Arm:
    """Return the control of an arm: the same method with a scrambled structure.

    >>> scrambled(Arm("fixed", None, 0.2)).method
    'fixed, scrambled'
    """
    return arm._replace(method=arm.method + _SCRAMBLED)


def mean_loss(readings: Readings, size: int, arm: Arm) -> Mean | None:
    """Return the mean test log loss over trials; None where nothing was run."""
    reading = readings.get((size, arm))
    return None if reading is None else mean_of(reading.test)


def difference(readings: Readings, size: int, arm: Arm, baseline: Arm = STANDARD) -> Mean | None:
    """Return the test log loss of an arm minus that of another, over the trials that both have."""
    return average_difference(readings, size, [arm], baseline)


def average_difference(
    readings: Readings, size: int, arms: Sequence[Arm], baseline: Arm = STANDARD
) -> Mean | None:
    """Return the test log loss averaged over arms, minus that of another, over shared trials.

    None where an arm was not run, or where no trial has them all.
    """
    cells = [readings.get((size, arm)) for arm in [*arms, baseline]]
    tests = [reading.test for reading in cells if reading is not None]
    if len(tests) < len(cells) or not set.intersection(*map(set, tests)):
        return None
    *of_arms, of_baseline = tests
    shared = set.intersection(*map(set, of_arms))
    average = {trial: sum(t[trial] for t in of_arms) / len(of_arms) for trial in shared}
    return difference_of(average, of_baseline)


def best_weight(readings: Readings, size: int, method: str) -> Arm | None:
    """Return the arm of a method with the least mean of the losses that arms are judged by."""
    return min(
        comparable(readings, size, method),
        key=lambda arm: mean_of(readings[size, arm].judged_by).value,
        default=None,
    )


def comparable(readings: Readings, size: int, method: str) -> list[Arm]:
    """Return the arms of a method with the most trials at a size, by singleton weight.

    Trials differ by more than singleton weights do: a mean over fewer of them is no match.
    """
    n_trials = {
        arm: len(reading.test)
        for (at, arm), reading in readings.items()
        if at == size and arm.method == method
    }
    most = max(n_trials.values(), default=0)
    complete = [arm for arm, n in n_trials.items() if n == most]
    return sorted(complete, key=lambda arm: arm.singleton_weight)


def most_trials(readings: Readings) -> int:
    """Return the number of trials of the size and arm that has most."""
    return max((len(reading.test) for reading in readings.values()), default=0)


def _by_cell(finished: Iterable[Finished]) -> dict[tuple[int, Arm], dict[int, Result]]:
    cells: dict[tuple[int, Arm], dict[int, Result]] = {}
    for run in finished:
        settings = run.settings
        # A weight that was computed, as 3 * 0.1, is the weight that was meant.
        weight = round(float(settings["singleton_weight"]), 6)
        arm = Arm(settings["method"], settings["n_blocks"], weight)
        trials = cells.setdefault((settings["size"], arm), {})
        if settings["trial"] in trials:
            raise StructentError(
                f"a trial of {settings['method']!r} with {settings['size']} rows and singleton "
                f"weight {weight:g} must be there once, got trial {settings['trial']} twice; "
                "give the runs of one experiment under one preset"
            )
        trials[settings["trial"]] = run.result
    return cells


def _least_validation(runs: dict[int, Result]) -> Reading:
    places = {trial: int(np.argmin(result["validation"])) for trial, result in runs.items()}
    return Reading(
        test={trial: runs[trial]["test"][place] for trial, place in places.items()},
        judged_by={trial: runs[trial]["validation"][place] for trial, place in places.items()},
        depth={trial: runs[trial]["depth"][place] for trial, place in places.items()},
    )


def _least_mean_test(runs: dict[int, Result]) -> Reading:
    depths = next(iter(runs.values()))["depth"]
    if any(result["depth"] != depths for result in runs.values()):
        raise StructentError(
            "all trials must have the same depths, got "
            f"{[result['depth'] for result in runs.values()]}; "
            "give the runs of one experiment under one preset"
        )
    losses = np.array([result["test"] for result in runs.values()])  # (trials, depths)
    place = int(losses.mean(axis=0).argmin())
    test = {trial: result["test"][place] for trial, result in runs.items()}
    return Reading(test=test, judged_by=test, depth=dict.fromkeys(runs, depths[place]))
