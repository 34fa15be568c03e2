"""Where a framework is not installed, its adapter and the tests of it are not collected."""

import importlib.util

collect_ignore_glob = [
    pattern
    for framework in ("torch", "keras", "jax")
    if importlib.util.find_spec(framework) is None
    for pattern in (f"src/structent/losses/{framework}*", f"tests/losses/*{framework}*")
]
