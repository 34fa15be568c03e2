"""Hierarchies as nested names: ``{"tree": ["oak", "maple"], "flower": ["rose"]}``."""

from collections.abc import Iterator
from typing import Any

from structent.errors import StructureError
from structent.structure.labels import as_label
from structent.structure.paths import Path, Paths

_DEEPEST = 100  # a YAML file may contain itself


def paths_from_nested(content: Any) -> Paths:
    """Return the path of each class in nested mappings and lists.

    A mapping holds groups, or classes where nothing follows the name; a list holds classes, or
    mappings with further groups.

    Examples
    --------
    >>> paths_from_nested({"plant": {"tree": ["oak", "elm"], "moss": None}, "cat": None})
    {'oak': ('plant', 'tree'), 'elm': ('plant', 'tree'), 'moss': ('plant',), 'cat': ()}
    """
    paths: Paths = {}
    for path in _leaves(content, ()):
        label = path[-1]
        if label in paths:
            raise StructureError(f"a class must be in one group, got {label!r} more than once")
        paths[label] = path[:-1]
    return paths


def without_common_groups(paths: Paths) -> Paths:
    """Return paths without the groups at their beginning that hold every class and say nothing.

    Examples
    --------
    >>> without_common_groups({"oak": ("life", "plant"), "cat": ("life", "animal")})
    {'oak': ('plant',), 'cat': ('animal',)}
    """
    first, *others = paths.values()
    common = 0
    while common < len(first) and all(path[: common + 1] == first[: common + 1] for path in others):
        common += 1
    return {label: path[common:] for label, path in paths.items()}


def _leaves(content: Any, above: Path) -> Iterator[Path]:
    """Give the path of each class with the class at its end."""
    if len(above) > _DEEPEST:
        raise StructureError(f"nested names must be at most {_DEEPEST} deep, got more")
    if isinstance(content, dict):
        for name, inside in content.items():
            here = (*above, as_label(name))
            if inside is None:
                yield here
            elif isinstance(inside, dict | list) and inside:
                yield from _leaves(inside, here)
            else:
                raise StructureError(
                    f"a group must hold a list of classes or further groups, got {inside!r} in "
                    f"{name!r}"
                )
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, dict):
                yield from _leaves(item, above)
            else:
                yield (*above, as_label(item))
    else:
        raise StructureError(f"nested names must be mappings or lists, got {content!r:.60}")
