"""Month and county of a day's weather, predicted as one pair: does the product structure help?

``python -m benchmarks.beyond.joint_targets --data ../shared/data`` trains boosted trees on pairs,
12 months times 37 counties, with the product of the circle and the graph, with parts of it, and
with nonsense; every finished run is a line of ``docs/results/joint_targets.jsonl``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.beyond.command import RESULTS, finished_runs
from benchmarks.beyond.joint_targets_page import page
from structent import (
    Partition,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
    StructuredBoostingClassifier,
    mix,
    trivial,
)
from structent._files import save_bytes
from structent.experiments.experiment import Result, Settings
from structent.experiments.weather.rows import Draw, Rows, county_graph, draw
from structent.metrics import block_log_loss
from structent.structure import catalog

COMMAND = "python -m benchmarks.beyond.joint_targets --data ../shared/data"

SIZES, N_TRIALS, N_VALIDATION, N_TEST = (2000,), 5, 2000, 10_000
N_BLOCKS = 10
ARMS = (
    "none", "product", "product and marginals", "circle alone", "graph alone", "scrambled",
    "two models",
)  # fmt: skip
MONTHS = catalog.months()


@dataclass(frozen=True)
class JointTargets:
    """The runs: every arm on the same rows of each trial."""

    name = "joint_targets"
    kept_in = "joint_targets"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run, a trial at a time."""
        return [
            {"size": size, "trial": trial, "arm": arm}
            for size in SIZES
            for trial in range(N_TRIALS)
            for arm in ARMS
        ]

    def prepare(self, n_threads: int, on_progress: Any) -> None:
        """Nothing is shared."""

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one is enough
        """Return the log loss of the pairs, and of the months and counties alone."""
        size, trial, arm = settings["size"], settings["trial"], settings["arm"]
        counties = county_graph(self.data)
        by_county = SpanningTreePartitions(counties, N_BLOCKS, 0.5, seed=trial)
        months, places = (_rows(self.data, label, size, trial) for label in ("month", "county"))
        if arm == "two models":
            return _two_models(months, places, by_county, trial)
        structure = _structure(arm, by_county, trial)
        model = _model(structure, trial).fit(
            months.train.features,
            _pairs(months.train, places.train),
            eval_set=(months.validation.features, _pairs(months.validation, places.validation)),
        )
        labels, proba = _pairs(months.test, places.test), model.predict_proba(months.test.features)
        found = {"pair": trivial(structure.classes).partitions[0], **_marginals(structure.classes)}
        losses = {
            name: round(block_log_loss(labels, proba, partition, classes=model.classes_), 6)
            for name, partition in found.items()
        }
        return {**losses, "trees": model.best_iteration_ + 1}


def _structure(
    arm: str, by_county: SpanningTreePartitions, trial: int
) -> RandomPartition | PartitionSampler:
    joint = MONTHS.product(by_county)
    if arm == "none":
        return trivial(joint.classes)
    if arm == "product":
        return joint
    if arm == "scrambled":
        return joint.scramble(np.random.default_rng(trial))
    if arm == "circle alone":
        return MONTHS.product(trivial(by_county.classes))
    if arm == "graph alone":
        return trivial(MONTHS.classes).product(by_county)
    marginals = _marginals(joint.classes)
    return mix([joint, RandomPartition(marginals.values(), levels=list(marginals))])


def _marginals(pairs: tuple[Any, ...]) -> dict[str, Partition]:
    """Return what it is to look at the month alone, and at the county alone."""
    return {
        "month": Partition.from_mapping({pair: pair[0] for pair in pairs}),
        "county": Partition.from_mapping({pair: pair[1] for pair in pairs}),
    }


def _two_models(
    months: Draw, places: Draw, by_county: SpanningTreePartitions, trial: int
) -> Result:
    """Return the losses where each label has a model, and a pair the product of both."""
    found: dict[str, Any] = {"pair": 0.0}
    trees = []
    for name, rows, structure in (("month", months, MONTHS), ("county", places, by_county)):
        model = _model(structure, trial)
        model.fit(rows.train.features, rows.train.labels, eval_set=tuple(rows.validation))
        proba = model.predict_proba(rows.test.features)
        classes = trivial(structure.classes)
        loss = block_log_loss(rows.test.labels, proba, classes, classes=model.classes_)
        found[name] = round(loss, 6)
        found["pair"] = round(found["pair"] + loss, 6)
        trees.append(model.best_iteration_ + 1)
    return {**found, "trees": max(trees)}


def _rows(data: Path, label: str, size: int, trial: int) -> Draw:
    """Return the rows of a trial, the same whatever the label."""
    return draw(data, label, n_train=size, n_validation=N_VALIDATION, n_test=N_TEST, trial=trial)


def _pairs(months: Rows, places: Rows) -> NDArray[np.object_]:
    pairs = zip(months.labels.tolist(), places.labels.tolist(), strict=True)
    return np.fromiter(pairs, dtype=object, count=len(months.labels))


def _model(structure: Any, trial: int) -> StructuredBoostingClassifier:
    return StructuredBoostingClassifier(
        structure, learning_rate=0.1, subsample=0.632, early_stopping_rounds=15,
        random_state=trial, n_jobs=1,
    )  # fmt: skip


def main() -> None:
    """Do the runs that are missing, and write the page."""
    finished = finished_runs(JointTargets, __doc__)
    save_bytes(RESULTS / "joint_targets.md", page(finished, COMMAND).encode())


if __name__ == "__main__":
    main()
