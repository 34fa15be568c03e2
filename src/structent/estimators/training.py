"""Boosting without its estimator: the settings, the task of an engine, and the fitted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._checks import checked_integer
from structent._optional import load_optional
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.classes import Classes, Labels
from structent.estimators.columns import Columns, FloatTable
from structent.estimators.rows import TrainingRows, ordinary_exponent, row_weights
from structent.structure.samplers import Structure
from structent.structure.targets import LabelSets
from structent.trees.bins import MOST_BINS
from structent.trees.forest import DEEPEST_TREE

# Called after every round with its number and the log loss of the validation rows, if any.
OnRound: TypeAlias = Callable[[int, float | None], None]

DEPTH = 3  # of "auto" where no race chooses it: without validation rows, or with other engines
_LARGEST = 1e37  # close to the largest float32, with room for a sum
CHOICES = {
    "engine": ("structent", "xgboost", "lightgbm"),
    "trees": ("vector", "per_class"),
    "curvature": ("gradient", "bound", "fisher"),
    "split_search": ("auto", "full", "sketch", "structured"),
}


@dataclass(frozen=True)
class Settings:
    """The parameters of the estimator that the engines know, checked."""

    n_estimators: int
    learning_rate: float
    max_depth: int | str
    min_child_weight: float
    reg_lambda: float
    subsample: float
    colsample: float
    engine: str
    trees: str
    curvature: str
    split_search: str
    early_stopping_rounds: int | None
    max_leaves: int | None = None
    max_bins: int | None = None
    n_bags: int = 1
    leaf_smoothing: float | str | None = None

    def __post_init__(self) -> None:
        checked_integer(self.n_estimators, "n_estimators", at_least=1, at_most=2**31 - 1)
        if not _is_auto(self.max_depth):
            given: Any = self.max_depth
            checked_integer(given, "max_depth", at_least=1, at_most=DEEPEST_TREE)
        checked_integer(self.n_bags, "n_bags", at_least=1, at_most=10_000)
        reason = ", because a bin is one byte and missing values need one"
        if self.max_bins is not None:
            checked_integer(self.max_bins, "max_bins", at_least=2, at_most=MOST_BINS, reason=reason)
        if self.max_leaves is not None:
            checked_integer(self.max_leaves, "max_leaves", at_least=2, at_most=2**24)
        if self.early_stopping_rounds is not None:
            rounds = self.early_stopping_rounds
            checked_integer(rounds, "early_stopping_rounds", at_least=1, at_most=2**31 - 1)
        for name in ("min_child_weight", "reg_lambda"):
            _check_number(name, getattr(self, name), "0 or more", lambda v: 0 <= v < np.inf)
        for name in ("learning_rate", "subsample", "colsample"):
            _check_number(name, getattr(self, name), "above 0, up to 1", lambda v: 0 < v <= 1)
        if self.leaf_smoothing is not None and not _is_auto(self.leaf_smoothing):
            wanted = "of at least 0 (none) and below 1, 'auto' or None"
            _check_number("leaf_smoothing", self.leaf_smoothing, wanted, lambda v: 0 <= v < 1)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise StructentError(
                    f"{name} must be {' or '.join(map(repr, choices))}, got {getattr(self, name)!r}"
                )
        self._check_engine()

    def _check_engine(self) -> None:
        """Refuse what the engine cannot do."""
        if self.engine == "structent" and self.trees != "vector":
            raise StructentError(
                "structent's own engine grows vector leaves, got trees='per_class'; set "
                "engine='xgboost' or engine='lightgbm' for one tree per class"
            )
        if self.engine != "structent":
            self._check_other_engine()
        if self.engine == "lightgbm" and self.trees == "vector":
            raise StructentError(
                "LightGBM grows one tree per class, got trees='vector'; set trees='per_class', or "
                "engine='xgboost' for vector leaves"
            )
        if self.split_search == "structured" and self.trees != "vector":
            raise StructentError(
                "split_search='structured' needs vector leaves, got trees='per_class'; one tree "
                "per class knows only one class"
            )

    def _check_other_engine(self) -> None:
        """Refuse what only our own engine can do."""
        for name, allowed in (("split_search", self.split_search != "sketch"),
                              ("max_leaves", self.max_leaves is None),
                              ("max_bins", self.max_bins is None),
                              ("n_bags", self.n_bags == 1),
                              ("leaf_smoothing", not self.leaf_smoothing)):  # fmt: skip
            if not allowed:
                raise StructentError(
                    f"{name}={getattr(self, name)!r} needs engine='structent', got engine="
                    f"{self.engine!r}"
                )

    def settled(self, n_rounds: int, chosen: Chosen) -> Settings:
        """Return the settings of a fit with everything chosen."""
        return replace(self, n_estimators=n_rounds, early_stopping_rounds=None, **chosen._asdict())

    def for_weights_times_two_to(self, exponent: int) -> Settings:
        """Return the settings that give the same trees if all row weights are multiplied."""
        with np.errstate(over="ignore"):
            scaled = np.ldexp([self.min_child_weight, self.reg_lambda], exponent).tolist()
        weight, penalty = (min(value, _LARGEST) if value > 1 / _LARGEST else 0 for value in scaled)
        return replace(self, min_child_weight=weight, reg_lambda=penalty)


class Chosen(NamedTuple):
    """The values that were used, also for settings that are "auto"."""

    max_depth: int
    split_search: str
    leaf_smoothing: float = 0.0


@dataclass(frozen=True, eq=False)
class Training:
    """The task of an engine: rows, loss, starting point and settings.

    Attributes
    ----------
    rows, validation
        The rows to learn from, and the rows that decide when to stop.
    structure
        The structure of the loss.
    split_structure
        The structure that splits are searched on, None for the whole gradient.
    start
        The margins that training starts from, (classes,).
    is_categorical
        Whether each column of the features holds the codes of categories.
    label_sets
        The meaning of label codes beyond the classes; None if all labels are classes.
    leaf_structure
        The structure that says which classes share leaf values, None for no smoothing.
    """

    rows: TrainingRows
    validation: TrainingRows | None
    structure: Structure
    split_structure: Structure | None
    start: FloatArray
    is_categorical: tuple[bool, ...]
    settings: Settings
    seed: int
    n_threads: int
    on_round: OnRound
    label_sets: LabelSets | None = None
    leaf_structure: Structure | None = None

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.start)

    @property
    def unraced(self) -> Chosen:
        """The values that are used if nothing is tried out."""
        depth, search = self.settings.max_depth, self.settings.split_search
        if search == "auto":
            # Better on most tables, and quicker (ARCHITECTURE.md); only our own engine can do it.
            search = "sketch" if self.settings.engine == "structent" else "full"
        smoothing = self.settings.leaf_smoothing
        return Chosen(
            DEPTH if depth == "auto" else int(depth),
            search,
            0.0 if smoothing is None or smoothing == "auto" else float(smoothing),
        )

    def with_ordinary_weights(self) -> Training:
        """Return the same task with row weights whose sums fit into float32.

        Weights, and the settings that are compared with their sums, are multiplied by a power of
        two: that changes no digit. The loss of validation rows is a mean, so no factor matters.
        """
        exponent, held = ordinary_exponent(self.rows.weights), self.validation
        if held is not None:
            held = held.times_two_to(ordinary_exponent(held.weights))
        return replace(
            self,
            rows=self.rows.times_two_to(exponent),
            validation=held,
            settings=self.settings.for_weights_times_two_to(exponent),
        )


class Model(Protocol):
    """A trained booster, whichever engine it comes from.

    Attributes
    ----------
    start
        The margins that training started from, (classes,).
    """

    start: FloatArray

    @property
    def n_rounds(self) -> int:
        """How many rounds it has."""

    def margins(self, features: FloatTable, n_threads: int) -> FloatArray:
        """Return the logits of each row, (n, classes)."""

    def gains(self, n_columns: int) -> FloatArray:
        """Return how much all splits of each column gained."""

    def to_bytes(self) -> bytes:
        """Return the booster in the engine's own format."""


class Trained(NamedTuple):
    """The result of an engine: the booster, and the values that were chosen."""

    model: Model
    chosen: Chosen


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
        Whether categories become columns of 0 and 1, because the engine does not accept them.
    """

    columns: Columns
    classes: Classes
    is_one_hot: bool

    @classmethod
    def of(cls, columns: Columns, classes: Classes, settings: Settings) -> Encoder:
        """Return the encoder for the engine of the settings."""
        # XGBoost's vector leaves do not support categories.
        is_one_hot = settings.engine == "xgboost" and settings.trees == "vector"
        return cls(columns, classes, any(columns.is_categorical) and is_one_hot)

    @cached_property
    def is_categorical(self) -> tuple[bool, ...]:
        """Whether each column of the features holds the codes of categories."""
        if self.is_one_hot:
            return (False,) * len(self.columns.source)
        return self.columns.is_categorical

    @property
    def n_categories(self) -> tuple[int | None, ...]:
        """How many categories each column of the features has, None for a column of numbers."""
        if self.is_one_hot:
            return (None,) * len(self.columns.source)
        return tuple(None if each is None else len(each) for each in self.columns.categories)

    def features(self, codes: FloatTable) -> FloatTable:
        """Return the features of a table's codes, in the form that the engine accepts."""
        return self.columns.one_hot(codes) if self.is_one_hot else codes

    def rows(
        self,
        codes: FloatTable,
        y: Labels,
        sample_weight: Any,
        class_weight: Any,
        groups: NDArray[Any] | None = None,
    ) -> TrainingRows:
        """Return the rows that have a weight."""
        labels = self.classes.encode(y)
        weights = row_weights(sample_weight, class_weight, labels, self.classes)
        rows = TrainingRows(self.features(codes), labels, weights, groups)
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
    chosen
        The values that were used, also for settings that are "auto".
    block_scores
        The sorted scores of held-out rows that calibrate answers; None without such rows.
    """

    encoder: Encoder
    model: Model
    scores: tuple[float, ...]
    chosen: Chosen
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


def recording(scores: list[float], show: OnRound) -> OnRound:
    """Return a callback that keeps and shows the log loss of every round."""

    def on_round(number: int, log_loss: float | None) -> None:
        if log_loss is not None:
            scores.append(float(log_loss))
        show(number, log_loss)

    return on_round


@contextmanager
def round_progress(n_rounds: int, *, shown: bool, what: str = "boosting") -> Iterator[OnRound]:
    """Yield the callback of every round, with or without a bar on the terminal."""
    if not shown:
        yield lambda _round, _log_loss: None
        return
    rich = load_optional("rich.progress", extra="cli", purpose="A progress bar")
    columns = (
        *rich.Progress.get_default_columns(),
        rich.TextColumn("{task.completed} rounds"),
        rich.TextColumn("{task.fields[score]}"),
    )
    with rich.Progress(*columns) as bar:
        task = bar.add_task(what, total=n_rounds, score="")

        def on_round(number: int, log_loss: float | None) -> None:
            score = "" if log_loss is None else f"validation log loss {log_loss:.4f}"
            bar.update(task, completed=number + 1, score=score)

        yield on_round


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def _check_number(name: str, value: object, wanted: str, is_right: Callable[[float], bool]) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not is_right(float(value)):
        raise StructentError(f"{name} must be a number {wanted}, got {value!r}")
