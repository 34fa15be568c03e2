"""What an experiment is: runs that can be done one by one, in any order, in any process."""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeAlias

from structent.comparison.progress import OnProgress

# All that decides the result of a run, as plain JSON values; two runs with equal settings are one.
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
