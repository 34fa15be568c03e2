"""Structures to files: JSON, which keeps all, or a table of the levels of a hierarchy."""

import csv
import io
from pathlib import Path

from structent.errors import StructentError, StructureError
from structent.structure import files
from structent.structure.levels import class_level
from structent.structure.partition_sampler import Structure
from structent.structure.random_partition import RandomPartition
from structent.tables.reading import FilePath


def write_structure(structure: Structure, path: FilePath) -> None:
    """Write a structure to a file, all or not at all.

    A ``.json`` file keeps everything. A ``.csv`` file is a table with one row a class and one
    column a level, coarsest last; it holds hierarchies alone, and no weights.

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
        files.save_bytes(path, text.encode())
    except OSError as error:
        raise StructentError(f"{path} cannot be written: {error.strerror}") from None


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
