"""The PyTorch loss of rows that are labelled by classes, blocks and sets of classes."""

import copy
import itertools

import numpy as np
import pytest
import torch

from structent import LabelError, SpanningTreePartitions, hierarchy, trivial
from structent.kernels import reference
from structent.losses.torch import StructuredCrossEntropy, structured_cross_entropy
from structent.structure import catalog
from tests.kernels.problems import members_of

pytestmark = [
    pytest.mark.requires("torch"),
    # torch's own, from the code that its compiler runs at import
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

PLANTS = hierarchy(
    {
        "oak": ("plant", "tree"),
        "maple": ("plant", "tree"),
        "rose": ("plant", "flower"),
        "daisy": ("plant", "flower"),
        "trout": ("animal", "fish"),
    }
)
LABELS = ["oak", "tree", "plant", {"rose", "trout"}, "daisy", "flower", set(PLANTS.classes)]
LABEL_SETS = PLANTS.encode_with_blocks(LABELS)
CODES = torch.from_numpy(LABEL_SETS.codes)
MEMBERS = members_of(LABEL_SETS.coarse_sets, 5)
SHAPES = [(5,), (7, 5), (2, 5, 7), (1, 5, 7, 2)]


def problem(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = () if len(shape) == 1 else (shape[0], *shape[2:])
    logits = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return logits, CODES[torch.randint(len(CODES), rows, generator=generator)]


def by_reference(logits, codes, structure=PLANTS, *, weight=None, smoothing=0.0, ignored=-100):
    """The loss of each row times its weight, and the weights, in the shape of the codes."""
    z = logits.movedim(1, -1).reshape(-1, 5).numpy() if logits.dim() > 1 else logits[None].numpy()
    flat = codes.reshape(-1).numpy()
    known = np.where(flat == ignored, 0, flat)
    arguments = (structure.block_of, structure.weights)
    losses = reference.structured_cross_entropy_from_logits(
        z, known, *arguments, xp=np, members=MEMBERS
    )
    class_weights = np.ones(5) if weight is None else weight.numpy()
    rows = (MEMBERS[known] * class_weights).sum(axis=1) / MEMBERS[known].sum(axis=1)
    of_classes = reference.structured_cross_entropy_of_distributions(
        z, np.broadcast_to(class_weights / 5, z.shape), *arguments, xp=np
    )
    value = (1 - smoothing) * rows * losses + smoothing * of_classes
    kept = flat != ignored
    return tuple(torch.from_numpy(x * kept).reshape(codes.shape) for x in (value, rows))


def reduced(losses, rows, reduction):
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / rows.sum()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("reduction", "weighted", "smoothing", "ignored"),
    list(itertools.product(["none", "mean", "sum"], [False, True], [0.0, 0.2], [-100, 0])),
)
def test_every_option_is_that_of_the_reference(shape, reduction, weighted, smoothing, ignored):
    logits, codes = problem(shape)
    weight = torch.rand(5, dtype=torch.float64) if weighted else None
    found = structured_cross_entropy(
        logits, codes, PLANTS, weight=weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=smoothing, label_sets=LABEL_SETS,
    )  # fmt: skip
    losses, rows = by_reference(logits, codes, weight=weight, smoothing=smoothing, ignored=ignored)
    torch.testing.assert_close(found, reduced(losses, rows, reduction))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "options", [{}, {"weight": torch.rand(5, dtype=torch.float64), "label_smoothing": 0.1}]
)
def test_gradients_are_those_of_finite_differences_and_can_be_differentiated(reduction, options):
    logits, codes = problem((3, 5, 2))

    def loss(z):
        return structured_cross_entropy(
            z, codes, PLANTS, reduction=reduction, label_sets=LABEL_SETS, **options
        )

    assert torch.autograd.gradcheck(loss, logits.requires_grad_())
    assert torch.autograd.gradgradcheck(loss, logits)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.2}, {"weight": torch.rand(5)}])
def test_classes_alone_have_the_loss_they_have_without_label_sets(options):
    logits, labels = torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4, 0])
    with_sets = structured_cross_entropy(logits, labels, PLANTS, label_sets=LABEL_SETS, **options)
    without = structured_cross_entropy(logits, labels, PLANTS, **options)
    torch.testing.assert_close(with_sets, without)


def test_a_second_backward_through_a_kept_graph_gives_the_same_gradient():
    logits, codes = problem((7, 5))
    logits.requires_grad_()
    loss = structured_cross_entropy(logits, codes, PLANTS, label_sets=LABEL_SETS)
    first, second = (torch.autograd.grad(loss, logits, retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(first, second)


def test_the_module_is_the_function_and_so_is_its_copy():
    logits, codes = problem((7, 5))
    module = StructuredCrossEntropy(PLANTS, label_sets=LABEL_SETS)
    for loss in (module, copy.deepcopy(module)):
        expected = structured_cross_entropy(logits, codes, PLANTS, label_sets=LABEL_SETS)
        torch.testing.assert_close(loss(logits, codes), expected)
    levels = module.level_losses(logits, codes)
    wanted = sum(
        PLANTS.weights[[p in PLANTS.levels[name] for p in PLANTS.partitions]].sum() * value
        for name, value in levels.items()
    )
    torch.testing.assert_close(module(logits, codes), wanted)


def test_a_sampler_draws_for_sets_too():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    some = [{sampler.classes[0], sampler.classes[3]}, sampler.classes[5]]
    label_sets = trivial(sampler.classes).encode_with_blocks(some)
    loss = StructuredCrossEntropy(sampler, label_sets=label_sets)
    logits, codes = torch.randn(2, 58), torch.from_numpy(label_sets.codes)
    for step in range(3):
        expected = structured_cross_entropy(
            logits, codes, sampler.sample(step), label_sets=label_sets
        )
        torch.testing.assert_close(loss(logits, codes), expected)
    plain = structured_cross_entropy(logits, codes, trivial(sampler.classes), label_sets=label_sets)
    torch.testing.assert_close(loss.eval()(logits, codes), plain)


@pytest.mark.parametrize(
    "options", [{}, {"weight": torch.rand(5, dtype=torch.float64)}, {"label_smoothing": 0.1}]
)
def test_the_compiled_loss_is_the_eager_one(options):
    torch.compiler.reset()
    logits, codes = problem((2, 5, 7))
    loss = StructuredCrossEntropy(PLANTS, ignore_index=0, label_sets=LABEL_SETS, **options)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found, expected = (
        torch.autograd.functional.vjp(lambda z, f=f: f(z, codes), logits) for f in (compiled, loss)
    )
    torch.testing.assert_close(found, expected)


def test_the_function_compiles_too():
    torch.compiler.reset()
    logits, codes = problem((7, 5))
    compiled = torch.compile(
        lambda z, y: structured_cross_entropy(z, y, PLANTS, label_sets=LABEL_SETS),
        fullgraph=True,
        backend="aot_eager",
    )
    expected = structured_cross_entropy(logits, codes, PLANTS, label_sets=LABEL_SETS)
    torch.testing.assert_close(compiled(logits, codes), expected)


def test_a_compiled_sampler_draws_for_sets_too():
    torch.compiler.reset()
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    some = [{sampler.classes[0], sampler.classes[3]}, sampler.classes[5]]
    label_sets = trivial(sampler.classes).encode_with_blocks(some)
    loss = torch.compile(
        StructuredCrossEntropy(sampler, label_sets=label_sets), fullgraph=True, backend="aot_eager"
    )
    logits, codes = torch.randn(2, 58), torch.from_numpy(label_sets.codes)
    for step in range(3):
        expected = structured_cross_entropy(
            logits, codes, sampler.sample(step), label_sets=label_sets
        )
        torch.testing.assert_close(loss(logits, codes), expected)


def test_distributions_beside_label_sets_are_refused():
    with pytest.raises(LabelError, match=r"codes of label_sets= as integers, got torch\.float32"):
        structured_cross_entropy(
            torch.zeros(2, 5), torch.ones(2, 5) / 5, PLANTS, label_sets=LABEL_SETS
        )
    with pytest.raises(LabelError, match="leave label_sets out"):
        StructuredCrossEntropy(PLANTS, label_sets=LABEL_SETS)(
            torch.zeros(2, 5), torch.ones(2, 5) / 5
        )


def test_the_module_refuses_label_sets_of_another_structure():
    with pytest.raises(LabelError, match=r"12 classes of the structure .* got 5 classes"):
        StructuredCrossEntropy(catalog.months(), label_sets=LABEL_SETS)


def test_a_code_beyond_the_table_is_refused_with_smoothing_too():
    last = len(LABEL_SETS.sets) - 1
    with pytest.raises(LabelError, match=f"between 0 and {last}, got {last + 1}"):
        structured_cross_entropy(
            torch.zeros(1, 5), torch.tensor([last + 1]), PLANTS, label_sets=LABEL_SETS,
            label_smoothing=0.1,
        )  # fmt: skip
