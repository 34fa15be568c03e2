"""Names of blocks that nobody named: made of their classes, so that they are never stale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from structent._typing import IntArray, Label


def names_from_classes(classes: Sequence[Any], block_of: IntArray) -> tuple[str, ...]:
    """Return a name for each block: ``oak+trout``, ``jan..mar``, ``(jan..mar, Marin+Napa)``.

    Three or more neighbours are written as a run. Of pairs, a block that is a product of two sets
    is named by these.

    Examples
    --------
    >>> names_from_classes(("a", "b", "c", "d"), np.array([0, 0, 0, 1]))
    ('a..c', 'd')
    >>> pairs = (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    >>> names_from_classes(pairs, np.array([0, 1, 0, 1]))
    ('(a+b, 1)', '(a+b, 2)')
    """
    names = _names(classes, block_of, str)
    # str() is the same for 1 and "1", and a class may itself be called "a+b": repr() is safe.
    return names if len(set(names)) == len(names) else _names(classes, block_of, repr)


def _names(
    classes: Sequence[Any], block_of: IntArray, text: Callable[[Label], str]
) -> tuple[str, ...]:
    members: list[list[int]] = [[] for _ in range(int(block_of.max()) + 1)]
    for place, block in enumerate(block_of.tolist()):
        members[block].append(place)
    parts = _parts(classes)
    return tuple(_name(places, classes, parts, text) for places in members)


def _name(
    places: list[int],
    classes: Sequence[Any],
    parts: list[tuple[Label, ...]],
    text: Callable[[Label], str],
) -> str:
    if len(places) == 1:
        return text(classes[places[0]])
    sides = [{classes[place][k] for place in places} for k in range(len(parts))]
    # Pairs lie within the product of their sides, and are all of it if they are as many.
    if not parts or math.prod(map(len, sides)) > len(places):
        return _runs(places, classes, text)
    named = (
        _runs([i for i, label in enumerate(every) if label in side], every, text)
        for side, every in zip(sides, parts, strict=True)
    )
    return f"({', '.join(named)})"


def _parts(classes: Sequence[Any]) -> list[tuple[Label, ...]]:
    """Return the different labels at each place of classes that are tuples; none for others."""
    lengths = {len(label) if isinstance(label, tuple) else 0 for label in classes}
    if len(lengths) > 1:
        return []
    return [tuple(dict.fromkeys(label[k] for label in classes)) for k in range(lengths.pop())]


def _runs(places: list[int], labels: Sequence[Any], text: Callable[[Label], str]) -> str:
    """Name some of the labels, three or more neighbours as a run."""
    ends = np.flatnonzero(np.diff(places) > 1) + 1
    runs = [[text(labels[place]) for place in run] for run in np.split(places, ends)]
    return "+".join(f"{run[0]}..{run[-1]}" if len(run) > 2 else "+".join(run) for run in runs)
