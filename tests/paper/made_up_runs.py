"""Finished runs with values that can be reckoned by hand."""

from paper.experiment import Finished

ACCURACIES = ("accuracy", "accuracy 2", "accuracy 3", "accuracy 4")


def run(
    loss, trial, *, entropy, accuracy=0.2, experiment="1A", size=1000, network="small CNN",
    validation=None,
):  # fmt: skip
    """A run whose cross-entropies after epochs 10, 20, ... are given, as are its accuracies.

    Accuracies are one number for classes, to which each coarser level adds .1, or one an epoch.
    """
    n_epochs = len(entropy)
    accuracies = accuracy if isinstance(accuracy, list) else [accuracy] * n_epochs
    test = {
        "cross-entropy": list(entropy),
        "structured": [value / 2 for value in entropy],
        **{
            name: [value + 0.1 * level for value in accuracies]
            for level, name in enumerate(ACCURACIES)
        },
    }
    return Finished(
        settings={
            "experiment": experiment, "preset": "quick", "size": size, "network": network,
            "loss": loss, "trial": trial, "schedule": {"epochs": 10 * n_epochs},
        },
        result={
            "epochs": [10 * (place + 1) for place in range(n_epochs)],
            "seen": "validation and test after these epochs",
            "validation": {**test, "cross-entropy": list(validation or entropy)},
            "test": test,
        },
        seconds=1.0,
        date="2025-01-01",
        machine="a machine",
    )  # fmt: skip


def pair(gains, *, size=1000, accuracy_gain=0.01, **options):
    """Standard and structured runs of one epoch: 3 without structure, a gain with it by trial."""
    runs = []
    for trial, gain in enumerate(gains):
        runs.append(run("standard", trial, entropy=[3.0], size=size, **options))
        runs.append(
            run(
                "structured", trial, entropy=[3.0 - gain], size=size,
                accuracy=0.2 + accuracy_gain, **options,
            )
        )  # fmt: skip
    return runs
