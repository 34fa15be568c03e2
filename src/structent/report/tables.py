"""The tables of the page: text to read, and values to sort by."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple, get_args

import numpy as np

from structent._typing import FloatArray
from structent.structure import RandomPartition
from structent.studies.comparison import METRICS, NAME_OF_ARM, ArmName, Comparison
from structent.studies.significance import StructureTest
from structent.studies.test import PartitionGain

_PACKAGES = ("structent", "numpy", "scipy", "scikit-learn", "xgboost", "lightgbm")


class Cell(NamedTuple):
    """What a cell shows, and the number or text by which it is sorted."""

    text: str
    value: float | str


class Table(NamedTuple):
    """A table whose columns can be sorted; the first cell of a row names it."""

    caption: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]


def facts(comparison: Comparison) -> list[tuple[str, str]]:
    """Return what was compared and on what, as names and values."""
    task, plan = comparison.task, comparison.plan
    found = [
        ("Data", task.data),
        ("Target", f"{task.target}, {len(task.classes):,} classes"),
        ("Rows", f"{task.n_used:,} used of {task.n_rows:,} with a label"),
        ("Features", f"{len(task.features):,}: {_some(task.features)}"),
        ("Cross-validation", f"{plan.n_folds} folds, {plan.n_repeats} times"),
        ("Scrambled copies", f"{plan.n_copies} in each fold"),
        ("Seed", str(comparison.seed)),
        ("Time", f"{comparison.seconds:,.1f} seconds"),
        ("Versions", _versions()),
    ]
    if task.group is not None:
        found.insert(4, ("Rows kept together by", task.group))
    return found


def levels_table(comparison: Comparison | StructureTest) -> Table | None:
    """Return the partitions of the structure, level by level; those of a sampler change."""
    structure = comparison.structure
    if not isinstance(structure, RandomPartition):
        return None
    rows = []
    for name, partitions in structure.levels.items():
        weight = structure.weights[[level == name for level in structure.level_of]].sum()
        n_blocks = max(map(len, partitions))
        rows.append(
            [_text(name), _count(len(partitions)), _count(n_blocks), Cell(f"{weight:.3f}", weight)]
        )
    return Table("Levels of the structure", ("Level", "Partitions", "Blocks", "Weight"), rows)


def scores_table(comparison: Comparison) -> Table:
    """Return the scores of each arm at each level."""
    rows = []
    for level in comparison.levels:
        for arm in get_args(ArmName):
            scores = comparison.scores[arm].by_level[:, comparison.levels.index(level)]
            rows.append(
                [_text(level), _text(NAME_OF_ARM[arm]), *(_spread(column) for column in scores.T)]
            )
    units = {"log loss": "log loss (nats)"}
    columns = tuple(units.get(metric, metric).capitalize() for metric in METRICS)
    caption = "Scores at each level: mean ± standard deviation over the folds"
    return Table(caption, ("Level", "Model", *columns), rows)


def severity_table(comparison: Comparison) -> Table:
    """Return how far from the truth the mistakes of each arm are."""
    rows = [
        [_text(NAME_OF_ARM[arm]), _spread(comparison.scores[arm].severity)]
        for arm in get_args(ArmName)
    ]
    caption = "Mistake severity: the mean distance of mistakes from the true class"
    return Table(caption, ("Model", "Mistake severity"), rows)


def weights_table(comparison: Comparison) -> Table:
    """Return how often each weight of the singletons was chosen."""
    candidates = sorted({*comparison.plan.singleton_weights, *comparison.chosen.tolist(), 1.0})
    rows = []
    for weight in candidates:
        n = int((comparison.chosen == weight).sum())
        meaning = f"{weight:g} (no structure)" if weight == 1.0 else f"{weight:g}"
        rows.append([Cell(meaning, weight), Cell(f"{n} of {len(comparison.chosen)}", n)])
    caption = "Weight of the single classes that validation rows chose"
    return Table(caption, ("Weight of single classes", "Folds"), rows)


def folds_table(comparison: Comparison) -> Table:
    """Return the paired differences and the chosen weight of each fold."""
    columns = ("Fold", "Against no structure", "Against scrambled copies", "Weight chosen")
    by_fold = zip(
        comparison.against_none.per_fold.tolist(),
        comparison.against_scrambled.per_fold.tolist(),
        comparison.chosen.tolist(),
        strict=True,
    )
    rows = [
        [_count(fold), _signed(none), _signed(scrambled), Cell(f"{weight:g}", weight)]
        for fold, (none, scrambled, weight) in enumerate(by_fold, start=1)
    ]
    return Table("Differences of class log loss in each fold, in nats a row", columns, rows)


def facts_of_test(
    found: StructureTest, data: str, target: str, n_rows: int
) -> list[tuple[str, str]]:
    """Return what was tested and how, as names and values."""
    many = "more than can be listed" if found.orbit_size is None else f"{found.orbit_size:,}"
    return [
        ("Data", data),
        ("Target", f"{target}, {len(found.structure.classes):,} classes"),
        ("Rows", f"{n_rows:,}"),
        ("Folds", f"{len(found.losses):,}"),
        ("Scrambled copies", f"{found.p.n_drawn:,}, {found.p.n_as_good:,} of them as good"),
        ("Structures that scrambling can give", many),
        ("Level of significance", f"{found.level:g}"),
        ("Seed", str(found.seed)),
        ("Time", f"{found.seconds:,.1f} seconds"),
        ("Versions", _versions()),
    ]


def gains_table(gains: tuple[PartitionGain, ...]) -> Table | None:
    """Return what each partition adds, by leaving it out."""
    if not gains:
        return None
    rows = [
        [
            _text(gain.name),
            Cell(f"{gain.weight:.3f}", gain.weight),
            _signed(gain.difference.mean),
            _signed(gain.difference.low),
            _signed(gain.difference.high),
        ]
        for gain in gains
    ]
    columns = ("Left out", "Weight", "Difference", "Low", "High")
    caption = "Log loss with the partition minus that without it: below 0 it helps"
    return Table(caption, columns, rows)


def _text(text: str) -> Cell:
    return Cell(text, text)


def _count(n: int) -> Cell:
    return Cell(f"{n:,}", n)


def _signed(value: float) -> Cell:
    return Cell(f"{value:+.4f}", value)


def _spread(values: FloatArray) -> Cell:
    """Return mean and standard deviation over the folds that have a value."""
    # A fold without mistakes has no severity of mistakes.
    known = values[~np.isnan(values)]
    if not len(known):
        return Cell("none", "")
    mean = float(known.mean())
    if len(known) == 1:
        return Cell(f"{mean:.4f}", mean)
    return Cell(f"{mean:.4f} ± {known.std(ddof=1):.4f}", mean)


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - 30
    return ", ".join(names[:30]) + (f" and {rest} more" if rest > 0 else "")


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # an extra that is not installed
            continue
    return ", ".join(found)
