"""structent: classifiers that know how their labels are related.

A name is imported when it is first asked for, so that the command line and small programs load only
what they use.
"""

# Nothing is imported here, not even from typing: this file is read before the command can handle
# Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:  # for type checkers and editors
    from structent.entropy import conditional_structured_entropy as conditional_structured_entropy
    from structent.entropy import joint_structured_entropy as joint_structured_entropy
    from structent.entropy import maximum_entropy_distribution as maximum_entropy_distribution
    from structent.entropy import structured_cross_entropy as structured_cross_entropy
    from structent.entropy import structured_entropy as structured_entropy
    from structent.entropy import structured_mutual_information as structured_mutual_information
    from structent.entropy import (
        structured_mutual_information_from_labels as structured_mutual_information_from_labels,
    )
    from structent.entropy import structured_relative_entropy as structured_relative_entropy
    from structent.errors import LabelError as LabelError
    from structent.errors import StructentError as StructentError
    from structent.errors import StructureError as StructureError
    from structent.estimators import StructuredBoostingClassifier as StructuredBoostingClassifier
    from structent.estimators import StructuredLogisticRegression as StructuredLogisticRegression
    from structent.structure import FixedStructure as FixedStructure
    from structent.structure import LabelGraph as LabelGraph
    from structent.structure import Partition as Partition
    from structent.structure import PartitionSampler as PartitionSampler
    from structent.structure import RandomPartition as RandomPartition
    from structent.structure import SpanningTreePartitions as SpanningTreePartitions
    from structent.structure import circular as circular
    from structent.structure import distances_from_confusion as distances_from_confusion
    from structent.structure import hierarchy as hierarchy
    from structent.structure import hierarchy_from_edges as hierarchy_from_edges
    from structent.structure import hierarchy_from_levels as hierarchy_from_levels
    from structent.structure import hierarchy_from_newick as hierarchy_from_newick
    from structent.structure import hxe as hxe
    from structent.structure import mix as mix
    from structent.structure import neighbour_graph_from_confusion as neighbour_graph_from_confusion
    from structent.structure import neighbour_graph_from_distances as neighbour_graph_from_distances
    from structent.structure import ordinal as ordinal
    from structent.structure import structure_from_confusion as structure_from_confusion
    from structent.structure import structure_from_distances as structure_from_distances
    from structent.structure import structure_from_embeddings as structure_from_embeddings
    from structent.structure import trivial as trivial
    from structent.studies import Comparison as Comparison
    from structent.studies import StructureLearner as StructureLearner
    from structent.studies import StructureTest as StructureTest
    from structent.studies import compare as compare
    from structent.studies import learn_structure as learn_structure
    from structent.studies import structure_test as structure_test

if TYPE_CHECKING:
    from typing import Any

__version__: str

# The module of each public name. To add a name, add it here and among the imports above.
_CORE = {
    "FixedStructure": "structent.structure",
    "LabelError": "structent.errors",
    "LabelGraph": "structent.structure",
    "Partition": "structent.structure",
    "PartitionSampler": "structent.structure",
    "RandomPartition": "structent.structure",
    "SpanningTreePartitions": "structent.structure",
    "StructentError": "structent.errors",
    "StructureError": "structent.errors",
    "circular": "structent.structure",
    "conditional_structured_entropy": "structent.entropy",
    "distances_from_confusion": "structent.structure",
    "hierarchy": "structent.structure",
    "hierarchy_from_edges": "structent.structure",
    "hierarchy_from_levels": "structent.structure",
    "hierarchy_from_newick": "structent.structure",
    "hxe": "structent.structure",
    "joint_structured_entropy": "structent.entropy",
    "maximum_entropy_distribution": "structent.entropy",
    "mix": "structent.structure",
    "neighbour_graph_from_confusion": "structent.structure",
    "neighbour_graph_from_distances": "structent.structure",
    "ordinal": "structent.structure",
    "structure_from_confusion": "structent.structure",
    "structure_from_distances": "structent.structure",
    "structure_from_embeddings": "structent.structure",
    "structured_cross_entropy": "structent.entropy",
    "structured_entropy": "structent.entropy",
    "structured_mutual_information": "structent.entropy",
    "structured_mutual_information_from_labels": "structent.entropy",
    "structured_relative_entropy": "structent.entropy",
    "trivial": "structent.structure",
}
_NEEDS_SCIKIT_LEARN = {
    "Comparison": "structent.studies",
    "StructureLearner": "structent.studies",
    "StructureTest": "structent.studies",
    "StructuredBoostingClassifier": "structent.estimators",
    "StructuredLogisticRegression": "structent.estimators",
    "compare": "structent.studies",
    "learn_structure": "structent.studies",
    "structure_test": "structent.studies",
}
_MODULE_OF = _CORE | _NEEDS_SCIKIT_LEARN

_SUBPACKAGES = (
    "datasets",
    "decisions",
    "entropy",
    "errors",
    "estimators",
    "inputs",
    "layers",
    "losses",
    "metrics",
    "plots",
    "report",
    "structure",
    "studies",
)


def __getattr__(name: str) -> "Any":
    from importlib import import_module  # noqa: PLC0415  see above

    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name in _SUBPACKAGES:
        value = import_module(f"{__name__}.{name}")
    elif name == "__version__":
        value = import_module("importlib.metadata").version(__name__)
    elif name == "__all__":
        # ``from structent import *`` works without scikit-learn, but lacks what needs it.
        has_scikit_learn = import_module("importlib.util").find_spec("sklearn") is not None
        value = list(_MODULE_OF if has_scikit_learn else _CORE)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    special = [name for name in globals() if name.startswith("__") and name.endswith("__")]
    return sorted({*_MODULE_OF, *_SUBPACKAGES, *special, "__version__"})
