"""Structured cross-entropy for Keras 3, on any of its backends, with metrics and a schedule."""

from structent._optional import load_optional

load_optional("keras", extra="keras", purpose="StructuredCrossEntropy for Keras")

from structent.losses.keras.loss import (  # noqa: E402  load_optional must come first
    PartitionSchedule,
    StructuredCrossEntropy,
)
from structent.losses.keras.metrics import BlockAccuracy, StructuredLogLoss  # noqa: E402

__all__ = ["BlockAccuracy", "PartitionSchedule", "StructuredCrossEntropy", "StructuredLogLoss"]
