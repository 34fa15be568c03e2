"""The test of a structure: by hand on tiny orbits, and on rows that carry a structure."""

import json
import threading

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structent import (
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
    hierarchy,
    mix,
    ordinal,
    trivial,
)
from structent.errors import StructentError
from structent.studies import compare, partition_gains, structure_test
from structent.studies.orbit import identity

CIRCLE = circular(range(8), width=2, singleton_weight=0.2)
LINEAR = StructuredLogisticRegression(tol=1e-3)


@pytest.fixture(scope="module")
def rows():
    """Features and labels of eight classes on a circle."""
    rng = np.random.default_rng(0)
    labels = np.resize(np.arange(8), 96)
    angle = 2 * np.pi * labels / 8 + rng.normal(scale=0.6, size=96)
    return np.column_stack([np.cos(angle), np.sin(angle)]), labels


class Losses:
    """A made-up loss in five folds for each structure, which remembers what it was asked."""

    def __init__(self, first, *others, noise=0.0):
        self.values, self.noise = iter((first, 9.0, *others)), noise  # 9 without structure
        self.known, self.asked, self.lock = {}, [], threading.Lock()

    def __call__(self, structure):
        with self.lock:
            self.asked.append(structure)
            loss = self.known.setdefault(identity(structure), next(self.values, 5.0))
        return loss + self.noise * np.arange(-2, 3)


def ask(losses, structure=CIRCLE, **options):
    options = {"random_state": 0, "n_jobs": 1, **options}
    return structure_test(None, None, structure, estimator=losses, **options)


# By hand


def test_p_is_exact_on_an_orbit_that_is_tried_in_full():
    pairs = hierarchy({i: (i // 2,) for i in range(6)})  # 14 other ways to pair six classes
    losses = Losses(2.0, *[1.0, 1.5, 2.0], *[3.0] * 11)
    found = ask(losses, pairs, stop_after=None)
    assert found.orbit_size == 15
    assert found.p_value == (1 + 3) / (1 + 14)  # two are better, one ties
    assert found.effect == pytest.approx((1.0 + 1.5 + 2.0 + 33.0) / 14 - 2.0)
    assert "all were tried: p is exact" in found.notes[0]
    assert len(losses.asked) == 2 + 14


def test_an_orbit_too_small_for_the_level_is_said():
    found = ask(Losses(1.0, 2.0, 3.0), ordinal(["S", "M", "L"]))
    assert found.p_value == 1 / 3
    assert found.finding == "cannot tell"
    assert found.sentence == (
        "Whether the structure helps cannot be told at the level 0.05: with 2 scrambled copies p "
        "can be no lower than 0.333."
    )
    assert found.notes[-1] == (
        "The orbit of the structure is too small for the level 0.05, which takes 19 copies; "
        "compare it with no structure instead."
    )


def test_too_few_permutations_for_the_level_are_said():
    found = ask(Losses(1.0), n_permutations=9)
    assert found.finding == "cannot tell"
    assert found.notes == ("The level 0.05 takes at least 19 permutations.",)


def test_just_enough_permutations_reach_the_level():
    found = ask(Losses(1.0), n_permutations=19)
    assert (found.p_value, found.finding) == (0.05, "helps")
    assert found.sentence.endswith(
        "lower by 4.0000 (4.0000 to 4.0000), p = 0.05; the least that 19 scrambled copies allow is "
        "0.05."
    )


def test_all_ties_count_against():
    found = ask(lambda _: [2.0] * 5, n_permutations=9, stop_after=None)
    assert found.p_value == 1.0
    assert found.effect == 0.0


def test_it_stops_at_the_copy_that_makes_the_answer_clear():
    losses = Losses(2.0, *[3.0, 1.0, 3.0, 1.0, 1.0, 1.0])
    found = ask(losses, stop_after=2)
    assert (found.p_value, found.p.n_drawn, len(found.null)) == (2 / 4, 4, 4)
    assert found.finding == "no evidence"
    assert found.notes == (
        (
            "The test stopped after 4 scrambled copies, because 2 of them were as good as the "
            "structure: p = 2/4."
        ),
    )
    assert len(losses.asked) == 2 + 4


def test_what_other_threads_did_beyond_the_stop_does_not_count():
    """Four at a time are trained, and yet the answer is that of one at a time."""
    values = {}

    def losses(structure):
        seed = int(identity(structure)[:8], 16)
        return values.setdefault(identity(structure), np.random.default_rng(seed).normal(size=5))

    alone, together = (ask(losses, stop_after=3, n_jobs=n_jobs) for n_jobs in (1, 4))
    assert alone.p == together.p
    np.testing.assert_array_equal(alone.null_losses, together.null_losses)


def test_the_direct_question_is_the_corrected_t_test():
    per_fold = np.array([0.3, 0.1, 0.2, 0.05, 0.25, 0.1, 0.2, 0.15, 0.3, 0.12])
    trivial_one = identity(trivial(CIRCLE.classes))

    def losses(structure):
        return per_fold + (0.05 + 0.3 * per_fold[::-1]) * (identity(structure) == trivial_one)

    found = ask(losses, n_permutations=3, n_folds=5)
    assert found.cross_validation == "5 folds x 2 repeats"
    difference = -(0.05 + 0.3 * per_fold[::-1])
    plain = ttest_1samp(difference, 0, alternative="less")
    factor = np.sqrt((1 / 10 + 1 / 4) / (1 / 10))  # Nadeau and Bengio: 1/10 becomes 1/10 + 1/4
    from scipy.stats import t

    assert found.against_none.mean == pytest.approx(difference.mean())
    assert found.p_value_against_none == pytest.approx(t.cdf(plain.statistic / factor, 9))


def test_one_loss_for_all_folds_has_no_interval():
    found = ask(lambda s: s.singleton_weight, n_permutations=3)
    assert found.effect_interval == (-np.inf, np.inf)
    assert found.cross_validation == "one loss for all folds"
    assert np.isnan(found.p_value_against_none)


# On rows


def test_a_structure_that_the_data_carry_helps_and_a_scrambled_one_does_not(rows):
    model = StructuredLogisticRegression(C=10.0, tol=1e-3, max_iter=1000)
    options = {"estimator": model, "n_permutations": 19, "n_folds": 3, "random_state": 0}
    true = structure_test(*rows, CIRCLE, **options)
    assert true.finding == "helps"
    assert true.loss < true.null.min()
    wrong = structure_test(*rows, CIRCLE.scramble(np.random.default_rng(1)), **options)
    assert wrong.finding == "no evidence"


def test_a_structure_that_beats_its_copies_but_not_none_is_not_said_to_help(rows):
    found = structure_test(
        *rows, CIRCLE, estimator=LINEAR, random_state=0, n_jobs=1, n_permutations=19, n_folds=3
    )
    assert found.p_value == 0.05
    assert found.loss > found.losses_without.mean()
    assert found.finding == "no better than none"
    assert found.sentence.startswith("The structure does not help: it beats its scrambled copies")
    assert found.to_dict()["finding"] == "no better than none"


@pytest.mark.parametrize("model", ["auto", "boosting"])
def test_without_an_estimator_the_losses_are_those_of_a_comparison(rows, model):
    asked = {"random_state": 3, "n_jobs": 1, "n_folds": 3, "model": model}
    found = structure_test(*rows, CIRCLE, n_permutations=1, **asked)
    compared = compare(*rows, CIRCLE, n_repeats=1, **asked)
    for losses, arm in ((found.losses, "structure"), (found.losses_without, "none")):
        np.testing.assert_allclose(losses, compared.scores[arm].by_level[:, -1, 0], rtol=1e-12)
    np.testing.assert_allclose(found.against_none.mean, compared.against_none.mean, atol=1e-12)


def test_a_seed_that_was_drawn_repeats_the_test(rows):
    asked = {"estimator": LINEAR, "n_jobs": 1, "n_permutations": 3, "n_folds": 3}
    first = structure_test(*rows, CIRCLE, **asked)
    again = structure_test(*rows, CIRCLE, random_state=first.seed, **asked)
    np.testing.assert_array_equal(first.null_losses, again.null_losses)
    other = structure_test(*rows, CIRCLE, **asked)
    assert other.seed != first.seed


def test_minus_one_means_all_processors(rows):
    asked = {"estimator": LINEAR, "random_state": 0, "n_permutations": 2, "n_folds": 3}
    first, second = (structure_test(*rows, CIRCLE, n_jobs=n, **asked) for n in (1, -1))
    np.testing.assert_array_equal(first.null_losses, second.null_losses)


def test_the_losses_are_those_of_a_loop_over_the_folds(rows):
    features, labels = rows
    groups = np.arange(96) % 3  # whole groups are the folds, whatever their order
    found = structure_test(
        features, labels, CIRCLE, estimator=LINEAR, groups=groups, random_state=0, n_jobs=1,
        n_folds=3, n_permutations=1,
    )  # fmt: skip
    expected = []
    for fold in range(3):
        model = StructuredLogisticRegression(CIRCLE, tol=1e-3)
        model.fit(features[groups != fold], labels[groups != fold])
        held_out = labels[groups == fold]
        proba = model.predict_proba(features[groups == fold])
        expected.append(log_loss(held_out, proba, labels=range(8)))
    np.testing.assert_allclose(sorted(found.losses), sorted(expected))


def test_a_pipeline_is_given_the_structure_at_its_step(rows):
    model = make_pipeline(StandardScaler(), LINEAR)
    asked = {"random_state": 0, "n_jobs": 1, "n_permutations": 2, "n_folds": 3}
    found = structure_test(*rows, CIRCLE, estimator=model, **asked)
    scaled = StandardScaler().fit_transform(rows[0])
    alone = structure_test(scaled, rows[1], CIRCLE, estimator=LINEAR, **asked)
    np.testing.assert_allclose(found.losses, alone.losses, atol=0.05)


def test_a_weight_of_the_singletons_holds_for_all_structures_but_none(rows):
    model = StructuredLogisticRegression(weights=0.9, tol=1e-3)
    asked = {"random_state": 0, "n_jobs": 1, "n_permutations": 2, "n_folds": 3}
    found = structure_test(*rows, CIRCLE, estimator=model, **asked)
    same = structure_test(*rows, CIRCLE.with_singleton_weight(0.9), estimator=LINEAR, **asked)
    np.testing.assert_allclose(found.null_losses, same.null_losses)
    np.testing.assert_allclose(found.losses_without, same.losses_without)


def test_the_graph_of_a_sampler_is_scrambled(rows):
    cycle = LabelGraph([(i, (i + 1) % 8) for i in range(8)])
    model = StructuredBoostingClassifier(n_estimators=3, early_stopping_rounds=None, n_jobs=1)
    found = structure_test(
        *rows, SpanningTreePartitions(cycle, 4, 0.3), estimator=model, random_state=0, n_jobs=1,
        n_permutations=3, n_folds=3,
    )  # fmt: skip
    assert found.null_losses.shape == (3, 3)
    assert found.orbit_size is None


def test_mixes_and_products_of_samplers_can_be_tested(rows):
    features, labels = rows
    model = StructuredBoostingClassifier(n_estimators=3, early_stopping_rounds=None, n_jobs=1)
    asked = {"estimator": model, "random_state": 0, "n_jobs": 1, "n_permutations": 3, "n_folds": 3}
    path = SpanningTreePartitions(LabelGraph([(i, i + 1) for i in range(3)]), 2, 0.3)
    cycle = SpanningTreePartitions(LabelGraph([(i, (i + 1) % 8) for i in range(8)]), 4, 0.3)
    pairs = [divmod(label, 2) for label in labels.tolist()]
    for structure, of_rows in (
        (mix([CIRCLE, cycle]), labels),
        (path.product(ordinal(range(2))), pairs),
    ):
        found = structure_test(features, of_rows, structure, **asked)
        assert len({*np.ravel(found.null_losses), *found.losses}) > 6  # other draws, other losses


def test_the_same_seed_gives_the_same_answer_whatever_n_jobs(rows):
    asked = {"n_permutations": 6, "n_folds": 3, "n_repeats": 2, "stop_after": 2, "random_state": 3}
    model = StructuredLogisticRegression(weights="auto", tol=1e-2, max_iter=300)  # draws folds
    wrong = CIRCLE.scramble(np.random.default_rng(1))
    first, second = (
        structure_test(*rows, wrong, estimator=model, n_jobs=n_jobs, **asked) for n_jobs in (1, 3)
    )
    assert first.p == second.p
    np.testing.assert_array_equal(first.null_losses, second.null_losses)
    assert len(first.losses) == 6


# Broken off


def test_what_was_broken_off_is_taken_up_where_it_was(rows, tmp_path):
    kept = tmp_path / "losses.jsonl"
    options = {
        "estimator": LINEAR, "random_state": 0, "n_jobs": 1, "n_permutations": 5, "n_folds": 3,
        "keep_in": kept,
    }  # fmt: skip

    def break_off(_what, done, _total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        structure_test(*rows, CIRCLE, progress=break_off, **options)
    assert len(kept.read_text().splitlines()) == 4  # the structure, none, and two copies
    with kept.open("a") as file:
        file.write('{"question": "half a li')
    told = []
    found = structure_test(*rows, CIRCLE, progress=lambda *step: told.append(step), **options)
    lines = kept.read_text().splitlines()
    assert len(lines) == 2 + 5
    assert all(len(json.loads(line)["losses"]) == 3 for line in lines)
    assert told[-1] == ("scrambled copies", 5, 5)
    again = structure_test(*rows, CIRCLE, **(options | {"keep_in": None}))
    assert (found.p, found.losses.tolist()) == (again.p, again.losses.tolist())
    np.testing.assert_array_equal(found.null_losses, again.null_losses)


def test_losses_of_other_questions_in_the_file_are_left_alone(rows, tmp_path):
    features, labels = rows
    kept = tmp_path / "losses.jsonl"
    options = {
        "random_state": 0, "n_jobs": 1, "n_permutations": 2, "n_folds": 3, "keep_in": kept
    }  # fmt: skip
    structure_test(features, labels, CIRCLE, estimator=LINEAR, **options)
    n_lines = [len(kept.read_text().splitlines())]
    other_model = StructuredLogisticRegression(tol=1e-3, C=0.5)
    for model, table in ((other_model, features), (LINEAR, features + 1), (LINEAR, features)):
        structure_test(table, labels, CIRCLE, estimator=model, **options)
        n_lines.append(len(kept.read_text().splitlines()))
    assert n_lines == [4, 8, 12, 12]


def test_a_file_that_holds_something_else_is_refused(rows, tmp_path):
    kept = tmp_path / "notes.jsonl"
    kept.write_text('{"run": 1}\n')
    with pytest.raises(StructentError, match=r"line 1 of .*must hold the losses of a structure"):
        structure_test(*rows, CIRCLE, estimator=LINEAR, random_state=0, keep_in=kept)
    with pytest.raises(StructentError, match="keep_in must be a file in a folder that exists"):
        structure_test(*rows, CIRCLE, random_state=0, keep_in=tmp_path / "no" / "losses.jsonl")
    with pytest.raises(StructentError, match="keep_in needs a random_state"):
        structure_test(*rows, CIRCLE, keep_in=tmp_path / "losses.jsonl")


# What is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"estimator": LogisticRegression()},
            "one parameter structure, .* got LogisticRegression with 0",
        ),
        ({"estimator": StructuredLogisticRegression}, r"write StructuredLogisticRegression\(\)"),
        (
            {"estimator": StructuredLogisticRegression(weights=[0.5, 0.2, 0.3])},
            r"structure\.reweight\(weights\)",
        ),
        ({"structure": trivial(range(8))}, "must be a scrambled copy that differs"),
        ({"structure": None}, "structure must be a RandomPartition or a sampler, got NoneType"),
        ({"structure": circular(range(7))}, "7 is not a class of the structure"),
        ({"n_permutations": 0}, "n_permutations must be between 1 and"),
        ({"stop_after": 0}, "stop_after must be between 1 and"),
        ({"level": 1.5}, "level must be a number between 0 and 1, got 1.5"),
        ({"level": "low"}, "level must be a number between 0 and 1, got 'low'"),
        ({"n_folds": 1}, "n_folds must be between 2 and 96"),
        ({"n_repeats": 0}, "n_repeats must be between 1 and"),
        ({"n_jobs": 0}, "n_jobs must be between 1 and"),
        ({"random_state": -1}, "random_state must be between 0 and"),
        ({"groups": [1, 2]}, "groups must have one entry for each of the 96 rows"),
        ({"groups": np.arange(96) % 4}, "n_folds must be between 2 and 4, the number of groups"),
        ({"X": None}, r"X must have one row for each of the 96 labels, got shape \(\)"),
        ({"progress": "yes"}, "progress must be True, False or a function, got 'yes'"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(rows, changed, message):
    given = {"estimator": LINEAR, "X": rows[0], "y": rows[1], "structure": CIRCLE}
    with pytest.raises(StructentError, match=message):
        structure_test(**(given | changed))


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (lambda _: [1.0, 2.0, 3.0], "one for each of the 5 folds of every repeat"),
        (lambda _: [np.inf] * 5, "losses must be finite"),
        (lambda _: None, "losses must be finite"),
        (
            lambda s: [1.0] * (5 if s is CIRCLE else 10),
            "the same number of losses for every structure",
        ),
        (lambda _: {}, "fit_and_score must return numbers"),
    ],
)
def test_a_function_must_return_a_loss_for_every_fold(losses, message):
    with pytest.raises(StructentError, match=message):
        ask(losses)


TREE = hierarchy(
    {i: (i // 4, i // 2) for i in range(8)}, level_names=["fours", "twos"], weights=[0.2, 0.3, 0.5]
)


def gains_of(losses, structure):
    return partition_gains(None, None, structure, estimator=losses, random_state=0, n_jobs=2)


def test_each_partition_and_each_level_of_several_is_left_out():
    asked = []
    gains_of(lambda s: asked.append(s) or [1.0] * 5, circular(range(6), width=3))
    without_one = [(1 - 0.3) / 3, (1 - 0.3) / 3, 0.3]
    weights = [sorted(structure.weights) for structure in asked[1:]]
    expected = sorted(np.array(without_one) / sum(without_one))
    for found in weights[:3]:
        np.testing.assert_allclose(found, expected)
    assert [list(found) for found in weights[3:]] == [[1.0]]  # nothing is left but the singletons


def test_the_difference_is_paired_over_the_folds_and_below_zero_where_it_helps():
    folds = np.array([0.0, 0.1, 0.2, 0.3, 0.4])

    def losses(structure):
        has_twos = any(partition.n_blocks == 4 for partition in structure.partitions)
        return folds + (0.0 if has_twos else 0.5 + 0.1 * folds)

    fours, twos = gains_of(losses, TREE)
    assert (fours.level, fours.weight) == ("fours", 0.2)
    np.testing.assert_allclose(fours.difference.per_split, 0.0)
    np.testing.assert_allclose(twos.difference.per_split, -0.5 - 0.1 * folds)
    assert twos.difference.is_lower
    assert twos.partition == TREE.partitions[1]


def test_where_nothing_of_weight_is_left_there_is_no_structure():
    pairs = Partition.from_blocks([["a", "b"], ["c", "d"]])
    asked = []
    gains_of(lambda s: asked.append(s) or [1.0] * 5, RandomPartition([pairs]))
    assert [structure.singleton_weight for structure in asked] == [0.0, 1.0]


def test_a_level_of_one_partition_stands_once():
    assert [gain.name.partition(":")[0] for gain in gains_of(lambda _: [1.0] * 5, TREE)] == [
        "fours",
        "twos",
    ]


def test_an_estimator_is_scored_on_the_folds_of_the_test(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.resize(np.arange(8), 80)
    features = np.eye(8)[labels] + rng.normal(size=(80, 8))
    model = StructuredLogisticRegression(weights=0.4, tol=1e-3)
    kept = tmp_path / "losses.jsonl"
    asked = {"estimator": model, "random_state": 0, "n_folds": 3, "keep_in": kept}
    first, second = (partition_gains(features, labels, TREE, n_jobs=n, **asked) for n in (1, 2))
    assert len(kept.read_text().splitlines()) == 3
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.difference.per_split, other.difference.per_split)


def test_a_sampler_has_no_partitions_to_leave_out():
    sampler = SpanningTreePartitions(LabelGraph([(0, 1), (1, 2)]), 2, 0.5)
    with pytest.raises(StructentError, match="so that partitions can be left out"):
        gains_of(lambda _: [1.0] * 5, sampler)
