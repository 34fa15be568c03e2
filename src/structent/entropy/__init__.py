"""The information theory of structured random variables: the paper's section 3."""

from structent.entropy.from_labels import structured_mutual_information_from_labels
from structent.entropy.maximum import maximum_entropy_distribution
from structent.entropy.quantities import (
    conditional_structured_entropy,
    joint_structured_entropy,
    structured_cross_entropy,
    structured_entropy,
    structured_mutual_information,
    structured_relative_entropy,
)

__all__ = [
    "conditional_structured_entropy",
    "joint_structured_entropy",
    "maximum_entropy_distribution",
    "structured_cross_entropy",
    "structured_entropy",
    "structured_mutual_information",
    "structured_mutual_information_from_labels",
    "structured_relative_entropy",
]
