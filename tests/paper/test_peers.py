"""Other packages get the same rows and classes, and give probabilities in the order of classes."""

import numpy as np
import pytest

from paper import peers
from paper.peers import Tried, best_penalty, best_tried
from paper.ways import PENALTIES, best_step
from paper.weather import Draw, Examples
from structent.errors import StructentError
from structent.structure import (
    LabelGraph,
    SpanningTreePartitions,
    circular,
    hierarchy,
    ordinal,
)

ORDER = ordinal(["low", "mid", "high"])  # not in the order of the alphabet
TREE = hierarchy({"d": ("x",), "a": ("y",), "c": ("x",), "b": ("y",), "e": ("z",)})

DEEP_TREE = hierarchy(
    {"d": ("x", "p", "u"), "a": ("x", "p", "v"), "c": ("x", "q", "w"), "b": ("y", "r", "s"),
     "f": ("y", "r", "t"), "e": ("y", "r", "t")}
)  # fmt: skip


def drawn(classes, noise=0.2):
    """Return rows that lie near the place of their class."""
    names = np.array(classes)

    def part(seed):
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(len(names)), 30)
        features = np.column_stack([codes, np.eye(len(names))[codes]])
        return Examples(features + noise * rng.normal(size=features.shape), names[codes])

    return Draw(part(0), part(1), part(2))


class Given:
    """A model that gives all rows the same probabilities."""

    def __init__(self, *proba):
        self.classes_ = np.array(["a", "b"])
        self._proba = proba

    def predict_proba(self, features):
        return np.tile(self._proba, (len(features), 1))


ROWS = Examples(np.zeros((4, 1)), np.array(["a", "a", "a", "b"]))


def test_the_fit_of_least_validation_loss_is_chosen():
    fits = [([p], lambda p=p: Given(p, 1 - p)) for p in (0.5, 0.75, 0.9)]
    found = best_tried(fits, ROWS)
    assert found.setting == [0.75]  # the share of a
    assert found.loss == pytest.approx(-(3 * np.log(0.75) + np.log(0.25)) / 4)
    assert found.seconds >= 0


def test_the_penalty_is_searched_from_strong_to_weak_until_two_are_worse():
    tried = []

    def fit(penalty):
        tried.append(penalty)
        share = 0.75 - 0.04 * abs(np.log10(penalty))  # best at 1
        return Given(share, 1 - share)

    assert best_penalty(fit, ROWS).setting == [1.0]
    assert tried == [each for each in PENALTIES if each < 20]


@pytest.mark.parametrize(
    ("first", "expected"),
    [(2, [2, 3, 4, 5, 6]), (4, [4, 5, 6, 3]), (6, [6, 7, 8, 5, 4, 3])],
)
def test_stronger_penalties_are_tried_only_if_the_first_one_is_the_best(first, expected):
    tried = []

    def at(step):
        tried.append(step)
        return Tried(abs(step - 4), None, [], 0.0)

    assert best_step(at, first)[0] == 4
    assert tried == expected


@pytest.mark.requires("mord")
def test_mord_gives_probabilities_in_the_order_of_the_alphabet():
    rows = drawn(ORDER.classes)
    found = peers.mord(rows, ORDER, 0)
    assert found.model.classes_.tolist() == ["high", "low", "mid"]
    assert_right(found.model, rows.test)


@pytest.mark.requires("hiclass")
def test_hiclass_gives_probabilities_in_the_order_of_the_alphabet():
    rows = drawn(TREE.classes)
    found = peers.hiclass(rows, TREE, 0)
    assert found.model.classes_.tolist() == ["a", "b", "c", "d", "e"]
    assert_right(found.model, rows.test)


@pytest.mark.requires("hiclass")
def test_probabilities_of_hiclass_do_not_depend_on_the_other_rows_of_the_batch():
    rows = drawn(DEEP_TREE.classes)
    model = peers.hiclass(rows, DEEP_TREE, 0).model
    assert_right(model, rows.test)
    one_by_one = [model.predict_proba(row[None])[0] for row in rows.test.features[:20]]
    np.testing.assert_allclose(model.predict_proba(rows.test.features[:20]), one_by_one)


@pytest.mark.requires("structureboost")
def test_structureboost_gives_probabilities_in_the_order_of_the_alphabet(monkeypatch):
    monkeypatch.setattr(peers, "DEPTHS", (2,))
    monkeypatch.setattr(peers, "_MAX_TREES", 60)
    rows = drawn(ORDER.classes)
    assert_right(peers.structureboost(rows, ORDER, 0).model, rows.test)


def assert_right(model, rows):
    proba = model.predict_proba(rows.features)
    assert proba.sum(axis=1) == pytest.approx(np.ones(len(proba)))
    assert np.mean(model.classes_[proba.argmax(axis=1)] == rows.labels) > 0.9


def test_a_class_without_probability_counts_as_one_in_a_million():
    assert peers._with_floor(np.array([[1.0, 0.0]]))[0] == pytest.approx([1 - 1e-6, 1e-6])


def test_paths_go_from_the_coarsest_block_to_the_class():
    paths = peers._paths(TREE)
    assert {label: path[-1] for label, path in paths.items()} == {each: each for each in "abcde"}
    assert paths["d"][:-1] == paths["c"][:-1] != paths["a"][:-1] == paths["b"][:-1]
    with pytest.raises(StructentError, match="hiclass needs a hierarchy"):
        peers._paths(ORDER)


def test_structureboost_gets_the_coarse_partitions_with_equal_weights():
    found = peers._target_structure(None, circular(range(4), width=2), 0.4)
    assert found["partition_list"] == [[[0, 1], [2, 3]], [[0, 3], [1, 2]]]
    assert found["partition_weight_vec"] == pytest.approx([0.3, 0.3])
    assert found["singleton_weight"] == 0.4


def test_structureboost_gets_the_graph_by_number():
    class Package:
        class graphs:  # noqa: N801  as the package calls it
            graph_undirected = staticmethod(lambda edges: edges)

    sampler = SpanningTreePartitions(LabelGraph([("S", "M"), ("M", "L")]), 2, 0.5)
    found = peers._target_structure(Package, sampler, 0.5)
    assert found["target_graph"] == [[0, 1], [1, 2]]
    assert found["random_partition_size"] == 2


def test_a_package_that_is_missing_is_told(monkeypatch):
    def missing(name):
        raise ImportError(f"no {name}")

    monkeypatch.setattr(peers, "import_module", missing)
    with pytest.raises(StructentError, match=r"needs mord, .*\(no mord\); `make choices`"):
        peers.mord(drawn(ORDER.classes), ORDER, 0)
