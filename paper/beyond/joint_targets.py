"""Month and county of a day's weather, predicted as one pair: does the product structure help?

Boosted trees are trained on pairs, 12 months times 37 counties, with the product of the circle and
the graph, with parts of it, and with nonsense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from paper.beyond import Asked
from paper.digests import Sources
from paper.experiment import Experiment, Finished, Result, Settings
from paper.pages import Mean, Page, difference_of, mean_of, table, with_error
from paper.weather import BOOSTER, Draw, Examples, county_graph, county_sources, draw
from structent import (
    Partition,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
    StructuredBoostingClassifier,
    mix,
    trivial,
)
from structent.metrics import block_log_loss
from structent.structure import catalog

_SIZES, _N_TRIALS, _N_VALIDATION, _N_TEST = (2000,), 5, 2000, 10_000
_N_BLOCKS = 10
_MONTHS = catalog.months()

# What is trained, and with which structure.
_ARMS = {
    "none": "no structure",
    "product": "circle x graph",
    "product and marginals": "circle x graph, half; month and county alone, a quarter each",
    "circle alone": "circle x no structure",
    "graph alone": "no structure x graph",
    "scrambled": "circle x graph, the pairs shuffled",
    "two models": "a model for each label, with circle and graph",
}
_LOSSES = ("pair", "month", "county")
# Compared at every size: the second arm with the first.
_OTHER_PAIRS = (("scrambled", "product"), ("product", "product and marginals"),
               ("two models", "product"))  # fmt: skip

# The values in each trial, by arm and loss.
_Losses = Mapping[tuple[str, str], Mapping[int, float]]


@dataclass(frozen=True)
class JointTargets:
    """The runs: every arm on the same rows of each trial."""

    name: ClassVar[str] = "joint_targets"
    kept_in: ClassVar[str] = "joint_targets"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run, a trial at a time."""
        return [
            {"size": size, "trial": trial, "arm": arm}
            for size in _SIZES
            for trial in range(_N_TRIALS)
            for arm in _ARMS
        ]

    def sources(self, settings: Settings) -> Sources:  # noqa: ARG002  the same for all
        """Return the weather and the graph."""
        return county_sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one is enough
        """Return the log loss of the pairs, and of the months and counties alone."""
        size, trial, arm = settings["size"], settings["trial"], settings["arm"]
        counties = county_graph(self.data)
        by_county = SpanningTreePartitions(counties, _N_BLOCKS, 0.5, seed=trial)
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


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [JointTargets(asked.data)]


def page(asked: Asked) -> Page:
    """Return the page."""
    finished = asked.kept("joint_targets").finished_of(JointTargets(asked.data).runs())
    minutes = sum(run.seconds for run in finished) / 60
    parts = [
        "# Month and county at once",
        (
            "A day's weather in California (three numbers), and two questions: which month is it, "
            "and which county? One model answers both, with 12 x 37 = 444 pairs for classes. The "
            "months are a circle (width 3, singletons 0.3), the counties a graph (10 connected "
            "blocks, drawn for every tree, singletons 0.5), and the pairs have their product: for "
            "each tree 8 partitions, in which single pairs have the weight 0.15. Boosted trees of "
            "depth 3 (XGBoost), learning rate 0.1, early stopping on 2,000 validation rows; "
            "nothing is tuned. All arms of a trial share its rows; 10,000 test rows. "
            "[How it is done](../tutorials/joint-targets.md)."
        ),
        (
            f"Command: `{asked.command}`. {len(finished)} runs took {minutes:.0f} minutes on a "
            f"share of one busy processor, until {max(run.date for run in finished)}."
        ),
        f"Machine: {finished[-1].machine}.",
        *(part for size in _SIZES for part in _of_size(size, _losses(finished, size))),
    ]
    return Page("joint_targets", "\n\n".join(parts))


def _structure(
    arm: str, by_county: SpanningTreePartitions, trial: int
) -> RandomPartition | PartitionSampler:
    joint = _MONTHS.product(by_county)
    if arm == "none":
        return trivial(joint.classes)
    if arm == "product":
        return joint
    if arm == "scrambled":
        return joint.scramble(np.random.default_rng(trial))
    if arm == "circle alone":
        return _MONTHS.product(trivial(by_county.classes))
    if arm == "graph alone":
        return trivial(_MONTHS.classes).product(by_county)
    marginals = _marginals(joint.classes)
    return mix([joint, RandomPartition(marginals.values(), levels=list(marginals))])


def _marginals(pairs: tuple[Any, ...]) -> dict[str, Partition]:
    """Return the partition of the pairs by month alone, and the one by county alone."""
    return {
        "month": Partition.from_mapping({pair: pair[0] for pair in pairs}),
        "county": Partition.from_mapping({pair: pair[1] for pair in pairs}),
    }


def _two_models(
    months: Draw, places: Draw, by_county: SpanningTreePartitions, trial: int
) -> Result:
    """Return the losses if each label has its own model, and a pair gets the product of both."""
    found: dict[str, Any] = {"pair": 0.0}
    trees = []
    for name, rows, structure in (("month", months, _MONTHS), ("county", places, by_county)):
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
    return draw(data, label, n_train=size, n_validation=_N_VALIDATION, n_test=_N_TEST, trial=trial)


def _pairs(months: Examples, places: Examples) -> NDArray[np.object_]:
    pairs = zip(months.labels.tolist(), places.labels.tolist(), strict=True)
    return np.fromiter(pairs, dtype=object, count=len(months.labels))


def _model(structure: Any, trial: int) -> StructuredBoostingClassifier:
    settings = BOOSTER | {"learning_rate": 0.1, "subsample": 0.632, "early_stopping_rounds": 15}
    return StructuredBoostingClassifier(structure, random_state=trial, n_jobs=1, **settings)


def _losses(runs: Sequence[Finished], size: int) -> _Losses:
    return {
        (arm, loss): {
            run.settings["trial"]: run.result[loss]
            for run in runs
            if run.settings["arm"] == arm and run.settings["size"] == size
        }
        for arm in _ARMS
        for loss in (*_LOSSES, "trees")
    }


def _of_size(size: int, losses: _Losses) -> list[str]:
    rows = [
        [
            arm,
            meaning,
            *(with_error(mean_of(losses[arm, loss])) for loss in _LOSSES),
            f"{mean_of(losses[arm, 'trees']).value:.0f}",
        ]
        for arm, meaning in _ARMS.items()
    ]
    pairs = [*(("none", arm) for arm in _ARMS if arm != "none"), *_OTHER_PAIRS]
    return [
        f"## {size:,} training rows",
        f"Test log loss in nats, mean and standard error over {_N_TRIALS} trials:",
        table(["arm", "structure", *_LOSSES, "trees"], rows, n_left=2),
        "Differences, paired by trial, with their 95 % interval:",
        table(
            ["from", "to", *_LOSSES],
            [[*pair, *map(_with_interval, _differences(losses, *pair))] for pair in pairs],
            n_left=2,
        ),
        "\n".join(f"- {_finding(losses, *pair)}" for pair in pairs),
    ]


def _differences(losses: _Losses, first: str, second: str) -> list[Mean]:
    return [difference_of(losses[second, loss], losses[first, loss]) for loss in _LOSSES]


def _with_interval(difference: Mean) -> str:
    low, high = (difference.value + side * difference.half_width for side in (-1, 1))
    return f"{difference.value:+.4f} [{low:+.4f}, {high:+.4f}]"


def _finding(losses: _Losses, first: str, second: str) -> str:
    """Return a sentence on how the three losses change from one arm to another."""
    named = dict(zip(_LOSSES, _differences(losses, first, second), strict=True))
    lower = [loss for loss, difference in named.items() if difference.is_lower]
    higher = [loss for loss, difference in named.items() if difference.is_higher]
    unclear = [loss for loss in _LOSSES if loss not in (*lower, *higher)]
    said = [
        f"{verb} for the {' and the '.join(which)}"
        for verb, which in (("better", lower), ("worse", higher), ("no clear difference", unclear))
        if which
    ]
    return f"**{second}** against {first}: {', '.join(said)}."
