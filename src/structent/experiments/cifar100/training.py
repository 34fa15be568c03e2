"""Train a network, and measure it on validation and test rows as it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np
from numpy.typing import NDArray

from structent.experiments.cifar100.measures import Measures
from structent.experiments.cifar100.names import MEASURES
from structent.experiments.experiment import Result
from structent.experiments.memory import keep_freed_memory

# Inputs of a network and their labels.
Inputs = NDArray[np.float32]
Labels = NDArray[np.int64]
_PREDICTED_AT_A_TIME = 500


class Epochs(keras.utils.PyDataset):  # type: ignore[misc]  # Keras has no types
    """The batches of every epoch, other ones in each, and the same for every loss.

    Parameters
    ----------
    inputs_of
        Gives the inputs of some rows; what it draws, it draws from the generator.
    targets
        What the loss compares each row with.
    batch_size
        The rows in a batch.
    seed
        Seeds the order of the rows and what ``inputs_of`` draws, with the number of the epoch.
    """

    def __init__(
        self,
        inputs_of: Callable[[NDArray[np.int64], np.random.Generator], Inputs],
        targets: NDArray[Any],
        *,
        batch_size: int,
        seed: int,
    ) -> None:
        super().__init__()
        self._inputs_of = inputs_of
        self._targets = targets
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = -1
        self.on_epoch_begin()

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        return ceil(len(self._targets) / self._batch_size)

    def on_epoch_begin(self) -> None:
        """Put the rows into another order."""
        self._epoch += 1
        rng = np.random.default_rng((self._seed, self._epoch))
        self._order = rng.permutation(len(self._targets))

    def __getitem__(self, batch: int) -> tuple[Inputs, NDArray[Any]]:
        """Return a batch: inputs and targets."""
        rows = self._order[batch * self._batch_size : (batch + 1) * self._batch_size]
        rng = np.random.default_rng((self._seed, self._epoch, batch))
        return self._inputs_of(rows, rng), self._targets[rows]


@dataclass(frozen=True)
class Judged:
    """The rows that a network is measured on while it learns."""

    validation: tuple[Inputs, Labels]
    test: tuple[Inputs, Labels]


def trajectories(
    network: Any, epochs: Epochs, judged: Judged, measures: Measures, *, n_epochs: int, every: int
) -> Result:
    """Train a compiled network and return its measures after every few epochs.

    Parameters
    ----------
    network
        The network, compiled.
    epochs
        What it learns from.
    judged
        What it is measured on.
    measures
        What is measured.
    n_epochs
        How long it learns.
    every
        How many epochs lie between measurements; the last epoch is always measured.
    """
    result: Result = {"epochs": []}
    for part in ("validation", "test"):
        result[part] = {name: [] for name in MEASURES}

    def measure(epoch: int, _: Any) -> None:
        done = epoch + 1
        if done % every and done != n_epochs:
            return
        result["epochs"].append(done)
        for part in ("validation", "test"):
            inputs, labels = getattr(judged, part)
            logits = network.predict(inputs, batch_size=_PREDICTED_AT_A_TIME, verbose=0)
            for name, value in measures.of(labels, logits).items():
                result[part][name].append(value)

    network.fit(
        epochs,
        epochs=n_epochs,
        verbose=0,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=measure)],
    )
    return result


def use_machine(n_threads: int) -> None:
    """Keep the backend to a number of threads, where it can be told, and memory to the process."""
    keep_freed_memory()
    if keras.backend.backend() == "torch":
        import torch  # noqa: PLC0415  only where it is the backend

        torch.set_num_threads(n_threads)
