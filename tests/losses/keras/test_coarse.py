"""The loss of rows that are labelled by classes, blocks and sets of classes."""

import json

import keras
import numpy as np
import pytest

from structent import LabelError, SpanningTreePartitions, StructureError, trivial
from structent.kernels import reference
from structent.losses.keras import PartitionSchedule, StructuredCrossEntropy, StructuredLogLoss
from structent.structure.catalog import california_counties, cifar100, months
from tests.kernels.problems import EXTREME_LOGITS, members_of, some_sets
from tests.losses.keras.autodiff import value_and_gradient

MONTHS = months()
LABEL_SETS = MONTHS.encode_with_blocks([1, {1, 2, 3}, {7, 12}, set(range(1, 13))])


def expected(structure, logits, codes, sets):
    arguments = (logits.astype(np.float64), codes, structure.block_of, structure.weights)
    members = members_of(sets, structure.n_classes)
    value = reference.structured_cross_entropy_from_logits(*arguments, xp=np, members=members)
    return value, reference.gradient_from_logits(*arguments, xp=np, members=members)


def label_sets_of(structure, codes, sets):
    as_labels = [{structure.classes[c] for c in members} for members in sets]
    label_sets = trivial(structure.classes).encode_with_blocks(as_labels)
    code_of = {members: code for code, members in enumerate(label_sets.sets)}
    k = structure.n_classes
    return label_sets, np.array([c if c < k else code_of[sets[c - k]] for c in codes])


STRUCTURES = [MONTHS, cifar100(), months(singleton_weight=0.0)]


# Not every structure with every case: each pair is compiled by itself.
@pytest.mark.parametrize(
    ("structure", "case"),
    [
        pytest.param(STRUCTURES[place % len(STRUCTURES)], case, id=name)
        for place, (name, case) in enumerate(EXTREME_LOGITS.items())
    ],
)
def test_value_and_gradient_are_those_of_the_reference(structure, case):
    logits, labels = case(structure.n_classes)
    logits = logits.astype(np.float32)
    sets, codes = some_sets(structure.n_classes, labels)
    label_sets, given = label_sets_of(structure, codes, sets)
    loss = StructuredCrossEntropy(structure, reduction=None, label_sets=label_sets)
    found = value_and_gradient(loss, given, logits)
    for one, other in zip(found, expected(structure, logits, codes, sets), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6)


def test_probabilities_give_the_loss_of_their_logits():
    logits = np.random.default_rng(0).normal(size=(4, 12)).astype(np.float32)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss = StructuredCrossEntropy(MONTHS, from_logits=False, reduction=None, label_sets=LABEL_SETS)
    wanted, _ = expected(MONTHS, logits, LABEL_SETS.codes, LABEL_SETS.coarse_sets)
    found = keras.ops.convert_to_numpy(loss(LABEL_SETS.codes, proba))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_an_ignored_class_counts_nothing_beside_sets():
    logits = np.random.default_rng(0).normal(size=(4, 12)).astype(np.float32)
    loss = StructuredCrossEntropy(MONTHS, ignore_class=0, label_sets=LABEL_SETS)
    wanted, _ = expected(MONTHS, logits, LABEL_SETS.codes, LABEL_SETS.coarse_sets)
    assert float(loss(LABEL_SETS.codes, logits)) == pytest.approx(wanted[1:].mean(), rel=1e-5)


def test_a_model_that_is_saved_and_loaded_has_the_same_loss_of_sets(tmp_path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(12)])
    model.compile(
        "sgd",
        StructuredCrossEntropy(MONTHS, label_sets=LABEL_SETS),
        metrics=[StructuredLogLoss(MONTHS, label_sets=LABEL_SETS)],
    )
    x = np.random.default_rng(0).normal(size=(4, 3))
    model.fit(x, LABEL_SETS.codes, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    before, after = (
        m.evaluate(x, LABEL_SETS.codes, verbose=0, return_dict=True) for m in (model, loaded)
    )
    assert np.isfinite(before["loss"])
    assert before["structured_log_loss"] == pytest.approx(before["loss"], rel=1e-6)
    assert after == pytest.approx(before, rel=1e-6)


@pytest.mark.parametrize("kind", [StructuredCrossEntropy, StructuredLogLoss])
def test_the_configuration_is_json_from_which_the_same_object_is_made(kind):
    config = kind(MONTHS, label_sets=LABEL_SETS).get_config()
    again = kind.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert again.label_sets.sets == LABEL_SETS.sets


def test_a_sampler_trains_on_sets():
    sampler = SpanningTreePartitions(california_counties(), 10, 0.5)
    a, b, c = sampler.classes[:3]
    label_sets = trivial(sampler.classes).encode_with_blocks([a, {b, c}])
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(58)])
    model.compile("sgd", StructuredCrossEntropy(sampler, label_sets=label_sets))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    logits = keras.ops.convert_to_numpy(model(x))
    history = model.fit(
        x, label_sets.codes, callbacks=[PartitionSchedule(model.loss)], verbose=0
    ).history
    wanted, _ = expected(sampler.sample(0), logits, label_sets.codes, label_sets.coarse_sets)
    assert history["loss"][0] == pytest.approx(wanted.mean(), rel=1e-5)


def test_codes_beyond_the_table_make_their_row_nan():
    for label_sets, code in ((LABEL_SETS, len(LABEL_SETS.sets)), (None, 12)):
        loss = StructuredCrossEntropy(MONTHS, reduction=None, label_sets=label_sets)
        found = loss(np.array([0, code]), np.zeros((2, 12), dtype=np.float32))
        assert np.isnan(keras.ops.convert_to_numpy(found)).tolist() == [False, True]


def test_label_sets_that_do_not_fit_are_refused():
    for kind in (StructuredCrossEntropy, StructuredLogLoss):
        with pytest.raises(LabelError, match=r"100 classes of the structure .* got 12 classes"):
            kind(cifar100(), label_sets=LABEL_SETS)
    loss = StructuredCrossEntropy(MONTHS, label_sets=LABEL_SETS)
    with pytest.raises(StructureError, match="leave label_sets out"):
        loss(np.ones((2, 12)) / 12, np.zeros((2, 12)))
