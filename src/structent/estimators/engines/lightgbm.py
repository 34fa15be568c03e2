"""LightGBM: one tree per class."""

from __future__ import annotations

from typing import Any

import numpy as np

from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.columns import FloatTable
from structent.estimators.rows import TrainingRows
from structent.estimators.training import OnRound, Settings, Trained, Training
from structent.losses.boosters.lightgbm import lightgbm, structured_metric, structured_objective
from structent.structure import trivial


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


def from_bytes(content: bytes, start: FloatArray) -> LightGBMModel:
    """Return the booster that ``to_bytes`` wrote."""
    try:
        return LightGBMModel(content.decode(), start)
    except (UnicodeDecodeError, lightgbm.basic.LightGBMError) as error:
        raise StructentError(f"LightGBM cannot read the booster in the file: {error}") from None


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
        "force_row_wise": True,  # else LightGBM takes the faster way, which may differ by run
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
