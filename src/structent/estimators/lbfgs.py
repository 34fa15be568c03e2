"""L-BFGS in one compiled call, for linear models with few rows.

With few rows SciPy's L-BFGS spends most of its time in Python between evaluations, and two fits in
two threads wait for each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._compiled import inlined, kernel, within
from structent._typing import FloatArray, IndexArray
from structent.kernels import cpu

DIGEST_OF_CPU = "397cafe6f0fb302a"  # Numba's cache does not see edits there

CONVERGED, TOO_MANY_ITERATIONS, NO_LOWER_POINT = range(3)
_MEMORY = 10  # steps that are remembered, as in SciPy
_MOST_HALVINGS = 40
_SUFFICIENT = 1e-4  # the share of the decrease predicted by the slope that a step must reach


class Problem(NamedTuple):
    """A linear model to fit: see :class:`~structent.estimators.linear_objective.LinearObjective`.

    Attributes
    ----------
    X, labels, row_weights
        The features, (n, features), the classes of the rows, (n,), and the weights of their losses
        in the mean, (n,).
    layout
        The structure of the loss: see ``Layout.arrays``.
    matrix
        The matrix R of the coordinates, (classes, parameters); empty if it is the identity.
    penalties
        The penalty of each row of parameters, (parameters,).
    size
        The factor of the parameters.
    """

    X: NDArray[Any]
    labels: IndexArray
    row_weights: NDArray[Any]
    layout: tuple[Any, ...]
    matrix: FloatArray
    penalties: FloatArray
    size: float


class _Room(NamedTuple):
    """Memory for an evaluation: logits and their gradient, losses, coefficients, their gradient.

    Coefficients are (features, classes) here.
    """

    logits: NDArray[Any]
    of_logits: NDArray[Any]
    losses: NDArray[Any]
    coef: FloatArray
    of_coef: FloatArray


@kernel
def minimise(
    problem: Any, n_classes: int, x: Any, gradient: Any, tol: float, rounding: float, max_iter: int
) -> tuple[int, int]:
    """Move ``x`` to a minimum and write the gradient there; return the iterations and how it ended.

    It converged if no entry of the gradient exceeds ``tol``, or if four steps in a row each gain
    less than ``rounding`` of the value, the last two of them along the gradient: where the function
    is not convex, the remembered steps can lead to steps that are far too short.
    """
    n, n_rows, n_features = x.size, problem.labels.size, problem.X.shape[1]
    steps, changes = np.empty((_MEMORY, n)), np.empty((_MEMORY, n))
    products, shares = np.empty(_MEMORY), np.empty(_MEMORY)
    direction, there, of_there = np.empty(n), np.empty(n), np.empty(n)
    room = _Room(
        np.empty((n_rows, n_classes), problem.X.dtype),
        np.empty((n_rows, n_classes), problem.X.dtype),
        np.empty(n_rows, problem.X.dtype),
        np.empty((n_features, n_classes)),
        np.empty((n_features, n_classes)),
    )
    value, n_steps, n_flat = _value(problem, n_classes, x, gradient, room), 0, 0
    for iteration in range(max_iter):
        if _largest(gradient) <= tol:
            return iteration, CONVERGED
        _write_direction(gradient, steps, changes, products, shares, n_steps, direction)
        slope = _dot(gradient, direction)
        length = 1.0 if n_steps > 0 else min(1.0, 1.0 / np.sqrt(-slope))
        lower = False
        for _ in range(_MOST_HALVINGS):
            for j in range(n):
                there[j] = x[j] + length * direction[j]
            value_there = _value(problem, n_classes, there, of_there, room)
            lower = value_there <= value + _SUFFICIENT * length * slope
            if lower:
                break
            length *= 0.5
        if not lower and n_steps > 0:
            n_steps = 0  # the remembered steps mislead: go on along the gradient alone
            continue
        if not lower:
            return iteration, CONVERGED if n_flat > 0 else NO_LOWER_POINT
        place = n_steps % _MEMORY
        for j in range(n):
            steps[place, j], changes[place, j] = there[j] - x[j], of_there[j] - gradient[j]
            x[j], gradient[j] = there[j], of_there[j]
        products[place] = _dot(steps[place], changes[place])
        # If the function is not convex, a step may give no information on its curvature.
        n_steps += products[place] > 1e-10 * _dot(changes[place], changes[place])
        gained, value = value - value_there, value_there
        is_flat = gained <= rounding * max(abs(value), abs(value + gained), 1.0)
        n_flat = n_flat + 1 if is_flat else 0
        if n_flat == 4:
            return iteration + 1, CONVERGED
        if n_flat >= 2:
            n_steps = 0
    return max_iter, CONVERGED if _largest(gradient) <= tol else TOO_MANY_ITERATIONS


@inlined
def _write_direction(
    gradient: Any, steps: Any, changes: Any, products: Any, shares: Any, n_steps: int,
    direction: Any,
) -> None:  # fmt: skip
    """Write minus the approximate inverse Hessian times the gradient: the two-loop recursion."""
    for j in range(gradient.size):
        direction[j] = -gradient[j]
    for step in range(n_steps - 1, max(n_steps - _MEMORY, 0) - 1, -1):
        place = step % _MEMORY
        shares[place] = _dot(steps[place], direction) / products[place]
        for j in range(gradient.size):
            direction[j] -= shares[place] * changes[place, j]
    if n_steps > 0:
        last = (n_steps - 1) % _MEMORY
        scale = products[last] / _dot(changes[last], changes[last])
        for j in range(gradient.size):
            direction[j] *= scale
    for step in range(max(n_steps - _MEMORY, 0), n_steps):
        place = step % _MEMORY
        share = shares[place] - _dot(changes[place], direction) / products[place]
        for j in range(gradient.size):
            direction[j] += share * steps[place, j]


@inlined
def _value(problem: Any, n_classes: int, x: Any, gradient: Any, room: Any) -> float:
    """Return the value at x, and write the gradient: first of coefficients, then of intercepts."""
    n_rows, n_features = problem.X.shape
    n_parameters, size = problem.penalties.size, problem.size
    intercept = n_parameters * n_features  # where the intercepts begin
    _write_coef(problem.matrix, size, x, n_parameters, room.coef)
    for i in range(n_rows):
        for c in range(n_classes):
            room.logits[i, c] = x[intercept + c]
        for f in range(n_features):
            for c in range(n_classes):
                room.logits[i, c] += problem.X[i, f] * room.coef[f, c]
    layout = problem.layout
    value = _visit(
        room.logits.reshape(-1), problem.labels, problem.row_weights, 1.0,
        layout[0], layout[1], layout[2], layout[3], layout[4], layout[5],
        room.losses, room.of_logits.reshape(-1), room.losses[:0], cpu.NO_CURVATURE, n_classes, 1,
        0, n_rows,
    )  # fmt: skip
    gradient[:] = 0
    room.of_coef[:] = 0
    for i in range(n_rows):
        for c in range(n_classes):
            gradient[intercept + c] += room.of_logits[i, c]
        for f in range(n_features):
            for c in range(n_classes):
                room.of_coef[f, c] += problem.X[i, f] * room.of_logits[i, c]
    _write_of_parameters(problem.matrix, size, room.of_coef, n_parameters, gradient)
    for p in range(n_parameters):
        for f in range(n_features):
            at = p * n_features + f
            slope = problem.penalties[p] * size * size * x[at]
            value += 0.5 * slope * x[at]
            gradient[at] += slope
    return value


@inlined
def _write_coef(matrix: Any, size: float, x: Any, n_parameters: int, coef: Any) -> None:
    """Write the coefficients that belong to parameters, (features, classes)."""
    n_features, n_classes = coef.shape
    for f in range(n_features):
        for c in range(n_classes):
            coef[f, c] = size * x[c * n_features + f] if matrix.size == 0 else 0.0
        for p in range(n_parameters if matrix.size else 0):
            for c in range(n_classes):
                coef[f, c] += matrix[c, p] * size * x[p * n_features + f]


@inlined
def _write_of_parameters(
    matrix: Any, size: float, of_coef: Any, n_parameters: int, gradient: Any
) -> None:
    """Write the gradient of the parameters, given the gradient of the coefficients."""
    n_features, n_classes = of_coef.shape
    for p in range(n_parameters):
        for f in range(n_features):
            total = of_coef[f, p] if matrix.size == 0 else 0.0
            for c in range(n_classes if matrix.size else 0):
                total += matrix[c, p] * of_coef[f, c]
            gradient[p * n_features + f] = size * total


@inlined
def _dot(left: Any, right: Any) -> float:
    total = 0.0
    for j in range(left.size):
        total += left[j] * right[j]
    return total


@inlined
def _largest(values: Any) -> float:
    largest = 0.0
    for j in range(values.size):
        largest = max(largest, abs(values[j]))
    return largest


_visit = within(cpu.visit_rows)
