"""Structure files: JSON with a format name, a kind and a version."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from structent._files import parsed_json, save_bytes
from structent._typing import Label
from structent.errors import StructureError
from structent.structure.labels import shown

FORMAT = "structent-structure"
VERSION = 1
IN_MODEL = "structure.json"  # the part of a model file that is its structure
LARGEST_FILE = 2**28  # bytes; what is read from it takes up to thirty times as many
LONGEST_NAME = 10_000  # characters of a class or a block
LARGEST_ARRAY = 2**28  # bytes of all names as an array, in which each is as long as the longest

AnyClass = TypeVar("AnyClass", bound=type[Any])

_CLASS_OF: dict[str, Any] = {}


def readable(cls: AnyClass) -> AnyClass:
    """Register a class under its ``KIND`` for :func:`structure_from_json`."""
    _CLASS_OF[cls.KIND] = cls
    return cls


def structure_from_json(text: str) -> Any:
    """Return the structure or sampler, of any kind, from the text of its ``to_json``."""
    kind = _content(text).get("kind")
    if not isinstance(kind, str) or kind not in _CLASS_OF:
        raise StructureError(
            f"a structure must be of kind {', '.join(map(repr, _CLASS_OF))}, got {_beginning(kind)}"
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
    check_names(structure.classes)
    text = str(structure.to_json())
    if len(text) > LARGEST_FILE:
        raise StructureError(
            f"a structure file must have at most {LARGEST_FILE:,} bytes, got a structure that "
            f"needs {len(text):,}"
        )
    return text


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
            f"the file must hold a structure of kind {kind!r}, got kind "
            f"{_beginning(content.get('kind'))}"
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


def integers_field(content: Any, name: str) -> list[int]:
    """Return one field of a structure file that holds an array of whole numbers."""
    values = list_field(content, name)
    # NumPy would turn numbers beside a text into texts, each as long as the longest.
    if not all(type(value) is int for value in values):
        raise StructureError(
            f"the field {name!r} must be an array of whole numbers, got {_beginning(values)}"
        )
    return values


def classes_field(content: Any, name: str) -> list[Label]:
    """Return one field of a structure file that holds classes."""
    classes = list(map(label_from_json, list_field(content, name)))
    check_names(classes)
    return classes


def names_field(content: Any, name: str) -> Any:
    """Return one field of a structure file that holds names of blocks, or nothing."""
    names = field(content, name)
    if isinstance(names, list):
        check_names(names)
    return names


def check_names(names: Iterable[Any]) -> None:
    """Refuse names that are too long, or too many of that length, to make an array of them."""
    lengths = [len(name) for name in names if isinstance(name, str)]
    longest = max(lengths, default=0)
    if longest > LONGEST_NAME or 4 * longest * len(lengths) > LARGEST_ARRAY:
        raise StructureError(
            f"a name must have at most {LONGEST_NAME:,} characters, and all names as an array at "
            f"most {LARGEST_ARRAY:,} bytes, got {len(lengths):,} names of up to {longest:,} "
            "characters; give them shorter names"
        )


def label_from_json(value: Any) -> Label:
    """Return a class as it was before it was written: an array is a tuple."""
    if isinstance(value, list):
        return tuple(map(label_from_json, value))
    label: Label = value
    return label


def save_structure(structure: Any, path: str | os.PathLike[str]) -> None:
    """Write the structure or sampler to a JSON file, completely or not at all."""
    save_bytes(path, (structure_to_json(structure) + "\n").encode())


def load(path: str | os.PathLike[str]) -> str:
    """Return the text of a structure file, without the mark that some programs put before it."""
    size = Path(path).stat().st_size
    if size > LARGEST_FILE:
        raise StructureError(
            f"a structure file must have at most {LARGEST_FILE:,} bytes, got {size:,} in "
            f"{Path(path)}"
        )
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise StructureError(f"a structure file must be UTF-8 text, got {Path(path)}") from None


def _content(text: str) -> dict[str, Any]:
    try:
        content = parsed_json(text)
    except json.JSONDecodeError as error:
        raise StructureError(
            f"a structure file must be JSON, got text with an error at line {error.lineno}, "
            f"column {error.colno}: {error.msg}"
        ) from None
    except ValueError as error:
        raise StructureError(f"a structure file cannot be read: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StructureError(
            f'a structure file must be a JSON object with "format": "{FORMAT}", '
            f"got {_beginning(text)}"
        )
    version = content.get("version")
    if version != VERSION:
        raise StructureError(
            f"this structent reads structure files of version {VERSION}, got version "
            f"{_beginning(version)}; "
            "use the structent that wrote the file, or a newer one"
        )
    return content


def _beginning(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= 60 else text[:57] + "..."
