"""Structures drawn as matrices."""

import numpy as np

from structent import Partition, RandomPartition
from tests.plots.drawn import drawn

CROSSED = RandomPartition([Partition(range(4), [0, 1, 0, 1]), Partition(range(4), [0, 0, 1, 1])])


def test_any_other_structure_is_the_weight_that_keeps_classes_together():
    image = drawn(CROSSED).get_images()[0]
    expected = [
        [1.0, 0.5, 0.5, 0.0],
        [0.5, 1.0, 0.0, 0.5],
        [0.5, 0.0, 1.0, 0.5],
        [0.0, 0.5, 0.5, 1.0],
    ]
    np.testing.assert_array_equal(image.get_array(), expected)
