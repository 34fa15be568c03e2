"""Structure files, read and written: the ending tells the format, the content what is in it."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from structent._files import save_bytes
from structent._optional import load_optional
from structent._typing import Label
from structent.errors import StructentError, StructureError
from structent.inputs.hierarchy_columns import hierarchy_from_groups
from structent.inputs.newick import paths_from_newick
from structent.inputs.table import FilePath, checked_file
from structent.structure import files
from structent.structure.files import FORMAT, label_from_json, structure_from_json
from structent.structure.graph import LabelGraph
from structent.structure.hierarchy import GroupPath, Paths, hierarchy
from structent.structure.labels import as_classes, as_label, as_typed
from structent.structure.random_partition import RandomPartition, class_level
from structent.structure.samplers import Structure

_NEWICK = (".nwk", ".newick", ".tree")
_NESTED = (".json", ".yaml", ".yml")
_CELLS = (".csv", ".tsv")
ENDINGS = (*_NESTED, *_CELLS, *_NEWICK)
_DEEPEST = 100  # a YAML file may contain itself


def structure_from_file(
    path: FilePath, labels: Sequence[Label], *, allow_blocks: bool = False
) -> tuple[Structure, tuple[str, ...]]:
    """Return the structure of a file, and notes on what was left out.

    With ``allow_blocks`` a label may be the name of a block, and makes no class of it.

    ====================== ==========================================================
    .json, .yaml, .yml     what structent saves; nested names; the parent of each name
    .csv, .tsv             one row per class: the class, then its groups; or
                           two columns with each name and its parent
    .nwk, .newick, .tree   a tree in the Newick format
    ====================== ==========================================================
    """
    ending = Path(path).suffix.lower()
    if ending in _CELLS:
        return _from_cells(path, labels, allow_blocks=allow_blocks)
    if ending in _NEWICK:
        paths = paths_from_newick(_read_text(path))
        classes = as_typed(list(paths), labels)
        return _hierarchy(dict(zip(classes, paths.values(), strict=True)), path), ()
    if ending in _NESTED:
        inner_classes = () if allow_blocks else labels
        return _from_content(_content(path, ending), path, inner_classes), ()
    raise StructentError(
        f"a structure file must end in {', '.join(ENDINGS)}, got {path}; rename it by what it holds"
    )


def graph_from_file(path: FilePath, labels: Sequence[Label]) -> tuple[LabelGraph, tuple[str, ...]]:
    """Return the graph of a file, its classes in the order of the labels, and notes.

    An edge has no direction: one that is listed both ways is taken once.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".tsv", ".json"):
        raise StructureError(f"a graph must come from a .csv, .tsv or .json file, got {path}")
    pairs, notes = _edges_from_json(path) if ending == ".json" else _edges_from_cells(path, labels)
    edges = list({frozenset(pair): pair for pair in pairs}.values())
    if len(edges) < len(pairs):
        notes += (
            f"{len(pairs) - len(edges)} edges of {path} are listed twice and were taken once",
        )
    nodes = dict.fromkeys(label for edge in edges for label in edge)
    ordered = [label for label in labels if label in nodes]
    return LabelGraph(edges, dict.fromkeys([*ordered, *nodes])), notes


def write_structure(structure: Structure, path: FilePath) -> None:
    """Write a structure to a file, all or not at all.

    A ``.json`` file keeps everything. A ``.csv`` file is a table with one row per class and
    one column per level, coarsest last; it holds only hierarchies, and no weights.

    Examples
    --------
    >>> import tempfile
    >>> from structent import hierarchy
    >>> file = Path(tempfile.mkdtemp()) / "plants.csv"
    >>> write_structure(hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ("flower",)}), file)
    >>> print(file.read_text(), end="")
    class,level 1
    oak,tree
    elm,tree
    rose,flower
    """
    ending = Path(path).suffix.lower()
    if ending not in (".json", ".csv"):
        raise StructentError(f"a structure must be written to a .json or .csv file, got {path}")
    text = (
        files.structure_to_json(structure) + "\n" if ending == ".json" else _level_table(structure)
    )
    try:
        save_bytes(path, text.encode())
    except OSError as error:
        raise StructentError(f"{path} cannot be written: {error.strerror}") from None


def _from_cells(
    path: FilePath, labels: Sequence[Label], *, allow_blocks: bool
) -> tuple[RandomPartition, tuple[str, ...]]:
    rows = _read_cells(path)
    n_columns = len(rows[0])
    if n_columns == 1:
        raise StructureError(
            f"a table of a hierarchy must have the classes and a column of groups, got one column "
            f"in {path}"
        )
    body = rows[_has_header(rows, labels) :]
    if not body:
        raise StructureError(f"{path} must have a row for each class, got a header alone")
    if not allow_blocks and _are_edges(body, labels):
        raise StructureError(
            f"a graph needs a number of blocks, got the edges in {path} alone; write "
            f"graph:{path},blocks={max(2, len(labels) // 3)}"
        )
    names = [row[0] for row in body]
    if "" in names:
        raise StructureError(f"the first column of {path} must hold the classes, got an empty cell")
    if _are_parents(body):
        cells = as_typed([cell for row in body for cell in row], labels)
        parents = dict(zip(cells[::2], cells[1::2], strict=True))
        return _from_parents(parents, () if allow_blocks else labels), ()
    header = (
        rows[0] if len(body) < len(rows) else ["", *(f"level {i}" for i in range(1, n_columns))]
    )
    groups: dict[str, list[Label | None]] = {
        name: [row[i] or None for row in body] for i, name in enumerate(header) if i > 0
    }
    if len(groups) < n_columns - 1:
        raise StructureError(f"the levels in {path} must have different names, got {header[1:]}")
    return hierarchy_from_groups(as_classes(as_typed(names, labels)), groups)


def _are_edges(rows: Iterable[Sequence[str]], labels: Sequence[Label]) -> bool:
    """Whether rows can only be edges: both cells of every row are labels of the data.

    Examples
    --------
    >>> _are_edges([["oak", "elm"], ["elm", "fir"]], ["oak", "elm", "fir"])
    True
    >>> _are_edges([["oak", "tree"]], ["oak", "elm", "fir"])
    False
    """
    names = {str(label) for label in labels}
    return all(len(row) == 2 and row[0] != row[1] and set(row) <= names for row in rows)


def _are_parents(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are names with their parents: some parent has a row, and none is its own."""
    if len(rows[0]) != 2 or any(name == parent for name, parent in rows):
        return False
    return not {name for name, _ in rows}.isdisjoint(parent for _, parent in rows)


def _from_content(content: Any, path: FilePath, inner_classes: Sequence[Label]) -> Structure:
    if not isinstance(content, dict):
        return _hierarchy(_paths_from_nested(content), path)
    if content.get("format") == FORMAT:
        saved: Structure = structure_from_json(json.dumps(content))
        return saved
    if _is_parent_map(content):
        return _from_parents(content, inner_classes)
    return _hierarchy(_paths_from_nested(content), path)


def _is_parent_map(content: Mapping[Any, Any]) -> bool:
    values = list(content.values())
    return any(value is not None for value in values) and not any(
        isinstance(value, dict | list) for value in values
    )


def _from_parents(parents: Mapping[Any, Any], labels: Sequence[Label]) -> RandomPartition:
    """Return the hierarchy of a parent map; inner names that are labels are classes, too."""
    inner = set(parents.values())
    leaves = [name for name in parents if name not in inner]
    wanted = [label for label in labels if label in inner]
    return hierarchy(dict(parents), classes=[*leaves, *wanted])


def _paths_from_nested(content: Any) -> Paths:
    """Return the path of each class in nested mappings and lists.

    A mapping holds groups, or classes where nothing follows the name; a list holds classes, or
    mappings with further groups.

    Examples
    --------
    >>> _paths_from_nested({"plant": {"tree": ["oak", "elm"], "moss": None}, "cat": None})
    {'oak': ('plant', 'tree'), 'elm': ('plant', 'tree'), 'moss': ('plant',), 'cat': ()}
    """
    paths: Paths = {}
    for path in _leaves(content, ()):
        label = path[-1]
        if label in paths:
            raise StructureError(f"a class must be in one group, got {label!r} more than once")
        paths[label] = path[:-1]
    return paths


def _leaves(content: Any, above: GroupPath) -> Iterator[GroupPath]:
    """Give the path of each class with the class at its end."""
    if len(above) > _DEEPEST:
        raise StructureError(f"nested names must be at most {_DEEPEST} deep, got more")
    if isinstance(content, dict):
        for name, inside in content.items():
            here = (*above, as_label(name))
            if inside is None:
                yield here
            elif isinstance(inside, dict | list) and inside:
                yield from _leaves(inside, here)
            else:
                raise StructureError(
                    f"a group must hold a list of classes or further groups, got {inside!r} in "
                    f"{name!r}"
                )
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, dict):
                yield from _leaves(item, above)
            else:
                yield (*above, as_label(item))
    else:
        raise StructureError(f"nested names must be mappings or lists, got {content!r:.60}")


def _hierarchy(paths: Paths, path: FilePath) -> RandomPartition:
    kept = _without_common_groups(paths) if paths else {}
    if not any(kept.values()):
        raise StructureError(
            f"a hierarchy must have a group that holds some of the classes, got none in {path}"
        )
    return hierarchy(kept)


def _without_common_groups(paths: Paths) -> Paths:
    """Return paths without the groups at their beginning that hold every class and say nothing.

    Examples
    --------
    >>> _without_common_groups({"oak": ("life", "plant"), "cat": ("life", "animal")})
    {'oak': ('plant',), 'cat': ('animal',)}
    """
    first, *others = paths.values()
    common = 0
    while common < len(first) and all(path[: common + 1] == first[: common + 1] for path in others):
        common += 1
    return {label: path[common:] for label, path in paths.items()}


def _edges_from_cells(
    path: FilePath, labels: Sequence[Label]
) -> tuple[list[tuple[Label, Label]], tuple[str, ...]]:
    rows = _read_cells(path)
    if len(rows[0]) != 2 or len(rows) < 2:
        raise StructureError(
            f"a list of edges must have two columns and at least one edge under its header, got "
            f"{len(rows[0])} columns and {len(rows)} rows in {path}"
        )
    with_header = _has_header(rows, labels)
    notes = () if with_header else (f"{path} has no header: its first row was read as an edge",)
    cells = as_typed([cell for row in rows[with_header:] for cell in row], labels)
    return list(zip(cells[::2], cells[1::2], strict=True)), notes


def _edges_from_json(path: FilePath) -> tuple[list[tuple[Label, Label]], tuple[str, ...]]:
    content = _content(path, ".json")
    edges = content.get("edges") if isinstance(content, dict) else None
    if not isinstance(edges, list) or not all(
        isinstance(edge, list) and len(edge) == 2 for edge in edges
    ):
        raise StructureError(
            f'{path} must have "edges" that are pairs of classes, got no such list'
        )
    return [(label_from_json(first), label_from_json(second)) for first, second in edges], ()


def _level_table(structure: Structure) -> str:
    if not isinstance(structure, RandomPartition) or not _is_hierarchy(structure):
        raise StructureError(
            "a .csv file holds a hierarchy, whose partitions are nested, got another structure; "
            "write it to a .json file"
        )
    if any(isinstance(label, tuple) or label == "" for label in structure.classes):
        raise StructureError(
            "a .csv file holds classes that are text, numbers or bools, got a pair or an empty "
            "name; write the structure to a .json file"
        )
    levels = {
        name: partitions[0]
        for name, partitions in reversed(structure.levels.items())
        if not partitions[0].is_singletons
    }
    if not levels:
        raise StructureError(
            "a .csv file holds the levels of a hierarchy, got a structure that has none but the "
            "classes; write it to a .json file"
        )
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow([class_level(levels), *levels])
    for i, label in enumerate(structure.classes):
        groups = [partition.names[partition.block_of[i]] for partition in levels.values()]
        writer.writerow([label, *groups])
    return rows.getvalue()


def _is_hierarchy(structure: RandomPartition) -> bool:
    one_each = all(len(partitions) == 1 for partitions in structure.levels.values())
    return one_each and structure.is_nested


def _content(path: FilePath, ending: str) -> Any:
    text = _read_text(path)
    if ending == ".json":
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise StructureError(
                f"{path} must be JSON, got text that goes wrong: {error}"
            ) from None
    yaml = load_optional("yaml", extra="cli", purpose="Reading YAML")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise StructureError(f"{path} must be YAML, got text that goes wrong: {reason}") from None


def _read_cells(path: FilePath) -> list[list[str]]:
    """Return the rows of a CSV file, or of a TSV file by its ending; all have the same length."""
    delimiter = "\t" if str(path).lower().endswith(".tsv") else ","
    try:
        lines = csv.reader(io.StringIO(_read_text(path)), delimiter=delimiter, strict=True)
        rows = [row for row in lines if any(row)]
    except csv.Error as error:
        raise StructureError(f"{path} must be a table, got one with {error}") from None
    lengths = {len(row) for row in rows}
    if len(lengths) != 1:
        raise StructureError(
            f"the rows of {path} must have the same number of columns, got {sorted(lengths)}"
        )
    return rows


def _has_header(rows: Sequence[Sequence[str]], labels: Sequence[Label]) -> bool:
    """Whether the first row names columns: none of its cells is a label or occurs again.

    Examples
    --------
    >>> _has_header([["from", "to"], ["oak", "elm"]], ["oak", "elm"])
    True
    >>> _has_header([["oak", "elm"], ["elm", "fir"]], ["oak", "elm", "fir"])
    False
    """
    names = {str(label) for label in labels}
    names.update(cell for row in rows[1:] for cell in row)
    return not names & set(rows[0])


def _read_text(path: FilePath) -> str:
    """Return the text of a file, without the mark that some programs put before it."""
    file = checked_file(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise StructentError(f"a structure file must be UTF-8 text, got {file}") from None
    if not text.strip():
        raise StructentError(f"{file} must hold a structure, got nothing but white space")
    return text
