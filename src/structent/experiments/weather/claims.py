"""Claims on the weather results, judged by counting the cells of a table that bear them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from structent.experiments.claim import Claim
from structent.experiments.markdown import signed
from structent.experiments.paired import Mean, mean_of
from structent.experiments.weather.results import Arm, Readings, comparable, difference

HOW_JUDGED = (
    'A claim holds ("yes") if the mean over trials goes its way in every cell that it speaks of, '
    'and none of them is missing; "in part" if it does in more than half of those that were run. '
    "A claim on what is best holds in part, too, if nothing else is clearly better. A claim on "
    "gains holds if every step to more rows makes them smaller, and in part if the fewest rows "
    "gain, and more than the most. A cell is clear if it is beyond its 95 % interval (Student's t "
    "over the trials), for each cell by itself: of many cells a few are clear by chance."
)
_MOST_EXCEPTIONS = 6


class Cell(NamedTuple):
    """A cell of a table: what it is, and its difference, None where it was not run."""

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
    """Return the claim that of all arms of a method one of those named has the least test loss.

    It holds if that is so at enough of the sizes. Where another arm is best, the best of those
    named is compared with it; if no such difference is clear, the claim holds in part.
    """
    found: list[str] = []
    n_agree = n_clear = 0
    for size in sizes:
        arms = comparable(readings, size, named[0].method)
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
        return Claim(says, "not run", "")
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
        return Claim(says, "not run", "")
    n_smaller = sum(values[step] < values[step + 1] for step in range(n_steps))
    holds = "no"
    if values[0] < min(values[-1], 0.0):
        holds = "yes" if n_smaller == len(differences) - 1 else "in part"
    each = ", ".join(f"{signed(mean)} with {size:,} rows" for size, mean in run.items())
    missing = _missing(len(differences) - len(run), "size")
    return Claim(
        says, holds, f"{each}; the gain is smaller after {n_smaller} of {n_steps} steps{missing}"
    )


def counts(claims: Sequence[Claim]) -> str:
    """Return how many claims hold.

    >>> counts([Claim("a", "yes", ""), Claim("b", "no", ""), Claim("c", "yes", "")])
    '3 claims: 2 yes, 0 in part, 1 no, 0 not run.'
    """
    kinds = ("yes", "in part", "no", "not run")
    each = [f"{sum(claim.holds == kind for claim in claims)} {kind}" for kind in kinds]
    return f"{len(claims)} claims: {', '.join(each)}."


def _one_sided(says: str, cells: Sequence[Cell], sign: int, words: tuple[str, str]) -> Claim:
    run = [Cell(name, mean) for name, mean in cells if mean is not None]
    # With the sign of the claim, what it speaks for is above zero.
    turned = [mean._replace(value=sign * mean.value) for _, mean in cells if mean is not None]
    if not run:
        return Claim(says, "not run", "")
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
