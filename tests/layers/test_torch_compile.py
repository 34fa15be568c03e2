"""The last layer for PyTorch under ``torch.compile`` and in several processes."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from structent.layers.torch import StructuredLinear
from structent.losses.torch import StructuredCrossEntropy
from structent.structure import catalog
from tests.layers.problems import STRUCTURES
from tests.layers.torch_programs import two_ranks
from tests.losses.test_torch_distributed import run_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requires("torch"),
    # torch's own, from the code that its compiler runs at import
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()


def step(layer, features, labels, function):
    layer.zero_grad()
    value = function(features, labels)
    value.backward()
    return value.detach(), [p.grad.clone() for p in layer.parameters()]


@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.requires("g++"))]
)
@pytest.mark.parametrize("name", ["cifar100", "a tree with many blocks"])
def test_the_layer_and_its_loss_compile_to_one_graph(name, backend):
    torch.manual_seed(0)
    structure = STRUCTURES[name]
    layer, loss = StructuredLinear(8, structure), StructuredCrossEntropy(structure)
    features, labels = torch.randn(16, 8), torch.randint(structure.n_classes, (16,))

    def eager(x, y):
        return loss(layer(x), y)

    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(eager, fullgraph=True, backend=counter)
    found = step(layer, features, labels, compiled)
    torch.testing.assert_close(found, step(layer, features, labels, eager))
    assert counter.frame_count == 1


def test_autocast_compiles():
    layer, features = StructuredLinear(8, catalog.cifar100()), torch.randn(4, 8)

    def outputs(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(x)

    compiled = torch.compile(outputs, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(features), outputs(features))


def test_two_ranks_have_the_gradients_of_one_process_on_all_rows(tmp_path):
    run_program(two_ranks.__name__, tmp_path)
    first, second = (torch.load(tmp_path / f"rank{rank}.pt") for rank in range(2))
    expected = two_ranks.train_in_one_process()
    for one, other, whole in zip(first, second, expected, strict=True):
        assert torch.equal(one["gradient"], other["gradient"])
        torch.testing.assert_close(one["gradient"], whole["gradient"], rtol=1e-12, atol=1e-14)
