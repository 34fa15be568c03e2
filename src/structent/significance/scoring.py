"""Structures scored one after another, several at a time, each of them once."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from structent._checks import checked_integer
from structent._typing import FloatArray
from structent.comparison.run import checked_rows
from structent.errors import StructentError
from structent.losses.rounds import available_threads
from structent.significance.fold_losses import CrossValidated, FitAndScore, checked_losses
from structent.significance.identity import Scrambled, identity
from structent.significance.kept import KeptLosses


@dataclass(frozen=True, eq=False)
class Scoring:
    """How structures are scored: by what, how many at a time, and where their losses are kept.

    Attributes
    ----------
    fit_and_score
        Gives the losses of a structure.
    n_folds
        The folds of one repeat.
    n_jobs
        How many structures at a time.
    kept
        The file of losses.
    known
        The losses so far, by the identity of the structure.
    """

    fit_and_score: FitAndScore
    n_folds: int
    n_jobs: int
    kept: KeptLosses
    known: dict[str, FloatArray]

    def losses_of(self, structures: Iterable[Scrambled]) -> Generator[FloatArray]:
        """Give the losses of each structure, (folds,), in the order of the structures."""
        waiting = iter(structures)
        # Threads, not processes: XGBoost and the kernel release the interpreter's lock.
        with Parallel(n_jobs=self.n_jobs, backend="threading") as run:
            while batch := [(identity(s), s) for s in islice(waiting, self.n_jobs)]:
                missing = {name: s for name, s in batch if name not in self.known}
                scored = run(
                    delayed(checked_losses)(self.fit_and_score, structure, self.n_folds)
                    for structure in missing.values()
                )
                for name, losses in zip(missing, scored, strict=True):
                    self.known[name] = losses
                    self.kept.add(name, losses)
                for name, _ in batch:
                    yield self._of_same_length(self.known[name])

    def _of_same_length(self, losses: FloatArray) -> FloatArray:
        expected = len(next(iter(self.known.values())))
        if len(losses) != expected:
            raise StructentError(
                "fit_and_score must return as many losses for every structure, got "
                f"{expected} and then {len(losses)}"
            )
        return losses


def scoring_of(  # noqa: PLR0913  a question has many sides
    estimator: Any,
    X: Any,  # noqa: N803  scikit-learn's name for a table
    y: Any,
    structure: Scrambled,
    *,
    groups: Any,
    n_folds: int,
    n_repeats: int,
    seed: int,
    n_jobs: int | None,
    keep_in: str | os.PathLike[str] | None,
) -> Scoring:
    """Return how the structures of a test are scored, all that was given checked."""
    workers = available_threads() if n_jobs is None else n_jobs
    checked_integer(workers, "n_jobs", at_least=1, at_most=1024)
    checked_integer(seed, "seed", at_least=0, at_most=2**32 - 1)
    path = None if keep_in is None else Path(keep_in)
    if path is not None and not path.parent.is_dir():
        raise StructentError(f"keep_in must be a file in a folder that exists, got {path}")
    if callable(estimator) and not isinstance(estimator, type):
        checked_integer(n_folds, "n_folds", at_least=2, at_most=10_000)
        question, fit_and_score = "a function", estimator
    else:
        rows = checked_rows(X, y, groups, structure)
        checked_integer(n_folds, "n_folds", at_least=2, at_most=len(rows.labels))
        checked_integer(n_repeats, "n_repeats", at_least=1, at_most=1000)
        fit_and_score = CrossValidated.of(
            estimator, rows, n_folds=n_folds, n_repeats=n_repeats, seed=seed
        )
        question = "" if path is None else fit_and_score.digest()
    kept = KeptLosses(path, question)
    return Scoring(fit_and_score, n_folds, workers, kept, kept.read())
