"""The errors of structent; a message says what was expected, what was given, and what to do."""


class StructentError(ValueError):
    """Anything that structent refuses to work with."""


class StructureError(StructentError):
    """Classes, blocks, weights or probabilities that are not valid."""


class LabelError(StructentError):
    """A label that the structure does not know."""


class MissingDependencyError(StructentError, ImportError):
    """A part of structent needs an extra that is not installed."""
