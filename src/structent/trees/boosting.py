"""Boosting: every round grows a tree on the gradient of the structured loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._threads import in_parts
from structent._typing import FloatArray, IndexArray, IntArray
from structent.errors import StructentError
from structent.kernels import cpu, fused
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.trees import rounds, sketch
from structent.trees.forest import Forest, GrowingForest
from structent.trees.growing import (
    BinnedTable,
    Limits,
    Nodes,
    Room,
    RowArray,
    grow_tree,
    prepared,
)
from structent.trees.leaves import BLOCK, add_to_rows, sum_gradients, write_leaves, write_values
from structent.trees.smoothing import Relatives

Margins: TypeAlias = NDArray[np.float32]

_WORTH_A_THREAD = 50_000  # numbers
_DRAWN_ROUNDS, _DRAWN_ROWS = 16, 100_000  # the most rounds and rows that are drawn at once
_KEPT_DRAWS = 32  # each has at most 1.2 MB
# With fewer numbers, threads share no step of a round.
_FEW_NUMBERS = 2 * _WORTH_A_THREAD
_RACE_ROUNDS, _SMOOTHING_RACE_ROUNDS, _RACE_RATE, _RACE_PATIENCE = 40, 80, 0.3, 6

# Empty arguments of compiled rounds: without leaf smoothing, and without validation rows.
_NO_RELATIVES = (
    np.empty((0, 0), np.int32), np.empty(0), np.empty(0), np.empty((0, 0)), np.empty((0, 0)),
)  # fmt: skip
_NOBODY = rounds.Held(
    np.empty((0, 0), np.uint8), np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0),
    np.empty((0, 0), np.float32), np.empty(0, np.float32), np.empty(0, np.float32), np.empty(0),
)  # fmt: skip


class Examples(NamedTuple):
    """Rows for training or for validation.

    Attributes
    ----------
    table
        Their bins, (n, columns).
    labels
        Their class indices, (n,); from ``n_classes`` on, the numbers of sets of classes.
    weights
        Their weights, (n,).
    """

    table: BinnedTable
    labels: IndexArray
    weights: FloatArray


class Loss(NamedTuple):
    """The loss of a round: its structure, and the sets of classes among the labels."""

    layout: Layout
    sets: CoarseLayouts | None = None


@dataclass(frozen=True)
class Boosting:
    """How to boost.

    Attributes
    ----------
    n_rounds, learning_rate
        The maximum number of trees, and the factor of their values.
    limits
        Where a tree ends.
    subsample, colsample
        The share of the rows, and of the columns, that each tree sees.
    curvature
        What replaces the second derivative: "gradient", "bound" or "fisher".
    split_search
        What splits are searched on: "full", "structured" or "sketch".
    leaf_smoothing
        The share of a class's sums in a leaf that goes to its relatives, from 0 to below 1.
    early_stopping_rounds
        Boosting ends after this many rounds without a better validation loss; None for never.
    seed
        The seed of all random choices.
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
    """Return the trees of all rounds; with early stopping, up to the best round.

    Parameters
    ----------
    rows
        The training rows.
    start
        The logits before the first tree, (classes,).
    loss_of_round
        Returns the loss of a round.
    how
        How to boost.
    validation, plain
        The validation rows, and the loss whose mean over them is computed after every round.
    blocks_of_round
        For the structured search: returns the block of each class in the partition on which the
        splits of a round are searched.
    relatives_of_round
        For smoothed leaves: returns the relatives of each class in a round.
    on_round
        Called after every round with its number and its validation loss.
    """
    under_way = Booster(rows, start, how)
    judge = None if validation is None or plain is None else _Judge(validation, start, plain, how)
    smooths = how.leaf_smoothing > 0
    done = 0
    while done < how.n_rounds and not (judge is not None and judge.has_turned):
        some = [
            _Round(
                loss_of_round(number),
                blocks_of_round(number),
                relatives_of_round(number) if smooths else None,
            )
            for number in range(done, min(done + under_way.n_drawn, how.n_rounds))
        ]
        if under_way.can_compile(some, judge):
            under_way.add_trees(len(some), some[0], judge)
        else:
            under_way.add_one_by_one(some, judge)
        for number in range(done, under_way.trees.n_trees):
            on_round(number, None if judge is None else float(judge.held.mean_losses[number]))
        done = under_way.trees.n_trees
    if judge is None:
        return Boosted(under_way.trees.first(how.n_rounds), (), np.empty(0))
    n_kept = done if how.early_stopping_rounds is None else judge.best_round + 1
    losses = tuple(judge.held.mean_losses[:done].tolist())
    return Boosted(under_way.trees.first(n_kept), losses, judge.shares_of_rows)


class _Round(NamedTuple):
    """The inputs of a round: its loss, the blocks to search splits on, and related classes."""

    loss: Loss
    blocks: IntArray | None
    relatives: Relatives | None


def best_depth(depths: Sequence[int], boosted: Callable[[Boosting], Boosted], how: Boosting) -> int:
    """Return the depth with the lowest validation loss after a short race with large steps.

    Steps are large so that every depth comes close to convergence: after a few small steps the
    deepest trees would always be ahead. If losses are equal, the shallower tree wins.

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
    """Return the smoothing with the lowest validation loss after a race, if it is clearly lowest.

    It must be below the loss of the first candidate, no smoothing, by more than one standard error
    of the mean difference over the rows. Otherwise few validation rows would often choose some
    smoothing by chance, even if no two classes are alike. The race is longer than the one for the
    depth, because smoothed leaves need more rounds.

    Parameters
    ----------
    smoothings
        The candidates, ascending from 0.
    boosted
        Each boosts on training rows, with validation rows of its own. All rows have equal weight.
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
    """Return the settings for a race."""
    return replace(
        how,
        n_rounds=min(how.n_rounds, n_rounds),
        learning_rate=max(how.learning_rate, _RACE_RATE),
        early_stopping_rounds=_RACE_PATIENCE,
    )


class Boosted(NamedTuple):
    """The result of boosting.

    Attributes
    ----------
    forest
        The trees.
    losses
        The validation loss after every round.
    shares_of_rows
        What each validation row adds to the lowest of these losses; empty without such rows.
    """

    forest: Forest
    losses: tuple[float, ...]
    shares_of_rows: FloatArray


class Booster:
    """The state of boosting: the trees so far, and the logits of the rows."""

    def __init__(self, rows: Examples, start: FloatArray, how: Boosting) -> None:
        self._rows, self._how = rows, how
        # Weights are scaled by a power of two, which changes no digit: sums of huge weights would
        # overflow, and sums of tiny ones would underflow.
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
        self.trees = GrowingForest(len(start))

    def add_tree(
        self, loss: Loss, blocks: IntArray | None = None, relatives: Relatives | None = None
    ) -> None:
        """Grow the next tree, and add its values to the logits of all rows."""
        how, (n_rows, n_classes) = self._how, self._margins.shape
        n_columns = self._rows.table.bins.shape[1]
        drawn = _Draw.of(self.trees.n_trees, _Chance.of(how), n_rows, n_columns, n_classes)
        fused.gradient_and_curvature(
            self._margins, self._rows.labels, self._weights, loss.layout,
            curvature=how.curvature, gradient=self._gradient,
            hessian=self._hessian if self._hessian.size else None,
            losses=self._losses, n_threads=how.n_threads, coarse=loss.sets,
        )  # fmt: skip
        table, is_signed = self._rows.table, self._write_statistics(blocks, drawn.direction)
        if len(drawn.columns) < n_columns:
            table = table.take(drawn.columns)
        nodes = grow_tree(
            table, self._statistics, drawn.seen, self._limits, self._room,
            n_classes, how.n_threads, is_signed=is_signed,
        )  # fmt: skip
        values = self.trees.add(nodes, drawn.columns, -self._exponent)
        self._write_values(nodes, drawn.seen, relatives, values)
        if len(drawn.others):
            bins = self._rows.table.bins
            self.trees.add_last_to(self._margins, bins, how.n_threads, drawn.others)

    def add_one_by_one(self, some: Sequence[_Round], judge: _Judge | None) -> None:
        """Grow several trees, step by step from Python; fewer if training stops early."""
        for each in some:
            self.add_tree(*each)
            if judge is not None:
                judge.add_last(self.trees)
                if judge.has_turned:
                    return

    def can_compile(self, some: Sequence[_Round], judge: _Judge | None) -> bool:
        """Whether :meth:`add_trees` can do these rounds: one thread, and equal inputs for all."""
        how, (n_rows, n_classes) = self._how, self._margins.shape
        n_columns = self._rows.table.bins.shape[1]
        is_small = n_rows * max(n_columns, n_classes) < _FEW_NUMBERS
        has_sets = some[0].loss.sets is not None or (judge is not None and judge.has_sets)
        return (
            (how.n_threads == 1 or is_small)
            and how.colsample >= 1
            and not has_sets
            and some[0].blocks is None
            and all(each.loss is some[0].loss for each in some)
            and all(each.relatives is some[0].relatives for each in some)
        )

    def add_trees(self, n_trees: int, each: _Round, judge: _Judge | None) -> None:
        """Grow several trees in one compiled call; fewer if training stops early."""
        how, (n_rows, n_classes) = self._how, self._margins.shape
        n_columns = self._rows.table.bins.shape[1]
        drawn = _drawn_rounds(
            self.trees.n_trees, n_trees, _Chance.of(how), n_rows, n_columns, n_classes
        )
        is_sketch = how.split_search == "sketch"
        self._make_statistics(None, is_sketch=is_sketch)
        growth = prepared(
            self._rows.table, self._statistics, np.empty(n_rows, np.int32), self._limits,
            self._room, n_classes, is_signed=not is_sketch and not self._hessian.size,
        )  # fmt: skip
        rows = rounds.Rows(
            self._rows.labels, self._weights, self._margins, self._gradient, self._hessian,
            self._losses, self._leaf_of,
        )  # fmt: skip
        held, plain = (_NOBODY, each.loss) if judge is None else (judge.held, judge.loss)
        way = rounds.Way(
            how.learning_rate, self._limits.reg_lambda,
            0.0 if each.relatives is None else how.leaf_smoothing, -self._exponent,
            fused.CURVATURES[how.curvature] if self._hessian.size else cpu.NO_CURVATURE,
            self.trees.n_trees, 0 if judge is None else judge.best_round,
            how.n_rounds if how.early_stopping_rounds is None else how.early_stopping_rounds,
        )  # fmt: skip
        trees = self.trees.room_for(n_trees, len(growth.nodes.left))
        relatives = _NO_RELATIVES if each.relatives is None else each.relatives.arrays
        n_done, best_round = rounds.add_rounds(
            rows, held, each.loss.layout.arrays, plain.layout.arrays, relatives,
            # A copy, because growing a tree reorders the rows.
            drawn._replace(seen=drawn.seen.copy()), way, *growth, trees,
        )  # fmt: skip
        self.trees.take(trees, n_done)
        if judge is not None:
            judge.take(n_done, best_round)

    @property
    def n_drawn(self) -> int:
        """How many rounds are drawn at once: one if there are many rows, several if few."""
        return min(max(_DRAWN_ROWS // len(self._margins), 1), _DRAWN_ROUNDS)

    def _write_statistics(
        self, blocks: IntArray | None, direction: NDArray[np.float32] | None
    ) -> bool:
        """Write the statistics for the search of splits; return whether they are gradients only."""
        self._make_statistics(blocks, is_sketch=direction is not None)
        given, is_signed = (self._gradient, self._hessian), False
        write: Callable[..., None]
        if direction is not None:
            write = partial(sketch.write_direction, *given, direction)
        elif blocks is not None:
            write = partial(sketch.write_blocks, *given, blocks)
        else:
            write, is_signed = partial(sketch.write_full, *given), not self._hessian.size
        write(self._statistics, self._how.n_threads)
        return is_signed

    def _make_statistics(self, blocks: IntArray | None, *, is_sketch: bool) -> None:
        """Allocate the statistics for the search of splits."""
        n_rows, n_classes = self._gradient.shape
        if is_sketch:
            shape = sketch.pair_shape(n_rows)
        elif blocks is not None:
            shape = sketch.wide_shape(n_rows, blocks.max() + 1)
        else:
            of_full = sketch.wide_shape if self._hessian.size else sketch.signed_shape
            shape = of_full(n_rows, n_classes)
        if self._statistics.shape != shape:
            self._statistics = np.empty(shape, np.float32)

    def _write_values(
        self, nodes: Nodes, seen: RowArray, relatives: Relatives | None, values: Margins
    ) -> None:
        """Write the values of each leaf, (leaves, classes), and add them to its rows."""
        how, (n_rows, n_classes) = self._how, self._margins.shape
        n_threads = max(1, min(how.n_threads, n_rows * n_classes // _WORTH_A_THREAD))
        write_leaves(nodes.begin, nodes.end, nodes.left, seen, self._leaf_of)
        # Fixed blocks of rows are summed separately, so the result does not depend on threads.
        n_blocks = -(-n_rows // BLOCK)
        sums: NDArray[Any] = np.empty((n_blocks, len(values), 2, n_classes), np.float32)
        in_parts(
            sum_gradients, n_blocks, n_threads, self._leaf_of, self._gradient, self._hessian, sums
        )
        if relatives is not None:
            of_leaves = sums.sum(axis=0, dtype=np.float64)  # (leaves, 2, classes)
            sums = relatives.smoothed(of_leaves, how.leaf_smoothing)[None]
        write_values(sums, self._limits.reg_lambda, how.learning_rate, values)
        in_parts(
            add_to_rows, n_blocks, n_threads, self._leaf_of, values.reshape(-1), n_classes,
            self._margins.reshape(-1),
        )  # fmt: skip


class _Judge:
    """The mean loss of validation rows, as trees are added."""

    def __init__(self, rows: Examples, start: FloatArray, loss: Loss, how: Boosting) -> None:
        if not rows.weights.max(initial=0) > 0:
            raise StructentError("some validation row must have a weight above 0, got none")
        n_rows = len(rows.labels)
        weights = rows.weights / rows.weights.max()  # sums of huge ones would overflow
        losses, least = np.empty((2, n_rows), np.float32)
        self.held = rounds.Held(
            rows.table.bins, rows.labels, np.ones(n_rows, np.float32), weights / weights.sum(),
            _margins(start, n_rows), losses, least, np.empty(how.n_rounds),
        )  # fmt: skip
        self.loss, self._how = loss, how
        self.best_round, self._n_done = 0, 0

    @property
    def has_sets(self) -> bool:
        """Whether the labels of some rows are sets of classes."""
        return self.loss.sets is not None

    @property
    def has_turned(self) -> bool:
        """Whether early stopping ends training: no better loss for the allowed number of rounds."""
        patience = self._how.early_stopping_rounds
        return patience is not None and self._n_done - 1 - self.best_round >= patience

    @property
    def shares_of_rows(self) -> FloatArray:
        """What each row adds to the mean loss of the best round."""
        shares: FloatArray = self.held.least * self.held.shares
        return shares

    def add_last(self, trees: GrowingForest) -> None:
        """Add the last tree to the logits of the validation rows, and record their loss."""
        held, number, n_threads = self.held, self._n_done, self._how.n_threads
        trees.add_last_to(held.margins, held.bins, n_threads)
        fused.gradient_and_curvature(
            held.margins, held.labels, held.ones, self.loss.layout, losses=held.losses,
            n_threads=n_threads, coarse=self.loss.sets,
        )  # fmt: skip
        held.mean_losses[number] = rounds.weighted_sum(held.losses, held.shares)
        is_best = number == 0 or held.mean_losses[number] < held.mean_losses[self.best_round]
        if is_best:
            held.least[:] = held.losses
        self.take(1, number if is_best else self.best_round)

    def take(self, n_trees: int, best_round: int) -> None:
        """Count more trees whose losses are written, and set the best round so far."""
        self._n_done += n_trees
        self.best_round = best_round


def _margins(start: FloatArray, n_rows: int) -> Margins:
    return np.tile(start.astype(np.float32), (n_rows, 1))


class _Draw(NamedTuple):
    """The random choices of a round: the rows and columns that a tree sees, and the direction.

    Attributes
    ----------
    seen, others
        The rows that the tree is grown on, and the others.
    columns
        The columns that may split it.
    direction
        The direction along which a sketch takes the gradient, (classes,).
    """

    seen: RowArray
    others: IndexArray
    columns: IndexArray
    direction: NDArray[np.float32] | None

    @classmethod
    def of(cls, number: int, chance: _Chance, n_rows: int, n_columns: int, n_classes: int) -> _Draw:
        """Return the draw of a round, a function of its number."""
        rng = np.random.default_rng((chance.seed, number))
        seen, others = _sampled_rows(n_rows, chance.subsample, rng)
        columns = _sampled_columns(n_columns, chance.colsample, rng)
        direction = sketch.random_direction(n_classes, rng) if chance.is_sketch else None
        return cls(seen, others, columns, direction)


class _Chance(NamedTuple):
    """The settings that determine the draws of all rounds."""

    seed: int
    subsample: float
    colsample: float
    is_sketch: bool

    @classmethod
    def of(cls, how: Boosting) -> _Chance:
        return cls(how.seed, how.subsample, how.colsample, how.split_search == "sketch")


@lru_cache(maxsize=_KEPT_DRAWS)
def _drawn_rounds(
    first: int, n_rounds: int, chance: _Chance, n_rows: int, n_columns: int, n_classes: int
) -> rounds.Drawn:
    """Return the draws of some rounds for compiled code.

    They are cached, because the fits of a study draw the same: candidates have the same seed and
    number of rows. With few rows a draw takes a third of the time of a round.
    """
    draws = [
        _Draw.of(number, chance, n_rows, n_columns, n_classes)
        for number in range(first, first + n_rounds)
    ]
    directions = [draw.direction for draw in draws if draw.direction is not None]
    return rounds.Drawn(
        np.concatenate([draw.seen for draw in draws]),
        np.cumsum([0, *(len(draw.seen) for draw in draws)]),
        np.concatenate([draw.others for draw in draws]),
        np.cumsum([0, *(len(draw.others) for draw in draws)]),
        draws[0].columns,
        np.array(directions) if directions else np.empty((0, 0), np.float32),
    )


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
