"""What differs between the backends: gradients, and double precision."""

from contextlib import contextmanager, nullcontext

import keras
import numpy as np


def value_and_gradient(loss, y_true, y_pred, **kwargs):
    """The value of a loss, and its gradient by ``y_pred``, by the backend's own autodiff."""
    if keras.backend.backend() == "torch":
        import torch

        tensor = torch.tensor(np.asarray(y_pred), requires_grad=True)
        value = loss(y_true, tensor, **kwargs)
        value.sum().backward()
        return value.detach().numpy(), tensor.grad.numpy()
    import jax

    def total(logits):
        value = loss(y_true, logits, **kwargs)
        return value.sum(), value

    traced = jax.jit(jax.grad(total, has_aux=True))
    gradient, value = traced(jax.numpy.asarray(y_pred))
    return np.asarray(value), np.asarray(gradient)


@contextmanager
def double_precision():
    """Keras, and JAX under it, in float64."""
    keras.config.set_floatx("float64")
    try:
        with _jax_in_double_precision():
            yield
    finally:
        keras.config.set_floatx("float32")


def _jax_in_double_precision():
    if keras.backend.backend() != "jax":
        return nullcontext()
    import jax

    return jax.enable_x64(True)
