"""Training: what a network is shown, every loss against its definition, and what is measured."""

import json
from functools import partial
from itertools import pairwise

import keras
import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  its usual name

from paper import training as module
from paper.images import images_of_trial, read_images
from paper.networks import read_backbone, small_cnn, with_head
from paper.paper_numbers import LAYERS, MEASURES, OTHER_LOSSES, PAPER_LOSSES
from paper.soft_labels import smoothed_labels, soft_labels
from paper.training import (
    Epochs,
    Judged,
    Measures,
    image_trial,
    last_layer,
    training_loss,
    trajectories,
    use_machine,
)
from structent.errors import StructentError
from structent.layers.keras import StructuredDense
from structent.structure import catalog, trivial
from tests.paper.by_numpy import measured

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


@pytest.mark.parametrize("loss", ["structured", "scrambled", *OTHER_LOSSES, *LAYERS])
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


@pytest.fixture
def images(data):
    return images_of_trial(read_images(data), size=40, trial=0, n_validation=20, n_test=20)


def tiny_cnn(last, *, dropout=0.5):
    """A network with all that is random in the larger ones, and little to reckon.

    Nothing in it jumps, so that rounding stays rounding.
    """
    return keras.Sequential(
        [
            keras.layers.Input((32, 32, 3)),
            keras.layers.AveragePooling2D(8),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="tanh"),
            keras.layers.Dropout(dropout),
            keras.layers.Dense(last) if isinstance(last, int) else last,
        ]
    )


def result_of(images, loss, *, seed=0, network_of=tiny_cnn, n_epochs=2):
    return image_trial(
        images,
        loss,
        network_of=network_of,
        optimizer_of=lambda _: keras.optimizers.SGD(0.1),
        batch_size=16,
        n_epochs=n_epochs,
        measured_every=1,
        seed=seed,
    )


@pytest.fixture
def untrained(monkeypatch):
    """Leave networks as they are before they learn."""
    monkeypatch.setattr(module, "trajectories", lambda *_, **__: {})


def first_network(images, loss, *, seed=0, make=small_cnn):
    """Return the network that a loss has, which must not learn, and its first weights."""
    made = []

    def network_of(last):
        network = make(last)
        made.extend([network, network.get_weights()])
        return network

    result_of(images, loss, seed=seed, network_of=network_of)
    return made


def first_weights(images, loss, **how):
    return first_network(images, loss, **how)[1]


@pytest.mark.usefixtures("untrained")
def test_losses_of_a_trial_begin_at_the_same_weights_and_trials_at_others(images):
    def weights(loss, seed):
        made = first_weights(images, loss, seed=seed)
        return [weight for weight in made if weight.ndim > 1]  # biases begin at 0

    standard, structured, other = (
        weights(*case) for case in (("standard", 0), ("structured", 0), ("standard", 1))
    )
    assert len(standard) == 6
    assert all(map(np.array_equal, standard, structured))
    assert not any(map(np.array_equal, standard, other))


@pytest.mark.usefixtures("untrained")
def test_losses_of_a_trial_begin_with_the_same_last_layer_on_a_backbone(images, backbone):
    def last_layer(loss, seed):
        return first_weights(
            images, loss, seed=seed, make=lambda n: with_head(read_backbone(backbone), n, pixels=32)
        )[-2]

    standard = last_layer("standard", 0)
    assert standard.shape == (6, 100)
    assert np.array_equal(standard, last_layer("soft labels 10", 0))
    assert not np.array_equal(standard, last_layer("standard", 1))


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("loss", LAYERS)
def test_networks_with_a_structured_last_layer_begin_as_the_standard_one_in_all_others(
    images, loss
):
    (standard, its), (layered, ours) = (first_network(images, of) for of in ("standard", loss))
    *_, last = layered.layers
    assert isinstance(last, StructuredDense)
    assert not any(isinstance(layer, StructuredDense) for layer in layered.layers[:-1])
    assert [type(layer) for layer in layered.layers[:-1]] == [
        type(layer) for layer in standard.layers[:-1]
    ]
    # An ordinary layer has a kernel and a bias, this one two kinds of vectors and a bias.
    assert len(its) == len(ours) - 1 == 12
    assert all(map(np.array_equal, its[:-2], ours[:-3]))
    assert any(weight.any() for weight in its[:-2])


@pytest.mark.parametrize("loss", LAYERS)
def test_networks_with_a_structured_last_layer_drop_the_units_of_the_standard_one(loss):
    def seeds(name):
        keras.utils.set_random_seed(5)
        made = small_cnn(last_layer(name, CIFAR))
        dropouts = [layer for layer in made.layers if isinstance(layer, keras.layers.Dropout)]
        return [np.asarray(layer.seed_generator.state).tolist() for layer in dropouts]

    assert len(seeds(loss)) == 3
    assert seeds(loss) == seeds("standard")


@pytest.mark.parametrize("loss", ["structured", *OTHER_LOSSES, *LAYERS])
def test_the_same_settings_give_the_same_result(images, loss):
    first, again = (result_of(images, loss) for _ in range(2))

    assert first == again


def test_trials_and_losses_differ(images):
    results = [
        result_of(images, loss, seed=seed)
        for loss, seed in (("standard", 0), ("standard", 1), ("structured", 0))
    ]
    trajectories = {tuple(result["test"]["cross-entropy"]) for result in results}

    assert len(trajectories) == 3


def test_losses_that_are_equal_in_value_have_one_trajectory_dropout_and_all(images, monkeypatch):
    monkeypatch.setattr(
        module, "training_loss", lambda name, known: training_loss(name, trivial(known.classes))
    )
    standard, structured = (result_of(images, loss) for loss in ("standard", "structured"))
    other = result_of(images, "standard", seed=1)

    for part in ("validation", "test"):
        entropy = standard[part]["cross-entropy"]
        assert structured[part]["cross-entropy"] == pytest.approx(entropy, abs=2e-5)
        # Other draws are further away than rounding can take it.
        assert other[part]["cross-entropy"] != pytest.approx(entropy, abs=1e-3)


def test_dropout_is_in_the_trajectories(images):
    with_it, without = (
        result_of(images, "standard", network_of=partial(tiny_cnn, dropout=rate))
        for rate in (0.5, 0.0)
    )
    assert with_it["test"]["cross-entropy"] != pytest.approx(
        without["test"]["cross-entropy"], abs=1e-3
    )


# Each loss against its definition, written as a slow loop over the paper's hierarchy

RNG_OF_LOGITS = np.random.default_rng(3)
LABELS_OF_LOGITS = RNG_OF_LOGITS.integers(0, 100, 9)
LOGITS = RNG_OF_LOGITS.normal(scale=3, size=(9, 100)).astype(np.float32)
PROBA = np.exp(LOGITS.astype(float))
PROBA /= PROBA.sum(axis=1, keepdims=True)
# The ancestors of each class, from the root down to the class itself.
PATHS = [
    [frozenset(range(100))]
    + [
        frozenset(np.flatnonzero(partition.block_of == partition.block_of[label]).tolist())
        for partition in (CIFAR.levels[level][0] for level in CIFAR.levels)
    ]
    for label in range(100)
]


def loss_of(name, structure=CIFAR):
    loss = training_loss(name, structure)
    return float(
        loss.loss(torch.as_tensor(loss.targets[LABELS_OF_LOGITS]), torch.as_tensor(LOGITS))
    )


def probability(row, node):
    return sum(PROBA[row, label] for label in node)


def blocks_of(name):
    return training_loss(name, CIFAR).loss.structure.block_of


def test_paths_of_the_hierarchy_lead_from_the_root_to_the_class():
    assert all([len(path[0]), len(path[-1])] == [100, 1] for path in PATHS)
    assert all(path[d] >= path[d + 1] for path in PATHS for d in range(4))


def test_standard_is_the_cross_entropy_of_torch():
    expected = F.cross_entropy(torch.as_tensor(LOGITS), torch.as_tensor(LABELS_OF_LOGITS))

    assert loss_of("standard") == pytest.approx(float(expected), rel=1e-6)


def test_standard_is_structured_without_a_structure():
    assert loss_of("standard") == pytest.approx(
        loss_of("structured", trivial(CIFAR.classes)), rel=1e-6
    )


def test_structured_is_a_quarter_of_each_level():
    by_row = [
        sum(-0.25 * np.log(probability(row, node)) for node in PATHS[label][1:])
        for row, label in enumerate(LABELS_OF_LOGITS)
    ]

    assert loss_of("structured") == pytest.approx(np.mean(by_row), rel=1e-5)


@pytest.mark.parametrize("name", ["hierarchical .1", "hierarchical .3", "hierarchical .5"])
def test_hierarchical_is_bertinettos_over_its_first_weight(name):
    alpha = float(name.split()[1])
    by_row = []
    for row, label in enumerate(LABELS_OF_LOGITS):
        path, total = PATHS[label], 0.0
        for depth in range(1, 5):
            conditional = probability(row, path[depth]) / probability(row, path[depth - 1])
            total -= np.exp(-alpha * depth) * np.log(conditional)
        by_row.append(total)

    assert loss_of(name) == pytest.approx(np.mean(by_row) / np.exp(-alpha), rel=1e-5)


@pytest.mark.parametrize("name", ["soft labels 10", "soft labels 30"])
def test_soft_labels_are_cross_entropy_with_bertinettos_labels(name):
    beta = float(name.split()[2])
    by_row = []
    for row, true in enumerate(LABELS_OF_LOGITS):
        # Nodes from the root that the two share, of which the root is at height 4.
        heights = [4 - sum(other in node for node in PATHS[true][1:]) for other in range(100)]
        closeness = [np.exp(-beta * height / 4) for height in heights]
        by_row.append(
            -sum(
                closeness[other] / sum(closeness) * np.log(PROBA[row, other])
                for other in range(100)
            )
        )

    assert loss_of(name) == pytest.approx(np.mean(by_row), rel=1e-5)


@pytest.mark.parametrize("beta", [10.0, 30.0])
def test_soft_labels_sum_to_1_and_are_largest_for_the_true_class(beta):
    rows = soft_labels(CIFAR, beta)

    assert rows.sum(axis=1) == pytest.approx(np.ones(100))
    assert rows.argmax(axis=1).tolist() == list(range(100))


def test_label_smoothing_is_that_of_torch():
    expected = F.cross_entropy(
        torch.as_tensor(LOGITS), torch.as_tensor(LABELS_OF_LOGITS), label_smoothing=0.1
    )

    assert loss_of("label smoothing") == pytest.approx(float(expected), rel=1e-6)
    assert smoothed_labels(100).sum(axis=1) == pytest.approx(np.ones(100))


def test_scrambled_has_blocks_of_the_same_sizes_with_other_classes():
    meant, scrambled = blocks_of("structured"), blocks_of("scrambled")

    for level in range(4):
        sizes = [sorted(np.bincount(blocks[level])) for blocks in (meant, scrambled)]
        assert sizes[0] == sizes[1]
    together = [blocks[2][:, None] == blocks[2] for blocks in (meant, scrambled)]
    shared = (together[0] & together[1]).sum() - 100  # of 20 * 5 * 4 pairs, 4 in 99 by chance
    assert shared < 50


def test_scrambled_is_a_hierarchy_of_one_permutation():
    blocks = blocks_of("scrambled")

    for coarse, fine in pairwise(blocks):
        assert all(len(set(coarse[fine == block])) == 1 for block in set(fine))


def test_scrambled_is_the_same_in_every_trial():
    assert blocks_of("scrambled").tolist() == blocks_of("scrambled").tolist()


def test_every_loss_has_a_target_for_every_class():
    for name in (*PAPER_LOSSES, "scrambled", *OTHER_LOSSES, *LAYERS):
        assert len(training_loss(name, CIFAR).targets) == 100


@pytest.mark.parametrize("name", ["label smothing", "hierarchical", "hierarchical x", "", "soft"])
def test_an_unknown_loss_is_refused(name):
    with pytest.raises(StructentError, match=f"must be standard, structured, .* got '{name}'"):
        training_loss(name, CIFAR)


# The structure in the last layer


@pytest.mark.parametrize("name", ["structured layer", "scrambled layer"])
def test_a_structured_layer_alone_has_the_standard_loss(name):
    assert loss_of(name) == loss_of("standard")


def test_loss_and_layer_has_the_structured_loss():
    assert loss_of("loss and layer") == loss_of("structured")


@pytest.mark.parametrize("name", [*PAPER_LOSSES, "scrambled", *OTHER_LOSSES])
def test_without_layer_in_its_name_a_loss_has_an_ordinary_last_layer(name):
    assert last_layer(name, CIFAR) == 100


@pytest.mark.parametrize(
    ("name", "blocks_like"),
    [
        ("structured layer", "structured"),
        ("loss and layer", "structured"),
        ("scrambled layer", "scrambled"),
    ],
)
def test_classes_of_a_block_share_vectors_of_the_last_layer(name, blocks_like):
    layer = last_layer(name, CIFAR)
    layer.build((None, 3))
    # What is left to 1 is shared by the three levels above the classes.
    blocks, shares = blocks_of(blocks_like), [0.4 / 3] * 3
    covariance = np.zeros((100, 100))
    # One vector after the other is set to 1: the kernel is linear in them.
    assert layer.class_vectors.shape == (100, 3)
    for vectors in (layer.class_vectors, layer.block_vectors):
        for place in range(vectors.shape[0]):
            layer.class_vectors.assign(np.zeros((100, 3)))
            layer.block_vectors.assign(np.zeros(layer.block_vectors.shape))
            values = np.zeros(vectors.shape)
            values[place] = 1.0
            vectors.assign(values)
            rows = keras.ops.convert_to_numpy(layer.kernel)[0]
            covariance += np.outer(rows, rows)
    expected = 0.6 * np.eye(100)
    for share, level in zip(shares, blocks, strict=False):
        expected += share * (level[:, None] == level)
    assert covariance == pytest.approx(expected, abs=1e-5)


# What is measured of a network, against the project's metrics in NumPy

RNG_OF_MEASURED = np.random.default_rng(0)
MEASURED_LABELS = RNG_OF_MEASURED.integers(0, 100, 300)
# Right often enough that no accuracy is 0 or 1.
MEASURED_LOGITS = (
    RNG_OF_MEASURED.normal(size=(300, 100)) + 3 * np.eye(100)[MEASURED_LABELS]
).astype(np.float32)


def test_measures_are_the_metrics_of_probabilities_and_of_the_likeliest_classes():
    values = Measures(catalog.cifar100()).of(MEASURED_LABELS, MEASURED_LOGITS)

    assert values == pytest.approx(measured(MEASURED_LABELS, MEASURED_LOGITS), abs=2e-5)


def test_no_measure_is_trivial_on_these_rows():
    accuracies = [
        measured(MEASURED_LABELS, MEASURED_LOGITS)[f"accuracy{level}"]
        for level in ("", " 2", " 3", " 4")
    ]

    assert accuracies == sorted(accuracies)
    assert 0.1 < accuracies[0] < accuracies[3] < 0.99


def test_accuracy_of_a_level_is_that_of_the_likeliest_class_and_not_of_the_likeliest_block():
    structure = catalog.cifar100()
    trees = [structure.classes.index(tree) for tree in ("oak_tree", "maple_tree", "pine_tree")]
    logits = np.full((1, 100), -10.0, dtype=np.float32)
    logits[0, trees] = 2.0
    logits[0, structure.classes.index("rocket")] = 2.5
    values = Measures(structure).of(np.array(trees[:1]), logits)

    assert [values[f"accuracy{level}"] for level in ("", " 2", " 3", " 4")] == [0, 0, 0, 0]


def test_rows_that_were_measured_before_do_not_count():
    measures = Measures(catalog.cifar100())
    measures.of(MEASURED_LABELS[:100], MEASURED_LOGITS[:100])

    assert measures.of(MEASURED_LABELS, MEASURED_LOGITS) == Measures(catalog.cifar100()).of(
        MEASURED_LABELS, MEASURED_LOGITS
    )
