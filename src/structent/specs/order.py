"""The order of labels: that of numbers and of the calendar, or one that is given."""

from collections.abc import Sequence
from typing import Any

from structent._typing import Label
from structent.errors import StructentError
from structent.specs.matching import check_labels_known
from structent.specs.names import WHOLE_NUMBER, as_typed
from structent.structure.labels import as_classes

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
