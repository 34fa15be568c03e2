"""The values of leaves, from the sums of gradient and curvature over their rows."""

from typing import Any

import numpy as np

from structent._compiled import kernel
from structent.trees.vectors import add_numbers

DIGEST_OF_VECTORS = "af2538d1bb250e30"  # Numba's cache does not see edits there

BLOCK = 2048  # rows per partial sum, whatever the number of threads


@kernel
def write_leaves(begin: Any, end: Any, left: Any, seen: Any, leaf_of: Any) -> None:
    """Write the leaf of each row, -1 for rows that the tree has not seen."""
    leaf_of[:] = -1
    leaf = 0
    for node in range(begin.size):
        if left[node] == 0:
            for r in range(begin[node], end[node]):
                leaf_of[seen[r]] = leaf
            leaf += 1


@kernel
def sum_gradients(
    first: int, last: int, leaf_of: Any, gradient: Any, hessian: Any, sums: Any
) -> None:
    """Write the sums of gradient and curvature over the rows of each leaf, block by block."""
    n_classes = gradient.shape[1]
    for block in range(first, last):
        sums[block] = 0
        for row in range(block * BLOCK, min((block + 1) * BLOCK, leaf_of.size)):
            leaf = leaf_of[row]
            if leaf < 0:
                continue
            g, h, of_row = sums[block, leaf, 0], sums[block, leaf, 1], gradient[row]
            if hessian.size:
                curvature = hessian[row]
                for c in range(n_classes):
                    g[c] += of_row[c]
                    h[c] += curvature[c]
            else:
                for c in range(n_classes):
                    g[c] += of_row[c]
                    h[c] += abs(of_row[c])


@kernel
def write_values(sums: Any, reg_lambda: float, learning_rate: float, values: Any) -> None:
    """Write the values of each leaf, given its sums of gradient and curvature in every block."""
    for leaf in range(values.shape[0]):
        for c in range(values.shape[1]):
            gradient, curvature = 0.0, 0.0
            for block in range(sums.shape[0]):
                gradient += sums[block, leaf, 0, c]
                curvature += sums[block, leaf, 1, c]
            curvature += reg_lambda
            # If no row of the leaf has a weight, gradient and curvature are both 0.
            step = -gradient / curvature if curvature > 0 else 0.0
            values[leaf, c] = learning_rate * step


@kernel
def add_to_rows(
    first: int, last: int, leaf_of: Any, values: Any, n_classes: int, margins: Any
) -> None:
    """Add the values of their leaf to the logits of the rows in blocks first to last - 1."""
    for row in range(first * BLOCK, min(last * BLOCK, leaf_of.size)):
        if leaf_of[row] >= 0:
            leaf = np.int64(leaf_of[row])
            add_numbers(values, leaf * n_classes, n_classes, margins, row * n_classes)
