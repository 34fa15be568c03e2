"""The PyTorch loss off the CPU: no step looks at numbers on the device, nothing is built twice.

There is no such device here, but tensors on "meta" have no numbers at all: whoever looks at them
gets an error, where a real device would have to be waited for.
"""

import gc

import pytest
import torch

from structent import SpanningTreePartitions, circular, hierarchy, ordinal
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.losses.torch import StructuredCrossEntropy, dispatch, structured_cross_entropy
from structent.structure import catalog

pytestmark = [
    pytest.mark.requires("torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's own, of its compiler
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

TREE = hierarchy({f"c{i}": (f"g{i // 4}", f"s{i // 2}") for i in range(12)})
STRUCTURES = {"tree": TREE, "circle": circular(range(12), width=3), "order": ordinal(range(12))}
SETS = TREE.encode_with_blocks(["c0", "g1", "s1", "c11"])
COUNTIES = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=2)
OPTIONS = {
    "nothing": {}, "weight": {"weight": torch.arange(1.0, 13.0)}, "none": {"reduction": "none"},
    "sum": {"reduction": "sum"}, "smoothing": {"label_smoothing": 0.1},
    "all": {"weight": torch.arange(1.0, 13.0), "label_smoothing": 0.2, "ignore_index": 3},
}  # fmt: skip


def train_and_differentiate_twice(loss, logits, target):
    value = loss(logits, target)
    value.sum().backward(retain_graph=True)
    (value.sum() * 2).backward()
    (gradient,) = torch.autograd.grad(loss(logits, target).sum(), logits, create_graph=True)
    gradient.square().sum().backward()
    return value


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
@pytest.mark.parametrize("kind", ["labels", "pixels", "distributions"])
def test_no_step_looks_at_the_device(structure, options, kind):
    shape = (4, 12, 5) if kind == "pixels" else (4, 12)
    logits = torch.empty(shape, device="meta", requires_grad=True)
    target = torch.empty((4, *shape[2:]), dtype=torch.int64, device="meta")
    if kind == "distributions":
        target = torch.empty(shape, device="meta")
    loss = StructuredCrossEntropy(structure, **options).to("meta")
    value = train_and_differentiate_twice(loss, logits, target)
    assert value.is_meta
    with torch.no_grad():
        loss(logits, target)
    weight = {"weight": loss.weight} if "weight" in options else {}
    structured_cross_entropy(logits, target, structure, **{**options, **weight})


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_no_step_with_sets_of_classes_looks_at_the_device(options):
    logits = torch.empty((4, 12), device="meta", requires_grad=True)
    codes = torch.empty(4, dtype=torch.int64, device="meta")
    loss = StructuredCrossEntropy(TREE, label_sets=SETS, **options).to("meta")
    train_and_differentiate_twice(loss, logits, codes)


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
@pytest.mark.parametrize("wrong", [-3, 12])
def test_a_wrong_label_whose_value_cannot_be_read_gives_nan(monkeypatch, structure, wrong):
    monkeypatch.setattr(dispatch, "check_labels", lambda *_: None)
    losses, gradient, total = dispatch.portable_losses_of_labels(
        torch.zeros(3, 12), torch.tensor([0, wrong, 5]), Layout.of(structure), None, 5,
        with_gradient=True,
    )  # fmt: skip
    assert torch.isnan(losses).tolist() == [False, True, False]
    assert torch.isnan(gradient).any(dim=1).tolist() == [False, True, False]
    assert torch.isnan(total)


def test_a_sampler_draws_without_a_look_at_the_device():
    loss = StructuredCrossEntropy(COUNTIES).to("meta")
    logits = torch.empty((4, 58), device="meta", requires_grad=True)
    target = torch.empty(4, dtype=torch.int64, device="meta")
    for _ in range(3):
        loss(logits, target).backward()
    assert int(loss.step) == 3  # it stayed on the CPU
    assert int(loss.state_dict()["step"]) == 3


@pytest.mark.parametrize("in_half", [torch.float16, torch.bfloat16])
def test_neither_does_half_precision(in_half):
    logits = torch.empty((4, 12), device="meta", dtype=in_half, requires_grad=True)
    target = torch.empty(4, dtype=torch.int64, device="meta")
    train_and_differentiate_twice(StructuredCrossEntropy(TREE), logits, target)


def test_copies_on_a_device_are_made_once_and_go_with_their_layout():
    loss = StructuredCrossEntropy(circular(range(30), width=7))
    logits = torch.empty((4, 30), device="meta", requires_grad=True)
    target = torch.empty(4, dtype=torch.int64, device="meta")
    loss(logits, target)
    copy = dispatch.tensor_layout_of(loss.layout, logits.device)
    loss(logits, target)
    assert dispatch.tensor_layout_of(loss.layout, logits.device) is copy
    drawn = StructuredCrossEntropy(COUNTIES)
    gc.collect()
    before = len(dispatch._copies)
    for _ in range(100):
        drawn(torch.empty((4, 58), device="meta", requires_grad=True), target)
    gc.collect()
    assert len(dispatch._copies) == before


def counted(monkeypatch, owner, name):
    calls, made = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given: calls.append(given) or made(*given))
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("of_sets", [False, True])
def test_a_compiled_step_builds_no_layout(monkeypatch, of_sets):
    torch.compiler.reset()
    loss = StructuredCrossEntropy(TREE, label_sets=SETS if of_sets else None)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    logits, target = torch.randn(4, 12, requires_grad=True), torch.tensor([0, 3, 5, 11])
    compiled(logits, target).backward()
    layouts = counted(monkeypatch, Layout, "from_arrays")
    coarse = counted(monkeypatch, CoarseLayouts, "of")
    for _ in range(5):
        compiled(logits, target).backward()
    assert not layouts
    assert not coarse


@pytest.mark.slow
def test_a_compiled_sampler_builds_one_layout_for_each_partition(monkeypatch):
    torch.compiler.reset()
    loss = StructuredCrossEntropy(COUNTIES)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    logits, target = torch.randn(4, 58, requires_grad=True), torch.randint(58, (4,))
    compiled(logits, target).backward()
    layouts = counted(monkeypatch, Layout, "from_arrays")
    for _ in range(5):
        compiled(logits, target).backward()
    assert len(layouts) == 5
