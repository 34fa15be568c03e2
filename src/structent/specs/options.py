"""The options of a short form: ``width=3,weight=0.3``."""

from difflib import get_close_matches

from structent.errors import StructentError

_USAGE = {
    "circular": "circular:width=3,weight=0.3",
    "graph": "graph:edges.csv,blocks=10",
    "hierarchy": "hierarchy:columns=genus,family",
}


class Options:
    """Options by name; what stands before the first one has the empty name.

    A piece without ``=`` belongs to the option before it, so values may hold commas.

    Examples
    --------
    >>> Options("graph", "my,edges.csv,blocks=10").text("")
    'my,edges.csv'
    >>> Options("hierarchy", "columns=genus,family,weight=0.5").text("columns")
    'genus,family'
    """

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self._values: dict[str, str] = {}
        name = ""
        for piece in text.split(",") if text else ():
            before, equals, after = piece.partition("=")
            if not equals:
                so_far = self._values.get(name)
                self._values[name] = piece if so_far is None else f"{so_far},{piece}"
                continue
            name = before.strip()
            if name in self._values:
                raise StructentError(f"{kind} takes {name!r} once, got it twice")
            self._values[name] = after

    def check_names(self, *known: str) -> None:
        """Refuse options that the structure does not have."""
        for name, value in self._values.items():
            if name not in known:
                raise StructentError(self._refusal(name or value, [n for n in known if n]))

    def text(self, name: str) -> str | None:
        """Return an option as it was written, or None."""
        return self._values.get(name) or None

    def required(self, name: str) -> str:
        """Return an option that must be there."""
        value = self.text(name)
        if value is None:
            raise StructentError(
                f"{self.kind} needs {repr(name) if name else 'a file'}, got none; "
                f"write it as in {_USAGE[self.kind]}"
            )
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an option that is a whole number; it must be there if it has no default."""
        value = self.text(name)
        if value is None and default is not None:
            return default
        value = self.required(name)
        try:
            return int(value)
        except ValueError:
            raise self._no_number(name, "a whole number", value) from None

    def number(self, name: str) -> float | None:
        """Return an option that is a number, or None."""
        value = self.text(name)
        if value is None:
            return None
        try:
            return float(value)
        except ValueError:
            raise self._no_number(name, "a number", value) from None

    def _no_number(self, name: str, wanted: str, value: str) -> StructentError:
        return StructentError(f"{name} of {self.kind} must be {wanted}, got {value!r}")

    def _refusal(self, given: str, known: list[str]) -> str:
        if not known:
            return f"{self.kind} takes no options, got {given!r}"
        near = get_close_matches(given, known, n=1)
        advice = f"; did you mean {near[0]!r}?" if near else ""
        return f"{self.kind} takes the options {', '.join(known)}, got {given!r}{advice}"
