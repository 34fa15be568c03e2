"""The function that the linear model minimises: the loss, and the prior on its coefficients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, eye_array, hstack, issparse
from threadpoolctl import ThreadpoolController

from structent._threads import available_threads, in_parts
from structent._typing import FloatArray, IndexArray
from structent.estimators import lbfgs
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.fused import gradient_and_curvature
from structent.kernels.layout import Layout
from structent.structure import RandomPartition
from structent.structure.samplers import Structure
from structent.structure.similarity import SimilarityFactor, similarity_of

# Up to this many classes, computing the eigenvectors of K takes less time than one iteration.
_MOST_EIGENVECTORS = 1000
_MOST_LOGITS = 2**17  # at a time, so that they fit into the processor's cache
_MOST_PARTS = 8  # of the rows; each part has its own gradient
# Up to this many products per evaluation, compiled loops are faster than BLAS called from Python.
_FEW_NUMBERS = 200_000
_FAILURES = {
    lbfgs.TOO_MANY_ITERATIONS: "too many iterations",
    lbfgs.NO_LOWER_POINT: "no lower point along the direction",
}
_LONG = 10_000  # from this many parameters on, BLAS adds vectors in threads
# Relative rounding errors of the value, by the precision of the products with X. A line search for
# a smaller gain would try step after step without success.
_ROUNDING = {np.dtype(np.float32): 2.0**-30, np.dtype(np.float64): 2.0**-46}


class Coordinates(NamedTuple):
    r"""Coefficients A = R u in terms of parameters u that suit L-BFGS.

    Attributes
    ----------
    matrix
        The matrix R, (classes, parameters).
    penalties
        The p by which :math:`tr(A^T K^{-1} A) = \sum_j p_j \lVert u_j \rVert^2`, (parameters,).
    inverse
        Returns the parameters of given coefficients.
    """

    matrix: FloatArray | csr_array
    penalties: FloatArray
    inverse: Callable[[FloatArray], FloatArray]


class GaussianPrior(Protocol):
    """The prior under which the coefficients of a feature have covariance K over the classes."""

    def coordinates(self, penalty: float, curvature: float) -> Coordinates:
        """Return parameters that suit this penalty and this curvature of the loss."""


def gaussian_prior(structure: Structure) -> GaussianPrior:
    """Return the prior whose covariance is the similarity of a structure's classes."""
    if len(structure.classes) > _MOST_EIGENVECTORS:
        return PriorOnBlocks(SimilarityFactor.of(structure))
    if isinstance(structure, RandomPartition):
        return _kept_prior(structure)
    return _prior_on_eigenvectors(structure)


@lru_cache(maxsize=2)
def _kept_prior(structure: RandomPartition) -> GaussianPrior:
    """Return the prior of a structure, cached because many penalties are tried with it."""
    return _prior_on_eigenvectors(structure)


def _prior_on_eigenvectors(structure: Structure) -> PriorOnEigenvectors:
    values, vectors = np.linalg.eigh(similarity_of(structure))
    # Coefficients have no component in the null space; its eigenvalues are rounding errors.
    has_variance = values > len(values) * np.finfo(np.float64).eps * values[-1]
    return PriorOnEigenvectors(values[has_variance], vectors[:, has_variance])


class PriorOnEigenvectors(NamedTuple):
    r"""A prior whose parameters are along the eigenvectors of K.

    L-BFGS works best if the curvature is the same in all directions. No coordinates achieve that
    for the penalty and the loss at once. So R equalises the curvature of their sum: it scales
    eigenvector j of K by :math:`(h + \lambda / \kappa_j)^{-1/2}`, where h is the curvature of the
    loss.
    """

    eigenvalues: FloatArray
    eigenvectors: FloatArray

    def coordinates(self, penalty: float, curvature: float) -> Coordinates:
        """Return parameters that suit this penalty and this curvature of the loss."""
        scale = (curvature + penalty / self.eigenvalues) ** -0.5
        # On the scale of coefficients, as intercepts and the convergence criterion expect.
        scale /= np.sqrt((scale**2).mean())

        def inverse(coef: FloatArray) -> FloatArray:
            parameters: FloatArray = (self.eigenvectors.T @ coef) / scale[:, None]
            return parameters

        return Coordinates(self.eigenvectors * scale, scale**2 / self.eigenvalues, inverse)


class PriorOnBlocks(NamedTuple):
    """A prior whose parameters are the vectors of classes and blocks: for thousands of classes.

    The penalty is the same in all directions, the matrix is sparse, and there is no table over
    pairs of classes.
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
        # With a strong penalty, L-BFGS would otherwise not move the intercepts, which have none.
        self._size = 1.0 / max(1.0, float(np.sqrt(penalty)))
        self._coordinates = None
        self._penalties: float | FloatArray = penalty
        self._rows = layout.n_classes  # of the parameters of A
        if prior is not None:
            self._coordinates = prior.coordinates(penalty, _curvature(X) / layout.n_classes)
            self._penalties = penalty * self._coordinates.penalties[:, None]
            self._rows = len(self._coordinates.penalties)
        self.n_parameters = self._rows * X.shape[1] + layout.n_classes
        n_parts = min(_MOST_PARTS, max(1, X.shape[0] * layout.n_classes // _MOST_LOGITS))
        self._bounds = [X.shape[0] * part // n_parts for part in range(n_parts + 1)]
        self._row_weights = self.shares.astype(X.dtype)
        self.n_threads = min(n_parts, available_threads())

    @property
    def small(self) -> lbfgs.Problem | None:
        """The problem for compiled L-BFGS; None if that would not be faster, or is impossible."""
        n_numbers = (self.X.shape[0] + self._rows) * self.shape[0] * (self.shape[1] + 1)
        if self._is_sparse or self.coarse is not None or n_numbers > _FEW_NUMBERS:
            return None
        coordinates, matrix = self._coordinates, np.empty((0, 0))
        if coordinates is not None:
            if not isinstance(coordinates.matrix, np.ndarray):
                return None
            matrix = np.ascontiguousarray(coordinates.matrix)
        penalties = np.broadcast_to(self._penalties, (self._rows, 1)).reshape(-1)
        return lbfgs.Problem(
            np.ascontiguousarray(self.X), self.labels, self._row_weights, self.layout.arrays,
            matrix, penalties.astype(np.float64), self._size,
        )  # fmt: skip

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the value at these parameters, and the gradient, flat like them."""
        of_parameters = self._views(parameters)[0] * self._size
        slope = self._penalties * of_parameters
        coef, intercept = (part.astype(self.X.dtype, copy=False) for part in self.split(parameters))
        n_parts = len(self._bounds) - 1
        # Parts are added in a fixed order, whatever the number of threads.
        values, of_coefs = np.zeros(n_parts), np.zeros((n_parts, *self.shape))
        of_intercepts = np.zeros((n_parts, self.shape[0]))
        sums = (values, of_coefs, of_intercepts)
        in_parts(self._add_parts, n_parts, self.n_threads, coef, intercept, *sums)
        gradient = np.empty(self.n_parameters)
        of_slope, of_intercept = self._views(gradient)
        of_coef, coordinates = of_coefs.sum(axis=0), self._coordinates
        of_slope[:] = of_coef if coordinates is None else coordinates.matrix.T @ of_coef
        of_slope += slope
        of_slope *= self._size
        of_intercepts.sum(axis=0, out=of_intercept)
        return float(values.sum() + 0.5 * np.vdot(of_parameters, slope)), gradient

    def _add_parts(
        self, first: int, last: int, coef: NDArray[Any], intercept: NDArray[Any],
        values: FloatArray, of_coefs: FloatArray, of_intercepts: FloatArray,
    ) -> None:  # fmt: skip
        """Add up the losses of some parts of the rows, and their gradient, a few rows at a time."""
        n_rows = min(len(self.labels), max(1, _MOST_LOGITS // self.shape[0]))
        # Two arrays, not one: if a block underflows, the kernel reads the logits again.
        all_logits, all_gradients = np.empty((2, n_rows, self.shape[0]), dtype=self.X.dtype)
        all_losses = np.empty(n_rows, dtype=self.X.dtype)
        for part in range(first, last):
            end = self._bounds[part + 1]
            for at in range(self._bounds[part], end, n_rows):
                rows = slice(at, min(at + n_rows, end))
                features, size = self.X[rows], rows.stop - at
                logits, gradient, losses = (
                    all_logits[:size],
                    all_gradients[:size],
                    all_losses[:size],
                )
                _write_product(features, coef.T, logits)
                logits += intercept
                gradient_and_curvature(
                    logits, self.labels[rows], self._row_weights[rows], self.layout,
                    losses=losses, gradient=gradient, coarse=self.coarse,
                )  # fmt: skip
                values[part] += losses.sum(dtype=np.float64)
                of_rows = features.T @ gradient if self._is_sparse else None
                of_coefs[part] += gradient.T @ features if of_rows is None else of_rows.T
                of_intercepts[part] += gradient.sum(axis=0, dtype=np.float64)

    def split(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients, (classes, features), and the intercepts, (classes,)."""
        of_coef, intercept = self._views(parameters)
        of_coef = of_coef * self._size
        if self._coordinates is None:
            return of_coef, intercept
        return self._coordinates.matrix @ of_coef, intercept

    def joined(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return the parameters for given coefficients and intercepts."""
        of_coef = coef if self._coordinates is None else self._coordinates.inverse(coef)
        return np.concatenate([(of_coef / self._size).ravel(), intercept], dtype=np.float64)

    def _views(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_features = self.shape[1]
        of_coef = parameters[: self._rows * n_features].reshape(self._rows, n_features)
        return of_coef, parameters[self._rows * n_features :]


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

    It converged if no entry of the gradient exceeds ``tol``. With ``aim`` it continues until no
    entry exceeds ``aim``, or until ``max_iter``.
    """
    if objective.small is not None:
        return _minimum_of_small(objective, objective.small, start, tol, max_iter, aim)
    # BLAS threads wait for each other in a loop. On a busy machine every short sum of L-BFGS and
    # every product then takes many times as long as in one thread. We run rows in our own threads.
    is_large = objective.n_threads > 1 or objective.n_parameters > _LONG
    with _blas().limit(limits=1) if is_large else nullcontext():
        result = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": max_iter,
                "maxls": 50,
                "gtol": tol if aim is None else aim,
                "ftol": _ROUNDING[objective.X.dtype],
            },
        )
    n_iter = min(int(result.nit), max_iter)
    converged = result.success or np.abs(result.jac).max() <= tol
    return Minimum(result.x, n_iter, None if converged else str(result.message))


def _minimum_of_small(
    objective: LinearObjective, problem: lbfgs.Problem, start: FloatArray, tol: float,
    max_iter: int, aim: float | None,
) -> Minimum:  # fmt: skip
    x, gradient = start.astype(np.float64), np.empty(len(start))
    rounding = _ROUNDING[objective.X.dtype]
    n_iter, end = lbfgs.minimise(
        problem, objective.shape[0], x, gradient, tol if aim is None else aim, rounding, max_iter
    )
    if end == lbfgs.CONVERGED or np.abs(gradient).max() <= tol:
        return Minimum(x, n_iter, None)
    return Minimum(x, n_iter, _FAILURES[end])


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def _curvature(X: Any) -> float:
    """Return the mean square of the features of some rows; 1 if all are 0, to divide by it."""
    some: Any = X[:1000]
    entries = some.data if issparse(X) else some
    total = float(np.square(entries, dtype=np.float64).sum())
    return total / (some.shape[0] * some.shape[1]) or 1.0


def _write_product(left: Any, right: NDArray[Any], out: NDArray[Any]) -> None:
    """Write a matrix product, directly into ``out`` if BLAS can."""
    if issparse(left) or left.dtype != out.dtype:
        out[:] = left @ right
    else:
        np.matmul(left, right, out=out)
