"""Classes and labels: what may be a class, and which class a label means.

A label is matched to a class by value and by type, never by its place in some array.
"""

import math
import re
import reprlib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._typing import IndexArray, Label
from structent.errors import LabelError, StructureError

WHOLE_NUMBER = re.compile(r"[+-]?\d{1,1000}")  # Python refuses to read much longer ones
_BOOLS = {"true": True, "false": False}
_MOST_SHOWN = 10
_SHORT = reprlib.Repr()
_LONGEST = _SHORT.maxstring = _SHORT.maxother = 100  # characters


def shown(value: Any) -> str:
    """Return a label as messages show it, shortened if it is long.

    A YAML list may contain other lists many times, so that its full text would fill the memory.

    Examples
    --------
    >>> print(shown("oak"), shown([0] * 1000))
    'oak' [0, 0, 0, 0, 0, 0, ...]
    """
    return _SHORT.repr(value)


def as_label(value: Any) -> Label:
    """Return a class label as a plain Python value, or refuse what could not be one."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is tuple:
        return tuple(as_label(part) for part in value)
    if type(value) not in (str, int, bool):
        raise StructureError(
            f"a class must be a str, an int, a bool or a tuple of these, got {shown(value)} of "
            f"type {type(value).__name__}, which a structure file could not restore; "
            "make it text or a whole number"
        )
    label: Label = value
    return label


def as_classes(values: Iterable[Any]) -> tuple[Label, ...]:
    """Return the classes of a structure: at least one, all different."""
    if isinstance(values, str):
        raise StructureError(
            f"classes must be a sequence of labels, got the string {shown(values)}"
        )
    classes = tuple(map(as_label, values))
    if not classes:
        raise StructureError("a structure must have at least one class, got none")
    seen: dict[Label, Label] = {}
    for label in classes:
        if label in seen:
            # 1 == True in Python: a structure with both could not tell their rows apart.
            also = "" if repr(seen[label]) == repr(label) else f" (equal to {shown(seen[label])})"
            raise StructureError(f"classes must all differ, got {shown(label)} twice{also}")
        seen[label] = label
    types = {type(label) for label in classes}
    if {bool, int} <= types:
        raise StructureError(
            "classes must not mix bool and int, which compare as equal; "
            "make the bools text or whole numbers"
        )
    return classes


def sorted_classes(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels sorted: numbers, then text, then pairs.

    Examples
    --------
    >>> sorted_classes(["oak", "ash", 10, 9])
    (9, 10, 'ash', 'oak')
    """
    return tuple(sorted(labels, key=_rank))


def class_indices(labels: ArrayLike | Sequence[Any], classes: tuple[Label, ...]) -> IndexArray:
    """Return the index of each label in ``classes``."""
    values = plain_values(with_columns_joined(labels, classes))
    index = {label: position for position, label in enumerate(classes)}
    foreign_types = set(map(type, values)) - {type(label) for label in classes}
    try:
        if foreign_types:
            raise KeyError
        return np.array([index[value] for value in values], dtype=np.int64)
    except (KeyError, TypeError):
        wrong = next(v for v in values if type(v) in foreign_types or not _is_in(v, index))
        raise unknown_label(wrong, classes) from None


def with_columns_joined(labels: Any, classes: tuple[Label, ...]) -> Any:
    """Return a table or array with a column for each part of the classes as a list of tuples.

    Classes of a product are tuples, and tables have their parts in columns. Other labels are
    returned unchanged.

    Examples
    --------
    >>> with_columns_joined(np.array([["jan", "Napa"], ["feb", "Marin"]]), (("jan", "Marin"),))
    [('jan', 'Napa'), ('feb', 'Marin')]
    """
    shape: tuple[Any, ...] = getattr(labels, "shape", ())
    if len(shape) != 2 or {_n_parts(label) for label in classes} != {shape[1]}:
        return labels
    return [tuple(row) for row in np.asarray(labels, dtype=object).tolist()]


def label_array(classes: tuple[Label, ...]) -> NDArray[Any]:
    """Return classes as an array, of objects where they are tuples or mixed."""
    if len({type(label) for label in classes}) == 1 and not isinstance(classes[0], tuple):
        values = np.array(classes)
        # NumPy's own kinds drop a NUL at the end of a string and round the largest integers.
        if values.tolist() == list(classes):
            return values
    return np.fromiter(classes, dtype=object, count=len(classes))


def plain_values(labels: ArrayLike | Sequence[Any]) -> list[Any]:
    """Return a sequence, array or column of labels as a list of plain Python values."""
    if isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise LabelError(f"labels must be a sequence, one entry per row, got {shown(labels)}")
    if isinstance(labels, list | tuple | set | frozenset):
        return [value.item() if isinstance(value, np.generic) else value for value in labels]
    values = np.asarray(labels)
    if values.ndim != 1:
        raise LabelError(
            f"labels must have one axis, got shape {values.shape}; several columns are for "
            "classes that are tuples of as many parts"
        )
    plain: list[Any] = values.tolist()
    return plain


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, a float NaN, pandas.NA or pandas.NaT."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def as_typed(names: Sequence[str], labels: Sequence[Label]) -> list[Label]:
    """Return names as whole numbers or bools if labels have that type and all fit, else as text.

    Examples
    --------
    >>> as_typed(["1", "02"], [1, 2, 3]), as_typed(["1", "02"], ["1", "2"])
    ([1, 2], ['1', '02'])
    """
    types = {type(label) for label in labels}
    if types == {int} and all(WHOLE_NUMBER.fullmatch(name) for name in names):
        return [int(name) for name in names]
    if types == {bool} and all(name.lower() in _BOOLS for name in names):
        return [_BOOLS[name.lower()] for name in names]
    return list(names)


def check_labels_known(labels: Sequence[Label], known: Sequence[Label]) -> None:
    """Refuse labels that are not classes of the structure, and list them with similar ones.

    Examples
    --------
    >>> check_labels_known(["mapel", "oak"], ["maple", "oak"])
    Traceback (most recent call last):
    ...
    structent.errors.LabelError: 'mapel' is not a class of the structure; did you mean 'maple'?
    """
    unknown = _without(labels, known)
    if not unknown:
        return
    if len(unknown) == 1:
        raise unknown_label(unknown[0], known)
    named = [f"{shown(label)}{_hint(label, known)}" for label in unknown[:_MOST_SHOWN]]
    more = f" and {len(unknown) - _MOST_SHOWN} more" if len(unknown) > _MOST_SHOWN else ""
    raise LabelError(
        f"every label of the data must be a class of the structure, got {len(unknown)} that are "
        f"not: {', '.join(named)}{more}; correct the labels or the structure"
    )


def classes_without_rows(labels: Sequence[Label], known: Sequence[Label]) -> tuple[str, ...]:
    """Return a note on classes of the structure that are not in the data.

    Examples
    --------
    >>> classes_without_rows(["oak"], ["oak", "maple"])
    ("1 class of the structure has no row, but gets a probability: 'maple'",)
    """
    absent = _without(known, labels)
    if not absent:
        return ()
    count = "1 class" if len(absent) == 1 else f"{len(absent)} classes"
    verbs = ("has", "gets") if len(absent) == 1 else ("have", "get")
    named = ", ".join(map(shown, absent[:_MOST_SHOWN]))
    more = ", ..." if len(absent) > _MOST_SHOWN else ""
    note = (
        f"{count} of the structure {verbs[0]} no row, but {verbs[1]} a probability: {named}{more}"
    )
    return (note,)


def unknown_label(label: Any, candidates: Iterable[Any], *, kind: str = "class") -> LabelError:
    """Return the error for a label that is not among the candidates, with up to three similar."""
    candidates = tuple(candidates)
    message = f"{shown(label)} is not a {kind} of the structure"
    same_text = [c for c in candidates if str(c) == str(label)]
    if same_text:
        wanted, given = type(same_text[0]).__name__, type(label).__name__
        return LabelError(f"{message}: it has {shown(same_text[0])} of type {wanted}, not {given}")
    by_text = {str(candidate)[:_LONGEST]: candidate for candidate in candidates}
    near = get_close_matches(str(label)[:_LONGEST], by_text, n=3)
    if near:
        return LabelError(
            f"{message}; did you mean {' or '.join(shown(by_text[text]) for text in near)}?"
        )
    named = ", ".join(map(shown, candidates[:5])) + (", ..." if len(candidates) > 5 else "")
    return LabelError(f"{message}, whose {len(candidates)} are {named}")


def _rank(label: Label) -> tuple[int, Any]:
    if isinstance(label, tuple):
        return 2, repr(label)  # its parts may be of types that do not compare
    return int(isinstance(label, str)), label


def _n_parts(label: Label) -> int:
    return len(label) if isinstance(label, tuple) else 0


def _is_in(value: Any, index: dict[Label, int]) -> bool:
    try:
        return value in index
    except TypeError:  # an unhashable value is no class
        return False


def _without(some: Sequence[Label], others: Sequence[Label]) -> list[Label]:
    there = set(map(_key, others))
    return [label for label in some if _key(label) not in there]


def _key(label: Label) -> tuple[Any, ...]:
    return type(label), label  # 1 and True are equal in Python, but different labels


def _hint(label: Label, known: Sequence[Label]) -> str:
    """Return a hint in brackets: similar labels, or the same label of another type."""
    message = str(unknown_label(label, known))
    _, _, after = message.partition(" of the structure")
    return f" ({after[2:]})" if after.startswith((": ", "; ")) else ""
