"""What is measured of logits, by the project's metrics in NumPy."""

import numpy as np
from scipy.special import softmax

from structent.metrics import block_accuracy, structured_log_loss
from structent.structure import catalog, trivial

CIFAR = catalog.cifar100()
LEVELS = {
    "accuracy": "class",
    "accuracy 2": "superclass",
    "accuracy 3": "category",
    "accuracy 4": "supercategory",
}


def measured(labels, logits):
    names = [CIFAR.classes[label] for label in labels]
    proba = softmax(np.asarray(logits, dtype=float), axis=1)
    # The paper's accuracy of a level is that of the likeliest class, not of the likeliest block.
    certain = np.eye(100)[proba.argmax(axis=1)]
    return {
        "cross-entropy": structured_log_loss(names, proba, trivial(CIFAR.classes)),
        "structured": structured_log_loss(names, proba, CIFAR),
        **{
            name: block_accuracy(names, certain, CIFAR, level=level)
            for name, level in LEVELS.items()
        },
    }
