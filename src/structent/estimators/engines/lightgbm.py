"""LightGBM: one tree per class."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.columns import FloatTable
from structent.estimators.rows import TrainingRows
from structent.estimators.training import OnRound, Settings, Trained, Training
from structent.losses.boosters.lightgbm import lightgbm, structured_metric, structured_objective
from structent.structure import trivial
from structent.trees.forest import check_children, damaged

_MOST_LEAVES = 2**17
# The fields of a tree with one number per leaf, and those with one number per split.
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_OF_SPLITS = (
    "split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child",
    "internal_value", "internal_weight", "internal_count",
)  # fmt: skip
_COUNTS = ("leaf_count", "internal_count")  # whole numbers of rows
_MOST_NUMBERS = 10**6  # of a field whose length depends on something else
_MOST_FIELDS = 22  # LightGBM reads no more lines of a tree
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[-+]?[0-9]{1,3})?")
_WHOLE = re.compile(r"-?[0-9]{1,10}")
_PART = re.compile("[^ ]+")


def train(training: Training) -> Trained:
    """Return the booster of the best round."""
    _check_that_something_varies(training.rows)
    training = training.with_ordinary_weights()
    settings = training.settings
    parameters = _parameters(training) | {
        "objective": structured_objective(
            training.structure,
            curvature=settings.curvature,
            n_threads=training.n_threads,
            label_sets=training.label_sets,
        )
    }
    data = _dataset(training.rows, training, parameters)
    validation = []
    if training.validation is not None:
        validation = [_dataset(training.validation, training, parameters, reference=data)]
    booster = lightgbm.train(
        parameters,
        data,
        int(settings.n_estimators),
        valid_sets=validation,
        # Early stopping looks at plain log loss, whatever the structure.
        feval=structured_metric(
            trivial(training.structure.classes), label_sets=training.label_sets
        ),
        callbacks=_callbacks(settings, training.on_round, with_validation=bool(validation)),
    )
    best = booster.best_iteration if booster.best_iteration > 0 else None
    model = LightGBMModel(booster.model_to_string(num_iteration=best), training.start)
    return Trained(model, training.unraced)


def from_bytes(
    content: bytes, start: FloatArray, n_categories: Sequence[int | None]
) -> LightGBMModel:
    """Return the booster that ``to_bytes`` wrote, if every index in it is in range."""
    text = checked_text(content, len(start), len(n_categories))
    try:
        return LightGBMModel(text, start)
    except lightgbm.basic.LightGBMError as error:
        raise StructentError(f"LightGBM cannot read the booster in the file: {error}") from None


def checked_text(content: bytes, n_classes: int, n_features: int) -> str:
    """Return a booster's text, rewritten from what was checked, because LightGBM checks nothing.

    Only the trees are kept, number by number. Names, column bounds and parameters are not needed
    to predict.
    """
    try:
        # Not split into lines: Python knows more ends of lines than LightGBM does.
        trees, end, _ = content.decode("ascii").partition("\nend of trees\n")
        header, *bodies = trees.split("\nTree=")
        if not end or not bodies or len(bodies) % n_classes:
            raise ValueError(f"{len(bodies)} trees of {n_classes} classes")
        _check_header(header, n_classes, n_features)
        texts = [_checked_tree(body, number, n_features) for number, body in enumerate(bodies)]
    except StructentError:
        raise
    except (KeyError, ValueError) as error:
        raise damaged(f"LightGBM's booster is not what it should be ({error})") from None
    lines = (
        "tree", "version=v4", f"num_class={n_classes}", f"num_tree_per_iteration={n_classes}",
        "label_index=0", f"max_feature_idx={n_features - 1}",
        f"feature_names={' '.join(f'Column_{i}' for i in range(n_features))}",
        f"feature_infos={' '.join(['none'] * n_features)}",
        f"tree_sizes={' '.join(str(len(text)) for text in texts)}",
    )  # fmt: skip
    return "\n".join(lines) + "\n\n" + "".join(texts) + "end of trees\n\n"


def _check_header(header: str, n_classes: int, n_features: int) -> None:
    first, *others = header.rstrip("\n").split("\n")
    fields = _fields(others)
    wanted = {
        "version": "v4", "num_class": str(n_classes), "num_tree_per_iteration": str(n_classes),
        "label_index": "0", "max_feature_idx": str(n_features - 1),
    }  # fmt: skip
    if first != "tree" or set(fields) != {*wanted, "feature_names", "feature_infos", "tree_sizes"}:
        raise ValueError("its header has other fields")
    for name, value in wanted.items():
        if fields[name] != value:
            raise ValueError(f"{name} must be {value}, got {fields[name][:60]!r}")


def _checked_tree(body: str, number: int, n_features: int) -> str:
    """Return the text of a tree, after a check that every walk ends and stays inside its arrays."""
    first, *lines = body.rstrip("\n").split("\n")
    fields = _fields(lines)
    if first != str(number) or len(fields) > _MOST_FIELDS or fields["is_linear"] != "0":
        raise ValueError(f"tree {number} does not begin like a tree")
    missing = [name for name in (*_OF_LEAVES, *_OF_SPLITS, "shrinkage") if name not in fields]
    if missing:  # LightGBM would end the process when it looks for the field
        raise ValueError(f"tree {number} has no {missing[0]}")
    (n_leaves,), (n_cat,) = (_whole(fields[name], 1) for name in ("num_leaves", "num_cat"))
    if not (1 <= n_leaves <= _MOST_LEAVES and 0 <= n_cat < n_leaves):
        raise ValueError(f"{n_leaves} leaves and {n_cat} sets of categories")
    counts = dict.fromkeys(_OF_LEAVES, n_leaves) | dict.fromkeys(_OF_SPLITS, n_leaves - 1)
    for name, value in fields.items():
        if value or n_leaves > 1 or name == "leaf_value":  # a single leaf has no more than that
            _check_numbers(name, value, counts.get(name))
    for name in _COUNTS:
        _whole(fields[name], fields[name].count(" ") + 1 if fields[name] else 0)
    left, right = (
        # A leaf is written as -1 - leaf; here leaves are the nodes after those with children.
        np.array([n if n >= 0 else n_leaves - 2 - n for n in _whole(fields[side], n_leaves - 1)],
                 dtype=np.int64)
        for side in ("left_child", "right_child")
    )  # fmt: skip
    check_children(np.arange(n_leaves - 1), left, right, 2 * n_leaves - 1)
    columns = _whole(fields["split_feature"], n_leaves - 1)
    if columns and not 0 <= min(columns) <= max(columns) < n_features:
        raise ValueError("split_feature")
    _check_categories(fields, n_leaves - 1, n_cat)
    lines = [f"{name}={value}" for name, value in fields.items()]
    return "\n".join([f"Tree={number}", *lines]) + "\n\n\n"


def _check_categories(fields: dict[str, str], n_splits: int, n_cat: int) -> None:
    """Refuse sets of categories that reach beyond their array."""
    kinds = _whole(fields["decision_type"], n_splits)
    if any(not 0 <= kind <= 11 for kind in kinds):  # bits: a category, missing left, 0 to 2
        raise ValueError("decision_type")
    thresholds = fields["threshold"].split(" ")
    of_sets = [text for text, kind in zip(thresholds, kinds, strict=False) if kind & 1]
    if any(not 0 <= number < n_cat for text in of_sets for number in _whole(text, 1)):
        raise ValueError("threshold")
    if not n_cat:
        return
    bounds = _whole(fields["cat_boundaries"], n_cat + 1)
    if bounds[0] != 0 or any(low >= high for low, high in pairwise(bounds)):
        raise ValueError("cat_boundaries")
    words = _whole(fields["cat_threshold"], bounds[-1])
    if any(not 0 <= word < 2**32 for word in words):
        raise ValueError("cat_threshold")


def _fields(lines: Sequence[str]) -> dict[str, str]:
    fields = dict(line.split("=") for line in lines)  # a ValueError unless a line has one "="
    if len(fields) < len(lines):
        raise ValueError("a field is there twice")
    return fields


def _check_numbers(name: str, value: str, count: int | None) -> None:
    """Refuse anything but ``count`` finite numbers, or any number of them if it is None.

    A threshold may be infinite: it separates missing values from all others.
    """
    if not re.fullmatch("[a-z_]{1,60}", name):
        raise ValueError(f"the field {name[:60]!r}")
    found = _count(value)
    if found != count if count is not None else found > _MOST_NUMBERS:
        raise ValueError(f"{name} must have {count or 'fewer'} numbers, got {found}")
    for part in _PART.finditer(value):
        if name == "threshold" and part[0] in ("inf", "-inf"):
            continue
        if not _NUMBER.fullmatch(part[0]) or not math.isfinite(float(part[0])):
            raise ValueError(f"{name} must have finite numbers, got {part[0][:60]!r}")


def _whole(value: str, count: int) -> list[int]:
    """Return ``count`` whole numbers."""
    # Counted before they are split, because splitting takes many times the memory of the text.
    if _count(value) != count or not all(_WHOLE.fullmatch(p[0]) for p in _PART.finditer(value)):
        raise ValueError(f"{count} whole numbers, got {value[:60]!r}")
    return [int(part[0]) for part in _PART.finditer(value)]


def _count(value: str) -> int:
    """Return how many parts there are between single spaces."""
    if "  " in value or value != value.strip(" "):
        raise ValueError(f"two spaces in {value[:60]!r}")
    return value.count(" ") + 1 if value else 0


class LightGBMModel:
    """A booster of LightGBM, and the margins it started from, which it does not store."""

    def __init__(self, text: str, start: FloatArray) -> None:
        self.booster = lightgbm.Booster(model_str=text)
        self.start = start
        self._text = text

    @property
    def n_rounds(self) -> int:
        """How many rounds it has."""
        return int(self.booster.current_iteration())

    def margins(self, features: FloatTable, n_threads: int) -> FloatArray:
        """Return the logits of each row, (n, classes)."""
        grown = self.booster.predict(features, raw_score=True, num_threads=n_threads)
        return np.ascontiguousarray(grown + self.start)

    def gains(self, n_columns: int) -> FloatArray:
        """Return how much all splits of each column gained."""
        gains: FloatArray = self.booster.feature_importance("gain")[:n_columns]
        return gains

    def to_bytes(self) -> bytes:
        """Return the booster as LightGBM's text."""
        return self._text.encode()

    def __reduce__(self) -> tuple[Any, ...]:
        return (LightGBMModel, (self._text, self.start))


def _check_that_something_varies(rows: TrainingRows) -> None:
    first = rows.features[:1]
    if ((rows.features == first) | np.isnan(rows.features) & np.isnan(first)).all():
        raise StructentError(
            "LightGBM needs a column with two different values, got none; there is nothing to "
            "learn from"
        )


def _parameters(training: Training) -> dict[str, Any]:
    settings, max_depth = training.settings, training.unraced.max_depth
    return {
        "num_class": training.n_classes,
        "learning_rate": settings.learning_rate,
        "max_depth": max_depth,
        "num_leaves": 2 ** min(max_depth, 17),
        # As in XGBoost, the curvature alone limits a leaf; below 1e-3 LightGBM's sums are noise.
        "min_sum_hessian_in_leaf": max(settings.min_child_weight, 1e-3),
        "min_data_in_leaf": 0,
        "min_data_in_bin": 1,
        "lambda_l2": settings.reg_lambda,
        "bagging_fraction": settings.subsample,
        "bagging_freq": 1 if settings.subsample < 1 else 0,
        "feature_fraction": settings.colsample,
        "seed": training.seed,
        "num_threads": training.n_threads,
        "deterministic": True,
        "force_row_wise": True,  # else LightGBM times both ways, and runs may differ
        "verbosity": -1,
    }


def _dataset(
    rows: TrainingRows, training: Training, parameters: dict[str, Any], reference: Any = None
) -> Any:
    return lightgbm.Dataset(
        rows.features,
        label=rows.labels,
        weight=rows.weights,
        init_score=np.tile(training.start, (len(rows.labels), 1)),
        reference=reference,
        categorical_feature=np.flatnonzero(training.is_categorical).tolist(),
        params={name: value for name, value in parameters.items() if name != "objective"},
        free_raw_data=True,
    )


def _callbacks(settings: Settings, on_round: OnRound, *, with_validation: bool) -> list[Any]:
    def report(environment: Any) -> None:
        results = environment.evaluation_result_list
        on_round(environment.iteration, results[0][2] if results else None)

    called: list[Any] = [report]
    if with_validation and settings.early_stopping_rounds is not None:
        rounds = int(settings.early_stopping_rounds)
        called.append(lightgbm.early_stopping(rounds, verbose=False))
    return called
