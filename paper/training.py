"""How networks of Experiments 1A to 1D are trained: the losses, the batches, the metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, NamedTuple

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np
from numpy.typing import NDArray

from paper.experiment import Result, Settings, keep_freed_memory
from paper.images import TrialImages, as_pixels, augmented
from paper.paper_numbers import LAYERS, MEASURES, OTHER_LOSSES, PAPER_LOSSES
from paper.soft_labels import smoothed_labels, soft_labels
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.layers.keras import StructuredDense
from structent.losses.keras import BlockAccuracy, StructuredCrossEntropy, StructuredLogLoss
from structent.structure import RandomPartition, catalog, hxe, trivial

# Inputs of a network.
Inputs = NDArray[np.float32]
# Keras on torch keeps the outputs of all layers until the last: 500 images of ResNet50 need 18 GB.
_PREDICTED_AT_A_TIME = 100
SINGLETON_WEIGHT_OF_LAYER = 0.6


def image_trial(images: TrialImages, loss_name: str, **how: Any) -> Result:
    """Return the trajectories of one loss, learned from augmented images.

    Parameters
    ----------
    images
        The training images, and the images that the network is measured on.
    loss_name
        The loss, as in :func:`training_loss`.
    **how
        The network and how it learns, as in :func:`paired_trial`.
    """
    return paired_trial(
        loss_name,
        inputs_of=lambda rows, rng: as_pixels(augmented(images.train[rows], rng)),
        labels=images.train_labels,
        judged=Judged(
            (as_pixels(images.validation), images.validation_labels),
            (as_pixels(images.test), images.test_labels),
        ),
        **how,
    )


def paired_trial(  # noqa: PLR0913  all that the losses of a trial share
    loss_name: str,
    *,
    inputs_of: Callable[[IndexArray, np.random.Generator], Inputs],
    labels: IndexArray,
    judged: Judged,
    network_of: Callable[[Any], Any],
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
        Returns the inputs of some training rows, as in :class:`Epochs`.
    labels
        The class of each training row.
    judged
        The rows that the network is measured on.
    network_of
        Returns the network, given its last layer or, for an ordinary one, the number of classes.
    optimizer_of
        Returns the optimizer, given the number of batches in an epoch.
    batch_size, n_epochs, measured_every
        How long it learns.
    seed
        The same for all losses of a trial: they start from the same weights, drop the same units,
        and see the same inputs in the same order.
    """
    structure = catalog.cifar100()
    loss = training_loss(loss_name, structure)
    epochs = Epochs(inputs_of, loss.targets[labels], batch_size=batch_size, seed=seed)
    keras.utils.set_random_seed(seed)
    network = network_of(last_layer(loss_name, structure))
    network.compile(optimizer=optimizer_of(len(epochs)), loss=loss.loss)
    return trajectories(
        network, epochs, judged, Measures(structure), n_epochs=n_epochs, every=measured_every
    )


@dataclass(frozen=True)
class Judged:
    """The rows that a network is measured on while it learns."""

    validation: tuple[Inputs, IndexArray]
    test: tuple[Inputs, IndexArray]


class Epochs(keras.utils.PyDataset):  # type: ignore[misc]  # Keras has no types
    """The batches of every epoch: different in each epoch, the same for every loss.

    Parameters
    ----------
    inputs_of
        Returns the inputs of some rows; it draws random numbers only from the generator.
    targets
        The target of each row in the loss.
    batch_size
        The rows in a batch.
    seed
        With the number of the epoch, the seed of the order of rows and of ``inputs_of``.
    """

    def __init__(
        self,
        inputs_of: Callable[[IndexArray, np.random.Generator], Inputs],
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


def trajectories(
    network: Any, epochs: Epochs, judged: Judged, measures: Measures, *, n_epochs: int, every: int
) -> Result:
    """Train a compiled network and return its measures after every few epochs.

    Parameters
    ----------
    network
        The network, compiled.
    epochs
        The training batches.
    judged
        The rows that it is measured on.
    measures
        The metrics.
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


class TrainingLoss(NamedTuple):
    """A Keras loss, and its target for each true class: one row per class."""

    loss: Any
    targets: Any


def training_loss(name: str, structure: RandomPartition) -> TrainingLoss:
    """Return the loss with a given name.

    "standard" is cross-entropy and "structured" the paper's loss; "scrambled" the same with the
    classes shuffled, by one permutation for all trials, as in Experiment 1B. "label smoothing"
    moves a tenth of the label to all classes. "hierarchical a" is Bertinetto's hierarchical
    cross-entropy with alpha = a, and "soft labels b" their soft labels with beta = b. Names with
    "layer" have the structure in the last layer: "loss and layer" in the loss, too.

    Parameters
    ----------
    name
        The name.
    structure
        The hierarchy of the classes.
    """
    kind, parameter = _kind_and_parameter(name)
    if kind in ("standard", "structured layer", "scrambled layer"):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return TrainingLoss(loss, np.arange(structure.n_classes))
    if kind in ("structured", "loss and layer"):
        return _with_blocks(structure)
    if kind == "scrambled":
        return _with_blocks(_scrambled(structure))
    if kind == "hierarchical":
        return _with_blocks(structure.reweight(hxe(parameter)(structure.n_partitions)))
    if kind == "soft labels":
        return _with_rows(soft_labels(structure, parameter))
    return _with_rows(smoothed_labels(structure.n_classes))


def last_layer(name: str, structure: RandomPartition) -> Any:
    """Return the last layer that goes with a loss; the number of classes if it is ordinary."""
    if name not in LAYERS:
        return structure.n_classes
    known = _scrambled(structure) if name == "scrambled layer" else structure
    return StructuredDense(known, singleton_weight=SINGLETON_WEIGHT_OF_LAYER, dtype="float32")


def _scrambled(structure: RandomPartition) -> RandomPartition:
    """Return the structure with its classes shuffled, in the same way in every trial."""
    return structure.scramble(np.random.default_rng(0))


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

    def of(self, labels: IndexArray, logits: NDArray[np.float32]) -> dict[str, float]:
        """Return each measure of the logits of labelled rows."""
        values = {}
        for name, metric in self._metrics.items():
            metric.reset_state()
            metric.update_state(labels, logits)
            values[name] = round(float(metric.result()), 5)
        return values


def settings_of_trials(
    experiment: str,
    preset: str,
    losses: Sequence[str],
    *,
    size: int,
    network: str,
    schedule: Any,
) -> list[Settings]:
    """Return the settings of every trial and loss: what decides a result except the data.

    The schedule is a dataclass of the experiment. Its number of trials is not part of the settings,
    so more trials can be added later.
    """
    deciding = {name: value for name, value in asdict(schedule).items() if name != "n_trials"}
    return [
        {
            "experiment": experiment,
            "preset": preset,
            "size": size,
            "network": network,
            "loss": loss,
            "trial": trial,
            "schedule": deciding,
        }
        for trial in range(schedule.n_trials)
        for loss in losses
    ]


def use_machine(n_threads: int) -> None:
    """Limit the threads of the backend, if possible, and let the process keep freed memory."""
    keep_freed_memory()
    if keras.backend.backend() == "torch":
        import torch  # noqa: PLC0415  only where it is the backend

        torch.set_num_threads(n_threads)


def _kind_and_parameter(name: str) -> tuple[str, float]:
    """Return the kind of a loss, and its parameter, 0 if it has none."""
    known = (*PAPER_LOSSES, "scrambled", *OTHER_LOSSES, *LAYERS)
    if name not in known:
        raise StructentError(f"the loss must be {', '.join(known)}, got {name!r}")
    kind, _, parameter = name.rpartition(" ")
    if kind in ("hierarchical", "soft labels"):
        return kind, float(parameter)
    return name, 0.0


def _with_blocks(structure: RandomPartition) -> TrainingLoss:
    return TrainingLoss(StructuredCrossEntropy(structure), np.arange(structure.n_classes))


def _with_rows(rows: FloatArray) -> TrainingLoss:
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    return TrainingLoss(loss, rows.astype(np.float32))
