"""Structures as users write them in short, ``circular:width=3``, for the labels at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from structent._checks import checked_fraction
from structent._typing import Label
from structent.errors import StructentError, StructureError
from structent.structure.circular import circular
from structent.structure.labels import (
    WHOLE_NUMBER,
    as_classes,
    as_typed,
    check_labels_known,
    plain_values,
    sorted_classes,
)
from structent.structure.ordinal import ordinal
from structent.structure.random_partition import RandomPartition, trivial

Notes: TypeAlias = tuple[str, ...]  # sentences for the user, such as which months are missing


def structure_of_labels(spec: str, labels: ArrayLike | Sequence[Any]) -> RandomPartition:
    """Return the structure that a short form names, for the classes that these labels are.

    ================================ ==========================================================
    ``trivial``                      no structure: plain cross-entropy
    ``circular:width=3,weight=0.3``  blocks of neighbours on a circle
    ``ordinal:weight=0.5``           cuts of an order
    ================================ ==========================================================

    ``weight`` is the weight of the singletons. Numbers, months and weekdays have an order; for
    other labels it must be given: ``ordinal:order=S|M|L|XL``. A given order may name classes that
    no label is, so that a month without rows keeps its place.

    Parameters
    ----------
    spec
        The short form.
    labels
        The labels of the rows, (n,).

    Examples
    --------
    >>> structure_of_labels("circular:width=2", ["Feb", "Apr", "Jan", "Mar", "Jan"]).classes
    ('Jan', 'Feb', 'Mar', 'Apr')
    >>> structure_of_labels("ordinal:order=S|M|L", ["L", "M", "S"]).classes
    ('S', 'M', 'L')
    """
    kind, _, rest = spec.partition(":")
    if kind not in SHORT_FORMS:
        raise _no_short_form_of_labels(spec, kind)
    classes = sorted_classes(as_classes(dict.fromkeys(plain_values(labels))))
    return structure_from_options(Options(kind, rest), classes)[0]


def structure_from_options(
    options: Options, classes: tuple[Label, ...]
) -> tuple[RandomPartition, Notes]:
    """Return the structure of these classes that a short form names, and what to know of it."""
    structure, notes = SHORT_FORMS[options.kind](options, classes)
    return with_given_weight(structure, options), notes


def with_given_weight(structure: RandomPartition, options: Options) -> RandomPartition:
    """Return the structure with the weight of the singletons that the options give, if any."""
    weight = options.weight()
    return structure if weight is None else structure.with_singleton_weight(weight)


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

    def weight(self) -> float | None:
        """Return the weight of the singletons, or None."""
        weight = self.number("weight")
        return None if weight is None else checked_fraction(weight, f"weight of {self.kind}")

    def _no_number(self, name: str, wanted: str, value: str) -> StructentError:
        return StructentError(f"{name} of {self.kind} must be {wanted}, got {value!r}")

    def _refusal(self, given: str, known: list[str]) -> str:
        if not known:
            return f"{self.kind} takes no options, got {given!r}"
        near = get_close_matches(given, known, n=1)
        advice = f"; did you mean {near[0]!r}?" if near else ""
        return f"{self.kind} takes the options {', '.join(known)}, got {given!r}{advice}"


def natural_order(labels: Sequence[Label], *, kind: str) -> tuple[tuple[Label, ...], Notes]:
    """Return labels in the order of numbers or of the calendar, and a note where some are missing.

    Months and weekdays are known by their English names and by the usual short ones.

    Examples
    --------
    >>> natural_order(["Sun", "Mon", "Sat"], kind="ordinal")[0]
    ('Mon', 'Sat', 'Sun')
    >>> natural_order(["10", "9"], kind="ordinal")[0]
    ('9', '10')
    """
    for names, what in ((_MONTHS, "months"), (_WEEKDAYS, "weekdays")):
        places = [_place(label, names) for label in labels]
        if None not in places and len(set(places)) == len(labels):
            ordered = _by_key(labels, [place for place in places if place is not None])
            return ordered, _incomplete(len(labels), names, what, kind)
    numbers = [_number(label) for label in labels]
    if None not in numbers:
        return _by_key(labels, [number for number in numbers if number is not None]), ()
    raise StructentError(
        f"the labels of {kind} must be numbers, months or weekdays to have an order, got "
        f"{_shown(labels)}; give the order as in {kind}:order=S|M|L|XL"
    )


def given_order(text: str, labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return the classes in an order given as ``S|M|L``; each label of the data is among them.

    Examples
    --------
    >>> given_order("3|1|2", [1, 2, 3])
    (3, 1, 2)
    """
    ordered = as_classes(as_typed([name.strip() for name in text.split("|")], labels))
    check_labels_known(labels, ordered)
    return ordered


def _trivial(options: Options, classes: tuple[Label, ...]) -> tuple[RandomPartition, Notes]:
    options.check_names()
    return trivial(classes), ()


def _circular(options: Options, classes: tuple[Label, ...]) -> tuple[RandomPartition, Notes]:
    options.check_names("width", "weight", "order")
    ordered, notes = _ordered(options, classes)
    return circular(ordered, options.integer("width", 3)), notes


def _ordinal(options: Options, classes: tuple[Label, ...]) -> tuple[RandomPartition, Notes]:
    options.check_names("weight", "order")
    ordered, notes = _ordered(options, classes)
    return ordinal(ordered), notes


# The short forms that need nothing but labels; structent.inputs has those of tables and files.
SHORT_FORMS: dict[str, Callable[[Options, tuple[Label, ...]], tuple[RandomPartition, Notes]]] = {
    "trivial": _trivial,
    "circular": _circular,
    "ordinal": _ordinal,
}


def _ordered(options: Options, classes: tuple[Label, ...]) -> tuple[tuple[Label, ...], Notes]:
    order = options.text("order")
    if order is not None:
        return given_order(order, classes), ()
    return natural_order(classes, kind=options.kind)


_INSTEAD = {
    "hierarchy": "a hierarchy needs the groups of each class: pass hierarchy(paths or table)",
    "graph": "a graph needs its edges: pass SpanningTreePartitions(LabelGraph(edges), ...)",
    "learn": "a learned structure needs a model: pass what learn_structure() returns",
}


def _no_short_form_of_labels(spec: str, kind: str) -> StructureError:
    near = get_close_matches(kind, SHORT_FORMS, n=1)
    if kind in _INSTEAD:
        advice = _INSTEAD[kind]
    elif near:
        advice = f"did you mean {near[0]!r}?"
    elif PurePath(spec).suffix:
        advice = (
            "a file must be read first: pass RandomPartition.load(path), or "
            "structent.inputs.parse_structure(path, classes).structure"
        )
    else:
        advice = "pass a structure, such as hierarchy(paths)"
    return StructureError(
        f"a structure that is text must be one of {', '.join(SHORT_FORMS)}, which are built from "
        f"the labels alone, got {spec!r}; {advice}"
    )


_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _place(label: Label, names: tuple[str, ...]) -> int | None:
    """Return which of the names a label is, written out or cut after three letters or more."""
    if not isinstance(label, str):
        return None
    text = label.strip().lower().removesuffix(".")
    if len(text) < 3:
        return None
    return next((place for place, name in enumerate(names) if name.startswith(text)), None)


def _number(label: Label) -> int | None:
    if isinstance(label, int):  # False and True, too, are in this order
        return int(label)
    is_number = isinstance(label, str) and WHOLE_NUMBER.fullmatch(label.strip())
    return int(str(label)) if is_number else None


def _by_key(labels: Sequence[Label], keys: Sequence[int]) -> tuple[Label, ...]:
    return tuple(
        label for _, label in sorted(zip(keys, labels, strict=True), key=lambda pair: pair[0])
    )


def _incomplete(n_labels: int, names: tuple[str, ...], what: str, kind: str) -> tuple[str, ...]:
    if n_labels == len(names):
        return ()
    note = (
        f"the data has {n_labels} of the {len(names)} {what}, and those next to a gap are "
        f"neighbours; {kind}:order=... with all of them keeps their places"
    )
    return (note,)


def _shown(labels: Sequence[Label]) -> str:
    return ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
