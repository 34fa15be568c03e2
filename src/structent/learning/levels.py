"""A structure of a set number of levels, learned from rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from structent._checks import checked_integer
from structent._typing import FloatArray, Label
from structent.learning.rows import FEWEST_FOLDS, FoldedRows
from structent.structure import Partition, RandomPartition, structure_from_confusion, trivial
from structent.structure.learned import MOST_LEVELS
from structent.structure.levels import CLASS_LEVEL


@dataclass(frozen=True)
class LearnedStructure:
    """What stands for a structure that is yet to be learned, from the training rows at hand.

    :func:`structent.comparison.compare` takes it in place of a structure, and learns one in every
    fold. The levels are always ``"level 1"`` to ``"level n"`` and ``"class"``.

    Parameters
    ----------
    n_levels
        How many levels beside the classes; K classes have no more than K - 2.
    cv
        The folds of the out-of-fold confusion.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression
    >>> X = np.array([[place + 0.1 * i] for place in (0, 1, 8, 9) for i in range(6)])
    >>> y = np.repeat(["oak", "ash", "rose", "lily"], 6)
    >>> learned = LearnedStructure(n_levels=1).of_rows(StructuredLogisticRegression(), X, y)
    >>> learned.levels["level 1"][0].blocks
    (('ash', 'oak'), ('lily', 'rose'))
    """

    n_levels: int = 3
    cv: int = 5

    def __post_init__(self) -> None:
        checked_integer(self.n_levels, "n_levels", at_least=1, at_most=MOST_LEVELS)
        checked_integer(self.cv, "cv", at_least=FEWEST_FOLDS, at_most=MOST_LEVELS)

    def of_rows(
        self, estimator: Any, X: Any, y: Any, *, classes: Iterable[Any] | None = None,
        groups: Any = None, random_state: Any = 0,
    ) -> RandomPartition:  # fmt: skip
        """Return the structure of these rows, for all ``classes``, those without a row, too."""
        rows = FoldedRows.of(
            X, y, self.cv, groups=groups, random_state=random_state, classes=classes
        )
        confusion = rows.out_of_fold_confusion(estimator)
        return structure_of_levels(confusion, rows.classes, self.n_levels)


def structure_of_levels(
    confusion: FloatArray, classes: tuple[Label, ...], n_levels: int
) -> RandomPartition:
    """Return as many levels as classes allow, whichever classes have rows.

    A class without rows is a block of its own in every cut: nothing is known of it. Where that
    leaves fewer cuts than levels, the finest levels are singletons.
    """
    n_cuts = min(n_levels, len(classes) - 2)
    present = confusion.sum(axis=1) > 0
    if n_cuts < 1 or not present.any():
        return trivial(classes)
    seen = [label for label, is_there in zip(classes, present, strict=True) if is_there]
    alone = [[label] for label, is_there in zip(classes, present, strict=True) if not is_there]
    among = structure_from_confusion(confusion[np.ix_(present, present)], seen, n_levels=n_cuts)
    cuts = [
        Partition.from_blocks([*cut.blocks, *alone], classes=classes)
        for cut in among.partitions[:-1]
    ]
    singletons = Partition.singletons(classes)
    cuts += [singletons] * (n_cuts - len(cuts))
    names = [f"level {number}" for number in range(1, n_cuts + 1)]
    return RandomPartition([*cuts, singletons], levels=[*names, CLASS_LEVEL])
