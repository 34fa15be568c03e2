"""The last layer in PyTorch, compared with ``torch.nn.Linear``; both with cross-entropy."""

from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  as everybody calls it

from benchmarks.taxonomy import taxonomy
from benchmarks.timing import interleaved_medians, ratio
from structent import RandomPartition
from structent.layers.torch import StructuredLinear
from structent.structure.catalog import cifar100, months

TITLE = "The last layer in PyTorch with cross-entropy, forward and backward"
MISSES = ""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield case, structent's time, torch's time, and the ratio with its goal."""
    torch.set_num_threads(1)
    wide = taxonomy(10_000, (3000, 1000, 300, 100, 30, 8))
    yield _row("(256, 1280) x 100, CIFAR-100 hierarchy", cifar100(), (256, 1280), 1.15)
    yield _row("(256, 512) x 10000, taxonomy of 7 levels", wide, (256, 512), 1.15)
    yield _row("(256, 1280) x 12, months", months(), (256, 1280), 1.15)


def _row(
    case: str, structure: RandomPartition, shape: tuple[int, int], at_most: float
) -> tuple[str, str, str, str]:
    n_classes, in_features = structure.n_classes, shape[1]
    ours = _training_step(StructuredLinear(in_features, structure), shape, n_classes)
    peer = _training_step(nn.Linear(in_features, n_classes), shape, n_classes)
    rounds = max(30, min(400, int(2e10 / (shape[0] * in_features * n_classes))))
    seconds = interleaved_medians({"ours": ours, "peer": peer}, rounds=rounds)
    return (
        case,
        f"{seconds['ours'] * 1e3:,.2f} ms",
        f"{seconds['peer'] * 1e3:,.2f} ms",
        ratio(seconds["ours"], seconds["peer"], at_most),
    )


def _training_step(layer: nn.Module, shape: tuple[int, int], n_classes: int) -> Callable[[], None]:
    """Return a step that also gives the gradient of the features, as within a network."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(shape, generator=generator, requires_grad=True)
    labels = torch.randint(n_classes, (shape[0],), generator=generator)

    def step() -> None:
        layer.zero_grad()
        features.grad = None
        F.cross_entropy(layer(features), labels).backward()

    return step
