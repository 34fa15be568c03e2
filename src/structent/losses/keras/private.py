"""What the adapter uses of Keras that Keras does not document."""

from collections.abc import Callable
from typing import Any

from structent._private import PrivateInterface

KERAS = PrivateInterface("keras", "3.15.1", needed_by="StructuredCrossEntropy for Keras")

# Marks which rows of a loss count, as Keras's own losses with ignore_class do.
set_mask: Callable[[Any, Any], None] = KERAS.name("keras.src.backend:set_keras_mask")


def own_metrics(model: Any) -> list[Any]:
    """Return the list of the metrics that a model holds beside those it was compiled with.

    The list itself, since a model that is built takes no attribute with state any more.
    """
    metrics: list[Any] = KERAS.attribute(model, "_metrics")
    return metrics
