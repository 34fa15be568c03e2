"""The loss in forked workers of a DataLoader, after the parent has used its threads."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from structent.losses.torch import StructuredCrossEntropy
from structent.structure.catalog import cifar100

N_BATCHES, N_ROWS, N_CLASSES = 4, 1200, 100  # rows enough for two threads


def rows(number):
    rng = np.random.default_rng(number)
    return rng.normal(size=(N_ROWS, N_CLASSES)), rng.integers(N_CLASSES, size=N_ROWS)


class LossesAndGradients(Dataset):
    """The loss and gradient of a batch as the items of a data set."""

    def __init__(self):
        self.loss = StructuredCrossEntropy(cifar100())

    def __len__(self):
        return N_BATCHES

    def __getitem__(self, number):
        torch.set_num_threads(2)  # a worker starts with one
        logits, labels = map(torch.from_numpy, rows(number))
        logits.requires_grad_()
        loss = self.loss(logits, labels)
        loss.backward()
        return loss.detach(), logits.grad


def main(file):
    data = LossesAndGradients()
    torch.set_num_threads(2)
    # No backward here: torch itself allows none in a fork of a process that has had one.
    data.loss(*map(torch.from_numpy, rows(0)))
    loader = DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork")
    torch.save(list(loader), file)


if __name__ == "__main__":
    main(sys.argv[1])
