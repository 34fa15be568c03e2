"""The last layer for PyTorch: torch's own linear layer, but for how its weights are made."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from structent import StructureError, trivial
from structent.layers.torch import StructuredLinear
from structent.structure import catalog
from tests.layers.problems import BY_CHAINS, STRUCTURES, similarity, unit_vectors

pytestmark = pytest.mark.requires("torch")

A_TREE = STRUCTURES["a tree with many blocks"]


def double(structure, in_features=7, **options):
    torch.manual_seed(0)
    return StructuredLinear(in_features, structure, dtype=torch.float64, **options)


@pytest.mark.parametrize("singleton_weight", [None, 0.2])
@pytest.mark.parametrize("name", sorted(set(STRUCTURES) - {"trivial"}))
def test_weights_of_unit_vectors_have_the_similarity_as_their_products(name, singleton_weight):
    structure = STRUCTURES[name]
    k, m = len(structure.classes), double(structure).block_vectors.shape[0]
    layer = double(structure, k + m, singleton_weight=singleton_weight)
    own, of_blocks = unit_vectors(structure, layer._plan)
    with torch.no_grad():
        layer.class_vectors.copy_(torch.from_numpy(own))
        layer.block_vectors.copy_(torch.from_numpy(of_blocks))
    products = (layer.weight @ layer.weight.T).detach().numpy()
    np.testing.assert_allclose(products, similarity(structure, singleton_weight), atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_plain_layer_has_the_same_outputs_and_gives_the_layer_back(name, bias):
    layer = double(STRUCTURES[name], bias=bias)
    features = torch.randn(2, 3, 7, dtype=torch.float64)
    linear = layer.to_linear()
    assert type(linear) is nn.Linear
    torch.testing.assert_close(linear(features), layer(features))
    again = StructuredLinear.from_linear(linear, STRUCTURES[name])
    torch.testing.assert_close(again(features), layer(features), rtol=1e-9, atol=1e-9)
    squares = [sum((p**2).sum() for n, p in x.named_parameters() if n != "bias")
               for x in (again, layer)]  # fmt: skip
    assert squares[0] <= squares[1] * (1 + 1e-9)  # the vectors of least norm


@pytest.mark.parametrize("name", ["cifar100", "a tree with many blocks"])
def test_weight_decay_on_the_vectors_is_the_prior_on_the_weights(name):
    structure = STRUCTURES[name]
    linear = nn.Linear(5, len(structure.classes), dtype=torch.float64)
    layer = StructuredLinear.from_linear(linear, structure, singleton_weight=0.3)
    decayed = sum((p.detach() ** 2).sum() for n, p in layer.named_parameters() if n != "bias")
    weight = linear.weight.detach().numpy()
    prior = np.trace(weight.T @ np.linalg.inv(similarity(structure, 0.3)) @ weight)
    assert float(decayed) == pytest.approx(prior, rel=1e-9)


@pytest.mark.parametrize("name", sorted(BY_CHAINS | {"cifar100", "months", "sampler"}))
def test_gradients_are_those_of_finite_differences(name):
    layer = double(STRUCTURES[name], in_features=2)
    features = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)

    def outputs(own, of_blocks, x):
        parameters = {"class_vectors": own, "block_vectors": of_blocks, "bias": layer.bias}
        return torch.func.functional_call(layer, parameters, (x,))

    vectors = (layer.class_vectors, layer.block_vectors)
    assert torch.autograd.gradcheck(outputs, (*vectors, features), fast_mode=True)
    assert torch.autograd.gradgradcheck(outputs, (*vectors, features), fast_mode=True)


@pytest.mark.parametrize("name", ["cifar100", "a tree with many blocks", "months", "trivial"])
def test_logits_start_with_the_variance_of_torchs_linear_layer(name):
    torch.manual_seed(0)
    structure = STRUCTURES[name]
    features = torch.randn(400, 300)
    ours, theirs = (
        torch.stack([layer()(features) for _ in range(10)]).detach().var()
        for layer in (
            lambda: StructuredLinear(300, structure),
            lambda: nn.Linear(300, len(structure.classes)),
        )
    )
    # Classes share vectors: of 12 months there are few independent ones.
    assert float(ours) == pytest.approx(float(theirs), rel=0.1)


def test_the_trivial_structure_is_torchs_linear_layer():
    layer = StructuredLinear(4, trivial(range(3)))
    assert {name for name, _ in layer.named_parameters()} == {"class_vectors", "bias"}
    assert layer.weight is layer.class_vectors


def test_the_state_is_the_vectors_and_the_bias():
    layer, other = StructuredLinear(7, A_TREE), StructuredLinear(7, A_TREE)
    assert set(layer.state_dict()) == {"class_vectors", "block_vectors", "bias"}
    other.load_state_dict(layer.state_dict())
    features = torch.randn(4, 7)
    for copied in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):  # noqa: S301
        torch.testing.assert_close(copied(features), layer(features))


@pytest.mark.parametrize("structure", [catalog.cifar100(), A_TREE], ids=["product", "chain"])
def test_under_autocast_the_outputs_are_those_of_the_plain_layer(structure):
    torch.manual_seed(0)
    layer, features = StructuredLinear(64, structure), torch.randn(4, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, theirs = layer(features), layer.to_linear()(features)
        assert layer.weight.dtype == torch.float32
    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("structure", [catalog.cifar100(), A_TREE], ids=["product", "chain"])
def test_a_converted_layer_works(structure, dtype):
    layer = StructuredLinear(8, structure).to(dtype)
    assert layer(torch.randn(3, 8, dtype=dtype)).dtype == dtype


def test_it_trains():
    torch.manual_seed(0)
    layer, labels = StructuredLinear(20, catalog.months()), torch.randint(12, (200,))
    features = torch.randn(12, 20)[labels] + 0.5 * torch.randn(200, 20)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.05, weight_decay=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(layer(features), labels).backward()
        optimizer.step()
    assert (layer(features).argmax(1) == labels).float().mean() > 0.95


def test_what_does_not_fit_is_refused():
    with pytest.raises(StructureError, match="in_features must be between 1 and"):
        StructuredLinear(0, catalog.months())
    with pytest.raises(StructureError, match="structure covers 12 classes but linear has 5 outp"):
        StructuredLinear.from_linear(nn.Linear(3, 5), catalog.months())
    with pytest.raises(StructureError, match=r"must be a torch\.nn\.Linear, got Conv1d"):
        StructuredLinear.from_linear(nn.Conv1d(3, 5, 1), catalog.months())


def test_printed_it_says_what_it_is():
    assert repr(StructuredLinear(4, catalog.months())).startswith(
        "StructuredLinear(in_features=4, out_features=12, bias=True, structure=<RandomPartition of"
    )
