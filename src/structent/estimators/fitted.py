"""A fitted booster, with all that turns a table into its numbers and its numbers into classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from structent._typing import FloatArray
from structent.estimators.classes import Classes, Labels
from structent.estimators.columns import Columns, FloatTable
from structent.estimators.rows import TrainingRows, row_weights
from structent.estimators.training import Model, Settings


@dataclass(frozen=True, eq=False)
class Encoder:
    """How rows become numbers.

    Attributes
    ----------
    columns
        The columns of the table.
    classes
        The classes of the labels.
    is_one_hot
        Whether categories get columns of their own, where the engine cannot take them.
    """

    columns: Columns
    classes: Classes
    is_one_hot: bool

    @classmethod
    def of(cls, columns: Columns, classes: Classes, settings: Settings) -> Encoder:
        """Return the encoder for the engine of the settings."""
        # XGBoost's vector leaves know no categories.
        return cls(columns, classes, any(columns.is_categorical) and settings.trees == "vector")

    @cached_property
    def is_categorical(self) -> tuple[bool, ...]:
        """Whether each column of the features holds the codes of categories."""
        if self.is_one_hot:
            return (False,) * len(self.columns.source)
        return self.columns.is_categorical

    def features(self, codes: FloatTable) -> FloatTable:
        """Return the features of a table's codes, as the engine takes them."""
        return self.columns.one_hot(codes) if self.is_one_hot else codes

    def rows(
        self, codes: FloatTable, y: Labels, sample_weight: Any, class_weight: Any
    ) -> TrainingRows:
        """Return the rows that have a weight."""
        labels = self.classes.encode(y)
        weights = row_weights(sample_weight, class_weight, labels, self.classes)
        rows = TrainingRows(self.features(codes), labels, weights)
        return rows if weights.all() else rows.take(weights > 0)


@dataclass(frozen=True, eq=False)
class FittedBoosting:
    """A booster and its encoder.

    Attributes
    ----------
    encoder
        How rows become numbers.
    model
        The trained booster.
    scores
        The log loss of the validation rows after every round, empty without such rows.
    block_scores
        The sorted scores of held-out rows, by which answers are calibrated; None without such rows.
    """

    encoder: Encoder
    model: Model
    scores: tuple[float, ...]
    block_scores: FloatArray | None = None

    def logits(self, X: Any, n_threads: int) -> FloatArray:
        """Return the logits of each row, (n, classes), sorted by class."""
        features = self.encoder.features(self.encoder.columns.codes(X))
        return self.encoder.classes.sorted(self.model.margins(features, n_threads))

    def feature_importances(self) -> FloatArray:
        """Return the share of each column in the gain of all splits; all 0 without a split."""
        source = self.encoder.columns.source
        n_columns = len(self.encoder.columns.categories)
        if not self.encoder.is_one_hot:
            source = np.arange(n_columns)
        gains: FloatArray = np.zeros(n_columns)
        np.add.at(gains, source, self.model.gains(len(source)))
        total = gains.sum()
        return gains / total if total > 0 else gains
