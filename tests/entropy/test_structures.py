"""What entropy takes for a structure: one that stays the same."""

import numpy as np
import pytest

from structent import (
    LabelGraph,
    SpanningTreePartitions,
    StructureError,
    joint_structured_entropy,
    maximum_entropy_distribution,
    structured_cross_entropy,
    structured_entropy,
    structured_mutual_information_from_labels,
    structured_relative_entropy,
)

SAMPLER = SpanningTreePartitions(LabelGraph([("a", "b")]), 2, 0.5)
HALVES = np.array([0.5, 0.5])
ASKED = {
    "entropy": lambda s: structured_entropy(HALVES, s),
    "cross-entropy": lambda s: structured_cross_entropy(HALVES, HALVES, s),
    "relative entropy": lambda s: structured_relative_entropy(HALVES, HALVES, s),
    "joint entropy": lambda s: joint_structured_entropy(np.eye(2) / 2, None, s),
    "information": lambda s: structured_mutual_information_from_labels([1, 2], ["a", "b"], s),
    "largest entropy": maximum_entropy_distribution,
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_a_sampler_is_refused_with_the_way_out(asked):
    with pytest.raises(StructureError, match=r"must be a RandomPartition, got .* draws one of"):
        asked(SAMPLER)
