"""Codes that are classes or sets of classes, as Keras's backend looks them up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops  # type: ignore[import-untyped]  # Keras has no types

from structent._typing import Label
from structent.kernels.coarse import members_of_sets
from structent.losses.keras.blocks import Blocks, Tensor, Weight
from structent.structure import Targets
from structent.structure.targets import checked_targets


@dataclass(frozen=True)
class CoarseTable:
    """The targets that codes come from, and which classes each set holds, (sets, classes)."""

    targets: Targets
    members: Tensor

    @classmethod
    def of(cls, targets: Targets) -> CoarseTable:
        """Return the table of targets."""
        members = members_of_sets(targets.coarse_sets, len(targets.classes))
        return cls(targets, ops.convert_to_tensor(members))

    @property
    def n_codes(self) -> int:
        """How many codes there are, those of the classes among them."""
        return len(self.targets.sets)

    def true_blocks(self, codes: Tensor, blocks: Blocks) -> Iterator[tuple[Weight, Tensor]]:
        """Yield the weight of each partition, and whether a class is in A_t(C), (n, classes).

        One partition at a time; but the gradient holds them all: O(n x partitions x classes).
        """
        column, n_classes = codes[:, None], blocks.n_classes
        of_sets = ops.take(self.members, ops.maximum(codes - n_classes, 0), axis=0)
        of_classes = ops.equal(ops.arange(n_classes, dtype="int32")[None], column)
        is_member = ops.where(column < n_classes, of_classes, of_sets)
        yield blocks.singleton_weight, is_member
        first = ops.argmax(ops.cast(is_member, "int32"), axis=1)
        for view in blocks.views:
            with_first = ops.equal(ops.take(view.block_of, first, axis=0)[:, None], view.block_of)
            with_others = ops.logical_or(with_first, ops.logical_not(is_member))
            holds = ops.all(with_others, axis=1, keepdims=True)
            yield view.weight, ops.where(holds, with_first, is_member)


def coarse_table(targets: Targets | None, classes: tuple[Label, ...]) -> CoarseTable | None:
    """Return the table of targets that have these classes, None where all of them are classes."""
    if targets is None or not checked_targets(targets, classes).coarse_sets:
        return None
    return CoarseTable.of(targets)


def sets_of(targets: Targets | None) -> list[list[int]] | None:
    """Return what a configuration keeps of targets: their sets, for codes are those of rows."""
    return None if targets is None else [list(members) for members in targets.coarse_sets]


def with_targets(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments from a configuration with targets in place of their sets."""
    if arguments.get("targets") is None:
        return arguments
    classes = arguments["structure"].classes
    sets = *((c,) for c in range(len(classes))), *map(tuple, arguments["targets"])
    return {**arguments, "targets": Targets(np.empty(0, dtype=np.int64), sets, classes)}
