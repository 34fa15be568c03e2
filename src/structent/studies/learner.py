"""A classifier that learns the structure of its classes before it learns to tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from structent.studies.learn import learn_structure, with_structure


class StructureLearner(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    MetaEstimatorMixin,  # type: ignore[misc]  # scikit-learn has no types
    BaseEstimator,  # type: ignore[misc]  # scikit-learn has no types
):
    """The estimator with the structure that :func:`learn_structure` finds in the training rows.

    Parameters
    ----------
    estimator
        A classifier with the parameter ``structure``, or a pipeline that ends in one.
    cv, n_levels, singleton_weights, random_state
        As in :func:`learn_structure`.

    Attributes
    ----------
    structure_
        The structure that was learned, trivial if none helped.
    estimator_
        The estimator, fitted to all rows with it.
    classes_
        The classes, sorted: the columns of ``predict_proba``.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from structent import StructuredLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(6, size=120)
    >>> X = np.eye(3)[y // 2] @ rng.normal(size=(3, 9)) + rng.normal(size=(120, 9))
    >>> model = StructureLearner(StructuredLogisticRegression(), cv=3, random_state=0).fit(X, y)
    >>> model.structure_.levels["level 1"][0].blocks
    ((0, 1), (2, 3), (4, 5))
    >>> model.predict_proba(X).shape
    (120, 6)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        cv: int = 5,
        n_levels: Sequence[int] = (1, 2, 3),
        singleton_weights: Sequence[float] = (0.7, 0.4, 0.1),
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.n_levels = n_levels
        self.singleton_weights = singleton_weights
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn the structure of the labels, (n,), and fit the estimator with it."""
        self.structure_ = learn_structure(
            self.estimator,
            X,
            y,
            cv=self.cv,
            n_levels=self.n_levels,
            singleton_weights=self.singleton_weights,
            groups=groups,
            random_state=self.random_state,
        )
        self.estimator_ = with_structure(self.estimator, self.structure_).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, (n,)."""
        check_is_fitted(self)
        predicted: NDArray[Any] = self.estimator_.predict(X)
        return predicted

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of the classes, (n, classes)."""
        check_is_fitted(self)
        proba: NDArray[Any] = self.estimator_.predict_proba(X)
        return proba

    @property
    def n_features_in_(self) -> int:
        """How many columns X had."""
        return int(self._of_estimator("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns of X, where it had names."""
        names: NDArray[Any] = self._of_estimator("feature_names_in_")
        return names

    def _of_estimator(self, name: str) -> Any:
        # An AttributeError before fit, as scikit-learn asks of attributes that fit sets.
        return getattr(self.__dict__.get("estimator_"), name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
