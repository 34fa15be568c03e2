"""Why does using coarse rows raise log loss on the images? The models of 80 %, taken apart.

``python -m benchmarks.beyond.coarse_labels_cause --data ../shared/data`` fits the models that
``coarse_labels`` chose anew. The log loss of a class is that of its superclass plus that of the
class given the superclass; and of the coarse rows, whose class the model is never told, it can be
seen how sure it becomes of one, and how often it is right.
"""

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.beyond.coarse_labels import (
    N_IMAGES,
    RESULTS,
    SHARES,
    CoarseLabels,
    Problem,
    Rows,
    coarsened,
    images,
)
from benchmarks.beyond.coarse_labels_page import write_page
from structent.estimators.linear import StructuredLogisticRegression
from structent.experiments.experiment import Result, Settings
from structent.experiments.kept import Kept
from structent.experiments.run import do_runs
from structent.studies.progress import OnProgress

KEPT, CHOSEN = Kept(RESULTS / "coarse_labels_cause.jsonl"), Kept(RESULTS / "coarse_labels.jsonl")


@dataclass(frozen=True)
class Cause:
    """The experiment: the models that were chosen on images with most rows coarse."""

    name: ClassVar[str] = "coarse_labels_cause"
    kept_in: ClassVar[str] = "coarse_labels_cause"

    data: Path

    def runs(self) -> list[Settings]:
        """Return the slice, the arm and the chosen C of every such model."""
        return [
            {
                "trial": run.settings["trial"],
                "arm": run.settings["arm"],
                "C": run.result["candidate"],
            }
            for run in CHOSEN.finished_of(CoarseLabels(self.data, ("cifar100",)).runs())
            if run.settings["share"] == max(SHARES)
        ]

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Nothing is shared but the features, which are kept on disk."""

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  BLAS has its own
        """Return the parts of the log loss, and how sure the model is within superclasses."""
        trial = settings["trial"]
        problem = images(self.data, N_IMAGES, trial)
        used = coarsened(problem, max(SHARES), trial, is_used=True)
        is_coarse = np.array([":" in label for label in used.labels])
        own = used if settings["arm"] == "used" else _rows(problem.train, ~is_coarse)
        model = StructuredLogisticRegression(problem.structure, C=settings["C"], allow_blocks=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # as where it was chosen
            model.fit(*own)
        of_test = _within(model, problem.test, problem)
        of_coarse = _within(model, _rows(problem.train, is_coarse), problem)
        return {**of_test, **{f"{name}_of_coarse_rows": v for name, v in of_coarse.items()}}


def _rows(rows: Rows, kept: np.ndarray) -> Rows:
    return Rows(rows.features[kept], rows.labels[kept])


def _within(model: StructuredLogisticRegression, rows: Rows, problem: Problem) -> dict[str, float]:
    """Return log losses of superclass and of class given superclass, and the latter's top class."""
    structure = problem.structure
    column_of = {label: column for column, label in enumerate(model.classes_.tolist())}
    proba = model.predict_proba(rows.features)[:, [column_of[c] for c in structure.classes]]
    true = structure.encode(rows.labels.tolist())
    block_of = structure.levels[problem.level][0].block_of
    inside = np.where(block_of[true][:, None] == block_of, proba, 0)
    of_block = inside.sum(axis=1)
    of_class = proba[np.arange(len(true)), true]
    found = {
        "superclass": -np.log(of_block).mean(),
        "within": -np.log(of_class / of_block).mean(),
        "sure": (inside.max(axis=1) / of_block).mean(),
        "right": (inside.argmax(axis=1) == true).mean(),
    }
    return {name: round(float(value), 6) for name, value in found.items()}


def main() -> None:
    """Do what is missing, and write the page that has the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    do_runs(Cause(data), KEPT, n_jobs=1, on_progress=lambda *told: print(*told, flush=True))
    whole = CoarseLabels(data).runs()
    write_page(CHOSEN.finished_of(whole), len(whole), KEPT.finished(), RESULTS)


if __name__ == "__main__":
    main()
