"""Rows of twelve classes on a circle, and a cluster of two processes to train on."""

import contextlib
import logging

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from structent import LabelGraph, SpanningTreePartitions, circular

# The same on a cluster and on one machine, whatever the defaults of each are.
XGBOOST = {
    "engine": "xgboost", "learning_rate": 0.1, "max_depth": 3, "subsample": 1.0, "colsample": 1.0,
    "split_search": "full", "random_state": 0,
}  # fmt: skip
MONTHS = circular([f"m{month:02}" for month in range(12)], width=3)
NEIGHBOURS = LabelGraph([(MONTHS.classes[c], MONTHS.classes[c - 1]) for c in range(12)])
SAMPLER = SpanningTreePartitions(NEIGHBOURS, n_blocks=4, singleton_weight=0.4, seed=3)


def circle_rows(n_rows, seed, *, decimals=1):
    """Return a table with missing values, and labels.

    With one decimal a column has fewer values than XGBoost has bins: however the rows are spread
    over workers, the bins are the same.
    """
    rng = np.random.default_rng(seed)
    codes = rng.integers(12, size=n_rows)
    angle = 2 * np.pi * codes / 12
    table = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n_rows)])
    table = (table + rng.normal(0, 0.7, table.shape)).round(decimals)
    table[rng.random(table.shape) < 0.05] = np.nan
    return table, np.array(MONTHS.classes)[codes]


def circle_frame(n_rows, seed):
    """Return the same as a pandas table with a text and a categorical column, and its labels."""
    numbers, y = circle_rows(n_rows, seed)
    right, up, noise = numbers.T
    side = np.where(np.isnan(right), None, np.where(right > 0, "east", "west"))
    third = pd.Categorical(np.nan_to_num(up).round().astype(int))
    table = pd.DataFrame({"up": up, "noise": noise, "side": side, "third": third})
    return table, pd.Series(y, name="month")


@contextlib.contextmanager
def two_workers():
    """Give the client of a cluster of two processes."""
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )
    with cluster, Client(cluster) as client:
        yield client
