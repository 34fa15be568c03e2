"""The loss in models: saved and loaded, in mixed precision, and with a new partition each step."""

import json

import keras
import numpy as np
import pytest

from structent import (
    FixedStructure,
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    circular,
    mix,
    trivial,
)
from structent.kernels import reference
from structent.losses.keras import (
    BlockAccuracy,
    PartitionSchedule,
    StructuredCrossEntropy,
    StructuredLogLoss,
)
from structent.structure.catalog import california_counties, months

K = 10
GRID = LabelGraph([(i, i + 1) for i in range(K - 1)] + [(i, i + 5) for i in range(K - 5)])
SAMPLER = SpanningTreePartitions(GRID, n_blocks=4, singleton_weight=0.3, seed=7)
STEPS = []  # one entry each time that Python runs through a training step


class Counted(keras.Sequential):
    """A model that counts how often its training step is run by Python, not by the compiler."""

    def train_step(self, *args):
        STEPS.append(1)
        return super().train_step(*args)


def batch(n=8, seed=0, n_classes=K):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)).astype(np.float32), rng.integers(0, n_classes, n)


def compiled(loss, kind=keras.Sequential, n_classes=K, learning_rate=0.0, **options):
    """A linear model that, unless told otherwise, never learns: its logits stay the same."""
    keras.utils.set_random_seed(0)
    model = kind([keras.Input((4,)), keras.layers.Dense(n_classes)])
    model.compile(keras.optimizers.SGD(learning_rate), loss, **options)
    return model


def expected_loss(model, x, labels, structure):
    logits = np.asarray(model.predict_on_batch(x), np.float64)
    value = reference.structured_cross_entropy_from_logits(
        logits, labels, structure.block_of, structure.weights, xp=np
    )
    return value.mean()


class BatchLosses(keras.callbacks.Callback):
    """The loss of each batch, from the running means that Keras gives."""

    def __init__(self):
        super().__init__()
        self.values = []
        self._sum = 0.0

    def on_epoch_begin(self, *_):
        self._sum = 0.0

    def on_train_batch_end(self, batch, logs=None):
        total = float(logs["loss"]) * (batch + 1)
        self.values.append(total - self._sum)
        self._sum = total


def fit(model, x, labels, batches=1, **options):
    """Train on the same rows again and again; return the loss of each batch."""
    seen = BatchLosses()
    model.fit(
        np.tile(x, (batches, 1)),
        np.tile(labels, batches),
        batch_size=len(x),
        shuffle=False,
        verbose=0,
        **{**options, "callbacks": [*options.get("callbacks", ()), seen]},
    )
    return seen.values


# Saving


def test_a_model_that_is_saved_and_loaded_has_the_same_loss_and_metrics(tmp_path):
    structure = months()
    model = compiled(
        StructuredCrossEntropy(structure, ignore_class=3),
        n_classes=12,
        learning_rate=0.1,
        metrics=[BlockAccuracy(structure, "width 3"), StructuredLogLoss(structure)],
    )
    x, labels = batch(n_classes=12)
    fit(model, x, labels, batches=3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.loss.structure == structure
    assert loaded.loss.get_config() == model.loss.get_config()
    before, after = (m.evaluate(x, labels, verbose=0, return_dict=True) for m in (model, loaded))
    assert set(before) == {"loss", "width_3_accuracy", "structured_log_loss"}
    assert after == pytest.approx(before, rel=1e-6)


@pytest.mark.parametrize(
    "made",
    [
        StructuredCrossEntropy(months(), from_logits=False, ignore_class=-1, reduction="sum"),
        StructuredCrossEntropy(SAMPLER, name="variable"),
        StructuredCrossEntropy(FixedStructure(months())),
        StructuredCrossEntropy(circular(["a", "b", "c"], width=2).product(SAMPLER)),
        StructuredCrossEntropy(mix([SAMPLER, circular(range(K))])),
        StructuredCrossEntropy(SAMPLER, eval_structure=circular(range(K), width=2)),
        StructuredLogLoss(months(), from_logits=False, name="log_loss"),
        BlockAccuracy(months(), "class"),
    ],
)
def test_the_configuration_is_json_from_which_the_same_object_is_made(made):
    config = made.get_config()
    again = type(made).from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert again.structure == made.structure


def test_a_sampler_that_has_no_file_format_cannot_be_in_a_configuration():
    class Unknown:
        classes = months().classes

        def sample(self, _iteration):
            return months()

    with pytest.raises(StructureError, match=r"got Unknown, .* no file format; save only the"):
        StructuredCrossEntropy(Unknown()).get_config()


def test_a_configuration_with_an_unknown_kind_of_structure_is_refused():
    config = StructuredCrossEntropy(months()).get_config()
    config["structure"] = config["structure"].replace("random_partition", "no_such_kind")
    with pytest.raises(StructureError, match=r"must be of kind .* got 'no_such_kind'"):
        StructuredCrossEntropy.from_config(config)


# Mixed precision


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_a_model_in_mixed_precision_learns_with_a_loss_in_single_precision(policy):
    structure = circular(range(K), width=2)
    keras.config.set_dtype_policy(policy)
    try:
        model = compiled(StructuredCrossEntropy(structure), learning_rate=0.5)
        x, labels = batch()
        expected = expected_loss(model, x, labels, structure)
        losses = fit(model, x, labels, batches=20)
    finally:
        keras.config.set_dtype_policy("float32")
    assert losses[0] == pytest.approx(expected, rel=1e-5)
    assert losses[-1] < 0.7 * losses[0]


# A new partition each step


def test_fifty_steps_see_fifty_partitions_with_one_trace():
    counties = SpanningTreePartitions(california_counties(), n_blocks=8, singleton_weight=0.2)
    draws = [counties.sample(i) for i in range(50)]
    model = compiled(StructuredCrossEntropy(counties), kind=Counted, n_classes=58)
    x, labels = batch(n_classes=58)
    STEPS.clear()
    found = fit(model, x, labels, batches=25, epochs=2, callbacks=[PartitionSchedule(model.loss)])
    expected = [expected_loss(model, x, labels, draw) for draw in draws]
    assert len({draw.block_of.tobytes() for draw in draws}) == 50
    assert np.std(expected) > 0.01  # a partition that never changed could not pass
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert len(STEPS) == (1 if keras.backend.backend() == "jax" else 50)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="the compiler of torch")
@pytest.mark.parametrize("one_hot", [False, True])
def test_fifty_draws_are_seen_by_a_loss_that_torch_compiles_once(one_hot):
    import torch

    graphs = []

    def counting(graph, _):
        graphs.append(graph)
        return graph

    loss = StructuredCrossEntropy(SAMPLER, reduction="none")
    _, labels = batch()
    logits = np.random.default_rng(1).normal(size=(8, K))
    y_true = torch.tensor(np.eye(K)[labels] if one_hot else labels)
    y_pred = torch.tensor(logits, requires_grad=True)
    traced = torch.compile(loss.__call__, backend=counting, fullgraph=True)
    for i in range(50):
        loss._held.draw(i)
        draw = SAMPLER.sample(i)
        expected = reference.structured_cross_entropy_from_logits(
            logits, labels, draw.block_of, draw.weights, xp=np
        )
        found = traced(y_true, y_pred).detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert len(graphs) == 1


@pytest.mark.parametrize("one_hot", [False, True])
def test_the_gradient_of_a_step_is_that_of_its_partition(one_hot):
    model = compiled(StructuredCrossEntropy(SAMPLER), learning_rate=1.0)
    x, labels = batch()
    y_true = np.eye(K, dtype=np.float32)[labels] if one_hot else labels
    for i in range(3):
        logits = np.asarray(model.predict_on_batch(x), np.float64)
        draw = SAMPLER.sample(i)
        by_logits = reference.gradient_from_logits(
            logits, labels, draw.block_of, draw.weights, xp=np
        )
        bias = np.array(model.layers[-1].bias.numpy())
        model.fit(x, y_true, verbose=0, callbacks=[PartitionSchedule(model.loss)])
        step = np.array(model.layers[-1].bias.numpy()) - bias
        np.testing.assert_allclose(step, -by_logits.mean(axis=0), atol=1e-6)


def test_the_iterations_go_on_in_a_second_fit_and_in_a_model_that_was_loaded(tmp_path):
    model = compiled(StructuredCrossEntropy(SAMPLER))
    x, labels = batch()
    schedule = PartitionSchedule(model.loss)
    found = fit(model, x, labels, batches=3, callbacks=[schedule])
    found += fit(model, x, labels, batches=3, callbacks=[schedule])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    found += fit(loaded, x, labels, batches=3, callbacks=[PartitionSchedule(loaded.loss)])
    expected = [expected_loss(model, x, labels, SAMPLER.sample(i)) for i in range(9)]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_batches_are_counted_where_the_optimizer_accumulates_gradients():
    model = compiled(StructuredCrossEntropy(SAMPLER))
    optimizer = keras.optimizers.SGD(0.0, gradient_accumulation_steps=2)
    model.compile(optimizer, model.loss)
    x, labels = batch()
    found = fit(model, x, labels, batches=4, callbacks=[PartitionSchedule(model.loss)])
    found += fit(model, x, labels, batches=2, callbacks=[PartitionSchedule(model.loss)])
    expected = [expected_loss(model, x, labels, SAMPLER.sample(i)) for i in range(6)]
    np.testing.assert_allclose(found, expected, atol=1e-4)


class ResetsItsOwn(keras.Sequential):
    """A model that resets its metrics by itself, as Keras's guide to custom steps has it."""

    def reset_metrics(self):
        self._loss_tracker.reset_state()


@pytest.mark.parametrize("kind", [keras.Sequential, ResetsItsOwn])
@pytest.mark.parametrize("eval_structure", [None, circular(range(K), width=2, singleton_weight=0)])
def test_evaluation_during_and_after_fit_is_on_the_structure_for_it(eval_structure, kind):
    model = compiled(StructuredCrossEntropy(SAMPLER, eval_structure=eval_structure), kind=kind)
    x, labels = batch()
    expected = expected_loss(model, x, labels, eval_structure or trivial(range(K)))
    assert model.evaluate(x, labels, verbose=0) == pytest.approx(expected, rel=1e-5)
    history = model.fit(
        x,
        labels,
        epochs=3,
        verbose=0,
        validation_data=(x, labels),
        callbacks=[PartitionSchedule(model.loss)],
    ).history
    assert history["val_loss"] == pytest.approx([expected] * 3, rel=1e-5)
    trained_on = [expected_loss(model, x, labels, SAMPLER.sample(i)) for i in range(3)]
    assert history["loss"] == pytest.approx(trained_on, rel=1e-4)
    assert model.evaluate(x, labels, verbose=0) == pytest.approx(expected, rel=1e-5)


def test_a_callback_that_evaluates_by_itself_does_so_on_the_structure_for_it():
    model = compiled(StructuredCrossEntropy(SAMPLER))
    x, labels = batch()
    expected = expected_loss(model, x, labels, trivial(range(K)))
    found = []

    class Evaluates(keras.callbacks.Callback):
        def on_epoch_end(self, *_):
            found.append(self.model.evaluate(x, labels, verbose=0))

    losses = fit(model, x, labels, epochs=3, callbacks=[PartitionSchedule(model.loss), Evaluates()])
    assert found == pytest.approx([expected] * 3, rel=1e-5)
    trained_on = [expected_loss(model, x, labels, SAMPLER.sample(i)) for i in range(3)]
    assert losses == pytest.approx(trained_on, rel=1e-4)


def test_a_schedule_leaves_no_trace_in_weights_logs_and_files(tmp_path):
    model = compiled(StructuredCrossEntropy(SAMPLER), metrics=["accuracy"])
    x, labels = batch()
    checkpoint = keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras")
    schedule = PartitionSchedule(model.loss)
    history = model.fit(x, labels, verbose=0, callbacks=[schedule, checkpoint]).history
    assert set(history) == {"loss", "accuracy"}
    assert len(model.weights) == 2
    assert model.metrics_names == ["loss", "compile_metrics"]
    loaded = keras.saving.load_model(tmp_path / "1.keras")
    np.testing.assert_array_equal(loaded.predict_on_batch(x), model.predict_on_batch(x))
    assert loaded.loss.structure == SAMPLER


def test_a_subclassed_model_that_is_built_takes_a_schedule():
    class Subclassed(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(K)

        def call(self, x):
            return self.dense(x)

    model = Subclassed()
    model.compile(keras.optimizers.SGD(0.0), StructuredCrossEntropy(SAMPLER))
    x, labels = batch()
    model(x)
    found = fit(model, x, labels, batches=3, callbacks=[PartitionSchedule(model.loss)])
    expected = [expected_loss(model, x, labels, SAMPLER.sample(i)) for i in range(3)]
    np.testing.assert_allclose(found, expected, atol=1e-4)


# What would train on a partition that never changes is refused


def test_a_sampler_without_a_schedule_is_refused_at_the_first_training_step():
    x, labels = batch()
    for train in (fit, keras.Model.train_on_batch):
        model = compiled(StructuredCrossEntropy(SAMPLER))
        with pytest.raises(StructureError, match=r"PartitionSchedule\(loss\)"):
            train(model, x, labels)


def test_a_second_fit_without_a_schedule_is_refused_too():
    model = compiled(StructuredCrossEntropy(SAMPLER))
    x, labels = batch()
    fit(model, x, labels, callbacks=[PartitionSchedule(model.loss)])
    with pytest.raises(StructureError, match=r"PartitionSchedule\(loss\)"):
        fit(model, x, labels)


def test_a_fit_that_broke_off_can_be_repeated():
    model = compiled(StructuredCrossEntropy(SAMPLER))
    x, labels = batch()
    schedule = PartitionSchedule(model.loss)

    class Breaks(keras.callbacks.Callback):
        def on_train_batch_end(self, *_, **__):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(model, x, labels, callbacks=[schedule, Breaks()])
    found = fit(model, x, labels, batches=2, callbacks=[schedule])
    expected = [expected_loss(model, x, labels, SAMPLER.sample(i)) for i in (1, 2)]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_schedule_for_a_loss_without_a_sampler_is_refused():
    with pytest.raises(StructureError, match="must be a StructuredCrossEntropy of a sampler"):
        PartitionSchedule(StructuredCrossEntropy(months()))
    with pytest.raises(StructureError, match="must be a StructuredCrossEntropy of a sampler"):
        PartitionSchedule(keras.losses.MeanSquaredError())


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="Keras itself refuses it on torch")
def test_several_steps_in_one_execution_are_refused():
    model = compiled(StructuredCrossEntropy(SAMPLER), steps_per_execution=2)
    with pytest.raises(StructureError, match="steps_per_execution must be 1"):
        fit(model, *batch(), callbacks=[PartitionSchedule(model.loss)])


def test_a_model_that_hides_its_metrics_is_refused():
    class Hides(keras.Sequential):
        @property
        def metrics(self):
            return [self._loss_tracker]

    model = compiled(StructuredCrossEntropy(SAMPLER), kind=Hides)
    with pytest.raises(StructureError, match=r"extend super\(\).metrics"):
        fit(model, *batch(), callbacks=[PartitionSchedule(model.loss)])


def test_a_draw_with_more_partitions_than_the_first_is_refused():
    class Growing:
        classes = tuple(range(K))

        def sample(self, iteration):
            cuts = [[int(c > i) for c in range(K)] for i in range(iteration + 1)]
            return RandomPartition([Partition(range(K), cut) for cut in cuts])

    model = compiled(StructuredCrossEntropy(Growing()))
    with pytest.raises(StructureError, match=r"more partitions than the first one, 1 .* got 2"):
        fit(model, *batch(), batches=2, callbacks=[PartitionSchedule(model.loss)])
