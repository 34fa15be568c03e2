"""Structures from files: the ending tells the format, the content what is in it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from structent._optional import load_optional
from structent._typing import Label
from structent.errors import StructentError, StructureError
from structent.specs.cells import has_header, read_cells
from structent.specs.edges import are_edges
from structent.specs.group_columns import hierarchy_from_groups
from structent.specs.names import as_typed
from structent.specs.nested import paths_from_nested, without_common_groups
from structent.specs.newick import paths_from_newick
from structent.specs.texts import read_text
from structent.structure.files import FORMAT, structure_from_json
from structent.structure.hierarchy import hierarchy
from structent.structure.labels import as_classes
from structent.structure.partition_sampler import Structure
from structent.structure.paths import Paths
from structent.structure.random_partition import RandomPartition
from structent.tables.reading import FilePath

_NEWICK = (".nwk", ".newick", ".tree")
_NESTED = (".json", ".yaml", ".yml")
_CELLS = (".csv", ".tsv")
ENDINGS = (*_NESTED, *_CELLS, *_NEWICK)


def structure_from_file(
    path: FilePath, labels: Sequence[Label], *, allow_blocks: bool = False
) -> tuple[Structure, tuple[str, ...]]:
    """Return the structure of a file, and notes on what was left out.

    With ``allow_blocks`` a label may be the name of a block, and makes no class of it.

    ====================== ==========================================================
    .json, .yaml, .yml     what structent saves; nested names; the parent of each name
    .csv, .tsv             one row a class, the classes first, then their groups, or
                           two columns with each name and its parent
    .nwk, .newick, .tree   a tree in the Newick format
    ====================== ==========================================================
    """
    ending = Path(path).suffix.lower()
    if ending in _CELLS:
        return _from_cells(path, labels, allow_blocks=allow_blocks)
    if ending in _NEWICK:
        paths = paths_from_newick(read_text(path))
        classes = as_typed(list(paths), labels)
        return _hierarchy(dict(zip(classes, paths.values(), strict=True)), path), ()
    if ending in _NESTED:
        inner_classes = () if allow_blocks else labels
        return _from_content(_content(path, ending), path, inner_classes), ()
    raise StructentError(
        f"a structure file must end in {', '.join(ENDINGS)}, got {path}; rename it by what it holds"
    )


def _content(path: FilePath, ending: str) -> Any:
    text = read_text(path)
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


def _from_content(content: Any, path: FilePath, inner_classes: Sequence[Label]) -> Structure:
    if not isinstance(content, dict):
        return _hierarchy(paths_from_nested(content), path)
    if content.get("format") == FORMAT:
        saved: Structure = structure_from_json(json.dumps(content))
        return saved
    if _is_parent_map(content):
        return _from_parents(content, inner_classes)
    return _hierarchy(paths_from_nested(content), path)


def _from_cells(
    path: FilePath, labels: Sequence[Label], *, allow_blocks: bool
) -> tuple[RandomPartition, tuple[str, ...]]:
    rows = read_cells(path)
    n_columns = len(rows[0])
    if n_columns == 1:
        raise StructureError(
            f"a table of a hierarchy must have the classes and a column of groups, got one column "
            f"in {path}"
        )
    body = rows[has_header(rows, labels) :]
    if not body:
        raise StructureError(f"{path} must have a row for each class, got a header alone")
    if not allow_blocks and are_edges(body, labels):
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


def _are_parents(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are names with their parents: some parent has a row, and none is its own."""
    if len(rows[0]) != 2 or any(name == parent for name, parent in rows):
        return False
    return not {name for name, _ in rows}.isdisjoint(parent for _, parent in rows)


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


def _hierarchy(paths: Paths, path: FilePath) -> RandomPartition:
    kept = without_common_groups(paths) if paths else {}
    if not any(kept.values()):
        raise StructureError(
            f"a hierarchy must have a group that holds some of the classes, got none in {path}"
        )
    return hierarchy(kept)
