"""Ordinal structures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructureError, ordinal


@given(st.integers(2, 20), st.floats(0.0, 1.0))
def test_there_is_one_cut_between_any_two_neighbours(n_classes, singleton_weight):
    structure = ordinal(range(n_classes), singleton_weight=singleton_weight)
    cuts = structure.levels["cut"]
    assert [cut.blocks for cut in cuts] == [
        (tuple(range(c + 1)), tuple(range(c + 1, n_classes))) for c in range(n_classes - 1)
    ]
    np.testing.assert_allclose(structure.weights[:-1], (1 - singleton_weight) / (n_classes - 1))
    np.testing.assert_allclose(structure.singleton_weight, singleton_weight if n_classes > 2 else 1)


def test_an_order_of_one_class_is_refused():
    with pytest.raises(StructureError, match="at least two classes, got \\('a',\\)"):
        ordinal(["a"])
