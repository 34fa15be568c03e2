"""What is measured of a network: cross-entropy, structured loss and accuracy at every level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structent.experiments.cifar100.names import MEASURES
from structent.losses.keras import BlockAccuracy, StructuredLogLoss
from structent.structure import RandomPartition, trivial


class Measures:
    """The paper's metrics of a test set, as Keras metrics.

    As in its author's notebooks, the accuracy of a level counts rows whose likeliest class is in
    the true block, which need not be the likeliest block.

    Parameters
    ----------
    structure
        The hierarchy of the classes; its levels are "accuracy", "accuracy 2", ..., finest first.
    """

    def __init__(self, structure: RandomPartition) -> None:
        finest_first = list(structure.levels)[::-1]
        metrics = [StructuredLogLoss(trivial(structure.classes)), StructuredLogLoss(structure)]
        metrics += [BlockAccuracy(structure, level) for level in finest_first]
        self._metrics: dict[str, Any] = dict(zip(MEASURES, metrics, strict=True))

    def of(self, labels: NDArray[np.int64], logits: NDArray[np.float32]) -> dict[str, float]:
        """Return each measure of the logits of labelled rows."""
        values = {}
        for name, metric in self._metrics.items():
            metric.reset_state()
            metric.update_state(labels, logits)
            values[name] = round(float(metric.result()), 5)
        return values
