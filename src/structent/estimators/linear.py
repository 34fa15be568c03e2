"""Multinomial logistic regression with the structure in its loss, in its prior, or in both."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from structent._checks import checked_integer
from structent._typing import FloatArray
from structent.decisions import HedgedPredictions
from structent.errors import StructentError
from structent.estimators import files
from structent.estimators.answers import block_answers, calibration_scores, predicted_level
from structent.estimators.classes import (
    Classes,
    Labels,
    accuracy,
    given_structure,
    labels_to_fit,
)
from structent.estimators.columns import table_to_fit, validated, validated_table
from structent.estimators.design import Design
from structent.estimators.folds import checked_groups
from structent.estimators.linear_objective import LinearObjective, gaussian_prior
from structent.estimators.prior import LinearProblem, Prior, chosen_prior, fitted, fixed_for_loss
from structent.estimators.rows import checked_sample_weight
from structent.estimators.weights import chosen_structure, reweighted, weights_of
from structent.kernels.fused import probabilities
from structent.structure.samplers import Structure

_FEATURES: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class StructuredLogisticRegression(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    BaseEstimator,  # type: ignore[misc]  # scikit-learn has no types
):
    r"""Multinomial logistic regression that knows how its classes are related.

    .. math:: \min_{A, b} \; C \sum_i s_i \, loss(A x_i + b, y_i) + \tfrac12 tr(A^T K^{-1} A)

    where *loss* is the structured cross-entropy, :math:`s_i` the weight of row i and K the
    similarity of the classes (:meth:`RandomPartition.similarity
    <structent.structure.RandomPartition.similarity>`). It is meant as the last layer on frozen
    embeddings, or with ``encode=True`` for any table. Without a structure it is scikit-learn's
    ``LogisticRegression``, with the same meaning of ``C``, ``tol`` and ``max_iter``.

    The structure can act in two places, each with its own weight of the singletons, where 1 means
    "not here": in the loss (``weights``), and in the prior on the coefficients (``prior``).

    - the loss alone: ``StructuredLogisticRegression(structure)``
    - the prior alone: ``StructuredLogisticRegression(structure, weights=1, prior=0.5)``
    - both: ``StructuredLogisticRegression(structure, prior=0.5)``

    The structured loss is not convex. L-BFGS starts from zero without random choices, so the result
    depends only on the data; it may be a local minimum.

    With two classes scikit-learn has one vector of coefficients, ``coef_[1] - coef_[0]`` here, and
    penalises its square. This model does the same, so its penalty is then twice the formula's, and
    the predictions are equal.

    Parameters
    ----------
    structure
        How the classes are related: a structure, or a short form of the command line, ``"ordinal"``
        or ``"circular:width=3"``, which ``fit`` builds from the labels; None for no structure. In
        the loss it must be fixed: a sampler's partitions change with every iteration, which L-BFGS
        cannot follow. In the prior a sampler counts by its expected similarity.
    weights
        The weights of the loss: None for the structure's own, a number for the weight of the
        singletons (1 for the plain loss), one number per partition for all, or ``"auto"`` to choose
        the weight of the singletons by cross-validation
        (:func:`~structent.estimators.weights.chosen_structure`).
    prior
        The weights of the prior, which determine K: a number for the weight of the singletons (1
        for plain ridge), one number per partition, or ``"auto"`` to choose the weight of the
        singletons, including plain ridge, together with C by cross-validation
        (:func:`~structent.estimators.prior.chosen_prior`). If K is singular, coefficients stay
        within its range, and the inverse is taken there. If ``weights`` is ``"auto"``, too, the
        prior is chosen first, with the plain loss.
    C
        The inverse strength of the penalty on the coefficients; intercepts have no penalty. With
        ``prior="auto"`` the search starts from it: C times 1/10000 to 10000 is tried.
    tol
        L-BFGS stops when no entry of the gradient, divided by C times the sum of the weights,
        exceeds this. With a prior, the gradient is taken with respect to parameters in which
        coefficients have about equal curvature. With ``prior="auto"`` it continues, within
        ``max_iter``, until no entry exceeds a tenth of this times the largest entry at zero
        coefficients: with few rows of many classes gradients are small, and priors can only be
        compared if fits are close to their minimum.
    max_iter
        The most iterations of L-BFGS.
    class_weight
        ``{class: weight}``, ``"balanced"`` or None, as in scikit-learn.
    warm_start
        Whether to start from the last fit instead of zero.
    random_state
        The seed of the folds of ``weights="auto"`` and ``prior="auto"``; nothing else is random.
    allow_blocks
        Whether a label may also be the name of a block ("tree", or "kind:tree" if levels share
        names) or a set of classes, for rows whose class is not known exactly. The ``class_weight``
        of such a row is the mean over its classes.
    encode
        Whether to encode X: a raw pandas or polars table with text, missing values and any scales,
        or an array that may contain NaN. Numbers are standardised over the training rows, weighted
        by ``sample_weight``; a missing number counts as the mean, and a column with missing numbers
        in training gets one more column, which is 1 if the number is missing. Categories become
        columns of 0 and 1, all 0 if the category is missing or was never seen. The penalty is on
        the coefficients of these columns. As in ``StructuredBoostingClassifier``, numbers are held
        in float32. If False, X must be numbers without missing values.

    Attributes
    ----------
    classes_
        The classes, sorted: those of the structure, or of ``y`` if there is none. A class without
        rows has a column too, and a probability near 0.
    coef_, intercept_
        The coefficients, (classes, features), and the intercepts, (classes,), in that order. With
        ``encode=True`` features are the columns that the table was turned into.
    coef_names_
        The names of the columns of ``coef_``: the names of the columns of X, or ``x0``, ``x1``, ...
        if these have none; with ``encode=True`` such as ``"size"``, ``"size missing"`` and
        ``"colour=red"``.
    weights_
        The weight of each partition that was used in the loss.
    structure_
        The structure with these weights, built if it was a short form; None without one.
    prior_
        The weight of each partition that was used in the prior.
    C_
        The C that was used.
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
        structure: Structure | str | None = None,
        *,
        weights: ArrayLike | float | str | None = None,
        prior: ArrayLike | float | str = 1.0,
        C: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        allow_blocks: bool = False,
        encode: bool = False,
    ) -> None:
        self.structure = structure
        self.weights = weights
        self.prior = prior
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.allow_blocks = allow_blocks
        self.encode = encode

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: Any = None
    ) -> Self:
        """Fit the model to features, (n, features), and labels, (n,).

        Parameters
        ----------
        X, y
            The features, and the label of each row.
        sample_weight
            The weight of each row, (n,).
        groups
            The group of each row, (n,), if rows belong together: rows of one group share a fold of
            ``weights="auto"`` and ``prior="auto"``.
        """
        self._check_parameters()
        features, labels, design = self._features_labels_and_design(X, y, sample_weight)
        group_of = checked_groups(groups, len(labels))
        given = given_structure(self.structure, labels, allow_blocks=self.allow_blocks)
        rows = (features, labels, sample_weight)
        if isinstance(self.weights, str) and given is not None:
            # The prior is chosen first, under the plain loss, then the loss beside it.
            plain = reweighted(fixed_for_loss(given), 1.0, "weights")
            prior = chosen_prior(self, given, LinearProblem.of(self, plain, *rows), group_of)
            # Folds share the encoding of all rows, because it does not use labels.
            model = clone(self).set_params(prior=prior.parameter, C=prior.c, encode=False)
            structure = chosen_structure(model, given, *rows, group_of)
            problem = LinearProblem.of(self, structure, *rows)
        else:
            problem = LinearProblem.of(self, chosen_structure(self, given, *rows), *rows)
            prior = chosen_prior(self, given, problem, group_of)
        return self._keep(self._fitted(problem, prior, design))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits, (n, classes); for two classes, the log odds of the second, (n,)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, (n,)."""
        best = self._logits(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    score = accuracy

    @property
    def coef_names_(self) -> list[str]:
        """The name of each column of ``coef_``."""
        check_is_fitted(self)
        unnamed = [f"x{place}" for place in range(self.n_features_in_)]
        names = list(getattr(self, "feature_names_in_", unnamed))
        return names if self._design is None else self._design.names(names)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of the classes, (n, classes)."""
        return probabilities(self._logits(X))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the probabilities, exact also if these underflow."""
        return log_softmax(self._logits(X), axis=1)

    def predict_level(self, X: Any, level: str) -> NDArray[np.str_]:
        """Return the name of the most probable block of a level for each row, (n,).

        See :func:`~structent.estimators.answers.predicted_blocks`.
        """
        proba = self.predict_proba(X)
        return predicted_level(proba, self._classes, self.structure_, level)

    def calibrate_blocks(self, X: Any, y: Any, *, proba: Any = None) -> Self:
        """Calibrate the answers of :meth:`predict_blocks` on held-out rows.

        As :meth:`StructuredBoostingClassifier.calibrate_blocks
        <structent.estimators.StructuredBoostingClassifier.calibrate_blocks>`.
        """
        given = self.predict_proba(X) if proba is None else proba
        scores = calibration_scores(y, given, self.classes_, self.structure_)
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
        """Write the model to a file, completely or not at all: a zip of JSON and coefficients.

        As :meth:`StructuredBoostingClassifier.save
        <structent.estimators.StructuredBoostingClassifier.save>`.
        """
        fitted = self._as_fitted()
        names = getattr(self, "feature_names_in_", None)
        # The weights and the prior that were used, so that a loaded model can be fitted again.
        used = {"prior": self._prior.parameter, "C": self._prior.c}
        saved = files.Saved(self.get_params(deep=False) | used, names)
        files.save_linear(path, fitted, saved, attachments or {})

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the model as an ONNX file, completely or not at all.

        The file has the input ``X``, float32, (n, columns), and the outputs ``label``, (n,), and
        ``probabilities``, (n, classes), in the order of ``classes_``. With ``encode=True`` NaN is a
        missing number, and a table with categories has one input per column, as in
        :meth:`StructuredBoostingClassifier.to_onnx
        <structent.estimators.StructuredBoostingClassifier.to_onnx>`. Needs ``structent[onnx]``.
        """
        from structent.estimators import onnx  # noqa: PLC0415  few need it

        names = getattr(self, "feature_names_in_", None)
        onnx.save_linear(path, self._as_fitted(), names)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model of a file that :meth:`save` wrote. No code of the file is run."""
        fitted, saved = files.load_linear(path)
        model = cls(**saved.parameters)
        model.n_features_in_ = fitted.n_columns
        if saved.feature_names is not None:
            model.feature_names_in_ = saved.feature_names
        return model._keep(fitted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.encode
        tags.input_tags.allow_nan = bool(self.encode)
        return tags

    def _features_labels_and_design(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[Any, Labels, Design | None]:
        """Return what the model is fitted to, and how X became its features."""
        if not self.encode:
            return *self._features_and_labels(X, y), None
        labels = labels_to_fit(y, self.structure, allow_blocks=self.allow_blocks)
        table = table_to_fit(self, X)
        check_consistent_length(table, labels)
        design = Design.of(table, checked_sample_weight(sample_weight, len(labels)))
        return design.matrix(design.columns.codes(table)), labels, design

    def _features_and_labels(self, X: Any, y: Any) -> tuple[Any, Labels]:
        labels = labels_to_fit(y, self.structure, allow_blocks=self.allow_blocks)
        features = self._features(X, reset=True)
        check_consistent_length(features, labels)
        return features, labels

    def _features(self, X: Any, *, reset: bool) -> Any:
        least = 2 if reset else 1
        features = validated(self, X, reset=reset, ensure_min_samples=least, **_FEATURES)
        checked: Any = features
        entries = checked.data if issparse(features) else checked
        largest = max(entries.max(initial=0), -entries.min(initial=0))
        most = float(np.sqrt(np.finfo(features.dtype).max)) / 4
        if largest > most:
            raise StructentError(
                f"features must be at most {most:.0e} in {features.dtype}, so that sums of their "
                f"products are finite, got {largest:g}; scale them"
            )
        return features

    def _check_parameters(self) -> None:
        for name, value in (("C", self.C), ("tol", self.tol)):
            if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:
                raise StructentError(f"{name} must be a number above 0, got {value!r}")
        checked_integer(self.max_iter, "max_iter", at_least=1, at_most=2**31 - 1)
        if not isinstance(self.encode, bool | np.bool_):
            raise StructentError(f"encode must be True or False, got {self.encode!r}")

    def _fitted(
        self, problem: LinearProblem, prior: Prior, design: Design | None
    ) -> files.FittedLinear:
        of_classes = None
        if prior.structure is not None and not prior.is_plain:
            of_classes = gaussian_prior(prior.structure)
        classes, objective = problem.classes, problem.objective(prior.c, of_classes)
        found = fitted(self, objective, self._start(objective, classes, design))
        if found.failure is not None:
            advice = (
                "raise max_iter or tol"
                if self.encode
                else ("scale the features (encode=True does), or raise max_iter or tol")
            )
            warnings.warn(
                f"L-BFGS did not converge to tol={self.tol:g} in {found.n_iter} iterations "
                f"({found.failure}); {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )
        coef, intercept = (
            part[classes.columns].astype(problem.features.dtype)
            for part in objective.split(found.parameters)
        )
        return files.FittedLinear(classes, coef, intercept, found.n_iter, prior, design=design)

    def _start(
        self, objective: LinearObjective, classes: Classes, design: Design | None
    ) -> tuple[FloatArray, FloatArray] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        is_alike = np.array_equal(self.classes_, classes.values)
        is_alike &= _layout(self._design) == _layout(design)
        if not is_alike or self.coef_.shape != objective.shape:
            raise StructentError(
                f"warm_start needs the classes of the last fit and its {self.coef_.shape[1]} "
                "features, got others; set warm_start=False to start from zero"
            )
        place = np.argsort(classes.columns)
        return self.coef_[place].astype(np.float64), self.intercept_[place].astype(np.float64)

    def _keep(self, fitted: files.FittedLinear) -> Self:
        """Set what was learned with these parameters, now or before it was saved."""
        self._classes, self.classes_ = fitted.classes, fitted.classes.values
        self.structure_ = None if self.structure is None else fitted.classes.structure
        self.weights_ = weights_of(fitted.classes.structure)
        self.prior_, self.C_ = fitted.prior.weights, fitted.prior.c
        self._prior = fitted.prior
        self.coef_, self.intercept_, self.n_iter_ = fitted.coef, fitted.intercept, fitted.n_iter
        self.block_scores_ = fitted.block_scores
        self._design = fitted.design
        return self

    def _as_fitted(self) -> files.FittedLinear:
        check_is_fitted(self)
        return files.FittedLinear(
            self._classes, self.coef_, self.intercept_, self.n_iter_, self._prior,
            self.block_scores_, self._design,
        )  # fmt: skip

    def _logits(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        logits: NDArray[Any] = self._encoded(X, self._design) @ self.coef_.T + self.intercept_
        return logits

    def _encoded(self, X: Any, design: Design | None) -> Any:
        """Return the features of rows as those of the training rows were made."""
        if design is None:
            return self._features(X, reset=False)
        return design.matrix(design.columns.codes(validated_table(self, X, reset=False)))


def problems_of(
    model: StructuredLogisticRegression, train: tuple[Any, Labels], held_out: tuple[Any, Labels]
) -> tuple[LinearProblem, LinearProblem]:
    """Return training rows and held-out rows encoded as ``fit`` does it, for a search of C.

    The weights of the structure must be given, not to be chosen.
    """
    model._check_parameters()
    features, labels, design = model._features_labels_and_design(*train, None)
    given = given_structure(model.structure, labels, allow_blocks=model.allow_blocks)
    structure = chosen_structure(model, given, features, labels, None)
    problem = LinearProblem.of(model, structure, features, labels, None)
    X, y = held_out
    return problem, replace(
        problem,
        features=model._encoded(X, design),
        codes=problem.classes.encode(y),
        sample_weight=np.ones(len(y)),
    )


def _layout(design: Design | None) -> tuple[Any, ...] | None:
    """Return the values that decide which columns a design matrix has."""
    return None if design is None else (design.columns, design.has_missing)
