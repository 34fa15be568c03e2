"""Which partitions carry the gain: the structure against itself with one of them left out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from structent.comparison.progress import OnProgress
from structent.comparison.result import Difference
from structent.errors import StructentError
from structent.estimators.classes import Structure
from structent.significance.run import difference_of
from structent.significance.scoring import scoring_of
from structent.structure import Partition, RandomPartition, trivial


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
    X: Any,  # noqa: N803  scikit-learn's name for a table
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
        As for :func:`~structent.significance.structure_test`; the structure must be fixed.

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
