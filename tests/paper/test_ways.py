"""Ways to use a structure: what is chosen, by which rows, and what is measured."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss

from paper import ways
from paper.ways import (
    BOTH,
    LEARNED,
    LOSS,
    NONE,
    OWN_AUTO,
    OWN_NONE,
    OWN_SCRAMBLED,
    PARAMETERS,
    PENALTIES,
    Found,
    Linear,
    Setting,
    Trees,
    compared,
)
from paper.weather import Draw, Examples
from structent.estimators import StructuredBoostingClassifier, StructuredLogisticRegression
from structent.structure import (
    LabelGraph,
    SpanningTreePartitions,
    hierarchy,
    ordinal,
    trivial,
)

N_BLOCKS, N_CLASSES = 4, 12
# Related classes do not stand side by side.
BLOCK_OF = [place % N_BLOCKS for place in range(N_CLASSES)]
NAMES = np.array([f"class {place:02}" for place in range(N_CLASSES)])
PLANTED = hierarchy(
    {name: (f"block {block}",) for name, block in zip(NAMES.tolist(), BLOCK_OF, strict=True)},
    level_names=["block"],
)
SETTLED = (NONE, LOSS, PARAMETERS, BOTH)
CONTROLS = tuple(f"{way}, scrambled" for way in (LOSS, PARAMETERS, BOTH))
OWN = (OWN_NONE, OWN_AUTO, OWN_SCRAMBLED)


def planted(*, n_train=3, seed=0):
    """Return rows of classes whose means are near those of their block; few to train on."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(N_BLOCKS, 12))[BLOCK_OF] + 0.35 * rng.normal(size=(N_CLASSES, 12))

    def rows(count):
        codes = np.repeat(np.arange(N_CLASSES), count)
        return Examples(means[codes] + rng.normal(size=(len(codes), 12)), NAMES[codes])

    return Draw(rows(n_train), rows(20), rows(40))


ROWS = planted()


@pytest.fixture(scope="module")
def result():
    """What linear models find on the planted hierarchy."""
    return compared(Linear(seed=0), ROWS, PLANTED, seed=0, with_learned=True, by_itself=True)


# What a structure is worth


def test_a_planted_hierarchy_gains_with_parameters_and_a_scrambled_one_does_not(result):
    none = result[NONE]["log_loss"]
    for way in (LOSS, PARAMETERS, BOTH):
        assert result[way]["log_loss"] < none - 0.05
        assert result[f"{way}, scrambled"]["log_loss"] > none - 0.01
    assert result[LEARNED]["log_loss"] < none - 0.05
    assert result[OWN_AUTO]["log_loss"] < result[OWN_NONE]["log_loss"] - 0.05


def test_of_a_meaningless_structure_the_least_is_chosen(result):
    weights = [result[f"{way}, scrambled"]["setting"] for way in (LOSS, PARAMETERS)]
    assert weights == [[max(ways.LOSS_WEIGHTS), 1.0], [1.0, max(ways.PRIOR_WEIGHTS)]]


def test_every_way_has_its_scores(result):
    scores = {"log_loss", "accuracy", "accuracy_one_level_up"}
    assert set(result) == {*SETTLED, *CONTROLS, LEARNED, *OWN}
    for way in (*SETTLED, *CONTROLS, LEARNED):
        assert set(result[way]) == scores | {"validation", "setting"}
    for way in OWN:
        assert set(result[way]) == scores


def test_a_result_is_plain_json(result):
    assert json.loads(json.dumps(result)) == result


def test_settings_are_chosen_by_the_validation_rows_alone(result):
    shuffled = np.random.default_rng(1).permutation(ROWS.test.labels)
    other = Draw(ROWS.train, ROWS.validation, Examples(-ROWS.test.features, shuffled))
    again = compared(Linear(seed=0), other, PLANTED, seed=0, with_learned=True, by_itself=False)
    for way in (*SETTLED, *CONTROLS, LEARNED):
        for chosen in ("setting", "validation"):
            assert again[way][chosen] == result[way][chosen]
        assert again[way]["log_loss"] > result[way]["log_loss"]


def test_models_by_themselves_are_those_of_the_training_rows(result):
    shuffled = PLANTED.scramble(np.random.default_rng(0))
    known = {OWN_NONE: trivial(PLANTED.classes), OWN_AUTO: PLANTED, OWN_SCRAMBLED: shuffled}
    for way, structure in known.items():
        model = StructuredLogisticRegression(
            structure, weights=1.0, prior="auto", random_state=0, max_iter=1000
        ).fit(*ROWS.train)
        assert ways.scores(model, ROWS.test, PLANTED) == result[way]


# Which settings are chosen, by a model whose losses are made up


class Guesses:
    """A model whose validation losses are drawn, for each structure and setting."""

    plain = Setting(1.0, 0.0)
    in_loss = (0.7, 0.4, 0.1)
    in_parameters = (0.3, 0.6, 0.8)

    def __init__(self, seed=0):
        self._seed = seed
        self.tried = []

    def loss(self, structure, setting):
        blocks = getattr(structure, "block_of", np.array([0])).ravel().tolist()
        known = [self._seed, *blocks, *(round(100 * weight) for weight in setting)]
        return float(np.random.default_rng(known).random())

    def found(self, _, structure, setting):
        self.tried.append((structure, setting))
        return Found(setting, self.loss(structure, setting), Guess(structure.classes, setting))

    def by_itself(self, rows, structure):
        self.tried.append((structure, None))
        assert not isinstance(rows, Draw)
        return Guess(structure.classes, self.plain)


class Guess:
    """A model that gives every row the same probabilities, which its setting decides."""

    def __init__(self, classes, setting):
        self.classes_ = np.array(sorted(classes))
        odds = np.random.default_rng([round(100 * weight) for weight in setting]).random(
            len(classes)
        )
        self._proba = odds / odds.sum()

    def predict_proba(self, features):
        return np.tile(self._proba, (len(features), 1))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_the_settings_of_least_validation_loss_are_chosen(seed):
    model = Guesses(seed)
    result = compared(model, ROWS, PLANTED, seed=3, with_learned=False, by_itself=False)
    shuffled = PLANTED.scramble(np.random.default_rng(3))
    for structure, ending in ((PLANTED, ""), (shuffled, ", scrambled")):
        losses = {
            Setting(a, b): model.loss(structure, Setting(a, b))
            for a in (1.0, 0.7, 0.4, 0.1)
            for b in (0.0, 0.3, 0.6, 0.8)
        }
        loss = min((s for s in losses if s.in_parameters == 0.0 and s.in_loss < 1), key=losses.get)
        parameters = min(
            (s for s in losses if s.in_loss == 1.0 and s.in_parameters), key=losses.get
        )
        both = [
            s
            for s in losses
            if s.in_loss < 1 and s.in_parameters
            and (s.in_loss == loss.in_loss or s.in_parameters == parameters.in_parameters)
        ]  # fmt: skip
        if ending:  # of a control only the best of the one with the best of the other
            both = [Setting(loss.in_loss, parameters.in_parameters)]
        expected = {LOSS: loss, PARAMETERS: parameters, BOTH: min(both, key=losses.get)}
        for way, setting in expected.items():
            found = result[way + ending]
            assert found["setting"] == list(setting)
            assert found["validation"] == pytest.approx(losses[setting], abs=1e-6)
            scores = ways.scores(Guess(NAMES.tolist(), setting), ROWS.test, PLANTED)
            assert found["log_loss"] == scores["log_loss"]


@pytest.mark.parametrize("by_itself", [True, False])
@pytest.mark.parametrize("with_learned", [True, False])
def test_a_learned_structure_and_models_by_themselves_are_there_where_asked_for(
    monkeypatch, with_learned, by_itself
):
    monkeypatch.setattr(Guess, "C", 0.3, raising=False)
    learned_from = []

    def learned(rows, penalty, structure, seed):
        learned_from.append((rows, penalty, structure, seed))
        return structure

    monkeypatch.setattr(ways, "_learned", learned)
    result = compared(
        Guesses(), ROWS, PLANTED, seed=2, with_learned=with_learned, by_itself=by_itself
    )
    expected = {*SETTLED, *CONTROLS}
    expected |= {LEARNED} if with_learned else set()
    expected |= set(OWN) if by_itself else set()
    assert set(result) == expected
    assert learned_from == [(ROWS.train, 0.3, PLANTED, 2)] * with_learned


def test_every_way_has_its_structure():
    model = Guesses()
    compared(model, ROWS, PLANTED, seed=4, with_learned=False, by_itself=True)
    shuffled, plain = PLANTED.scramble(np.random.default_rng(4)), trivial(PLANTED.classes)
    settled = [structure for structure, setting in model.tried if setting is not None]
    # None, the weights in the loss and in the parameters, and of both those that cross.
    assert settled == [plain] + [PLANTED] * (3 + 3 + 5) + [shuffled] * (3 + 3 + 1)
    assert [each for each, setting in model.tried if setting is None] == [plain, PLANTED, shuffled]


@pytest.mark.parametrize(
    "structure",
    [
        ordinal(NAMES.tolist()),
        SpanningTreePartitions(
            LabelGraph(list(pairwise(NAMES.tolist()))), n_blocks=3, singleton_weight=0.5
        ),
    ],
    ids=["an order", "a graph"],
)
def test_where_there_are_no_levels_there_is_no_accuracy_one_level_up(structure):
    result = compared(Guesses(), ROWS, structure, seed=0, with_learned=False, by_itself=False)
    for scores in result.values():
        assert set(scores) == {"log_loss", "accuracy", "validation", "setting"}


# Linear models


def fitted(setting, penalty, structure=PLANTED, **options):
    model = StructuredLogisticRegression(
        structure, weights=setting.in_loss, prior=setting.in_parameters, C=penalty, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the weakest penalties
        return model.fit(*ROWS.train)


def loss_of(model, rows):
    proba = model.predict_proba(rows.features)
    return log_loss(rows.labels, proba, labels=model.classes_.tolist())


def test_the_penalty_is_that_of_a_search_through_all_of_them():
    model = Linear(seed=0)
    # Later searches begin near the penalty that is best without structure.
    chosen = []
    for setting in (Setting(1.0, 1.0), Setting(1.0, 0.05), Setting(0.4, 0.8)):
        found = model.found(ROWS, PLANTED, setting)
        every = [fitted(setting, penalty, tol=1e-8, max_iter=5000) for penalty in PENALTIES]
        losses = [loss_of(each, ROWS.validation) for each in every]
        best = int(np.argmin(losses))
        assert found.setting == setting
        assert PENALTIES[best] == found.model.C
        assert found.loss == pytest.approx(losses[best], abs=1e-4)
        chosen.append(best)
    assert len(set(chosen)) > 1
    assert 0 < min(chosen) < max(chosen) < len(PENALTIES) - 1


def test_a_search_does_not_depend_on_those_before_it():
    one, other = Linear(seed=0), Linear(seed=0)
    for model in (one, other):
        model.found(ROWS, PLANTED, Linear.plain)
    other.found(ROWS, PLANTED.scramble(np.random.default_rng(0)), Setting(0.1, 0.05))
    found, expected = (each.found(ROWS, PLANTED, Setting(0.1, 0.8)) for each in (other, one))
    assert found.loss == expected.loss
    np.testing.assert_array_equal(found.model.coef, expected.model.coef)


def test_a_setting_without_structure_is_a_model_without_structure():
    found = Linear(seed=0).found(ROWS, trivial(PLANTED.classes), Linear.plain)
    plain = fitted(Setting(None, 1.0), found.model.C, structure=None, tol=1e-6, max_iter=1000)
    expected = plain.predict_proba(ROWS.test.features)
    assert found.model.predict_proba(ROWS.test.features) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_what_was_found_gives_the_probabilities_that_the_model_had_then(dtype, tolerance):
    rows = Examples(ROWS.train.features.astype(dtype), ROWS.train.labels)
    test = ROWS.test.features.astype(dtype)
    model = StructuredLogisticRegression(PLANTED, prior=0.5, warm_start=True).fit(*rows)
    frozen = ways._Frozen(model)
    expected = model.predict_proba(test)
    model.set_params(C=100.0).fit(*rows)  # goes on to another penalty
    assert np.abs(model.predict_proba(test) - expected).max() > 0.1
    assert frozen.predict_proba(test) == pytest.approx(expected, abs=tolerance)
    assert frozen.C == 1.0
    assert frozen.classes_.tolist() == NAMES.tolist()


def test_probabilities_of_large_logits_are_finite():
    model = StructuredLogisticRegression(PLANTED).fit(*ROWS.train)
    far = 1e4 * ROWS.test.features
    assert ways._Frozen(model).predict_proba(far) == pytest.approx(model.predict_proba(far))


def test_a_learned_structure_has_the_planted_blocks():
    learned = ways._learned(planted(n_train=15).train, 0.1, PLANTED, seed=0)
    (blocks,) = PLANTED.levels["block"]
    assert set(learned.classes) == set(PLANTED.classes)
    assert len(learned.levels) == 4
    found = [{frozenset(block) for block in level.blocks} for level in learned.partitions]
    assert {frozenset(block) for block in blocks.blocks} in found


def test_a_structure_is_learned_from_two_rows_a_class():
    learned = ways._learned(planted(n_train=2).train, 0.1, PLANTED, seed=0)
    assert set(learned.classes) == set(PLANTED.classes)


def test_a_class_without_training_rows_is_alone_in_a_learned_structure():
    rows = planted(n_train=15).train
    unseen = rows.labels[0]
    kept = rows.labels != unseen
    learned = ways._learned(
        type(rows)(rows.features[kept], rows.labels[kept]), 0.1, PLANTED, seed=0
    )
    assert set(learned.classes) == set(PLANTED.classes)
    assert all((unseen,) in level.blocks for level in learned.partitions)


# Boosted trees


@pytest.fixture
def boosters(monkeypatch):
    """Boosters of a few rounds, each of which is remembered."""
    made = []

    def booster(*args, **options):
        made.append(StructuredBoostingClassifier(*args, n_estimators=2, max_depth=2, **options))
        return made[-1]

    monkeypatch.setattr(ways, "StructuredBoostingClassifier", booster)
    return made


def test_trees_have_every_way_with_its_scores(boosters):
    result = compared(Trees(seed=7), ROWS, PLANTED, seed=0, with_learned=False, by_itself=True)
    assert set(result) == {*SETTLED, *CONTROLS, *OWN}
    assert result[NONE]["setting"] == [1.0, 0.0]
    assert {tuple(result[way]["setting"]) for way in (LOSS, "loss, scrambled")} <= {
        (weight, 0.0) for weight in ways.LOSS_WEIGHTS
    }
    assert {tuple(result[way]["setting"]) for way in (PARAMETERS, "parameters, scrambled")} <= {
        (1.0, share) for share in ways.SMOOTHINGS
    }
    assert all(result[BOTH]["setting"][place] not in (0.0, 1.0) for place in (0, 1))
    assert {booster.random_state for booster in boosters} == {7}


def test_a_setting_of_trees_is_a_weight_in_the_loss_and_a_share_that_leaves_borrow(boosters):
    model = Trees(seed=0)
    assert ways.scores(model.found(ROWS, PLANTED, Setting(0.4, 0.6)).model, ROWS.test, PLANTED)
    model.found(ROWS, PLANTED, model.plain)
    model.by_itself(ROWS.train, PLANTED)
    given_to = [(each.structure, each.weights, each.leaf_smoothing) for each in boosters]
    assert given_to == [(PLANTED, 0.4, 0.6), (PLANTED, 1.0, None), (PLANTED, 1.0, "auto")]


@pytest.mark.usefixtures("boosters")
def test_trees_are_judged_on_the_validation_rows():
    found = Trees(seed=0).found(ROWS, PLANTED, Setting(0.4, 0.3))
    assert found.loss == pytest.approx(loss_of(found.model, ROWS.validation), abs=1e-9)
    # The rounds, too: a model without validation rows of its own would hold back training rows.
    alone = StructuredBoostingClassifier(
        PLANTED, weights=0.4, leaf_smoothing=0.3, random_state=0, n_jobs=1,
        n_estimators=2, max_depth=2,
    ).fit(*ROWS.train, eval_set=tuple(ROWS.validation))  # fmt: skip
    features = ROWS.test.features
    assert np.array_equal(found.model.predict_proba(features), alone.predict_proba(features))


# Scores


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_scores_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    model = Random(rng)
    rows = Examples(np.arange(30.0)[:, None], rng.choice(NAMES, 30))
    scores = ways.scores(model, rows, PLANTED)
    proba = model.predict_proba(rows.features)
    assert scores["log_loss"] == pytest.approx(
        log_loss(rows.labels, proba, labels=NAMES.tolist()), abs=1e-6
    )
    likeliest = NAMES[proba.argmax(axis=1)]
    assert scores["accuracy"] == pytest.approx(accuracy_score(rows.labels, likeliest), abs=1e-6)

    hits = 0
    for row, label in zip(proba, rows.labels.tolist(), strict=True):
        of_block = [0.0] * N_BLOCKS
        for place, probability in enumerate(row):
            of_block[BLOCK_OF[place]] += probability
        hits += of_block.index(max(of_block)) == BLOCK_OF[NAMES.tolist().index(label)]
    assert scores["accuracy_one_level_up"] == pytest.approx(hits / 30, abs=1e-6)


class Random:
    """A model of drawn probabilities."""

    classes_ = NAMES

    def __init__(self, rng):
        self._proba = rng.dirichlet(np.full(N_CLASSES, 0.5), 30)

    def predict_proba(self, _):
        return self._proba
