"""One table of how good predictions are at every level of a structure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import ArrayLike

from structent._notebook import paragraph, table
from structent._typing import FloatArray
from structent.metrics.accuracy import accuracy_measure
from structent.metrics.blocks import (
    mean_of_judged,
    named_blocks,
    number_of_judged,
    of_known_classes,
)
from structent.metrics.calibration import N_BINS, calibration_measure
from structent.metrics.distance import distance_measure, severity_measure
from structent.metrics.log_loss import block_losses, checked_prior, log_loss_measure, skill_measure
from structent.metrics.measure import Measure, measured
from structent.structure import RandomPartition, trivial
from structent.structure.random_partition import class_level
from structent.structure.samplers import checked_fixed

_LONGEST_LEVEL = 24


@dataclass(frozen=True)
class LevelScores:
    """The scores at one level, each the mean over the level's partitions.

    Attributes
    ----------
    level
        The name of the level.
    n_blocks
        How many blocks it has; if its partitions differ, the most that one of them has.
    log_loss, accuracy, calibration_error, skill
        As :func:`~structent.metrics.block_log_loss`, :func:`~structent.metrics.block_accuracy`,
        :func:`~structent.metrics.calibration_error` and :func:`~structent.metrics.skill` give them.
        Skill is computed from the rows whose class is known, the others from the rows that can be
        judged at the level; NaN if there are none.
    n_rows
        How many rows can be judged: all but coarse ones whose set of classes no block holds.
    """

    level: str
    n_blocks: int
    log_loss: float
    accuracy: float
    calibration_error: float
    skill: float
    n_rows: int


@dataclass(frozen=True)
class LevelReport:
    """Scores at every level, and of the structure as a whole; prints as a table.

    Attributes
    ----------
    rows
        The scores of each level, the coarsest first.
    n
        How many rows were scored.
    structured_log_loss, skill, mistake_severity, average_distance
        The scores of the whole structure, as the functions of these names give them; all but the
        first are computed from the rows whose class is known, NaN if there are none.
    """

    rows: tuple[LevelScores, ...]
    n: int
    structured_log_loss: float
    skill: float
    mistake_severity: float
    average_distance: float

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dictionaries, lists, strings and numbers."""
        content = asdict(self)
        content["rows"] = list(content["rows"])
        return content

    def __repr__(self) -> str:
        return (
            f"<LevelReport of {self.n:,} rows, {len(self.rows)} levels, structured log loss "
            f"{self.structured_log_loss:.4f}>"
        )

    def _repr_html_(self) -> str:
        header = ["level", "blocks", "log loss", "accuracy", "calibration error", "skill"]
        rows = [
            [
                row.level, row.n_blocks, f"{row.log_loss:.4f}", f"{row.accuracy:.4f}",
                f"{row.calibration_error:.4f}", f"{row.skill:.4f}",
            ]
            for row in self.rows
        ]  # fmt: skip
        whole = (
            f"{self.n:,} rows. Structured log loss {self.structured_log_loss:.4f}, skill "
            f"{self.skill:.4f}, mistake severity {self.mistake_severity:.4f}."
        )
        return table(header, rows) + paragraph(whole)

    def __str__(self) -> str:
        names = [cut_level(row.level) for row in self.rows]
        width = max(map(len, ["level", *names]))
        has_coarse = any(row.n_rows < self.n for row in self.rows)
        rows = "1 row" if self.n == 1 else f"{self.n:,} rows"
        lines = [
            f"{'level':<{width}}  blocks  log loss  accuracy  calibration error    skill"
            + ("  rows judged" if has_coarse else "")
        ]
        lines += [
            f"{name:<{width}}  {row.n_blocks:6}  {row.log_loss:z8.4f}  {row.accuracy:8.4f}  "
            f"{row.calibration_error:17.4f}  {row.skill:z7.4f}"
            + (f"  {row.n_rows:11,}" if has_coarse else "")
            for name, row in zip(names, self.rows, strict=True)
        ]
        lines += [
            "",
            f"structured log loss  {self.structured_log_loss:z8.4f}  nats, over {rows}",
            f"skill                {self.skill:z8.4f}  of the loss of the class prior saved",
            f"mistake severity     {self.mistake_severity:8.4f}  distance, over the mistakes",
            f"average distance     {self.average_distance:8.4f}  distance, over all rows",
        ]
        return "\n".join(lines)


def level_report(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    *,
    prior: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
    allow_blocks: bool = False,
) -> LevelReport:
    """Scores at every level of a structure, from the coarsest to the classes themselves.

    Everything comes from one pass over the rows, so that a Dask array is computed once.

    Parameters
    ----------
    y_true, proba, structure, sample_weight, classes
        As in :func:`~structent.metrics.structured_log_loss`. The classes have a line of their own
        even if the structure lacks the singletons.
    prior
        What the skill is measured against, as in :func:`~structent.metrics.skill`.
    allow_blocks
        Whether a label may also be the name of a block, or a set of classes. Such a row is judged
        at the levels that have a block which holds all classes of the set; the report says how many
        rows were judged at each level.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> proba = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0], [0.25, 0.25, 0.5]]
    >>> print(level_report(["maple", "maple", "rose", "rose"], proba, plants))
    level    blocks  log loss  accuracy  calibration error    skill
    level 1       2    0.2452    0.7500             0.1875   0.6462
    class         3    0.6931    0.7500             0.3750   0.0000
    <BLANKLINE>
    structured log loss    0.4692  nats, over 4 rows
    skill                  0.3231  of the loss of the class prior saved
    mistake severity       1.0000  distance, over the mistakes
    average distance       0.2500  distance, over all rows
    """
    structure = checked_fixed(structure)
    known = structure.classes
    if prior is not None:
        prior = checked_prior(prior, structure, proba, classes)
    levels = _levels(structure)
    of_whole = _measures_of_whole(structure, prior)
    of_levels = [_measures_of_level(level, prior) for _, level in levels]
    counts = [Measure(lambda rows: len(rows.codes), sum)]
    counts += [number_of_judged(level) for _, level in levels]
    measures = [*counts, *(m for scores in (of_whole, *of_levels) for m in scores.values())]
    named = named_blocks(structure, allow_blocks=allow_blocks)
    values = iter(measured(measures, known, y_true, proba, sample_weight, classes, named))
    n, *n_judged = (int(next(values)) for _ in counts)
    whole = {name: next(values) for name in of_whole}
    rows = [
        LevelScores(
            name,
            max(map(len, level.partitions)),
            **{score: next(values) for score in scores},
            n_rows=n_rows,
        )
        for (name, level), scores, n_rows in zip(levels, of_levels, n_judged, strict=True)
    ]
    return LevelReport(tuple(rows), n, **whole)


def _levels(structure: RandomPartition) -> list[tuple[str, RandomPartition]]:
    """Return each level by itself, and the classes as the last in any case."""
    levels = [(name, structure.level(name)) for name in structure.levels]
    if not any(partition.is_singletons for partition in structure.partitions):
        levels.append((class_level(structure.levels), trivial(structure.classes)))
    return levels


def _measures_of_whole(structure: RandomPartition, prior: FloatArray | None) -> dict[str, Measure]:
    return {
        "structured_log_loss": log_loss_measure(structure),
        "skill": of_known_classes(skill_measure(structure, prior)),
        "mistake_severity": of_known_classes(severity_measure(structure)),
        "average_distance": of_known_classes(distance_measure(structure, 1)),
    }


def _measures_of_level(level: RandomPartition, prior: FloatArray | None) -> dict[str, Measure]:
    return {
        "log_loss": mean_of_judged(level, block_losses),
        "accuracy": accuracy_measure(level),
        "calibration_error": calibration_measure(level, N_BINS),
        "skill": of_known_classes(skill_measure(level, prior)),
    }


def cut_level(level: str) -> str:
    """Return the name of a level, cut to the width that a table has for it."""
    return level if len(level) <= _LONGEST_LEVEL else level[: _LONGEST_LEVEL - 3] + "..."
