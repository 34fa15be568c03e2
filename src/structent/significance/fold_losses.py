"""What is tested: the log loss of a model with a given structure, in every fold."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import hash as digest_of
from sklearn.base import clone

from structent._typing import FloatArray, IndexArray
from structent.comparison.arms import Rows
from structent.errors import StructentError
from structent.metrics import structured_log_loss
from structent.structure import RandomPartition, trivial

# Fits models with a structure, and gives a loss for every fold: the lower the better.
FitAndScore: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """The log loss of an estimator in every fold of repeated cross-validation.

    Called with a structure, it gives the losses, (folds,), on folds that are always the same.

    Attributes
    ----------
    estimator
        A classifier one of whose parameters, or of its steps', is called ``structure``.
    rows
        Features, labels and groups.
    folds_of
        The fold of each row, in each repeat.
    """

    estimator: Any
    rows: Rows
    folds_of: tuple[IndexArray, ...]

    @classmethod
    def of(
        cls, estimator: Any, rows: Rows, *, n_folds: int, n_repeats: int, seed: int
    ) -> CrossValidated:
        """Return the cross-validation whose folds, and unseeded models, follow from a seed."""
        _check_parameters(estimator)
        parameters = estimator.get_params()
        unseeded = {
            name: seed
            for name, value in parameters.items()
            if name.rpartition("__")[2] == "random_state" and value is None
        }
        folds_of = [rows.folds(n_folds, np.random.RandomState((seed, i))) for i in range(n_repeats)]
        return cls(clone(estimator).set_params(**unseeded), rows, tuple(folds_of))

    def __call__(self, structure: Any) -> FloatArray:
        """Return the log loss of the rows held out in each fold, (folds,)."""
        model = clone(self.estimator).set_params(**self._parameters(structure))
        return np.array(
            [
                self._held_out_loss(model, structure, fold_of == fold)
                for fold_of in self.folds_of
                for fold in range(int(fold_of.max()) + 1)
            ]
        )

    def digest(self) -> str:
        """Return a text that stands for data, folds and estimator, whatever its structure."""
        nothing = {structure_parameter(self.estimator): None}
        model = clone(self.estimator).set_params(**nothing)
        rows = (self.rows.features, self.rows.labels.tolist())
        found: str = digest_of((type(model).__qualname__, model.get_params(), rows, self.folds_of))
        return found

    def _parameters(self, structure: Any) -> dict[str, Any]:
        name = structure_parameter(self.estimator)
        parameters = {name: structure}
        weights = name.removesuffix("structure") + "weights"
        if weights in self.estimator.get_params() and _is_trivial(structure):
            parameters[weights] = None  # a weight of the singletons has nothing to be set against
        return parameters

    def _held_out_loss(self, model: Any, structure: Any, is_test: Any) -> float:
        train, test = self.rows.take(np.flatnonzero(~is_test)), self.rows.take(is_test)
        model.fit(train.features, train.labels)
        proba = model.predict_proba(test.features)
        plain = trivial(structure.classes)
        return structured_log_loss(test.labels, proba, plain, classes=model.classes_)


def structure_parameter(estimator: Any) -> str:
    """Return the name of the parameter that takes the structure, ``step__structure`` in a pipeline.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from structent import StructuredLogisticRegression
    >>> structure_parameter(make_pipeline(StandardScaler(), StructuredLogisticRegression()))
    'structuredlogisticregression__structure'
    """
    if inspect.isclass(estimator):
        raise StructentError(
            f"estimator must be an instance, got the class {estimator.__name__}; "
            f"write {estimator.__name__}()"
        )
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    names = [str(name) for name in parameters if name.rpartition("__")[2] == "structure"]
    if len(names) != 1:
        raise StructentError(
            "estimator must be a classifier with one parameter 'structure', or a function that "
            f"takes a structure and returns its losses, got {type(estimator).__name__}"
        )
    return names[0]


def checked_losses(fit_and_score: FitAndScore, structure: Any, n_folds: int) -> FloatArray:
    """Return the losses of a structure, (folds,): finite, and those of whole cross-validations."""
    try:
        losses = np.atleast_1d(np.array(fit_and_score(structure), dtype=np.float64))
    except TypeError as error:
        raise StructentError(f"fit_and_score must return numbers: {error}") from error
    if losses.ndim != 1 or (len(losses) > 1 and len(losses) % n_folds):
        raise StructentError(
            f"fit_and_score must return one loss, or one for each of the {n_folds} folds of every "
            f"repeat, got shape {losses.shape}; say how many folds there are by n_folds"
        )
    if not np.isfinite(losses).all():
        raise StructentError(
            f"losses must be finite, got {losses.tolist()}; a model that gives the true class the "
            "probability 0 cannot be compared by its log loss"
        )
    return losses


def _check_parameters(estimator: Any) -> None:
    name = structure_parameter(estimator)
    weights = estimator.get_params().get(name.removesuffix("structure") + "weights")
    if weights is not None and not isinstance(weights, str) and np.ndim(weights) > 0:
        raise StructentError(
            "weights of the estimator must be None, 'auto' or one number, got one a partition; "
            "give them to the structure: structure.reweight(weights)"
        )


def _is_trivial(structure: Any) -> bool:
    return isinstance(structure, RandomPartition) and all(
        partition.is_singletons for partition in structure.partitions
    )
