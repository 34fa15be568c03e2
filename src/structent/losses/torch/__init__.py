"""Structured cross-entropy for PyTorch: a drop-in for ``torch.nn.CrossEntropyLoss``."""

from structent.losses.torch.functional import structured_cross_entropy
from structent.losses.torch.module import StructuredCrossEntropy

__all__ = ["StructuredCrossEntropy", "structured_cross_entropy"]
