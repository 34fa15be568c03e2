"""The permutation test of a structure against its scrambled copies."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t

from structent._checks import checked_integer
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.structure import Partition, RandomPartition, trivial
from structent.structure.samplers import Structure
from structent.studies.comparison import CONFIDENCE, Difference, paired_difference
from structent.studies.orbit import Orbit, Scrambled, checked_scrambled, draw_copies
from structent.studies.progress import OnProgress
from structent.studies.scoring import Scoring, scoring_of
from structent.studies.significance import PValue, StructureTest, as_good_as, p_value_of

_MOST_PERMUTATIONS = 100_000


def structure_test(  # noqa: PLR0913  a question has many sides
    estimator: Any,
    X: Any,
    y: Any,
    structure: Structure,
    *,
    groups: Any = None,
    n_permutations: int = 199,
    level: float = 0.05,
    stop_after: int | None = 10,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
    keep_in: str | os.PathLike[str] | None = None,
    on_progress: OnProgress = lambda _what, _done, _total: None,
) -> StructureTest:
    r"""Return whether a structure helps more than the same structure with its classes scrambled.

    The paper's Experiment 1B as a permutation test. A scrambled copy has the same blocks, sizes and
    weights, and no meaning. If the structure had none either, its cross-validated log loss would
    stand anywhere among those of its copies:

    .. math:: p = \frac{1 + \#\{\text{copies as good or better}\}}{1 + \#\{\text{copies drawn}\}}

    Copies are drawn without replacement from the different structures that scrambling can give, all
    of them if there are fewer than asked for (:func:`~structent.studies.orbit.draw_copies`).
    All are trained on the same folds. Ties count against the structure. Where h = ``stop_after``
    copies are as good as the structure, no more are looked at, and p = h / l at the l-th copy
    (:func:`~structent.studies.significance.p_value_of`). The answer hangs on the seed alone, never
    on ``n_jobs``.

    Beside it stands the direct question, whether the structure helps against none at all, by the
    corrected t-test for repeated cross-validation (Nadeau and Bengio, 2003).

    Parameters
    ----------
    estimator
        A classifier with the parameter ``structure``, or a pipeline with one; its ``weights`` are
        the same for all structures. Or a function that takes a structure and returns its loss in
        each fold, the lower the better; ``X`` and ``y`` are then None, and ``n_folds`` says how
        many of its losses make one cross-validation.
    X, y
        A table or array, (n, columns), and the label of each row, (n,).
    structure
        A random partition or a sampler of structent, products and mixes among them; of
        spanning-tree partitions the graph is scrambled.
    groups
        Rows of one group share a fold, (n,), where rows belong together.
    n_permutations
        How many scrambled copies to draw; ``1 / level - 1`` at the least.
    level
        The level of significance asked for.
    stop_after
        After how many copies as good as the structure to stop; None to look at all.
    n_folds, n_repeats
        Folds of the cross-validation, and its repeats with other folds.
    seed
        Seeds folds, copies, and the estimator where its ``random_state`` is None.
    n_jobs
        How many copies to train at a time, in threads; all processors if None.
    keep_in
        A file of JSON lines for the losses. A test that is broken off goes on from there, and
        structures that were scored are not scored again. A function needs a file of its own.
    on_progress
        Called with what is being done, how much is done, and how much there is.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression, circular
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(8, size=80)
    >>> angle = 2 * np.pi * y / 8 + rng.normal(scale=0.6, size=80)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> circle = circular(range(8), width=2, singleton_weight=0.2)
    >>> model = StructuredLogisticRegression()
    >>> found = structure_test(model, X, y, circle, n_permutations=19, n_folds=3, n_jobs=1)
    >>> found.p_value, found.finding
    (0.05, 'helps')
    """
    start = time.perf_counter()
    asked = checked_scrambled(structure)
    checked_integer(n_permutations, "n_permutations", at_least=1, at_most=_MOST_PERMUTATIONS)
    if stop_after is not None:
        checked_integer(stop_after, "stop_after", at_least=1, at_most=_MOST_PERMUTATIONS)
    if isinstance(level, bool) or not isinstance(level, float) or not 0 < level < 1:
        raise StructentError(f"level must be a number between 0 and 1, got {level!r}")
    scoring = scoring_of(
        estimator, X, y, asked, groups=groups, n_folds=n_folds, n_repeats=n_repeats,
        seed=seed, n_jobs=n_jobs, keep_in=keep_in,
    )  # fmt: skip
    orbit = _drawn(asked, n_permutations, seed)
    losses, without = scoring.losses_of([asked, trivial(asked.classes)])
    p, null = _permuted(scoring, orbit, losses, stop_after, on_progress)
    against_none = difference_of(losses - without, n_folds)
    return StructureTest(
        asked, p, level, orbit.size, losses, without, null,
        difference_of(losses - null.mean(axis=0), n_folds), against_none,
        one_sided_p_value(against_none), time.perf_counter() - start, seed,
    )  # fmt: skip


def difference_of(per_fold: FloatArray, n_folds: int) -> Difference:
    """Return a paired difference with its corrected interval, which has no bounds for one fold."""
    if len(per_fold) > 1:
        return paired_difference(per_fold, n_folds)
    return Difference(per_fold, float(per_fold[0]), -np.inf, np.inf)


def one_sided_p_value(difference: Difference) -> float:
    """Return the chance of a difference as low, if there were none, by the corrected t-test.

    It is below .025 exactly where the whole 95 % interval is below 0.

    Examples
    --------
    >>> per_fold = np.array([-0.03, -0.01, -0.02, 0.0, -0.04])
    >>> round(one_sided_p_value(difference_of(per_fold, 5)), 4)
    0.0662
    """
    freedom = len(difference.per_fold) - 1
    if freedom == 0:
        return float("nan")
    error = difference.half_width / t.ppf(0.5 + CONFIDENCE / 2, freedom)
    if error == 0:  # all folds alike: no spread to compare the mean with
        return float(np.heaviside(difference.mean, 0.5))
    return float(t.cdf(difference.mean / error, freedom))


def _drawn(structure: Scrambled, n_permutations: int, seed: int) -> Orbit:
    orbit = draw_copies(structure, n_permutations, np.random.default_rng(seed))
    if not orbit.copies:
        raise StructentError(
            "there must be a scrambled copy that differs from the structure, got one that is the "
            "same however its classes are scrambled; no permutation can test it"
        )
    return orbit


def _permuted(
    scoring: Scoring, orbit: Orbit, losses: FloatArray, stop_after: int | None,
    on_progress: OnProgress,
) -> tuple[PValue, FloatArray]:  # fmt: skip
    """Return the p-value, and the losses of the copies that it was counted from."""
    null, as_good = list[FloatArray](), list[bool]()
    on_progress("scrambled copies", 0, len(orbit.copies))
    with closing(scoring.losses_of(orbit.copies)) as scored:
        for of_copy in scored:
            null.append(of_copy)
            as_good += as_good_as(of_copy.mean(keepdims=True), float(losses.mean()))
            on_progress("scrambled copies", len(null), len(orbit.copies))
            if sum(as_good) == stop_after:
                break
    return p_value_of(as_good, stop_after=stop_after), np.array(null)


@dataclass(frozen=True, eq=False)
class PartitionGain:
    """What a partition, or a whole level, adds to a structure.

    Attributes
    ----------
    level
        Its level.
    partition
        The partition; None for all partitions of the level.
    weight
        Its weight in the structure.
    difference
        The log loss of the structure minus that of the structure without it, paired over the folds:
        below 0 it helps.
    """

    level: str
    partition: Partition | None
    weight: float
    difference: Difference

    @property
    def name(self) -> str:
        """The level, and what distinguishes the partition within it."""
        if self.partition is None:
            return f"{self.level}: all"
        return f"{self.level}: {', '.join(self.partition.names)}"


def partition_gains(  # noqa: PLR0913  a question has many sides
    estimator: Any,
    X: Any,
    y: Any,
    structure: Structure,
    *,
    groups: Any = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
    keep_in: str | os.PathLike[str] | None = None,
    on_progress: OnProgress = lambda _what, _done, _total: None,
) -> tuple[PartitionGain, ...]:
    """Return what each partition adds to a structure, by leaving it out.

    The weights of the others are divided by their sum. Where a level has several partitions, the
    whole level is left out, too. The singletons stay: without them there may be nothing that tells
    all classes apart. The differences are on the folds of :func:`structure_test` with the same
    seed, with corrected intervals of 95 % each, not for all of them at once.

    Parameters
    ----------
    estimator, X, y, structure, groups, n_folds, n_repeats, seed, n_jobs, keep_in, on_progress
        As for :func:`~structent.studies.structure_test`; the structure must be fixed.

    Examples
    --------
    A function may stand for the estimator: here its loss is the weight of the singletons.

    >>> from structent import circular
    >>> year = circular(range(4), width=2, singleton_weight=0.5)
    >>> gains = partition_gains(lambda s: [s.singleton_weight] * 5, None, None, year)
    >>> [(gain.name, round(gain.difference.mean, 3)) for gain in gains]
    [('width 2: 0+1, 2+3', -0.167), ('width 2: 0+3, 1+2', -0.167), ('width 2: all', -0.5)]
    """
    if not isinstance(structure, RandomPartition):
        raise StructentError(
            "structure must be a RandomPartition, whose partitions can be left out one by one, got "
            f"{type(structure).__name__}"
        )
    scoring = scoring_of(
        estimator, X, y, structure, groups=groups, n_folds=n_folds, n_repeats=n_repeats,
        seed=seed, n_jobs=n_jobs, keep_in=keep_in,
    )  # fmt: skip
    parts = _parts(structure)
    asked = [structure, *(_without(structure, places) for _, places in parts)]
    found = []
    for losses in scoring.losses_of(asked):
        found.append(losses)
        on_progress("partitions left out", len(found) - 1, len(parts))
    whole, *others = found
    return tuple(
        PartitionGain(
            level,
            structure.partitions[places[0]] if len(places) == 1 else None,
            float(structure.weights[list(places)].sum()),
            difference_of(whole - losses, n_folds),
        )
        for (level, places), losses in zip(parts, others, strict=True)
    )


def _parts(structure: RandomPartition) -> list[tuple[str, tuple[int, ...]]]:
    """Return what can be left out: each partition but the singletons, then levels of several."""
    of_level: dict[str, list[int]] = {}
    for place, (level, partition) in enumerate(
        zip(structure.level_of, structure.partitions, strict=True)
    ):
        if not partition.is_singletons:
            of_level.setdefault(level, []).append(place)
    single = [(level, (place,)) for level, places in of_level.items() for place in places]
    several = [(level, tuple(places)) for level, places in of_level.items() if len(places) > 1]
    return [*single, *several]


def _without(structure: RandomPartition, places: tuple[int, ...]) -> RandomPartition:
    kept = [place for place in range(structure.n_partitions) if place not in places]
    weights = np.array(structure.weights[kept])
    if not weights.sum() > 0:
        return trivial(structure.classes)
    return RandomPartition(
        [structure.partitions[place] for place in kept],
        weights / weights.sum(),
        levels=[structure.level_of[place] for place in kept],
    )
