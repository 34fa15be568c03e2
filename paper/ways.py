"""Ways to use a structure: in the loss, in the parameters, in both, in neither, and scrambled.

Every way has its settings chosen on the validation rows of the trial, and is tested once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from paper.experiment import Result
from paper.tasks import Structure
from paper.weather import Draw, Examples
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.linear import StructuredLogisticRegression
from structent.metrics import block_accuracy, block_log_loss
from structent.structure import RandomPartition, trivial
from structent.studies.learn import out_of_fold_confusion, structure_of_levels

# Weights of the singletons in the loss and in the prior, and shares that leaves borrow: the choices
# of "auto", without the one that means "none".
LOSS_WEIGHTS = (0.7, 0.4, 0.1)
PRIOR_WEIGHTS = (0.8, 0.5, 0.2, 0.05)
SMOOTHINGS = (0.3, 0.6, 0.8)
PENALTIES = tuple(10.0 ** (step / 2) for step in range(-10, 7))
# So small that results do not depend on the start of a fit, even with few rows of many classes.
_TOL = 1e-6
_STEPS_BEFORE = 2  # the best step without structure
_N_LEVELS = 3  # of a learned structure

NONE, LOSS, PARAMETERS, BOTH = "none", "loss", "parameters", "both"
SCRAMBLED = "scrambled"
LEARNED = "parameters, learned structure"
# The result for a user without validation rows: "auto" within the training rows.
OWN_NONE, OWN_AUTO, OWN_SCRAMBLED = "auto, none", "auto", "auto, scrambled"


class Setting(NamedTuple):
    """How much structure to use: a weight in the loss (1: none), and one in the parameters."""

    in_loss: float
    in_parameters: float


class Found(NamedTuple):
    """The setting with the lowest validation log loss, the loss, and the fitted model."""

    setting: Setting
    loss: float
    model: Any


class Model(Protocol):
    """A kind of model, and how its settings are searched."""

    @property
    def plain(self) -> Setting:
        """The setting without structure."""

    @property
    def in_loss(self) -> Sequence[float]:
        """The weights to try in the loss."""

    @property
    def in_parameters(self) -> Sequence[float]:
        """The weights to try in the parameters."""

    def found(self, rows: Draw, structure: Structure, setting: Setting) -> Found:
        """Return the best fit of one setting; other hyperparameters are chosen here."""

    def by_itself(self, rows: Examples, structure: Structure) -> Any:
        """Return a model that chooses all hyperparameters within its training rows."""


class Linear:
    """Logistic regression: the penalty is chosen for each setting.

    Every search goes from strong to weak penalties. The first search, without structure, begins at
    the strongest penalty; later ones begin slightly before the best penalty of the first. A search
    begins with coefficients of 0, and each of its fits starts from the last one. With weak
    penalties and few rows the gradient is small everywhere, so a fit stays near its start. So all
    settings must be reached from the same side: fits that started where another search had ended
    stayed there.
    """

    plain = Setting(1.0, 1.0)
    in_loss = LOSS_WEIGHTS
    in_parameters = PRIOR_WEIGHTS

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._plain_step: int | None = None

    def found(self, rows: Draw, structure: Structure, setting: Setting) -> Found:
        """Return the best fit of one setting, over penalties."""
        model = StructuredLogisticRegression(
            structure, weights=setting.in_loss, prior=setting.in_parameters, warm_start=True,
            tol=_TOL, max_iter=1000,
        )  # fmt: skip
        first = 0 if self._plain_step is None else max(self._plain_step - _STEPS_BEFORE, 0)
        step, found = best_step(lambda step: self._at(model, rows, setting, step), first)
        if self._plain_step is None:
            self._plain_step = step
        return found

    @staticmethod
    def _at(model: StructuredLogisticRegression, rows: Draw, setting: Setting, step: int) -> Found:
        model.set_params(C=PENALTIES[step])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of candidates
            model.fit(*rows.train)
        return Found(setting, log_loss(model, rows.validation), _Frozen(model))

    def by_itself(self, rows: Examples, structure: Structure) -> Any:
        """Return a model whose prior and penalty are chosen by cross-validation."""
        model = StructuredLogisticRegression(
            structure, weights=1.0, prior="auto", random_state=self._seed, max_iter=1000
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(*rows)


class HasLoss(Protocol):
    """Something that was tried, with its validation log loss."""

    @property
    def loss(self) -> float:
        """The log loss on the validation rows."""


Kind = TypeVar("Kind", bound=HasLoss)


def best_step(at: Callable[[int], Kind], first: int) -> tuple[int, Kind]:
    """Return the step of ``PENALTIES`` with the lowest validation loss, and what was found there.

    Parameters
    ----------
    at
        Fits with the penalty of a step.
    first
        The first step. Weaker penalties are tried one after the other until two in a row are worse
        than the best, and stronger ones only if the first step is the best.
    """
    tried: dict[int, Kind] = {}
    for step in range(first, len(PENALTIES)):
        tried[step] = at(step)
        if step - _best_of(tried) >= 2:
            break
    for step in range(first - 1, -1, -1):
        if _best_of(tried) != step + 1:
            break
        tried[step] = at(step)
    best = _best_of(tried)
    return best, tried[best]


def _best_of(tried: dict[int, Kind]) -> int:
    return min(tried, key=lambda step: tried[step].loss)


class _Frozen:
    """The current probabilities of a linear model, which is then fitted with other penalties."""

    def __init__(self, model: StructuredLogisticRegression) -> None:
        self.coef, self.intercept = model.coef_.copy(), model.intercept_.copy()
        self.classes_, self.C = model.classes_, model.C_

    def predict_proba(self, features: Any) -> Any:
        logits = features @ self.coef.T + self.intercept
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)


class Trees:
    """Boosted trees by the default engine: depth and rounds are chosen on the validation rows."""

    plain = Setting(1.0, 0.0)
    in_loss = LOSS_WEIGHTS
    in_parameters = SMOOTHINGS

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def found(self, rows: Draw, structure: Structure, setting: Setting) -> Found:
        """Return the fit of one setting; a race on the validation rows chooses its depth."""
        model = self._model(structure, setting.in_loss, setting.in_parameters or None)
        model.fit(*rows.train, eval_set=tuple(rows.validation))
        return Found(setting, log_loss(model, rows.validation), model)

    def by_itself(self, rows: Examples, structure: Structure) -> Any:
        """Return a model that holds back rows of its own, and is then trained on all."""
        return self._model(structure, 1.0, "auto").fit(*rows)

    def _model(self, structure: Structure, weights: float, smoothing: float | str | None) -> Any:
        return StructuredBoostingClassifier(
            structure, weights=weights, leaf_smoothing=smoothing, random_state=self._seed, n_jobs=1
        )


def compared(
    model: Model,
    rows: Draw,
    structure: Structure,
    *,
    seed: int,
    with_learned: bool,
    by_itself: bool,
) -> Result:
    """Return the test scores of every way, and what each has chosen.

    Parameters
    ----------
    model
        The kind of model.
    rows
        The rows of a trial.
    structure
        How the classes are related.
    seed
        The seed of the scrambling.
    with_learned
        Whether to learn a structure from the training rows, too.
    by_itself
        Whether to see what the model chooses within its training rows.
    """
    plain = trivial(structure.classes)
    shuffled = structure.scramble(np.random.default_rng(seed))
    found = in_every_place(model, rows, structure)
    controls = _ways(model, rows, shuffled, _both_of_the_best)
    found |= {f"{way}, {SCRAMBLED}": each for way, each in controls.items()}
    if with_learned:
        learned = _learned(rows.train, found[NONE].model.C, structure, seed)
        found[LEARNED] = in_parameters(model, rows, learned)
    result = {
        way: {
            **scores(each.model, rows.test, structure),
            "validation": round(each.loss, 6),
            "setting": list(each.setting),
        }
        for way, each in found.items()
    }
    if by_itself:
        # The trivial structure, not None, so that the model has classes without training rows, too.
        for way, its in ((OWN_NONE, plain), (OWN_AUTO, structure), (OWN_SCRAMBLED, shuffled)):
            result[way] = scores(model.by_itself(rows.train, its), rows.test, structure)
    return result


def in_every_place(model: Model, rows: Draw, structure: Structure) -> dict[str, Found]:
    """Return the best fits with no structure, in the loss, in the parameters, and in both."""
    none = model.found(rows, trivial(structure.classes), model.plain)
    return {NONE: none, **_ways(model, rows, structure, _both)}


def in_parameters(model: Model, rows: Draw, structure: Structure) -> Found:
    """Return the best fit with a structure in the parameters alone."""
    return _best(model, rows, structure, _settings_of_parameters(model))


def _ways(
    model: Model,
    rows: Draw,
    structure: Structure,
    both: Callable[[Model, Setting, Setting], list[Setting]],
) -> dict[str, Found]:
    """Return the best fits in the loss alone, the parameters alone, and both."""
    loss = _best(model, rows, structure, [model.plain._replace(in_loss=w) for w in model.in_loss])
    parameters = in_parameters(model, rows, structure)
    tried = both(model, loss.setting, parameters.setting)
    return {LOSS: loss, PARAMETERS: parameters, BOTH: _best(model, rows, structure, tried)}


def _both(model: Model, loss: Setting, parameters: Setting) -> list[Setting]:
    """Return every weight in one place combined with the best weight in the other."""
    tried = {Setting(weight, parameters.in_parameters) for weight in model.in_loss}
    tried |= {Setting(loss.in_loss, weight) for weight in model.in_parameters}
    return sorted(tried)


def _both_of_the_best(model: Model, loss: Setting, parameters: Setting) -> list[Setting]:  # noqa: ARG001
    """Return the best weight in one place with the best in the other: enough for a control."""
    return [Setting(loss.in_loss, parameters.in_parameters)]


def _settings_of_parameters(model: Model) -> list[Setting]:
    return [model.plain._replace(in_parameters=weight) for weight in model.in_parameters]


def _best(model: Model, rows: Draw, structure: Structure, settings: Iterable[Setting]) -> Found:
    found: Iterator[Found] = (model.found(rows, structure, setting) for setting in settings)
    return min(found, key=lambda each: each.loss)


def _learned(rows: Examples, penalty: float, structure: Structure, seed: int) -> Structure:
    """Return a hierarchy of three levels from what a plain linear model confuses."""
    model = StructuredLogisticRegression(C=penalty, tol=1e-3)
    return learned_structure(rows, model, structure, seed)


def learned_structure(rows: Examples, model: Any, structure: Structure, seed: int) -> Structure:
    """Return a hierarchy of three levels from what a model without structure confuses.

    A class without rows is a block of its own.
    """
    classes = tuple(sorted(structure.classes))
    seen = np.isin(classes, rows.labels)
    confusion = np.zeros((len(classes), len(classes)))
    confusion[np.ix_(seen, seen)] = out_of_fold_confusion(
        *rows, estimator=model, random_state=seed, n_folds=3, n_jobs=1
    )
    return structure_of_levels(confusion, classes, _N_LEVELS)


def scores(model: Any, rows: Examples, structure: Structure) -> Result:
    """Return log loss and accuracy, in a hierarchy also the accuracy one level up."""
    proba, classes = model.predict_proba(rows.features), model.classes_.tolist()
    result = {
        "log_loss": round(log_loss(model, rows), 6),
        "accuracy": round(block_accuracy(rows.labels, proba, trivial(classes)), 6),
    }
    if isinstance(structure, RandomPartition) and structure.is_nested:
        above = list(structure.levels)[-2]
        one_up = block_accuracy(rows.labels, proba, structure, level=above, classes=classes)
        result["accuracy_one_level_up"] = round(one_up, 6)
    return result


def log_loss(model: Any, rows: Examples) -> float:
    """Return the log loss of the classes, whatever structure the model was trained with."""
    proba = model.predict_proba(rows.features)
    return float(block_log_loss(rows.labels, proba, trivial(model.classes_.tolist())))
