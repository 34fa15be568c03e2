"""Where a framework is not installed, its adapter and the tests of it are not collected."""

import importlib.util

_FRAMEWORKS = ("torch", "keras", "jax", "xgboost", "lightgbm")
_NEEDS = {
    **{name: (f"src/structent/losses/{name}*", f"tests/losses/*{name}*") for name in _FRAMEWORKS},
    "sklearn": ("src/structent/estimators*", "tests/estimators*"),
    "dask": ("src/structent/estimators/dask*", "tests/estimators/test_dask*"),
}

collect_ignore_glob = [
    pattern
    for package, patterns in _NEEDS.items()
    if importlib.util.find_spec(package) is None
    for pattern in patterns
]
