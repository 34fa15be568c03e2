"""The classes of a classifier, sorted for users, in the structure's order for the model."""

import numpy as np
import pytest

from structent import LabelError, trivial
from structent.estimators.classes import Classes


def test_users_see_sorted_classes_whatever_the_order_of_the_structure():
    classes = Classes.of(trivial(["feb", "jan", "apr"]), np.array(["jan", "feb"]))
    assert classes.values.tolist() == ["apr", "feb", "jan"]
    assert classes.encode(np.array(["jan", "apr"])).tolist() == [1, 2]
    assert classes.sorted(np.array([[0.1, 0.2, 0.7]])).tolist() == [[0.7, 0.1, 0.2]]


def test_without_structure_the_classes_are_those_of_the_labels_floats_too():
    classes = Classes.of(None, np.array([2.5, 1.0, 2.5]))
    assert classes.values.tolist() == [1.0, 2.5]
    assert classes.encode(np.array([2.5])).tolist() == [1]


def test_pairs_and_mixtures_keep_the_order_they_have():
    pairs = Classes.of_structure(trivial([("b", 1), ("a", 2)]))
    assert pairs.values.tolist() == [("a", 2), ("b", 1)]
    mixed = Classes.of_structure(trivial(["b", 1]))
    assert mixed.values.tolist() == ["b", 1]


def test_a_label_of_another_type_is_no_class():
    with pytest.raises(LabelError, match=r"'1' is not a class .* 1 of type int, not str"):
        Classes.of_structure(trivial([1, 2])).encode(np.array(["1"]))
