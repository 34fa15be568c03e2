"""Structures as users name them: a short form such as ``circular:width=3``, or a file."""

from structent.specs.parsing import Specified, parse_structure
from structent.specs.writing import write_structure

__all__ = ["Specified", "parse_structure", "write_structure"]
