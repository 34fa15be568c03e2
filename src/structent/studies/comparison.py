"""What a comparison finds: scores of every split and level, paired differences, and a verdict."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from structent._notebook import paragraph, table
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.structure import RandomPartition
from structent.structure.samplers import Structure
from structent.studies.differences import Difference
from structent.studies.levels import scored_structure
from structent.studies.mistakes import frequent_confusions, shares_within_blocks
from structent.studies.plan import NONE, Candidate, Plan
from structent.studies.verdict import Verdict

ArmName: TypeAlias = Literal["none", "structure", "scrambled"]

# What is compared, and what it is called.
ARMS: dict[ArmName, str] = {
    "none": "no structure",
    "structure": "the structure",
    "scrambled": "scrambled copies",
}
METRICS = ("log loss", "accuracy", "calibration error")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything that a comparison found.

    Attributes
    ----------
    task, plan
        What was compared, and how much was done.
    model
        The kind of model: "boosting" or "linear".
    structure
        The structure that was asked about; if each split learns one, the one learned on all rows.
    levels
        Its levels, coarsest first, the classes last.
    scores
        The scores of each arm.
    chosen
        What validation rows chose in each split, for the structure and for its scrambled copies.
    against_none, against_scrambled
        The paired differences of the structure.
    verdict
        The conclusion.
    labels
        The class of each tested row whose class is known, as an index into ``task.classes``,
        (rows,).
    proba
        The out-of-fold probabilities of these rows by the models "none" and "structure",
        (rows, classes), in the order of ``task.classes``.
    reduced
        What was left out, because the table is large or the time was up, one sentence each.
    references
        For comparison: the mean log loss of scikit-learn's own models.
    raced
        The validation log loss of each kind of model without structure on the first split, where
        both were tried.
    seconds, seed
        How long it took, and its seed: the same ``random_state`` gives the same comparison.
    keeper
        The object that can train the recommended model.
    learning_curve
        Log loss at growing numbers of rows, where it was asked for.
    metric
        The metric of the differences and the verdict: "log loss" or "accuracy".
    split_of
        The split whose models gave ``proba``: the first that tested the row, (rows,).
    """

    task: Task
    plan: Plan
    model: str
    structure: Structure
    levels: tuple[str, ...]
    scores: dict[ArmName, ArmScores]
    chosen: dict[ArmName, tuple[Candidate, ...]]
    against_none: Difference
    against_scrambled: Difference
    verdict: Verdict
    labels: IndexArray
    proba: dict[ArmName, FloatArray]
    reduced: tuple[str, ...]
    references: References
    raced: dict[str, float]
    seconds: float
    seed: int
    keeper: Keeper | None = None
    learning_curve: LearningCurve | None = None
    metric: str = "log loss"
    split_of: IndexArray | None = None

    def __repr__(self) -> str:
        return (
            f"<Comparison of {self.task.n_rows:,} rows, {self.n_splits} splits. "
            f"{self.verdict.sentence}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            [level if arm == "none" else "", ARMS[arm]]
            + [f"{self.mean(arm, level, metric):.4f}" for metric in METRICS]
            for level in self.levels
            for arm in ARMS
        ]
        more = "For the whole report: to_html(path). For the recommended model: best_model()."
        shown = table(["level", "model", *METRICS], rows)
        return paragraph(self.verdict.sentence, bold=True) + shown + paragraph(more)

    @property
    def scored_structure(self) -> RandomPartition:
        """The structure whose levels are scored; for a sampler, its first draws and the classes."""
        return scored_structure(self.structure)

    @property
    def n_splits(self) -> int:
        """How many splits were done."""
        return len(self.against_none.per_split)

    def mean(self, arm: ArmName, level: str, metric: str) -> float:
        """Return the mean over the splits."""
        table = self.scores[arm].by_level
        return float(table[:, self.levels.index(level), METRICS.index(metric)].mean())

    def n_chosen(self, arm: ArmName) -> dict[Candidate, int]:
        """Return how often validation rows chose each candidate, the most frequent first.

        Among candidates that were chosen equally often, the one with less structure comes first.
        """
        counts = Counter(self.chosen[arm])
        return dict(sorted(counts.items(), key=lambda item: (-item[1], -item[0].loss, item[0])))

    @property
    def recommended(self) -> Candidate:
        """How much structure to use: the most frequent choice if it helps, else none."""
        if self.verdict.finding != "use it":
            return NONE
        return next(each for each in self.n_chosen("structure") if each != NONE)

    def best_model(self, *, n_jobs: int | None = None) -> Any:
        """Return the recommended model, trained on all rows and calibrated.

        Only if the finding is "use it", the structure is in its loss and parameters, with the
        candidate that validation rows chose most often. ``predict_blocks`` works in any case: the
        model knows the structure, and the probabilities of the test rows calibrate its answers
        (:meth:`StructuredBoostingClassifier.calibrate_blocks
        <structent.estimators.StructuredBoostingClassifier.calibrate_blocks>`).

        Parameters
        ----------
        n_jobs
            How many threads to use; all processors if None or -1.
        """
        if self.keeper is None:
            raise StructentError("a comparison that was loaded or made by hand keeps no rows")
        return self.keeper.trained(self, n_jobs)

    def to_dict(self, *, notes: Sequence[str] = ()) -> dict[str, Any]:
        """Return what was found as plain data, ready for JSON.

        Parameters
        ----------
        notes
            What was done to the table before, one sentence each.
        """
        return {
            "verdict": asdict(self.verdict),
            "reduced": list(self.reduced),
            "model": self.model,
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
            "mistakes": {
                "within_blocks": [each.to_dict() for each in shares_within_blocks(self)],
                "confusions": [each._asdict() for each in frequent_confusions(self)],
            },
            "for_comparison": {
                "log_losses": self.references.log_losses,
                "splits": self.references.n_splits,
            },
            "validation_log_loss_of_models": self.raced,
            "chosen": {
                arm: [
                    {**candidate._asdict(), "splits": count}
                    for candidate, count in self.n_chosen(arm).items()
                ]
                for arm in self.chosen
            },
            "recommended": self.recommended._asdict(),
            "rows": self.task.n_rows,
            "folds": self.plan.n_folds,
            "repeats": self.plan.n_repeats,
            "splits": self.n_splits,
            "rare_classes": list(self.task.rare),
            "notes": [*notes, *self.task.notes],
            "seconds": self.seconds,
            "seed": self.seed,
        }

    def to_html(  # noqa: PLR0913  a report names all that it is about
        self,
        path: str | os.PathLike[str],
        *,
        data: str = "table",
        target: str = "label",
        structure_name: str | None = None,
        group: str | None = None,
        notes: Sequence[str] = (),
        cautions: Sequence[str] = (),
        kept: KeptModel | None = None,
        command: str | None = None,
    ) -> None:
        """Write the report: one HTML file that needs no other files.

        Parameters
        ----------
        path
            The file to write.
        data, target, structure_name, group
            What the report calls the table, its label column, the structure, and the column whose
            rows were kept together, if there is one.
        notes
            What was done to the table before, one sentence each.
        cautions
            What to show beside the verdict, such as columns that were left out, one line each.
        kept
            The model that was saved, if one was: the report then says how to use it.
        command
            The command line that can be run again; if None, the report shows code for Python.
        """
        from structent.report import comparison_page, write_page  # noqa: PLC0415  it needs this file

        page = comparison_page(
            self, data=data, target=target, structure_name=structure_name, group=group, notes=notes,
            cautions=cautions, kept=kept, command=command,
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
        The rows with a label.
    classes, counts
        The classes in the order of the structure, and the rows known to be of each.
    rare
        Classes with fewer rows than folds: scored in the splits that test them.
    notes
        What a reader of the scores should know, one sentence each.
    """

    features: tuple[str, ...]
    n_rows: int
    classes: tuple[Any, ...]
    counts: tuple[int, ...]
    rare: tuple[Any, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ArmScores:
    """The scores of one arm; scores of scrambled copies are averaged.

    Attributes
    ----------
    by_level
        (splits, levels, metrics), in the order of ``Comparison.levels`` and ``METRICS``.
    severity
        The mean distance of mistakes, (splits,): in edges on a graph, else as in
        :func:`~structent.metrics.mistake_severity`.
    """

    by_level: FloatArray
    severity: FloatArray


class References(NamedTuple):
    """Scikit-learn's own models, for comparison.

    Attributes
    ----------
    log_losses
        The mean test log loss of each, by its name.
    ours
        The mean test log loss of our model without structure, on the same splits.
    n_splits
        In how many splits they were fitted: the first ones.
    """

    log_losses: dict[str, float]
    ours: float
    n_splits: int


class KeptModel(NamedTuple):
    """Where the recommended model was saved, and one sentence that says what it is."""

    path: str | os.PathLike[str]
    sentence: str


class Keeper(Protocol):
    """An object that can train the recommended model of a comparison."""

    def trained(self, comparison: Comparison, n_jobs: int | None) -> Any:
        """Return the model, trained on all rows."""


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Class log loss at growing numbers of training rows, (sizes, folds) for each arm."""

    sizes: tuple[int, ...]
    none: FloatArray
    structure: FloatArray
