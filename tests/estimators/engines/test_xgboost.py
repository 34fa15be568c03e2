"""What XGBoost needs: interrupts that come when it is done, and boosters that are checked."""

import signal

import numpy as np
import pandas as pd
import pytest

from structent import StructentError, StructuredBoostingClassifier
from structent.estimators.engines import xgboost as engine
from structent.estimators.engines.ubjson import from_ubjson
from structent.estimators.engines.xgboost import check_booster
from tests.estimators.engines.test_ubjson import to_ubjson
from tests.estimators.problems import PER_CLASS, PLANTS, XGBOOST, planted_problem, rows_of

# Interrupts


@pytest.mark.requires("xgboost")
def test_one_that_falls_into_what_xgboost_asks_ends_the_fit(monkeypatch):
    from xgboost.data import SingleBatchInternalIter

    give_rows = SingleBatchInternalIter.next
    asked = []

    def interrupted(self, *arguments):
        asked.append("for rows")
        signal.raise_signal(signal.SIGINT)
        return give_rows(self, *arguments)

    monkeypatch.setattr(SingleBatchInternalIter, "next", interrupted)
    model = StructuredBoostingClassifier(engine="xgboost")
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.arange(8.0)[:, None], np.arange(8) % 2)
    assert len(asked) > 1  # it went on to the end


# Boosters in files: a check, and not XGBoost, refuses what is wrong with them

N_CATEGORIES = (None, None, 9)


@pytest.fixture(scope="module")
def boosters():
    """A booster with vector leaves, and one with a tree per class and a column of categories."""
    features, labels = rows_of(PLANTS.classes, n=120, n_features=3)
    table = pd.DataFrame(features, columns=["a", "b", "c"])
    table["c"] = [f"category {code}" for code in np.arange(120) % 9]
    settings = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "random_state": 0}
    models = (
        StructuredBoostingClassifier(PLANTS, **settings, **XGBOOST).fit(features, labels),
        StructuredBoostingClassifier(PLANTS, **settings, **PER_CLASS).fit(table, labels),
    )
    vector, per_class = (model._fitted.model.to_bytes() for model in models)
    return {"vector": (vector, (None,) * 3), "per_class": (per_class, N_CATEGORIES)}


@pytest.mark.parametrize("name", ["vector", "per_class"])
def test_our_reader_reads_every_byte_of_a_booster(boosters, name):
    content, n_categories = boosters[name]
    assert to_ubjson(from_ubjson(content)) == content
    check_booster(content, 3, n_categories)
    start = np.zeros(3)
    assert engine.from_bytes(content, start, n_categories).to_bytes() == content


@pytest.mark.parametrize("settings", [XGBOOST, PER_CLASS], ids=["vector", "per_class"])
@pytest.mark.parametrize(
    "size", [{"max_depth": 1}, {"max_depth": 30}, {"min_child_weight": 1e9, "n_estimators": 100}]
)
def test_boosters_of_any_size_pass(settings, size):
    structure, features, labels = planted_problem(400)
    settings = {"n_estimators": 3, "n_jobs": 1, "random_state": 0, **settings, **size}
    model = StructuredBoostingClassifier(structure, **settings).fit(features, labels)
    check_booster(model._fitted.model.to_bytes(), 12, (None,) * 20)


def test_a_booster_of_many_columns_of_categories_passes():
    table = pd.DataFrame({f"column {i}": list("ab" * 20) for i in range(1000)}, dtype="category")
    labels = np.arange(40) % 2
    model = StructuredBoostingClassifier(n_estimators=1, n_jobs=1, random_state=0, **PER_CLASS)
    check_booster(model.fit(table, labels)._fitted.model.to_bytes(), 2, (2,) * 1000)


def changed(booster, path, value):
    """Return a booster in which one value is another one; of an array, at one of its places."""
    content = from_ubjson(booster)
    *steps, last = ["learner", *path]
    inside = content
    for step in steps:
        if isinstance(inside[step], np.ndarray):
            inside[step] = inside[step].copy()
        inside = inside[step]
    inside[last] = value(inside[last]) if callable(value) else value
    return to_ubjson(content)


TREE = ("gradient_booster", "model", "trees", 1)
SHARED = [
    ((*TREE, "left_children", 0), 10**6),
    ((*TREE, "left_children", 0), -2),
    ((*TREE, "left_children", 0), 0),
    ((*TREE, "right_children", 0), 1),
    ((*TREE, "right_children", 0), 2**31 - 1),
    ((*TREE, "left_children", 1), 0),
    ((*TREE, "left_children", -1), 1),
    ((*TREE, "right_children", -1), 10**6),
    ((*TREE, "parents", 1), 5),
    ((*TREE, "split_indices", 0), 3),
    ((*TREE, "split_indices", 0), -1),
    ((*TREE, "split_type", 0), 2),
    ((*TREE, "default_left", 0), 2),
    *(((*TREE, name), lambda array: array[:-1]) for name in (
        "left_children", "right_children", "parents", "split_indices", "split_conditions",
        "split_type", "default_left", "loss_changes", "sum_hessian", "base_weights")),
    *(((*TREE, name), lambda array: array.tolist()) for name in (
        "left_children", "split_conditions", "base_weights")),
    ((*TREE, "left_children"), lambda array: array.astype(">i8")),
    ((*TREE, "split_conditions"), lambda array: array.astype(">f8")),
    ((*TREE, "left_children"), "text"),
    ((*TREE, "tree_param", "num_nodes"), "1"),
    ((*TREE, "tree_param", "num_nodes"), "10000000"),
    ((*TREE, "tree_param", "num_feature"), "1"),
    ((*TREE, "tree_param", "num_deleted"), "1"),
    ((*TREE, "tree_param", "size_leaf_vector"), "2"),
    ((*TREE, "id"), 0),
    (TREE, {}),
    (TREE, lambda tree: {**tree, "left_children": np.array([], ">i4")}),
    (("gradient_booster", "model", "trees"), lambda trees: trees[:-1]),
    (("gradient_booster", "model", "trees"), []),
    (("gradient_booster", "model", "trees"), {}),
    (("gradient_booster", "model", "tree_info", 1), 7),
    (("gradient_booster", "model", "tree_info"), lambda info: info[1:]),
    (("gradient_booster", "model", "iteration_indptr", 1), 10**6),
    (("gradient_booster", "model", "iteration_indptr"), [0]),
    (("gradient_booster", "model", "gbtree_model_param", "num_trees"), "1"),
    (("gradient_booster", "model", "gbtree_model_param", "num_parallel_tree"), "9"),
    (("gradient_booster", "model", "cats", "enc"), [{}]),
    (("gradient_booster", "name"), "dart"),
    (("learner_model_param", "num_class"), "1000000"),
    (("learner_model_param", "num_feature"), "4"),
    (("learner_model_param", "num_target"), "2"),
    (("learner_model_param", "base_score"), "[1]"),
    (("learner_model_param", "base_score"), "[1,2,NaN]"),
    (("learner_model_param", "base_score"), "[1,2,1" + "0" * 400 + "]"),
    (("learner_model_param", "base_score"), "[" * 10_000),
    (("objective", "name"), "reg:squarederror"),
    (("objective", "softmax_multiclass_param", "num_class"), "2"),
    (("feature_names",), ["a", "b", "c"]),
    (("feature_types",), ["q"]),
    (("feature_types",), np.array([], ">i4")),
    (("attributes",), {"best_iteration": 3}),
]  # fmt: skip


@pytest.mark.parametrize("name", ["vector", "per_class"])
@pytest.mark.parametrize(("path", "value"), SHARED)
def test_indices_and_counts_that_lead_out_of_arrays_are_refused(boosters, name, path, value):
    content, n_categories = boosters[name]
    forged = changed(content, path, value)
    with pytest.raises(StructentError, match="the trees in the file are damaged: ") as caught:
        check_booster(forged, 3, n_categories)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*TREE, "leaf_weights"), lambda array: array[:-3]),
        ((*TREE, "leaf_weights", 0), np.nan),
        ((*TREE, "right_children", -1), -1),
        ((*TREE, "right_children", -1), 0),
    ],
)
def test_vector_leaves_without_values_are_refused(boosters, path, value):
    content, n_categories = boosters["vector"]
    with pytest.raises(StructentError, match="damaged"):
        check_booster(changed(content, path, value), 3, n_categories)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("split_conditions", -1), np.inf),
        (("right_children", -1), 0),
        (("categories", 0), 9),
        (("categories", 0), -1),
        (("categories", 0), 2**31 - 1),
        (("categories",), lambda array: array[:-1]),
        (("categories_nodes", 0), 10**6),
        (("categories_nodes",), lambda array: array[:-1]),
        (("categories_segments", -1), 2**62),
        (("categories_segments", -1), -1),
        (("categories_sizes", -1), 2**62),
        (("categories_sizes", -1), 0),
        (("categories_sizes",), lambda array: array[:-1]),
        (("split_type",), lambda array: array * 0),
    ],
)
def test_sets_of_categories_that_lead_out_of_arrays_are_refused(boosters, path, value):
    content, n_categories = boosters["per_class"]
    trees = from_ubjson(content)["learner"]["gradient_booster"]["model"]["trees"]
    number = next(i for i, tree in enumerate(trees) if len(tree["categories_nodes"]))
    forged = changed(content, (*TREE[:-1], number, *path), value)
    with pytest.raises(StructentError, match="damaged"):
        check_booster(forged, 3, n_categories)


@pytest.mark.parametrize("name", ["vector", "per_class"])
def test_a_booster_of_other_columns_or_classes_is_refused(boosters, name):
    content, n_categories = boosters[name]
    for n_classes, columns in (
        (2, n_categories),
        (4, n_categories),
        (3, n_categories[1:]),
        (3, (*n_categories, None)),
        (3, (5, 5, 5)),
    ):
        with pytest.raises(StructentError, match="damaged"):
            check_booster(content, n_classes, columns)


def test_a_tree_that_is_too_deep_is_refused(boosters):
    content, n_categories = boosters["per_class"]
    n_nodes = 2 * 31 + 1
    left = np.array([n + 1 if n % 2 == 0 and n < n_nodes - 1 else -1 for n in range(n_nodes)])
    splits = np.flatnonzero(left > 0)
    parents = np.full(n_nodes, 2**31 - 1)
    parents[left[splits]] = parents[left[splits] + 1] = splits
    right = np.where(left > 0, left + 1, -1)

    def chain(tree):
        zeros = {name: np.zeros(n_nodes, tree[name].dtype) for name in engine._OF_NODES}
        nodes = {"left_children": left, "right_children": right, "parents": parents}
        of_sets = {name: tree[name][:0] for name in tree if name.startswith("categories")}
        return {
            **tree, **zeros, **of_sets, "base_weights": np.zeros(n_nodes, ">f4"),
            **{name: array.astype(">i4") for name, array in nodes.items()},
            "tree_param": {**tree["tree_param"], "num_nodes": str(n_nodes)},
        }  # fmt: skip

    with pytest.raises(StructentError, match="a tree is deeper than 30"):
        check_booster(changed(content, TREE, chain), 3, n_categories)


def test_what_a_newer_xgboost_may_add_is_passed_over(boosters):
    content, n_categories = boosters["vector"]
    for path in ((), TREE, ("learner_model_param",)):
        check_booster(changed(content, (*path, "new"), "thing"), 3, n_categories)


@pytest.mark.parametrize("content", [b"", b"{}", b"{not a booster", b"\x80\x04cos\nsystem\n"])
def test_what_is_no_booster_is_refused(content):
    with pytest.raises(StructentError, match="XGBoost's booster is not what it should be"):
        check_booster(content, 3, N_CATEGORIES)
