"""Graphs from files: a list of edges as CSV or TSV, or JSON with ``"edges"``."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from structent._typing import Label
from structent.errors import StructureError
from structent.specs.cells import has_header, read_cells
from structent.specs.names import as_typed
from structent.specs.texts import read_text
from structent.structure.files import label_from_json
from structent.structure.graph import LabelGraph
from structent.tables.reading import FilePath


def graph_from_file(path: FilePath, labels: Sequence[Label]) -> tuple[LabelGraph, tuple[str, ...]]:
    """Return the graph of a file, its classes in the order of the labels, and notes.

    An edge has no direction: one that is listed both ways is taken once.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".tsv", ".json"):
        raise StructureError(f"a graph must come from a .csv, .tsv or .json file, got {path}")
    pairs, notes = _from_json(path) if ending == ".json" else _from_cells(path, labels)
    edges = list({frozenset(pair): pair for pair in pairs}.values())
    if len(edges) < len(pairs):
        notes += (
            f"{len(pairs) - len(edges)} edges of {path} are listed twice and were taken once",
        )
    nodes = dict.fromkeys(label for edge in edges for label in edge)
    ordered = [label for label in labels if label in nodes]
    return LabelGraph(edges, dict.fromkeys([*ordered, *nodes])), notes


def are_edges(rows: Iterable[Sequence[str]], labels: Sequence[Label]) -> bool:
    """Whether rows can only be edges: both cells of every row are labels of the data.

    Examples
    --------
    >>> are_edges([["oak", "elm"], ["elm", "fir"]], ["oak", "elm", "fir"])
    True
    >>> are_edges([["oak", "tree"]], ["oak", "elm", "fir"])
    False
    """
    names = {str(label) for label in labels}
    return all(len(row) == 2 and row[0] != row[1] and set(row) <= names for row in rows)


def _from_cells(
    path: FilePath, labels: Sequence[Label]
) -> tuple[list[tuple[Label, Label]], tuple[str, ...]]:
    rows = read_cells(path)
    if len(rows[0]) != 2 or len(rows) < 2:
        raise StructureError(
            f"a list of edges must have two columns and at least one edge under its header, got "
            f"{len(rows[0])} columns and {len(rows)} rows in {path}"
        )
    with_header = has_header(rows, labels)
    notes = () if with_header else (f"{path} has no header: its first row was read as an edge",)
    cells = as_typed([cell for row in rows[with_header:] for cell in row], labels)
    return list(zip(cells[::2], cells[1::2], strict=True)), notes


def _from_json(path: FilePath) -> tuple[list[tuple[Label, Label]], tuple[str, ...]]:
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise StructureError(f"{path} must be JSON, got text that goes wrong: {error}") from None
    edges = content.get("edges") if isinstance(content, dict) else None
    if not isinstance(edges, list) or not all(
        isinstance(edge, list) and len(edge) == 2 for edge in edges
    ):
        raise StructureError(
            f'{path} must have "edges" that are pairs of classes, got no such list'
        )
    return [(label_from_json(first), label_from_json(second)) for first, second in edges], ()
