"""What a comparison finds: scores of every fold and level, paired differences, and a verdict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.stats import t

from structent._typing import FloatArray, IndexArray
from structent.structure import RandomPartition, trivial
from structent.structure.samplers import Structure

ArmName: TypeAlias = Literal["none", "structure", "scrambled"]

# What is compared, and what it is called.
ARMS: dict[ArmName, str] = {
    "none": "no structure",
    "structure": "the structure",
    "scrambled": "scrambled copies",
}
METRICS = ("log loss", "accuracy", "calibration error")
CONFIDENCE = 0.95

Finding: TypeAlias = Literal["helps", "regularisation", "no evidence"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything that a comparison found.

    Attributes
    ----------
    task, plan
        What was compared, and how much was done.
    structure
        The structure that was asked about; if it is learned in every fold, the one of all rows.
    levels
        Its levels, coarsest first, the classes last.
    scores
        The scores of each arm.
    chosen
        The weight of the singletons that validation rows chose in each fold, 1 for no structure.
    against_none, against_scrambled
        The paired differences of the structure.
    verdict
        The sentence at the end.
    labels
        The class of each row that is known by its class, as a place among ``task.classes``,
        (rows,).
    proba
        The probabilities that the models of "none" and "structure" gave to these rows, which they
        had not seen, (rows, classes), in the order of ``task.classes``.
    seconds, seed
        How long it took, and the seed of all that was drawn: as ``random_state`` it gives the same.
    learning_curve
        Log loss at growing numbers of rows, where it was asked for.
    metric
        What the differences and the verdict are about: "log loss" or "accuracy".
    """

    task: Task
    plan: Plan
    structure: Structure
    levels: tuple[str, ...]
    scores: dict[ArmName, ArmScores]
    chosen: FloatArray
    against_none: Difference
    against_scrambled: Difference
    verdict: Verdict
    labels: IndexArray
    proba: dict[ArmName, FloatArray]
    seconds: float
    seed: int
    learning_curve: LearningCurve | None = None
    metric: str = "log loss"

    @property
    def scored_structure(self) -> RandomPartition:
        """The structure whose levels are scored: a sampler's levels change, so its classes only."""
        return scored_structure(self.structure)

    def mean(self, arm: ArmName, level: str, metric: str) -> float:
        """Return the mean over the folds."""
        table = self.scores[arm].by_level
        return float(table[:, self.levels.index(level), METRICS.index(metric)].mean())

    def to_dict(self, *, notes: Sequence[str] = ()) -> dict[str, Any]:
        """Return what was found as plain data, ready for JSON.

        Parameters
        ----------
        notes
            What was done to the table before, one sentence each.
        """
        return {
            "verdict": {"finding": self.verdict.finding, "sentence": self.verdict.sentence},
            "metric": self.metric,
            "against_none": self.against_none.to_dict(),
            "against_scrambled": self.against_scrambled.to_dict(),
            "scores": {
                arm: {
                    level: {metric: self.mean(arm, level, metric) for metric in METRICS}
                    for level in self.levels
                }
                | {"mistake severity": float(self.scores[arm].severity.mean())}
                for arm in ARMS
            },
            "chosen_singleton_weights": self.chosen.tolist(),
            "rows": self.task.n_used,
            "rows_in_table": self.task.n_rows,
            "folds": self.plan.n_folds,
            "repeats": self.plan.n_repeats,
            "rare_classes": list(self.task.rare),
            "notes": [*notes, *self.task.notes],
            "cuts": list(self.plan.cuts),
            "seconds": self.seconds,
            "seed": self.seed,
        }

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        data: str = "table",
        target: str = "label",
        group: str | None = None,
        notes: Sequence[str] = (),
        cautions: Sequence[str] = (),
        model_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write the report: one HTML file that needs nothing else, all or not at all.

        Parameters
        ----------
        path
            The file to write.
        data, target, group
            What the report calls the table, its label column, and the column whose rows were kept
            together, if there is one.
        notes
            What was done to the table before, one sentence each.
        cautions
            What belongs beside the verdict, such as columns that were left out, one line each.
        model_file
            Where the better model was saved, if it was: the report then says how to use it.
        """
        from structent.report import comparison_page, write_page  # noqa: PLC0415  it needs this file

        page = comparison_page(
            self, data=data, target=target, group=group, notes=notes, cautions=cautions,
            model_file=model_file,
        )  # fmt: skip
        write_page(path, page)


@dataclass(frozen=True)
class Task:
    """What was compared, and on what.

    Attributes
    ----------
    features
        The names of the columns that the models saw; their numbers if they have no names.
    n_rows
        The rows with a label; ``n_used`` of them were compared.
    classes, counts
        The classes in the order of the structure, and the rows known to be of each.
    rare
        Classes with fewer rows than folds: scored where they fall.
    notes
        What a reader of the scores should know, one sentence each.
    """

    features: tuple[str, ...]
    n_rows: int
    n_used: int
    classes: tuple[Any, ...]
    counts: tuple[int, ...]
    rare: tuple[Any, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """How much was done, and what was left out to fit the time budget.

    Attributes
    ----------
    n_folds, n_repeats
        Cross-validation, repeated with other folds.
    n_copies
        The scrambled copies of the structure in each fold.
    singleton_weights
        The candidates for the weight of the singletons; 1, no structure, is always one of them.
    cuts
        What was left out to fit the time budget, one sentence each.
    n_learning
        The models trained in each fold to learn the structure; none if it is given.
    """

    n_folds: int
    n_repeats: int
    n_copies: int
    singleton_weights: tuple[float, ...]
    cuts: tuple[str, ...]
    n_learning: int = 0

    @property
    def cross_validation(self) -> str:
        """The folds and their repeats in words."""
        return shown_folds(self.n_folds, self.n_repeats)


@dataclass(frozen=True, eq=False)
class ArmScores:
    """The scores of one arm; scores of scrambled copies are averaged.

    Attributes
    ----------
    by_level
        (folds, levels, metrics), in the order of ``Comparison.levels`` and ``METRICS``.
    severity
        The mean distance of mistakes, (folds,).
    """

    by_level: FloatArray
    severity: FloatArray


@dataclass(frozen=True, eq=False)
class Difference:
    """A paired difference of the classes' log loss, or of their errors: below 0 is better.

    Attributes
    ----------
    per_fold
        The difference in every fold.
    mean, low, high
        Its mean, and the bounds of its confidence interval, corrected for the rows that the
        training sets of the folds share.
    """

    per_fold: FloatArray
    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def is_lower(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0

    @property
    def p_value(self) -> float:
        """The chance of a difference as low if there were none, by the corrected t-test.

        It is below .025 exactly where the whole 95 % interval is below 0, and NaN for one fold.

        Examples
        --------
        >>> per_fold = np.array([-0.03, -0.01, -0.02, 0.0, -0.04])
        >>> round(paired_difference(per_fold, 5).p_value, 4)
        0.0662
        """
        freedom = len(self.per_fold) - 1
        if freedom == 0:
            return float("nan")
        error = self.half_width / t.ppf(0.5 + CONFIDENCE / 2, freedom)
        if error == 0:  # all folds alike: no spread to compare the mean with
            return float(np.heaviside(self.mean, 0.5))
        return float(t.cdf(self.mean / error, freedom))

    def to_dict(self) -> dict[str, float]:
        """Return the mean and the bounds of its interval."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Verdict:
    """What follows, in one plain sentence."""

    finding: Finding
    sentence: str


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Class log loss at growing numbers of training rows, (sizes, folds) for each arm."""

    sizes: tuple[int, ...]
    none: FloatArray
    structure: FloatArray


def shown_folds(n_folds: int, n_repeats: int) -> str:
    """Return folds and repeats in the words of every report.

    Examples
    --------
    >>> shown_folds(5, 2), shown_folds(3, 1)
    ('5 folds x 2 repeats', '3 folds')
    """
    return f"{n_folds} folds" if n_repeats == 1 else f"{n_folds} folds x {n_repeats} repeats"


def scored_structure(structure: Structure) -> RandomPartition:
    """Return a structure with levels to score: only the classes of a sampler stay the same."""
    return structure if isinstance(structure, RandomPartition) else trivial(structure.classes)


def paired_difference(per_fold: FloatArray, n_folds: int) -> Difference:
    """Return the mean of differences and its interval, corrected as by Nadeau and Bengio (2003).

    Training sets of different folds share most of their rows, so that the differences are not
    independent; their variance over J folds is (1/J + test rows / training rows) s^2, and not
    s^2 / J. A single difference has an interval without bounds.

    Parameters
    ----------
    per_fold
        The difference in each fold of each repeat.
    n_folds
        The folds of one repeat.
    """
    n_differences = len(per_fold)
    mean = float(per_fold.mean())
    if n_differences == 1:
        return Difference(per_fold, mean, -np.inf, np.inf)
    test_share = 1.0 / (n_folds - 1)
    error = float(np.sqrt((1.0 / n_differences + test_share) * per_fold.var(ddof=1)))
    half = float(t.ppf(0.5 + CONFIDENCE / 2, n_differences - 1)) * error
    return Difference(per_fold, mean, mean - half, mean + half)


def verdict(against_none: Difference, against_scrambled: Difference, metric: str) -> Verdict:
    """Return what follows from the two differences, in one sentence.

    Examples
    --------
    >>> better = Difference(np.zeros(0), -0.012, -0.015, -0.009)
    >>> same = Difference(np.zeros(0), -0.001, -0.003, 0.001)
    >>> verdict(better, better, "log loss").sentence
    'The structure lowers log loss by 0.012 ± 0.003 (95 %).'
    >>> verdict(better, same, "log loss").finding
    'regularisation'
    >>> verdict(same, better, "log loss").sentence
    'There is no evidence that the structure helps: log loss changes by -0.001 ± 0.002 (95 %).'
    """
    gain = f"{abs(against_none.mean):.3f} ± {against_none.half_width:.3f} (95 %)"
    acts = "raises accuracy" if metric == "accuracy" else f"lowers {metric}"
    if against_none.is_lower and against_scrambled.is_lower:
        return Verdict("helps", f"The structure {acts} by {gain}.")
    if against_none.is_lower:
        return Verdict(
            "regularisation",
            f"The structure helps (it {acts} by {gain}), but a scrambled structure helps as much: "
            "regularisation, not meaning.",
        )
    change = -against_none.mean if metric == "accuracy" else against_none.mean
    return Verdict(
        "no evidence",
        f"There is no evidence that the structure helps: {metric} changes by "
        f"{change:+.3f} ± {against_none.half_width:.3f} (95 %).",
    )
