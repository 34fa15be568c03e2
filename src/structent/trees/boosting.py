"""Boosting: round after round a tree on the gradient of the structured loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import kernel
from structent._threads import in_parts
from structent._typing import FloatArray, IndexArray, IntArray
from structent.errors import StructentError
from structent.kernels import fused
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.trees import sketch
from structent.trees.forest import Forest, GrowingForest
from structent.trees.growing import BinnedTable, Limits, Nodes, Room, RowArray, grow_tree
from structent.trees.smoothing import Relatives
from structent.trees.vectors import add_numbers

DIGEST_OF_VECTORS = "f45ee1860b8d88a4"  # Numba's cache does not see edits there

Margins: TypeAlias = NDArray[np.float32]

_BLOCK = 2048  # rows that are summed by themselves, whatever the number of threads
_WORTH_A_THREAD = 50_000  # numbers
_DRAWN_ROUNDS, _DRAWN_ROWS = 16, 100_000  # that are drawn at once, at most
_RACE_ROUNDS, _SMOOTHING_RACE_ROUNDS, _RACE_RATE, _RACE_PATIENCE = 40, 80, 0.3, 6


class Examples(NamedTuple):
    """Rows to learn from, or to be judged by.

    Attributes
    ----------
    table
        Their bins, (n, columns).
    labels
        Their classes, and from the number of classes on their sets of classes, (n,).
    weights
        Their weights, (n,).
    """

    table: BinnedTable
    labels: IndexArray
    weights: FloatArray


class Loss(NamedTuple):
    """The loss of a round: that of its structure, and of the sets of classes among the labels."""

    layout: Layout
    sets: CoarseLayouts | None = None


@dataclass(frozen=True)
class Boosting:
    """How to boost.

    Attributes
    ----------
    n_rounds, learning_rate
        The most trees, and the factor of their values.
    limits
        Where a tree ends.
    subsample, colsample
        The share of the rows, and of the columns, that each tree sees.
    curvature
        What stands for the second derivative: "gradient", "bound" or "fisher".
    split_search
        What splits are searched on: "full", "structured" or "sketch".
    leaf_smoothing
        The share of a class's sums in a leaf that goes to its relatives, from 0 to below 1.
    early_stopping_rounds
        Boosting ends after so many rounds without a better validation loss; None for never.
    seed
        Decides all that is random.
    n_threads
        How many threads to use; the trees do not depend on it.
    """

    n_rounds: int
    learning_rate: float
    limits: Limits
    subsample: float = 1.0
    colsample: float = 1.0
    curvature: str = "gradient"
    split_search: str = "full"
    leaf_smoothing: float = 0.0
    early_stopping_rounds: int | None = None
    seed: int = 0
    n_threads: int = 1


def boost(  # noqa: PLR0913  what may change with every round, one by one
    rows: Examples,
    start: FloatArray,
    loss_of_round: Callable[[int], Loss],
    how: Boosting,
    *,
    validation: Examples | None = None,
    plain: Loss | None = None,
    blocks_of_round: Callable[[int], IntArray | None] = lambda _: None,
    relatives_of_round: Callable[[int], Relatives | None] = lambda _: None,
    on_round: Callable[[int, float | None], None] = lambda _round, _loss: None,
) -> Boosted:
    """Return the trees of all rounds, up to the best one where that is looked for.

    Parameters
    ----------
    rows
        What to learn from.
    start
        The logits before the first tree, (classes,).
    loss_of_round
        Gives the loss of each round.
    how
        How to boost.
    validation, plain
        The rows whose mean loss ``plain`` is taken after every round.
    blocks_of_round
        Gives the block of each class in the partition that the splits of a round are searched on,
        for the structured search.
    relatives_of_round
        Gives the relatives of each class in a round, for smoothed leaves.
    on_round
        Called after every round with its number and its validation loss.
    """
    under_way = Booster(rows, start, how)
    judge = None if validation is None or plain is None else _Judge(validation, start, plain, how)
    for number in range(how.n_rounds):
        relatives = relatives_of_round(number) if how.leaf_smoothing > 0 else None
        under_way.add_tree(loss_of_round(number), blocks_of_round(number), relatives)
        loss = None if judge is None else judge.loss_with_last(under_way.trees)
        on_round(number, loss)
        if judge is not None and judge.has_turned(how.early_stopping_rounds):
            break
    if judge is None:
        return Boosted(under_way.trees.first(how.n_rounds), (), np.empty(0))
    n_trees = under_way.trees.n_trees
    n_kept = n_trees if how.early_stopping_rounds is None else judge.best_round + 1
    forest = under_way.trees.first(n_kept)
    return Boosted(forest, tuple(judge.losses), judge.shares_of_rows)


def best_depth(depths: Sequence[int], boosted: Callable[[Boosting], Boosted], how: Boosting) -> int:
    """Return the depth with the least validation loss after a short race in large steps.

    Steps are large so that every depth comes close to its end: after a few small ones the deepest
    trees would always be ahead. Of equal losses the shallower tree wins.

    Parameters
    ----------
    depths
        The candidates, ascending.
    boosted
        Boosts on the training rows, with validation rows.
    how
        How to boost.
    """
    hasty = _hasty(how, _RACE_ROUNDS)
    ways = [replace(hasty, limits=replace(how.limits, max_depth=depth)) for depth in depths]
    return depths[int(np.argmin([min(boosted(way).losses) for way in ways]))]


def best_smoothing(
    smoothings: Sequence[float],
    boosted: Sequence[Callable[[Boosting], Boosted]],
    how: Boosting,
) -> float:
    """Return the smoothing with the least validation loss after a race, if it is clearly the least.

    It must be below the loss of the first candidate, no smoothing, by more than one standard error
    of the mean difference of the rows. Else few validation rows would often choose some smoothing
    by chance, even where no two classes are alike. The race is longer than that of the depths,
    because smoothed leaves take more rounds.

    Parameters
    ----------
    smoothings
        The candidates, ascending from 0.
    boosted
        Each boosts on training rows, with validation rows of its own. Every row counts alike.
    how
        How to boost.
    """
    hasty = _hasty(how, _SMOOTHING_RACE_ROUNDS)
    of_rows = []
    for smoothing in smoothings:
        raced = [boost_some(replace(hasty, leaf_smoothing=smoothing)) for boost_some in boosted]
        shares = [len(each.shares_of_rows) * each.shares_of_rows for each in raced]
        of_rows.append(np.concatenate(shares))
    best = int(np.argmin([losses.sum() for losses in of_rows]))
    gained = of_rows[0] - of_rows[best]
    n_rows = len(gained)
    standard_error = np.sqrt(n_rows) * gained.std(ddof=1) if n_rows > 1 else np.inf
    return smoothings[best] if gained.sum() > standard_error else smoothings[0]


def _hasty(how: Boosting, n_rounds: int) -> Boosting:
    """Return how to boost in a race."""
    return replace(
        how,
        n_rounds=min(how.n_rounds, n_rounds),
        learning_rate=max(how.learning_rate, _RACE_RATE),
        early_stopping_rounds=_RACE_PATIENCE,
    )


class Boosted(NamedTuple):
    """What boosting gives.

    Attributes
    ----------
    forest
        The trees.
    losses
        The validation loss after every round that was done.
    shares_of_rows
        What each validation row adds to the least of these losses; none without such rows.
    """

    forest: Forest
    losses: tuple[float, ...]
    shares_of_rows: FloatArray


class Booster:
    """Boosting under way: the trees so far, and the logits that they give to the rows."""

    def __init__(self, rows: Examples, start: FloatArray, how: Boosting) -> None:
        self._rows, self._how = rows, how
        # By a power of two, which changes no digit: sums of huge weights would overflow, and those
        # of tiny ones vanish.
        self._exponent = -int(np.frexp(rows.weights.max())[1])
        self._weights = np.ldexp(rows.weights, self._exponent).astype(np.float32)
        self._limits = how.limits.scaled(self._exponent)
        self._margins = _margins(start, len(rows.labels))
        self._gradient = np.empty_like(self._margins)
        # The magnitude of the gradient is taken where it is needed.
        has_hessian = how.curvature != "gradient"
        self._hessian = np.empty(self._margins.shape if has_hessian else (0, 0), np.float32)
        self._losses = np.empty(len(rows.labels), np.float32)
        self._leaf_of = np.empty(len(rows.labels), np.int32)
        self._statistics = np.empty((0, 0, 0), np.float32)
        self._room = Room()
        self._drawn: list[_Draw] = []
        self.trees = GrowingForest(len(start))

    def add_tree(
        self, loss: Loss, blocks: IntArray | None = None, relatives: Relatives | None = None
    ) -> None:
        """Grow the next tree, and add its values to the logits of all rows."""
        how = self._how
        drawn = self._next_draw()
        fused.gradient_and_curvature(
            self._margins, self._rows.labels, self._weights, loss.layout,
            curvature=how.curvature, gradient=self._gradient,
            hessian=self._hessian if self._hessian.size else None,
            losses=self._losses, n_threads=how.n_threads, coarse=loss.sets,
        )  # fmt: skip
        table, is_signed = self._rows.table, self._write_statistics(blocks, drawn.direction)
        if len(drawn.columns) < table.bins.shape[1]:
            table = table.take(drawn.columns)
        nodes = grow_tree(
            table, self._statistics, drawn.seen, self._limits, self._room,
            self._margins.shape[1], how.n_threads, is_signed=is_signed,
        )  # fmt: skip
        values = self.trees.add(nodes, drawn.columns, -self._exponent)
        self._write_values(nodes, drawn.seen, relatives, values)
        if len(drawn.others):
            margins = self._margins[drawn.others]
            bins = self._rows.table.bins[drawn.others]
            self.trees.add_last_to(margins, bins, how.n_threads)
            self._margins[drawn.others] = margins

    def _next_draw(self) -> _Draw:
        """Return what is random in the next round.

        With few rows several rounds are drawn at once: between the other work of a round, a draw
        took nearly twice as long.
        """
        if not self._drawn:
            first, (n_rows, n_classes) = self.trees.n_trees, self._margins.shape
            n_rounds = min(max(_DRAWN_ROWS // n_rows, 1), _DRAWN_ROUNDS)
            n_columns = self._rows.table.bins.shape[1]
            for number in reversed(range(first, first + n_rounds)):
                self._drawn.append(_Draw.of(number, self._how, n_rows, n_columns, n_classes))
        return self._drawn.pop()

    def _write_statistics(
        self, blocks: IntArray | None, direction: NDArray[np.float32] | None
    ) -> bool:
        """Write what splits are searched on; return whether it is the gradient alone."""
        n_rows, n_classes = self._gradient.shape
        given, is_signed = (self._gradient, self._hessian), False
        write: Callable[..., None]
        if direction is not None:
            write = partial(sketch.write_direction, *given, direction)
            shape = sketch.pair_shape(n_rows)
        elif blocks is not None:
            write = partial(sketch.write_blocks, *given, blocks)
            shape = sketch.wide_shape(n_rows, blocks.max() + 1)
        else:
            write, is_signed = partial(sketch.write_full, *given), not self._hessian.size
            shape = (sketch.signed_shape if is_signed else sketch.wide_shape)(n_rows, n_classes)
        if self._statistics.shape != shape:
            self._statistics = np.empty(shape, np.float32)
        write(self._statistics, self._how.n_threads)
        return is_signed

    def _write_values(
        self, nodes: Nodes, seen: RowArray, relatives: Relatives | None, values: Margins
    ) -> None:
        """Write the values of each leaf, (leaves, classes), and add them to its rows."""
        how, (n_rows, n_classes) = self._how, self._margins.shape
        n_threads = max(1, min(how.n_threads, n_rows * n_classes // _WORTH_A_THREAD))
        _write_leaves(nodes.begin, nodes.end, nodes.left, seen, self._leaf_of)
        # Blocks of rows are summed by themselves, so that the number of threads does not show.
        n_blocks = -(-n_rows // _BLOCK)
        sums: NDArray[Any] = np.empty((n_blocks, len(values), 2, n_classes), np.float32)
        in_parts(
            _sum_gradients, n_blocks, n_threads, self._leaf_of, self._gradient, self._hessian, sums
        )
        if relatives is not None:
            of_leaves = sums.sum(axis=0, dtype=np.float64)  # (leaves, 2, classes)
            sums = relatives.smoothed(of_leaves, how.leaf_smoothing)[None]
        _write_values(sums, self._limits.reg_lambda, how.learning_rate, values)
        in_parts(
            _add_to_rows, n_blocks, n_threads, self._leaf_of, values.reshape(-1), n_classes,
            self._margins.reshape(-1),
        )  # fmt: skip


class _Judge:
    """The mean loss of validation rows, as trees are added."""

    def __init__(self, rows: Examples, start: FloatArray, loss: Loss, how: Boosting) -> None:
        if not rows.weights.max(initial=0) > 0:
            raise StructentError("validation rows must have a weight above 0, got none that has")
        self._rows, self._loss, self._n_threads = rows, loss, how.n_threads
        weights = rows.weights / rows.weights.max()  # sums of huge ones would overflow
        self._shares = weights / weights.sum()
        self._margins = _margins(start, len(rows.labels))
        self._ones = np.ones(len(rows.labels), np.float32)
        self._losses = np.empty(len(rows.labels), np.float32)
        self.losses: list[float] = []
        self.shares_of_rows: FloatArray = np.empty(0)
        self.best_round = 0

    def loss_with_last(self, trees: GrowingForest) -> float:
        """Return the mean loss with one more tree, the last."""
        trees.add_last_to(self._margins, self._rows.table.bins, self._n_threads)
        fused.gradient_and_curvature(
            self._margins, self._rows.labels, self._ones, self._loss.layout, losses=self._losses,
            n_threads=self._n_threads, coarse=self._loss.sets,
        )  # fmt: skip
        self.losses.append(float(self._losses @ self._shares))
        is_first = len(self.losses) == 1
        if is_first or self.losses[-1] < self.losses[self.best_round]:
            self.best_round = len(self.losses) - 1
            self.shares_of_rows = self._losses * self._shares
        return self.losses[-1]

    def has_turned(self, patience: int | None) -> bool:
        """Whether the loss has not become better for so many rounds."""
        return patience is not None and len(self.losses) - 1 - self.best_round >= patience


def _margins(start: FloatArray, n_rows: int) -> Margins:
    return np.tile(start.astype(np.float32), (n_rows, 1))


class _Draw(NamedTuple):
    """What is random in a round: the rows and columns that a tree sees, and the direction.

    Attributes
    ----------
    seen, others
        The rows that the tree is grown on, and the others.
    columns
        The columns that it may be split by.
    direction
        What the gradient is multiplied by where splits are searched on a sketch of it, (classes,).
    """

    seen: RowArray
    others: IndexArray
    columns: IndexArray
    direction: NDArray[np.float32] | None

    @classmethod
    def of(cls, number: int, how: Boosting, n_rows: int, n_columns: int, n_classes: int) -> _Draw:
        """Return what is drawn in a round, by its number."""
        rng = np.random.default_rng((how.seed, number))
        seen, others = _sampled_rows(n_rows, how.subsample, rng)
        columns = _sampled_columns(n_columns, how.colsample, rng)
        is_sketch = how.split_search == "sketch"
        direction = sketch.random_direction(n_classes, rng) if is_sketch else None
        return cls(seen, others, columns, direction)


def _sampled_rows(
    n_rows: int, share: float, rng: np.random.Generator
) -> tuple[RowArray, IndexArray]:
    """Return the rows that a tree sees, at least one, and the others."""
    if share >= 1:
        return np.arange(n_rows, dtype=np.int32), np.empty(0, np.int64)
    is_seen = rng.random(n_rows) < share
    is_seen[rng.integers(n_rows)] = True
    return np.flatnonzero(is_seen).astype(np.int32), np.flatnonzero(~is_seen)


def _sampled_columns(n_columns: int, share: float, rng: np.random.Generator) -> IndexArray:
    """Return the columns that a tree sees."""
    n_seen = max(1, round(share * n_columns))
    if n_seen == n_columns:
        return np.arange(n_columns)
    return np.sort(rng.permutation(n_columns)[:n_seen])


@kernel
def _write_leaves(begin: Any, end: Any, left: Any, seen: Any, leaf_of: Any) -> None:
    """Write the leaf of each row, -1 for those that the tree has not seen."""
    leaf_of[:] = -1
    leaf = 0
    for node in range(begin.size):
        if left[node] == 0:
            for r in range(begin[node], end[node]):
                leaf_of[seen[r]] = leaf
            leaf += 1


@kernel
def _sum_gradients(
    first: int, last: int, leaf_of: Any, gradient: Any, hessian: Any, sums: Any
) -> None:
    """Write the sums of gradient and curvature over the rows of each leaf, block by block."""
    n_classes = gradient.shape[1]
    for block in range(first, last):
        sums[block] = 0
        for row in range(block * _BLOCK, min((block + 1) * _BLOCK, leaf_of.size)):
            leaf = leaf_of[row]
            if leaf < 0:
                continue
            g, h, of_row = sums[block, leaf, 0], sums[block, leaf, 1], gradient[row]
            if hessian.size:
                curvature = hessian[row]
                for c in range(n_classes):
                    g[c] += of_row[c]
                    h[c] += curvature[c]
            else:
                for c in range(n_classes):
                    g[c] += of_row[c]
                    h[c] += abs(of_row[c])


@kernel
def _write_values(sums: Any, reg_lambda: float, learning_rate: float, values: Any) -> None:
    """Write the values of each leaf, given its sums of gradient and curvature in every block."""
    for leaf in range(values.shape[0]):
        for c in range(values.shape[1]):
            gradient, curvature = 0.0, 0.0
            for block in range(sums.shape[0]):
                gradient += sums[block, leaf, 0, c]
                curvature += sums[block, leaf, 1, c]
            curvature += reg_lambda
            # Rows without weight have neither gradient nor curvature.
            step = -gradient / curvature if curvature > 0 else 0.0
            values[leaf, c] = learning_rate * step


@kernel
def _add_to_rows(
    first: int, last: int, leaf_of: Any, values: Any, n_classes: int, margins: Any
) -> None:
    """Add the values of their leaf to the logits of the rows in blocks first to last - 1."""
    for row in range(first * _BLOCK, min(last * _BLOCK, leaf_of.size)):
        if leaf_of[row] >= 0:
            leaf = np.int64(leaf_of[row])
            add_numbers(values, leaf * n_classes, n_classes, margins, row * n_classes)
