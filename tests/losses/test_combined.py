"""Mixtures and products, fixed and drawn, in every adapter: all give what the reference gives."""

import lightgbm
import numpy as np
import pytest
import torch
import xgboost

from structent import (
    FixedStructure,
    LabelGraph,
    RandomPartition,
    SpanningTreePartitions,
    circular,
    hierarchy,
    mix,
    trivial,
)
from structent.kernels import reference
from structent.losses import keras as keras_losses
from structent.losses import torch as torch_losses
from structent.losses.boosters import lightgbm as lightgbm_losses
from structent.losses.boosters import xgboost as xgboost_losses
from structent.losses.torch.operator import draw_partition, labels_operator
from tests.losses.test_conformance import (
    _by_torch,
    jax_drawn,
    jax_fixed,
    keras_on_torch,
    torch_compiled,
    torch_fused,
    torch_portable,
)

pytestmark = [
    pytest.mark.requires(name) for name in ("torch", "keras", "jax", "xgboost", "lightgbm")
]

SEASONS = circular(["spring", "summer", "autumn", "winter"], width=2)
HALVES = hierarchy({s: ("warm" if s in ("spring", "summer") else "cold",) for s in SEASONS.classes})
SQUARE = LabelGraph([(s, SEASONS.classes[i - 1]) for i, s in enumerate(SEASONS.classes)])
TREES = SpanningTreePartitions(SQUARE, n_blocks=2, singleton_weight=0.4, seed=1)
COAST = LabelGraph([("Marin", "Sonoma"), ("Sonoma", "Napa"), ("Marin", "Napa")])
COUNTIES = SpanningTreePartitions(COAST, n_blocks=2, singleton_weight=0.5, seed=2)

FIXED = {
    "mixture": mix([HALVES, SEASONS], [0.3, 0.7]),
    "product": SEASONS.product(HALVES),
    "product of a mixture": mix([HALVES, SEASONS]).product(trivial(COAST.classes)),
    "mixture of products": mix([SEASONS.product(HALVES), trivial(SEASONS.product(HALVES).classes)]),
}
DRAWN = {
    "mixture with a sampler": mix([HALVES, SEASONS, TREES], [0.2, 0.3, 0.5]),
    "structure x sampler": SEASONS.product(COUNTIES),
    "sampler x sampler": TREES.product(COUNTIES),
    "mixture x sampler": mix([SEASONS, TREES]).product(COUNTIES),
    "mixture of products": mix([SEASONS.product(COUNTIES), TREES.product(COUNTIES)], [0.4, 0.6]),
    "scrambled product": SEASONS.product(COUNTIES).scramble(np.random.default_rng(0)),
    "fixed product": FixedStructure(SEASONS.product(HALVES)),
}


def torch_module(sampler, iteration, logits, labels):
    loss = torch_losses.StructuredCrossEntropy(sampler, reduction="none")
    loss.step.fill_(iteration)
    return _by_torch(lambda z: loss(z, torch.from_numpy(labels)), logits)


def torch_operator(sampler, iteration, logits, labels):
    loss = torch_losses.StructuredCrossEntropy(sampler)
    n_partitions = sampler.sample(0).n_partitions
    arrays = draw_partition(torch.tensor(iteration), loss._registered.number, n_partitions)
    return _by_torch(
        lambda z: labels_operator(z, torch.from_numpy(labels), *arrays, None, -100, True)[0], logits
    )


def keras_held(sampler, iteration, logits, labels):
    loss = keras_losses.StructuredCrossEntropy(sampler, reduction=None)
    loss._held.draw(iteration)  # as the schedule does for each batch
    return _by_torch(lambda z: loss(torch.from_numpy(labels), z), logits)


def jax_arrays(sampler, iteration, logits, labels):
    return jax_drawn(sampler.sample(iteration), logits, labels)


def xgboost_objective(sampler, iteration, logits, labels):
    data = xgboost.DMatrix(logits, label=labels)
    objective = xgboost_losses.structured_objective(sampler, n_threads=1)
    return None, objective(iteration, logits, data)[0]


def lightgbm_objective(sampler, iteration, logits, labels):
    data = lightgbm.Dataset(logits, label=labels).construct()
    objective = lightgbm_losses.structured_objective(sampler, first_round=iteration, n_threads=1)
    return None, objective(np.asfortranarray(logits, dtype=np.float64), data)[0]


def problem(structure, n_rows=9):
    rng = np.random.default_rng(0)
    n_classes = len(structure.classes)
    logits = rng.normal(scale=3, size=(n_rows, n_classes)).astype(np.float32)
    return logits, rng.integers(n_classes, size=n_rows)


def assert_is_reference(found, structure, logits, labels):
    losses, gradient = found
    arguments = (logits.astype(np.float64), labels, structure.block_of, structure.weights)
    wanted = reference.structured_cross_entropy_from_logits(*arguments, xp=np)
    wanted_gradient = reference.gradient_from_logits(*arguments, xp=np)
    if losses is not None:  # boosters ask for the gradient alone
        np.testing.assert_allclose(losses, wanted, rtol=4e-6, atol=4e-6)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize(
    "adapter",
    [torch_fused, torch_compiled, torch_portable, keras_on_torch, jax_fixed],
)
@pytest.mark.parametrize("structure", FIXED.values(), ids=FIXED.keys())
def test_a_fixed_mixture_or_product_gives_what_the_reference_gives(adapter, structure):
    assert isinstance(structure, RandomPartition)
    logits, labels = problem(structure)
    assert_is_reference(adapter(structure, logits, labels), structure, logits, labels)


@pytest.mark.parametrize(
    "adapter",
    [
        *(torch_module, torch_operator, keras_held, jax_arrays),
        *(xgboost_objective, lightgbm_objective),
    ],
)
@pytest.mark.parametrize("sampler", DRAWN.values(), ids=DRAWN.keys())
def test_a_drawn_mixture_or_product_gives_the_reference_of_its_iteration(adapter, sampler):
    logits, labels = problem(sampler)
    for iteration in (0, 5):
        found = adapter(sampler, iteration, logits, labels)
        assert_is_reference(found, sampler.sample(iteration), logits, labels)


@pytest.mark.parametrize("booster", [xgboost_objective, lightgbm_objective])
@pytest.mark.parametrize("structure", FIXED.values(), ids=FIXED.keys())
def test_boosters_take_fixed_mixtures_and_products_too(booster, structure):
    logits, labels = problem(structure)
    assert_is_reference(booster(structure, 0, logits, labels), structure, logits, labels)


def test_the_operator_draws_a_product_without_a_trace_of_the_iteration_before():
    sampler = DRAWN["sampler x sampler"]
    loss = torch_losses.StructuredCrossEntropy(sampler)
    n_partitions = sampler.sample(0).n_partitions
    for step in (0, 1, 0):
        block_of, weights = draw_partition(
            torch.tensor(step), loss._registered.number, n_partitions
        )
        assert np.array_equal(block_of.numpy(), sampler.sample(step).block_of)
        assert np.array_equal(weights.numpy(), sampler.sample(step).weights)
