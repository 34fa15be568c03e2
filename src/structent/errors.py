"""The errors that structent raises: each message says what was expected, what came, the way out."""


class StructentError(ValueError):
    """Anything that structent refuses to work with."""


class StructureError(StructentError):
    """Classes, blocks, weights or probabilities that do not form what they should."""


class LabelError(StructentError):
    """A label that the structure does not know."""


class MissingDependencyError(StructentError, ImportError):
    """A part of structent was asked for whose extra is not installed."""
