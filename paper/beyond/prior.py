"""The structure in the parameters: what does it gain, compared with the loss and together with it?

Linear models on frozen features and on tables, and boosted trees. Every way of using the structure
has its settings chosen on validation rows; scrambled structures are the control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from paper import tasks, ways
from paper.beyond import Asked
from paper.digests import Sources
from paper.experiment import Experiment, Finished, Result, Settings
from paper.pages import (
    Look,
    Mean,
    Page,
    about,
    as_svg,
    difference_cell,
    difference_of,
    draw_line,
    mean_of,
    page_style,
    picture,
    signed,
    table,
    with_error,
)

LINEAR = (tasks.INTENTS, tasks.INCOMES, tasks.CLARITIES, tasks.IMAGES)
TREES = (tasks.HOURS, tasks.INCOMES, tasks.CLARITIES, tasks.MONTHS, tasks.COUNTIES)
N_TRIALS = 5
# Structures are learned only for tasks with a hierarchy of many classes.
_LEARNED = (tasks.IMAGES, tasks.INTENTS)
# From this size on, choosing by cross-validation takes longer than everything else.
_MOST_TO_CHOOSE_BY_ITSELF = {tasks.IMAGES: 1000, tasks.INTENTS: 5}
_GRIDS = {
    "loss": list(ways.LOSS_WEIGHTS),
    "prior": list(ways.PRIOR_WEIGHTS),
    "smoothing": list(ways.SMOOTHINGS),
}
MODELS = ("linear", "trees")
_MODELS = {"linear": "Linear model", "trees": "Boosted trees"}
_WAYS = {
    "linear": {
        ways.LOSS: "the loss", ways.PARAMETERS: "the prior", ways.BOTH: "both",
        ways.LEARNED: "the prior of a learned structure",
    },
    "trees": {
        ways.LOSS: "the loss", ways.PARAMETERS: "smoothed leaves", ways.BOTH: "both",
    },
}  # fmt: skip
_LOOKS = {
    ways.LOSS: Look("loss", "#0072b2", "o", is_control=False),
    ways.PARAMETERS: Look("parameters", "#d55e00", "s", is_control=False),
    ways.BOTH: Look("both", "#009e73", "D", is_control=False),
    f"{ways.LOSS}, {ways.SCRAMBLED}": Look("loss, scrambled", "#0072b2", "o", is_control=True),
    f"{ways.PARAMETERS}, {ways.SCRAMBLED}": Look(
        "parameters, scrambled", "#d55e00", "s", is_control=True
    ),
}
_QUESTION = (
    "The paper puts the structure into the loss. It can also be in the parameters: as a prior on "
    "the coefficients of a linear model, or as leaves of trees that borrow from related classes "
    "([what that is](../prior.md)). What does each gain, and what do both together?"
)
_TRIED = {name: ", ".join(map(str, values)) for name, values in _GRIDS.items()}
_HOW = (
    "Every way of using the structure has its settings chosen on the validation rows of the trial, "
    f"and is tested once: the weight of the singletons in the loss ({_TRIED['loss']}), in the "
    f"prior ({_TRIED['prior']}), the share that leaves borrow ({_TRIED['smoothing']}), the penalty "
    "of the linear model, and the depth and rounds of the trees. For both, every weight of the one "
    "is tried with the best of the other. Linear models learn from frozen features: MobileNetV2 at "
    "160 pixels for CIFAR-100 (10,000 test images), a sentence encoder for CLINC-150 (150 intents "
    "in 10 domains), the columns of a questionnaire for the bracket of household income (9 in "
    "order), and of diamonds for their clarity (8 in order). Trees are grown by our own engine. "
    "Months are a circle of 12, hours one of 24 (whole days are held out), counties a graph. "
    f"There are {N_TRIALS} trials each; ± is the standard error. Intervals are not corrected for "
    "multiple comparisons, and the trials of a task share some test rows."
)
_HOW_AUTO = (
    'Here only training rows choose: `prior="auto"` by cross-validation, `leaf_smoothing="auto"` '
    "on rows that the model holds out, with the plain loss. A share is the change of log loss in "
    "per cent."
)
_HOW_ACCURACY = (
    "The share of rows whose likeliest class is right, and the differences from none. **Bold** is "
    "above 0 beyond the 95 % interval."
)
_CAPTION = (
    "Below 0 the structure helps. Dashed lines are scrambled structures; bars are standard errors."
)


@dataclass(frozen=True)
class Prior:
    """The runs: one for each model, task, size and trial, with all ways of using the structure."""

    name: ClassVar[str] = "prior"
    kept_in: ClassVar[str] = "prior"

    data: Path
    models: tuple[str, ...] = MODELS

    def runs(self) -> list[Settings]:
        """Return every run, the small sizes of all tasks first."""
        pairs = [("linear", task) for task in LINEAR] + [("trees", task) for task in TREES]
        pairs = [pair for pair in pairs if pair[0] in self.models]
        return [
            {"model": model, "task": task.name, "size": task.sizes[place], "trial": trial, **_GRIDS}
            for place in range(max(len(task.sizes) for _, task in pairs))
            for model, task in pairs
            if place < len(task.sizes)
            for trial in range(N_TRIALS)
        ]

    def sources(self, settings: Settings) -> Sources:
        """Return what the task is read from."""
        return _task(settings).sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one thread each
        """Return the test scores of every way in one trial."""
        linear, trial = settings["model"] == "linear", settings["trial"]
        task = _task(settings)
        most = _MOST_TO_CHOOSE_BY_ITSELF.get(task, settings["size"])
        return ways.compared(
            ways.Linear(seed=trial) if linear else ways.Trees(seed=trial),
            task.rows(self.data, settings["size"], trial),
            task.structure(self.data),
            seed=trial,
            with_learned=linear and task in _LEARNED,
            by_itself=settings["size"] <= most,
        )


def _task(settings: Settings) -> tasks.Task:
    return next(each for each in (*LINEAR, *TREES) if each.name == settings["task"])


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [Prior(asked.data, asked.problems_among(MODELS))]


def page(asked: Asked) -> Page:
    """Return the page: tables of every way, of the controls, and of what "auto" does."""
    runs = Prior(asked.data).runs()
    finished = asked.kept(Prior.kept_in).finished_of(runs)
    cells = _cells(finished)
    parts = [
        "# The structure in the parameters",
        _QUESTION,
        *about(finished, len(runs), asked.command),
        "Other work ran on the machine at the same time.",
        _HOW,
        "## What was found",
        "Log loss counts as lower or higher where the difference is beyond its 95 % interval.",
        "\n".join(f"- {sentence}" for sentence in _findings(cells)),
        *picture(
            "prior", "Log loss against that without structure, by size, task and model", _CAPTION
        ),
        "## Log loss",
        "Differences from none, trial by trial. **Bold** is below 0 beyond the 95 % interval.",
        *[text for model in _MODELS for text in (f"### {_MODELS[model]}", _losses(cells, model))],
        "## Scrambled structures",
        "The same with scrambled classes: a gain here is just regularisation.",
        *[text for model in _MODELS for text in (f"### {_MODELS[model]}", _controls(cells, model))],
        "## Accuracy",
        _HOW_ACCURACY,
        _accuracies(cells),
        '## What "auto" does',
        _HOW_AUTO,
        _chosen(cells),
    ]
    return Page("prior", "\n\n".join(parts), as_svg({"prior": _figure(cells)}))


class _Cell(NamedTuple):
    """The results of one model, task and size: by way, score and trial."""

    model: str
    task: str
    size: int
    unit: str
    trials: dict[int, Result]

    @property
    def where(self) -> str:
        return f"{self.task}, {self.size:,} {self.unit}"

    def has(self, way: str) -> bool:
        """Whether a way was tried here."""
        return all(way in result for result in self.trials.values())

    def by_trial(self, way: str, score: str = "log_loss") -> dict[int, float]:
        """Return a score of a way in each trial."""
        return {trial: result[way][score] for trial, result in self.trials.items()}

    def gain(self, way: str, score: str = "log_loss", over: str = ways.NONE) -> Mean | None:
        """Return the difference of two ways; None if one of them was not tried."""
        if not (self.has(way) and self.has(over)):
            return None
        return difference_of(self.by_trial(way, score), self.by_trial(over, score))


def _cells(finished: Sequence[Finished]) -> list[_Cell]:
    """Return the results of each model, task and size, in the order of the tasks."""
    cells = []
    for model, of_model in (("linear", LINEAR), ("trees", TREES)):
        for task, size in ((each, size) for each in of_model for size in each.sizes):
            where = {"model": model, "task": task.name, "size": size}
            trials = {
                run.settings["trial"]: run.result
                for run in finished
                if where.items() <= run.settings.items()
            }
            if trials:
                cells.append(_Cell(model, task.name, size, task.unit, trials))
    return cells


def _findings(cells: Sequence[_Cell]) -> list[str]:
    """Return a sentence on each question, with its counts."""
    sentences = []
    for model, name in _MODELS.items():
        here = [cell for cell in cells if cell.model == model]
        counts = [
            f"{_WAYS[model][way]} in {_n_lower(here, way, ways.NONE)}"
            for way in (ways.LOSS, ways.PARAMETERS, ways.BOTH)
        ]
        sentences.append(
            f"{name}: of {len(here)} tasks and sizes, log loss is lower than without structure "
            f"with {', with '.join(counts)}."
        )
        parameters, loss = _WAYS[model][ways.PARAMETERS], _WAYS[model][ways.LOSS]
        sentences.append(
            f"{name}: log loss is lower with {parameters} than with {loss} in "
            f"{_n_lower(here, ways.PARAMETERS, ways.LOSS)} of them, higher in "
            f"{_n_lower(here, ways.LOSS, ways.PARAMETERS)}, and lower with both than with the "
            f"better one alone in {_n_both_better(here)}."
        )
        shuffled = f"{ways.PARAMETERS}, {ways.SCRAMBLED}"
        sentences.append(
            f"{name}: with {parameters} of a scrambled structure, log loss is lower than without "
            f"structure in {_n_lower(here, shuffled, ways.NONE)} of them; with the true structure "
            f"it is lower than with the scrambled one in "
            f"{_n_lower(here, ways.PARAMETERS, shuffled)}."
        )
    learned = [cell for cell in cells if cell.has(ways.LEARNED)]
    sentences.append(
        f"With the prior of a learned structure, log loss is lower than without structure in "
        f"{_n_lower(learned, ways.LEARNED, ways.NONE)} of {len(learned)} tasks and sizes, and "
        f"lower than with the prior of the given structure in "
        f"{_n_lower(learned, ways.LEARNED, ways.PARAMETERS)}."
    )
    return [*sentences, *_costs(cells)]


def _n_lower(cells: Sequence[_Cell], way: str, other: str) -> int:
    """Return in how many cells a way has a lower log loss than another, beyond the interval."""
    gains = [cell.gain(way, over=other) for cell in cells]
    return sum(gain is not None and gain.is_lower for gain in gains)


def _n_both_better(cells: Sequence[_Cell]) -> int:
    """Return in how many cells loss and parameters together beat the better one of the two."""
    count = 0
    for cell in cells:
        alone = min((ways.LOSS, ways.PARAMETERS), key=lambda way: mean_of(cell.by_trial(way)).value)
        gain = cell.gain(ways.BOTH, over=alone)
        count += gain is not None and gain.is_lower
    return count


def _costs(cells: Sequence[_Cell]) -> list[str]:
    """Return how log loss changes by "auto", with true and with scrambled structures."""
    sentences = []
    for model, name in _MODELS.items():
        here = [cell for cell in cells if cell.model == model and cell.has(ways.OWN_NONE)]
        if not here:
            continue
        shares = [
            np.mean([_share(cell, way) for cell in here])
            for way in (ways.OWN_AUTO, ways.OWN_SCRAMBLED)
        ]
        sentences.append(
            f'{name}: with "auto", which sees the training rows alone, log loss changes by '
            f"{shares[0]:+.2f} % on average over {len(here)} tasks and sizes, with scrambled "
            f"structures by {shares[1]:+.2f} %."
        )
    return sentences


def _share(cell: _Cell, way: str) -> float:
    """Return the change of log loss against none, in per cent."""
    none, other = (mean_of(cell.by_trial(each)).value for each in (ways.OWN_NONE, way))
    return 100.0 * (other / none - 1.0)


def _losses(cells: Sequence[_Cell], model: str) -> str:
    tried = [ways.LOSS, ways.PARAMETERS, ways.BOTH]
    tried += [ways.LEARNED] * (model == "linear")
    header = ["task", "none", *(_WAYS[model][way] for way in tried)]
    rows = [
        [
            cell.where,
            with_error(mean_of(cell.by_trial(ways.NONE))),
            *(_cell(cell.gain(way)) for way in tried),
        ]
        for cell in cells
        if cell.model == model
    ]
    return table(header, rows)


def _controls(cells: Sequence[_Cell], model: str) -> str:
    tried = [ways.LOSS, ways.PARAMETERS, ways.BOTH]
    header = ["task", *(_WAYS[model][way] for way in tried)]
    rows = [
        [cell.where, *(_cell(cell.gain(f"{way}, {ways.SCRAMBLED}")) for way in tried)]
        for cell in cells
        if cell.model == model
    ]
    return table(header, rows)


def _accuracies(cells: Sequence[_Cell]) -> str:
    tried = [ways.LOSS, ways.PARAMETERS, ways.BOTH]
    rows = [
        [
            f"{_MODELS[cell.model].lower()}: {cell.where}",
            f"{mean_of(cell.by_trial(ways.NONE, 'accuracy')).value:.4f}",
            *(_higher(cell.gain(way, "accuracy")) for way in tried),
        ]
        for cell in cells
    ]
    return table(["task", "none", "loss", "parameters", "both"], rows)


def _chosen(cells: Sequence[_Cell]) -> str:
    rows = [
        [
            f"{_MODELS[cell.model].lower()}: {cell.where}",
            with_error(mean_of(cell.by_trial(ways.OWN_NONE))),
            _cell(cell.gain(ways.OWN_AUTO, over=ways.OWN_NONE)),
            _cell(cell.gain(ways.OWN_SCRAMBLED, over=ways.OWN_NONE)),
            f"{_share(cell, ways.OWN_AUTO):+.2f} %",
            f"{_share(cell, ways.OWN_SCRAMBLED):+.2f} %",
        ]
        for cell in cells
        if cell.has(ways.OWN_NONE)
    ]
    header = ["task", "none", "auto", "auto, scrambled", "auto, share", "scrambled, share"]
    return table(header, rows)


def _cell(gain: Mean | None) -> str:
    return "" if gain is None else difference_cell(gain, N_TRIALS)


def _higher(gain: Mean | None) -> str:
    if gain is None:
        return ""
    return f"**{signed(gain)}**" if gain.is_higher else signed(gain)


def _figure(cells: Sequence[_Cell]) -> Figure:
    """Return a panel for each model and task: differences from none, by size."""
    panels = list(dict.fromkeys((cell.model, cell.task) for cell in cells))
    n_columns = 3
    n_rows = -(-max(len(panels), 1) // n_columns)
    with page_style():
        figure = Figure(figsize=(10, 2.7 * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for ax, (model, task) in zip(axes, panels, strict=False):
            here = [cell for cell in cells if (cell.model, cell.task) == (model, task)]
            ax.axhline(0.0, color="0.6", linewidth=0.8)
            for way, look in _LOOKS.items():
                means = [cell.gain(way) for cell in here]
                draw_line(ax, [cell.size for cell in here], means, look)
            ax.set_xscale("log")
            ax.set_xticks([cell.size for cell in here], [f"{cell.size:,}" for cell in here])
            ax.minorticks_off()
            ax.set_title(f"{_MODELS[model]}: {task}", fontsize=9)
            ax.set_xlabel(here[0].unit)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        for ax in axes[::n_columns]:
            ax.set_ylabel("log loss minus none")
        if panels:
            handles, names = axes[0].get_legend_handles_labels()
            figure.legend(handles, names, loc="outside lower center", ncols=len(_LOOKS))
    return figure
