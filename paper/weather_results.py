"""Results of the runs on months and counties, and how the paper's claims are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from paper.experiment import Finished, Result
from paper.pages import (
    NOT_RUN,
    Claim,
    Mean,
    claims_counted,
    claims_table,
    difference_of,
    in_trials,
    mean_of,
    signed,
)
from structent.errors import StructentError

_SCRAMBLED = ", scrambled"
HOW_JUDGED = (
    'A claim holds ("yes") if the mean over trials agrees with it in every cell that it is about, '
    'and no cell is missing; "in part" if it agrees in more than half of the cells that were run. '
    "A claim on what is best also holds in part if nothing else is clearly better. A claim that "
    "gains shrink holds if every step to more rows makes them smaller, and in part if the smallest "
    "size gains, and gains more than the largest. A cell is clear if it is beyond its 95 % "
    "interval (Student's t over the trials), for each cell by itself: among many cells a few are "
    "clear by chance."
)
_MOST_EXCEPTIONS = 6
CHOSEN = "chosen on validation"
PAPERS_WAY = "the paper's way"
_DATA = (
    "**The data are not the paper's.** Its 2.4 million rows of 58 counties are not available. "
    "These are California's station-days in NOAA's GHCN-Daily, with the same columns: 37 counties, "
    "54 stations. Absolute log losses differ from the paper's; we reproduce the comparison of "
    "standard with structured cross-entropy."
)
_SELECTION = (
    f'Log losses are in nats per row, on test rows. "{CHOSEN.capitalize()}": in every trial the '
    f'depth of trees with the lowest validation log loss. "{PAPERS_WAY.capitalize()}": the depth '
    "with the lowest mean test log loss, which is too optimistic, because the test rows choose it. "
    "Differences "
    "are method minus standard, trial by trial (below 0 the method is better); ± is the standard "
    "error over trials, **bold** is below 0 beyond the 95 % interval."
)


class Arm(NamedTuple):
    """What was trained: a method, its number of blocks if it has one, its singleton weight."""

    method: str
    n_blocks: int | None
    singleton_weight: float


STANDARD = Arm("standard", None, 1.0)


class Reading(NamedTuple):
    """The runs of an arm at one size, each read at one depth; all by trial.

    Attributes
    ----------
    test
        The test log loss at that depth.
    judged_by
        The log loss by which the depth and the singleton weight are chosen.
    depth
        The depth of the trees.
    """

    test: dict[int, float]
    judged_by: dict[int, float]
    depth: dict[int, int]


Readings: TypeAlias = dict[tuple[int, Arm], Reading]


def chosen_on_validation(finished: Iterable[Finished]) -> Readings:
    """Return every size and arm, each trial at its depth with the lowest validation log loss."""
    return {cell: _least_validation(runs) for cell, runs in _by_cell(finished).items()}


def the_papers_way(finished: Iterable[Finished]) -> Readings:
    """Return every size and arm, all trials at the depth with the lowest mean test log loss.

    The test rows choose the depth, so the losses are too optimistic, as in the paper.
    """
    return {cell: _least_mean_test(runs) for cell, runs in _by_cell(finished).items()}


def scrambled(arm: Arm) -> Arm:
    """Return the control of an arm: the same method with a scrambled structure.

    >>> scrambled(Arm("fixed", None, 0.2)).method
    'fixed, scrambled'
    """
    return arm._replace(method=arm.method + _SCRAMBLED)


def mean_loss(readings: Readings, size: int, arm: Arm) -> Mean | None:
    """Return the mean test log loss over trials; None if nothing was run."""
    reading = readings.get((size, arm))
    return None if reading is None else mean_of(reading.test)


def difference(readings: Readings, size: int, arm: Arm, baseline: Arm = STANDARD) -> Mean | None:
    """Return the difference in test log loss of two arms, over the trials that both have."""
    return average_difference(readings, size, [arm], baseline)


def average_difference(
    readings: Readings, size: int, arms: Sequence[Arm], baseline: Arm = STANDARD
) -> Mean | None:
    """Return the test log loss averaged over arms, minus the loss of another, over shared trials.

    None if an arm was not run, or if no trial has all of them.
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
    """Return the arm of a method with the lowest mean of the losses that choose among arms."""
    return min(
        _comparable(readings, size, method),
        key=lambda arm: mean_of(readings[size, arm].judged_by).value,
        default=None,
    )


def most_trials(readings: Readings) -> int:
    """Return the largest number of trials of any size and arm."""
    return max((len(reading.test) for reading in readings.values()), default=0)


class Cell(NamedTuple):
    """A cell of a table: what it is, and its difference, None if it was not run."""

    name: str
    difference: Mean | None


def all_lower(says: str, cells: Sequence[Cell]) -> Claim:
    """Return the claim that the difference of every cell is below zero.

    >>> all_lower("a is better", [Cell("500 rows", Mean(-0.02, 0.001, 5))]).numbers
    'lower in 1 of 1, clearly in 1; clearly higher in 0; 5 trials each'
    """
    return _one_sided(says, cells, -1, ("lower", "higher"))


def all_higher(says: str, cells: Sequence[Cell]) -> Claim:
    """Return the claim that the difference of every cell is above zero."""
    return _one_sided(says, cells, +1, ("higher", "lower"))


def best_at(
    says: str,
    readings: Readings,
    sizes: Sequence[int],
    named: Sequence[Arm],
    *,
    enough: int,
    name: Callable[[Arm], str],
) -> Claim:
    """Return the claim that one of the named arms of a method has the lowest test loss.

    It holds if that is true at enough of the sizes. If another arm is best, it is compared with the
    best of the named arms; if no such difference is clear, the claim holds in part.
    """
    found: list[str] = []
    n_agree = n_clear = 0
    for size in sizes:
        arms = _comparable(readings, size, named[0].method)
        of_named = _least(readings, size, [arm for arm in arms if arm in named])
        best = _least(readings, size, arms)
        if best is None or of_named is None:
            continue
        n_agree += best == of_named
        found.append(f"{name(best)} with {size:,} rows")
        gap = difference(readings, size, of_named, best)
        if gap is not None and best != of_named:
            n_clear += gap.is_higher
            found[-1] += f" ({name(of_named)} is {signed(gap)} from it)"
    if not found:
        return Claim(says, NOT_RUN, "")
    is_open = n_clear == 0 or 2 * n_agree > len(found)
    holds = "yes" if n_agree >= enough else "in part" if is_open else "no"
    clear = f"another is clearly better at {n_clear} of {len(found)} sizes"
    missing = _missing(len(sizes) - len(found), "size")
    return Claim(says, holds, f"best: {'; '.join(found)}; {clear}{missing}")


def shrinking_gain(says: str, differences: Mapping[int, Mean | None]) -> Claim:
    """Return the claim that the gain, by the number of training rows, is larger for small data.

    It holds if every step to more rows makes the gain smaller, and in part if the smallest size
    gains, and gains more than the largest.
    """
    run = {size: mean for size, mean in sorted(differences.items()) if mean is not None}
    values = [mean.value for mean in run.values()]
    n_steps = len(values) - 1
    if n_steps < 1:
        return Claim(says, NOT_RUN, "")
    n_smaller = sum(values[step] < values[step + 1] for step in range(n_steps))
    holds = "no"
    if values[0] < min(values[-1], 0.0):
        holds = "yes" if n_smaller == len(differences) - 1 else "in part"
    each = ", ".join(f"{signed(mean)} with {size:,} rows" for size, mean in run.items())
    missing = _missing(len(differences) - len(run), "size")
    return Claim(
        says, holds, f"{each}; the gain is smaller after {n_smaller} of {n_steps} steps{missing}"
    )


def opening(
    title: str, about: list[str], introduction: str, claimed: list[Claim], n_trials: int
) -> list[str]:
    """Return the title, the source of the data, what was run, how it is judged, and the claims."""
    trials = (
        f"At most {in_trials(n_trials)} of each method were run; where there are fewer, the cell "
        "says so."
    )
    return [
        f"# {title}",
        _DATA,
        *about,
        f"{_SELECTION} {trials}",
        introduction,
        "## Does the paper hold here?",
        f"{claims_counted(claimed)} {HOW_JUDGED}",
        claims_table(claimed),
    ]


def depth_cell(reading: Reading | None) -> str:
    """Return the depths of the trials: one, or the range from smallest to largest.

    >>> depth_cell(Reading({}, {}, {0: 2, 1: 4, 2: 2}))
    '2 to 4'
    """
    if reading is None:
        return ""
    least, largest = min(reading.depth.values()), max(reading.depth.values())
    return f"{least}" if least == largest else f"{least} to {largest}"


def _comparable(readings: Readings, size: int, method: str) -> list[Arm]:
    """Return the arms of a method with the most trials at a size, by singleton weight.

    Trials differ more than singleton weights do, so a mean over fewer trials is not comparable.
    """
    n_trials = {
        arm: len(reading.test)
        for (at, arm), reading in readings.items()
        if at == size and arm.method == method
    }
    most = max(n_trials.values(), default=0)
    complete = [arm for arm, n in n_trials.items() if n == most]
    return sorted(complete, key=lambda arm: arm.singleton_weight)


def _by_cell(finished: Iterable[Finished]) -> dict[tuple[int, Arm], dict[int, Result]]:
    cells: dict[tuple[int, Arm], dict[int, Result]] = {}
    for run in finished:
        settings = run.settings
        # A computed weight, such as 3 * 0.1, counts as the rounded weight that was meant.
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


def _one_sided(says: str, cells: Sequence[Cell], sign: int, words: tuple[str, str]) -> Claim:
    run = [Cell(name, mean) for name, mean in cells if mean is not None]
    # With the sign of the claim, differences that support it are above zero.
    turned = [mean._replace(value=sign * mean.value) for _, mean in cells if mean is not None]
    if not run:
        return Claim(says, NOT_RUN, "")
    exceptions = [cell for cell, mean in zip(run, turned, strict=True) if mean.value <= 0]
    n_agree = len(run) - len(exceptions)
    there, against = words
    numbers = [
        f"{there} in {n_agree} of {len(run)}, clearly in {sum(m.is_higher for m in turned)}",
        f"clearly {against} in {sum(m.is_lower for m in turned)}",
        _trials([mean.n_trials for mean in turned]) + _missing(len(cells) - len(run), "cell"),
    ]
    if exceptions:
        numbers.insert(1, f"not {there}: {_listed(exceptions)}")
    return Claim(says, _verdict(n_agree, len(run), len(cells)), "; ".join(numbers))


def _least(readings: Readings, size: int, arms: Sequence[Arm]) -> Arm | None:
    return min(arms, key=lambda arm: mean_of(readings[size, arm].test).value, default=None)


def _verdict(n_agree: int, n_run: int, n_all: int) -> str:
    if n_agree == n_all:
        return "yes"
    return "in part" if 2 * n_agree > n_run else "no"


def _listed(cells: Sequence[Cell]) -> str:
    listed = [f"{name} ({signed(mean)})" for name, mean in cells if mean is not None]
    more = len(listed) - _MOST_EXCEPTIONS
    return ", ".join(listed[:_MOST_EXCEPTIONS]) + (f" and {more} more" if more > 0 else "")


def _trials(counts: Sequence[int]) -> str:
    fewest, most = min(counts), max(counts)
    if most == 1:
        return "1 trial each, which has no interval"
    return f"{most} trials each" if fewest == most else f"{fewest} to {most} trials each"


def _missing(n: int, what: str) -> str:
    return f"; {n} {what}{'' if n == 1 else 's'} not run" if n else ""
