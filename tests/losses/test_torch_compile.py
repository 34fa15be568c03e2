"""The PyTorch loss under ``torch.compile``: the same numbers, one graph, nothing frozen."""

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from structent import FixedStructure, SpanningTreePartitions, hierarchy
from structent.losses.torch import StructuredCrossEntropy, structured_cross_entropy
from structent.losses.torch.operator import (
    Registered,
    distributions_operator,
    draw_partition,
    labels_operator,
)
from structent.structure import catalog

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requires("torch"),
    # torch's own, from the code that its compiler runs at import
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

COUNTIES = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=2)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()


def steps(loss, logits, *arguments):
    z = logits.detach().clone().requires_grad_()
    value = loss(z, *arguments)
    value.sum().backward()
    return value.detach(), z.grad


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(100,), (6, 100), (2, 100, 5)], ids=str)
@pytest.mark.parametrize("options", [{}, {"weight": torch.rand(100)}, {"label_smoothing": 0.1}])
def test_the_compiled_loss_is_the_eager_one(reduction, shape, options):
    torch.manual_seed(0)
    loss = StructuredCrossEntropy(
        catalog.cifar100(), reduction=reduction, ignore_index=3, **options
    )
    rows = () if len(shape) == 1 else (shape[0], *shape[2:])
    logits, target = torch.randn(shape), torch.randint(100, rows)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(steps(compiled, logits, target), steps(loss, logits, target))


def test_the_compiled_loss_of_probabilities_is_the_eager_one():
    loss = StructuredCrossEntropy(catalog.months())
    logits, target = torch.randn(5, 12), torch.rand(5, 12).softmax(1)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(steps(compiled, logits, target), steps(loss, logits, target))


def test_the_function_compiles_too():
    structure, labels = catalog.months(), torch.tensor([0, 5, 11])
    logits = torch.randn(3, 12)

    def loss(z):
        return structured_cross_entropy(z, labels, structure)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(steps(compiled, logits), steps(loss, logits))


@pytest.mark.requires("g++")
def test_a_model_and_its_loss_compile_to_one_graph_with_the_default_backend():
    torch.manual_seed(0)
    model, loss = torch.nn.Linear(8, 100), StructuredCrossEntropy(catalog.cifar100())
    features, labels = torch.randn(16, 8), torch.randint(100, (16,))

    def step():
        model.zero_grad()
        return loss(model(features), labels)

    counter = CompileCounterWithBackend("inductor")
    value = torch.compile(step, fullgraph=True, backend=counter)()
    value.backward()
    gradient = model.weight.grad.clone()
    eager = step()
    eager.backward()
    torch.testing.assert_close(value, eager)
    torch.testing.assert_close(gradient, model.weight.grad)
    assert counter.frame_count == 1


def test_fifty_steps_see_fifty_partitions_with_one_compilation():
    torch.manual_seed(0)
    loss = StructuredCrossEntropy(COUNTIES)
    logits, labels = torch.randn(4, 58), torch.randint(58, (4,))
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(loss, fullgraph=True, backend=counter)
    found = [steps(compiled, logits, labels) for _ in range(50)]
    wanted = [
        steps(structured_cross_entropy, logits, labels, COUNTIES.sample(i)) for i in range(50)
    ]
    torch.testing.assert_close(found, wanted)
    assert len({float(value) for value, _ in found}) == 50
    assert counter.frame_count == 1
    assert int(loss.step) == 50


def test_low_precision_compiles():
    loss = StructuredCrossEntropy(catalog.months())
    logits, labels = torch.randn(5, 12).bfloat16(), torch.randint(12, (5,))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    value, gradient = steps(compiled, logits, labels)
    assert value.dtype == gradient.dtype == torch.bfloat16
    torch.testing.assert_close((value, gradient), steps(loss, logits, labels))


def test_the_operators_keep_the_rules_of_torch():
    structure = catalog.months()
    block_of, weights = (
        torch.tensor(structure.block_of.tolist()).int(),
        torch.tensor([0.1, 0.2, 0.3, 0.4]).double(),
    )
    logits = torch.randn(4, 12, dtype=torch.float64, requires_grad=True)
    target, distributions = torch.randint(12, (4,)), torch.rand(4, 12, dtype=torch.float64)
    torch.library.opcheck(labels_operator, (logits, target, block_of, weights, None, -100, True))
    torch.library.opcheck(distributions_operator, (logits, distributions, block_of, weights, True))
    registered = Registered(COUNTIES)
    torch.library.opcheck(draw_partition, (torch.tensor(3), registered.number, 2))


def test_a_sampler_that_draws_another_number_of_partitions_is_refused():
    registered = Registered(FixedStructure(catalog.months()))
    with pytest.raises(RuntimeError, match="must draw 2 partitions at every step, got 4"):
        draw_partition(torch.tensor(0), registered.number, 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_converted_module_compiles_and_keeps_the_digits_of_its_structure(dtype):
    loss = StructuredCrossEntropy(catalog.months())
    logits, labels = torch.randn(6, 12), torch.randint(12, (6,))
    wanted = loss(logits, labels)
    compiled = torch.compile(loss.to(dtype), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, labels), wanted)


class SlottedSampler:
    """A sampler that no weak reference can be made to."""

    __slots__ = ()
    classes = catalog.months().classes

    def sample(self, iteration):
        return catalog.months(singleton_weight=1 / (1 + iteration))


def test_any_sampler_compiles():
    loss = StructuredCrossEntropy(SlottedSampler())
    logits, labels = torch.randn(6, 12), torch.randint(12, (6,))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = [compiled(logits, labels) for _ in range(3)]
    samples = [SlottedSampler().sample(i) for i in range(3)]
    wanted = [structured_cross_entropy(logits, labels, sample) for sample in samples]
    torch.testing.assert_close(found, wanted)


def test_a_structure_with_another_memory_order_is_the_same():
    tree = hierarchy({i: (i % 3,) for i in range(12)})
    block_of = torch.from_numpy(np.array(tree.block_of, order="F"))
    weights = torch.tensor(tree.weights.tolist(), dtype=torch.float64)
    logits, labels = torch.randn(4, 12), torch.randint(12, (4,))
    losses, _, _ = labels_operator(logits, labels, block_of, weights, None, -100, False)
    wanted = structured_cross_entropy(logits, labels, tree, reduction="none")
    torch.testing.assert_close(losses, wanted)
