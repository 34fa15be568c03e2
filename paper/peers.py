"""Other packages that use a structure of the classes; settings are chosen as for our models.

``make choices`` installs them: mord (orders), hiclass (hierarchies) and structureboost (circles and
graphs). Each is loaded only when it is needed.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from paper.tasks import Structure
from paper.ways import PENALTIES, best_step, log_loss
from paper.weather import Draw, Examples
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.structure import RandomPartition, SpanningTreePartitions

DEPTHS, SINGLETON_WEIGHTS = (2, 3, 4), (0.3, 0.5)
# The floor for classes to which a package gives the probability 0: one in a million.
_LEAST = 1e-6
_MAX_TREES, _RATE = 2000, 0.05


class Tried(NamedTuple):
    """A model with its settings and validation log loss, and the CPU seconds that its fit took."""

    loss: float
    model: Any
    setting: list[float]
    seconds: float


def best_tried(fits: Iterable[tuple[Any, Callable[[], Any]]], validation: Examples) -> Tried:
    """Return the fit with the lowest validation log loss, given settings and fitting functions."""
    tried = [timed(setting, fit, validation) for setting, fit in fits]
    return min(tried, key=lambda each: each.loss)


def best_penalty(fit: Callable[[float], Any], validation: Examples) -> Tried:
    """Return the fit with the penalty that has the lowest validation log loss."""
    _, found = best_step(
        lambda step: timed([PENALTIES[step]], partial(fit, PENALTIES[step]), validation), 0
    )
    return found


def timed(setting: list[float], fit: Callable[[], Any], validation: Examples) -> Tried:
    """Return the model that a function fits, its validation log loss, and its CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of candidates
        warnings.simplefilter("ignore", DeprecationWarning)  # of options that mord gives SciPy
        model = fit()
    seconds = time.process_time() - start
    return Tried(log_loss(model, validation), model, setting, seconds)


def mord(rows: Draw, structure: Structure, seed: int) -> Tried:  # noqa: ARG001  nothing is drawn
    """Return mord's ordinal logistic regression with all thresholds; its penalty is chosen."""
    package = _loaded("mord")

    def fitted(penalty: float) -> Any:
        model = package.LogisticAT(alpha=1.0 / penalty)
        codes = _codes(rows.train.labels, structure)
        return _InOrder(model.fit(rows.train.features, codes), structure)

    return best_penalty(fitted, rows.validation)


def hiclass(rows: Draw, structure: Structure, seed: int) -> Tried:  # noqa: ARG001
    """Return hiclass's local classifier for each parent node, with logistic regressions."""
    package = _loaded("hiclass")
    paths = _paths(structure)

    def fitted(penalty: float) -> Any:
        local = LogisticRegression(C=penalty, max_iter=1000)
        model = package.LocalClassifierPerParentNode(local_classifier=local)
        model.fit(rows.train.features, np.array([paths[y] for y in rows.train.labels.tolist()]))
        return _OfPaths(model, paths)

    logging.getLogger("LCPPN").setLevel(logging.ERROR)
    return best_penalty(fitted, rows.validation)


def structureboost(rows: Draw, structure: Structure, seed: int) -> Tried:
    """Return structureboost's trees; depth and weight of the singletons are chosen."""
    package, pandas = _loaded("structureboost"), _loaded("pandas")
    names = [f"x{place}" for place in range(rows.train.features.shape[1])]

    def table(part: Examples) -> tuple[Any, NDArray[Any]]:
        return pandas.DataFrame(part.features, columns=names), _codes(part.labels, structure)

    def fitted(depth: int, weight: float) -> Any:
        model = package.StructureBoostMulti(
            _MAX_TREES,
            len(structure.classes),
            {name: {"feature_type": "numerical", "max_splits_to_search": 25} for name in names},
            target_structure=_target_structure(package, structure, weight),
            subsample=1, replace=True, min_size_split=25, max_depth=depth, reg_lambda=1.0,
            learning_rate=_RATE, random_seed=seed,
        )  # fmt: skip
        stopping = {"eval_freq": 10, "early_stop_past_steps": 3, "verbose": 0}
        model.fit(*table(rows.train), eval_set=table(rows.validation), **stopping)
        return _InOrder(model, structure)

    fits = [
        ([depth, weight], partial(fitted, depth, weight))
        for depth in DEPTHS
        for weight in SINGLETON_WEIGHTS
    ]
    return best_tried(fits, rows.validation)


PEERS: dict[str, Callable[[Draw, Structure, int], Tried]] = {
    "mord": mord,
    "hiclass": hiclass,
    "structureboost": structureboost,
}


def _loaded(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise StructentError(
            f"this arm needs {package}, which cannot be loaded ({error}); `make choices` "
            "installs it"
        ) from None


def _codes(labels: NDArray[Any], structure: Structure) -> NDArray[np.int64]:
    """Return labels as places in the order of the structure's classes."""
    place = {label: place for place, label in enumerate(structure.classes)}
    return np.array([place[label] for label in labels.tolist()])


class _InOrder:
    """A model of codes, as a model of classes in sorted order."""

    def __init__(self, model: Any, structure: Structure) -> None:
        self._model = model
        order = sorted(range(len(structure.classes)), key=lambda place: structure.classes[place])
        self._order = np.array(order)
        self.classes_ = np.array([structure.classes[place] for place in order])

    def predict_proba(self, features: NDArray[Any]) -> FloatArray:
        # In parts, because structureboost allocates rows x trees x classes at once.
        parts = np.array_split(features, -(-len(features) // 250))
        proba = np.concatenate([self._model.predict_proba(part) for part in parts])
        return _with_floor(proba[:, self._order])


class _OfPaths:
    """A model of hiclass, as a model of classes in sorted order.

    A class has the product of the local probabilities along its path. hiclass's own
    ``predict_proba`` (5.0.8) asks only the parents that are the likeliest for some row of the
    batch, and from the third level on only those below a single one. Most classes of a deep tree
    then have the probability 0.
    """

    def __init__(self, model: Any, paths: dict[Any, list[str]]) -> None:
        self._root, self._nodes = model.root_, model.hierarchy_.nodes
        self._separator = model.separator_
        self.classes_ = np.array(sorted(paths))
        self._paths = [self._separator.join(paths[label]) for label in self.classes_.tolist()]

    def predict_proba(self, features: NDArray[Any]) -> FloatArray:
        proba = {self._root: np.ones(len(features))}
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            local = self._nodes[node].get("classifier")  # None at the classes
            if local is not None:
                shares = local.predict_proba(features)
                children = local.classes_.tolist()
                proba |= {child: proba[node] * shares[:, at] for at, child in enumerate(children)}
                waiting += children
        return _with_floor(np.column_stack([proba[path] for path in self._paths]))


def _with_floor(proba: FloatArray) -> FloatArray:
    """Return probabilities without zeros; each row sums to 1."""
    raised = np.maximum(proba, _LEAST)
    shares: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _paths(structure: Structure) -> dict[Any, list[str]]:
    """Return the blocks of each class from the coarsest level down, and the class itself."""
    if not isinstance(structure, RandomPartition) or not structure.is_nested:
        raise StructentError("hiclass needs a hierarchy, got a structure without levels")
    coarse = [partitions[0] for partitions in list(structure.levels.values())[:-1]]
    return {
        label: [*(f"{at}: {level.block_of[place]}" for at, level in enumerate(coarse)), str(label)]
        for place, label in enumerate(structure.classes)
    }


def _target_structure(package: Any, structure: Structure, weight: float) -> dict[str, Any]:
    """Return a structure in structureboost's form: the partitions, or the graph to draw from."""
    if isinstance(structure, SpanningTreePartitions):
        place = {label: place for place, label in enumerate(structure.classes)}
        edges = [[place[a], place[b]] for a, b in structure.graph.edges]
        return {
            "partition_type": "variable", "singleton_weight": weight,
            "random_partition_size": structure.n_blocks, "num_partitions": 1,
            "rp_method": "span_tree", "target_graph": package.graphs.graph_undirected(edges),
        }  # fmt: skip
    coarse = [
        block_of for block_of in structure.block_of if len(set(block_of)) < structure.n_classes
    ]
    return {
        "partition_type": "fixed",
        "singleton_weight": weight,
        "partition_list": [
            [np.flatnonzero(block_of == block).tolist() for block in np.unique(block_of)]
            for block_of in coarse
        ],
        "partition_weight_vec": [(1 - weight) / len(coarse)] * len(coarse),
    }
