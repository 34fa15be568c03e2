"""Does knowing the structure help? Models with it, without it, and with scrambled copies of it."""

from structent.comparison.result import Comparison
from structent.comparison.run import compare

__all__ = ["Comparison", "compare"]
