"""structent: classifiers that know how their labels are related."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

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
    distances_from_confusion,
    hierarchy,
    hxe,
    mix,
    neighbour_graph_from_confusion,
    neighbour_graph_from_distances,
    ordinal,
    structure_from_confusion,
    structure_from_distances,
    structure_from_embeddings,
    trivial,
)

if TYPE_CHECKING:
    from structent.estimators import StructuredBoostingClassifier as StructuredBoostingClassifier
    from structent.estimators import StructuredLogisticRegression as StructuredLogisticRegression
    from structent.studies import StructureLearner as StructureLearner
    from structent.studies import compare as compare
    from structent.studies import learn_structure as learn_structure
    from structent.studies import structure_test as structure_test

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
    "distances_from_confusion",
    "hierarchy",
    "hxe",
    "joint_structured_entropy",
    "maximum_entropy_distribution",
    "mix",
    "neighbour_graph_from_confusion",
    "neighbour_graph_from_distances",
    "ordinal",
    "structure_from_confusion",
    "structure_from_distances",
    "structure_from_embeddings",
    "structured_cross_entropy",
    "structured_entropy",
    "structured_mutual_information",
    "structured_mutual_information_from_labels",
    "structured_relative_entropy",
    "trivial",
]


_NEEDS_SCIKIT_LEARN = {
    "StructureLearner": "structent.studies",
    "StructuredBoostingClassifier": "structent.estimators",
    "StructuredLogisticRegression": "structent.estimators",
    "compare": "structent.studies",
    "learn_structure": "structent.studies",
    "structure_test": "structent.studies",
}


def __getattr__(name: str) -> Any:
    """Load the estimators, and scikit-learn with them, when they are first asked for.

    They are not in ``__all__``, so that ``from structent import *`` works without scikit-learn.
    """
    if name in _NEEDS_SCIKIT_LEARN:
        return getattr(import_module(_NEEDS_SCIKIT_LEARN[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
