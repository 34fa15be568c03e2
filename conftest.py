"""Where a framework is not installed, its adapter and the tests of it are not collected."""

import importlib.util

_FRAMEWORKS = ("torch", "keras", "jax", "xgboost", "lightgbm")
# The pages of the experiments on images are made without Keras.
_TRAIN_NETWORKS = (
    "features", "fine_tuning", "image_trial", "last_layer", "layout", "measures", "networks",
    "paired_trial", "small_network", "training", "training_loss",
)  # fmt: skip
_NEEDS = (
    *((name, f"src/structent/losses/**/{name}*") for name in _FRAMEWORKS),
    *((name, f"tests/losses/**/*{name}*") for name in _FRAMEWORKS),
    *(("keras", f"src/structent/experiments/cifar100/{name}.py") for name in _TRAIN_NETWORKS),
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
