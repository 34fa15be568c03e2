"""The tables of the pages."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np

from structent._typing import FloatArray
from structent.report.figures import measured
from structent.structure import SpanningTreePartitions
from structent.studies.comparison import ARMS, METRICS, Comparison
from structent.studies.levels import N_SCORED_DRAWS, scored_structure
from structent.studies.mistakes import frequent_confusions, shares_within_blocks
from structent.studies.models import shown_model
from structent.studies.plan import NONE
from structent.studies.significance import PartitionGain, StructureTest
from structent.studies.wording import shown_candidate

_PACKAGES = ("structent", "numpy", "scipy", "numba", "scikit-learn", "xgboost", "lightgbm")


class Cell(NamedTuple):
    """What a cell shows, the number or text by which it is sorted, and its standard deviation."""

    text: str
    value: float | str
    spread: float | None = None


class Table(NamedTuple):
    """A table whose columns can be sorted; the first cell of a row names it.

    Attributes
    ----------
    name
        The name of its file when it is downloaded.
    caption, columns, rows
        What is shown.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]


def facts(
    comparison: Comparison, data: str, target: str, group: str | None
) -> list[tuple[str, str]]:
    """Return what was compared and on what, as names and values."""
    task, plan = comparison.task, comparison.plan
    found = [
        ("Data", data),
        ("Target", f"{target}, {len(task.classes):,} classes"),
        ("Rows", f"{task.n_rows:,}, all of them used"),
        ("Features", f"{len(task.features):,}: {_some(task.features)}"),
        ("Model", shown_model(comparison.model)),
        ("Splits", f"{comparison.n_splits}: {plan.cross_validation}"),
        ("Scrambled copies", f"{plan.n_copies} in each split"),
        ("Seed", str(comparison.seed)),
        ("Time", f"{comparison.seconds:,.1f} seconds"),
        ("Versions", versions()),
    ]
    if group is not None:
        found.insert(3, ("Rows kept together by", group))
    return found


def levels_table(comparison: Comparison | StructureTest) -> Table:
    """Return the partitions of the structure, level by level; of a sampler, its first draws."""
    structure = scored_structure(comparison.structure)
    rows = []
    for name, partitions in structure.levels.items():
        weight = structure.weights[[level == name for level in structure.level_of]].sum()
        n_blocks = max(map(len, partitions))
        rows.append(
            [_text(name), _count(len(partitions)), _count(n_blocks), Cell(f"{weight:.3f}", weight)]
        )
    caption = "Levels of the structure"
    if isinstance(comparison.structure, SpanningTreePartitions):
        caption += f": the first {N_SCORED_DRAWS} partitions drawn, and the classes"
    return Table("levels", caption, ("Level", "Partitions", "Blocks", "Weight"), rows)


def scores_table(comparison: Comparison) -> Table:
    """Return the scores of each arm at each level."""
    rows = []
    for level in comparison.levels:
        for arm in ARMS:
            scores = comparison.scores[arm].by_level[:, comparison.levels.index(level)]
            rows.append([_text(level), _text(ARMS[arm]), *(_spread(column) for column in scores.T)])
    units = {"log loss": "log loss (nats)"}
    columns = tuple(units.get(metric, metric).capitalize() for metric in METRICS)
    caption = "Scores at each level: mean ± standard deviation over the splits"
    return Table("scores", caption, ("Level", "Model", *columns), rows)


def severity_table(comparison: Comparison) -> Table:
    """Return how far from the truth the mistakes of each arm are."""
    rows = [[_text(ARMS[arm]), _spread(comparison.scores[arm].severity)] for arm in ARMS]
    caption = "Mistake severity: the mean distance of mistakes from the true class"
    unit = ""
    if isinstance(comparison.structure, SpanningTreePartitions):
        caption += ", in edges of the graph (1 is a neighbour)"
        unit = " (edges)"
    return Table("mistake-severity", caption, ("Model", f"Mistake severity{unit}"), rows)


def confusions_table(comparison: Comparison) -> Table:
    """Return the most frequent confusions of both models, by name."""
    found = frequent_confusions(comparison)
    has_edges = any(each.edges is not None for each in found)
    rows = []
    for each in found:
        row = [
            _text(str(each.true)),
            _text(str(each.predicted)),
            _rows_of(each.n_none, each.n_true),
            _rows_of(each.n_structure, each.n_true),
            _signed_count(each.n_structure - each.n_none),
            _shared(each.together),
        ]
        rows.append([*row, _count(each.edges)] if each.edges is not None else row)
    columns = (
        "True class",
        "Predicted as",
        "No structure",
        "The structure",
        "Change",
        "In one block",
    )
    return Table(
        "confusions",
        "The most frequent confusions: test rows, and their share of the rows of the true class",
        (*columns, "Edges apart") if has_edges else columns,
        rows,
    )


def within_blocks_table(comparison: Comparison) -> Table | None:
    """Return the share of the mistakes that stay within a block; None without such blocks."""
    found = shares_within_blocks(comparison)
    if not found:
        return None
    rows = [
        [_text(each.level), *map(_percent, (each.none, each.structure, each.chance))]
        for each in found
    ]
    columns = ("Level", "No structure", "The structure", "If mistakes were random")
    return Table("within-blocks", "Share of the mistakes that stay within a block", columns, rows)


def chosen_table(comparison: Comparison) -> Table:
    """Return how often validation rows chose each candidate, for the structure and its copies."""
    found = {arm: comparison.n_chosen(arm) for arm in comparison.chosen}
    candidates = {*comparison.plan.candidates, NONE, *(c for n in found.values() for c in n)}
    rows = []
    for candidate in sorted(
        candidates, key=lambda each: (*(n.get(each, 0) for n in found.values()), each), reverse=True
    ):
        counts = [
            Cell(f"{n.get(candidate, 0)} of {sum(n.values())}", n.get(candidate, 0))
            for n in found.values()
        ]
        rows.append([_text(shown_candidate(candidate, comparison.model)), *counts])
    caption = "How often validation rows chose each candidate"
    names = tuple(ARMS[arm].capitalize() for arm in found)
    return Table("chosen", caption, ("Where the structure acts", *names), rows)


def references_table(comparison: Comparison) -> Table | None:
    """Return the log losses of scikit-learn's own models beside ours without structure."""
    found = comparison.references
    if not found.n_splits:
        return None
    rows = [
        [_text(name), Cell(f"{loss:.4f}", loss)]
        for name, loss in [("ours, no structure", found.ours), *found.log_losses.items()]
    ]
    n_splits = "the first split" if found.n_splits == 1 else f"the first {found.n_splits} splits"
    caption = f"For comparison: log loss on {n_splits}"
    return Table("for-comparison", caption, ("Model", "Log loss (nats)"), rows)


def splits_table(comparison: Comparison) -> Table:
    """Return the paired differences and the choice of each split."""
    columns = ("Split", "Against no structure", "Against scrambled copies", "Chosen")
    by_split = zip(
        comparison.against_none.per_split.tolist(),
        comparison.against_scrambled.per_split.tolist(),
        comparison.chosen["structure"],
        strict=True,
    )
    rows = [
        [
            _count(number),
            _signed(none),
            _signed(scrambled),
            _text(shown_candidate(chosen, comparison.model)),
        ]
        for number, (none, scrambled, chosen) in enumerate(by_split, start=1)
    ]
    caption = f"Difference in each split of the {measured(comparison.metric)}: below 0 is better"
    return Table("splits", caption, columns, rows)


def facts_of_test(found: StructureTest, data: str, target: str) -> list[tuple[str, str]]:
    """Return what was tested and how, as names and values."""
    many = "more than can be listed" if found.orbit_size is None else f"{found.orbit_size:,}"
    rows = [] if found.n_rows is None else [("Rows", f"{found.n_rows:,}")]
    return [
        ("Data", data),
        ("Target", f"{target}, {len(found.structure.classes):,} classes"),
        *rows,
        ("Cross-validation", found.cross_validation),
        ("Scrambled copies", f"{found.p.n_drawn:,}, {found.p.n_as_good:,} of them as good"),
        ("Structures that scrambling can give", many),
        ("Level of significance", f"{found.level:g}"),
        ("Seed", str(found.seed)),
        ("Time", f"{found.seconds:,.1f} seconds"),
        ("Versions", versions()),
    ]


def gains_table(gains: Sequence[PartitionGain]) -> Table | None:
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
    caption = "Log loss with the partition minus log loss without it: below 0 it helps"
    return Table("partitions", caption, columns, rows)


def _text(text: str) -> Cell:
    return Cell(text, text)


def _count(n: int) -> Cell:
    return Cell(f"{n:,}", n)


def _signed(value: float) -> Cell:
    return Cell(f"{value:+.4f}", value)


def _signed_count(n: int) -> Cell:
    return Cell(f"{n:+,}" if n else "0", n)


def _rows_of(n: int, n_true: int) -> Cell:
    return Cell(f"{n:,} ({n / n_true:.0%})", n)


def _percent(share: float) -> Cell:
    return Cell("no mistakes", "") if np.isnan(share) else Cell(f"{share:.1%}", share)


def _shared(together: dict[str, tuple[int, int]]) -> Cell:
    """Return where two classes share a block; the name of the level only if there are several.

    Examples
    --------
    >>> _shared({"genus": (1, 1)}).text, _shared({"width 3": (2, 3)}).text
    ('yes', '2 of 3')
    >>> _shared({"family": (1, 1), "genus": (0, 1)}).text
    'family'
    """
    if len(together) == 1:
        ((n_together, n_partitions),) = together.values()
        if n_partitions == 1:
            return _text("yes" if n_together else "no")
        return Cell(f"{n_together} of {n_partitions}", n_together / n_partitions)
    shared = [
        level if n_partitions == 1 else f"{level} ({n_together} of {n_partitions})"
        for level, (n_together, n_partitions) in together.items()
        if n_together
    ]
    return _text(", ".join(shared) or "none")


def _spread(values: FloatArray) -> Cell:
    """Return mean and standard deviation over the splits that have a value."""
    # A split without mistakes has no severity of mistakes.
    known = values[~np.isnan(values)]
    if not len(known):
        return Cell("none", "")
    mean = float(known.mean())
    if len(known) == 1:
        return Cell(f"{mean:.4f}", mean)
    spread = float(known.std(ddof=1))
    return Cell(f"{mean:.4f} ± {spread:.4f}", mean, spread)


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - 30
    return ", ".join(names[:30]) + (f" and {rest} more" if rest > 0 else "")


def versions() -> str:
    """Return the versions of Python and of the packages that a result depends on."""
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # an extra that is not installed
            continue
    return ", ".join(found)
