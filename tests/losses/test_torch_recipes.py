"""The recipes for Lightning, skorch and the Hugging Face Trainer, run as the page shows them."""

import contextlib
import io
import re

import numpy as np
import pytest
import torch

from structent import SpanningTreePartitions
from structent.kernels import reference
from structent.losses.torch import structured_cross_entropy
from structent.structure.catalog import california_counties, months
from tests.conftest import PROJECT

PAGE = PROJECT / "docs" / "how-to" / "pytorch-recipes.md"
SHOWN_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
SAMPLER = SpanningTreePartitions(california_counties(), n_blocks=8, singleton_weight=0.5)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requires("torch"),
    # Lightning looks at the batches through a name that torch has deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning"),
    # Lightning tells what a tiny run on a small machine leaves out.
    pytest.mark.filterwarnings("ignore:.*tensorboardX.* has been removed:UserWarning"),
    pytest.mark.filterwarnings("ignore:The number of training batches:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Transformers asks for pinned memory, which only a GPU has.
    pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning"),
]


def run_section(title, folder):
    """Run the blocks of a section; return the names after each, and what it printed and shows."""
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    names, runs = {}, []
    torch.manual_seed(0)
    with contextlib.chdir(folder):
        for block in SHOWN_BLOCK.finditer(section):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block["code"], PAGE.name, "exec"), names)  # noqa: S102  our own page
            runs.append((dict(names), printed.getvalue(), block["output"] or ""))
    assert len(runs) == 2
    return runs


def weights_of(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


# PyTorch Lightning


@pytest.fixture(scope="module")
def lightning(tmp_path_factory):
    return run_section("PyTorch Lightning", tmp_path_factory.mktemp("lightning"))


@pytest.mark.requires("pytorch_lightning")
def test_the_lightning_recipes_print_what_the_page_shows(lightning):
    for _, printed, shown in lightning:
        assert shown
        assert printed.endswith(shown)


@pytest.mark.requires("pytorch_lightning")
def test_lightning_logs_the_loss_of_each_level_on_the_validation_rows(lightning):
    trainer, classifier = (lightning[0][0][name] for name in ("trainer", "classifier"))
    features, labels = trainer.val_dataloaders.dataset.tensors
    logits = classifier.network(features).detach().numpy().astype(np.float64)

    def loss_of(partitions, weights):
        block_of = np.stack([partition.block_of for partition in partitions])
        return reference.structured_cross_entropy_from_logits(
            logits, labels.numpy(), block_of, np.asarray(weights), xp=np
        ).mean()

    circle, classes = months().partitions[:3], months().partitions[3:]
    expected = {
        "val_loss": loss_of([*circle, *classes], months().weights),
        "val_loss/width 3": loss_of(circle, [1 / 3] * 3),
        "val_loss/class": loss_of(classes, [1.0]),
    }
    logged = {name: float(trainer.logged_metrics[name]) for name in expected}
    assert logged == pytest.approx(expected, rel=1e-5)


@pytest.mark.requires("pytorch_lightning")
def test_lightning_draws_for_each_training_batch_and_goes_on_from_a_checkpoint(lightning, tmp_path):
    names = lightning[1][0]
    assert int(names["counties"].loss.step) == 8

    options = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False}
    saved = tmp_path / "saved.ckpt"

    def fit(max_epochs, checkpoint=None):
        torch.manual_seed(1)
        classifier = names["Classifier"](8, SAMPLER)
        trainer = names["pl"].Trainer(max_epochs=max_epochs, **options)
        rows = names["trainer"].train_dataloader
        trainer.fit(classifier, rows, rows, ckpt_path=checkpoint)
        trainer.save_checkpoint(saved)
        return classifier

    uninterrupted = fit(max_epochs=2)
    fit(max_epochs=1)
    resumed = fit(max_epochs=2, checkpoint=saved)
    assert int(resumed.loss.step) == int(uninterrupted.loss.step) == 8
    assert torch.equal(weights_of(resumed), weights_of(uninterrupted))


# skorch


@pytest.fixture(scope="module")
def skorch(tmp_path_factory):
    return run_section("skorch", tmp_path_factory.mktemp("skorch"))


@pytest.mark.requires("skorch")
def test_the_skorch_recipes_print_what_the_page_shows(skorch):
    for _, printed, shown in skorch:
        assert shown
        assert printed == shown


@pytest.mark.requires("skorch")
def test_skorch_trains_with_the_loss_and_predicts_its_probabilities(skorch):
    names = skorch[0][0]
    features, labels = names["features"], names["labels"]
    torch.manual_seed(0)
    options = {"max_epochs": 1, "batch_size": -1, "train_split": None}
    network = names["structured_network"](months(), **options).initialize()
    logits = network.module_(torch.from_numpy(features))
    expected = structured_cross_entropy(logits, torch.from_numpy(labels), months())
    gradient = torch.autograd.grad(expected, list(network.module_.parameters()))
    before = weights_of(network.module_)
    network.partial_fit(features, labels)  # one step of all rows
    step = -0.1 * torch.cat([each.flatten() for each in gradient])
    assert network.history[0, "train_loss"] == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(weights_of(network.module_) - before, step, rtol=1e-3, atol=1e-6)
    with torch.no_grad():
        proba = torch.softmax(network.module_(torch.from_numpy(features)), dim=1).numpy()
    np.testing.assert_allclose(network.predict_proba(features), proba, rtol=1e-5)


@pytest.mark.requires("skorch")
def test_skorch_validates_on_the_classes_alone_and_goes_on_from_saved_parameters(skorch, tmp_path):
    names = skorch[1][0]
    rows = names["rows"], np.tile(np.arange(58), 5)
    files = {f"f_{part}": tmp_path / part for part in ("params", "criterion", "optimizer")}

    def network():
        torch.manual_seed(1)
        return names["structured_network"](SAMPLER, max_epochs=1, batch_size=58).initialize()

    uninterrupted = network().partial_fit(*rows).partial_fit(*rows)
    network().partial_fit(*rows).save_params(**files)
    resumed = network()
    resumed.load_params(**files)
    resumed.partial_fit(*rows)
    assert int(resumed.criterion_.step) == int(uninterrupted.criterion_.step) == 8
    assert torch.equal(weights_of(resumed.module_), weights_of(uninterrupted.module_))
    held = resumed.get_split_datasets(*rows)[1].indices
    with torch.no_grad():
        logits = resumed.module_(torch.from_numpy(rows[0][held]))
        plain = torch.nn.functional.cross_entropy(logits, torch.from_numpy(rows[1][held]))
    assert resumed.history[-1, "valid_loss"] == pytest.approx(float(plain), rel=1e-5)


# Hugging Face Trainer


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    return run_section("Hugging Face Trainer", tmp_path_factory.mktemp("hugging_face"))


def exact_arguments(names, folder, **options):
    """Arguments under which a step of the Trainer is a plain step of gradient descent."""
    plain = {"optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0.0}
    return names["TrainingArguments"](
        output_dir=folder, use_cpu=True, report_to="none", **{**plain, **options}
    )


def model_without_dropout(names, kind, n_classes):
    import transformers

    torch.manual_seed(1)
    config = names["tiny_model"](n_classes).config
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    return getattr(transformers, kind)(config)


@pytest.mark.requires("transformers")
def test_the_hugging_face_recipes_print_what_the_page_shows(hugging_face):
    (_, _, nothing), (_, printed, shown) = hugging_face
    assert nothing == ""
    assert shown
    assert printed.endswith(shown)


@pytest.mark.requires("transformers")
@pytest.mark.parametrize(
    ("kind", "label_shape"),
    [("BertForSequenceClassification", (8,)), ("BertForTokenClassification", (8, 6))],
)
def test_an_accumulated_step_is_that_of_the_mean_over_all_labels(
    hugging_face, tmp_path, kind, label_shape
):
    names = hugging_face[0][0]
    model = model_without_dropout(names, kind, 12)
    texts, labels = torch.randint(50, (8, 6)), torch.randint(12, label_shape)
    labels[:3] = -100  # so that batches differ in how many labels they have
    rows = [{"input_ids": text, "labels": label} for text, label in zip(texts, labels, strict=True)]

    before = weights_of(model)
    logits = model(input_ids=texts).logits
    loss = structured_cross_entropy(logits.movedim(-1, 1), labels, months())
    gradient = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True)
    expected = -torch.cat([g.flatten() for g in gradient])

    arguments = exact_arguments(
        names,
        tmp_path,
        learning_rate=1.0,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        num_train_epochs=1,
        save_strategy="no",
    )
    trainer = names["structured_trainer"](model, months(), args=arguments, train_dataset=rows)
    trainer.train()
    assert trainer.state.global_step == 1
    torch.testing.assert_close(weights_of(model) - before, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.requires("transformers")
def test_evaluation_between_steps_is_plain_and_draws_nothing(hugging_face, tmp_path):
    names = hugging_face[0][0]
    model = model_without_dropout(names, "BertForSequenceClassification", 58)
    rows = names["random_texts"](16, 58)
    trainer = names["structured_trainer"](
        model,
        SAMPLER,
        args=exact_arguments(names, tmp_path, max_steps=2, eval_strategy="steps", eval_steps=1),
        train_dataset=rows,
        eval_dataset=rows,
    )
    trainer.train()
    evaluations = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    assert (len(evaluations), int(model.structured_loss.step)) == (2, 2)
    with torch.no_grad():
        logits = model(input_ids=torch.stack([row["input_ids"] for row in rows])).logits
    labels = torch.stack([row["labels"] for row in rows])
    expected = float(torch.nn.functional.cross_entropy(logits, labels))
    assert evaluations[-1]["eval_loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.requires("transformers")
def test_the_trainer_draws_for_each_training_batch_and_goes_on_from_a_checkpoint(
    hugging_face, tmp_path
):
    names = hugging_face[0][0]
    rows = names["random_texts"](32, 58)
    batches = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}

    def train(folder, checkpoint=None):
        model = model_without_dropout(names, "BertForSequenceClassification", 58)
        arguments = exact_arguments(
            names, folder, learning_rate=0.5, num_train_epochs=2, save_strategy="epoch", **batches
        )
        trainer = names["structured_trainer"](model, SAMPLER, args=arguments, train_dataset=rows)
        trainer.train(resume_from_checkpoint=checkpoint)
        return model

    uninterrupted = train(tmp_path / "uninterrupted")
    resumed = train(tmp_path / "resumed", tmp_path / "uninterrupted" / "checkpoint-4")
    assert int(resumed.structured_loss.step) == int(uninterrupted.structured_loss.step) == 16
    assert torch.equal(weights_of(resumed), weights_of(uninterrupted))
