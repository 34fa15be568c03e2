"""The structure that a user names, for the labels of the data."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from structent._typing import Label
from structent.errors import StructentError
from structent.inputs.hierarchy_columns import hierarchy_from_columns
from structent.inputs.structure_files import (
    ENDINGS,
    files_read,
    graph_from_file,
    structure_from_file,
)
from structent.inputs.table import Table
from structent.structure.labels import (
    as_classes,
    check_labels_known,
    classes_without_rows,
    sorted_classes,
)
from structent.structure.random_partition import RandomPartition
from structent.structure.samplers import Structure
from structent.structure.short_forms import (
    CATALOG,
    SHORT_FORMS,
    Options,
    regions,
    structure_from_options,
    with_given_weight,
)


@dataclass(frozen=True)
class Specified:
    """A structure, and what a user should know about how it was built.

    Attributes
    ----------
    structure
        The structure; every label of the data is one of its classes.
    columns_used
        The columns of the data that define it. They give the label away and are never features.
    notes
        Sentences, such as which classes no row has.
    """

    structure: Structure
    columns_used: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def parse_structure(
    spec: str,
    classes: Iterable[Any] = (),
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
    ``months:width=3``, ``cifar100``          the circle of the months; the paper's hierarchy
    ``us-states:blocks=10``                   random connected blocks of states; likewise
                                              ``california-counties``
    a file                                    .json, .yaml, .csv, .tsv, .nwk, .dmp; a model's
    ========================================= =================================================

    ``weight`` is the weight of the singletons. Numbers, months and weekdays have an order; for
    other labels it must be given: ``ordinal:order=S|M|L|XL``.

    Parameters
    ----------
    spec
        The short form, or the path of a file.
    classes
        The labels of the data, each once; none if the structure itself names its classes.
    table, target
        The data and its label column, for ``hierarchy:columns=...``; the columns must be loaded.
    allow_blocks
        Whether labels may also be names of blocks. Then the structure must be a file that lists the
        classes, because short forms take every label for a class.

    Examples
    --------
    >>> year = parse_structure("circular:width=2", ["Feb", "Apr", "Jan", "Mar"]).structure
    >>> year.partitions[0].blocks
    (('Jan', 'Feb'), ('Mar', 'Apr'))
    >>> parse_structure("ordinal:order=S|M|L", ["L", "M", "S"]).structure.classes
    ('S', 'M', 'L')
    """
    given = tuple(classes)
    labels = sorted_classes(as_classes(given)) if given else ()
    options = Options.of(spec)
    if options.kind == "learn":
        raise StructentError(
            f"only structent compare takes the structure {spec!r}, because it learns one in every "
            "split; afterwards, the model that it saves can be used as the structure"
        )
    if allow_blocks:
        return _with_blocks(spec, labels)
    if options.kind in _SHORT_FORMS:
        specified = _SHORT_FORMS[options.kind](_Request(options, labels, table, target))
    elif _is_file(spec):
        structure, notes = structure_from_file(spec, labels)
        specified = Specified(structure, notes=notes)
    else:
        raise _unknown_spec(spec)
    known = specified.structure.classes
    check_labels_known(labels, known)
    without_rows = classes_without_rows(labels, known) if labels else ()
    return Specified(specified.structure, specified.columns_used, (*specified.notes, *without_rows))


def columns_of(spec: str) -> tuple[str, ...]:
    """Return the columns of the data that define the structure, which must be loaded for it.

    Examples
    --------
    >>> columns_of("hierarchy:columns=genus,family")
    ('genus', 'family')
    >>> columns_of("circular:width=3")
    ()
    """
    options = Options.of(spec)
    return _columns(options) if options.kind == "hierarchy" else ()


def files_of(spec: str) -> tuple[Path, ...]:
    """Return the files that a structure is read from, whether they exist or not.

    Examples
    --------
    >>> [str(file) for file in files_of("graph:edges.csv,blocks=10")]
    ['edges.csv']
    >>> files_of("circular:width=3")
    ()
    """
    options = Options.of(spec)
    if options.kind == "graph":
        file = options.text("")
        return () if file is None else (Path(file),)
    return () if options.kind in (*_SHORT_FORMS, "learn") else files_read(Path(spec))


def has_classes_of_the_data(spec: str) -> bool:
    """Whether the classes of a structure are simply the labels of the data.

    Examples
    --------
    >>> has_classes_of_the_data("ordinal"), has_classes_of_the_data("ordinal:order=S|M|L")
    (True, False)
    >>> has_classes_of_the_data("species.csv")
    False
    """
    options = Options.of(spec)
    return options.kind in SHORT_FORMS and options.text("order") is None


def with_order(spec: str, classes: Sequence[Any]) -> str:
    """Return a short form that has these classes in their order, unless it has an order already.

    Examples
    --------
    >>> with_order("circular:width=3", ["a", "b", "c"]), with_order("ordinal", [1, 2])
    ('circular:width=3,order=a|b|c', 'ordinal:order=1|2')
    """
    options = Options.of(spec)
    if options.kind not in ("circular", "ordinal") or options.text("order") is not None:
        return spec
    wrong = next((str(label) for label in classes if set(str(label)) & set("|=")), None)
    if wrong is not None:
        raise StructentError(
            f"classes in an order must not contain '|' or '=', got {wrong!r}; write the structure "
            "to a file"
        )
    between = "," if ":" in spec else ":"
    return f"{spec}{between}order={'|'.join(map(str, classes))}"


def _with_blocks(spec: str, labels: tuple[Label, ...]) -> Specified:
    """Return a structure that names its classes, for labels that may be names of its blocks."""
    options = Options.of(spec)
    notes: tuple[str, ...] = ()
    if options.kind in CATALOG:
        structure, notes = structure_from_options(options, ())
    elif options.kind not in _SHORT_FORMS and _is_file(spec):
        structure, notes = structure_from_file(spec, labels, allow_blocks=True)
    else:
        raise StructentError(
            "if labels may be blocks, the structure must be a file that names its classes and "
            f"blocks ({', '.join(ENDINGS)}), got {spec!r}, which would take every label for a class"
        )
    if not isinstance(structure, RandomPartition):
        raise StructentError(
            f"if labels may be blocks, the structure must name them, got the sampler in {spec}, "
            "which changes its blocks"
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
    options = request.options
    if not request.labels and options.kind in SHORT_FORMS and options.text("order") is None:
        raise StructentError(
            f"{options.kind} is built from the labels of the data, got none; list the classes"
        )
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
    file = options.required("")
    options.required("blocks")
    graph, notes = graph_from_file(file, request.labels)
    return Specified(regions(graph, options), notes=notes)


_SHORT_FORMS: dict[str, Callable[[_Request], Specified]] = {
    **dict.fromkeys((*SHORT_FORMS, *CATALOG), _of_labels),
    "hierarchy": _hierarchy,
    "graph": _graph,
}


def _is_file(spec: str) -> bool:
    return Path(spec).suffix.lower() in ENDINGS or Path(spec).exists()


def _unknown_spec(spec: str) -> StructentError:
    near = _near(spec)
    if near:
        nearest = " or ".join(map(shlex.quote, near))
        return StructentError(f"{spec!r} is not a structure; did you mean {nearest}?")
    return StructentError(
        f"a structure must be one of {', '.join(_SHORT_FORMS)}, or a file that ends in "
        f"{', '.join(ENDINGS)}, got {spec!r}"
    )


def _near(spec: str) -> list[str]:
    """Return short forms with the same options, and files, that have similar names."""
    kind, colon, rest = spec.partition(":")
    kinds = get_close_matches(kind, (*_SHORT_FORMS, "learn"), n=2)
    folder = Path(spec).parent
    beside = sorted(folder.iterdir()) if folder.is_dir() else []
    files = {path.name: path for path in beside if path.suffix.lower() in ENDINGS}
    of_stem = [path for path in files.values() if path.stem == Path(spec).name]
    of_name = [files[name] for name in get_close_matches(Path(spec).name, files, n=2)]
    found = [*(f"{name}{colon}{rest}" for name in kinds), *map(str, [*of_stem, *of_name])]
    return list(dict.fromkeys(found))[:3]
