"""Structures as arguments of Keras objects: checked, and as text in their configuration."""

from __future__ import annotations

import json
from typing import Any

from structent._typing import Label
from structent.errors import StructureError
from structent.structure import RandomPartition, SpanningTreePartitions

_KINDS: dict[str, Any] = {
    "random_partition": RandomPartition,
    "spanning_tree_partitions": SpanningTreePartitions,
}


def checked_structure(structure: Any, classes: tuple[Label, ...] | None = None) -> RandomPartition:
    """Return a structure that stays the same, with these classes where they are given."""
    if not isinstance(structure, RandomPartition):
        raise StructureError(
            f"structure must be a RandomPartition, got {type(structure).__name__}; only the loss "
            "takes a sampler"
        )
    if classes is not None and structure.classes != classes:
        raise StructureError(
            f"eval_structure must have the {len(classes)} classes of the sampler in their order, "
            f"got {structure!r}"
        )
    return structure


def to_json(structure: Any) -> str:
    """Return the text of a structure or sampler, which :func:`with_structures` reads."""
    names = [kind.__name__ for kind in _KINDS.values()]
    if type(structure).__name__ not in names:
        raise StructureError(
            f"a structure in a configuration must be one of {names}, got {structure!r}; save the "
            "weights of the model alone, or the structure by itself"
        )
    return str(structure.to_json())


def with_structures(config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with structures in place of JSON text."""
    names = [name for name in ("structure", "eval_structure") if config.get(name) is not None]
    return {**config, **{name: _from_json(config[name]) for name in names}}


def _from_json(text: str) -> Any:
    kind = json.loads(text).get("kind")
    if kind not in _KINDS:
        raise StructureError(f"a structure must be of kind {list(_KINDS)}, got {kind!r}")
    return _KINDS[kind].from_json(text)
