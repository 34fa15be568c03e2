"""The classes of a classifier: those of its structure, or of its labels if it has none.

A model's columns are in the order of the structure's classes. What users see, ``classes_`` and the
columns of ``predict_proba``, is sorted, because scikit-learn's scorers rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d

from structent._typing import IndexArray, Label
from structent.errors import LabelError, StructureError
from structent.structure import RandomPartition, trivial
from structent.structure.labels import (
    class_indices,
    is_missing,
    label_array,
    plain_values,
    shown,
    with_columns_joined,
)
from structent.structure.samplers import Structure, checked_structure
from structent.structure.short_forms import CATALOG, Options, structure_of_labels
from structent.structure.targets import LabelSets, label_sets_of

# The labels of rows, as they were given or as a study has encoded them.
Labels: TypeAlias = "NDArray[Any] | CodedLabels"


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a model's columns.

    Attributes
    ----------
    structure
        The structure of the columns: the given one, or the trivial one.
    labels
        The class of each column.
    values
        The classes as an array, sorted if they can be: scikit-learn's ``classes_``.
    columns
        The column of each of ``values``.
    sets
        The sets of columns that coarse labels mean, each ascending: code ``len(labels) + s`` of a
        row means set s. None if labels must be classes.
    """

    structure: Structure
    labels: tuple[Any, ...]
    values: NDArray[Any]
    columns: IndexArray
    sets: tuple[tuple[int, ...], ...] | None = None

    @classmethod
    def of(cls, structure: Structure | None, y: Labels) -> Classes:
        """Return the classes of the structure, or of the labels ``y`` if there is none."""
        if structure is not None:
            return cls.of_structure(checked_structure(structure))
        values = np.unique(y)
        # Places, not labels: without a structure a class may be a float, as in scikit-learn.
        places = trivial(range(len(values)))
        return cls(places, tuple(values.tolist()), values, np.arange(len(values)))

    @classmethod
    def of_structure(cls, structure: Structure) -> Classes:
        """Return the classes of a structure, also those without rows."""
        values = label_array(structure.classes)
        columns = _sorting_order(values)
        return cls(structure, structure.classes, values[columns], columns)

    @classmethod
    def of_mixed(cls, structure: Structure | None, *labels: Any) -> Classes:
        """Return the classes of a structure, and the sets of them that labels of rows mean.

        A label is a class, the name of a block of the structure, or a set of classes. The blocks of
        a sampler change and have no names.
        """
        if structure is None:
            raise StructureError(
                "allow_blocks=True needs a structure with named blocks, got None; give one, or "
                "leave allow_blocks at False"
            )
        classes = cls.of_structure(checked_structure(structure))
        found: set[tuple[int, ...]] = set()
        for column in labels:
            found |= set(classes._meant(column)[0])
        return replace(classes, sets=tuple(sorted(each for each in found if len(each) > 1)))

    def encode(self, y: Labels) -> IndexArray:
        """Return the column of each label, or the code of the set of columns that it means."""
        if isinstance(y, CodedLabels):
            if (y.classes, y.sets) == (self.labels, self.coarse_sets):
                return y.codes
        elif self.sets is None:
            return self._encoded_classes(y)
        code_of = {members: len(self.labels) + s for s, members in enumerate(self.coarse_sets)}
        meant, of_row = self._meant(y)
        codes = [m[0] if len(m) == 1 else code_of[m] for m in meant]
        return np.array(codes, dtype=np.int64)[of_row]

    @property
    def coarse_sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of columns that coarse labels mean, none if labels must be classes."""
        return self.sets or ()

    @property
    def label_sets(self) -> LabelSets | None:
        """The meaning of the codes beyond the columns, in the form for losses; None if none."""
        if not self.sets:
            return None
        return LabelSets.of_sets(self.sets, self.labels)

    @property
    def n_codes(self) -> int:
        """How many codes a label may have: the columns, and the sets of them."""
        return len(self.labels) + len(self.coarse_sets)

    def name(self, code: int) -> str:
        """Return the class of a code, or the classes of its set, as text."""
        if code < len(self.labels):
            return str(self.labels[code])
        members = self.coarse_sets[code - len(self.labels)]
        return " or ".join(str(self.labels[column]) for column in members)

    def sorted(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the columns of a model, (n, classes), in the order of ``values``."""
        return columns.take(self.columns, axis=1)  # row by row in memory, unlike an index

    def probability_of(self, proba: NDArray[Any], codes: IndexArray) -> NDArray[Any]:
        """Return the probability of each row's code, (n,), from those of ``values``."""
        place = np.argsort(self.columns)
        is_set = codes >= len(place)
        probability: NDArray[Any] = proba[np.arange(len(codes)), place[np.where(is_set, 0, codes)]]
        for code in np.unique(codes[is_set]):
            rows, members = codes == code, list(self.coarse_sets[code - len(place)])
            probability[rows] = proba[np.ix_(rows, place[members])].sum(axis=1)
        return probability

    def meanings(self, codes: IndexArray) -> NDArray[Any]:
        """Return the class of each code, or its set of classes, (n,).

        Unlike the name of a block, a set means the same in every structure of these classes.
        """
        sets = [frozenset(self.labels[column] for column in each) for each in self.coarse_sets]
        table = np.fromiter([*self.labels, *sets], dtype=object, count=self.n_codes)
        return table[codes]

    def sorted_codes(self, codes: IndexArray) -> IndexArray:
        """Return codes with the columns numbered in the order of ``values``, the sets after them.

        Random choices by code then depend on the classes, not on the structure's order of them.
        """
        places = np.argsort(self.columns)
        return np.append(places, np.arange(len(places), self.n_codes))[codes]

    def _meant(self, y: Any) -> tuple[list[tuple[int, ...]], IndexArray]:
        """Return the sets of columns that labels mean, and which of them each row has, (n,)."""
        if isinstance(y, CodedLabels):
            column = {label: place for place, label in enumerate(self.labels)}
            used, of_row = np.unique(y.codes, return_inverse=True)
            sets = [tuple(sorted(column[label] for label in y.meaning(code))) for code in used]
            return sets, of_row
        label_sets = self._label_sets_of(y)
        used, of_row = np.unique(label_sets.codes, return_inverse=True)
        return [label_sets.sets[code] for code in used], of_row

    def _label_sets_of(self, y: Any) -> LabelSets:
        if isinstance(self.structure, RandomPartition):
            return self.structure.encode_with_blocks(y)
        try:
            return label_sets_of(y, self.structure.classes, {})
        except LabelError as error:
            raise LabelError(
                f"{error}; the blocks of a sampler have no names: give a set of classes instead"
            ) from None

    def _encoded_classes(self, y: NDArray[Any]) -> IndexArray:
        try:
            return class_indices(y, self.labels)
        except LabelError as error:
            if not isinstance(self.structure, RandomPartition):
                raise
            raise _with_hint(error, y, self.structure) from None


@dataclass(frozen=True, eq=False)
class CodedLabels:
    """Labels that are already checked and encoded, for many fits to parts of them.

    Estimators take them in place of labels and do not check them again. For a structure of the same
    classes in the same order, such as a scrambled copy, their codes are used unchanged.

    Attributes
    ----------
    codes
        The place of each label among ``classes``, or ``len(classes)`` plus the place of its set of
        classes among ``sets``, (n,).
    classes
        The classes.
    sets
        The sets of classes that labels mean, as places among the classes.

    Examples
    --------
    >>> labels = CodedLabels(np.array([0, 2, 1]), ("ash", "oak"), ((0, 1),))
    >>> np.asarray(labels[1:]).tolist() == [frozenset({"ash", "oak"}), "oak"]
    True
    """

    codes: IndexArray
    classes: tuple[Any, ...]
    sets: tuple[tuple[int, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> CodedLabels:
        return replace(self, codes=self.codes[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = label_array(self.classes)
        if self.sets:
            sets = [frozenset(self.classes[place] for place in each) for each in self.sets]
            values = np.fromiter([*self.classes, *sets], dtype=object)
        labels: NDArray[Any] = values[self.codes]  # never a view, whatever ``copy`` asks
        return labels if dtype is None else labels.astype(dtype)

    def meaning(self, code: int) -> tuple[Any, ...]:
        """Return the class of a code, or the classes of its set."""
        if code < len(self.classes):
            return (self.classes[code],)
        return tuple(self.classes[place] for place in self.sets[code - len(self.classes)])


def labels_to_fit(y: Any, structure: Structure | str | None, *, allow_blocks: bool) -> Labels:
    """Return the labels of the training rows, checked, by a study or here."""
    if not isinstance(y, CodedLabels):
        return checked_labels(y, structure, allow_blocks=allow_blocks)
    if not allow_blocks and len(np.unique(y.codes)) < 2:
        check_two_classes(np.asarray(y))  # raises, and names the class
    return y


def given_structure(structure: Any, labels: Any, *, allow_blocks: bool) -> Structure | None:
    """Return the structure of an estimator, built from the labels if it is a short form.

    Examples
    --------
    >>> given_structure("ordinal", np.array([3, 1, 2, 3]), allow_blocks=False).classes
    (1, 2, 3)
    """
    if structure is None:
        return None
    if not isinstance(structure, str):
        return checked_structure(structure)
    if allow_blocks and Options.of(structure).kind not in CATALOG:
        raise StructureError(
            "allow_blocks=True needs a structure that says which labels are classes, got "
            f"{structure!r}, which would make every label a class; pass the structure itself, "
            "such as ordinal(classes)"
        )
    return structure_of_labels(structure, () if allow_blocks else labels)


def checked_labels(
    y: Any, structure: Structure | str | None = None, *, allow_blocks: bool = False
) -> NDArray[Any]:
    """Return the labels of the training rows as an array with at least two different ones."""
    if y is None:
        # In scikit-learn's words, which its own checks look for.
        raise LabelError("a classifier requires y to be passed, but the target y is None")
    if np.ma.is_masked(y):
        raise LabelError("y must hold a label for every row, got a masked array with masked ones")
    y = with_pairs(y, getattr(structure, "classes", None))
    labels: NDArray[Any] = mixed_labels(y) if allow_blocks else _column(y)
    _check_that_none_is_missing(labels)
    if allow_blocks:
        return labels  # their codes are checked elsewhere
    _check_that_none_is_a_set(labels)
    if not _are_pairs(labels):
        _check_kind(labels)
    check_two_classes(labels)
    return labels


def mixed_labels(y: Any) -> NDArray[Any]:
    """Return classes, names of blocks and sets of classes as an array of objects, (n,).

    Examples
    --------
    >>> mixed_labels([1, "spring", {1, 2}]).tolist()  # NumPy alone would make text of the 1
    [1, 'spring', {1, 2}]
    """
    # As a list again: values in an array of objects may be NumPy's own types.
    values = plain_values(list(plain_values(y)))
    return np.fromiter(values, dtype=object, count=len(values))


def label_column(labels: Any, classes: Classes) -> Labels:
    """Return the labels of a chunk of the rows as an array, as these classes encode them, (n,)."""
    if isinstance(labels, CodedLabels):
        return labels
    labels = with_pairs(labels, classes.labels)
    column: NDArray[Any] = column_or_1d(labels) if classes.sets is None else mixed_labels(labels)
    return column


def with_pairs(y: Any, classes: tuple[Label, ...] | None) -> Any:
    """Return labels that are pairs as an array of objects, (n,), and others unchanged.

    Pairs may come as tuples, or as a table or array with one column for each part, if the classes
    of the structure are pairs.

    Examples
    --------
    >>> with_pairs([("jan", 1), ("feb", 2)], None)
    array([('jan', 1), ('feb', 2)], dtype=object)
    """
    values = y if classes is None else with_columns_joined(y, classes)
    if isinstance(values, list | tuple) and any(isinstance(label, tuple) for label in values):
        return np.fromiter(values, dtype=object, count=len(values))
    return values


def check_two_classes(labels: NDArray[Any]) -> None:
    """Refuse rows of one class."""
    # Pairs of different types have no order.
    present = label_array(tuple(set(labels))) if _are_pairs(labels) else np.unique(labels)
    if len(present) < 2:
        raise LabelError(
            f"y must hold two classes or more, got {len(present)} class: "
            f"{shown(present.tolist())}; a classifier needs two to distinguish"
        )


def check_two_codes(codes: IndexArray, classes: Classes) -> None:
    """Refuse rows of a single class; rows of weight 0 do not count."""
    present = np.unique(codes)
    if len(present) < 2:
        raise LabelError(
            "rows with a weight above 0 must have two classes or more, got only "
            f"{shown(classes.name(present[0]))}; a classifier needs two to distinguish"
        )


def accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the share of the rows whose most probable class is their label."""
    labels = np.asarray(with_pairs(y, getattr(model.structure_, "classes", None)))
    if not _are_pairs(labels):
        return float(ClassifierMixin.score(model, X, y, sample_weight))
    predicted = model.predict(X)
    is_hit = [label == best for label, best in zip(labels, predicted, strict=True)]
    return float(np.average(is_hit, weights=sample_weight))


def _check_that_none_is_missing(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in labels], dtype=bool)
    else:
        return
    if missing.any():
        row = int(missing.argmax())
        raise LabelError(
            f"y must hold a label for every row, got {labels[row]} in row {row}; "
            "leave out the rows without one"
        )


def _check_that_none_is_a_set(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "O":
        row = next((i for i, y in enumerate(labels) if isinstance(y, set | frozenset)), None)
        if row is not None:
            raise LabelError(
                f"y must hold classes, got the set {set(labels[row])} in row {row}; a model with "
                "allow_blocks=True takes sets of classes"
            )


def _column(y: Any) -> NDArray[Any]:
    """Return labels as an array, (n,)."""
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()  # scikit-learn would make floats of the nullable integers of pandas
    try:
        column: NDArray[Any] = column_or_1d(y, warn=True)
    except ValueError as error:  # which may show all labels
        raise LabelError(str(error).splitlines()[0]) from None
    return column


def _check_kind(labels: NDArray[Any]) -> None:
    """Refuse labels that cannot be classes, or that a file could not hold.

    Messages begin with scikit-learn's words, which its own checks look for.
    """
    kind, wanted = labels.dtype.kind, "y must hold text, whole numbers or bools"
    if kind == "f":
        is_amount = labels != np.floor(labels)
        if is_amount.any():
            raise LabelError(
                f"Unknown label type: {wanted}, got {labels[is_amount.argmax()]:g} in "
                f"row {is_amount.argmax()}; put amounts into bins"
            )
    elif kind == "O":
        text = next((label for label in labels if isinstance(label, str)), None)
        other = next((label for label in labels if not isinstance(label, str)), None)
        if other is not None:
            beside = "" if text is None else f" beside the text {shown(text)}"
            raise LabelError(
                f"Unknown label type: {wanted}, all of one kind, got {shown(other)} of type "
                f"{type(other).__name__}{beside}; make all labels text, or whole numbers"
            )
    elif kind not in "biuU":
        raise LabelError(
            f"{wanted}, got labels of type {labels.dtype}; write them as text, e.g. "
            "with y.astype(str)"
        )


def _are_pairs(labels: NDArray[Any]) -> bool:
    """Whether labels are tuples, which scikit-learn would not accept as labels."""
    return labels.dtype.kind == "O" and any(isinstance(label, tuple) for label in labels)


def _with_hint(error: LabelError, y: Any, structure: RandomPartition) -> LabelError:
    """Return the error for a label that is not a class; if it is a block, say how to use it."""
    known = set(structure.classes)
    # Names of blocks are text; for other labels the error itself is enough.
    wrong = next((y for y in plain_values(y) if isinstance(y, str) and y not in known), None)
    names = {
        name
        for level, partitions in structure.levels.items()
        for partition in partitions
        for short, block in zip(partition.names, partition.blocks, strict=True)
        for name in (short, f"{level}:{short}")
        if len(block) > 1 or short != str(block[0])
    }
    if wrong not in names:
        return error
    return LabelError(
        f"{wrong!r} is not a class of the structure but the name of a block; a model with "
        "allow_blocks=True takes such labels"
    )


def _sorting_order(values: NDArray[Any]) -> IndexArray:
    try:
        return np.argsort(values, kind="stable")
    except TypeError:  # str and int have no order among each other: the structure's is kept
        return np.arange(len(values))
