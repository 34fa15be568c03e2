"""The engines that grow the trees: each trains a task and gives a model."""

from importlib import import_module
from types import ModuleType


def engine(name: str) -> ModuleType:
    """Return the module of an engine, which is imported only when it is needed."""
    return import_module(f"structent.estimators.engines.{name}")
