"""Optional dependencies: loaded when asked for, with advice where they are missing."""

from importlib import import_module
from importlib.util import find_spec
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
        raise _missing(module, extra, purpose) from None


def require_optional(package: str, *, extra: str, purpose: str) -> None:
    """Say which extra brings ``package`` if it is not installed, without importing it.

    >>> require_optional("no_such_package", extra="cli", purpose="The structent command")
    Traceback (most recent call last):
    ...
    structent.errors.MissingDependencyError: The structent command needs no_such_package: \
pip install 'structent[cli]'
    """
    if find_spec(package) is None:
        raise _missing(package, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> MissingDependencyError:
    return MissingDependencyError(f"{purpose} needs {module}: pip install 'structent[{extra}]'")
