"""What the adapter uses of torch that torch does not document."""

from collections.abc import Callable

from structent._private import PrivateInterface

TORCH = PrivateInterface("torch", "2.13.0", needed_by="StructuredCrossEntropy for PyTorch")

# Whether a transform of torch.func (grad, vmap, ...) is at work: it sees torch's own operations
# alone. torch.autograd.Function asks the same.
transforms_are_active: Callable[[], bool] = TORCH.name("torch._C:_are_functorch_transforms_active")
