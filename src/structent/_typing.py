"""The types that appear in signatures throughout the package."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# A class label: str, int, bool, or (in a product of structures) a tuple of labels.
Label: TypeAlias = str | int | bool | tuple[Any, ...]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int32]
IndexArray: TypeAlias = NDArray[np.int64]

# Gives the weights once the number of partitions is known, e.g. hxe(0.5).
WeightRule: TypeAlias = Callable[[int], FloatArray]
