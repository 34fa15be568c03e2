"""The PyTorch loss: torch's own where there is no structure, the reference where there is one."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812  as everybody calls it

from structent import (
    LabelError,
    SpanningTreePartitions,
    StructureError,
    hierarchy,
    mix,
    trivial,
)
from structent.kernels import reference
from structent.kernels.layout import Layout
from structent.losses.torch import StructuredCrossEntropy, structured_cross_entropy
from structent.losses.torch.dispatch import portable_losses_of_labels
from structent.structure import catalog
from tests.kernels.problems import EXTREME_LOGITS, problems

pytestmark = pytest.mark.requires("torch")

TOLERANCE = {
    torch.float32: {"rtol": 1e-6, "atol": 1e-6},
    torch.float64: {"rtol": 1e-12, "atol": 1e-12},
}
COUNTIES = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=1)
SHAPES = [(7,), (5, 7), (3, 7, 4), (2, 7, 3, 5), (0, 7)]


def value_and_gradient(loss, logits, *arguments, **options):
    z = logits.detach().clone().requires_grad_()
    value = loss(z, *arguments, **options)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), gradient


def assert_same(ours, theirs, dtype):
    for found, wanted in zip(ours, theirs, strict=True):
        assert found.dtype == wanted.dtype
        torch.testing.assert_close(found, wanted, equal_nan=True, **TOLERANCE[dtype])


def labels_for(shape, generator):
    rows = () if len(shape) == 1 else (shape[0], *shape[2:])
    return torch.randint(7, rows, generator=generator)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("reduction", "weighted", "smoothing"),
    list(itertools.product(["none", "mean", "sum"], [False, True], [0.0, 0.2])),
)
@pytest.mark.parametrize("kind", ["labels", "ignored labels", "probabilities"])
def test_the_trivial_structure_gives_what_torch_gives(
    dtype, shape, reduction, weighted, smoothing, kind
):
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(shape, generator=generator, dtype=dtype)
    target = labels_for(shape, generator)
    if kind == "ignored labels":
        target = torch.where(torch.rand(target.shape, generator=generator) < 0.4, 3, target)
    if kind == "probabilities":
        axis = 0 if len(shape) == 1 else 1
        target = torch.rand(shape, generator=generator, dtype=dtype).softmax(axis)
    options = {
        "weight": torch.rand(7, generator=generator, dtype=dtype) if weighted else None,
        "ignore_index": 3 if kind == "ignored labels" else -100,
        "reduction": reduction,
        "label_smoothing": smoothing,
    }
    ours = value_and_gradient(
        structured_cross_entropy, logits, target, trivial(range(7)), **options
    )
    theirs = value_and_gradient(F.cross_entropy, logits, target, **options)
    assert_same(ours, theirs, dtype)


def test_the_module_is_a_drop_in_for_that_of_torch():
    generator = torch.Generator().manual_seed(0)
    logits, target = torch.randn(9, 7, generator=generator), labels_for((9, 7), generator)
    options = {"weight": torch.rand(7), "label_smoothing": 0.1, "reduction": "sum"}
    ours = value_and_gradient(StructuredCrossEntropy(trivial(range(7)), **options), logits, target)
    theirs = value_and_gradient(torch.nn.CrossEntropyLoss(**options), logits, target)
    assert_same(ours, theirs, torch.float32)


def in_reference(structure, logits, labels):
    arguments = (logits.double().numpy(), labels.numpy(), structure.block_of, structure.weights)
    return (
        torch.from_numpy(reference.structured_cross_entropy_from_logits(*arguments, xp=np)),
        torch.from_numpy(reference.gradient_from_logits(*arguments, xp=np)),
    )


def portable(structure, logits, labels):
    layout = Layout.of(structure)
    losses, gradient, _ = portable_losses_of_labels(
        logits, labels, layout, None, -100, with_gradient=True
    )
    return losses, gradient


def fused(structure, logits, labels):
    return value_and_gradient(structured_cross_entropy, logits, labels, structure, reduction="none")


def soft(structure, logits, labels):
    one_hot = F.one_hot(labels, structure.n_classes).to(logits.dtype)
    return value_and_gradient(
        structured_cross_entropy, logits, one_hot, structure, reduction="none"
    )


PATHS = pytest.mark.parametrize("path", [fused, portable, soft])


def tree_of(n_classes, *n_groups):
    return hierarchy(
        {i: tuple(f"{n}:{i * n // n_classes}" for n in n_groups) for i in range(n_classes)}
    )


STRUCTURES = {
    "cifar100": catalog.cifar100(),
    "months": catalog.months(),
    "counties": COUNTIES.sample(0),
    "trivial": trivial(range(5)),
    "one class": trivial(["a"]),
    # More classes than the dense products take: a tree, and two trees, which form none.
    "wide tree": tree_of(700, 3, 20, 90),
    "wide mixture": mix([tree_of(600, 7), tree_of(600, 11, 50)]),
}


@PATHS
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_value_and_gradient_are_those_of_the_reference(path, dtype, structure):
    generator = torch.Generator().manual_seed(0)
    k = structure.n_classes
    logits = 3 * torch.randn(6, k, generator=generator, dtype=dtype)
    labels = torch.randint(k, (6,), generator=generator)
    for found, wanted in zip(
        path(structure, logits, labels), in_reference(structure, logits, labels), strict=True
    ):
        torch.testing.assert_close(found.double(), wanted, **TOLERANCE[dtype])


@PATHS
@given(problems(), st.sampled_from([torch.float32, torch.float64]))
def test_value_and_gradient_of_random_structures_are_those_of_the_reference(path, problem, dtype):
    structure, logits, labels = problem
    z, y = torch.from_numpy(logits).to(dtype), torch.from_numpy(labels)
    for found, wanted in zip(path(structure, z, y), in_reference(structure, z, y), strict=True):
        tolerance = {torch.float32: 4e-6, torch.float64: 1e-12}[dtype]
        torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


@PATHS
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS.keys())
def test_extreme_logits_give_the_exact_loss_and_a_finite_gradient(path, structure, case):
    logits, labels = map(torch.from_numpy, case(structure.n_classes))
    logits = logits.float()
    found_loss, found_gradient = path(structure, logits, labels)
    wanted_loss, wanted_gradient = in_reference(structure, logits, labels)
    torch.testing.assert_close(found_loss.double(), wanted_loss, rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(found_gradient.double(), wanted_gradient, rtol=2e-6, atol=2e-6)
    assert found_gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_accumulates_in_float32(dtype):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(64, 100, generator=generator).to(dtype)
    labels = torch.randint(100, (64,), generator=generator)
    value, gradient = value_and_gradient(
        structured_cross_entropy, logits, labels, catalog.cifar100()
    )
    assert value.dtype == gradient.dtype == dtype
    exact, exact_gradient = value_and_gradient(
        structured_cross_entropy, logits.float(), labels, catalog.cifar100()
    )
    assert value == exact.to(dtype)
    torch.testing.assert_close(gradient, exact_gradient.to(dtype))


def test_under_autocast_the_loss_is_float32():
    model, labels = torch.nn.Linear(8, 100), torch.randint(100, (5,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(torch.randn(5, 8))
        ours = StructuredCrossEntropy(trivial(range(100)))(logits, labels)
        theirs = F.cross_entropy(logits, labels)
    assert logits.dtype == torch.bfloat16
    assert ours.dtype == theirs.dtype == torch.float32
    torch.testing.assert_close(ours, theirs)
    ours.backward()
    assert model.weight.grad.isfinite().all()


def test_a_second_backward_through_a_kept_graph_gives_the_same_gradient():
    logits = torch.randn(6, 12, requires_grad=True)
    loss = structured_cross_entropy(logits, torch.arange(6), catalog.months())
    (first,) = torch.autograd.grad(loss, logits, retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(3 * loss, logits, retain_graph=True)
    torch.testing.assert_close(second, 3 * kept)
    loss.backward(retain_graph=True)
    loss.backward()
    torch.testing.assert_close(logits.grad, 2 * kept)
    torch.testing.assert_close(first, kept)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_gradient_can_be_differentiated(reduction):
    torch.manual_seed(0)
    logits = torch.randn(3, 12, dtype=torch.float64, requires_grad=True)
    labels, weight = torch.tensor([0, 5, 11]), torch.rand(12, dtype=torch.float64)

    def loss(z):
        return structured_cross_entropy(
            z, labels, catalog.months(), reduction=reduction, weight=weight
        )

    assert torch.autograd.gradcheck(loss, logits)
    assert torch.autograd.gradgradcheck(loss, logits)


def test_probabilities_can_be_learned_too():
    logits = torch.randn(3, 12, dtype=torch.float64)
    distributions = torch.rand(3, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda p: structured_cross_entropy(logits, p, catalog.months()), distributions
    )


def test_nan_stays_in_its_row():
    logits = torch.zeros(3, 12)
    logits[1, 4] = torch.nan
    for path in (fused, portable):
        losses, gradient = path(catalog.months(), logits, torch.tensor([0, 1, 2]))
        assert losses.isnan().tolist() == [False, True, False]
        assert gradient.isnan().all(dim=1).tolist() == [False, True, False]


def test_logits_in_any_memory_order_give_the_same():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 12, 5, 6, generator=generator)
    labels = torch.randint(12, (4, 5, 6), generator=generator)
    wanted = value_and_gradient(structured_cross_entropy, logits, labels, catalog.months())
    channels_last = logits.contiguous(memory_format=torch.channels_last)
    found = value_and_gradient(structured_cross_entropy, channels_last, labels, catalog.months())
    assert_same(found, wanted, torch.float32)


def test_threads_follow_torch():
    logits, labels = torch.randn(3000, 100), torch.randint(100, (3000,))
    before = torch.get_num_threads()
    results = []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        results.append(
            value_and_gradient(structured_cross_entropy, logits, labels, catalog.cifar100())
        )
    torch.set_num_threads(before)
    assert_same(*results, torch.float32)


# A structure that changes with every step


def test_a_sampler_draws_a_new_partition_at_each_training_step():
    loss = StructuredCrossEntropy(COUNTIES)
    logits, labels = torch.randn(6, 58), torch.randint(58, (6,))
    found = [loss(logits, labels) for _ in range(5)]
    wanted = [structured_cross_entropy(logits, labels, COUNTIES.sample(i)) for i in range(5)]
    torch.testing.assert_close(found, wanted)
    assert len({float(value) for value in found}) == 5
    assert int(loss.step) == 5


def test_in_evaluation_nothing_is_drawn():
    logits, labels = torch.randn(6, 58), torch.randint(58, (6,))
    loss = StructuredCrossEntropy(COUNTIES).eval()
    torch.testing.assert_close(loss(logits, labels), F.cross_entropy(logits, labels))
    named = StructuredCrossEntropy(COUNTIES, eval_structure=COUNTIES.sample(7)).eval()
    torch.testing.assert_close(
        named(logits, labels), structured_cross_entropy(logits, labels, COUNTIES.sample(7))
    )
    assert int(loss.step) == int(named.step) == 0


def test_level_losses_are_those_of_each_level():
    logits, labels = torch.randn(6, 100), torch.randint(100, (6,))
    cifar = catalog.cifar100()
    found = StructuredCrossEntropy(cifar).level_losses(logits, labels)
    assert list(found) == ["supercategory", "category", "superclass", "class"]
    torch.testing.assert_close(found["class"], F.cross_entropy(logits, labels))
    superclass = torch.tensor(cifar.levels["superclass"][0].block_of.tolist())
    in_blocks = torch.zeros(6, 20).index_add_(1, superclass, logits.softmax(1)).log()
    torch.testing.assert_close(found["superclass"], F.nll_loss(in_blocks, superclass[labels]))
    mean = torch.stack(list(found.values())).mean()
    torch.testing.assert_close(mean, structured_cross_entropy(logits, labels, cifar))


# Bad input


def zeros(*shape):
    return torch.zeros(shape)


def labels(*shape):
    return torch.zeros(shape, dtype=torch.int64)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((zeros(2, 11), labels(2)), StructureError, "12 classes but logits have 11"),
        ((labels(2, 12), labels(2)), StructureError, "floating-point numbers"),
        ((torch.tensor(1.0), torch.tensor(0)), StructureError, "an axis of classes"),
        ((zeros(2, 12), torch.tensor([0, 12])), LabelError, "between 0 and 11, got 12 in row 1"),
        ((zeros(2, 12), torch.tensor([-1, 0])), LabelError, "between 0 and 11, got -1 in row 0"),
        ((zeros(2, 12), labels(3)), LabelError, r"must have shape \(2,\) for logits"),
        ((zeros(2, 12), zeros(2, 11)), LabelError, r"shape \(2, 12\) for logits"),
        ((zeros(2, 12), zeros(2)), LabelError, "distributions have the logits' shape"),
        ((zeros(2, 12, 3), labels(2)), LabelError, r"must have shape \(2, 3\)"),
        ((zeros(12), labels(1)), LabelError, r"must have shape \(\)"),
        ((zeros(2, 12), labels(2, 1)), LabelError, r"must have shape \(2,\) for logits"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        structured_cross_entropy(*arguments, catalog.months())
    with pytest.raises(error, match=message):
        StructuredCrossEntropy(catalog.months())(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "avg"}, "reduction must be one of"),
        ({"label_smoothing": 1.5}, "label_smoothing must be between 0 and 1"),
        ({"weight": torch.ones(11)}, "one entry for each of the 12 classes"),
        ({"weight": torch.tensor([1.0] * 11 + [torch.inf])}, "finite numbers"),
        ({"weight": torch.tensor([1.0] * 11 + [torch.nan])}, "finite numbers"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(StructureError, match=message):
        StructuredCrossEntropy(catalog.months(), **options)
    with pytest.raises(StructureError, match=message):
        structured_cross_entropy(torch.zeros(1, 12), torch.tensor([0]), catalog.months(), **options)


def test_wrong_structures_are_refused():
    with pytest.raises(StructureError, match=r"got SpanningTreePartitions; give sampler\.sample"):
        structured_cross_entropy(torch.zeros(1, 58), torch.tensor([0]), COUNTIES)
    with pytest.raises(StructureError, match=r"RandomPartition, or a sampler .* got list"):
        StructuredCrossEntropy([1, 2])
    with pytest.raises(StructureError, match="eval_structure goes with a sampler"):
        StructuredCrossEntropy(catalog.months(), eval_structure=catalog.months())
    with pytest.raises(StructureError, match="must have the classes of the sampler"):
        StructuredCrossEntropy(COUNTIES, eval_structure=catalog.months())
    with pytest.raises(StructureError, match="eval_structure must be a RandomPartition, got Spann"):
        StructuredCrossEntropy(COUNTIES, eval_structure=COUNTIES)


def test_labels_that_are_no_class_are_refused_with_smoothing_too():
    with pytest.raises(LabelError, match="between 0 and 11, got 12"):
        structured_cross_entropy(
            torch.zeros(1, 12), torch.tensor([12]), catalog.months(), label_smoothing=0.1
        )


def test_a_module_can_be_made_on_the_meta_device():
    with torch.device("meta"):
        loss = StructuredCrossEntropy(COUNTIES, weight=torch.ones(58))
    assert loss.weight.is_meta
    assert int(loss.step) == 0


def test_the_module_prints_what_it_is():
    assert "RandomPartition of 12 classes" in repr(StructuredCrossEntropy(catalog.months()))


# Transforms of torch.func


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}])
def test_gradients_of_single_rows_are_those_of_a_loop(options):
    loss = StructuredCrossEntropy(catalog.months(), **options)
    logits, labels = torch.randn(5, 12, dtype=torch.float64), torch.tensor([0, 3, 11, 3, 7])
    one_by_one = []
    for row, label in zip(logits, labels, strict=True):
        alone = row.clone().requires_grad_()
        one_by_one += torch.autograd.grad(loss(alone, label), alone)
    at_once = torch.vmap(torch.func.grad(loss))(logits, labels)
    torch.testing.assert_close(at_once, torch.stack(one_by_one))


# Torch's own derivatives forwards are written in what torch deprecates.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_a_transform_gives_the_hessian():
    loss = StructuredCrossEntropy(catalog.months(), reduction="sum")
    logits, labels = torch.randn(2, 12, dtype=torch.float64), torch.tensor([0, 3])
    expected = torch.autograd.functional.hessian(lambda z: loss(z, labels), logits)
    found = torch.func.hessian(lambda z: loss(z, labels))(logits)
    torch.testing.assert_close(found, expected)


def test_a_wrong_label_shows_where_transforms_do_not_let_it_be_looked_at():
    loss = StructuredCrossEntropy(catalog.months())
    losses = torch.vmap(loss)(torch.zeros(2, 12), torch.tensor([3, 12]))
    assert torch.isnan(losses).tolist() == [False, True]
