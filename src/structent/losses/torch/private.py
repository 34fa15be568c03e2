"""The undocumented names of torch that the adapter uses."""

from collections.abc import Callable

from structent._private import PrivateInterface

TORCH = PrivateInterface("torch", "2.13.0", needed_by="StructuredCrossEntropy for PyTorch")

# Whether a transform of torch.func (grad, vmap, ...) is active: it sees only torch's own
# operations. torch.autograd.Function checks the same.
transforms_are_active: Callable[[], bool] = TORCH.name("torch._C:_are_functorch_transforms_active")
