"""The labels of rows as the kernel takes them: checked, with what is ignored marked."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

from structent._compiled import kernel

Array: TypeAlias = NDArray[Any]


@kernel
def prepare_rows(
    targets: Array, class_weights: Array, ignored: int, n_classes: int, labels: Array, rows: Array
) -> tuple[float, int]:
    """Write each row's label, -1 where it is ignored, and its class weight.

    Returns the sum of the weights, and the first row whose target is no class (-1 if none is).
    """
    total = 0.0
    for i in range(targets.size):
        y = targets[i]
        labels[i], rows[i] = -1, 0
        if y != ignored:
            if y < 0 or y >= n_classes:
                return total, i
            labels[i] = y
            rows[i] = class_weights[y] if class_weights.size > 0 else 1
            total += rows[i]
    return total, -1
