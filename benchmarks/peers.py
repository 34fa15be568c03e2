"""The classifiers that the benchmarks compare: ours and its peers.

Import this only where all of them are installed (``make peers``). ``DEFAULTS`` makes each with its
own default settings, ``FIXED`` with the same settings for a fixed number of rounds, and ``STOPPED``
fits with early stopping on given validation rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from catboost import CatBoostClassifier
from chimeraboost import ChimeraBoostClassifier
from chimeraboost import warmup as compile_chimeraboost
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from xgboost import XGBClassifier

from structent import StructuredBoostingClassifier

# Takes a random state, a number of threads and the names of the categorical columns.
Maker = Callable[[int, int, list[str]], Any]


def _structent(seed: int, n_threads: int, _: list[str]) -> Any:
    return StructuredBoostingClassifier(random_state=seed, n_jobs=n_threads)


def _sklearn(seed: int, _threads: int, _: list[str]) -> Any:
    # Reads its number of threads from OMP_NUM_THREADS, and accepts pandas categories.
    return HistGradientBoostingClassifier(random_state=seed)


def _xgboost(seed: int, n_threads: int, _: list[str]) -> Any:
    # Accepts pandas categories: enable_categorical is True by default since 3.1.
    return XGBClassifier(random_state=seed, n_jobs=n_threads, verbosity=0)


def _lightgbm(seed: int, n_threads: int, _: list[str]) -> Any:
    # Accepts pandas categories.
    return LGBMClassifier(random_state=seed, n_jobs=n_threads, verbosity=-1)


def _catboost(seed: int, n_threads: int, categorical: list[str]) -> Any:
    return CatBoostClassifier(
        random_state=seed, thread_count=n_threads, cat_features=categorical, verbose=False,
        allow_writing_files=False,
    )  # fmt: skip


def _chimeraboost(seed: int, n_threads: int, categorical: list[str]) -> Any:
    return ChimeraBoostClassifier(
        random_state=seed, thread_count=n_threads, cat_features=categorical or None
    )


DEFAULTS: dict[str, Maker] = {
    "structent": _structent,
    "scikit-learn": _sklearn,
    "XGBoost": _xgboost,
    "LightGBM": _lightgbm,
    "CatBoost": _catboost,
    "ChimeraBoost": _chimeraboost,
}


def as_taken(name: str, features: pd.DataFrame) -> pd.DataFrame:
    """Return a table as a classifier takes it: CatBoost wants text without missing values."""
    if name != "CatBoost":
        return features
    categorical = features.select_dtypes("category").columns
    texts = {
        column: features[column].astype(object).where(features[column].notna(), "missing")
        for column in categorical
    }
    return features.assign(**texts)


def compile_kernels(name: str, features: pd.DataFrame, labels: Any) -> None:
    """Compile the kernels, or read them from a cache, before the first timed fit."""
    if name == "ChimeraBoost":
        compile_chimeraboost()
    if name == "structent":
        _structent(0, 1, []).fit(features, labels).predict_proba(features)


@dataclass(frozen=True)
class Fixed:
    """Settings that all engines share, for a fixed number of rounds without early stopping."""

    n_rounds: int
    depth: int = 5
    rate: float = 0.1
    n_threads: int = 1


def _fixed_structent(settings: Fixed, **options: Any) -> Any:
    return StructuredBoostingClassifier(
        engine="structent", n_estimators=settings.n_rounds, max_depth=settings.depth,
        learning_rate=settings.rate, early_stopping_rounds=None, n_jobs=settings.n_threads,
        subsample=1.0, random_state=0, **{"split_search": "auto", **options},
    )  # fmt: skip


def _fixed_xgboost(settings: Fixed, **options: Any) -> Any:
    return XGBClassifier(
        n_estimators=settings.n_rounds, max_depth=settings.depth, learning_rate=settings.rate,
        n_jobs=settings.n_threads, multi_strategy="multi_output_tree", tree_method="hist",
        max_bin=256, random_state=0, verbosity=0, **options,
    )  # fmt: skip


def _fixed_chimeraboost(settings: Fixed, **options: Any) -> Any:
    # Without cross features, because these fit the model a second time.
    options = {"early_stopping": False, "cross_features": False} | options
    return ChimeraBoostClassifier(
        n_estimators=settings.n_rounds, depth=settings.depth, learning_rate=settings.rate,
        thread_count=settings.n_threads, random_state=0, **options,
    )  # fmt: skip


def _fixed_lightgbm(settings: Fixed) -> Any:
    return LGBMClassifier(
        n_estimators=settings.n_rounds, max_depth=settings.depth, num_leaves=2**settings.depth,
        learning_rate=settings.rate, n_jobs=settings.n_threads, random_state=0, verbosity=-1,
    )  # fmt: skip


def _fixed_catboost(settings: Fixed) -> Any:
    return CatBoostClassifier(
        iterations=settings.n_rounds, depth=settings.depth, learning_rate=settings.rate,
        thread_count=settings.n_threads, random_state=0, verbose=False, allow_writing_files=False,
    )  # fmt: skip


def _fixed_sklearn(settings: Fixed) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=settings.n_rounds, max_depth=settings.depth, max_leaf_nodes=None,
        learning_rate=settings.rate, early_stopping=False, random_state=0,
    )  # fmt: skip


FIXED: dict[str, Callable[[Fixed], Any]] = {
    "structent": _fixed_structent,
    "structent, full gradient": partial(_fixed_structent, split_search="full"),
    "XGBoost": _fixed_xgboost,
    "ChimeraBoost": _fixed_chimeraboost,
    "LightGBM": _fixed_lightgbm,
    "CatBoost": _fixed_catboost,
    "scikit-learn": _fixed_sklearn,
}


@dataclass(frozen=True)
class Stopping:
    """Rows to train on, rows to stop by, and the settings of a whole fit."""

    train: tuple[Any, Any]
    validation: tuple[Any, Any]
    most: Fixed
    patience: int


def _stopped_structent(fit: Stopping) -> Any:
    # No refit, because the others do not refit on all rows if they are given validation rows.
    model = _fixed_structent(fit.most, refit=False)
    model.set_params(early_stopping_rounds=fit.patience)
    return model.fit(*fit.train, eval_set=fit.validation)


def _stopped_xgboost(fit: Stopping) -> Any:
    model = _fixed_xgboost(fit.most, early_stopping_rounds=fit.patience)
    return model.fit(*fit.train, eval_set=[fit.validation], verbose=False)


def _stopped_chimeraboost(fit: Stopping) -> Any:
    model = _fixed_chimeraboost(fit.most, early_stopping=True, early_stopping_rounds=fit.patience)
    return model.fit(*fit.train, eval_set=fit.validation)


STOPPED: dict[str, Callable[[Stopping], Any]] = {
    "structent": _stopped_structent,
    "XGBoost": _stopped_xgboost,
    "ChimeraBoost": _stopped_chimeraboost,
}
