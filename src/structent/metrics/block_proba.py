"""The probabilities of blocks, where those of the classes are more than one asks for."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from structent._typing import FloatArray
from structent.errors import StructureError
from structent.metrics.blocks import block_probabilities
from structent.metrics.rows import checked_columns, checked_proba
from structent.structure import Partition


def block_proba(proba: ArrayLike, partition: Partition, *, classes: Any = None) -> FloatArray:
    """The probability of each block of a partition: the sum over its classes, (n, blocks).

    Of pairs of labels, the partition by one part gives the marginal probabilities of that part.

    Parameters
    ----------
    proba
        The probabilities of the classes, (n, classes), each row summing to 1.
    partition
        The partition; the columns of the result are its blocks, called ``partition.names``.
    classes
        The class of each column of ``proba``; those of the partition in its order, if None.

    Examples
    --------
    >>> from structent import trivial
    >>> pairs = trivial(["hot", "cold"]).product(trivial(["wet", "dry"]))
    >>> heat = Partition.from_mapping({pair: pair[0] for pair in pairs.classes})
    >>> heat.names
    ('hot', 'cold')
    >>> block_proba([[0.5, 0.25, 0.125, 0.125]], heat).tolist()
    [[0.75, 0.25]]
    """
    if not isinstance(partition, Partition):
        raise StructureError(
            f"partition must be a Partition, got {type(partition).__name__}; "
            "structure.levels has those of each level"
        )
    columns = checked_columns(classes, partition.classes)
    checked = checked_proba(proba, len(partition.classes), columns)
    return block_probabilities(checked, partition)
