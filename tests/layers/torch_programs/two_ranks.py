"""A distributed training of the layer in two processes, which meet in a file.

No port is needed for that: two tests that look for a free one at the same time may find the same.
"""

import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.nn import functional as F  # noqa: N812  as everybody calls it
from torch.nn.parallel import DistributedDataParallel

from structent.layers.torch import StructuredLinear
from structent.structure.catalog import months
from tests.losses.torch_programs.two_ranks import (
    N_FEATURES,
    N_STEPS,
    rows_of,
    rows_of_all_ranks,
    train,
)


def layer():
    torch.manual_seed(0)
    return StructuredLinear(N_FEATURES, months(), dtype=torch.float64)


def train_in_one_process():
    """Return loss and gradient of each step, on the rows of both ranks."""
    plain = layer()
    batches = map(rows_of_all_ranks, range(N_STEPS))
    return train(plain, lambda x, y: F.cross_entropy(plain(x), y), batches)


def train_as(rank, folder):
    """Train as one of two ranks, and write down what it saw."""
    torch.set_num_threads(1)
    store = distributed.FileStore(str(folder / "store"), 2)
    # The timeout ends a rank whose other one has died.
    timeout = timedelta(seconds=60)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timeout)
    torch.save(seen_by(rank), folder / f"rank{rank}.pt")
    distributed.destroy_process_group()


def seen_by(rank):
    """Return loss and gradient of each step of a rank.

    When this returns, the replica is gone. If it went after the process group, it would end gloo's
    threads while it holds Python's lock, for which one of them may be waiting (torch 2.13).
    """
    plain = layer()
    replica = DistributedDataParallel(plain)
    batches = [rows_of(rank, step) for step in range(N_STEPS)]
    return train(plain, lambda x, y: F.cross_entropy(replica(x), y), batches)


if __name__ == "__main__":
    torch.multiprocessing.spawn(train_as, (Path(sys.argv[1]),), nprocs=2)
