"""The order of labels: that of numbers and of the calendar, or one that is given."""

import re
from collections.abc import Sequence
from typing import Any

from structent._typing import Label
from structent.errors import LabelError, StructentError
from structent.structure.labels import as_classes, unknown_label

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def natural_order(
    labels: Sequence[Label], *, kind: str
) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    """Return labels in the order of numbers or of the calendar, and a note where some are missing.

    Months and weekdays are known by their English names and by the usual short ones.

    Examples
    --------
    >>> natural_order(["Sun", "Mon", "Sat"], kind="ordinal")[0]
    ('Mon', 'Sat', 'Sun')
    >>> natural_order(["10", "9"], kind="ordinal")[0]
    ('9', '10')
    """
    for names, what in ((_MONTHS, "months"), (_WEEKDAYS, "weekdays")):
        places = [_place(label, names) for label in labels]
        if None not in places and len(set(places)) == len(labels):
            ordered = _by_key(labels, [place for place in places if place is not None])
            return ordered, _incomplete(len(labels), names, what, kind)
    numbers = [_number(label) for label in labels]
    if None not in numbers:
        return _by_key(labels, [number for number in numbers if number is not None]), ()
    raise StructentError(
        f"the labels of {kind} must be numbers, months or weekdays to have an order, got "
        f"{_shown(labels)}; give the order as in {kind}:order=S|M|L|XL"
    )


def given_order(text: str, labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return the classes in an order given as ``S|M|L``; each label of the data is among them.

    Examples
    --------
    >>> given_order("3|1|2", [1, 2, 3])
    (3, 1, 2)
    """
    ordered = as_classes(as_typed([name.strip() for name in text.split("|")], labels))
    check_labels_known(labels, ordered)
    return ordered


def sorted_classes(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels sorted: numbers, then text, then pairs.

    Examples
    --------
    >>> sorted_classes(["oak", "ash", 10, 9])
    (9, 10, 'ash', 'oak')
    """
    return tuple(sorted(labels, key=_rank))


def _rank(label: Label) -> tuple[int, Any]:
    if isinstance(label, tuple):
        return 2, repr(label)  # its parts may be of types that do not compare
    return int(isinstance(label, str)), label


def _place(label: Label, names: tuple[str, ...]) -> int | None:
    """Return which of the names a label is, written out or cut after three letters or more."""
    if not isinstance(label, str):
        return None
    text = label.strip().lower().removesuffix(".")
    if len(text) < 3:
        return None
    return next((place for place, name in enumerate(names) if name.startswith(text)), None)


def _number(label: Label) -> int | None:
    if isinstance(label, int):  # False and True, too, are in this order
        return int(label)
    is_number = isinstance(label, str) and WHOLE_NUMBER.fullmatch(label.strip())
    return int(str(label)) if is_number else None


def _by_key(labels: Sequence[Label], keys: Sequence[int]) -> tuple[Label, ...]:
    return tuple(
        label for _, label in sorted(zip(keys, labels, strict=True), key=lambda pair: pair[0])
    )


def _incomplete(n_labels: int, names: tuple[str, ...], what: str, kind: str) -> tuple[str, ...]:
    if n_labels == len(names):
        return ()
    note = (
        f"the data has {n_labels} of the {len(names)} {what}, and those next to a gap are "
        f"neighbours; {kind}:order=... with all of them keeps their places"
    )
    return (note,)


def _shown(labels: Sequence[Label]) -> str:
    return ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")


_MOST_SHOWN = 10


def check_labels_known(labels: Sequence[Label], known: Sequence[Label]) -> None:
    """Refuse labels that are no classes of the structure, listing them with what is near.

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
    shown = [f"{label!r}{_hint(label, known)}" for label in unknown[:_MOST_SHOWN]]
    more = f" and {len(unknown) - _MOST_SHOWN} more" if len(unknown) > _MOST_SHOWN else ""
    raise LabelError(
        f"every label of the data must be a class of the structure, got {len(unknown)} that are "
        f"not: {', '.join(shown)}{more}; correct the labels or the structure"
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
    shown = ", ".join(map(repr, absent[:_MOST_SHOWN]))
    more = ", ..." if len(absent) > _MOST_SHOWN else ""
    note = (
        f"{count} of the structure {verbs[0]} no row, but {verbs[1]} a probability: {shown}{more}"
    )
    return (note,)


def _without(some: Sequence[Label], others: Sequence[Label]) -> list[Label]:
    there = set(map(_key, others))
    return [label for label in some if _key(label) not in there]


def _key(label: Label) -> tuple[Any, ...]:
    return type(label), label  # 1 and True are equal in Python, but different labels


def _hint(label: Label, known: Sequence[Label]) -> str:
    """Return what is near a label, or of another type, in brackets."""
    message = str(unknown_label(label, known))
    _, _, after = message.partition(" of the structure")
    return f" ({after[2:]})" if after.startswith((": ", "; ")) else ""


WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_BOOLS = {"true": True, "false": False}


def as_typed(names: Sequence[str], labels: Sequence[Label]) -> list[Label]:
    """Return names as whole numbers or bools if the labels are and all names can be, else as text.

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
