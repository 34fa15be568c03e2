"""The last layer for PyTorch: a drop-in ``torch.nn.Linear`` in which classes share vectors."""

from __future__ import annotations

import math
from typing import Any, Self

from structent._optional import load_optional

load_optional("torch", extra="torch", purpose="StructuredLinear")

import numpy as np  # noqa: E402  load_optional must come first
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812  as everybody calls it

from structent._checks import checked_integer  # noqa: E402
from structent.errors import StructureError  # noqa: E402
from structent.layers.blocks import Operations, block_plan  # noqa: E402
from structent.structure import PartitionSampler, RandomPartition  # noqa: E402

__all__ = ["StructuredLinear"]


class StructuredLinear(nn.Module):
    r"""A ``torch.nn.Linear`` in which related classes share vectors.

    .. math:: W_c = \sqrt{s} \, v_c + \sum_t \sqrt{w_t} \, v_{t, B_t(c)}

    where s is the weight of the singletons and :math:`B_t(c)` the block of class c in partition t.
    The parameters are the vectors v. Weight decay on them is the Gaussian prior under which the
    weights of two classes have the covariance ``structure.similarity()``. At the start the logits
    have the same variance as those of ``torch.nn.Linear``.

    Parameters
    ----------
    in_features
        The number of features.
    structure
        How the classes are related, in the order of the outputs. For a sampler, its expected
        similarity is used.
    bias
        Whether to add a bias to each class.
    singleton_weight
        The weight s; the other weights stay in proportion. None keeps the structure's.
    device, dtype
        As in torch.

    Attributes
    ----------
    class_vectors, block_vectors
        The parameters: the vectors of the classes, (classes, features), and of the blocks, (blocks,
        features). ``block_vectors`` is None for the trivial structure.
    weight, bias
        The ordinary weights of a linear layer, (classes, features) and (classes,).

    Examples
    --------
    >>> from structent.structure.catalog import cifar100
    >>> head = StructuredLinear(512, cifar100(), singleton_weight=0.6)  # was: nn.Linear(512, 100)
    >>> head(torch.zeros(8, 512)).shape, head.weight.shape
    (torch.Size([8, 100]), torch.Size([100, 512]))
    >>> head.to_linear()
    Linear(in_features=512, out_features=100, bias=True)
    """

    block_vectors: nn.Parameter | None
    bias: nn.Parameter | None
    matrix: Tensor | None

    def __init__(
        self,
        in_features: int,
        structure: RandomPartition | PartitionSampler,
        *,
        bias: bool = True,
        singleton_weight: float | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = checked_integer(
            in_features, "in_features", at_least=1, at_most=2**31 - 1
        )
        self.structure, self.singleton_weight = structure, singleton_weight
        self._plan = plan = block_plan(structure, singleton_weight)
        self.out_features = plan.factor.n_classes

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        self.class_vectors = parameter(self.out_features, self.in_features)
        n_blocks = plan.factor.n_blocks
        self.block_vectors = parameter(n_blocks, self.in_features) if n_blocks else None
        self.bias = parameter(self.out_features) if bias else None
        # Not in the state dict, because the structure determines them.
        self.register_buffer("matrix", None, persistent=False)
        if plan.matrix is not None:
            kind = self.class_vectors.dtype
            self.matrix = torch.as_tensor(plan.matrix, dtype=kind, device=device)
        for place, parent in enumerate(plan.parents):
            index = torch.as_tensor(parent.astype(np.int64), device=device)
            self.register_buffer(f"parent_{place}", index, persistent=False)
        self.reset_parameters()

    @classmethod
    def from_linear(
        cls,
        linear: nn.Linear,
        structure: RandomPartition | PartitionSampler,
        *,
        singleton_weight: float | None = None,
    ) -> Self:
        """Return a layer with the weights of a trained ``Linear`` and vectors of smallest norm."""
        if not isinstance(linear, nn.Linear):
            raise StructureError(f"linear must be a torch.nn.Linear, got {type(linear).__name__}")
        like = linear.weight.detach()
        layer = cls(
            linear.in_features, structure, bias=linear.bias is not None,
            singleton_weight=singleton_weight, device=like.device, dtype=like.dtype,
        )  # fmt: skip
        if layer.out_features != linear.out_features:
            raise StructureError(
                f"structure covers {layer.out_features} classes but linear has "
                f"{linear.out_features} outputs"
            )
        vectors = layer._plan.factor.block_vectors(like.cpu().double().numpy())
        with torch.no_grad():
            for parameter, value in zip(
                (layer.class_vectors, layer.block_vectors), vectors, strict=True
            ):
                if parameter is not None:
                    parameter.copy_(torch.from_numpy(value))
            if layer.bias is not None:
                layer.bias.copy_(linear.bias)
        return layer

    def to_linear(self) -> nn.Linear:
        """Return a plain ``torch.nn.Linear`` with the same outputs, for export."""
        like = self.class_vectors
        linear = nn.Linear(
            self.in_features, self.out_features, bias=self.bias is not None,
            device=like.device, dtype=like.dtype,
        )  # fmt: skip
        with torch.no_grad():
            linear.weight.copy_(self.weight)
            if self.bias is not None:
                linear.bias.copy_(self.bias)
        return linear

    def reset_parameters(self) -> None:
        """Draw all parameters again, each as ``torch.nn.Linear`` draws its weights.

        The weights w_t sum to 1, so the sum has the same variance as each of its parts.
        """
        bound = 1 / math.sqrt(self.in_features)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    @property
    def weight(self) -> Tensor:
        """The weights of the classes, (classes, features): a function of the parameters."""
        own = self.class_vectors
        if self.matrix is not None and torch.is_autocast_enabled(own.device.type):
            # Otherwise weights would be rounded twice. The context takes 3 % of a small step.
            with torch.autocast(own.device.type, enabled=False):
                return self._weight()
        return own if self.block_vectors is None else self._weight()

    def _weight(self) -> Tensor:
        parents = [getattr(self, f"parent_{place}") for place in range(len(self._plan.parents))]
        weight: Tensor = self._plan.class_vectors(
            self.class_vectors, self.block_vectors, self.matrix, parents, _OPERATIONS
        )
        return weight

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  torch's own name
        """Return the logits, (..., classes), of features, (..., features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return what ``print`` shows of the module."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, structure={self.structure!r}"
        )


# embedding has a faster gradient than index_select; adding in place saves a copy.
_OPERATIONS = Operations(
    matmul=torch.mm,
    multiply=torch.mul,
    add=lambda x, y, scale: x.add_(y, alpha=scale),
    take=lambda table, index: F.embedding(index, table),
    split=torch.split,
)
