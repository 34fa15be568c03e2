"""The metrics as scorers of scikit-learn: called with an estimator, greater is better."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._optional import load_optional
from structent._typing import Label
from structent.errors import StructentError
from structent.metrics.accuracy import block_accuracy
from structent.metrics.calibration import calibration_error
from structent.metrics.distance import average_distance, mistake_severity
from structent.metrics.log_loss import block_log_loss, skill, structured_log_loss
from structent.structure import Partition, RandomPartition
from structent.structure.labels import class_indices, plain_values

# scikit-learn maximises: what should be small is negated.
_SIGN_OF: dict[Callable[..., float], int] = {
    structured_log_loss: -1,
    block_log_loss: -1,
    block_accuracy: 1,
    mistake_severity: -1,
    average_distance: -1,
    calibration_error: -1,
    skill: 1,
}


@dataclass(frozen=True)
class Scorer:
    """A metric of an estimator's ``predict_proba``, made by :func:`scorer`.

    Attributes
    ----------
    metric
        One of the functions of this package.
    structure
        Its structure.
    options
        Its other arguments.
    takes_sample_weight
        Whether scikit-learn's metadata routing passes the weights of the rows to it; if None,
        scikit-learn raises an error when there are weights.
    """

    metric: Callable[..., float]
    structure: Partition | RandomPartition
    options: Mapping[str, Any] = field(default_factory=dict)
    takes_sample_weight: bool | None = None

    def __call__(
        self,
        estimator: Any,
        X: Any,  # noqa: N803  scikit-learn's name for it
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the score of a fitted estimator on rows X with labels y."""
        proba = _with_all_classes(
            estimator.predict_proba(X), estimator.classes_, self.structure.classes
        )
        value = self.metric(
            y,
            proba,
            self.structure,
            sample_weight=sample_weight,
            classes=self.structure.classes,
            **self.options,
        )
        return _SIGN_OF[self.metric] * value

    def set_score_request(self, *, sample_weight: bool | None) -> Scorer:
        """Return the scorer that does, or does not, ask for the weights of the rows.

        As in scikit-learn. It needs ``enable_metadata_routing``; otherwise no weights are passed.
        """
        return replace(self, takes_sample_weight=sample_weight)

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn should pass to the scorer."""
        routing = load_optional(
            "sklearn.utils.metadata_routing", extra="sklearn", purpose="Metadata routing"
        )
        request = routing.MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self.takes_sample_weight)
        return request

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"scorer({self.metric.__name__}, {self.structure!r}{options})"


def scorer(
    metric: Callable[..., float], structure: Partition | RandomPartition, **options: Any
) -> Scorer:
    """Return a metric as a scorer for scikit-learn's ``scoring``: greater is better.

    Losses, distances and errors are negated. The order of the columns is taken from the
    estimator's ``classes_``. A class that the estimator has not seen has probability 0, so a log
    loss is infinite if such a class occurs; stratified folds avoid this.

    Parameters
    ----------
    metric
        A metric of this package, e.g. ``structured_log_loss``.
    structure, options
        The other arguments of the metric, e.g. ``level="season"``. A ``prior`` is in the order of
        ``structure.classes``.

    Examples
    --------
    >>> from structent import circular
    >>> from structent.metrics import block_accuracy
    >>> seasons = circular(["winter", "spring", "summer", "autumn"], width=2)
    >>> halves = scorer(block_accuracy, seasons, level="width 2")

    and then ``cross_val_score(model, X, y, scoring=halves)``.
    """
    if metric not in _SIGN_OF:
        names = ", ".join(known.__name__ for known in _SIGN_OF)
        raise StructentError(f"metric must be one of {names}, got {metric!r}")
    taken = set(inspect.signature(metric).parameters)
    allowed = taken - {"y_true", "proba", "structure", "sample_weight", "classes"}
    for name in options:
        if name not in allowed:
            listed = ", ".join(sorted(allowed)) or "none"
            raise StructentError(
                f"options of {metric.__name__} in a scorer are {listed}, got {name!r}"
            )
    return Scorer(metric, structure, options)


def _with_all_classes(proba: Any, given: Any, classes: tuple[Label, ...]) -> Any:
    """Return probabilities in the structure's order, 0 for a class that has no column."""
    columns = class_indices(plain_values(given), classes)
    if len(columns) == len(classes):
        return proba[:, np.argsort(columns)]
    # A product, because NumPy and Dask both have it.
    return proba @ (columns[:, None] == np.arange(len(classes))).astype(np.float64)
