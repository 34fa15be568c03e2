"""What commands that answer a question of their own share: do the runs, several at a time."""

import argparse
from collections.abc import Callable
from pathlib import Path

from structent.experiments.experiment import Experiment
from structent.experiments.kept import Finished, Kept
from structent.experiments.run import do_runs

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def finished_runs(
    experiment_of: Callable[[Path], Experiment], description: str | None
) -> list[Finished]:
    """Return all runs of an experiment on the data that the command line names; do what is missing.

    Every finished run is a line in the experiment's file in ``docs/results``.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    experiment = experiment_of(asked.data)
    kept = Kept(RESULTS / f"{experiment.kept_in}.jsonl")
    do_runs(
        experiment, kept, n_jobs=asked.jobs,
        on_progress=lambda _, done, total: print(f"{done} of {total}", flush=True),
    )  # fmt: skip
    return kept.finished_of(experiment.runs())
