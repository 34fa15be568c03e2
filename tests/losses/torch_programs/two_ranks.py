"""One rank of a distributed training: ``torchrun`` starts two, and each writes down what it saw."""

import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from structent import LabelGraph, SpanningTreePartitions
from structent.losses.torch import StructuredCrossEntropy

N_STEPS, SAVED_AFTER = 5, 3
N_CLASSES, N_FEATURES, ROWS_OF_A_RANK = 12, 6, 8

RING = LabelGraph([(c, (c + 1) % N_CLASSES) for c in range(N_CLASSES)])
SAMPLER = SpanningTreePartitions(RING, n_blocks=4, singleton_weight=0.25, seed=3)


class WithLoss(torch.nn.Module):
    """A model that returns its own loss, so that the loss is inside of what is distributed."""

    def __init__(self):
        super().__init__()
        self.network = network()
        self.loss = StructuredCrossEntropy(SAMPLER)

    def forward(self, features, labels):
        return self.loss(self.network(features), labels)


def network():
    torch.manual_seed(0)
    return torch.nn.Linear(N_FEATURES, N_CLASSES, dtype=torch.float64)


def rows_of_all_ranks(step):
    rng = torch.Generator().manual_seed(step)
    n_rows = 2 * ROWS_OF_A_RANK
    features = torch.randn(n_rows, N_FEATURES, generator=rng, dtype=torch.float64)
    return features, torch.randint(N_CLASSES, (n_rows,), generator=rng)


def rows_of(rank, step):
    own = slice(rank * ROWS_OF_A_RANK, (rank + 1) * ROWS_OF_A_RANK)
    return tuple(tensor[own] for tensor in rows_of_all_ranks(step))


def train(network, loss_of, batches):
    """Return loss and gradient of each step."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    seen = []
    for features, labels in batches:
        optimizer.zero_grad()
        loss = loss_of(features, labels)
        loss.backward()
        gradient = torch.cat([p.grad.flatten() for p in network.parameters()])
        seen.append({"loss": loss.detach(), "gradient": gradient})
        optimizer.step()
    return seen


def train_with_loss_outside(batches, state=None):
    plain, criterion = network(), StructuredCrossEntropy(SAMPLER)
    if state is not None:
        plain.load_state_dict(state["network"])
        criterion.load_state_dict(state["loss"])
    replica = DistributedDataParallel(plain)
    steps = []

    def loss_of(features, labels):
        steps.append(int(criterion.step))
        return criterion(replica(features), labels)

    seen = train(plain, loss_of, batches)
    return _with_steps(seen, steps), {
        "network": plain.state_dict(),
        "loss": criterion.state_dict(),
    }


def train_with_loss_inside(batches, state=None):
    model = WithLoss()
    if state is not None and distributed.get_rank() == 0:  # rank 1 gets it from rank 0
        model.load_state_dict(state)
    replica = DistributedDataParallel(model)
    steps = []

    def loss_of(features, labels):
        loss = replica(features, labels)
        steps.append(int(model.loss.step) - 1)  # before the call rank 1 may not know it
        return loss

    seen = train(model, loss_of, batches)
    return _with_steps(seen, steps), model.state_dict()


def restarted(train_from, batches, file):
    """Train for some steps, save, and go on with new modules."""
    _, state = train_from(batches[:SAVED_AFTER])
    torch.save(state, file)
    seen, _ = train_from(batches[SAVED_AFTER:], torch.load(file))
    return seen


def _with_steps(seen, steps):
    drawn = [torch.tensor(SAMPLER.sample(step).block_of) for step in steps]
    return [
        {**facts, "step": step, "block_of": block_of}
        for facts, step, block_of in zip(seen, steps, drawn, strict=True)
    ]


def main(folder):
    # The timeout ends a rank whose other one has died.
    distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = distributed.get_rank()
    same = [rows_of_all_ranks(step) for step in range(N_STEPS)]
    own = [rows_of(rank, step) for step in range(N_STEPS)]
    file = folder / f"state{rank}.pt"
    seen = {
        "same rows": train_with_loss_outside(same)[0],
        "loss outside": train_with_loss_outside(own)[0],
        "loss inside": train_with_loss_inside(own)[0],
        "loss outside, restarted": restarted(train_with_loss_outside, own, file),
        "loss inside, restarted": restarted(train_with_loss_inside, own, file),
    }
    torch.save(seen, folder / f"rank{rank}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
