"""Reading and writing structure files: the ending tells the format, the content the kind."""

import csv
import io
import json
import shlex
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from structent._files import DEEPEST, parsed_json, save_bytes
from structent._optional import load_optional
from structent._typing import Label
from structent.errors import StructentError, StructureError
from structent.inputs.hierarchy_columns import hierarchy_from_groups
from structent.inputs.table import FilePath, checked_file
from structent.inputs.taxonomy import hierarchy_from_taxonomy
from structent.structure import files
from structent.structure.files import FORMAT, label_from_json, structure_from_json
from structent.structure.graph import LabelGraph
from structent.structure.hierarchy import GroupPath, Paths, hierarchy, without_common_groups
from structent.structure.labels import as_classes, as_label, as_typed, shown
from structent.structure.newick import paths_from_newick
from structent.structure.random_partition import RandomPartition, class_level
from structent.structure.samplers import Structure

_NEWICK = (".nwk", ".newick", ".tree")
_NESTED = (".json", ".yaml", ".yml")
_CELLS = (".csv", ".tsv")
_TAXONOMY = ".dmp"
_MODEL = ".structent"
ENDINGS = (*_NESTED, *_CELLS, *_NEWICK, _TAXONOMY, _MODEL)


def structure_from_file(
    path: FilePath, labels: Sequence[Label], *, allow_blocks: bool = False
) -> tuple[Structure, tuple[str, ...]]:
    """Return the structure of a file, and notes on what was left out.

    With ``allow_blocks`` a label may be the name of a block, which does not become a class.

    ====================== ==========================================================
    .json, .yaml, .yml     what structent saves; nested names; the parent of each name
    .csv, .tsv             one row per class: the class, then its groups; or
                           two columns with each name and its parent
    .nwk, .newick, .tree   a tree in the Newick format
    .dmp                   ``nodes.dmp`` of a taxonomy, with ``names.dmp`` beside it
    .structent             the structure of a model, whatever the file is called
    ====================== ==========================================================
    """
    ending = Path(path).suffix.lower()
    if ending == _MODEL or zipfile.is_zipfile(path):
        return _from_model(checked_file(path)), ()
    if ending in _CELLS:
        return _from_cells(path, labels, allow_blocks=allow_blocks)
    if ending in _NEWICK:
        paths = paths_from_newick(_read_text(path))
        classes = as_typed(list(paths), labels)
        return _hierarchy(dict(zip(classes, paths.values(), strict=True)), path), ()
    if ending in _NESTED:
        inner_classes = () if allow_blocks else labels
        return _from_content(_content(path, ending), path, inner_classes), ()
    if ending == _TAXONOMY:
        return _from_taxonomy(Path(path), () if allow_blocks else labels), ()
    raise StructentError(
        f"a structure file must end in {', '.join(ENDINGS)}, got {path}; rename it by its content"
    )


def files_read(path: Path) -> tuple[Path, ...]:
    """Return a structure file, and what is read with it: the names of a taxonomy.

    Examples
    --------
    >>> [str(file) for file in files_read(Path("nodes.dmp"))]
    ['nodes.dmp', 'names.dmp']
    """
    if path.suffix.lower() != _TAXONOMY:
        return (path,)
    return path, path.with_name(f"{path.stem[:-5]}names{path.suffix}")


def graph_from_file(path: FilePath, labels: Sequence[Label]) -> tuple[LabelGraph, tuple[str, ...]]:
    """Return the graph of a file, its classes in the order of the labels, and notes.

    An edge has no direction: one that is listed in both directions is used once.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".tsv", ".json"):
        raise StructureError(f"a graph must come from a .csv, .tsv or .json file, got {path}")
    pairs, notes = _edges_from_json(path) if ending == ".json" else _edges_from_cells(path, labels)
    edges = list({frozenset(pair): pair for pair in pairs}.values())
    if len(edges) < len(pairs):
        notes += (f"{len(pairs) - len(edges)} edges of {path} are listed twice and were used once",)
    nodes = dict.fromkeys(label for edge in edges for label in edge)
    ordered = [label for label in labels if label in nodes]
    return LabelGraph(edges, dict.fromkeys([*ordered, *nodes])), notes


def write_structure(structure: Structure, path: FilePath) -> None:
    """Write a structure to a file, completely or not at all.

    A ``.json`` file keeps everything. A ``.csv`` file is a table with one row per class and
    one column per level, coarsest last; a ``.nwk`` file is a tree in the Newick format. These two
    formats are only for hierarchies, and do not keep weights.

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
    if ending not in (".json", ".csv", ".nwk"):
        raise StructentError(
            f"a structure must be written to a .json, .csv or .nwk file, got {path}"
        )
    if ending == ".csv":
        text = _level_table(structure)
    elif ending == ".nwk":
        text = _newick(structure)
    else:
        text = files.structure_to_json(structure) + "\n"
    try:
        save_bytes(path, text.encode())
    except OSError as error:
        raise StructentError(f"{path} cannot be written: {error.strerror}") from None


def _from_model(path: Path) -> Structure:
    try:
        with zipfile.ZipFile(path) as file:
            if file.getinfo(files.IN_MODEL).file_size > files.LARGEST_FILE:
                raise StructentError(
                    f"{path} must be a model that structent saved, got a structure of more than "
                    f"{files.LARGEST_FILE:,} bytes in it"
                )
            text = file.read(files.IN_MODEL).decode()
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError):
        raise StructentError(
            f"{path} must be a model that structent saved, got a file that is damaged or another "
            "one"
        ) from None
    except KeyError:
        raise StructentError(
            f"{path} must be a model with a structure, got a zip file without one"
        ) from None
    structure: Structure = structure_from_json(text)
    return structure


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
    if n_columns == 2 and len(body) < len(rows) and rows[0][0].strip().lower() == "parent":
        body = [[child, parent] for parent, child in body]
        rows = [rows[0][::-1], *body]
    if not body:
        raise StructureError(f"{path} must have a row for each class, got only a header")
    if not allow_blocks and _are_edges(body, labels):
        raise StructureError(
            f"a graph needs a number of blocks, got only the edges in {path}; write "
            + shlex.quote(f"graph:{path},blocks={max(2, len(labels) // 3)}")
        )
    names = [row[0] for row in body]
    if "" in names:
        raise StructureError(f"the first column of {path} must hold the classes, got an empty cell")
    if _are_parents(body):
        return _from_parents(_parents(body, labels), () if allow_blocks else labels), ()
    header = (
        rows[0] if len(body) < len(rows) else ["", *(f"level {i}" for i in range(1, n_columns))]
    )
    groups: dict[str, list[Label | None]] = {
        name: [row[i] or None for row in body] for i, name in enumerate(header) if i > 0
    }
    if len(groups) < n_columns - 1:
        raise StructureError(
            f"the levels in {path} must have different names, got {shown(header[1:])}"
        )
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


def _parents(rows: Sequence[Sequence[str]], labels: Sequence[Label]) -> dict[Label, Label]:
    cells = as_typed([cell for row in rows for cell in row], labels)
    parents: dict[Label, Label] = {}
    for name, parent in zip(cells[::2], cells[1::2], strict=True):
        if parents.setdefault(name, parent) != parent:
            raise StructureError(
                f"a name must have one parent, got {parents[name]!r} and {parent!r} for {name!r}; "
                "write a name and its parent in each row, or call the columns parent and child"
            )
    return parents


def _are_parents(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are names with their parents: some parent has a row, none is its own parent."""
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

    A mapping contains groups, or classes if nothing follows the name; a list contains classes, or
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
            raise StructureError(f"a class must be in one group, got {shown(label)} more than once")
        paths[label] = path[:-1]
    return paths


def _leaves(content: Any, above: GroupPath) -> Iterator[GroupPath]:
    """Yield the path of each class, with the class at its end."""
    if len(above) > DEEPEST:
        raise StructureError(f"nested names must be at most {DEEPEST} deep, got more")
    if isinstance(content, dict):
        for name, inside in content.items():
            here = (*above, as_label(name))
            if inside is None:
                yield here
            elif isinstance(inside, dict | list) and inside:
                yield from _leaves(inside, here)
            else:
                raise StructureError(
                    f"a group must hold a list of classes or further groups, got "
                    f"{shown(inside)} in {shown(name)}"
                )
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, dict):
                if not item:
                    raise StructureError("a list must hold classes or further groups, got {}")
                yield from _leaves(item, above)
            else:
                yield (*above, as_label(item))
    else:
        raise StructureError(f"nested names must be mappings or lists, got {content!r:.60}")


def _hierarchy(paths: Paths, path: FilePath) -> RandomPartition:
    kept = without_common_groups(paths) if paths else {}
    if not any(kept.values()):
        raise StructureError(
            f"a hierarchy must have a group that holds some of the classes, got none in {path}"
        )
    return hierarchy(kept)


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
    ends = [[as_label(label_from_json(end)) for end in edge] for edge in edges]
    return [(first, second) for first, second in ends], ()


def _level_table(structure: Structure) -> str:
    if not isinstance(structure, RandomPartition) or not _is_hierarchy(structure):
        raise StructureError(
            "a .csv file needs a hierarchy with nested partitions, got another structure; "
            "write it to a .json file"
        )
    if any(isinstance(label, tuple) or label == "" for label in structure.classes):
        raise StructureError(
            "a .csv file needs classes that are text, numbers or bools, got a pair or an empty "
            "name; write the structure to a .json file"
        )
    levels = {
        name: partitions[0]
        for name, partitions in reversed(structure.levels.items())
        if not partitions[0].is_singletons
    }
    if not levels:
        raise StructureError(
            "a .csv file needs a level above the classes, got a structure without one; write it to "
            "a .json file"
        )
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow([class_level(levels), *levels])
    for i, label in enumerate(structure.classes):
        groups = [partition.names[partition.block_of[i]] for partition in levels.values()]
        writer.writerow([label, *groups])
    return rows.getvalue()


def _newick(structure: Structure) -> str:
    if not isinstance(structure, RandomPartition):
        raise StructureError(
            "a .nwk file needs a hierarchy, got a sampler; write it to a .json file"
        )
    return structure.to_newick() + "\n"


def _from_taxonomy(path: Path, labels: Sequence[Label]) -> RandomPartition:
    if not path.stem.lower().endswith("nodes"):
        raise StructureError(
            f"the tree of a taxonomy is in its nodes.dmp, got {path}; name that file, and the "
            "names.dmp in its folder is read, too"
        )
    _, beside = files_read(path)
    names = beside if beside.exists() else None
    return hierarchy_from_taxonomy(path, names, classes=labels or None)


def _is_hierarchy(structure: RandomPartition) -> bool:
    one_each = all(len(partitions) == 1 for partitions in structure.levels.values())
    return one_each and structure.is_nested


def _content(path: FilePath, ending: str) -> Any:
    text = _read_text(path)
    if ending == ".json":
        try:
            return parsed_json(text)
        except ValueError as error:
            raise StructureError(f"{path} must be JSON, got text with an error: {error}") from None
    yaml = load_optional("yaml", extra="cli", purpose="Reading YAML")

    class Loader(yaml.SafeLoader):  # type: ignore[misc,name-defined]  # a module
        def compose_node(self, parent: Any, index: Any) -> Any:
            # A few lines of aliases can expand to more than any memory holds.
            if self.check_event(yaml.AliasEvent):
                raise ValueError(f"the alias *{self.peek_event().anchor}; write out what it means")
            return super().compose_node(parent, index)

    try:
        return yaml.load(text, Loader)
    # Conversions raise their own errors: for dates, bools, or text that is nested too deeply.
    except Exception as error:  # noqa: BLE001
        reason = " ".join(str(error).split())[:200]
        raise StructureError(f"{path} must be YAML, got text with an error: {reason}") from None


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
            f"the rows of {path} must have the same number of columns, got {shown(sorted(lengths))}"
        )
    return rows


def _has_header(rows: Sequence[Sequence[str]], labels: Sequence[Label]) -> bool:
    """Whether the first row is a header: none of its cells is a label or occurs again.

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
    """Return the text of a file, which must not be empty."""
    file = checked_file(path)
    text = files.load(file)
    if not text.strip():
        raise StructentError(f"{file} must hold a structure, got only white space")
    return text
