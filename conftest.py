"""Where a framework is not installed, its adapter and the tests of it are not collected."""

import importlib.util

_FRAMEWORKS = ("torch", "keras", "jax", "xgboost", "lightgbm")
# Pages of results are made without Keras, but for those of networks beyond the paper.
_TRAIN_NETWORKS = (
    "fine_tuning", "last_layer", "networks", "small_network", "training", "beyond/layers",
    "beyond/learning_rate", "beyond/longer_training",
)  # fmt: skip
_NEEDS = (
    *((name, f"src/structent/losses/**/{name}*") for name in _FRAMEWORKS),
    *((name, f"tests/losses/**/*{name}*") for name in _FRAMEWORKS),
    *((name, f"src/structent/estimators/engines/{name}*") for name in _FRAMEWORKS),
    *((name, f"tests/estimators/engines/*{name}*") for name in _FRAMEWORKS),
    *((name, f"src/structent/layers/{name}*") for name in _FRAMEWORKS),
    *((name, f"tests/layers/*{name}*") for name in _FRAMEWORKS),
    *(("keras", f"paper/{name}.py") for name in _TRAIN_NETWORKS),
    ("sklearn", "src/structent/estimators*"),
    ("sklearn", "tests/estimators*"),
    ("sklearn", "src/structent/studies*"),
    ("sklearn", "tests/studies*"),
    ("dask", "src/structent/estimators/dask*"),
    ("dask", "tests/estimators/dask*"),
)

collect_ignore_glob = [
    pattern for package, pattern in _NEEDS if importlib.util.find_spec(package) is None
]
