"""The labels of the data against the classes of a structure: what does not match is listed."""

from collections.abc import Sequence
from typing import Any

from structent._typing import Label
from structent.errors import LabelError
from structent.structure.labels import unknown_label

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
