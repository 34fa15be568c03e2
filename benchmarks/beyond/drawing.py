"""Why does a scrambled graph of the counties help? Partitions drawn for every tree, or averaged.

``python -m benchmarks.beyond.drawing --data ../shared/data`` trains on the trials of ``structent
reproduce counties`` with the average of many draws, which is the same for every tree: the loss is
the same on average, but no tree is random. A standard loss at half the learning rate shows what
slower learning alone would gain. Every finished run is a line of ``docs/results/drawing.jsonl``.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from benchmarks.beyond.command import RESULTS, finished_runs
from benchmarks.beyond.drawing_page import AVERAGED, DRAWN, SIZES, SLOWER, page
from structent import RandomPartition, mix, trivial
from structent._files import save_bytes
from structent.experiments.experiment import Result, Settings
from structent.experiments.kept import Kept
from structent.experiments.weather.boosted_trial import PAPER, boosted_trial
from structent.experiments.weather.counties import Counties
from structent.experiments.weather.results import STANDARD, Arm, scrambled
from structent.experiments.weather.rows import county_graph
from structent.studies.progress import OnProgress

COMMAND = "python -m benchmarks.beyond.drawing --data ../shared/data"
N_DRAWS = 100
# Twice the patience: the same time, counted in smaller steps.
HALF_RATE = replace(PAPER, learning_rate=PAPER.learning_rate / 2, patience=2 * PAPER.patience)


@dataclass(frozen=True)
class Drawing:
    """The runs: those of the counties that they are compared with, but for what is averaged."""

    name: ClassVar[str] = "drawing"
    kept_in: ClassVar[str] = "drawing"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run: in place of a standard one a slower one, of a drawn one an average."""
        averaged = {"n_draws": N_DRAWS}
        other = {
            STANDARD: {"method": SLOWER.method, "schedule": HALF_RATE.as_settings()},
            DRAWN: {"method": AVERAGED.method, **averaged},
            scrambled(DRAWN): {"method": scrambled(AVERAGED).method, **averaged},
        }
        return [{**run, "experiment": self.name, **other[_arm(run)]} for run in self.compared()]

    def compared(self) -> list[Settings]:
        """Return the runs of the counties that these are compared with."""
        arms = (STANDARD, DRAWN, scrambled(DRAWN))
        return [run for run in self._counties().runs() if _arm(run) in arms]

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Nothing is shared."""

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the log losses of one method in one trial."""
        return boosted_trial(
            self._counties().rows(settings),
            self._structure(settings),
            HALF_RATE if settings["method"] == SLOWER.method else PAPER,
            seed=settings["trial"],
            n_threads=n_threads,
        )

    def _structure(self, settings: Settings) -> RandomPartition:
        if settings["method"] == SLOWER.method:
            return trivial(county_graph(self.data).classes)
        drawn = settings["method"].replace(AVERAGED.method, DRAWN.method)
        sampler = self._counties().structure({**settings, "method": drawn})
        return mix([sampler.sample(iteration) for iteration in range(N_DRAWS)])

    def _counties(self) -> Counties:
        return Counties(self.data, "paper", SIZES)


def _arm(run: Settings) -> Arm:
    return Arm(run["method"], run["n_blocks"], run["singleton_weight"])


def main() -> None:
    """Do the runs that are missing, and write the page."""
    own = finished_runs(Drawing, __doc__)
    # What is compared hangs on no data, but what was run.
    asked = Drawing(Path())
    of_counties = Kept(RESULTS / "counties.jsonl").finished_of(asked.compared())
    text = page(own, of_counties, COMMAND, n_runs=len(asked.runs()), n_draws=N_DRAWS)
    save_bytes(RESULTS / "drawing.md", text.encode())


if __name__ == "__main__":
    main()
