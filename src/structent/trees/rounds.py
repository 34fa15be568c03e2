"""Several rounds of boosting in one compiled call, for one thread.

With few rows, calls from Python take longer than the work of a round. Compiled rounds also let two
fits run side by side in threads, because they do not hold the interpreter's lock. The trees are the
same as in :mod:`structent.trees.boosting`, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import inlined, kernel, within
from structent._typing import FloatArray, IndexArray, IntArray
from structent.kernels import cpu
from structent.trees import sketch
from structent.trees.bins import BinTable
from structent.trees.forest import ONE_ROOT, write_tree
from structent.trees.growing import N_NODES, Growth, RowArray, grow
from structent.trees.leaves import BLOCK, add_to_rows, sum_gradients, write_leaves, write_values
from structent.trees.smoothing import mix
from structent.trees.walking import add_tree_to_some, add_trees

# Numba's cache does not see edits there
DIGEST_OF_CPU = "397cafe6f0fb302a"
DIGEST_OF_SKETCH = "291bc6a903e7d17d"
DIGEST_OF_FOREST = "7afed92cb9602c08"
DIGEST_OF_GROWING = "33a9b7a44b3294d5"
DIGEST_OF_LEAVES = "62ae79cc88ba689a"
DIGEST_OF_SMOOTHING = "46c8f2d11e63aca8"
DIGEST_OF_WALKING = "6e67f26317cd2a96"

Floats: TypeAlias = NDArray[np.float32]
# A structure as the kernel of the loss takes it: see Layout.arrays.
LayoutArrays: TypeAlias = tuple[IntArray, IntArray, IntArray, NDArray[np.bool_], FloatArray, float]


class Rows(NamedTuple):
    """The training rows, and the arrays that are computed from them; see ``Booster``."""

    labels: IndexArray
    weights: Floats
    margins: Floats
    gradient: Floats
    hessian: Floats
    losses: Floats
    leaf_of: NDArray[np.int32]


class Held(NamedTuple):
    """The validation rows; none if there is no early stopping.

    Attributes
    ----------
    bins, labels, ones, shares
        Their bins, labels, weights of 1, and shares of the mean loss.
    margins, losses
        Their logits, and their losses.
    least
        Their losses in the best round.
    mean_losses
        The mean loss after each round, (rounds,); new rounds write their entries.
    """

    bins: BinTable
    labels: IndexArray
    ones: Floats
    shares: FloatArray
    margins: Floats
    losses: Floats
    least: Floats
    mean_losses: FloatArray


class Drawn(NamedTuple):
    """The random choices of some rounds.

    Attributes
    ----------
    seen, first_seen
        The rows that each tree sees, one tree after the other, and where each tree's rows begin.
    others, first_other
        The same for the rows that it does not see.
    columns
        All columns.
    directions
        The directions of the sketches, (rounds, classes); empty for the whole gradient.
    """

    seen: RowArray
    first_seen: IndexArray
    others: IndexArray
    first_other: IndexArray
    columns: IndexArray
    directions: Floats


class Way(NamedTuple):
    """The settings of boosting, as numbers.

    Attributes
    ----------
    learning_rate, reg_lambda, smoothing, gain_exponent, curvature
        See ``Boosting``; gains are multiplied by two to the power of the exponent.
    first_round, best_round, patience
        The number of the first round here, the best round so far, and after how many rounds
        without a better one boosting ends.
    """

    learning_rate: float
    reg_lambda: float
    smoothing: float
    gain_exponent: int
    curvature: int
    first_round: int
    best_round: int
    patience: int


@kernel
def add_rounds(  # noqa: PLR0913, PLR0917  what Numba knows: tuples of arrays
    rows: Any, held: Any, layout: Any, plain: Any, relatives: Any, drawn: Any, way: Any,
    growth: Any, nodes: Any, plan: Any, found: Any, ends: Any, trees: Any,
) -> tuple[int, int]:  # fmt: skip
    """Grow one tree per drawn round; return how many were grown, and the best round.

    ``layout`` is the layout of the loss, ``plain`` the one of the validation loss. ``growth`` to
    ``ends`` come from :func:`structent.trees.growing.prepared`. The smoothing of leaves is 0 if
    there are no ``relatives``. Trees are written to ``trees``.
    """
    best = way.best_round
    for number in range(drawn.first_seen.size - 1):
        seen = drawn.seen[drawn.first_seen[number] : drawn.first_seen[number + 1]]
        _write_gradient(rows, layout, way.curvature)
        _write_statistics(rows, growth.statistics, drawn.directions, number)
        _grow(_with_rows(growth, seen), nodes, plan, found, ends[0], ends[1], ends[2], ends[3])
        n_nodes = plan.counts[N_NODES]
        _write_tree_and_values(number, n_nodes, nodes, seen, rows, relatives, drawn, way, trees)
        others = drawn.others[drawn.first_other[number] : drawn.first_other[number + 1]]
        first_node, n_classes = trees.first_node[number], rows.gradient.shape[1]
        child, n_columns = trees.child[first_node:], growth.bins.shape[1]
        _add_to_some(
            0, others.size, others, trees.step, trees.goes_right.reshape(-1), trees.depth, child,
            trees.values.reshape(-1), growth.bins.reshape(-1), n_columns, n_classes,
            rows.margins.reshape(-1),
        )  # fmt: skip
        if held.labels.size == 0:
            continue
        _add(
            0, held.labels.size, ONE_ROOT, trees.step, trees.goes_right.reshape(-1), trees.depth,
            child, trees.values.reshape(-1), held.bins.reshape(-1), n_columns, n_classes,
            held.margins.reshape(-1),
        )  # fmt: skip
        here = way.first_round + number
        held.mean_losses[here] = _mean_loss(held, plain, n_classes)
        if here == 0 or held.mean_losses[here] < held.mean_losses[best]:
            best = here
            for row in range(held.losses.size):
                held.least[row] = held.losses[row]
        if here - best >= way.patience:
            return number + 1, best
    return drawn.first_seen.size - 1, best


@kernel
def weighted_sum(losses: Any, shares: Any) -> float:
    """Return the sum of the losses times the shares of the rows."""
    total = 0.0
    for row in range(losses.size):
        total += losses[row] * shares[row]
    return total


@inlined
def _write_gradient(rows: Any, layout: Any, curvature: int) -> None:
    _visit(
        rows.margins.reshape(-1), rows.labels, rows.weights, 1.0,
        layout[0], layout[1], layout[2], layout[3], layout[4], layout[5],
        rows.losses, rows.gradient.reshape(-1), rows.hessian.reshape(-1), curvature,
        rows.gradient.shape[1], 1, 0, rows.labels.size,
    )  # fmt: skip


@inlined
def _write_statistics(rows: Any, statistics: Any, directions: Any, number: int) -> None:
    gradient, hessian, n_rows = rows.gradient, rows.hessian, rows.labels.size
    if directions.size:
        _write_along(
            0, n_rows, rows.gradient.reshape(-1), rows.hessian.reshape(-1), directions[number],
            statistics.reshape(-1),
        )  # fmt: skip
    else:
        _write_whole(0, n_rows, gradient, hessian, statistics)


@inlined
def _with_rows(growth: Any, seen: Any) -> Any:
    return Growth(
        seen, growth.spare, growth.bins, growth.first_cell, growth.n_bins, growth.is_categorical,
        growth.has_missing, growth.statistics, growth.n_lanes, growth.share, growth.reg_lambda,
        growth.min_child_weight, growth.histograms,
    )  # fmt: skip


@inlined
def _write_tree_and_values(  # noqa: PLR0913, PLR0917  what Numba knows: tuples of arrays
    number: int, n_nodes: int, nodes: Any, seen: Any, rows: Any, relatives: Any, drawn: Any,
    way: Any, trees: Any,
) -> None:  # fmt: skip
    """Write a tree after the last one, and its leaf values; add these to the logits of its rows."""
    node, leaf, n_classes = (
        trees.first_node[number],
        trees.first_leaf[number],
        rows.gradient.shape[1],
    )
    left, n_leaves = nodes.left[:n_nodes], (n_nodes + 1) // 2
    trees.first_node[number + 1], trees.first_leaf[number + 1] = node + n_nodes, leaf + n_leaves
    _write_tree(
        left, nodes.column, nodes.gain, nodes.goes_left, drawn.columns, way.gain_exponent, node,
        leaf, trees.column, trees.child, trees.goes_left, trees.gain, trees.step,
        trees.goes_right, trees.depth,
    )  # fmt: skip
    _write_leaves(nodes.begin[:n_nodes], nodes.end[:n_nodes], left, seen, rows.leaf_of)
    n_blocks = -(-rows.labels.size // BLOCK)
    sums = np.empty((n_blocks, n_leaves, 2, n_classes), np.float32)
    _sum_gradients(0, n_blocks, rows.leaf_of, rows.gradient, rows.hessian, sums)
    values = trees.values[leaf : leaf + n_leaves]
    if way.smoothing > 0:
        of_leaves, mixed = np.empty((2 * n_leaves, n_classes)), np.empty((2 * n_leaves, n_classes))
        _add_blocks(sums, of_leaves)
        _mix(of_leaves, 1.0 - way.smoothing, way.smoothing, relatives, mixed)
        smoothed = mixed.reshape(1, n_leaves, 2, n_classes)
        _write_values(smoothed, way.reg_lambda, way.learning_rate, values)
    else:
        _write_values(sums, way.reg_lambda, way.learning_rate, values)
    _add_to_rows(0, n_blocks, rows.leaf_of, values.reshape(-1), n_classes, rows.margins.reshape(-1))


@inlined
def _add_blocks(sums: Any, total: Any) -> None:
    """Write the sums of all blocks, (2 leaves, classes)."""
    for line in range(total.shape[0]):
        for c in range(total.shape[1]):
            total[line, c] = 0.0
            for block in range(sums.shape[0]):
                total[line, c] += sums[block, line // 2, line % 2, c]


@inlined
def _mean_loss(held: Any, plain: Any, n_classes: int) -> float:
    none = np.empty(0, np.float32)
    _visit(
        held.margins.reshape(-1), held.labels, held.ones, 1.0,
        plain[0], plain[1], plain[2], plain[3], plain[4], plain[5],
        held.losses, none, none, cpu.NO_CURVATURE, n_classes, 1, 0, held.labels.size,
    )  # fmt: skip
    return _weighted_sum(held.losses, held.shares)


_visit, _grow, _write_tree = within(cpu.visit_rows), within(grow), within(write_tree)
_write_along, _write_whole = within(sketch.write_some_along), within(sketch.write_some_whole)
_write_leaves, _sum_gradients = within(write_leaves), within(sum_gradients)
_write_values, _add_to_rows, _mix = within(write_values), within(add_to_rows), within(mix)
_add, _add_to_some = within(add_trees), within(add_tree_to_some)
_weighted_sum = within(weighted_sum)
