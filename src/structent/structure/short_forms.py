"""Short forms of structures, such as ``circular:width=3``, for given labels."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from structent._checks import checked_fraction, checked_integer
from structent._typing import Label
from structent.errors import StructentError, StructureError
from structent.structure.catalog import california_counties, cifar100, months, us_states
from structent.structure.circular import circular
from structent.structure.graph import LabelGraph
from structent.structure.labels import (
    WHOLE_NUMBER,
    as_classes,
    as_typed,
    check_labels_known,
    plain_values,
    shown,
    sorted_classes,
)
from structent.structure.ordinal import ordinal
from structent.structure.random_partition import RandomPartition, trivial
from structent.structure.samplers import SpanningTreePartitions, Structure

Notes: TypeAlias = tuple[str, ...]  # sentences for the user, such as which months are missing


def structure_of_labels(spec: str, labels: ArrayLike | Sequence[Any]) -> Structure:
    """Return the structure that a short form describes, for the classes of these labels.

    ================================ ==========================================================
    ``trivial``                      no structure: plain cross-entropy
    ``circular:width=3,weight=0.3``  blocks of neighbours on a circle
    ``ordinal:weight=0.5``           cuts of an order
    ``months``, ``cifar100``         the circle of the months; the paper's hierarchy
    ``us-states:blocks=10``          neighbours: random connected blocks of states; likewise
                                     ``california-counties``
    ================================ ==========================================================

    ``weight`` is the weight of the singletons. Numbers, months and weekdays have a known order; for
    other labels it must be given: ``ordinal:order=S|M|L|XL``. A given order may name classes that
    no row has, so that a month without rows keeps its place, as it does with ``months``.

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
    options = Options.of(spec)
    if options.kind not in (*SHORT_FORMS, *CATALOG):
        raise _no_short_form_of_labels(spec, options.kind)
    values = dict.fromkeys(plain_values(labels))
    # Structures of the catalog can be built without labels.
    classes = sorted_classes(as_classes(values)) if values or options.kind in SHORT_FORMS else ()
    return structure_from_options(options, classes)[0]


def structure_from_options(options: Options, classes: tuple[Label, ...]) -> tuple[Structure, Notes]:
    """Return the structure that a short form describes for these classes, with notes for the user.

    Structures of the catalog need no classes; months take their spelling from them.
    """
    if options.kind in CATALOG:
        return CATALOG[options.kind](options, classes), ()
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
    """Options by name; text before the first option has the empty name.

    A piece without ``=`` belongs to the option before it, so values may contain commas.

    Examples
    --------
    >>> Options("graph", "my,edges.csv,blocks=10").text("")
    'my,edges.csv'
    >>> Options("hierarchy", "columns=genus,family,weight=0.5").text("columns")
    'genus,family'
    """

    @classmethod
    def of(cls, spec: str) -> Options:
        """Return the options of a short form; its kind is before the colon.

        Examples
        --------
        >>> Options.of("us_states:blocks=5").kind
        'us-states'
        """
        kind, _, rest = spec.partition(":")
        in_catalog = kind.strip().lower().replace("_", "-")
        return cls(in_catalog if in_catalog in CATALOG else kind, rest)

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
    """Return labels in the order of numbers or of the calendar, and a note if some are missing.

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
            return ordered, _incomplete(labels, names, what, kind)
    numbers = [_number(label) for label in labels]
    if None not in numbers:
        return _by_key(labels, [number for number in numbers if number is not None]), ()
    raise StructentError(
        f"the labels of {kind} must be numbers, months or weekdays to have an order, got "
        f"{_shown(labels)}; write {_with_order(kind, labels)} with all labels in their order"
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


# The short forms that need only labels; structent.inputs has the ones for tables and files.
SHORT_FORMS: dict[str, Callable[[Options, tuple[Label, ...]], tuple[RandomPartition, Notes]]] = {
    "trivial": _trivial,
    "circular": _circular,
    "ordinal": _ordinal,
}


def _months(options: Options, classes: tuple[Label, ...]) -> Structure:
    """Return the circle of all months, in the spelling of the labels if these are names."""
    options.check_names("width", "weight")
    width = options.integer("width", 3)
    names = _in_spelling(_MONTHS, classes)
    structure = months(width) if names is None else circular(names, width)
    return with_given_weight(structure, options)


def _cifar100(options: Options, _classes: tuple[Label, ...]) -> Structure:
    options.check_names("weight")
    return with_given_weight(cifar100(), options)


def _us_states(options: Options, _classes: tuple[Label, ...]) -> Structure:
    return regions(us_states(), options)


def _california_counties(options: Options, _classes: tuple[Label, ...]) -> Structure:
    return regions(california_counties(), options)


# Well-known classes, by their names on the command line.
CATALOG: dict[str, Callable[[Options, tuple[Label, ...]], Structure]] = {
    "months": _months,
    "cifar100": _cifar100,
    "us-states": _us_states,
    "california-counties": _california_counties,
}


def regions(graph: LabelGraph, options: Options) -> SpanningTreePartitions:
    """Return random connected blocks of a graph: as many as the options say, or ten."""
    options.check_names("", "blocks", "weight")
    n_blocks, weight = options.integer("blocks", 10), options.weight()
    checked_integer(
        n_blocks, f"blocks of {options.kind}", at_least=1, at_most=graph.n_classes,
        reason=", the number of classes",
    )  # fmt: skip
    return SpanningTreePartitions(graph, n_blocks, 0.5 if weight is None else weight)


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
    known = (*SHORT_FORMS, *CATALOG)
    near = get_close_matches(kind, known, n=1)
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
        f"a structure given as text must be one of {', '.join(known)}, which need only labels, "
        f"got {spec!r}; {advice}"
    )


_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MOST_IN_ORDER = 20
_LONGEST_NAME = 40  # characters of a label that is to be pasted
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _place(label: Label, names: tuple[str, ...]) -> int | None:
    """Return which of the names a label is, in full or abbreviated to three letters or more."""
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


def _incomplete(
    labels: Sequence[Label], names: tuple[str, ...], what: str, kind: str
) -> tuple[str, ...]:
    if len(labels) == len(names):
        return ()
    spec = _with_order(kind, _in_spelling(names, labels) or names)
    note = (
        f"the data has {len(labels)} of the {len(names)} {what}, and those on both sides of a gap "
        f"are neighbours; {spec} keeps all places"
    )
    return (note,)


def _in_spelling(names: tuple[str, ...], labels: Sequence[Label]) -> tuple[str, ...] | None:
    """Return names in the spelling of the labels, None if the labels are not such names.

    Examples
    --------
    >>> _in_spelling(_WEEKDAYS, ["Tues", "Mon"])
    ('Mon', 'Tues', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun')
    """
    places = {_place(label, names): str(label) for label in labels}
    if not places or None in places or len(places) < len(labels):
        return None
    example = str(labels[0])
    n_letters = None if max(map(len, places.values())) > 5 else 3
    spelled = [name[:n_letters] for name in names]
    if example.isupper():
        spelled = [name.upper() for name in spelled]
    elif example[:1].isupper():
        spelled = [name.title() for name in spelled]
    return tuple(places.get(place, name) for place, name in enumerate(spelled))


def _with_order(kind: str, labels: Sequence[Label]) -> str:
    """Return a short form with an order that can be pasted into a shell; long orders are cut."""
    some = map(str, labels[:_MOST_IN_ORDER])
    names = [name if name.isprintable() and len(name) <= _LONGEST_NAME else "..." for name in some]
    names += ["..."] if len(labels) > _MOST_IN_ORDER else []
    return shlex.quote(f"{kind}:order={'|'.join(names)}")


def _shown(labels: Sequence[Label]) -> str:
    return ", ".join(map(shown, labels[:5])) + (", ..." if len(labels) > 5 else "")
