"""One trial of one loss, paired with those of the other losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np

from structent._typing import IndexArray
from structent.experiments.cifar100.measures import Measures
from structent.experiments.cifar100.training import Epochs, Inputs, Judged, trajectories
from structent.experiments.cifar100.training_loss import training_loss
from structent.experiments.experiment import Result
from structent.structure import catalog


def paired_trial(  # noqa: PLR0913  all that the losses of a trial share
    loss_name: str,
    *,
    inputs_of: Callable[[IndexArray, np.random.Generator], Inputs],
    labels: IndexArray,
    judged: Judged,
    network_of: Callable[[int], Any],
    optimizer_of: Callable[[int], Any],
    batch_size: int,
    n_epochs: int,
    measured_every: int,
    seed: int,
) -> Result:
    """Return the trajectories of one loss.

    Parameters
    ----------
    loss_name
        The loss, as in :func:`training_loss`.
    inputs_of
        Gives the inputs of some training rows, as in :class:`Epochs`.
    labels
        The class of each training row.
    judged
        The rows that the network is measured on.
    network_of
        Gives the network, from the number of classes.
    optimizer_of
        Gives the optimizer, from the number of batches in an epoch.
    batch_size, n_epochs, measured_every
        How long it learns.
    seed
        One for all losses of a trial: they begin at the same weights, drop the same units, and see
        the same inputs in the same order.
    """
    structure = catalog.cifar100()
    loss = training_loss(loss_name, structure)
    epochs = Epochs(inputs_of, loss.targets[labels], batch_size=batch_size, seed=seed)
    keras.utils.set_random_seed(seed)
    network = network_of(structure.n_classes)
    network.compile(optimizer=optimizer_of(len(epochs)), loss=loss.loss)
    return trajectories(
        network, epochs, judged, Measures(structure), n_epochs=n_epochs, every=measured_every
    )
