"""Hierarchies from taxonomies in the format of NCBI: nodes.dmp and names.dmp."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from structent._typing import Label, WeightRule
from structent.errors import LabelError, StructureError
from structent.inputs.hierarchy_columns import hierarchy_from_groups
from structent.inputs.table import FilePath, checked_file
from structent.structure.labels import WHOLE_NUMBER, as_classes
from structent.structure.random_partition import RandomPartition

# From coarse to fine. Since 2025 NCBI calls superkingdoms domains, and has realms of viruses.
_MAIN_RANKS = (
    "domain", "superkingdom", "realm", "kingdom", "phylum", "class", "order", "family", "genus",
    "species",
)  # fmt: skip
_MOST_SHOWN = 10


def hierarchy_from_taxonomy(
    nodes: FilePath,
    names: FilePath | None = None,
    weights: ArrayLike | WeightRule | None = None,
    *,
    ranks: Sequence[str] | None = None,
    classes: Iterable[Any] | None = None,
) -> RandomPartition:
    r"""Return the hierarchy of a taxonomy dump, with a level for each rank.

    If a lineage has no taxon of a rank, its taxon of the next finer rank is used. A rank that puts
    all classes into one group, or each class into its own group, is left out.

    Parameters
    ----------
    nodes
        The file ``nodes.dmp``: the parent and the rank of each taxon.
    names
        The file ``names.dmp``: the scientific names, which become the names of the groups.
    weights
        As for :func:`~structent.structure.hierarchy`.
    ranks
        The ranks wanted, coarsest first. If None, the main ranks from domain to species, without
        ranks that divide the classes in the same way as the rank before.
    classes
        The classes, as taxon ids or as scientific names; all taxa without children if None.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> nodes = Path(tempfile.mkdtemp()) / "nodes.dmp"
    >>> lines = ["1|1|no rank|", "2|1|genus|", "3|1|genus|", "20|2|species|", "21|2|species|"]
    >>> _ = nodes.write_text("\n".join(lines))
    >>> hierarchy_from_taxonomy(nodes).levels["genus"][0].blocks
    ((3,), (20, 21))
    """
    parent_of, rank_of = _read_nodes(nodes)
    taxon_of = _classes(classes, names, parent_of, nodes)
    lineages = [_lineage(taxon, parent_of, nodes) for taxon in taxon_of.values()]
    taxa = _taxa_by_rank(lineages, rank_of, ranks, nodes)
    used = {taxon for column in taxa.values() for taxon in column if taxon is not None}
    name_of = _names_of(used, names)
    groups: dict[str, list[Label | None]] = {
        rank: [None if taxon is None else name_of[taxon] for taxon in column]
        for rank, column in taxa.items()
    }
    structure, _ = hierarchy_from_groups(tuple(taxon_of), groups)
    if weights is None:
        return structure
    return structure.reweight(weights(structure.n_partitions) if callable(weights) else weights)


def _read_nodes(path: FilePath) -> tuple[dict[int, int], dict[int, str]]:
    """Return the parent and the rank of each taxon."""
    parent_of, rank_of = {}, {}
    ranks: dict[str, str] = {}  # the same few texts for millions of taxa
    for number, (taxon, parent, rank) in _rows(path, 3):
        parent_of[number] = number if parent == taxon else _number(parent, path)
        rank_of[number] = ranks.setdefault(rank, rank)
    return parent_of, rank_of


def _read_names(path: FilePath) -> Iterator[tuple[int, str]]:
    """Yield each taxon with its scientific name."""
    for number, (_, name, _, kind) in _rows(path, 4):
        if kind == "scientific name":
            yield number, name


def _rows(path: FilePath, n_fields: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the first field of each line as a number, and as many fields as asked for."""
    with checked_file(path).open(encoding="utf-8") as file:
        try:
            for line in file:
                fields = [field.strip() for field in line.split("|", n_fields)[:n_fields]]
                if len(fields) == n_fields:
                    yield _number(fields[0], path), fields
                elif line.strip():
                    raise _wrong(path, line)
        except UnicodeDecodeError:
            raise StructureError(f"a taxonomy dump must be UTF-8 text, got {path}") from None


def _number(text: str, path: FilePath) -> int:
    if not WHOLE_NUMBER.fullmatch(text):
        raise _wrong(path, text)
    return int(text)


def _wrong(path: FilePath, text: str) -> StructureError:
    return StructureError(
        "a line of a taxonomy dump must begin with a number and have fields between '|', got "
        f"{text.strip()[:60]!r} in {path}"
    )


def _classes(
    classes: Iterable[Any] | None,
    names: FilePath | None,
    parent_of: Mapping[int, int],
    nodes: FilePath,
) -> dict[Label, int]:
    """Return the taxon of each class."""
    if classes is None:
        inner = {parent for taxon, parent in parent_of.items() if parent != taxon}
        leaves = [taxon for taxon in parent_of if taxon not in inner]
        if names is None:
            return {taxon: taxon for taxon in leaves}
        name_of = _names_of(leaves, names)
        return {name_of[taxon]: taxon for taxon in leaves}
    labels = as_classes(classes)
    if all(WHOLE_NUMBER.fullmatch(str(label)) for label in labels):
        found = {label: int(str(label)) for label in labels}
    else:
        found = _taxa_of_names(labels, names)
    unknown = [label for label in labels if found.get(label) not in parent_of]
    if unknown:
        shown = ", ".join(map(repr, unknown[:_MOST_SHOWN]))
        raise LabelError(
            f"every class must be a taxon of {nodes}, by its id or its scientific name, got "
            f"{len(unknown)} that are not: {shown}"
        )
    return found


def _taxa_of_names(labels: Sequence[Label], names: FilePath | None) -> dict[Label, int]:
    if names is None:
        raise StructureError(
            f"classes that are scientific names need names.dmp, got {labels[0]!r} and only "
            "nodes.dmp; put names.dmp into the same folder, or give taxon ids"
        )
    wanted, found = set(labels), dict[Label, int]()
    for taxon, name in _read_names(names):
        if name in wanted and found.setdefault(name, taxon) != taxon:
            raise LabelError(
                f"a class must be one taxon, got {name!r}, which is the name of {found[name]} and "
                f"{taxon}; give taxon ids"
            )
    return {label: found[label] for label in labels if label in found}


def _lineage(taxon: int, parent_of: Mapping[int, int], nodes: FilePath) -> list[int]:
    """Return a taxon and its ancestors, up to the root, which is its own parent."""
    walk = {taxon: None}
    while (parent := parent_of[taxon]) != taxon:
        if parent not in parent_of or parent in walk:
            problem = "is its own ancestor" if parent in walk else "is missing"
            raise StructureError(
                f"every taxon of {nodes} must have a parent up to the root, got the parent "
                f"{parent} of {taxon}, which {problem}"
            )
        walk[parent] = None
        taxon = parent
    return list(walk)


def _taxa_by_rank(
    lineages: Sequence[Sequence[int]],
    rank_of: Mapping[int, str],
    ranks: Sequence[str] | None,
    nodes: FilePath,
) -> dict[str, list[int | None]]:
    """Return for each rank the taxon of each class; None at ranks below the class itself."""
    by_rank = [{rank_of[taxon]: taxon for taxon in reversed(lineage)} for lineage in lineages]
    there = dict.fromkeys(rank for of_class in by_rank for rank in of_class)
    wanted = [rank for rank in _MAIN_RANKS if rank in there] if ranks is None else list(ranks)
    missing = [rank for rank in wanted if rank not in there]
    if missing or not wanted:
        raise StructureError(
            f"ranks must be some that {nodes} has above the classes ({', '.join(there)}), got "
            f"{', '.join(missing) or 'none'}"
        )
    columns: dict[str, list[int | None]] = {}
    finer: list[int | None] = [None] * len(lineages)
    for rank in reversed(wanted):
        finer = [of_class.get(rank, below) for of_class, below in zip(by_rank, finer, strict=True)]
        columns[rank] = finer
    ordered = {rank: columns[rank] for rank in wanted}
    return _without_repeated(ordered) if ranks is None else ordered


def _without_repeated(columns: dict[str, list[int | None]]) -> dict[str, list[int | None]]:
    """Leave out ranks that divide the classes in the same way as the rank before."""
    kept: dict[str, list[int | None]] = {}
    before: list[int] = []
    for rank, column in columns.items():
        groups = [(None, i) if taxon is None else (taxon, 0) for i, taxon in enumerate(column)]
        number_of = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        division = [number_of[group] for group in groups]
        if division != before:
            kept[rank], before = column, division
    return kept


def _names_of(taxa: Iterable[int], names: FilePath | None) -> dict[int, str]:
    """Return a name for each taxon; its number is added to a name that several have."""
    wanted = set(taxa)
    name_of = {taxon: str(taxon) for taxon in wanted}
    if names is None:
        return name_of
    name_of |= {taxon: name for taxon, name in _read_names(names) if taxon in wanted}
    times = Counter(name_of.values())
    return {
        taxon: name if times[name] == 1 else f"{name} ({taxon})" for taxon, name in name_of.items()
    }
