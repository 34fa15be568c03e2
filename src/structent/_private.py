"""Private names of other libraries, with a clear error if one is gone."""

from dataclasses import dataclass
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any

from structent.errors import MissingDependencyError


@dataclass(frozen=True)
class PrivateInterface:
    """Undocumented names of a library that a part of structent uses.

    Attributes
    ----------
    package
        The name of the library, as pip knows it.
    checked_with
        The version that this was last checked with: the one in ``constraints.txt``.
    needed_by
        The part of structent that uses it, as messages call it.
    """

    package: str
    checked_with: str
    needed_by: str

    def name(self, path: str) -> Any:
        """Return the object at ``path``, which is ``"module:name"``.

        >>> numpy = PrivateInterface("numpy", "2.4.0", "This example")
        >>> numpy.name("numpy._core:no_such_name")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        structent.errors.MissingDependencyError: This example needs numpy._core:no_such_name, \
which is not part of numpy ...; it was checked with numpy 2.4.0
        """
        try:
            return resolve_name(path)
        except (ImportError, AttributeError):
            raise self._gone(path) from None

    def attribute(self, value: Any, name: str) -> Any:
        """Return an attribute of an object that the library made."""
        try:
            return getattr(value, name)
        except AttributeError:
            raise self._gone(f"{type(value).__name__}.{name}") from None

    def _gone(self, what: str) -> MissingDependencyError:
        return MissingDependencyError(
            f"{self.needed_by} needs {what}, which is not part of {self.package} "
            f"{version(self.package)}; it was checked with {self.package} {self.checked_with}"
        )
