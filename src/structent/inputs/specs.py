"""The structure that a user names, for the labels of the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structent._checks import checked_integer
from structent._typing import Label
from structent.errors import StructentError
from structent.inputs.hierarchy_columns import hierarchy_from_columns
from structent.inputs.structure_files import ENDINGS, graph_from_file, structure_from_file
from structent.inputs.table import Table
from structent.structure.labels import (
    as_classes,
    check_labels_known,
    classes_without_rows,
    sorted_classes,
)
from structent.structure.random_partition import RandomPartition
from structent.structure.samplers import SpanningTreePartitions, Structure
from structent.structure.short_forms import (
    SHORT_FORMS,
    Options,
    structure_from_options,
    with_given_weight,
)


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


def _of_labels(request: _Request) -> Specified:
    structure, notes = structure_from_options(request.options, request.labels)
    return Specified(structure, notes=notes)


def _hierarchy(request: _Request) -> Specified:
    options = request.options
    columns = _columns(options)
    if request.table is None or request.target is None:
        raise StructentError(
            "hierarchy:columns=... needs data with these columns, got none; name a structure file"
        )
    structure, notes = hierarchy_from_columns(request.table, request.target, columns)
    return Specified(with_given_weight(structure, options), columns, notes)


def _columns(options: Options) -> tuple[str, ...]:
    options.check_names("columns", "weight")
    return tuple(options.required("columns").split(","))


def _graph(request: _Request) -> Specified:
    options = request.options
    options.check_names("", "blocks", "weight")
    file, n_blocks = options.required(""), options.integer("blocks")
    graph, notes = graph_from_file(file, request.labels)
    weight = options.weight()
    checked_integer(
        n_blocks, "blocks of graph", at_least=1, at_most=graph.n_classes,
        reason=", the number of classes",
    )  # fmt: skip
    sampler = SpanningTreePartitions(graph, n_blocks, 0.5 if weight is None else weight)
    return Specified(sampler, notes=notes)


_SHORT_FORMS: dict[str, Callable[[_Request], Specified]] = {
    **dict.fromkeys(SHORT_FORMS, _of_labels),
    "hierarchy": _hierarchy,
    "graph": _graph,
}


def _unknown_spec(spec: str) -> StructentError:
    kinds = ", ".join(_SHORT_FORMS)
    return StructentError(
        f"a structure must be one of {kinds}, or a file that ends in {', '.join(ENDINGS)}, "
        f"got {spec!r}"
    )
