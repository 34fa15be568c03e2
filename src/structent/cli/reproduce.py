"""``structent reproduce``: the experiments of the paper, ours beside the paper's."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from structent._optional import load_optional
from structent._threads import available_threads
from structent.cli import options
from structent.cli.interrupts import no_interrupt_lost
from structent.cli.output import Output
from structent.errors import StructentError
from structent.experiments.experiment import PRESETS, Experiment
from structent.experiments.kept import Kept
from structent.experiments.pages import about, write_page
from structent.experiments.run import do_runs
from structent.experiments.weather.counties import Counties
from structent.experiments.weather.months import Months

_CIFAR100_EXPERIMENTS = ("1A", "1B", "1C", "1D")


def reproduce(  # noqa: PLR0913  a command has many options
    problem: Annotated[str, typer.Argument(help="months, counties or cifar100.")],
    *,
    experiment: Annotated[str | None, typer.Option(help="Of cifar100: 1A, 1B, 1C or 1D.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder or file of the data; without it Keras downloads CIFAR-100."),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="paper (its schedule), quick (minutes a run) or smoke (seconds).")
    ] = "quick",
    sizes: Annotated[
        str | None, typer.Option(help="Training set sizes, separated by commas; else all.")
    ] = None,
    backbone: Annotated[
        str, typer.Option(help="Of 1C and 1D: a .keras file, MobileNetV2 or ResNet50.")
    ] = "MobileNetV2",
    out: Annotated[Path, typer.Option(help="The folder of results, pages and figures.")] = Path(
        "structent-results"
    ),
    cache: Annotated[
        Path | None, typer.Option(help="Of 1D: the folder where features are kept.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many runs at a time.")] = 1,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing; report what is finished.")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Run an experiment of the paper, and print our table beside the paper's.

    Every finished run is kept in the folder of results: the same command goes on where it was
    broken off.
    """
    output = Output(as_json=as_json, quiet=quiet)
    asked = _Asked(problem, experiment, preset, data, sizes, backbone)
    chosen = _experiment(asked, cache)
    _check_jobs(jobs)
    _check_folder(out)
    kept = Kept(out / f"{chosen.kept_in}.jsonl")
    if not report_only:
        _do_what_is_missing(chosen, kept, jobs, output)
    # The page is that of the whole experiment: sizes that were run before stay on it.
    runs = _experiment(replace(asked, sizes=None), cache).runs()
    finished = kept.finished_of(runs)
    told = about(finished, len(runs), asked.command())
    text, summary = write_page(chosen.name, finished, told, out)
    output.result(_for_terminal(text), summary)
    output.notes(f"The page: {out / chosen.name}.md")


def _do_what_is_missing(experiment: Experiment, kept: Kept, jobs: int, output: Output) -> None:
    with output.progress() as on_progress:
        try:
            with no_interrupt_lost():
                do_runs(experiment, kept, n_jobs=jobs, on_progress=on_progress)
        except KeyboardInterrupt:
            if kept.path.exists():
                output.notes(f"Finished runs are in {kept.path}; the same command goes on.")
            raise


@dataclass(frozen=True)
class _Asked:
    """What was asked for, in the command's own words."""

    problem: str
    experiment: str | None
    preset: str
    data: Path | None
    sizes: str | None
    backbone: str

    def command(self) -> str:
        """Return the command that gives all results of the page, whatever sizes are run now."""
        parts = ["structent", "reproduce", self.problem]
        if self.experiment is not None:
            parts += ["--experiment", self.experiment]
        parts += ["--preset", self.preset]
        if self.data is not None:
            parts += ["--data", str(self.data)]
        if self.experiment in ("1C", "1D"):
            parts += ["--backbone", self.backbone]
        return shlex.join(parts)


def _experiment(asked: _Asked, cache: Path | None) -> Experiment:
    problem, sizes = asked.problem, _sizes(asked.sizes)
    if asked.preset not in PRESETS:
        raise StructentError(f"--preset must be {', '.join(PRESETS)}, got {asked.preset!r}")
    if problem == "cifar100":
        return _on_images(asked, sizes, cache)
    if problem not in ("months", "counties"):
        raise StructentError(
            f"the experiment must be months, counties or cifar100, got {problem!r}"
        )
    if asked.experiment is not None:
        raise StructentError(f"--experiment is for cifar100 alone, got it with {problem}")
    if asked.data is None:
        raise StructentError(
            f"{problem} needs --data: the folder of California's daily weather "
            "(california_daily_2000_2018.parquet and california_counties_37.json)"
        )
    return (Months if problem == "months" else Counties)(asked.data, asked.preset, sizes)


def _on_images(asked: _Asked, sizes: tuple[int, ...] | None, cache: Path | None) -> Experiment:
    if asked.experiment not in _CIFAR100_EXPERIMENTS:
        raise StructentError(
            f"cifar100 needs --experiment {', '.join(_CIFAR100_EXPERIMENTS)}, got "
            f"{asked.experiment!r}"
        )
    _load_keras()
    # Only here: they load Keras, which other experiments do without.
    from structent.experiments.cifar100.features import cache_folder  # noqa: PLC0415
    from structent.experiments.cifar100.fine_tuning import FineTuning  # noqa: PLC0415
    from structent.experiments.cifar100.last_layer import LastLayer  # noqa: PLC0415
    from structent.experiments.cifar100.small_network import SmallNetwork  # noqa: PLC0415

    if asked.experiment in ("1A", "1B"):
        return SmallNetwork(asked.data, asked.preset, asked.experiment, sizes)
    if sizes is not None:
        raise StructentError(
            f"--sizes is for 1A, months and counties, got it with {asked.experiment}"
        )
    if asked.experiment == "1C":
        return FineTuning(asked.data, asked.preset, asked.backbone)
    return LastLayer(asked.data, asked.preset, asked.backbone, cache or cache_folder())


def _load_keras() -> None:
    purpose = "structent reproduce cifar100"
    if os.environ.setdefault("KERAS_BACKEND", "torch") == "torch":
        load_optional("torch", extra="torch", purpose=f"{purpose} (KERAS_BACKEND=torch)")
    load_optional("keras", extra="keras", purpose=purpose)


def _sizes(sizes: str | None) -> tuple[int, ...] | None:
    if sizes is None:
        return None
    named = options.separated(sizes)
    if not named or not all(size.isdecimal() for size in named):
        raise StructentError(
            f"--sizes must be whole numbers, separated by commas, got {sizes!r}; leave it out for "
            "all sizes"
        )
    return tuple(map(int, named))


def _check_jobs(jobs: int) -> None:
    most = available_threads()
    if not 1 <= jobs <= most:
        raise StructentError(f"--jobs must be between 1 and the {most} processors, got {jobs}")


def _check_folder(out: Path) -> None:
    """Refuse a folder that could not be made or written to, before anything is run."""
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise StructentError(f"--out must be a folder, got {out}: {nearest} is a file")
    if not os.access(nearest, os.W_OK):
        raise StructentError(f"--out must be a folder, got {out}: no permission for {nearest}")


def _for_terminal(text: str) -> Markdown:
    """Return a page without its figures, which a terminal cannot show."""
    lines = [line for line in text.splitlines() if not line.startswith("![")]
    return Markdown("\n".join(lines))
