"""What an experiment is: runs that can be done one by one, in any order, in any process."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from structent.errors import StructentError
from structent.studies.progress import OnProgress

# All but the data that decides the result of a run, as plain JSON values; runs with equal settings
# are one.
Settings: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, Any]

PRESETS = ("paper", "quick", "smoke")


class Experiment(Protocol):
    """An experiment of the paper under one preset. It is a value: other processes get a copy."""

    @property
    def name(self) -> str:
        """The name of its page: ``months``, ``cifar100-1A``."""

    @property
    def kept_in(self) -> str:
        """The name of its results file, which experiments that share runs share, too."""

    def runs(self) -> list[Settings]:
        """Return the settings of every run, in the order in which they are best done."""

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Do once what all runs share, and keep it on disk."""

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the result of a run, as plain JSON values."""


def key(settings: Settings) -> str:
    """Return the text that stands for settings, whatever their order.

    >>> key({"size": 500, "loss": "standard"}) == key({"loss": "standard", "size": 500})
    True
    """
    return json.dumps(settings, sort_keys=True)


def chosen_sizes(sizes: Iterable[int], wanted: tuple[int, ...] | None) -> list[int]:
    """Return those training set sizes of an experiment that are wanted; all if None.

    >>> chosen_sizes([500, 1000, 2000], (2000, 500))
    [500, 2000]
    >>> chosen_sizes([500, 1000], (700,))
    Traceback (most recent call last):
    ...
    structent.errors.StructentError: --sizes must be among 500, 1000, got 700
    """
    known = list(sizes)
    if wanted is None:
        return known
    unknown = [size for size in wanted if size not in known]
    if unknown:
        names, others = (", ".join(map(str, which)) for which in (known, unknown))
        raise StructentError(f"--sizes must be among {names}, got {others}")
    return [size for size in known if size in wanted]
