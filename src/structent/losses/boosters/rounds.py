"""Gradient and curvature for a booster in every round, in arrays that are reused."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._threads import available_threads
from structent._typing import IntArray
from structent.errors import LabelError, StructureError
from structent.kernels import fused
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.structure import LabelSets, PartitionSampler, RandomPartition
from structent.structure.targets import checked_label_sets

FloatRows: TypeAlias = NDArray[np.float32]

CURVATURES = (*fused.CURVATURES, "native")


class LabelsAndWeights(NamedTuple):
    """The labels of the rows and their weights, (n,), as the kernel takes them."""

    labels: NDArray[np.int64]
    weights: FloatRows

    @classmethod
    def of(
        cls, labels: NDArray[Any], weights: NDArray[Any] | None, n_classes: int, n_sets: int = 0
    ) -> LabelsAndWeights:
        """Return the labels and weights of a booster's data, where labels are stored as floats."""
        given = np.asarray(labels)
        # Compared before the conversion to integers, in which NaN would be lost.
        is_code = (given >= 0) & (given < n_classes + n_sets) & (given == np.floor(given))
        wrong = np.flatnonzero(~is_code)
        if len(wrong):
            kind, how = ("codes", "_with_blocks") if n_sets else ("class indices", "")
            raise LabelError(
                f"labels must be {kind} between 0 and {n_classes + n_sets - 1}, got "
                f"{given[wrong[0]]} in row {wrong[0]}; structure.encode{how}(labels) gives them"
            )
        as_index = given.astype(np.int64)
        if weights is None or len(weights) == 0:
            return cls(as_index, np.ones(len(as_index), dtype=np.float32))
        return cls(as_index, np.asarray(weights, dtype=np.float32))


class Rounds:
    """Gradient and curvature of the structured loss, round after round.

    Parameters
    ----------
    structure
        The structure, or a sampler, which gives a new one in every round.
    curvature
        One of ``CURVATURES``; "native" is the bound times ``native_factor``.
    native_factor
        Returns the factor of q(1 - q) in the engine's own objective, for k classes.
    first_round
        The number of the first round, if training continues an earlier one.
    n_threads
        How many threads to use; if None, as many as the process may use.
    label_sets
        The meaning of codes beyond the classes; None if all labels are classes.
    """

    def __init__(
        self,
        structure: RandomPartition | PartitionSampler,
        *,
        curvature: str,
        native_factor: Callable[[int], float],
        first_round: int,
        n_threads: int | None,
        label_sets: LabelSets | None,
    ) -> None:
        if not isinstance(structure, RandomPartition | PartitionSampler):
            raise StructureError(
                f"structure must be a RandomPartition or a sampler, got {structure!r}"
            )
        if curvature not in CURVATURES:
            raise StructureError(
                f"curvature must be one of {', '.join(map(repr, CURVATURES))}, got {curvature!r}"
            )
        self.structure = structure
        self.n_classes = len(structure.classes)
        self.curvature = curvature
        self.first_round = first_round
        self.n_threads = available_threads() if n_threads is None else n_threads
        self._native_factor = np.float32(native_factor(self.n_classes))
        self._sets = _sets_of(label_sets, structure)
        self._compiled = None
        if isinstance(structure, RandomPartition):
            self._compiled = _compiled(structure, self._sets)
        self._gradient = self._hessian = np.empty((0, 0), dtype=np.float32)
        self._losses = np.empty(0, dtype=np.float32)
        self._data: Callable[[], Any] | None = None
        self._rows: LabelsAndWeights | None = None

    def rows_of(self, data: Any) -> LabelsAndWeights:
        """Return labels and weights of a DMatrix or Dataset, read once for all rounds."""
        if self._rows is None or self._data is None or self._data() is not data:
            self._rows = self.rows(data.get_label(), data.get_weight())
            self._data = weakref.ref(data)
        return self._rows

    def rows(self, labels: NDArray[Any], weights: NDArray[Any] | None) -> LabelsAndWeights:
        """Return labels and weights as the kernel takes them."""
        return LabelsAndWeights.of(labels, weights, self.n_classes, len(self._sets))

    def structure_of(self, iteration: int) -> RandomPartition:
        """Return the structure of a round."""
        if isinstance(self.structure, RandomPartition):
            return self.structure
        return self.structure.sample(self.first_round + iteration)

    def gradient_and_curvature(
        self, iteration: int, margins: FloatRows, rows: LabelsAndWeights
    ) -> tuple[FloatRows, FloatRows]:
        """Return gradient and curvature, (n, classes); the next round overwrites them."""
        _check_margins(margins, self.n_classes)
        if self._gradient.shape != margins.shape:
            self._gradient, self._hessian = np.empty_like(margins), np.empty_like(margins)
            self._losses = np.empty(len(margins), dtype=np.float32)
        is_native = self.curvature == "native"
        layout, coarse = self._compiled or _compiled(self.structure_of(iteration), self._sets)
        fused.gradient_and_curvature(
            margins,
            *rows,
            layout,
            curvature="bound" if is_native else self.curvature,
            gradient=self._gradient,
            hessian=self._hessian,
            losses=self._losses,
            n_threads=self.n_threads,
            coarse=coarse,
        )
        if is_native:
            np.multiply(self._hessian, self._native_factor, out=self._hessian)
        return self._gradient, self._hessian


def drawn_blocks(
    structure: RandomPartition | PartitionSampler, seed: int, iteration: int
) -> IntArray:
    """Return the block of each class in a partition drawn by weight, (classes,)."""
    if not isinstance(structure, RandomPartition):
        structure = structure.sample(iteration)
    # The partition into one block separates nothing.
    weights = structure.weights * (structure.block_of.max(axis=1) > 0)
    if weights.sum() == 0:
        return np.arange(len(structure.classes), dtype=np.int32)
    rng = np.random.default_rng((seed, iteration))
    blocks: IntArray = structure.block_of[rng.choice(len(weights), p=weights / weights.sum())]
    return blocks


class MeanLoss:
    """The mean structured cross-entropy of a booster's margins, weighted."""

    name = "structured-log-loss"

    def __init__(self, structure: RandomPartition, label_sets: LabelSets | None) -> None:
        if not isinstance(structure, RandomPartition):
            raise StructureError(
                "a metric needs one structure for all rounds, a RandomPartition, got "
                f"{structure!r}; trivial(classes) gives plain log loss"
            )
        self._n_classes = structure.n_classes
        self._sets = _sets_of(label_sets, structure)
        self._compiled = _compiled(structure, self._sets)

    def __call__(self, margins: NDArray[Any], data: Any) -> float:
        """Return the loss of the rows of a DMatrix or Dataset."""
        _check_margins(margins, self._n_classes)
        labels, weights = LabelsAndWeights.of(
            data.get_label(), data.get_weight(), self._n_classes, len(self._sets)
        )
        if len(labels) != len(margins):
            raise StructureError(
                f"the data has {len(labels)} labels but there are margins of {len(margins)} rows"
            )
        layout, coarse = self._compiled
        losses = fused.loss_and_gradient(
            np.ascontiguousarray(margins, dtype=np.result_type(margins, np.float32)),
            labels, layout, gradient=None, coarse=coarse,
        )  # fmt: skip
        return float(np.average(losses.rows, weights=weights))


def _check_margins(margins: NDArray[Any], n_classes: int) -> None:
    if margins.ndim != 2 or margins.shape[1] != n_classes:
        raise StructureError(
            f"structure covers {n_classes} classes but the booster gives margins of shape "
            f"{margins.shape}; set num_class={n_classes} in its parameters"
        )


def _sets_of(
    label_sets: LabelSets | None, structure: RandomPartition | PartitionSampler
) -> tuple[tuple[int, ...], ...]:
    return (
        () if label_sets is None else checked_label_sets(label_sets, structure.classes).coarse_sets
    )


def _compiled(
    structure: RandomPartition, sets: tuple[tuple[int, ...], ...]
) -> tuple[Layout, CoarseLayouts | None]:
    layout = Layout.of(structure)
    return layout, CoarseLayouts.of(layout, sets) if sets else None
