"""The structure that a user names, for the labels of the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from structent._checks import checked_fraction, checked_integer
from structent._typing import Label
from structent.errors import StructentError
from structent.inputs.hierarchy_columns import hierarchy_from_columns
from structent.inputs.matching import (
    check_labels_known,
    classes_without_rows,
    given_order,
    natural_order,
    sorted_classes,
)
from structent.inputs.structure_files import ENDINGS, graph_from_file, structure_from_file
from structent.inputs.table import Table
from structent.structure.circular import circular
from structent.structure.composed import trivial
from structent.structure.labels import as_classes
from structent.structure.ordinal import ordinal
from structent.structure.random_partition import RandomPartition
from structent.structure.samplers import SpanningTreePartitions, Structure


@dataclass(frozen=True)
class Specified:
    """A structure, and what a user should know of how it was found.

    Attributes
    ----------
    structure
        The structure; its classes hold every label of the data.
    columns_used
        The columns of the data that define it. They give the label away: never features.
    notes
        Sentences, such as which classes no row has.
    """

    structure: Structure
    columns_used: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def parse_structure(
    spec: str,
    classes: Iterable[Any],
    *,
    table: Table | None = None,
    target: str | None = None,
    allow_blocks: bool = False,
) -> Specified:
    """Return the structure that a short form or a file names.

    ========================================= =================================================
    ``trivial``                               no structure: plain cross-entropy
    ``circular:width=3,weight=0.3``           blocks of neighbours on a circle
    ``ordinal:weight=0.5``                    cuts of an order
    ``hierarchy:columns=genus,family``        columns of the data, in any order
    ``graph:edges.csv,blocks=10,weight=0.5``  neighbours in a file: random connected blocks
    a file                                    .json, .yaml, .csv, .tsv or .nwk
    ========================================= =================================================

    ``weight`` is the weight of the singletons. Numbers, months and weekdays have an order; for
    other labels it must be given: ``ordinal:order=S|M|L|XL``.

    Parameters
    ----------
    spec
        The short form, or the path of a file.
    classes
        The labels of the data, each once.
    table, target
        The data and its label column, for ``hierarchy:columns=...``; the columns must be loaded.
    allow_blocks
        Whether labels may be names of blocks, too. Then the structure must be a file, which says
        what the classes are: short forms take every label for a class.

    Examples
    --------
    >>> year = parse_structure("circular:width=2", ["Feb", "Apr", "Jan", "Mar"]).structure
    >>> year.partitions[0].blocks
    (('Jan', 'Feb'), ('Mar', 'Apr'))
    >>> parse_structure("ordinal:order=S|M|L", ["L", "M", "S"]).structure.classes
    ('S', 'M', 'L')
    """
    labels = sorted_classes(as_classes(classes))
    kind, _, rest = spec.partition(":")
    if kind == "learn":
        raise StructentError(
            f"only structent compare takes the structure {spec!r}, which it learns again in every "
            "fold; in Python, learn_structure() gives one to save as a file"
        )
    if allow_blocks:
        return _with_blocks(spec, labels)
    if kind in _SHORT_FORMS:
        specified = _SHORT_FORMS[kind](_Request(Options(kind, rest), labels, table, target))
    elif Path(spec).suffix.lower() in ENDINGS or Path(spec).exists():
        structure, notes = structure_from_file(spec, labels)
        specified = Specified(structure, notes=notes)
    else:
        raise _unknown_spec(spec)
    known = specified.structure.classes
    check_labels_known(labels, known)
    return Specified(
        specified.structure,
        specified.columns_used,
        (*specified.notes, *classes_without_rows(labels, known)),
    )


def columns_of(spec: str) -> tuple[str, ...]:
    """Return the columns of the data that define the structure, which must be loaded for it.

    Examples
    --------
    >>> columns_of("hierarchy:columns=genus,family")
    ('genus', 'family')
    >>> columns_of("circular:width=3")
    ()
    """
    kind, _, rest = spec.partition(":")
    return _columns(Options(kind, rest)) if kind == "hierarchy" else ()


def _with_blocks(spec: str, labels: tuple[Label, ...]) -> Specified:
    """Return the structure of a file, where labels may be names of its blocks."""
    if Path(spec).suffix.lower() not in ENDINGS:
        raise StructentError(
            "where labels may be blocks, the structure must be a file that names its classes and "
            f"blocks ({', '.join(ENDINGS)}), got {spec!r}, for which every label would be a class"
        )
    structure, notes = structure_from_file(spec, labels, allow_blocks=True)
    if not isinstance(structure, RandomPartition):
        raise StructentError(
            f"where labels may be blocks, the structure must name them, got the sampler in {spec}, "
            "whose blocks change"
        )
    label_sets = structure.encode_with_blocks(labels)
    used = [structure.classes[code] for code in label_sets.codes if code < structure.n_classes]
    return Specified(structure, (), (*notes, *classes_without_rows(used, structure.classes)))


@dataclass(frozen=True)
class _Request:
    options: Options
    labels: tuple[Label, ...]
    table: Table | None
    target: str | None


def _trivial(request: _Request) -> Specified:
    request.options.check_names()
    return Specified(trivial(request.labels))


def _circular(request: _Request) -> Specified:
    options = request.options
    options.check_names("width", "weight", "order")
    ordered, notes = _ordered(request)
    return Specified(_weighed(circular(ordered, options.integer("width", 3)), options), notes=notes)


def _ordinal(request: _Request) -> Specified:
    request.options.check_names("weight", "order")
    ordered, notes = _ordered(request)
    return Specified(_weighed(ordinal(ordered), request.options), notes=notes)


def _hierarchy(request: _Request) -> Specified:
    options = request.options
    columns = _columns(options)
    if request.table is None or request.target is None:
        raise StructentError(
            "hierarchy:columns=... needs data with these columns, got none; name a structure file"
        )
    structure, notes = hierarchy_from_columns(request.table, request.target, columns)
    return Specified(_weighed(structure, options), columns, notes)


def _columns(options: Options) -> tuple[str, ...]:
    options.check_names("columns", "weight")
    return tuple(options.required("columns").split(","))


def _graph(request: _Request) -> Specified:
    options = request.options
    options.check_names("", "blocks", "weight")
    file, n_blocks = options.required(""), options.integer("blocks")
    graph, notes = graph_from_file(file, request.labels)
    weight = _weight(options)
    checked_integer(
        n_blocks, "blocks of graph", at_least=1, at_most=graph.n_classes,
        reason=", the number of classes",
    )  # fmt: skip
    sampler = SpanningTreePartitions(graph, n_blocks, 0.5 if weight is None else weight)
    return Specified(sampler, notes=notes)


_SHORT_FORMS: dict[str, Callable[[_Request], Specified]] = {
    "trivial": _trivial,
    "circular": _circular,
    "ordinal": _ordinal,
    "hierarchy": _hierarchy,
    "graph": _graph,
}


def _ordered(request: _Request) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    order = request.options.text("order")
    if order is not None:
        return given_order(order, request.labels), ()
    return natural_order(request.labels, kind=request.options.kind)


def _weighed(structure: RandomPartition, options: Options) -> RandomPartition:
    weight = _weight(options)
    return structure if weight is None else structure.with_singleton_weight(weight)


def _weight(options: Options) -> float | None:
    weight = options.number("weight")
    return None if weight is None else checked_fraction(weight, f"weight of {options.kind}")


def _unknown_spec(spec: str) -> StructentError:
    kinds = ", ".join(_SHORT_FORMS)
    return StructentError(
        f"a structure must be one of {kinds}, or a file that ends in {', '.join(ENDINGS)}, "
        f"got {spec!r}"
    )


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
