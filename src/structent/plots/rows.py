"""Rows to be shown: their class as a place among the classes, and their probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import as_array
from structent.errors import LabelError, StructureError
from structent.metrics.rows import Rows, checked_proba


def checked_rows(labels: ArrayLike, proba: ArrayLike, n_classes: int) -> Rows:
    """Return rows whose labels are places among the classes, each with the weight 1."""
    codes = as_array(labels, "labels")
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or not len(codes):
        raise LabelError(
            f"labels must be the place of each row's class, whole numbers, got {codes.dtype} of "
            f"shape {codes.shape}; structure.encode(names) gives them"
        )
    if not 0 <= codes.min() <= codes.max() < n_classes:
        raise LabelError(
            f"labels must be between 0 and {n_classes - 1}, the places of the classes, "
            f"got {codes.min()} to {codes.max()}"
        )
    checked = checked_proba(proba, n_classes, None)
    if len(checked) != len(codes):
        raise StructureError(f"labels has {len(codes)} rows but proba has {len(checked)}")
    return Rows(codes.astype(np.int64), checked, np.ones(len(codes)))
