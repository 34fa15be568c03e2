"""Our own engine: trees with vector leaves, grown by :mod:`structent.trees`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from structent._files import json_line
from structent._typing import FloatArray, IntArray
from structent.estimators.columns import FloatTable
from structent.estimators.folds import grouped_folds
from structent.estimators.rows import TrainingRows
from structent.estimators.training import Chosen, Trained, Training
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.losses.boosters.rounds import drawn_blocks
from structent.structure import FixedStructure, RandomPartition, trivial
from structent.structure.samplers import Structure
from structent.trees.bins import Bins
from structent.trees.boosting import (
    Boosted,
    Boosting,
    Examples,
    Loss,
    best_depth,
    best_smoothing,
    boost,
)
from structent.trees.forest import Forest, damaged
from structent.trees.growing import BinnedTable, Limits
from structent.trees.smoothing import Relatives

# The values that "auto" tries.
_DEPTHS = (2, 3, 4, 6, 8)
_SMOOTHINGS = (0.0, 0.3, 0.6, 0.8)
_ENOUGH_ROWS = 1000  # for validation; with fewer, folds of the training rows help to choose
_N_FOLDS = 5
_LONGEST_HEADER = 10**6  # bytes: two numbers for each of up to 10,000 bags


def train(training: Training) -> Trained:
    """Return the trees of the best round."""
    settings = training.settings
    max_bins = None if settings.max_bins is None else int(settings.max_bins)
    bins = Bins.of(training.rows.features, training.is_categorical, max_bins)
    boosted = _boosted(training, bins, training.rows, training.validation)
    how = _how(training)
    if settings.max_depth == "auto" and training.validation is not None:
        depth = best_depth(_DEPTHS, boosted, how)
        how = replace(how, limits=replace(how.limits, max_depth=depth))
    is_smoothing_open = settings.leaf_smoothing == "auto" and training.validation is not None
    if is_smoothing_open and _relatives(training.leaf_structure)(0) is not None:
        races = [boosted, *_races_of_folds(training, bins)]
        how = replace(how, leaf_smoothing=best_smoothing(_SMOOTHINGS, races, how))
    forest = boosted(how, on_round=training.on_round).forest
    chosen = Chosen(how.limits.max_depth, how.split_search, how.leaf_smoothing)
    return Trained(StructentModel([Part(bins, forest)], training.start), chosen)


def mean_of(models: Sequence[Any]) -> StructentModel:
    """Return the model that averages the logits of several models."""
    start = np.mean([model.start for model in models], axis=0)
    return StructentModel([part for model in models for part in model.parts], start)


def from_bytes(
    content: bytes, start: FloatArray, n_categories: Sequence[int | None]
) -> StructentModel:
    """Return the model that ``to_bytes`` wrote, if every index in it is in range."""
    try:
        header, rest = json_line(content, _LONGEST_HEADER)
        sizes = [(int(bins), int(forest)) for bins, forest in header]
    except (ValueError, TypeError, OverflowError):
        raise damaged("they have no header") from None
    flat = [size for pair in sizes for size in pair]
    if not flat or min(flat) < 0 or sum(flat) != len(rest):
        raise damaged("they are longer or shorter than their header says")
    parts, at = [], 0
    for n_bins, n_forest in sizes:
        bins = Bins.from_bytes(rest[at : at + n_bins], len(n_categories))
        of_forest = rest[at + n_bins : at + n_bins + n_forest]
        parts.append(Part(bins, Forest.from_bytes(of_forest, bins.n_columns, len(start))))
        at += n_bins + n_forest
    return StructentModel(parts, start)


class Part(NamedTuple):
    """Trees, and how values become bins."""

    bins: Bins
    forest: Forest


class StructentModel:
    """One or more forests, whose logits are averaged."""

    def __init__(self, parts: Sequence[Part], start: FloatArray) -> None:
        self.parts = tuple(parts)
        self.start = start

    @property
    def n_rounds(self) -> int:
        """How many rounds it has; with several forests, the first one's."""
        return self.parts[0].forest.n_trees

    def margins(self, features: FloatTable, n_threads: int) -> FloatArray:
        """Return the logits of each row, (n, classes)."""
        first, *others = (self._margins_of(part, features, n_threads) for part in self.parts)
        total: FloatArray = first.astype(np.float64)
        for margins in others:
            total += margins
        if others:
            total /= len(self.parts)
        return total

    def _margins_of(self, part: Part, features: FloatTable, n_threads: int) -> Any:
        margins = np.tile(self.start.astype(np.float32), (len(features), 1))
        part.forest.add_to(margins, part.bins.table(features, n_threads), n_threads)
        return margins

    def gains(self, n_columns: int) -> FloatArray:
        """Return how much all splits of each column gained."""
        gains: FloatArray = sum(
            (part.forest.gains(n_columns) for part in self.parts), np.zeros(n_columns)
        )
        return gains

    def to_bytes(self) -> bytes:
        """Return bins and trees of each part as arrays, after a line of JSON with their sizes."""
        contents = [(part.bins.to_bytes(), part.forest.to_bytes()) for part in self.parts]
        header = json.dumps([list(map(len, pair)) for pair in contents])
        return b"".join([header.encode(), b"\n", *(each for pair in contents for each in pair)])


def _boosted(
    training: Training, bins: Bins, rows: TrainingRows, validation: TrainingRows | None
) -> Callable[..., Boosted]:
    """Return a function that boosts on some rows with the settings it is given."""
    examples = partial(_rows, bins=bins, n_threads=training.n_threads)
    return partial(
        boost,
        examples(rows),
        training.start,
        _losses(training),
        validation=None if validation is None else examples(validation),
        plain=_loss(trivial(training.structure.classes), training),
        blocks_of_round=partial(_blocks_of_round, training),
        relatives_of_round=_relatives(training.leaf_structure),
    )


def _races_of_folds(training: Training, bins: Bins) -> list[Callable[..., Boosted]]:
    """Return functions that boost outside each fold of the training rows, if few rows validate.

    A few dozen validation rows are too few to choose the smoothing, so all rows validate in turn.
    """
    rows, validation = training.rows, training.validation
    if validation is None or len(validation.labels) >= _ENOUGH_ROWS or len(rows.labels) < _N_FOLDS:
        return []
    rng = np.random.RandomState(training.seed)
    if rows.groups is None:
        fold_of = rng.permutation(len(rows.labels)) % _N_FOLDS
    else:
        fold_of = grouped_folds(rows.groups, _N_FOLDS, rng)
    held = [fold_of == fold for fold in np.unique(fold_of)]
    if len(held) == 1:  # one group
        return []
    return [_boosted(training, bins, rows.take(~fold), rows.take(fold)) for fold in held]


def _how(training: Training) -> Boosting:
    settings, (max_depth, search, smoothing) = training.settings, training.unraced
    patience = None if training.validation is None else settings.early_stopping_rounds
    return Boosting(
        int(settings.n_estimators),
        settings.learning_rate,
        Limits(
            max_depth,
            None if settings.max_leaves is None else int(settings.max_leaves),
            settings.min_child_weight,
            settings.reg_lambda,
        ),
        settings.subsample,
        settings.colsample,
        settings.curvature,
        search,
        smoothing,
        None if patience is None else int(patience),
        training.seed,
        training.n_threads,
    )


def _rows(rows: TrainingRows, bins: Bins, n_threads: int) -> Examples:
    binned = bins.table(rows.features, n_threads)
    table = BinnedTable.of(binned, bins.n_bins, bins.is_categorical)
    return Examples(table, rows.labels, rows.weights)


def _losses(training: Training) -> Callable[[int], Loss]:
    """Return a function that gives the loss of each round."""
    structure = training.structure
    if isinstance(structure, RandomPartition):
        fixed = _loss(structure, training)
        return lambda _number: fixed
    return lambda number: _loss(structure.sample(number), training)


def _loss(structure: RandomPartition, training: Training) -> Loss:
    layout = Layout.of(structure)
    sets = () if training.label_sets is None else training.label_sets.coarse_sets
    return Loss(layout, CoarseLayouts.of(layout, sets) if sets else None)


def _blocks_of_round(training: Training, number: int) -> IntArray | None:
    """Return the block of each class on which splits are searched, None for the whole gradient."""
    if training.split_structure is None:
        return None
    blocks: Any = drawn_blocks(training.split_structure, training.seed, number)
    return None if blocks.max() + 1 == len(blocks) else blocks


def _relatives(structure: Structure | None) -> Callable[[int], Relatives | None]:
    """Return a function that gives the relatives of each class in a round."""
    if isinstance(structure, FixedStructure):
        structure = structure.structure
    if structure is None or isinstance(structure, RandomPartition):
        fixed = None if structure is None else Relatives.of(structure)
        return lambda _number: fixed
    return lambda number: Relatives.of_draw(structure.sample(number))
