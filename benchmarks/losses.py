"""The PyTorch loss, forward and backward, against ``torch.nn.functional.cross_entropy``."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import keras
import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812  as everybody calls it

from benchmarks.taxonomy import taxonomy
from benchmarks.timing import goal, interleaved_medians, ratio
from structent import PartitionSampler, RandomPartition, SpanningTreePartitions
from structent.kernels.layout import Layout
from structent.losses.keras import StructuredCrossEntropy as KerasStructuredCrossEntropy
from structent.losses.torch import StructuredCrossEntropy, structured_cross_entropy
from structent.losses.torch.dispatch import portable_losses_of_labels
from structent.structure.catalog import california_counties, cifar100, months

TITLE = "The loss in PyTorch, forward and backward"
MISSES = """Why goals are missed:

- (256, 100): two fifths of the time are the kernel, a third is an autograd function that does
  nothing, a fifth is our Python; `F.cross_entropy` has no Python at all. Tried: one compiled call
  in place of two, addresses in place of arrays, `apply` without its search for transforms (1.44
  before).
- (512, 1000) and (256, 10000): our time is mostly exponentials. How fast torch's own are depends on
  the processor: on other machines the same rows were 0.71 to 0.93 and 0.40 to 0.77.
- Counties: every call draws a partition and pools equal ones, which is a fifth of the time. Tried:
  a hash table for equal partitions, compiled pooling (1.82 before).
- Segmentation: classes are not neighbours in memory, so tiles of 64 pixels are gathered and
  scattered. Torch walks along the pixels. Other machines: 0.96 to 1.34.
- Torch operations alone are what a GPU runs. There each block keeps its largest logit, so that
  nothing has to be checked on the host; on a CPU this is slow, and not used."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield case, structent's time, torch's time, and the ratio with its goal."""
    torch.set_num_threads(1)
    deep = taxonomy(1000, (500, 250, 125, 64, 32, 16, 8))
    wide = taxonomy(10_000, (3000, 1000, 300, 100, 30, 8))
    counties = SpanningTreePartitions(california_counties(), 10, 0.5)
    yield _row("(256, 100), CIFAR-100 hierarchy", cifar100(), (256, 100), 1.1)
    yield _row("(1024, 12), months", months(), (1024, 12), 1.3)
    yield _row("(512, 1000), tree of depth 8", deep, (512, 1000), 0.75)
    yield _row("(256, 10000), taxonomy of 7 levels, any order", wide, (256, 10_000), 0.55)
    yield _module_row("(1024, 58), counties, a new partition each call", counties, (1024, 58), 1.45)
    yield _row("(4, 100, 64, 64), segmentation", cifar100(), (4, 100, 64, 64), 1.0)
    yield _portable("(256, 10000), torch operations alone", wide, (256, 10_000), 2.0)
    yield _evaluation("(256, 10000), no gradient", wide, (256, 10_000))
    yield _threads("(256, 10000), two threads against one", wide, (256, 10_000))
    yield _keras("(256, 100), Keras on torch, against its own loss", cifar100(), (256, 100))
    yield _module_row("(256, 100), module against module", cifar100(), (256, 100), 1.1)
    yield _memory("(1024, 10000), extra memory of a step, logits = 1")


def _problem(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator, requires_grad=True)
    return logits, torch.randint(shape[1], (shape[0], *shape[2:]), generator=generator)


def _training_step(loss: Callable[..., torch.Tensor], shape: tuple[int, ...]) -> Callable[[], None]:
    logits, target = _problem(shape)

    def step() -> None:
        logits.grad = None
        loss(logits, target).backward()

    return step


def _compared(
    case: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    at_most: float,
    shape: tuple[int, ...],
) -> tuple[str, str, str, str]:
    rounds = max(15, min(400, int(4e7 / np.prod(shape))))
    seconds = interleaved_medians({"ours": ours, "peer": peer}, rounds=rounds)
    return (
        case,
        f"{seconds['ours'] * 1e6:,.0f} us",
        f"{seconds['peer'] * 1e6:,.0f} us",
        ratio(seconds["ours"], seconds["peer"], at_most),
    )


def _row(
    case: str, structure: RandomPartition, shape: tuple[int, ...], at_most: float
) -> tuple[str, str, str, str]:
    """Compare function with function."""
    ours = _training_step(partial(structured_cross_entropy, structure=structure), shape)
    peer = _training_step(F.cross_entropy, shape)
    return _compared(case, ours, peer, at_most, shape)


def _module_row(
    case: str,
    structure: RandomPartition | PartitionSampler,
    shape: tuple[int, ...],
    at_most: float,
) -> tuple[str, str, str, str]:
    """Compare module with module."""
    ours = _training_step(StructuredCrossEntropy(structure), shape)
    peer = _training_step(torch.nn.CrossEntropyLoss(), shape)
    return _compared(case, ours, peer, at_most, shape)


def _keras(
    case: str, structure: RandomPartition, shape: tuple[int, ...]
) -> tuple[str, str, str, str]:
    own = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    structured = KerasStructuredCrossEntropy(structure)
    ours = _training_step(lambda logits, labels: structured(labels, logits), shape)
    peer = _training_step(lambda logits, labels: own(labels, logits), shape)
    return _compared(case, ours, peer, 1.4, shape)


def _portable(
    case: str, structure: RandomPartition, shape: tuple[int, ...], at_most: float
) -> tuple[str, str, str, str]:
    logits, labels = _problem(shape)
    layout = Layout.of(structure)

    def ours() -> None:
        portable_losses_of_labels(
            logits, labels, layout, None, -100, with_gradient=True, of_mean=True
        )

    peer = _training_step(F.cross_entropy, shape)
    return _compared(case, ours, peer, at_most, shape)


def _evaluation(
    case: str, structure: RandomPartition, shape: tuple[int, ...]
) -> tuple[str, str, str, str]:
    logits, labels = _problem(shape)
    loss = StructuredCrossEntropy(structure).eval()

    def without_gradient(function: Callable[..., object]) -> Callable[[], None]:
        def run() -> None:
            with torch.no_grad():
                function(logits, labels)

        return run

    ours, peer = without_gradient(loss), without_gradient(F.cross_entropy)
    return _compared(case, ours, peer, 1.0, shape)


def _threads(
    case: str, structure: RandomPartition, shape: tuple[int, ...]
) -> tuple[str, str, str, str]:
    step = _training_step(StructuredCrossEntropy(structure), shape)

    def two() -> None:
        torch.set_num_threads(2)
        step()
        torch.set_num_threads(1)

    return _compared(case, two, step, 1.0, shape)


_PEAK = """
import gc, re, torch
from pathlib import Path
from benchmarks.taxonomy import taxonomy
from structent.losses.torch import structured_cross_entropy
wide = taxonomy(10_000, (3000, 1000, 300, 100, 30, 8))
loss = (lambda z, y: structured_cross_entropy(z, y, wide)) if {ours} else (
    torch.nn.functional.cross_entropy)
torch.set_num_threads(1)
loss(torch.zeros(2, 10_000, requires_grad=True), torch.zeros(2).long()).backward()
logits, labels = torch.randn(1024, 10_000, requires_grad=True), torch.randint(10_000, (1024,))
gc.collect()
def memory(kind):
    found = re.search(kind + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024
Path("/proc/self/clear_refs").write_text("5")  # resets the peak
before = memory("VmRSS")
loss(logits, labels).backward()
print((memory("VmHWM") - before) / logits.nbytes)
"""


def _memory(case: str) -> tuple[str, str, str, str]:
    """Return the peak memory of one step, with the returned gradient, in units of the logits."""
    ours, peer = (
        float(
            subprocess.run(
                [sys.executable, "-c", _PEAK.format(ours=ours)],
                capture_output=True, text=True, check=True,
            ).stdout
        )
        for ours in (True, False)
    )  # fmt: skip
    return case, f"{ours:.2f} x {goal(ours, 2, ' x')}", f"{peer:.2f} x", f"{ours / peer:.2f}"
