"""Training: what a network is shown, and when and on what it is measured."""

import json

import keras
import numpy as np
import pytest
import torch

from structent.experiments.cifar100.measures import Measures
from structent.experiments.cifar100.names import MEASURES, OTHER_LOSSES
from structent.experiments.cifar100.training import Epochs, Judged, trajectories, use_machine
from structent.experiments.cifar100.training_loss import training_loss
from structent.structure import catalog
from tests.experiments.cifar100.by_numpy import measured

CIFAR = catalog.cifar100()
RNG = np.random.default_rng(0)
N_ROWS, BATCH_SIZE = 23, 5
N_BATCHES = 5  # the last of 3 rows
INPUTS = RNG.normal(size=(N_ROWS, 6)).astype(np.float32)
LABELS = RNG.integers(0, 100, N_ROWS)
VALIDATION = RNG.normal(size=(17, 6)).astype(np.float32), RNG.integers(0, 100, 17)
TEST = RNG.normal(size=(19, 6)).astype(np.float32), RNG.integers(0, 100, 19)


def plain_epochs(seed=0):
    return Epochs(lambda rows, _: INPUTS[rows], np.arange(N_ROWS), batch_size=BATCH_SIZE, seed=seed)


def rows_of_epoch(epochs):
    """Begin an epoch as Keras does, and return the rows of its batches, one after the other."""
    epochs.on_epoch_begin()
    return np.concatenate([epochs[batch][1] for batch in range(len(epochs))]).tolist()


def network(loss_name="standard", *, dropout=0.0):
    keras.utils.set_random_seed(0)
    made = keras.Sequential(
        [keras.layers.Input((6,)), keras.layers.Dropout(dropout), keras.layers.Dense(100)]
    )
    made.compile(optimizer=keras.optimizers.SGD(0.5), loss=training_loss(loss_name, CIFAR).loss)
    return made


def trained(loss_name="standard", *, n_epochs, every, inputs_of=lambda rows, _: INPUTS[rows]):
    targets = training_loss(loss_name, CIFAR).targets[LABELS]
    epochs = Epochs(inputs_of, targets, batch_size=BATCH_SIZE, seed=4)
    made = network(loss_name)
    result = trajectories(
        made, epochs, Judged(VALIDATION, TEST), Measures(CIFAR), n_epochs=n_epochs, every=every
    )
    return made, result


def shown(loss_name, n_epochs):
    """Return the rows and the draws of each batch in a real training, batch by batch."""
    seen = []

    def inputs_of(rows, rng):
        seen.append((rows.tolist(), rng.random()))
        return INPUTS[rows]

    trained(loss_name, n_epochs=n_epochs, every=2, inputs_of=inputs_of)
    return seen


def test_an_epoch_has_every_row_once():
    assert len(plain_epochs()) == N_BATCHES
    assert sorted(rows_of_epoch(plain_epochs())) == list(range(N_ROWS))


def test_inputs_and_targets_of_a_batch_are_of_the_same_rows():
    inputs, rows = plain_epochs()[2]

    assert np.array_equal(inputs, INPUTS[rows])


def test_every_epoch_has_another_order():
    epochs = plain_epochs()
    orders = [rows_of_epoch(epochs) for _ in range(4)]

    assert len(set(map(tuple, orders))) == 4


def test_the_seed_alone_decides_the_order():
    assert rows_of_epoch(plain_epochs(1)) == rows_of_epoch(plain_epochs(1))
    assert rows_of_epoch(plain_epochs(1)) != rows_of_epoch(plain_epochs(2))


def test_every_batch_has_draws_of_its_own():
    epochs = Epochs(
        lambda rows, rng: rng.random(len(rows)), np.arange(N_ROWS), batch_size=BATCH_SIZE, seed=0
    )
    draws = []
    for _ in range(3):
        epochs.on_epoch_begin()
        draws += [epochs[batch][0] for batch in range(N_BATCHES)]

    assert len(set(np.concatenate(draws).tolist())) == 3 * N_ROWS


@pytest.mark.parametrize("loss", ["structured", "scrambled", *OTHER_LOSSES])
def test_every_loss_is_shown_the_same_batches_with_the_same_draws(loss):
    assert shown(loss, n_epochs=3) == shown("standard", n_epochs=3)


def test_keras_begins_an_epoch_once_so_that_each_shows_every_row_once_in_another_order():
    seen = shown("standard", n_epochs=3)
    # Before it begins Keras takes a batch to learn the shapes from.
    assert len(seen) == 1 + 3 * N_BATCHES
    rows = [row for batch, _ in seen[1:] for row in batch]
    epochs = np.reshape(rows, (3, N_ROWS)).tolist()

    assert all(sorted(rows) == list(range(N_ROWS)) for rows in epochs)
    assert len(set(map(tuple, epochs))) == 3
    assert len({draw for _, draw in seen}) == len(seen)


@pytest.mark.parametrize(
    ("n_epochs", "every", "expected"),
    [(3, 1, [1, 2, 3]), (4, 2, [2, 4]), (5, 2, [2, 4, 5]), (2, 5, [2])],
)
def test_it_is_measured_every_few_epochs_and_at_the_last(n_epochs, every, expected):
    _, result = trained(n_epochs=n_epochs, every=every)

    assert result["epochs"] == expected
    for part in ("validation", "test"):
        assert list(result[part]) == list(MEASURES)
        assert {len(values) for values in result[part].values()} == {len(expected)}


@pytest.mark.parametrize("loss", ["standard", "structured", "soft labels 10"])
def test_the_last_values_are_those_of_a_prediction_at_the_end(loss):
    made, result = trained(loss, n_epochs=3, every=2)

    for part, (inputs, labels) in (("validation", VALIDATION), ("test", TEST)):
        last = {name: values[-1] for name, values in result[part].items()}
        assert last == pytest.approx(measured(labels, made.predict(inputs, verbose=0)), abs=2e-5)


def test_earlier_values_are_those_of_a_training_that_ends_there():
    _, long = trained(n_epochs=3, every=1)
    _, short = trained(n_epochs=2, every=1)

    for part in ("validation", "test"):
        assert {name: values[:2] for name, values in long[part].items()} == short[part]


def test_training_lowers_the_loss_of_the_rows_that_are_learned():
    before = measured(LABELS, network().predict(INPUTS, verbose=0))
    made, _ = trained(n_epochs=20, every=20)

    assert measured(LABELS, made.predict(INPUTS, verbose=0))["cross-entropy"] < (
        before["cross-entropy"] - 0.5
    )


def test_a_result_is_plain_json():
    _, result = trained(n_epochs=2, every=1)

    assert json.loads(json.dumps(result)) == result


def test_torch_is_kept_to_the_threads_it_is_given():
    before = torch.get_num_threads()
    try:
        use_machine(1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
