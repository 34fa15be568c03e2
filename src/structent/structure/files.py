"""Structure files: JSON with a format name, a kind and a version."""

import json
import os
from pathlib import Path
from typing import Any, TypeVar

from structent._files import save_bytes
from structent._typing import Label
from structent.errors import StructureError

FORMAT = "structent-structure"
VERSION = 1

AnyClass = TypeVar("AnyClass", bound=type[Any])

_CLASS_OF: dict[str, Any] = {}


def readable(cls: AnyClass) -> AnyClass:
    """Make :func:`structure_from_json` know a class by its ``KIND``."""
    _CLASS_OF[cls.KIND] = cls
    return cls


def structure_from_json(text: str) -> Any:
    """Return the structure or sampler of any kind that a ``to_json`` wrote."""
    kind = _content(text).get("kind")
    if not isinstance(kind, str) or kind not in _CLASS_OF:
        raise StructureError(
            f"a structure must be of kind {', '.join(map(repr, _CLASS_OF))}, got {kind!r}"
        )
    return _CLASS_OF[kind].from_json(text)


def structure_to_json(structure: Any) -> str:
    """Return a structure or sampler as text that :func:`structure_from_json` reads."""
    if _CLASS_OF.get(getattr(structure, "KIND", "")) is not type(structure):
        names = ", ".join(cls.__name__ for cls in _CLASS_OF.values())
        raise StructureError(
            f"a file can hold a structure that is one of {names}, got "
            f"{type(structure).__name__}, which has no file format"
        )
    return str(structure.to_json())


def as_part(structure: Any) -> Any:
    """Return a structure as part of the content of another's file."""
    return json.loads(structure_to_json(structure))


def from_part(content: Any) -> Any:
    """Return the structure that :func:`as_part` gave."""
    return structure_from_json(json.dumps(content))


def to_json(kind: str, content: dict[str, Any]) -> str:
    """Return the text of a structure file; tuples, which only classes are, become arrays."""
    return json.dumps({"format": FORMAT, "version": VERSION, "kind": kind, **content})


def from_json(text: str, kind: str) -> dict[str, Any]:
    """Return the content of a structure file of the given kind."""
    content = _content(text)
    if content.get("kind") != kind:
        raise StructureError(
            f"the file must hold a structure of kind {kind!r}, got kind {content.get('kind')!r}"
        )
    return content


def field(content: Any, name: str) -> Any:
    """Return one field of an object in a structure file."""
    if not isinstance(content, dict) or name not in content:
        raise StructureError(
            f"a structure file must have the field {name!r} where it has {_beginning(content)}"
        )
    return content[name]


def list_field(content: Any, name: str) -> list[Any]:
    """Return one field of a structure file that holds an array."""
    value = field(content, name)
    if not isinstance(value, list):
        raise StructureError(f"the field {name!r} must be an array, got {_beginning(value)}")
    return value


def label_from_json(value: Any) -> Label:
    """Return a class as it was before it was written: an array is a tuple."""
    if isinstance(value, list):
        return tuple(map(label_from_json, value))
    label: Label = value
    return label


def save_structure(structure: Any, path: str | os.PathLike[str]) -> None:
    """Write the structure or sampler to a JSON file, all or not at all."""
    save_bytes(path, (structure_to_json(structure) + "\n").encode())


def load(path: str | os.PathLike[str]) -> str:
    """Return the text of a structure file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StructureError(f"a structure file must be UTF-8 text, got {Path(path)}") from None


def _content(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise StructureError(
            f"a structure file must be JSON, got text that breaks off or goes wrong at line "
            f"{error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StructureError(
            f'a structure file must be a JSON object with "format": "{FORMAT}", '
            f"got {_beginning(text)}"
        )
    version = content.get("version")
    if version != VERSION:
        raise StructureError(
            f"this structent reads structure files of version {VERSION}, got version {version!r}; "
            "use the structent that wrote the file, or a newer one"
        )
    return content


def _beginning(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
