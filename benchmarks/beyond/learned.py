"""Structures that are learned: do planted ones come back, and what are they worth on real data?

``python -m benchmarks.beyond.learned --data ../shared/data`` looks for planted partitions in
Gaussian classes, learns how months are related from a day's weather, and how the classes of
CIFAR-100 are from frozen features, and compares log losses with structures that people made.
"""

import argparse
import warnings
from dataclasses import dataclass
from functools import cache
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.beyond.cifar100_features import (
    Features,
    cifar100_features,
    fresh_cifar100_features,
)
from benchmarks.beyond.learned_page import write_page
from benchmarks.beyond.planted import Planted
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.linear import StructuredLogisticRegression
from structent.experiments.experiment import Result, Settings
from structent.experiments.kept import Kept
from structent.experiments.run import do_runs
from structent.experiments.weather.rows import draw
from structent.metrics import block_accuracy, block_log_loss
from structent.structure import (
    RandomPartition,
    SpanningTreePartitions,
    catalog,
    circular,
    distances_from_confusion,
    neighbour_graph_from_confusion,
    structure_from_confusion,
    trivial,
)
from structent.studies import learn_structure, out_of_fold_confusion
from structent.studies.progress import OnProgress

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SHAPES = ((3, 3, 3), (2, 4, 5))
SCALES, RATIOS, SEEDS = (0.2, 0.3, 0.45, 0.7, 1.0), (1.5, 2.0, 3.0), range(3)
N_A_CLASS, N_LEVELS = 40, 3
N_DAYS, N_TEST_OF_DAYS, N_TRIALS_OF_DAYS, N_BLOCKS = 2000, 20_000, 6, 4
IMAGES = ((1000, 5), (2500, 3))  # training images, and disjoint slices of so many
STRENGTHS = (0.003, 0.01, 0.03, 0.1)
N_COMPONENTS, N_SUPERCLASSES = 200, 20
FRESH = "no run had these rows when the rule for cuts was made"  # a setting of runs that confirm
CUTS = "at most half as many blocks as classes"  # runs without this setting are of the first rule


@dataclass(frozen=True)
class Learned:
    """The experiment, on the data in a folder."""

    data: Path
    name: ClassVar[str] = "learned"
    kept_in: ClassVar[str] = "learned"

    def runs(self) -> list[Settings]:
        """Return images and months in turn, the planted problems, and fresh rows to confirm."""
        planted = [
            {"part": "planted", "shape": list(shape), "scale": scale, "ratio": ratio, "trial": seed}
            for shape, scale, ratio, seed in product(SHAPES, SCALES, RATIOS, SEEDS)
        ]
        months = [
            {"part": "months", "size": N_DAYS, "trial": trial} for trial in range(N_TRIALS_OF_DAYS)
        ]
        images = [
            {"part": "cifar100", "size": size, "trial": trial}
            for size, n_trials in IMAGES
            for trial in range(n_trials)
        ]
        fresh = [{**run, "rows": FRESH} for run in images]
        fresh += [
            {"part": "months", "size": N_DAYS, "trial": N_TRIALS_OF_DAYS + trial, "rows": FRESH}
            for trial in range(N_TRIALS_OF_DAYS)
        ]
        in_turn = [run for pair in zip_longest(images, months) for run in pair if run is not None]
        return [{**run, "cuts": CUTS} for run in (*in_turn, *planted, *fresh)]

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Nothing is shared but the features, which are kept on disk."""

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one thread each
        """Return what came of one problem."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # 200 steps for every candidate
            if settings["part"] == "planted":
                return _planted(settings)
            if settings["part"] == "months":
                return _months(self.data, settings["trial"])
            features = (_fresh if "rows" in settings else _features)(self.data)
            return _cifar100(features, _strength(self.data), settings["size"], settings["trial"])


def _planted(settings: Settings) -> Result:
    """Return for each planted partition how well it can be told, and how much of it came back."""
    scale, ratio = settings["scale"], settings["ratio"]
    rng = np.random.default_rng(settings["trial"])
    planted = Planted.of(settings["shape"], (scale * ratio, scale, scale / ratio), rng)
    x, y = planted.rows(N_A_CLASS, rng)
    model = StructuredLogisticRegression(tol=1e-3)
    confusion = out_of_fold_confusion(x, y, estimator=model, random_state=0)
    n_classes = len(planted.centres)
    kept = structure_from_confusion(confusion, range(n_classes), n_levels=N_LEVELS).partitions
    geometric = [round(n_classes ** (level / (N_LEVELS + 1))) for level in (1, 2, 3)]
    levels = []
    for block_of, accuracy in zip(
        planted.partitions, planted.bayes_accuracies(rng, n_a_class=1000), strict=True
    ):
        at_gaps = [adjusted_rand_score(block_of, cut.block_of) for cut in kept]
        at_geometric = [adjusted_rand_score(block_of, _cut(confusion, n)) for n in geometric]
        same_count = _cut(confusion, int(block_of.max()) + 1)
        levels.append(
            {
                "bayes_accuracy": round(accuracy, 4),
                "rand": round(adjusted_rand_score(block_of, same_count), 4),
                "rand_of_centres": round(_rand_of_centres(planted.centres, block_of), 4),
                "rand_at_gaps": round(max(at_gaps), 4),
                "rand_at_geometric": round(max(at_geometric), 4),
            }
        )
    return {"levels": levels}


def _rand_of_centres(centres: Any, block_of: Any) -> float:
    """Return what the same tree makes of the true centres: how well the best could do."""
    tree = linkage(centres, "average")
    return adjusted_rand_score(block_of, cut_tree(tree, n_clusters=block_of.max() + 1).ravel())


def _cut(confusion: Any, n_blocks: int) -> Any:
    """Return the blocks of the tree of :func:`structure_from_confusion` cut into so many."""
    tree = linkage(squareform(distances_from_confusion(confusion), checks=False), "average")
    return cut_tree(tree, n_clusters=n_blocks).ravel()


def _months(data: Path, trial: int) -> Result:
    drawn = draw(data, "month", trial=trial, n_train=N_DAYS, n_validation=0, n_test=N_TEST_OF_DAYS)
    x, y = drawn.train
    model = StructuredBoostingClassifier(learning_rate=0.1, random_state=trial, n_jobs=1)
    confusion = out_of_fold_confusion(x, y, estimator=model, random_state=trial)
    months = range(1, 13)
    graph = neighbour_graph_from_confusion(confusion, months)
    structures = {
        "none": (trivial(months), None),
        "learned": (_learned(model, x, y, trial), None),
        "learned graph": (SpanningTreePartitions(graph, N_BLOCKS, 0.5, seed=trial), "auto"),
        "circle": (circular(months), "auto"),
    }
    found: Result = {
        "cuts": [
            [list(block) for block in cut.blocks]
            for cut in structure_from_confusion(confusion, months).partitions[:-1]
        ],
        "edges": [list(edge) for edge in graph.edges],
    }
    for name, (structure, weights) in structures.items():
        fitted = model.set_params(structure=structure, weights=weights).fit(x, y)
        found[name] = _scores(fitted, fitted.structure_, *drawn.test)
    return found


def _learned(model: Any, x: Any, y: Any, trial: int) -> RandomPartition:
    """Return a structure of three levels: as many candidates as ``weights="auto"`` has."""
    return learn_structure(
        x, y, estimator=model, random_state=trial, n_folds=3, n_levels=(N_LEVELS,)
    )


def _cifar100(features: Features, strength: float, size: int, trial: int) -> Result:
    paper = catalog.cifar100()
    names = np.array(paper.classes)
    own = slice(trial * size, (trial + 1) * size)
    reduced = _reduction().fit(features.train[own])
    x, y = reduced.transform(features.train[own]), names[features.train_labels[own]]
    test = reduced.transform(features.test), names[features.test_labels]
    model = StructuredLogisticRegression(C=strength, tol=1e-3, random_state=trial)
    confusion = out_of_fold_confusion(x, y, estimator=model, random_state=trial, n_folds=3)
    blocks = _cut(confusion, N_SUPERCLASSES)
    has_images = np.isin(names, y)  # the paper's classes are sorted, as those of the confusion are
    superclass_of = paper.levels["superclass"][0].block_of[has_images]
    scrambled = paper.scramble(np.random.default_rng(trial))
    structures = {
        "none": (trivial(names.tolist()), None),
        "learned": (_learned(model, x, y, trial), None),
        "paper": (paper, "auto"),
        "scrambled": (scrambled, "auto"),
    }
    found: Result = {
        "C": strength,
        "rand": round(adjusted_rand_score(superclass_of, blocks), 4),
        "mutual_information": round(normalized_mutual_info_score(superclass_of, blocks), 4),
        "rand_of_scrambled": round(
            adjusted_rand_score(
                superclass_of, scrambled.levels["superclass"][0].block_of[has_images]
            ),
            4,
        ),
    }
    for name, (structure, weights) in structures.items():
        fitted = model.set_params(structure=structure, weights=weights).fit(x, y)
        used = structure.reweight(fitted.weights_)
        found[name] = _scores(fitted, used, *test)
    return found


@cache
def _strength(data: Path) -> float:
    """Return the penalty that is best without structure, on images that no trial has."""
    features, first = _features(data), max(n * n_trials for n, n_trials in IMAGES)
    train, held = slice(first, first + 1500), slice(first + 1500, None)
    reduced = _reduction().fit(features.train[train])
    losses = []
    for strength in STRENGTHS:
        model = StructuredLogisticRegression(trivial(range(100)), C=strength, tol=1e-3)
        model.fit(reduced.transform(features.train[train]), features.train_labels[train])
        proba = model.predict_proba(reduced.transform(features.train[held]))
        losses.append(block_log_loss(features.train_labels[held], proba, trivial(range(100))))
    return STRENGTHS[int(np.argmin(losses))]


_features = cache(cifar100_features)
_fresh = cache(fresh_cifar100_features)


def _reduction() -> Any:
    """Return what makes a few numbers of 1,280 features; it sees no label."""
    return make_pipeline(StandardScaler(), PCA(N_COMPONENTS, random_state=0))


def _scores(fitted: Any, structure: Any, features: Any, labels: Any) -> Result:
    proba = fitted.predict_proba(features)
    plain = trivial(fitted.classes_.tolist())
    first = structure if hasattr(structure, "singleton_weight") else structure.sample(0)
    n_blocks = [cut.n_blocks for cut in getattr(structure, "partitions", ())]
    return {
        "log_loss": round(block_log_loss(labels, proba, plain), 6),
        "accuracy": round(block_accuracy(labels, proba, plain), 6),
        "singleton_weight": round(first.singleton_weight, 6),
        "n_blocks": n_blocks if len(n_blocks) > 1 else [],
    }


def main() -> None:
    """Do what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    experiment, kept = Learned(parser.parse_args().data), Kept(RESULTS / "learned.jsonl")
    do_runs(experiment, kept, n_jobs=1, on_progress=lambda *told: print(*told, flush=True))
    write_page(kept.finished(), len(experiment.runs()), RESULTS)


if __name__ == "__main__":
    main()
