"""Structures as arguments of Keras objects: checked, and as text in their configuration."""

from __future__ import annotations

from typing import Any

from structent._typing import Label
from structent.errors import StructureError
from structent.structure import RandomPartition, files


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
    try:
        return files.structure_to_json(structure)
    except StructureError as error:
        raise StructureError(f"{error}; save the weights of the model alone") from None


def with_structures(config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with structures in place of JSON text."""
    names = [name for name in ("structure", "eval_structure") if config.get(name) is not None]
    return {**config, **{name: files.structure_from_json(config[name]) for name in names}}
