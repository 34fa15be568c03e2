"""Structured cross-entropy for PyTorch: a drop-in for ``torch.nn.CrossEntropyLoss``."""

from structent._optional import load_optional

load_optional("torch", extra="torch", purpose="StructuredCrossEntropy for PyTorch")

from structent.losses.torch.functional import (  # noqa: E402  load_optional must come first
    structured_cross_entropy,
)
from structent.losses.torch.module import StructuredCrossEntropy  # noqa: E402

__all__ = ["StructuredCrossEntropy", "structured_cross_entropy"]
