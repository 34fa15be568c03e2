"""Label structures: which classes belong together, and with what weight."""

from structent.structure.circular import circular
from structent.structure.graph import LabelGraph
from structent.structure.hierarchy import hierarchy, hxe
from structent.structure.mixture import mix, trivial
from structent.structure.ordinal import ordinal
from structent.structure.partition import Partition
from structent.structure.random_partition import RandomPartition
from structent.structure.sampler import FixedStructure, PartitionSampler, SpanningTreePartitions
from structent.structure.targets import Targets

__all__ = [
    "FixedStructure",
    "LabelGraph",
    "Partition",
    "PartitionSampler",
    "RandomPartition",
    "SpanningTreePartitions",
    "Targets",
    "circular",
    "hierarchy",
    "hxe",
    "mix",
    "ordinal",
    "trivial",
]
