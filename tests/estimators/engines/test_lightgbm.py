"""Boosters of LightGBM in files: a check, and not LightGBM, refuses what is wrong with them."""

import re

import numpy as np
import pandas as pd
import pytest

from structent import StructentError, StructuredBoostingClassifier
from structent.estimators.engines.lightgbm import checked_text, from_bytes
from tests.estimators.problems import LIGHTGBM, PLANTS, planted_problem, rows_of

SETTINGS = {"max_depth": 3, "n_jobs": 1, "random_state": 0, **LIGHTGBM}


@pytest.fixture(scope="module")
def text():
    """The text of a booster with a column of categories, whose first tree splits by them."""
    features, labels = rows_of(PLANTS.classes, n=120, n_features=3)
    table = pd.DataFrame(features, columns=["a", "b", "c"])
    table["c"] = np.where(np.arange(120) % 7, labels, labels[::-1])  # what tells most
    model = StructuredBoostingClassifier(PLANTS, n_estimators=4, **SETTINGS).fit(table, labels)
    text = model._fitted.model.to_bytes().decode()
    assert "cat_threshold" in tree_of(text)
    return text


def tree_of(text):
    return text[: text.index("\nTree=1")]


def test_a_booster_is_written_again_tree_by_tree(text):
    again = checked_text(text.encode(), 3, 3)
    trees = slice(text.index("Tree=0"), text.index("end of trees"))
    assert again[again.index("Tree=0") : again.index("end of trees")] == text[trees]
    assert checked_text(again.encode(), 3, 3) == again


@pytest.mark.parametrize(
    "settings", [{"max_depth": 1}, {"max_depth": 30}, {"min_child_weight": 1e9}]
)
def test_boosters_of_any_size_predict_the_same_again(settings):
    structure, features, labels = planted_problem(400)
    given = {**SETTINGS, **settings}
    model = StructuredBoostingClassifier(structure, n_estimators=3, **given).fit(features, labels)
    booster = model._fitted.model
    again = from_bytes(booster.to_bytes(), booster.start, (None,) * 20)
    rows = features.astype(np.float32)
    np.testing.assert_array_equal(again.margins(rows, 1), booster.margins(rows, 1))
    np.testing.assert_array_equal(again.gains(20), booster.gains(20))
    assert again.n_rounds == booster.n_rounds


def with_number(text, field, place, value):
    """Return the text with another number in a field of the first tree."""
    line = re.search(rf"^{field}=(.*)$", tree_of(text), re.MULTILINE)
    numbers = line[1].split(" ")
    numbers[place] = str(value)
    return text[: line.start()] + f"{field}={' '.join(numbers)}" + text[line.end() :]


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [
        ("num_leaves", 0, 10**9),
        ("num_leaves", 0, 0),
        ("num_leaves", 0, -1),
        ("num_leaves", 0, 1),
        ("num_leaves", 0, "9" * 5000),
        ("num_cat", 0, 10**6),
        ("num_cat", 0, -1),
        ("num_cat", 0, 0),
        ("split_feature", 0, 3),
        ("split_feature", 0, -1),
        ("split_feature", 0, 0.5),
        ("left_child", 0, 10**6),
        ("left_child", 0, -(10**6)),
        ("left_child", 0, 0),
        ("left_child", 1, 0),
        ("right_child", -1, -1),
        ("right_child", 0, 2**31),
        ("decision_type", 0, 12),
        ("decision_type", 0, -1),
        ("threshold", 0, "nan"),
        ("threshold", 0, "1e999"),
        ("threshold", 0, "0x10"),
        ("leaf_value", 0, "inf"),
        ("leaf_value", 0, "1_0"),
        ("leaf_value", 0, "\u0661"),
        ("leaf_value", 0, "1 2"),
        ("leaf_value", 0, ""),
        ("leaf_count", 0, "1 2"),
        ("leaf_count", 0, "0.5"),
        ("internal_count", 0, "1e10"),
        ("internal_value", 0, "1 2"),
        ("split_gain", 0, "1 2"),
        ("cat_boundaries", 0, 1),
        ("cat_boundaries", -1, 0),
        ("cat_boundaries", -1, 10**6),
        ("cat_boundaries", -1, -1),
        ("cat_threshold", -1, 2**32),
        ("cat_threshold", -1, -1),
        ("cat_threshold", -1, "1 1"),
        ("is_linear", 0, 1),
        ("shrinkage", 0, "text"),
    ],
)
def test_indices_and_counts_that_lead_out_of_arrays_are_refused(text, field, place, value):
    with pytest.raises(StructentError, match="the trees in the file are damaged: ") as caught:
        checked_text(with_number(text, field, place, value).encode(), 3, 3)
    assert len(str(caught.value)) < 300


def test_a_set_of_categories_that_is_not_there_is_refused(text):
    kinds = re.search(r"^decision_type=(.*)$", tree_of(text), re.MULTILINE)[1].split(" ")
    place = next(i for i, kind in enumerate(kinds) if int(kind) & 1)
    for number in (10**6, -1, 0.5):
        with pytest.raises(StructentError, match="damaged"):
            checked_text(with_number(text, "threshold", place, number).encode(), 3, 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("num_class=3", "num_class=1000000"),
        ("num_tree_per_iteration=3", "num_tree_per_iteration=0"),
        ("max_feature_idx=2", "max_feature_idx=1000000"),
        ("label_index=0", "label_index=7"),
        ("version=v4", "version=v9"),
        ("label_index=0", "label_index=0\naverage_output"),
        ("label_index=0", "label_index=0\nobjective=binary"),
        ("label_index=0", "label_index=0\nlabel_index=0"),
        ("Tree=1", "Tree=2"),
        ("Tree=1", "Three=1"),
        ("Tree=1\n", "Tree=1\nnum_leaves=2\n"),
        ("Tree=1\n", "Tree=1\n\n"),
        ("Tree=1\n", "Tree=1\nnew=" + "0 " * 10**6 + "0\n"),
        ("Tree=1\n", "Tree=1\r\n"),
        ("Tree=1\n", "Tree=1\nno equals sign\n"),
        ("Tree=1\n", "Tree=1\n" + "".join(f"{c}=1\n" for c in "abcdefg")),
        ("left_child=", "left_kid="),
        ("is_linear=0\n", ""),
        ("end of trees", "end of tree"),
        ("tree\n", "forest\n"),
        ("split_gain=", "split_gain= "),
    ],
)
def test_text_that_is_no_booster_of_ours_is_refused(text, old, new):
    assert old in text
    with pytest.raises(StructentError, match="the trees in the file are damaged: "):
        checked_text(text.replace(old, new).encode(), 3, 3)


@pytest.mark.parametrize("content", [b"", b"tree", b"\xff\xfe", b"end of trees", b"\nTree=0" * 3])
def test_what_is_no_booster_is_refused(content):
    with pytest.raises(StructentError, match="LightGBM's booster is not what it should be"):
        checked_text(content, 3, 3)


def test_a_booster_of_other_columns_or_classes_is_refused(text):
    for n_classes, n_features in ((2, 3), (4, 3), (3, 2), (3, 4)):
        with pytest.raises(StructentError, match="damaged"):
            checked_text(text.encode(), n_classes, n_features)


def test_sizes_that_are_wrong_are_not_believed(text):
    forged = re.sub("tree_sizes=.*", "tree_sizes=99999999 -5 7", text)
    assert checked_text(forged.encode(), 3, 3) == checked_text(text.encode(), 3, 3)


def test_a_tree_that_is_too_deep_is_refused(text):
    def chain(n_leaves):
        n_splits = n_leaves - 1
        left = " ".join(map(str, [*range(1, n_splits), -n_leaves]))
        right = " ".join(str(-1 - n) for n in range(n_splits))
        numbers = {
            "split_feature": 0, "split_gain": 1, "threshold": 1, "decision_type": 2,
            "internal_value": 0, "internal_weight": 1, "internal_count": 1,
        }  # fmt: skip
        lines = [f"{name}={' '.join([str(n)] * n_splits)}" for name, n in numbers.items()]
        of_leaves = ("leaf_value", "leaf_weight", "leaf_count")
        lines += [f"{name}={' '.join(['0'] * n_leaves)}" for name in of_leaves]
        children = [f"left_child={left}", f"right_child={right}"]
        counts = ["Tree=0", f"num_leaves={n_leaves}", "num_cat=0"]
        return "\n".join([*counts, *lines, *children, "is_linear=0", "shrinkage=1"])

    first, second = text.index("Tree=0"), text.index("\nTree=1")
    for n_leaves, is_right in ((31, True), (32, False)):
        forged = (text[:first] + chain(n_leaves) + "\n\n" + text[second:]).encode()
        if is_right:
            checked_text(forged, 3, 3)
        else:
            with pytest.raises(StructentError, match="a tree is deeper than 30"):
                checked_text(forged, 3, 3)


@pytest.mark.parametrize(
    "field",
    [
        "num_leaves", "num_cat", "split_feature", "split_gain", "threshold", "decision_type",
        "left_child", "right_child", "leaf_value", "leaf_weight", "leaf_count", "internal_value",
        "internal_weight", "internal_count", "cat_boundaries", "cat_threshold", "is_linear",
        "shrinkage",
    ],
)  # fmt: skip
def test_a_field_that_is_missing_is_refused(text, field):
    """LightGBM would end the process."""
    line = re.search(rf"^{field}=.*\n", tree_of(text), re.MULTILINE)
    forged = text[: line.start()] + text[line.end() :]
    with pytest.raises(StructentError, match="LightGBM's booster is not what it should be"):
        checked_text(forged.encode(), 3, 3)
