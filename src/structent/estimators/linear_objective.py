"""The function that the linear model minimises: the loss, and the prior on its coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, eye_array, hstack, issparse

from structent._typing import FloatArray, IndexArray
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.fused import loss_and_gradient
from structent.kernels.layout import Layout
from structent.structure.samplers import Structure
from structent.structure.similarity import SimilarityFactor, similarity_of

# Up to so many classes the eigenvectors of K take less time than one of many iterations.
_MOST_EIGENVECTORS = 1000


class Coordinates(NamedTuple):
    r"""Coefficients A = R u in terms of parameters u that suit L-BFGS.

    Attributes
    ----------
    matrix
        The matrix R, (classes, parameters).
    penalties
        The p by which :math:`tr(A^T K^{-1} A) = \sum_j p_j \lVert u_j \rVert^2`, (parameters,).
    inverse
        Gives the parameters of coefficients.
    """

    matrix: FloatArray | csr_array
    penalties: FloatArray
    inverse: Callable[[FloatArray], FloatArray]


class GaussianPrior(Protocol):
    """The prior under which the coefficients of a feature have covariance K over the classes."""

    def coordinates(self, penalty: float, curvature: float) -> Coordinates:
        """Return parameters for this strength of the penalty beside the curvature of the loss."""


def gaussian_prior(structure: Structure) -> GaussianPrior:
    """Return the prior whose covariance is the similarity of a structure's classes."""
    if len(structure.classes) > _MOST_EIGENVECTORS:
        return PriorOnBlocks(SimilarityFactor.of(structure))
    values, vectors = np.linalg.eigh(similarity_of(structure))
    # Coefficients have no part in the null space, whose eigenvalues are only rounding.
    has_variance = values > len(values) * np.finfo(np.float64).eps * values[-1]
    return PriorOnEigenvectors(values[has_variance], vectors[:, has_variance])


class PriorOnEigenvectors(NamedTuple):
    r"""A prior whose parameters are along the eigenvectors of K.

    L-BFGS works best where all directions are curved alike. In coordinates where the penalty is
    round the loss is not, and the other way round. So R evens out their sum: along eigenvector j of
    K it scales by :math:`(h + \lambda / \kappa_j)^{-1/2}`, h being the curvature of the loss.
    """

    eigenvalues: FloatArray
    eigenvectors: FloatArray

    def coordinates(self, penalty: float, curvature: float) -> Coordinates:
        """Return parameters for this strength of the penalty beside the curvature of the loss."""
        scale = (curvature + penalty / self.eigenvalues) ** -0.5
        # Of the size of coefficients, which intercepts and the criterion of convergence expect.
        scale /= np.sqrt((scale**2).mean())

        def inverse(coef: FloatArray) -> FloatArray:
            parameters: FloatArray = (self.eigenvectors.T @ coef) / scale[:, None]
            return parameters

        return Coordinates(self.eigenvectors * scale, scale**2 / self.eigenvalues, inverse)


class PriorOnBlocks(NamedTuple):
    """A prior whose parameters are the vectors of classes and blocks: for thousands of classes.

    The penalty is round, the matrix sparse, and no table over pairs of classes is made.
    """

    factor: SimilarityFactor

    def coordinates(self, penalty: float, curvature: float) -> Coordinates:  # noqa: ARG002
        """Return the vectors of classes and blocks, whatever the penalty and the curvature."""
        own = np.sqrt(self.factor.singleton_weight) * eye_array(self.factor.n_classes)
        matrix = csr_array(hstack([own, csr_array(self.factor.matrix)]))

        def inverse(coef: FloatArray) -> FloatArray:
            return np.concatenate(self.factor.block_vectors(coef))

        return Coordinates(matrix, np.ones(matrix.shape[1]), inverse)


class LinearObjective:
    r"""The function of coefficients A and intercepts b that the linear model minimises.

    .. math:: F(A, b) = \sum_i \frac{s_i}{S} \, loss(A x_i + b, y_i)
              + \frac{penalty}{2} \, tr(A^T K^{-1} A), \qquad S = \sum_i s_i

    Called with the parameters as one flat array, first those of A row by row, then b, it returns
    the value and the gradient, both in float64. Without a prior K is the identity, and the
    parameters are A itself. The products with X are taken in X's own precision.

    Parameters
    ----------
    X
        The features, (n, features), in float32 or float64, dense or sparse.
    labels
        The column of each row's class, (n,), or its code in ``coarse``.
    row_weights
        The weights s of the rows, (n,).
    layout
        The structure of the loss, compiled.
    penalty
        The strength of the penalty.
    coarse
        The sets of classes that labels beyond the classes mean; none if None.
    prior
        The prior whose covariance is K; None for the identity.

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
        prior: GaussianPrior | None = None,
    ) -> None:
        self.X, self.labels, self.layout, self.penalty = X, labels, layout, penalty
        self.coarse = coarse
        self._is_sparse = bool(issparse(X))
        self.shares = row_weights / row_weights.sum()
        self.shape = (layout.n_classes, X.shape[1])
        self._coordinates = None
        self._penalties: float | FloatArray = penalty
        self._rows = layout.n_classes  # of the parameters of A
        if prior is not None:
            self._coordinates = prior.coordinates(penalty, _curvature(X) / layout.n_classes)
            self._penalties = penalty * self._coordinates.penalties[:, None]
            self._rows = len(self._coordinates.penalties)
        self.n_parameters = self._rows * X.shape[1] + layout.n_classes
        # Two arrays, not one: where a block underflows the kernel returns to its logits.
        self._logits = np.empty((X.shape[0], layout.n_classes), dtype=X.dtype)
        self._gradient = np.empty_like(self._logits)
        self._column_of_shares = self.shares.astype(X.dtype)[:, None]

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the value at these parameters, and the gradient, flat like them."""
        of_coef, _ = self._views(parameters)
        coef, intercept = self.split(parameters)
        _write_product(self.X, coef.astype(self.X.dtype, copy=False).T, self._logits)
        self._logits += intercept.astype(self.X.dtype, copy=False)
        losses = loss_and_gradient(
            self._logits, self.labels, self.layout, gradient=self._gradient, coarse=self.coarse
        )
        self._gradient *= self._column_of_shares
        slope = self._penalties * of_coef
        value = self.shares @ losses.rows + 0.5 * np.vdot(of_coef, slope)
        return float(value), self._gradient_of_parameters(slope)

    def split(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients, (classes, features), and the intercepts, (classes,)."""
        of_coef, intercept = self._views(parameters)
        if self._coordinates is None:
            return of_coef, intercept
        return self._coordinates.matrix @ of_coef, intercept

    def joined(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return the parameters of coefficients and intercepts."""
        of_coef = coef if self._coordinates is None else self._coordinates.inverse(coef)
        return np.concatenate([of_coef.ravel(), intercept], dtype=np.float64)

    def _views(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_features = self.shape[1]
        of_coef = parameters[: self._rows * n_features].reshape(self._rows, n_features)
        return of_coef, parameters[self._rows * n_features :]

    def _gradient_of_parameters(self, slope_of_penalty: FloatArray) -> FloatArray:
        gradient = np.empty(self.n_parameters)
        of_parameters, of_intercept = self._views(gradient)
        of_coef = of_parameters if self._coordinates is None else np.empty(self.shape)
        if self._is_sparse:
            of_coef[:] = (self.X.T @ self._gradient).T
        else:
            _write_product(self._gradient.T, self.X, of_coef)
        if self._coordinates is not None:
            of_parameters[:] = self._coordinates.matrix.T @ of_coef
        of_parameters += slope_of_penalty
        self._gradient.sum(axis=0, out=of_intercept, dtype=np.float64)
        return gradient


class Minimum(NamedTuple):
    """Where L-BFGS ended, after how many iterations, and why if it did not converge."""

    parameters: FloatArray
    n_iter: int
    failure: str | None


def minimum_of(
    objective: LinearObjective,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    aim: float | None = None,
) -> Minimum:
    """Return a minimum of the objective, by the criteria of scikit-learn's LogisticRegression.

    It converged if no entry of the gradient exceeds ``tol``. With ``aim`` it goes on until none
    exceeds that, as far as ``max_iter`` allows.
    """
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "maxls": 50,
            "gtol": tol if aim is None else aim,
            "ftol": 64 * float(np.finfo(np.float64).eps),
        },
    )
    n_iter = min(int(result.nit), max_iter)
    converged = result.success or np.abs(result.jac).max() <= tol
    return Minimum(result.x, n_iter, None if converged else str(result.message))


def _curvature(X: Any) -> float:
    """Return the mean square of the features of some rows; 1 where all are 0, as it divides."""
    some: Any = X[:1000]
    entries = some.data if issparse(X) else some
    total = float(np.square(entries, dtype=np.float64).sum())
    return total / (some.shape[0] * some.shape[1]) or 1.0


def _write_product(left: Any, right: NDArray[Any], out: NDArray[Any]) -> None:
    """Write a matrix product, into place without a copy where BLAS can."""
    if issparse(left) or left.dtype != out.dtype:
        out[:] = left @ right
    else:
        np.matmul(left, right, out=out)
