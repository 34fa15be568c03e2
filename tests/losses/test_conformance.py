"""Every adapter against the reference: value, gradient, extreme logits, all kinds of structures."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from structent import LabelError, SpanningTreePartitions, hierarchy, mix, ordinal, trivial
from structent.kernels import reference
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.losses import jax as jax_losses
from structent.losses import keras as keras_losses
from structent.losses.boosters import lightgbm as lightgbm_losses
from structent.losses.boosters import xgboost as xgboost_losses
from structent.losses.torch import structured_cross_entropy
from structent.losses.torch.dispatch import losses_of_codes, portable_losses_of_labels
from structent.losses.torch.functional import arrays_of, arrays_of_sets
from structent.losses.torch.operator import labels_operator
from structent.structure import LabelSets, catalog
from tests.kernels.problems import (
    EXTREME_LOGITS,
    coarse_problems,
    members_of,
    problems,
    some_sets,
)

pytestmark = [
    pytest.mark.requires(name) for name in ("torch", "keras", "jax", "xgboost", "lightgbm")
]

STRUCTURES = {
    "cifar100": catalog.cifar100(),
    "months": catalog.months(),
    "counties": SpanningTreePartitions(catalog.california_counties(), 10, 0.5).sample(3),
    "states": SpanningTreePartitions(catalog.us_states(), 7, 0.2).sample(5),
    "ordinal": ordinal(range(9)),
    "ragged hierarchy": hierarchy({i: tuple("abc"[: i % 4]) for i in range(8)}),
    "mixture": mix([catalog.months(), ordinal(range(1, 13))]),
    "trivial": trivial(range(5)),
}


def torch_fused(structure, logits, labels):
    return _by_torch(
        lambda z: structured_cross_entropy(
            z, torch.from_numpy(labels), structure, reduction="none"
        ),
        logits,
    )


def torch_compiled(structure, logits, labels):
    block_of, weights = (
        torch.from_numpy(a.copy()) for a in (structure.block_of, structure.weights)
    )
    return _by_torch(
        lambda z: labels_operator(z, torch.from_numpy(labels), block_of, weights, None, -100, True)[
            0
        ],
        logits,
    )


def torch_portable(structure, logits, labels):
    layout = Layout.of(structure)
    losses, gradient, _ = portable_losses_of_labels(
        torch.from_numpy(logits), torch.from_numpy(labels), layout, None, -100, with_gradient=True
    )
    return losses.numpy(), gradient.numpy()


def keras_on_torch(structure, logits, labels):
    loss = keras_losses.StructuredCrossEntropy(structure, reduction=None)
    return _by_torch(lambda z: loss(torch.from_numpy(labels), z), logits)


def jax_fixed(structure, logits, labels):
    return _by_jax(lambda z: jax_losses.structured_cross_entropy(z, labels, structure), logits)


def jax_drawn(structure, logits, labels):
    arrays = jax_losses.partition_arrays(structure)
    return _by_jax(lambda z: jax_losses.structured_cross_entropy(z, labels, arrays), logits)


# The same for codes that are classes or sets of classes


def coarse_torch_fused(structure, logits, codes, label_sets):
    return _by_torch(
        lambda z: structured_cross_entropy(
            z, torch.from_numpy(codes), structure, reduction="none", label_sets=label_sets
        ),
        logits,
    )


def coarse_torch_compiled(structure, logits, codes, label_sets):
    arrays = (*arrays_of(structure), None, -100, True, *arrays_of_sets(label_sets.coarse_sets))
    return _by_torch(lambda z: labels_operator(z, torch.from_numpy(codes), *arrays)[0], logits)


def coarse_torch_portable(structure, logits, codes, label_sets):
    layout = Layout.of(structure)
    losses, gradient, _ = portable_losses_of_labels(
        torch.from_numpy(logits), torch.from_numpy(codes), layout, None, -100, with_gradient=True,
        coarse=CoarseLayouts.of(layout, label_sets.coarse_sets),
    )  # fmt: skip
    return losses.numpy(), gradient.numpy()


def coarse_torch_twice_differentiable(structure, logits, codes, label_sets):
    coarse = CoarseLayouts.of(Layout.of(structure), label_sets.coarse_sets)
    return _by_torch(lambda z: losses_of_codes(z, torch.from_numpy(codes), coarse), logits)


def coarse_keras_on_torch(structure, logits, codes, label_sets):
    loss = keras_losses.StructuredCrossEntropy(structure, reduction=None, label_sets=label_sets)
    return _by_torch(lambda z: loss(torch.from_numpy(codes), z), logits)


def coarse_jax_fixed(structure, logits, codes, label_sets):
    return _by_jax(
        lambda z: jax_losses.structured_cross_entropy(z, codes, structure, label_sets=label_sets),
        logits,
    )


def coarse_jax_drawn(structure, logits, codes, label_sets):
    arrays = jax_losses.partition_arrays(structure)
    return _by_jax(
        lambda z: jax_losses.structured_cross_entropy(z, codes, arrays, label_sets=label_sets),
        logits,
    )


def coarse_boosters(structure, logits, codes, label_sets):
    data = SimpleNamespace(get_label=lambda: codes.astype(np.float32), get_weight=lambda: None)
    objective = xgboost_losses.structured_objective(structure, n_threads=1, label_sets=label_sets)
    gradient, _ = objective(codes.astype(np.float32), logits)
    metric = xgboost_losses.structured_metric(structure, label_sets=label_sets)
    losses = []
    for i, code in enumerate(codes):
        data.get_label = lambda code=code: np.array([code], dtype=np.float32)
        losses.append(metric(logits[i : i + 1], data)[1])
    return np.array(losses), gradient


def _by_torch(loss, logits):
    z = torch.from_numpy(logits).requires_grad_()
    losses = loss(z)
    (gradient,) = torch.autograd.grad(losses.sum(), z)
    return losses.detach().numpy(), gradient.numpy()


def _by_jax(loss, logits):
    losses, pull_back = jax.vjp(loss, jnp.asarray(logits))
    (gradient,) = pull_back(jnp.ones_like(losses))
    return np.asarray(losses), np.asarray(gradient)


ADAPTERS = pytest.mark.parametrize(
    "adapter",
    [torch_fused, torch_compiled, torch_portable, keras_on_torch, jax_fixed, jax_drawn],
)
COARSE_ADAPTERS = pytest.mark.parametrize(
    "adapter",
    [
        coarse_torch_fused, coarse_torch_compiled, coarse_torch_portable,
        coarse_torch_twice_differentiable, coarse_keras_on_torch, coarse_jax_fixed,
        coarse_jax_drawn, coarse_boosters,
    ],
)  # fmt: skip


def assert_conforms(adapter, structure, logits, labels):
    logits = logits.astype(np.float32)
    assert_expected(adapter(structure, logits, labels), structure, logits, labels)


def assert_expected(found, structure, logits, labels, members=None):
    arguments = (logits.astype(np.float64), labels, structure.block_of, structure.weights)
    wanted = (
        reference.structured_cross_entropy_from_logits(*arguments, xp=np, members=members),
        reference.gradient_from_logits(*arguments, xp=np, members=members),
    )
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=4e-6, atol=4e-6)


@ADAPTERS
def test_a_true_block_that_is_ruled_out_has_an_infinite_loss_and_a_finite_gradient(adapter):
    # As in torch's own loss. In the second row the block has another class that is not ruled out.
    structure = hierarchy({0: ("a",), 1: ("a",), 2: ("b",)}, weights=[0.75, 0.25])
    logits = np.array([[-np.inf, -np.inf, 0.0], [-np.inf, 0.0, 0.0]], dtype=np.float32)
    losses, gradient = adapter(structure, logits, np.array([0, 0]))
    assert losses.tolist() == [np.inf, np.inf]
    assert np.isfinite(gradient).all()
    # What the other classes have pushes them down, and the true block pulls its own up.
    assert gradient[:, 1:].tolist() == [[0.0, 1.0], [0.5 - 0.75, 0.5]]


@ADAPTERS
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_value_and_gradient_are_those_of_the_reference(adapter, structure):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(7, structure.n_classes))
    assert_conforms(adapter, structure, logits, rng.integers(structure.n_classes, size=7))


@ADAPTERS
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS.keys())
def test_extreme_logits_give_the_exact_loss_and_a_finite_gradient(adapter, structure, case):
    assert_conforms(adapter, structure, *case(structure.n_classes))


@ADAPTERS
@given(problems())
@settings(max_examples=25)
def test_random_structures_give_what_the_reference_gives(adapter, problem):
    assert_conforms(adapter, *problem)


def assert_conforms_for_codes(adapter, structure, logits, codes, sets):
    logits, k = logits.astype(np.float32), structure.n_classes
    label_sets = LabelSets.of_sets(sets, structure.classes)
    found = adapter(structure, logits, codes, label_sets)
    assert_expected(found, structure, logits, codes, members_of(sets, k))


@COARSE_ADAPTERS
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_value_and_gradient_of_sets_of_classes_are_those_of_the_reference(adapter, structure):
    rng = np.random.default_rng(0)
    k = structure.n_classes
    sets, codes = some_sets(k, rng.integers(k, size=9))
    assert_conforms_for_codes(adapter, structure, rng.normal(scale=3, size=(9, k)), codes, sets)


@COARSE_ADAPTERS
@pytest.mark.parametrize("name", ["months", "counties", "ragged hierarchy"])
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS.keys())
def test_extreme_logits_give_the_exact_loss_of_sets_too(adapter, name, case):
    logits, labels = case(STRUCTURES[name].n_classes)
    sets, codes = some_sets(STRUCTURES[name].n_classes, labels)
    assert_conforms_for_codes(adapter, STRUCTURES[name], logits, codes, sets)


@pytest.mark.parametrize(  # without JAX, to which every new shape is a compilation
    "adapter",
    [coarse_torch_fused, coarse_torch_portable, coarse_torch_twice_differentiable, coarse_boosters],
)
@given(coarse_problems())
@settings(max_examples=15)
def test_random_sets_of_random_structures_give_what_the_reference_gives(adapter, problem):
    assert_conforms_for_codes(adapter, *problem)


MONTHS = catalog.months()
QUARTERS = MONTHS.encode_with_blocks([{1, 2, 3}])
LAST_CODE = len(QUARTERS.sets) - 1
RAISE = [
    coarse_torch_fused, coarse_torch_compiled, coarse_torch_portable, coarse_jax_fixed,
    coarse_jax_drawn, coarse_boosters,
]  # fmt: skip


@pytest.mark.parametrize("adapter", RAISE)
@pytest.mark.parametrize("wrong", [LAST_CODE + 1, -1])
def test_a_code_beyond_the_table_is_refused(adapter, wrong):
    logits, codes = np.zeros((2, 12), dtype=np.float32), np.array([LAST_CODE, wrong])
    with pytest.raises(LabelError, match=f"between 0 and {LAST_CODE}, got {wrong}"):
        adapter(MONTHS, logits, codes, QUARTERS)


def test_a_code_beyond_the_table_makes_its_row_nan_in_keras():
    logits, codes = np.zeros((2, 12), dtype=np.float32), np.array([LAST_CODE, LAST_CODE + 1])
    losses, _ = coarse_keras_on_torch(MONTHS, logits, codes, QUARTERS)
    assert np.isnan(losses).tolist() == [False, True]


@pytest.mark.parametrize(
    "adapter", [coarse_torch_fused, coarse_keras_on_torch, coarse_jax_fixed, coarse_boosters]
)
@pytest.mark.parametrize(
    ("label_sets", "message"),
    [
        (ordinal(range(9)).encode_with_blocks([{1, 2}]), "12 classes .* got 9 classes"),
        (np.array([12]), "encode_with_blocks\\(labels\\), got ndarray"),
    ],
)
def test_label_sets_of_another_structure_are_refused(adapter, label_sets, message):
    with pytest.raises(LabelError, match=message):
        adapter(MONTHS, np.zeros((1, 12), dtype=np.float32), np.array([12]), label_sets)


def test_drawn_arrays_refuse_label_sets_of_another_number_of_classes():
    label_sets = ordinal(range(9)).encode_with_blocks([{1, 2}])
    with pytest.raises(LabelError, match=r"12 classes .* got 9 classes"):
        coarse_jax_drawn(MONTHS, np.zeros((1, 12), dtype=np.float32), np.array([12]), label_sets)


@pytest.mark.parametrize("adapter", [torch_fused, torch_compiled, torch_portable, jax_fixed])
def test_without_label_sets_the_code_of_a_set_is_refused(adapter):
    with pytest.raises(LabelError, match="between 0 and 11, got 12"):
        adapter(MONTHS, np.zeros((1, 12), dtype=np.float32), np.array([12]))


def test_without_label_sets_boosters_refuse_the_code_of_a_set():
    for losses in (xgboost_losses, lightgbm_losses):
        objective = losses.structured_objective(MONTHS)
        with pytest.raises(LabelError, match="class indices between 0 and 11, got 12"):
            objective(np.array([12.0]), np.zeros((1, 12), dtype=np.float32))
