"""Label structures: which classes belong together, and with what weight."""

from structent.structure.circular import circular
from structent.structure.composed import ProductPartitions, ScrambledPartitions
from structent.structure.distances import distances_from_confusion
from structent.structure.graph import LabelGraph
from structent.structure.hierarchy import hierarchy, hxe
from structent.structure.learned import (
    structure_from_confusion,
    structure_from_distances,
    structure_from_embeddings,
)
from structent.structure.mixture import MixedPartitions, mix, trivial
from structent.structure.neighbours import (
    neighbour_graph_from_confusion,
    neighbour_graph_from_distances,
)
from structent.structure.ordinal import ordinal
from structent.structure.partition import Partition
from structent.structure.partition_sampler import PartitionSampler
from structent.structure.random_partition import RandomPartition
from structent.structure.sampler import FixedStructure, SpanningTreePartitions
from structent.structure.targets import Targets

__all__ = [
    "FixedStructure",
    "LabelGraph",
    "MixedPartitions",
    "Partition",
    "PartitionSampler",
    "ProductPartitions",
    "RandomPartition",
    "ScrambledPartitions",
    "SpanningTreePartitions",
    "Targets",
    "circular",
    "distances_from_confusion",
    "hierarchy",
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
