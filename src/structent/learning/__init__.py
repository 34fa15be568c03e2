"""Learn the structure of the classes from what models confuse on rows they have not seen."""

from structent._optional import load_optional

load_optional("sklearn", extra="sklearn", purpose="Learning a structure")

from structent.learning.choice import learn_structure  # noqa: E402  after the advice
from structent.learning.learner import StructureLearner  # noqa: E402
from structent.learning.levels import LearnedStructure  # noqa: E402
from structent.learning.rows import out_of_fold_confusion  # noqa: E402

__all__ = ["LearnedStructure", "StructureLearner", "learn_structure", "out_of_fold_confusion"]
