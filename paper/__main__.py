"""``python -m paper QUESTION``: do the runs that are missing for its answer, and write its page."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias, cast

import typer
from rich.markdown import Markdown

from paper.beyond import Asked
from paper.experiment import PRESETS, Experiment, Kept, Settings, do_runs, key
from structent._optional import load_optional
from structent._threads import available_threads
from structent.cli import options
from structent.cli.app import without_types_of_flags
from structent.cli.failures import errors_told_in_a_sentence
from structent.cli.output import Output
from structent.errors import StructentError

if TYPE_CHECKING:  # it loads matplotlib
    from paper.pages import Page

_WEATHER = ("months", "counties")
_PAPER = (*_WEATHER, "cifar100")
_CIFAR100 = ("1A", "1B", "1C", "1D")
_ENGINES = ("structent", "xgboost")
_BEYOND = (
    "answers", "choices", "coarse_labels", "drawing", "joint_targets", "layers", "learned",
    "learning_rate", "longer_training", "prior", "significance", "structureboost", "tables",
)  # fmt: skip
# Options that only some questions have.
_FOR = {
    "experiment": ("cifar100",),
    "preset": _PAPER,
    "sizes": _PAPER,
    "engine": ("counties",),
    "problem": ("coarse_labels", "layers", "prior"),
    "backbone": ("cifar100", "learning_rate"),
    "cache": ("cifar100",),
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command; if it fails, it ends with one sentence, as ``structent`` does."""
    with errors_told_in_a_sentence("paper"):
        without_types_of_flags(typer.main.get_command(app))(prog_name="python -m paper")


_Question: TypeAlias = Annotated[
    str,
    typer.Argument(
        help=f"Of the paper: {', '.join(_PAPER)}. Beyond it: {', '.join(_BEYOND)}.",
        show_default=False,
    ),
]
_Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="The folder or file of the data; without it Keras downloads CIFAR-100."),
]
_Experiment: TypeAlias = Annotated[str | None, typer.Option(help="Of cifar100: 1A, 1B, 1C or 1D.")]
_Preset: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Of the paper: paper (its schedule), quick (minutes a run; the default) or smoke "
        "(seconds)."
    ),
]
_Sizes: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Of the paper: training set sizes, separated by commas; else all."),
]
_Engine: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Of counties: structent (our own trees) or xgboost; else both."),
]
_Problem: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Of coarse_labels: months or cifar100; of prior: linear or trees; else both. Of "
        "layers: 1A, 1D (both if not given), 1A-5000 or 1C, which take longer."
    ),
]
_Backbone: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Of 1C and 1D: a .keras file, MobileNetV2 (the default) or ResNet50 (the default of "
        "learning_rate)."
    ),
]
_Cache: TypeAlias = Annotated[
    Path | None, typer.Option(help="Of 1D: the folder where features are kept.")
]
_Out: TypeAlias = Annotated[Path, typer.Option(help="The folder of results, pages and figures.")]
_Jobs: TypeAlias = Annotated[int, typer.Option(help="How many runs at a time.")]
_ReportOnly: TypeAlias = Annotated[
    bool, typer.Option("--report-only", help="Run nothing; report what is finished.")
]


@app.command(no_args_is_help=True)
def answer(  # noqa: PLR0913  a command has many options
    question: _Question,
    *,
    data: _Data = None,
    experiment: _Experiment = None,
    preset: _Preset = None,
    sizes: _Sizes = None,
    engine: _Engine = None,
    problem: _Problem = None,
    backbone: _Backbone = None,
    cache: _Cache = None,
    out: _Out = Path("structent-results"),
    jobs: _Jobs = 1,
    report_only: _ReportOnly = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Answer a question of the paper, or one beyond it, and print the page.

    Finished runs are kept in the folder of results; the same command continues from there.
    """
    output = Output(as_json=as_json, quiet=quiet)
    given = _Given(question, data, experiment, preset, sizes, engine, problem, backbone, cache, out)
    _check(given, jobs)
    _load_packages(question)
    for each in _experiments(given):
        if not report_only:
            _do_what_is_missing(each, given.kept(each), jobs, output)
    n_left = _n_left(given)
    if n_left == 0:
        _report(_page(given), given, output)
    elif report_only:
        raise StructentError(
            f"the page of {question} needs all its runs (left: {n_left}); leave out --report-only"
        )
    else:
        output.notes(f"The page of {question} needs all its runs (left: {n_left}).")


@dataclass(frozen=True)
class _Given:
    """The options as they were given on the command line."""

    question: str
    data: Path | None
    experiment: str | None
    preset: str | None
    sizes: str | None
    engine: str | None
    problem: str | None
    backbone: str | None
    cache: Path | None
    out: Path

    def command(self) -> str:
        """Return the command for all results of the page, whatever part is run now."""
        parts = ["python", "-m", "paper", self.question]
        if self.experiment is not None:
            parts += ["--experiment", self.experiment]
        if self.question in _PAPER:
            parts += ["--preset", self.preset or "quick"]
        if self.data is not None:
            parts += ["--data", str(self.data)]
        if self.experiment in ("1C", "1D"):
            parts += ["--backbone", self.backbone or "MobileNetV2"]
        if self.question == "learning_rate":
            parts += ["--backbone", self.backbone or "ResNet50"]
        return shlex.join(parts)

    def whole(self) -> _Given:
        """Return the question without the choice of a part."""
        return replace(self, sizes=None, engine=None, problem=None)

    def asked(self) -> Asked:
        """Return a question beyond the paper in the form that its module takes."""
        problems = None if self.problem is None else tuple(options.separated(self.problem))
        return Asked(self.data or Path(), self.out, self.command(), problems, self.backbone)

    def kept(self, experiment: Experiment) -> Kept:
        """Return the file of an experiment's finished runs."""
        return Kept(self.out / f"{experiment.kept_in}.jsonl")


def _check(given: _Given, jobs: int) -> None:
    """Refuse what cannot be done, before anything is loaded or run."""
    if given.question not in (*_PAPER, *_BEYOND):
        known = ", ".join((*_PAPER, *_BEYOND))
        raise StructentError(f"the question must be one of {known}, got {given.question!r}")
    for option, questions in _FOR.items():
        if getattr(given, option) is not None and given.question not in questions:
            raise StructentError(
                f"--{option} is for {', '.join(questions)} alone, got it with {given.question}"
            )
    if given.preset not in (None, *PRESETS):
        raise StructentError(f"--preset must be {', '.join(PRESETS)}, got {given.preset!r}")
    if given.question == "cifar100" and given.experiment not in _CIFAR100:
        raise StructentError(
            f"cifar100 needs --experiment {', '.join(_CIFAR100)}, got {given.experiment!r}"
        )
    if given.experiment in ("1C", "1D") and given.sizes is not None:
        raise StructentError(
            f"--sizes is for 1A, months and counties, got it with {given.experiment}"
        )
    if given.engine not in (None, *_ENGINES):
        raise StructentError(f"--engine must be {' or '.join(_ENGINES)}, got {given.engine!r}")
    _check_data(given)
    most = available_threads()
    if not 1 <= jobs <= most:
        raise StructentError(f"--jobs must be between 1 and the {most} processors, got {jobs}")
    _check_folder(given.out)


def _check_data(given: _Given) -> None:
    if given.data is not None or given.question in ("cifar100", "structureboost"):
        return
    if given.question in _WEATHER:
        raise StructentError(
            f"{given.question} needs --data: the folder of California's daily weather "
            "(california_daily_2000_2018.parquet and california_counties_37.json)"
        )
    raise StructentError(
        f"{given.question} needs --data: the folder of the weather (weather/), the images "
        "(cifar100.npz) and the network (weights/)"
    )


def _check_folder(out: Path) -> None:
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise StructentError(f"--out must be a folder, got {out}: {nearest} is a file")
    if not os.access(nearest, os.W_OK):
        raise StructentError(f"--out must be a folder, got {out}: no permission for {nearest}")


def _load_packages(question: str) -> None:
    """Load packages that may be missing, so that an error says what to install."""
    purpose = f"python -m paper {question}"
    for package, extra in (("polars", "cli"), ("matplotlib", "cli"), ("xgboost", "xgboost")):
        load_optional(package, extra=extra, purpose=purpose)
    # Keras reads its backend when it is first loaded; the features of images load it later.
    backend = os.environ.setdefault("KERAS_BACKEND", "torch")
    if question in ("cifar100", "layers", "learning_rate", "longer_training"):
        if backend == "torch":
            load_optional("torch", extra="torch", purpose=f"{purpose} (KERAS_BACKEND=torch)")
        load_optional("keras", extra="keras", purpose=purpose)


class _Beyond(Protocol):
    """A module of ``paper.beyond``."""

    def experiments(self, asked: Asked) -> list[Experiment]: ...

    def page(self, asked: Asked) -> Page: ...


def _beyond(question: str) -> _Beyond:
    return cast(_Beyond, import_module(f"paper.beyond.{question}"))


def _experiments(given: _Given) -> list[Experiment]:
    if given.question in _BEYOND:
        return _beyond(given.question).experiments(given.asked())
    return [_of_the_paper(given)]


def _of_the_paper(given: _Given) -> Experiment:
    # Each is loaded only when it is needed: experiments on images load Keras.
    preset, sizes = given.preset or "quick", _sizes(given.sizes)
    if given.question == "months":
        from paper.months import Months  # noqa: PLC0415

        return Months(given.data or Path(), preset, sizes)
    if given.question == "counties":
        from paper.counties import ENGINES, Counties  # noqa: PLC0415

        engines = ENGINES if given.engine is None else (given.engine,)
        return Counties(given.data or Path(), preset, sizes, engines)
    if given.experiment in ("1A", "1B"):
        from paper.small_network import SmallNetwork  # noqa: PLC0415

        return SmallNetwork(given.data, preset, given.experiment, sizes)
    backbone = given.backbone or "MobileNetV2"
    if given.experiment == "1C":
        from paper.fine_tuning import FineTuning  # noqa: PLC0415

        return FineTuning(given.data, preset, backbone)
    from paper.features import cache_folder  # noqa: PLC0415
    from paper.last_layer import LastLayer  # noqa: PLC0415

    return LastLayer(given.data, preset, backbone, given.cache or cache_folder())


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


def _do_what_is_missing(experiment: Experiment, kept: Kept, jobs: int, output: Output) -> None:
    with output.progress() as on_progress:
        try:
            do_runs(experiment, kept, n_jobs=jobs, on_progress=on_progress)
        except KeyboardInterrupt:
            if kept.path.exists():
                output.notes(f"Finished runs are in {kept.path}; the same command continues.")
            raise


def _n_left(given: _Given) -> int:
    """Return how many runs a page waits for; some pages show what is finished so far."""
    if given.question in (*_PAPER, "choices"):
        return 0
    every = [(each, each.runs()) for each in _experiments(given.whole())]
    return sum(len(runs) - len(given.kept(each).finished_of(runs)) for each, runs in every)


def _page(given: _Given) -> Page:
    from paper.pages import about  # noqa: PLC0415  loads matplotlib

    # A page shows the whole question: sizes that were run before stay on it.
    if given.question in _BEYOND:
        return _beyond(given.question).page(given.whole().asked())
    whole = _of_the_paper(given.whole())
    runs = whole.runs()
    if given.experiment == "1C":
        runs = _of_all_networks(runs, given.kept(whole))
    finished = given.kept(whole).finished_of(runs)
    told = about(finished, len(runs), given.command())
    if given.experiment is not None:
        from paper import cifar100_pages  # noqa: PLC0415

        return cifar100_pages.page(given.experiment, finished, told)
    if given.question == "months":
        from paper import months_page  # noqa: PLC0415

        return months_page.page(finished, told)
    from paper import counties_page  # noqa: PLC0415

    return counties_page.page(finished, told)


def _of_all_networks(runs: list[Settings], kept: Kept) -> list[Settings]:
    """Return runs of a network, and the same runs of each other network that was run."""
    known = {key({**run, "network": None}) for run in runs}
    of_others = {
        run.settings["network"]
        for run in kept.finished()
        if key({**run.settings, "network": None}) in known
    }
    networks = dict.fromkeys([runs[0]["network"], *sorted(of_others)])
    return [{**run, "network": network} for network in networks for run in runs]


def _report(page: Page, given: _Given, output: Output) -> None:
    """Write a page and print it, or its numbers, or all its runs if it has no file of numbers."""
    from paper.pages import write_page  # noqa: PLC0415  loads matplotlib

    write_page(page, given.out)
    finished = Kept(given.out / f"{page.name}.jsonl").finished
    numbers = page.numbers or {"runs": [asdict(run) for run in finished()]}
    # A terminal cannot show figures.
    lines = [line for line in page.text.splitlines() if not line.startswith("![")]
    output.result(Markdown("\n".join(lines)), numbers)
    output.notes(f"The page: {given.out / page.name}.md")


if __name__ == "__main__":
    main()
