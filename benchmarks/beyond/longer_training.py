"""Is class accuracy lower under the structured loss because 5,000 images learn too briefly?

``KERAS_BACKEND=torch python -m benchmarks.beyond.longer_training --data ../shared/data`` trains the
small network of Experiment 1A on 5,000 images for as long as its rates need to add up to the
paper's, which takes longer than the quick preset allows. Every finished run is a line of
``docs/results/longer_training.jsonl``.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from benchmarks.beyond.command import RESULTS, finished_runs
from benchmarks.beyond.longer_training_page import page
from structent._files import save_bytes
from structent.experiments.cifar100.names import PAPER_LOSSES, SIZE_OF_1B
from structent.experiments.cifar100.settings import settings_of
from structent.experiments.cifar100.small_network import NETWORK, SCHEDULES, learned
from structent.experiments.experiment import Result, Settings
from structent.experiments.kept import Kept
from structent.studies.progress import OnProgress

COMMAND = "KERAS_BACKEND=torch python -m benchmarks.beyond.longer_training --data ../shared/data"
# The mean rate along a cosine is half its start: 100 epochs from 1e-3 are 1,000 at 5e-5.
LONGER = replace(SCHEDULES["quick"][SIZE_OF_1B], epochs=100, measured_every=5)


@dataclass(frozen=True)
class LongerTraining:
    """The runs: both losses of the paper in every trial."""

    name: ClassVar[str] = "longer_training"
    kept_in: ClassVar[str] = "longer_training"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run, a trial at a time."""
        return [
            settings_of(
                "1A", "quick, longer", size=SIZE_OF_1B, network=NETWORK, loss=loss, trial=trial,
                schedule=LONGER,
            )
            for trial in range(LONGER.n_trials)
            for loss in PAPER_LOSSES
        ]  # fmt: skip

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Nothing is shared."""

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one loss in one trial."""
        return learned(self.data, settings, LONGER, n_threads)


def main() -> None:
    """Do the runs that are missing, and write the page."""
    own = finished_runs(LongerTraining, __doc__)
    shorter = [
        run
        for run in Kept(RESULTS / "cifar100.jsonl").finished()
        if run.settings["experiment"] == "1A" and run.settings["size"] == SIZE_OF_1B
    ]
    n_runs = len(LongerTraining(Path()).runs())
    text = page(own, shorter, COMMAND, n_runs=n_runs)
    save_bytes(RESULTS / "longer_training.md", text.encode())


if __name__ == "__main__":
    main()
