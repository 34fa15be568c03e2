"""Optional dependencies: loaded when asked for, with advice where they are missing."""

from importlib import import_module
from types import ModuleType

from structent.errors import MissingDependencyError


def load_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import ``module``, or say which extra brings it.

    >>> load_optional("no_such_package", extra="cli", purpose="The structent command")
    Traceback (most recent call last):
    ...
    structent.errors.MissingDependencyError: The structent command needs no_such_package: \
pip install 'structent[cli]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise  # installed, but broken: its own error says more than ours could
        message = f"{purpose} needs {module}: pip install 'structent[{extra}]'"
        raise MissingDependencyError(message) from None
