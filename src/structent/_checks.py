"""Checks of the arrays and numbers that public functions are given."""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._typing import FloatArray
from structent.errors import StructureError

WEIGHT_TOLERANCE = 1e-9
# Probabilities often come from a float32 softmax, even if they are float64 now.
PROBABILITY_TOLERANCE = 1e-6


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array, or refuse rows of different length."""
    try:
        return np.asarray(values)
    except ValueError:
        raise StructureError(f"{name} must be an array, got rows of different length") from None


def checked_weights(weights: ArrayLike, n_partitions: int) -> FloatArray:
    """Return the weights as a read-only array: one per partition, none negative, sum 1."""
    try:
        checked = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise StructureError(f"weights must be numbers, got {reprlib.repr(weights)}") from None
    if checked.shape != (n_partitions,):
        raise StructureError(
            f"weights must be one number for each of the {n_partitions} partitions, "
            f"got {_shown(checked)}"
        )
    if np.isnan(checked).any():
        raise StructureError(f"weights must be numbers, got NaN in {_shown(checked)}")
    if (checked < 0).any():
        raise StructureError(f"weights must not be negative, got {_shown(checked)}")
    total = checked.sum()
    if not abs(total - 1.0) <= WEIGHT_TOLERANCE:
        raise StructureError(
            f"weights must sum to 1, got {_shown(checked)} with sum {total:.12g}; "
            "divide them by their sum if only their ratios matter"
        )
    checked.setflags(write=False)
    return checked


def checked_fraction(value: float, name: str) -> float:
    """Return a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise StructureError(f"{name} must be a number between 0 and 1, got {reprlib.repr(value)}")
    if not 0.0 <= value <= 1.0:
        # Not every whole number can be formatted as a float.
        shown = reprlib.repr(value) if isinstance(value, int) else f"{value:g}"
        raise StructureError(f"{name} must be between 0 and 1, got {shown}")
    return float(value)


def checked_integer(value: int, name: str, *, at_least: int, at_most: int, reason: str = "") -> int:
    """Return a whole number within its bounds."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise StructureError(f"{name} must be a whole number, got {reprlib.repr(value)}")
    if not at_least <= value <= at_most:
        raise StructureError(
            f"{name} must be between {at_least} and {at_most}{reason}, got "
            f"{reprlib.repr(int(value))}"
        )
    return int(value)


def checked_distribution(p: ArrayLike, name: str, *, n_classes: Sequence[int | None]) -> FloatArray:
    """Return probabilities over the last axes, one axis for each entry of ``n_classes``.

    An entry is the length that the axis must have, None where any length will do.
    """
    checked = as_array(p, name)
    if checked.dtype.kind not in "fiub":
        raise StructureError(f"{name} must hold probabilities, got an array of {checked.dtype}")
    tolerance = PROBABILITY_TOLERANCE
    if checked.dtype.kind == "f":
        tolerance = max(tolerance, float(np.finfo(checked.dtype).eps) ** 0.5)
    checked = checked.astype(np.float64, copy=False)
    axes = tuple(range(-len(n_classes), 0))
    _check_axes(checked, name, n_classes)
    smallest = checked.min(initial=0.0)
    if np.isnan(smallest):
        raise StructureError(f"{name} must hold probabilities, got NaN")
    if smallest < 0:
        raise StructureError(f"{name} must hold probabilities, got {smallest:g} below 0")
    totals = checked.sum(axis=axes)
    furthest = totals.flat[np.abs(totals - 1.0).argmax()] if totals.size else 1.0
    if not abs(furthest - 1.0) <= tolerance:
        raise StructureError(
            f"{name} must sum to 1 over its last {_axes(len(axes))}, got a sum of {furthest:.9g}; "
            f"divide by the sum if these are counts"
        )
    return checked


def _check_axes(p: FloatArray, name: str, n_classes: Sequence[int | None]) -> None:
    if p.ndim < len(n_classes):
        raise StructureError(f"{name} must have {len(n_classes)} axes or more, got shape {p.shape}")
    for axis, expected in enumerate(n_classes, start=-len(n_classes)):
        if expected is not None and p.shape[axis] != expected:
            raise StructureError(
                f"structure covers {expected} classes but axis {axis} of {name} has "
                f"{p.shape[axis]} entries"
            )
        if p.shape[axis] == 0:
            raise StructureError(f"{name} must have at least one class, got shape {p.shape}")


def _axes(count: int) -> str:
    return "axis" if count == 1 else f"{count} axes"


def _shown(weights: FloatArray) -> str:
    if weights.ndim != 1:
        return f"shape {weights.shape}"
    shown = ", ".join(f"{weight:g}" for weight in weights[:8])
    return f"[{shown}, ...] ({len(weights)} numbers)" if len(weights) > 8 else f"[{shown}]"
