"""XGBoost: trees with vector leaves, or one tree per class."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.columns import FloatTable
from structent.estimators.rows import TrainingRows
from structent.estimators.training import OnRound, Settings, Trained, Training
from structent.losses.boosters.xgboost import structured_metric, structured_objective, xgboost
from structent.structure import RandomPartition, trivial
from structent.structure.targets import LabelSets

VALIDATION = "validation"
METRIC = "mlogloss"  # early stopping looks at plain log loss, whatever the structure


def train(training: Training) -> Trained:
    """Return the booster of the best round."""
    training = training.with_ordinary_weights()
    settings = training.settings
    data = _matrix(training.rows, training)
    evals = []
    if training.validation is not None:
        evals = [(_matrix(training.validation, training, ref=data), VALIDATION)]
    booster = xgboost.train(
        parameters(training),
        data,
        settings.n_estimators,
        obj=objective(training),
        custom_metric=metric(training),
        evals=evals,
        callbacks=callbacks(settings, training.on_round, with_validation=bool(evals)),
        verbose_eval=False,
    )
    return Trained(XGBoostModel(booster, training.start), training.unraced)


def objective(training: Training) -> Any:
    """Return the objective of a task."""
    return structured_objective(
        training.structure,
        curvature=training.settings.curvature,
        split_structure=training.split_structure,
        split_seed=training.seed,
        n_threads=training.n_threads,
        label_sets=training.label_sets,
    )


def metric(training: Training) -> Any:
    """Return what takes the place of XGBoost's log loss where labels may be sets, else None."""
    if training.label_sets is None:
        return None
    return _LogLossOfSets(trivial(training.structure.classes), training.label_sets)


def parameters(training: Training) -> dict[str, Any]:
    """Return the settings under XGBoost's names."""
    settings, start = training.settings, training.start
    # XGBoost's own metric refuses labels that are not classes.
    has_sets = training.label_sets is not None
    return {
        # Known to XGBoost beside our objective, so that it predicts probabilities.
        "objective": "multi:softprob",
        "num_class": len(start),
        "base_score": start.tolist(),
        **({"disable_default_eval_metric": True} if has_sets else {"eval_metric": METRIC}),
        "tree_method": "hist",
        "multi_strategy": (
            "multi_output_tree" if settings.trees == "vector" else "one_output_per_tree"
        ),
        "learning_rate": settings.learning_rate,
        "max_depth": training.unraced.max_depth,
        "min_child_weight": settings.min_child_weight,
        "reg_lambda": settings.reg_lambda,
        "subsample": settings.subsample,
        "colsample_bytree": settings.colsample,
        "seed": training.seed,
        "nthread": training.n_threads,
        "verbosity": 0,
    }


def matrix_options(rows: TrainingRows, training: Training) -> dict[str, Any]:
    """Return what a matrix of XGBoost takes beside the features."""
    has_categories = any(training.is_categorical)
    types = ["c" if is_category else "q" for is_category in training.is_categorical]
    return {
        "label": rows.labels,
        "weight": rows.weights,
        "feature_types": types if has_categories else None,
        "enable_categorical": has_categories,
    }


def callbacks(settings: Settings, on_round: OnRound, *, with_validation: bool) -> list[Any]:
    """Return what XGBoost calls after every round."""
    called: list[Any] = [_OnRound(on_round)]
    if with_validation and settings.early_stopping_rounds is not None:
        called.append(
            xgboost.callback.EarlyStopping(
                rounds=int(settings.early_stopping_rounds),
                metric_name=METRIC,
                data_name=VALIDATION,
                save_best=True,
            )
        )
    return called


def from_bytes(content: bytes, start: FloatArray) -> XGBoostModel:
    """Return the booster that ``to_bytes`` wrote."""
    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(content))
    except xgboost.core.XGBoostError as error:
        reason = str(error).splitlines()[0]
        raise StructentError(f"XGBoost cannot read the booster in the file: {reason}") from None
    return XGBoostModel(booster, start)


class XGBoostModel:
    """A booster of XGBoost."""

    def __init__(self, booster: Any, start: FloatArray) -> None:
        self.booster = booster
        self.start = start
        self._n_threads = 0

    @property
    def n_rounds(self) -> int:
        """How many rounds it has."""
        return int(self.booster.num_boosted_rounds())

    def margins(self, features: FloatTable, n_threads: int) -> FloatArray:
        """Return the logits of each row, (n, classes)."""
        if n_threads != self._n_threads:  # threads may share a booster, but not change it
            self.booster.set_param({"nthread": n_threads})
            self._n_threads = n_threads
        types = self.booster.feature_types
        data = xgboost.DMatrix(
            features, feature_types=types, enable_categorical=bool(types), nthread=n_threads
        )
        margins: FloatArray = self.booster.predict(
            data, output_margin=True, validate_features=False
        ).astype(np.float64)
        return margins

    def gains(self, n_columns: int) -> FloatArray:
        """Return how much all splits of each column gained."""
        gains = np.zeros(n_columns)
        for name, gain in self.booster.get_score(importance_type="total_gain").items():
            gains[int(name[1:])] = gain  # "f0", "f1", ...
        return gains

    def to_bytes(self) -> bytes:
        """Return the booster as UBJSON."""
        return bytes(self.booster.save_raw("ubj"))


class _OnRound(xgboost.callback.TrainingCallback):  # type: ignore[misc,name-defined]  # a module
    def __init__(self, on_round: OnRound) -> None:
        super().__init__()
        self._on_round = on_round

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        scores = evals_log.get(VALIDATION, {}).get(METRIC)
        self._on_round(epoch, scores[-1] if scores else None)
        return False


class _LogLossOfSets:
    """Plain log loss, under XGBoost's own name; for a set of classes, -log of its probability."""

    def __init__(self, structure: RandomPartition, label_sets: LabelSets) -> None:
        self._mean_loss = structured_metric(structure, label_sets=label_sets)

    def __call__(self, margins: Any, data: Any) -> tuple[str, float]:
        weight = float(data.get_weight().sum())
        total = weight * self._mean_loss(margins, data)[1] if data.num_row() else 0.0
        if xgboost.collective.is_distributed():
            # XGBoost takes the mean over workers, however many rows each of them has.
            sums = np.array([total, weight])
            total, weight = xgboost.collective.allreduce(sums, xgboost.collective.Op.SUM)
        return METRIC, float(total / weight)


def _matrix(rows: TrainingRows, training: Training, ref: Any = None) -> Any:
    options = matrix_options(rows, training)
    with interrupts_postponed():
        return xgboost.QuantileDMatrix(
            rows.features, ref=ref, nthread=training.n_threads, **options
        )


@contextmanager
def interrupts_postponed() -> Iterator[None]:
    """Raise an interrupt at the end of the block, if one came during it.

    XGBoost asks Python for rows several times while it builds a matrix. An interrupt during such a
    call is lost, XGBoost takes it for the end of the rows, and the memory of the process may be
    damaged.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # interrupts are raised in the main thread, if at all
        return
    came: list[tuple[Any, Any]] = []
    signal.signal(signal.SIGINT, lambda *about: came.append(about))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])
