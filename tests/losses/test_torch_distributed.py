"""The PyTorch loss in several processes, in files and in other precisions."""

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from structent import SpanningTreePartitions
from structent.kernels import reference
from structent.losses.torch import StructuredCrossEntropy, structured_cross_entropy
from structent.structure.catalog import cifar100, months
from tests.conftest import PROJECT
from tests.losses.torch_programs import fork_workers, two_ranks
from tests.losses.torch_programs.two_ranks import N_STEPS, RING, SAMPLER, SAVED_AFTER

pytestmark = [pytest.mark.slow, pytest.mark.requires("torch")]

WEIGHT = torch.tensor([0.5, 1.0, 2.0] * 4)  # exact in every precision


def run_program(*command):
    result = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr


# Two ranks


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two ranks saw, as two_ranks wrote it down."""
    folder = tmp_path_factory.mktemp("ranks")
    torchrun = ("torch.distributed.run", "--standalone", "--local-addr=127.0.0.1")
    run_program(*torchrun, "--nproc-per-node=2", "-m", two_ranks.__name__, folder)
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(2)]


@pytest.fixture(scope="module")
def one_process():
    """The same training in one process on the rows of both ranks, its partitions given by hand."""
    network = two_ranks.network()
    drawn = iter(map(SAMPLER.sample, range(N_STEPS)))

    def loss_of(features, labels):
        return structured_cross_entropy(network(features), labels, next(drawn))

    return two_ranks.train(network, loss_of, map(two_ranks.rows_of_all_ranks, range(N_STEPS)))


def values(seen, name):
    return torch.stack([torch.as_tensor(facts[name]) for facts in seen])


@pytest.mark.parametrize("run", ["same rows", "loss outside", "loss inside"])
def test_both_ranks_draw_the_partitions_of_the_sampler(ranks, run):
    expected = np.stack([SAMPLER.sample(step).block_of for step in range(N_STEPS)])
    assert len(np.unique(expected, axis=0)) == N_STEPS
    for rank in ranks:
        np.testing.assert_array_equal(values(rank[run], "block_of"), expected)


def test_both_ranks_have_the_same_loss_on_the_same_rows(ranks, one_process):
    first, second = (values(rank["same rows"], "loss") for rank in ranks)
    assert torch.equal(first, second)
    torch.testing.assert_close(first, values(one_process, "loss"), rtol=1e-12, atol=0)


@pytest.mark.parametrize("run", ["loss outside", "loss inside"])
def test_gradients_agree_and_are_those_of_one_process_on_all_rows(ranks, one_process, run):
    first, second = (rank[run] for rank in ranks)
    assert not torch.isclose(values(first, "loss"), values(second, "loss")).any()  # other rows
    assert torch.equal(values(first, "gradient"), values(second, "gradient"))
    expected = values(one_process, "gradient")
    torch.testing.assert_close(values(first, "gradient"), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("run", ["loss outside", "loss inside"])
def test_a_restart_goes_on_as_if_nothing_had_happened(ranks, run):
    for rank in ranks:
        uninterrupted, restarted = rank[run][SAVED_AFTER:], rank[f"{run}, restarted"]
        for name in ("step", "block_of", "loss", "gradient"):
            assert torch.equal(values(restarted, name), values(uninterrupted, name))


# Forked workers


def test_forked_workers_of_a_data_loader_compute_loss_and_gradient(tmp_path):
    run_program(fork_workers.__name__, tmp_path / "seen.pt")
    structure = cifar100()
    for number, (loss, gradient) in enumerate(torch.load(tmp_path / "seen.pt")):
        arguments = (*fork_workers.rows(number), structure.block_of, structure.weights)
        expected = reference.structured_cross_entropy_from_logits(*arguments, xp=np).mean()
        np.testing.assert_allclose(loss, expected, rtol=1e-12)
        expected = reference.gradient_from_logits(*arguments, xp=np) / fork_workers.N_ROWS
        np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-15)


# Copies and files


def by_pickle(module):
    return pickle.loads(pickle.dumps(module))  # noqa: S301  our own


def by_torch(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def rows_of_step(step):
    rng = torch.Generator().manual_seed(step)
    return torch.randn(8, 12, generator=rng), torch.randint(12, (8,), generator=rng)


@pytest.mark.parametrize("copied", [by_pickle, copy.deepcopy, by_torch])
def test_a_copy_goes_on_from_the_same_step_by_itself(copied):
    module = StructuredCrossEntropy(SAMPLER, weight=WEIGHT)
    module(*rows_of_step(0))
    other = copied(module)
    for step in (1, 2):
        expected = structured_cross_entropy(
            *rows_of_step(step), SAMPLER.sample(step), weight=WEIGHT
        )
        torch.testing.assert_close(other(*rows_of_step(step)), expected)
    assert (int(other.step), int(module.step)) == (3, 1)


@pytest.mark.parametrize("copied", [by_pickle, copy.deepcopy, by_torch])
def test_a_copy_keeps_the_options(copied):
    options = {"weight": WEIGHT, "ignore_index": 3, "reduction": "sum", "label_smoothing": 0.1}
    other = copied(StructuredCrossEntropy(months(), **options))
    expected = structured_cross_entropy(*rows_of_step(0), months(), **options)
    torch.testing.assert_close(other(*rows_of_step(0)), expected)


def test_a_copy_can_be_compiled_when_the_original_is_gone():
    # Compiled graphs find a sampler by a number, which must not be that of the original.
    pickled = pickle.dumps(StructuredCrossEntropy(SpanningTreePartitions(RING, 4, 0.25, seed=3)))
    other = pickle.loads(pickled)  # noqa: S301  our own
    compiled = torch.compile(other, backend="eager", fullgraph=True)
    for step in range(2):
        expected = structured_cross_entropy(*rows_of_step(step), SAMPLER.sample(step))
        torch.testing.assert_close(compiled(*rows_of_step(step)), expected)


@pytest.mark.parametrize(
    ("structure", "weight", "keys"),
    [
        (months(), None, set()),
        (months(), WEIGHT, {"weight"}),
        (SAMPLER, None, {"step"}),
        (SAMPLER, WEIGHT, {"weight", "step"}),
    ],
)
def test_the_state_is_the_class_weights_and_the_step(structure, weight, keys):
    assert set(StructuredCrossEntropy(structure, weight=weight).state_dict()) == keys


def test_a_loaded_state_goes_on_from_its_step():
    module, other = StructuredCrossEntropy(SAMPLER), StructuredCrossEntropy(SAMPLER)
    for step in range(SAVED_AFTER):
        module(*rows_of_step(step))
    other.load_state_dict(module.state_dict())
    rows = rows_of_step(SAVED_AFTER)
    expected = structured_cross_entropy(*rows, SAMPLER.sample(SAVED_AFTER))
    torch.testing.assert_close(other(*rows), expected)


# Other precisions


@pytest.mark.parametrize("structure", [months(), SAMPLER], ids=["fixed", "sampler"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_module_in_another_precision_computes_what_it_did(structure, dtype):
    module = StructuredCrossEntropy(structure, weight=WEIGHT).to(dtype)
    as_before = StructuredCrossEntropy(structure, weight=WEIGHT)
    for step in range(3):
        torch.testing.assert_close(module(*rows_of_step(step)), as_before(*rows_of_step(step)))
    assert [array.dtype for array in module.arrays] == [torch.int32, torch.float64]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_module_and_logits_of_one_precision_give_that_of_the_reference(dtype):
    module = StructuredCrossEntropy(SAMPLER).to(dtype)
    for step in range(3):
        logits, labels = rows_of_step(step)
        logits, drawn = logits.to(dtype), SAMPLER.sample(step)
        expected = reference.structured_cross_entropy_from_logits(
            logits.double().numpy(), labels.numpy(), drawn.block_of, drawn.weights, xp=np
        ).mean()
        expected = torch.tensor(expected, dtype=dtype)  # rounded once, at the end
        torch.testing.assert_close(module(logits, labels), expected)
    assert module.step.dtype == torch.int64
