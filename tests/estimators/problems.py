"""Features and labels for tests of the estimators, and the engines that boosting has."""

import numpy as np
import pytest

from structent import hierarchy

# What tests of single trees must know, whatever the defaults are.
SETTLED = {
    "max_depth": 3, "subsample": 1.0, "colsample": 1.0, "early_stopping_rounds": 25, "n_jobs": 1,
    "random_state": 0,
}  # fmt: skip

OURS = {"engine": "structent"}
XGBOOST = {"engine": "xgboost"}
PER_CLASS = {"engine": "xgboost", "trees": "per_class"}
LIGHTGBM = {"engine": "lightgbm", "trees": "per_class"}


def with_engine(engine):
    """The value of a parameter that needs the package of its engine."""
    name = engine["engine"] if engine is not PER_CLASS else "per_class"
    needs = [] if engine["engine"] == "structent" else [pytest.mark.requires(engine["engine"])]
    return pytest.param(engine, id=name, marks=needs)


def engines(*which):
    """Run a test with each of these engines."""
    return pytest.mark.parametrize("engine", [with_engine(engine) for engine in which])


# Every test of what all engines can do runs with each of them.
ENGINES = engines(OURS, XGBOOST, PER_CLASS, LIGHTGBM)

PLANTS = hierarchy(
    {"rose": ("flower",), "oak": ("tree",), "ash": ("tree",)},
    weights=[0.4, 0.6],
    level_names=["kind"],
)


def rows_of(classes, n=60, seed=0, n_features=4):
    """Features and labels that a linear model explains, whatever the structure of the classes."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, n_features))
    logits = features @ rng.normal(size=(n_features, len(classes)))
    noise = rng.gumbel(size=logits.shape)
    return features, np.array(classes)[(logits + noise).argmax(axis=1)]


def planted_problem(n, *, seed=0, n_classes=12, n_groups=3, own=0.25):
    """A hierarchy, features and labels: class centres lie about the centres of their groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_classes) % n_groups
    centres = rng.normal(size=(n_groups, 20))[group] + own * rng.normal(size=(n_classes, 20))
    codes = rng.integers(n_classes, size=n)
    structure = hierarchy(
        {f"class {c:02}": (f"group {group[c]}",) for c in range(n_classes)}, level_names=["group"]
    )
    features = centres[codes] + rng.normal(size=(n, 20))
    return structure, features, np.array(structure.classes)[codes]


def log_loss(model, features, labels):
    """The mean of -log of the probability of the true class."""
    columns = [model.classes_.tolist().index(label) for label in labels.tolist()]
    return -model.predict_log_proba(features)[np.arange(len(labels)), columns].mean()
