"""structent: classifiers that know how their labels are related."""

from importlib.metadata import version

from structent.entropy import (
    conditional_structured_entropy,
    joint_structured_entropy,
    maximum_entropy_distribution,
    structured_cross_entropy,
    structured_entropy,
    structured_mutual_information,
    structured_mutual_information_from_labels,
    structured_relative_entropy,
)
from structent.errors import LabelError, StructentError, StructureError
from structent.structure import (
    FixedStructure,
    LabelGraph,
    Partition,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
    circular,
    hierarchy,
    hxe,
    mix,
    ordinal,
    trivial,
)

__version__ = version("structent")

__all__ = [
    "FixedStructure",
    "LabelError",
    "LabelGraph",
    "Partition",
    "PartitionSampler",
    "RandomPartition",
    "SpanningTreePartitions",
    "StructentError",
    "StructureError",
    "circular",
    "conditional_structured_entropy",
    "hierarchy",
    "hxe",
    "joint_structured_entropy",
    "maximum_entropy_distribution",
    "mix",
    "ordinal",
    "structured_cross_entropy",
    "structured_entropy",
    "structured_mutual_information",
    "structured_mutual_information_from_labels",
    "structured_relative_entropy",
    "trivial",
]
