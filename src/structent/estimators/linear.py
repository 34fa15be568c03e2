"""Multinomial logistic regression under the structured loss."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from structent._checks import checked_integer
from structent._typing import FloatArray, IndexArray
from structent.decisions import HedgedPredictions
from structent.errors import StructentError, StructureError
from structent.estimators import files
from structent.estimators.answers import block_answers, calibration_scores, predicted_level
from structent.estimators.classes import (
    Classes,
    CodedLabels,
    Labels,
    accuracy,
    check_two_classes,
    given_structure,
    labels_to_fit,
    mixed_labels,
    with_pairs,
)
from structent.estimators.rows import row_weights
from structent.estimators.weights import chosen_structure, weights_of
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.fused import loss_and_gradient
from structent.kernels.layout import Layout
from structent.structure import RandomPartition
from structent.structure.samplers import Structure

_FEATURES: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class StructuredLogisticRegression(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    BaseEstimator,  # type: ignore[misc]  # scikit-learn has no types
):
    r"""Multinomial logistic regression that knows how its classes are related.

    .. math:: \min_{A, b} \; C \sum_i s_i \, loss(A x_i + b, y_i) + \tfrac12 \lVert A \rVert^2

    where *loss* is the structured cross-entropy and :math:`s_i` the weight of row i. It is meant
    as the last layer on frozen embeddings. Without a structure it is scikit-learn's
    ``LogisticRegression``, with the same meaning of ``C``, ``tol`` and ``max_iter``.

    The structured loss is not convex. L-BFGS starts from zero and draws nothing at random, so the
    result is a function of the data alone; it may be a local minimum.

    With two classes scikit-learn has one vector of coefficients, ``coef_[1] - coef_[0]`` here, and
    penalises its square. So does this model, whose penalty is then twice that of the formula: the
    predictions are the same.

    Parameters
    ----------
    structure
        How the classes are related: a structure, or a short form of the command line, ``"ordinal"``
        or ``"circular:width=3"``, which ``fit`` builds from the labels; None for no structure. It
        must be fixed: a sampler's partitions change with every iteration, which L-BFGS cannot
        follow.
    weights
        None for the structure's own weights, a number for the weight of the singletons, one number
        per partition for all, or ``"auto"`` to choose the weight of the singletons by
        cross-validation
        (:func:`~structent.estimators.weights.chosen_structure`).
    C
        The inverse strength of the penalty on the coefficients; intercepts have none.
    tol
        L-BFGS stops where no entry of the gradient, divided by C times the sum of the weights,
        exceeds it.
    max_iter
        The most iterations of L-BFGS.
    class_weight
        ``{class: weight}``, ``"balanced"`` or None, as in scikit-learn.
    warm_start
        Whether to start from the last fit instead of zero.
    random_state
        Decides which rows are in which fold of ``weights="auto"``; nothing else is random.
    allow_blocks
        Whether a label may also be the name of a block ("tree", or "kind:tree" where levels share
        names) or a set of classes, for rows whose class is not known exactly. In ``class_weight``
        such a row counts with the mean over its classes.

    Attributes
    ----------
    classes_
        The classes, sorted: those of the structure, or of ``y`` if there is none. A class without
        rows has a column too, and a probability near 0.
    coef_, intercept_
        The coefficients, (classes, features), and the intercepts, (classes,), in that order.
    weights_
        The weight of each partition that was used.
    structure_
        The structure with these weights, built if it was a short form; None without one.
    n_iter_
        How many iterations L-BFGS took.
    block_scores_
        The sorted scores of the rows of ``calibrate_blocks``; None without.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy(
    ...     {"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)}, level_names=["kind"]
    ... )
    >>> X, y = [[1.0], [1.2], [-1.0], [-1.2]], ["oak", "maple", "rose", "rose"]
    >>> model = StructuredLogisticRegression(plants).fit(X, y)
    >>> model.classes_.tolist()
    ['maple', 'oak', 'rose']
    >>> model.predict_level([[2.0], [-2.0]], "kind").tolist()
    ['tree', 'flower']
    """

    def __init__(  # noqa: PLR0913  scikit-learn's way: every parameter by name
        self,
        structure: RandomPartition | str | None = None,
        *,
        weights: ArrayLike | float | str | None = None,
        C: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        allow_blocks: bool = False,
    ) -> None:
        self.structure = structure
        self.weights = weights
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.allow_blocks = allow_blocks

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to features, (n, features), and labels, (n,)."""
        self._check_parameters()
        features, labels = self._features_and_labels(X, y)
        given = given_structure(self.structure, labels, allow_blocks=self.allow_blocks)
        structure = chosen_structure(self, given, features, labels, sample_weight)
        kind = Classes.of_mixed if self.allow_blocks else Classes.of
        classes = kind(structure, labels)
        codes = classes.encode(labels)
        check_two_classes(codes)
        weights = row_weights(sample_weight, self.class_weight, codes, classes)
        # Two classes have coefficients -a and a, and |2a|^2 is twice the sum of their squares.
        penalty = (2.0 if len(classes.labels) == 2 else 1.0) / (self.C * weights.sum())
        layout = Layout.of(_fixed(classes.structure))
        coarse = CoarseLayouts.of(layout, classes.sets) if classes.sets else None
        objective = LinearObjective(
            features, codes, weights, layout, penalty=penalty, coarse=coarse
        )
        minimum, n_iter = self._minimum(objective, self._start(objective, classes))
        coef, intercept = (
            part[classes.columns].astype(features.dtype) for part in objective.split(minimum)
        )
        return self._keep(files.FittedLinear(classes, coef, intercept, n_iter))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits, (n, classes), but of two classes the log odds of the second, (n,)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, (n,)."""
        best = self._logits(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    score = accuracy

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of the classes, (n, classes)."""
        return softmax(self._logits(X), axis=1)

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the probabilities, exact where those underflow."""
        return log_softmax(self._logits(X), axis=1)

    def predict_level(self, X: Any, level: str) -> NDArray[np.str_]:
        """Return the name of the most probable block of a level for each row, (n,).

        See :func:`~structent.estimators.answers.predicted_blocks`.
        """
        proba = self.predict_proba(X)
        return predicted_level(proba, self._classes, self.structure_, level)

    def calibrate_blocks(self, X: Any, y: Any) -> Self:
        """Calibrate the answers of :meth:`predict_blocks` on held-out rows.

        As :meth:`StructuredBoostingClassifier.calibrate_blocks
        <structent.estimators.StructuredBoostingClassifier.calibrate_blocks>`.
        """
        scores = calibration_scores(y, self.predict_proba(X), self.classes_, self.structure_)
        self.block_scores_: FloatArray | None = scores
        return self

    def predict_blocks(self, X: Any, *, confidence: float = 0.9) -> HedgedPredictions:
        """Return for each row the smallest set of its chain that can be trusted.

        As :meth:`StructuredBoostingClassifier.predict_blocks
        <structent.estimators.StructuredBoostingClassifier.predict_blocks>`.
        """
        return block_answers(
            self.predict_proba(X), self.classes_, self.structure_, self.block_scores_, confidence
        )

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, str] | None = None
    ) -> None:
        """Write the model to a file, all or not at all: a zip of JSON and the coefficients.

        As :meth:`StructuredBoostingClassifier.save
        <structent.estimators.StructuredBoostingClassifier.save>`.
        """
        check_is_fitted(self)
        fitted = files.FittedLinear(
            self._classes, self.coef_, self.intercept_, self.n_iter_, self.block_scores_
        )
        names = getattr(self, "feature_names_in_", None)
        saved = files.Saved(self.get_params(deep=False), names)
        files.save_linear(path, fitted, saved, attachments or {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model of a file that :meth:`save` wrote. No code of the file is run."""
        fitted, saved = files.load_linear(path)
        model = cls(**saved.parameters)
        model.n_features_in_ = fitted.coef.shape[1]
        if saved.feature_names is not None:
            model.feature_names_in_ = saved.feature_names
        return model._keep(fitted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _features_and_labels(self, X: Any, y: Any) -> tuple[Any, Labels]:
        if isinstance(y, CodedLabels):
            features = validate_data(self, X, ensure_min_samples=2, **_FEATURES)
            check_consistent_length(features, y)
            return features, labels_to_fit(y, None, allow_blocks=self.allow_blocks)
        if y is not None:
            y = with_pairs(y, getattr(self.structure, "classes", None))
        if self.allow_blocks and y is not None:
            y = mixed_labels(y)  # before NumPy makes one type of all labels
        features, labels = validate_data(self, X, y, ensure_min_samples=2, **_FEATURES)
        return features, labels_to_fit(labels, None, allow_blocks=self.allow_blocks)

    def _check_parameters(self) -> None:
        for name, value in (("C", self.C), ("tol", self.tol)):
            if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:
                raise StructentError(f"{name} must be a number above 0, got {value!r}")
        checked_integer(self.max_iter, "max_iter", at_least=1, at_most=2**31 - 1)

    def _start(self, objective: LinearObjective, classes: Classes) -> FloatArray:
        start = np.zeros(objective.n_parameters)
        if self.warm_start and hasattr(self, "coef_"):
            same_classes = np.array_equal(self.classes_, classes.values)
            if not same_classes or self.coef_.shape != objective.shape:
                raise StructentError(
                    f"warm_start needs the classes of the last fit and its {self.coef_.shape[1]} "
                    "features, got others; set warm_start=False to start from zero"
                )
            coef, intercept = objective.split(start)
            coef[classes.columns], intercept[classes.columns] = self.coef_, self.intercept_
        return start

    def _minimum(self, objective: LinearObjective, start: FloatArray) -> tuple[FloatArray, int]:
        # The criteria of scikit-learn's LogisticRegression, so that tol means the same.
        result = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": self.max_iter,
                "maxls": 50,
                "gtol": float(self.tol),
                "ftol": 64 * float(np.finfo(np.float64).eps),
            },
        )
        n_iter = min(int(result.nit), self.max_iter)
        if not result.success:
            warnings.warn(
                f"L-BFGS did not converge to tol={self.tol:g} in {n_iter} iterations "
                f"({result.message}); scale the features, or raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return result.x, n_iter

    def _keep(self, fitted: files.FittedLinear) -> Self:
        """Take over what was learned with these parameters, now or before it was saved."""
        self._classes, self.classes_ = fitted.classes, fitted.classes.values
        self.structure_ = None if self.structure is None else fitted.classes.structure
        self.weights_ = weights_of(fitted.classes.structure)
        self.coef_, self.intercept_, self.n_iter_ = fitted.coef, fitted.intercept, fitted.n_iter
        self.block_scores_ = fitted.block_scores
        return self

    def _logits(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        features = validate_data(self, X, reset=False, **_FEATURES)
        logits: NDArray[Any] = features @ self.coef_.T + self.intercept_
        return logits


def _fixed(structure: Structure) -> RandomPartition:
    if not isinstance(structure, RandomPartition):
        raise StructureError(
            f"structure must be a RandomPartition, got {type(structure).__name__}: L-BFGS cannot "
            "follow partitions that change with every iteration; fix them with its sample(0), or "
            "use StructuredBoostingClassifier or the PyTorch loss"
        )
    return structure


class LinearObjective:
    r"""The function of coefficients A and intercepts b that the linear model minimises.

    .. math:: F(A, b) = \sum_i \frac{s_i}{S} \, loss(A x_i + b, y_i)
              + \frac{penalty}{2} \lVert A \rVert^2, \qquad S = \sum_i s_i

    Called with the parameters as one flat array, first A row by row, then b, it returns the value
    and the gradient, both in float64. The products with X are taken in X's own precision.

    Parameters
    ----------
    X
        The features, (n, features), in float32 or float64, dense or sparse.
    labels
        The column of each row's class, (n,), or its code in ``coarse``.
    row_weights
        The weights s of the rows, (n,).
    layout
        The structure, compiled.
    penalty
        The strength of the penalty.
    coarse
        The sets of classes that labels beyond the classes mean; none if None.

    Examples
    --------
    >>> from structent import trivial
    >>> plain = Layout.of(trivial(["a", "b"]))
    >>> X, labels = np.array([[1.0], [-1.0]]), np.array([0, 1])
    >>> objective = LinearObjective(X, labels, np.ones(2), plain, penalty=0.5)
    >>> value, gradient = objective(np.zeros(4))
    >>> round(value, 6), gradient.tolist()
    (0.693147, [-0.5, 0.5, 0.0, 0.0])
    """

    def __init__(
        self,
        X: Any,
        labels: IndexArray,
        row_weights: FloatArray,
        layout: Layout,
        *,
        penalty: float,
        coarse: CoarseLayouts | None = None,
    ) -> None:
        self.X, self.labels, self.layout, self.penalty = X, labels, layout, penalty
        self.coarse = coarse
        self._is_sparse = bool(issparse(X))
        self.shares = row_weights / row_weights.sum()
        self.shape = (layout.n_classes, X.shape[1])
        self.n_parameters = layout.n_classes * (X.shape[1] + 1)
        # Two arrays, not one: where a block underflows the kernel returns to its logits.
        self._logits = np.empty((X.shape[0], layout.n_classes), dtype=X.dtype)
        self._gradient = np.empty_like(self._logits)
        self._column_of_shares = self.shares.astype(X.dtype)[:, None]

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the value at these parameters, and the gradient, flat like them."""
        coef, intercept = self.split(parameters)
        _write_product(self.X, coef.astype(self.X.dtype, copy=False).T, self._logits)
        self._logits += intercept.astype(self.X.dtype, copy=False)
        losses = loss_and_gradient(
            self._logits, self.labels, self.layout, gradient=self._gradient, coarse=self.coarse
        )
        self._gradient *= self._column_of_shares
        value = self.shares @ losses.rows + 0.5 * self.penalty * np.vdot(coef, coef)
        return float(value), self._gradient_of_parameters(coef)

    def split(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients, (classes, features), and the intercepts, (classes,): views."""
        n_classes, n_features = self.shape
        coef = parameters[: n_classes * n_features].reshape(self.shape)
        return coef, parameters[n_classes * n_features :]

    def _gradient_of_parameters(self, coef: FloatArray) -> FloatArray:
        gradient = np.empty(self.n_parameters)
        of_coef, of_intercept = self.split(gradient)
        if self._is_sparse:
            of_coef[:] = (self.X.T @ self._gradient).T
        else:
            _write_product(self._gradient.T, self.X, of_coef)
        of_coef += self.penalty * coef
        self._gradient.sum(axis=0, out=of_intercept, dtype=np.float64)
        return gradient


def _write_product(left: Any, right: NDArray[Any], out: NDArray[Any]) -> None:
    """Write a matrix product, into place without a copy where BLAS can."""
    if issparse(left) or left.dtype != out.dtype:
        out[:] = left @ right
    else:
        np.matmul(left, right, out=out)
