"""Label structures: which classes belong together, and with what weight."""

from structent.structure.circular import circular
from structent.structure.composed import (
    MixedPartitions,
    ProductPartitions,
    ScrambledPartitions,
    mix,
)
from structent.structure.graph import LabelGraph
from structent.structure.hierarchy import (
    hierarchy,
    hierarchy_from_edges,
    hierarchy_from_levels,
    hierarchy_from_newick,
    hxe,
)
from structent.structure.learned import (
    distances_from_confusion,
    neighbour_graph_from_confusion,
    neighbour_graph_from_distances,
    structure_from_confusion,
    structure_from_distances,
    structure_from_embeddings,
)
from structent.structure.ordinal import ordinal
from structent.structure.partition import Partition
from structent.structure.random_partition import RandomPartition, trivial
from structent.structure.samplers import FixedStructure, PartitionSampler, SpanningTreePartitions
from structent.structure.targets import LabelSets

__all__ = [
    "FixedStructure",
    "LabelGraph",
    "LabelSets",
    "MixedPartitions",
    "Partition",
    "PartitionSampler",
    "ProductPartitions",
    "RandomPartition",
    "ScrambledPartitions",
    "SpanningTreePartitions",
    "circular",
    "distances_from_confusion",
    "hierarchy",
    "hierarchy_from_edges",
    "hierarchy_from_levels",
    "hierarchy_from_newick",
    "hxe",
    "mix",
    "neighbour_graph_from_confusion",
    "neighbour_graph_from_distances",
    "ordinal",
    "structure_from_confusion",
    "structure_from_distances",
    "structure_from_embeddings",
    "trivial",
]
