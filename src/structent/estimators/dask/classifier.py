"""Gradient boosting under the structured loss on a Dask cluster."""

from __future__ import annotations

import copy
import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from structent._checks import checked_fraction, checked_integer
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.classes import (
    Classes,
    check_two_codes,
    mixed_labels,
    with_pairs,
)
from structent.estimators.dask.chunks import (
    Chunk,
    checked_table,
    dask_chunks,
    encoded_chunks,
    held_back_rows,
    is_dask_table,
    predictions,
    row_of,
    sampled_rows,
    scattered_chunks,
    surveyed_class_weights,
    surveyed_classes,
    surveyed_columns,
    surveyed_sets,
    surveyed_structure,
    training_rows,
    validation_rows,
)
from structent.estimators.dask.cluster import Cluster
from structent.estimators.rows import (
    TrainingRows,
    check_eval_columns,
    checked_eval_set,
    eval_pair,
    log_prior_of_totals,
    spread_totals,
)
from structent.estimators.training import Encoder, FittedBoosting, Settings, Training
from structent.estimators.weights import chosen_structure
from structent.structure.samplers import Structure

N_SAMPLED = 20_000  # rows on which weights="auto" chooses


class DaskStructuredBoostingClassifier(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    BaseEstimator,  # type: ignore[misc]  # scikit-learn has no types
):
    """:class:`~structent.estimators.boosting.StructuredBoostingClassifier` on a Dask cluster.

    The table stays on the workers, chunk by chunk, and XGBoost trains there. There should be at
    least as many chunks as workers. Predictions for Dask tables are Dask arrays, computed when they
    are needed.

    Parameters
    ----------
    structure, weights, n_estimators, learning_rate, min_child_weight, reg_lambda
        As there. ``weights="auto"`` chooses on at most 20,000 random rows, which are brought to the
        client.
    max_depth
        The depth of the trees; "auto" is 3, because no depths are tried out on a cluster.
    subsample, colsample, trees, curvature, early_stopping_rounds, class_weight
        As there. There is no refit with the held-out rows.
    engine
        "xgboost", the only one that trains on Dask.
    split_search
        "full" or "auto", which is the same here. For "structured" XGBoost 3.2 would sum leaf values
        over the rows of one worker only, and workers would not agree on the model.
    validation_fraction
        The share of the rows held out for early stopping if there is no ``eval_set``. Each row is
        drawn independently, as a function of the seed and its chunk. Unlike on one machine, the
        shares of the classes may differ.
    random_state, progress, allow_blocks
        As there.
    n_jobs
        How many threads each worker uses; as many as it has if None or -1.
    client
        The client of the cluster; the current one if None.
    timeout
        How many seconds a worker waits for another before training fails. It also limits the wait
        for a first worker, and for a lost one: if a worker dies during training, the fit fails,
        usually at once and at the latest after this time. If a worker died earlier, the others load
        its rows again if Dask can do that, and all rows are used. The time of the training itself
        is not limited.

    Attributes
    ----------
    classes_, structure_, weights_, best_iteration_, max_depth_, split_search_
        As there.
    validation_log_loss_, feature_importances_
        As there.
    n_features_in_, feature_names_in_
        The columns of X, as in scikit-learn.

    Examples
    --------
    >>> import dask.array
    >>> from distributed import Client
    >>> from structent import circular
    >>> seasons = circular(["spring", "summer", "autumn", "winter"], width=2)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(seasons.classes, size=400)
    >>> temperature = {"spring": 10, "summer": 20, "autumn": 11, "winter": 1}
    >>> X = np.array([[rng.normal(temperature[label], 3)] for label in y])
    >>> X, y = dask.array.from_array(X, chunks=200), dask.array.from_array(y, chunks=200)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     model = DaskStructuredBoostingClassifier(seasons, random_state=0).fit(X, y)
    >>> model.predict(np.array([[22.0], [-1.0]])).tolist()
    ['summer', 'winter']
    >>> model.predict(X)
    dask.array<concatenate, shape=(400,), dtype=<U6, chunksize=(200,), chunktype=numpy.ndarray>
    """

    def __init__(  # noqa: PLR0913  scikit-learn's way: every parameter by name
        self,
        structure: Structure | str | None = None,
        *,
        weights: Any = None,
        n_estimators: int = 2000,
        learning_rate: float = 0.05,
        max_depth: int | str = 3,
        min_child_weight: float = 0.0,
        reg_lambda: float = 1.0,
        subsample: float = 1.0,
        colsample: float = 1.0,
        engine: str = "xgboost",
        trees: str = "vector",
        curvature: str = "gradient",
        split_search: str = "full",
        early_stopping_rounds: int | None = 25,
        validation_fraction: float = 0.15,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
        allow_blocks: bool = False,
        client: Any = None,
        timeout: int = 300,
    ) -> None:
        self.structure = structure
        self.weights = weights
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.subsample = subsample
        self.colsample = colsample
        self.engine = engine
        self.trees = trees
        self.curvature = curvature
        self.split_search = split_search
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.allow_blocks = allow_blocks
        self.client = client
        self.timeout = timeout

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train on the rows of ``X`` and their labels, which stay where they are.

        Parameters
        ----------
        X
            A Dask array, or a Dask dataframe of pandas. Values may be missing; categorical and text
            columns of dataframes are encoded.
        y
            The label of each row, a Dask array or series in the same chunks.
        sample_weight
            The weight of each row, likewise.
        eval_set
            The rows that decide when to stop: ``(X, y)``, or a list of one such pair, of Dask or
            not.
        """
        settings = self._settings()
        cluster = Cluster.of(self.client, self.timeout)
        random = check_random_state(self.random_state)
        X = checked_table(X, "X")
        chunks = dask_chunks(X, y, sample_weight)
        local = self._local_model()
        validate_data(local, row_of(X), skip_check_array=True)
        structure = self._chosen_structure(local, chunks, random, cluster)
        eval_chunks = self._eval_chunks(eval_set, local, cluster)
        classes = self._classes(structure, chunks, eval_chunks, cluster)
        encoder = Encoder.of(surveyed_columns(X, cluster), classes, settings)
        class_weights = surveyed_class_weights(self.class_weight, classes, chunks, cluster)
        lazy = encoded_chunks(chunks, encoder, class_weights)
        rows, validation, totals = self._rows(lazy, eval_chunks, encoder, random, cluster)
        check_two_codes(np.flatnonzero(totals), classes)
        with cluster.progress(settings.n_estimators, shown=self.progress) as on_round:
            training = Training(
                rows,
                validation,
                classes.structure,
                None,
                log_prior_of_totals(spread_totals(totals, classes.coarse_sets)),
                encoder.is_categorical,
                settings,
                _seed(random),
                self._n_threads(cluster),
                on_round,
                classes.label_sets,
            )
            model, scores = cluster.train(training)
        self._keep(local.adopt(FittedBoosting(encoder, model, scores, training.unraced)))
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the logits, (n, classes); for two classes, the log odds of the second, (n,)."""
        return self._predicted("decision_function", X)

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row, (n,)."""
        return self._predicted("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, (n, classes), in the order of ``classes_``.

        Like all predictions, this is a lazy Dask array for a Dask table, and a NumPy array for any
        other table.
        """
        return self._predicted("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, exact also if these underflow."""
        return self._predicted("predict_log_proba", X)

    def predict_level(self, X: Any, level: str) -> Any:
        """Return the name of the most probable block of a level for each row, (n,).

        See :func:`~structent.estimators.answers.predicted_blocks`.
        """
        return self._predicted("predict_level", X, level)

    @property
    def feature_importances_(self) -> FloatArray:
        """The share of each column of X in the gain of all splits."""
        return self._fitted_local().feature_importances_

    def to_local(self) -> StructuredBoostingClassifier:
        """Return the same model without Dask, for one machine."""
        return copy.deepcopy(self._fitted_local())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, in the same format as on one machine.

        :meth:`StructuredBoostingClassifier.load` and :meth:`load` read it.
        """
        self._fitted_local().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model of a file that either class wrote, to predict for Dask tables."""
        local = StructuredBoostingClassifier.load(path)
        own = cls._get_param_names()  # a model of one machine has more of them
        parameters = local.get_params(deep=False)
        model = cls(**{name: parameters[name] for name in own if name in parameters})
        model._keep(local)
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        # A connection is not copied: a copy elsewhere uses the client that it finds there.
        state: dict[str, Any] = super().__getstate__()
        return {**state, "client": None}

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")  # a connection has no copy
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copies, client=client)

    def _settings(self) -> Settings:
        if self.engine != "xgboost":
            raise StructentError(
                f"engine must be 'xgboost' to train on Dask, got {self.engine!r}; "
                "StructuredBoostingClassifier has more of them"
            )
        if self.split_search == "structured":
            raise StructentError(
                "split_search must be 'full' on Dask, got 'structured', with which XGBoost takes "
                "leaf values from the rows of one worker only"
            )
        names = [name for name in Settings.__dataclass_fields__ if hasattr(self, name)]
        return Settings(**{name: getattr(self, name) for name in names})

    def _n_threads(self, cluster: Cluster) -> int:
        if self.n_jobs is None or self.n_jobs == -1:
            return cluster.n_threads
        return checked_integer(self.n_jobs, "n_jobs", at_least=1, at_most=2**15)

    def _local_model(self) -> StructuredBoostingClassifier:
        parameters = self.get_params(deep=False)
        del parameters["client"], parameters["timeout"]
        return StructuredBoostingClassifier(**parameters, refit=False)

    def _chosen_structure(
        self,
        local: StructuredBoostingClassifier,
        chunks: list[Chunk],
        random: np.random.RandomState,
        cluster: Cluster,
    ) -> Structure | None:
        """Return the structure with its weights; only "auto" needs rows for that."""
        structure = surveyed_structure(
            self.structure, chunks, cluster, allow_blocks=self.allow_blocks
        )
        rows: Any = None, None, None
        if structure is not None and isinstance(self.weights, str):
            rows = sampled_rows(chunks, N_SAMPLED, _seed(random), cluster)
        return chosen_structure(local, structure, *rows)

    def _classes(
        self,
        structure: Structure | None,
        chunks: list[Chunk],
        eval_chunks: list[Chunk] | None,
        cluster: Cluster,
    ) -> Classes:
        if not self.allow_blocks:
            return surveyed_classes(structure, chunks, cluster)
        return surveyed_sets(structure, [*chunks, *(eval_chunks or [])], cluster)

    def _eval_chunks(
        self, eval_set: Any, local: StructuredBoostingClassifier, cluster: Cluster
    ) -> list[Chunk] | None:
        if eval_set is None:
            return None
        X, y = eval_pair(eval_set)
        if is_dask_table(X):
            X = checked_table(X, "the X of eval_set")
            check_eval_columns(X, local.n_features_in_)
            validate_data(local, row_of(X), reset=False, skip_check_array=True)
            return dask_chunks(X, y, None)
        X, y = checked_eval_set(eval_set, local.n_features_in_)
        X = validate_data(local, X, reset=False, skip_check_array=True)
        y = with_pairs(y, getattr(self.structure, "classes", None))
        labels = mixed_labels(y) if self.allow_blocks else np.asarray(y)
        return scattered_chunks(X, labels, cluster.client)

    def _rows(
        self,
        lazy: list[Any],
        eval_chunks: list[Chunk] | None,
        encoder: Encoder,
        random: np.random.RandomState,
        cluster: Cluster,
    ) -> tuple[TrainingRows, TrainingRows | None, FloatArray]:
        """Return the rows to train on, the rows that decide when to stop, and the codes' totals."""
        if eval_chunks is None and self.early_stopping_rounds is not None:
            fraction = checked_fraction(self.validation_fraction, "validation_fraction")
            return held_back_rows(lazy, fraction, _seed(random), encoder, cluster)
        validation = None
        if eval_chunks is not None:
            no_weights = np.ones(encoder.classes.n_codes)
            lazy_eval = encoded_chunks(eval_chunks, encoder, no_weights)
            validation = validation_rows(lazy_eval, encoder, cluster)
        rows, totals = training_rows(lazy, encoder, cluster)
        return rows, validation, totals

    def _keep(self, local: StructuredBoostingClassifier) -> None:
        self._local = local
        for name, value in vars(local).items():
            if name.endswith("_"):
                setattr(self, name, value)

    def _fitted_local(self) -> StructuredBoostingClassifier:
        check_is_fitted(self, "classes_")
        return self._local

    def _predicted(self, method: str, X: Any, *arguments: Any) -> Any:
        if not is_dask_table(X):
            return getattr(self._fitted_local(), method)(X, *arguments)
        model = self.to_local().set_params(n_jobs=1)  # Dask has threads for many chunks at once
        return predictions(checked_table(X, "X"), model, method, arguments)


def _seed(random: np.random.RandomState) -> int:
    return int(random.randint(2**31 - 1))
