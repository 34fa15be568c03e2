"""The undocumented names of Keras that the adapter uses."""

from collections.abc import Callable
from typing import Any

from structent._private import PrivateInterface

KERAS = PrivateInterface("keras", "3.15.1", needed_by="StructuredCrossEntropy for Keras")

# Marks which rows of a loss count, as Keras's own losses with ignore_class do.
set_mask: Callable[[Any, Any], None] = KERAS.name("keras.src.backend:set_keras_mask")


def own_metrics(model: Any) -> list[Any]:
    """Return the list of the metrics that a model holds besides those it was compiled with.

    It is the list itself, since a built model does not accept a new attribute with state.
    """
    metrics: list[Any] = KERAS.attribute(model, "_metrics")
    return metrics
