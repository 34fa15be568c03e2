"""The objective of the linear model: the mean structured loss with an L2 penalty, and gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from structent._typing import FloatArray, IndexArray
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.fused import loss_and_gradient
from structent.kernels.layout import Layout


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
