"""The blocks of a structure as tensors of Keras's backend: fixed, or drawn for each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np
from keras import ops
from numpy.typing import NDArray

from structent._typing import IntArray
from structent.errors import StructureError
from structent.kernels.layout import Layout
from structent.losses.keras.private import own_metrics
from structent.structure import PartitionSampler, RandomPartition

Tensor: TypeAlias = Any  # a tensor of the backend
Weight: TypeAlias = Any  # a number, or a tensor where it is drawn

_LARGEST_TABLE = 256  # integers per class: 10 MB at 10,000 classes


def compute_dtype() -> str:
    """Return the dtype of all arithmetic: Keras's own, but never a 16-bit one."""
    return "float64" if keras.config.floatx() == "float64" else "float32"


@dataclass(frozen=True)
class View:
    """One partition, prepared for looking up class indices.

    ``block_of`` has the block of each class. ``members`` has the classes of each block, padded with
    -1, (blocks, largest): None if it is cheaper to go through all classes.
    """

    weight: Weight
    block_of: Tensor
    members: Tensor | None = None
    is_padded: bool = False

    @classmethod
    def of(cls, weight: float, block_of: IntArray) -> View:
        """Return the view of a partition whose blocks are numbered from 0."""
        sizes = np.bincount(block_of)
        largest = int(sizes.max())
        row = keras.ops.convert_to_tensor(block_of)
        if 4 * largest > len(block_of) or sizes.size * largest > _LARGEST_TABLE * len(block_of):
            return cls(weight, row)
        members = _padded(block_of, np.full_like(sizes, largest)).reshape(-1, largest)
        return cls(weight, row, keras.ops.convert_to_tensor(members), bool((members < 0).any()))


@dataclass(frozen=True)
class Step:
    """From classes or blocks to coarser blocks: the block of each, and how many there are.

    Blocks that are known beforehand are numbered by size. ``order`` then has the contents of each
    block, padded with -1. ``runs`` has pairs: a number of places, and how many blocks have it.
    """

    weight: Weight
    parent: Tensor
    n_blocks: int
    order: Tensor | None = None
    runs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, weight: float, parent: NDArray[Any]) -> Step:
        """Return the step to blocks that are numbered by size."""
        sizes = np.bincount(parent)
        places = np.full_like(sizes, sizes.max())
        if places.sum() > 4 * len(parent):  # a run is ten operations: up to here padding is cheaper
            places = 2 ** np.ceil(np.log2(sizes)).astype(int)
        width, count = (column.tolist() for column in np.unique(places, return_counts=True))
        return cls(
            weight,
            keras.ops.convert_to_tensor(parent.astype(np.int32)),
            sizes.size,
            keras.ops.convert_to_tensor(_padded(parent, places)),
            tuple(zip(width, count, strict=True)),
        )


@dataclass(frozen=True)
class Blocks:
    """The partitions of a layout: as views for class indices, as chains of steps for distributions.

    In a hierarchy there is one chain, from the finest partition to the coarsest; otherwise each
    partition is a chain by itself.
    """

    n_classes: int
    total_weight: Weight
    singleton_weight: Weight
    views: tuple[View, ...]
    chains: tuple[tuple[Step, ...], ...]
    structure: RandomPartition | None = None  # None where it is drawn

    @classmethod
    def of(cls, structure: RandomPartition) -> Blocks:
        """Return the blocks of a structure."""
        layout = Layout.of(structure)
        rows, weights = layout.local_block_of, layout.weights.tolist()
        pairs = list(zip(weights, rows, strict=True))
        if layout.parents:
            chains: tuple[tuple[Step, ...], ...] = (_chain(weights[::-1], layout.parents),)
        else:
            chains = tuple(_chain([weight], [row]) for weight, row in pairs)
        return cls(
            n_classes=layout.n_classes,
            total_weight=layout.total_weight,
            singleton_weight=layout.singleton_weight,
            views=tuple(View.of(weight, row) for weight, row in pairs),
            chains=chains,
            structure=structure,
        )


class HeldBlocks(keras.metrics.Metric):  # type: ignore[misc]  # Keras has no types
    """The partition that the loss of a sampler holds at the moment.

    It is a metric, because the variables of a model's metrics are inputs of its traced steps, are
    not among its weights, and are not saved. It reports nothing.
    """

    def __init__(self, sampler: PartitionSampler, at_rest: RandomPartition) -> None:
        super().__init__(name="held_partition", dtype=compute_dtype())
        self._sampler = sampler
        self._at_rest = at_rest
        self._n_partitions = max(map(_n_coarse, (sampler.sample(0), at_rest)))
        # Variables made from an array: a traced step fails if it reads them and they are not among
        # its inputs.
        self.block_of = keras.Variable(
            np.zeros((self._n_partitions, at_rest.n_classes), np.int32), trainable=False
        )
        self.weights = keras.Variable(
            np.zeros(1 + self._n_partitions), dtype=self.dtype, trainable=False, autocast=False
        )
        self.rest()

    def draw(self, iteration: int) -> None:
        """Hold the partition of an iteration."""
        drawn = self._sampler.sample(iteration)
        if _n_coarse(drawn) > self._n_partitions:
            raise StructureError(
                "no draw may have more partitions than the first one, "
                f"{self._n_partitions} plus the singletons, got {_n_coarse(drawn)} at iteration "
                f"{iteration}; the arrays of a traced step have a fixed shape"
            )
        self._hold(drawn)
        self.is_drawn = True

    def rest(self) -> None:
        """Hold the structure for evaluation."""
        self._hold(self._at_rest)
        self.is_drawn = False

    def blocks(self) -> Blocks:
        """Return the blocks that are held, with a weight of 0 in places that are not used."""
        n_classes = self._at_rest.n_classes
        held = [(self.weights[1 + t], self.block_of[t]) for t in range(self._n_partitions)]
        return Blocks(
            n_classes=n_classes,
            total_weight=ops.sum(self.weights),
            singleton_weight=self.weights[0],
            views=tuple(View(weight, row) for weight, row in held),
            chains=tuple((Step(weight, row, n_classes),) for weight, row in held),
        )

    def attach(self, model: Any) -> None:
        """Become part of the state of a model."""
        self.detach(model)
        own_metrics(model).append(self)
        if self not in model.metrics:
            self.detach(model)
            raise StructureError(
                "the metrics of the model must include what callbacks add to them; if the model "
                "has its own property metrics, extend super().metrics"
            )

    def detach(self, model: Any) -> None:
        """Stop being part of the state of a model."""
        if self in own_metrics(model):
            own_metrics(model).remove(self)

    def reset_state(self) -> None:
        """Rest: Keras resets metrics at the start of each epoch and of each evaluation."""
        self.rest()

    def result(self) -> dict[str, Tensor]:
        """Return nothing to report."""
        return {}

    def _hold(self, structure: RandomPartition) -> None:
        layout = Layout.of(structure)
        block_of = np.zeros(self.block_of.shape, np.int32)
        weights = np.zeros(self.weights.shape)
        block_of[: layout.n_partitions] = layout.local_block_of
        weights[0] = layout.singleton_weight
        weights[1 : 1 + layout.n_partitions] = layout.weights
        self.block_of.assign(block_of)
        self.weights.assign(weights)


def refuse_gradient(y_pred: Tensor) -> Tensor:
    """Return what was given, but raise if a gradient is taken, in any backend."""
    return ops.custom_gradient(_with_refusal)(y_pred)


def _chain(weights: list[float], parents: Sequence[IntArray]) -> tuple[Step, ...]:
    """Return the steps of partitions from fine to coarse, their blocks numbered by size."""
    steps = []
    number = np.arange(parents[0].size)  # the new number of each class or finer block
    for weight, parent in zip(weights, parents, strict=True):
        moved = np.empty_like(parent)
        moved[number] = parent
        sizes = np.bincount(moved)
        number = np.argsort(np.argsort(sizes, kind="stable"))
        steps.append(Step.of(weight, number[moved]))
    return tuple(steps)


def _padded(block_of: NDArray[Any], places: NDArray[Any]) -> IntArray:
    """Return the contents of each block, padded with -1 to its number of places."""
    sizes = np.bincount(block_of)
    within = np.arange(len(block_of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded = np.full(places.sum(), -1, np.int32)
    padded[np.repeat(np.cumsum(places) - places, sizes) + within] = np.argsort(
        block_of, kind="stable"
    )
    return padded


def _with_refusal(y_pred: Tensor) -> tuple[Tensor, Any]:
    def gradient(*args: Any, **kwargs: Any) -> None:  # noqa: ARG001  as each backend calls it
        raise StructureError(
            "the loss of a sampler must be trained with a schedule, got none; "
            "fit(..., callbacks=[PartitionSchedule(loss)]) draws a partition for each batch"
        )

    return y_pred, gradient


def _n_coarse(structure: RandomPartition) -> int:
    """How many partitions a structure has, not counting the singletons."""
    return sum(not partition.is_singletons for partition in structure.partitions)
