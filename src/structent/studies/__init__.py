"""The questions one asks of a structure: does it help, is it significant, can it be learned?"""

from structent._optional import load_optional

load_optional("sklearn", extra="sklearn", purpose="Comparing, testing or learning structures")

from structent.studies.compare import compare  # noqa: E402  after the advice
from structent.studies.comparison import Comparison  # noqa: E402
from structent.studies.learn import (  # noqa: E402
    LearnedStructure,
    StructureLearner,
    learn_structure,
    out_of_fold_confusion,
)
from structent.studies.significance import PartitionGain, StructureTest  # noqa: E402
from structent.studies.test import partition_gains, structure_test  # noqa: E402

__all__ = [
    "Comparison",
    "LearnedStructure",
    "PartitionGain",
    "StructureLearner",
    "StructureTest",
    "compare",
    "learn_structure",
    "out_of_fold_confusion",
    "partition_gains",
    "structure_test",
]
