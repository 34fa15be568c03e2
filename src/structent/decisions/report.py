"""How often answers of any granularity are right, and how precise they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._notebook import paragraph, table
from structent._typing import FloatArray
from structent.decisions.hedging import ALL_CLASSES, BoolArray, HedgedPredictions
from structent.errors import StructureError
from structent.metrics.report import cut_level
from structent.structure.labels import class_indices


@dataclass(frozen=True)
class LevelAnswers:
    """The answers at one level.

    Attributes
    ----------
    level
        The name of the level; "all classes" if the answer is no block.
    n
        How many answers.
    coverage
        The share of them that hold the true class.
    average_size
        The mean number of classes in them.
    """

    level: str
    n: int
    coverage: float
    average_size: float


@dataclass(frozen=True)
class AnswerReport:
    """Coverage, size and depth of answers, by level and overall; prints as a table.

    Attributes
    ----------
    rows
        The levels at which there are answers, the coarsest first.
    n
        How many answers.
    coverage, average_size, average_depth
        The share of all answers that hold the true class, the mean number of their classes, and the
        mean number of levels that they settle.
    """

    rows: tuple[LevelAnswers, ...]
    n: int
    coverage: float
    average_size: float
    average_depth: float

    def __repr__(self) -> str:
        return f"<AnswerReport of {self.n:,} answers, coverage {self.coverage:.4f}>"

    def _repr_html_(self) -> str:
        rows = [
            [row.level, f"{row.n:,}", f"{row.coverage:.4f}", f"{row.average_size:.2f}"]
            for row in self.rows
        ]
        size = f"{self.average_size:.2f} classes each"
        whole = f"{self.n:,} answers. Coverage {self.coverage:.4f}, {size}."
        return table(["level", "answers", "coverage", "classes"], rows) + paragraph(whole)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dictionaries, lists, strings and numbers."""
        return {**asdict(self), "rows": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        names = [cut_level(row.level) for row in self.rows]
        width = max(map(len, ["level", *names]))
        held = "1 answer holds" if self.n == 1 else f"{self.n:,} answers hold"
        lines = [f"{'level':<{width}}  answers   share  coverage  average size"]
        lines += [
            f"{name:<{width}}  {row.n:7}  {row.n / self.n:6.4f}  {row.coverage:8.4f}  "
            f"{row.average_size:12.2f}"
            for name, row in zip(names, self.rows, strict=True)
        ]
        lines += [
            "",
            f"coverage       {self.coverage:8.4f}  of {held} the true class",
            f"average size   {self.average_size:8.2f}  classes in an answer",
            f"average depth  {self.average_depth:8.2f}  levels that an answer settles",
        ]
        return "\n".join(lines)


def answer_report(y_true: ArrayLike, answers: HedgedPredictions) -> AnswerReport:
    """Coverage of answers on rows whose class is known, beside how precise the answers are.

    Coverage alone says nothing: "all classes" is always right. So the report also has the size and
    the depth of the answers.

    Parameters
    ----------
    y_true
        The true class of each row, (n,).
    answers
        The result of :func:`~structent.decisions.hedge`,
        :func:`~structent.decisions.calibrated_hedge` or ``predict_blocks`` of an estimator for
        these rows.

    Examples
    --------
    >>> from structent import hierarchy
    >>> from structent.decisions import hedge
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> proba = [[0.9, 0.1, 0.0], [0.5, 0.4, 0.1], [0.4, 0.2, 0.4], [0.8, 0.2, 0.0]]
    >>> print(answer_report(["maple", "oak", "rose", "oak"], hedge(proba, plants, 0.8)))
    level        answers   share  coverage  average size
    all classes        1  0.2500    1.0000          3.00
    level 1            1  0.2500    1.0000          2.00
    class              2  0.5000    0.5000          1.00
    <BLANKLINE>
    coverage         0.7500  of 4 answers hold the true class
    average size       1.75  classes in an answer
    average depth      1.25  levels that an answer settles
    """
    codes = class_indices(y_true, answers.classes)
    if len(codes) != len(answers.sets):
        raise StructureError(
            f"y_true has {len(codes)} rows but there are {len(answers.sets)} answers"
        )
    if not len(codes):
        raise StructureError("there must be at least one answer to report on, got none")
    is_hit = _hits(codes.tolist(), answers)
    sizes = answers.sizes.astype(np.float64)
    levels = np.array([ALL_CLASSES if level is None else level for level in answers.levels])
    rows = [
        (answers.depths[there].mean(), _of_level(level, is_hit[there], sizes[there]))
        for level in sorted(set(levels.tolist()))
        if (there := levels == level).any()
    ]
    return AnswerReport(
        tuple(row for _, row in sorted(rows, key=lambda pair: float(pair[0]))),
        len(codes),
        float(is_hit.mean()),
        answers.average_size,
        answers.average_depth,
    )


def _hits(codes: list[int], answers: HedgedPredictions) -> BoolArray:
    """Return whether each answer holds the true class."""
    members = {each: frozenset(each) for each in set(answers.sets)}
    labels = [answers.classes[code] for code in codes]
    pairs = zip(labels, answers.sets, strict=True)
    return np.array([label in members[each] for label, each in pairs], dtype=np.bool_)


def _of_level(level: str, is_hit: BoolArray, sizes: FloatArray) -> LevelAnswers:
    return LevelAnswers(level, len(sizes), float(is_hit.mean()), float(sizes.mean()))
