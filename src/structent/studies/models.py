"""The models that a comparison trains: boosted trees and linear models, with structure or without.

Validation rows choose the settings of every candidate in the same way: the depth and the rounds of
the trees, the penalty of the linear model. Then the model is trained again on all training rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from sklearn.base import clone

from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.linear import StructuredLogisticRegression, problems_of
from structent.estimators.prior import SearchOfC, factor_of_c, given_prior
from structent.structure import RandomPartition
from structent.structure.samplers import Structure
from structent.studies.fitting import Rows, structure_parameter
from structent.studies.plan import Candidate

MODELS = ("boosting", "linear")
_NAMES = {
    "boosting": "boosted trees (StructuredBoostingClassifier)",
    "linear": "a linear model (StructuredLogisticRegression)",
}
# The penalties of a linear model, as steps from C = 1.
_STEPS, _FIRST_STEP = range(-10, 9), -2

# Rows to train on, and rows to validate on.
Parts: TypeAlias = Sequence[tuple[Rows, Rows]]


class Tried(NamedTuple):
    """A candidate that was tried.

    Attributes
    ----------
    candidate, structure
        How much structure, and which.
    loss
        The mean log loss of the validation rows.
    settings
        The parameters with which the estimator is then fitted to all training rows.
    """

    candidate: Candidate
    structure: Structure
    loss: float
    settings: Mapping[str, Any]


class StudyModel(Protocol):
    """A kind of model."""

    @property
    def name(self) -> str:
        """What it is called: "boosting" or "linear"."""

    @property
    def estimator(self) -> Any:
        """The classifier without structure."""

    def usable(
        self, candidates: Sequence[Candidate], structure: Structure | None
    ) -> tuple[Candidate, ...]:
        """Return the candidates that this model can use with a structure, None if unknown."""

    def tried(
        self, parts: Parts, structure: Structure, candidate: Candidate, plain: Tried | None
    ) -> Tried:
        """Return how good a candidate is; ``plain`` is the model without structure, if known."""

    def fitted(self, rows: Rows, tried: Tried) -> Any:
        """Return the model of a candidate, fitted to all training rows."""

    def whole(self, structure: Structure, candidate: Candidate, all_tried: Sequence[Tried]) -> Any:
        """Return the estimator to fit to all rows of a study, as the splits have chosen it."""


def model_of(name: str, seed: int, *, allow_blocks: bool) -> StudyModel:
    """Return the default model of a kind."""
    if name == "linear":
        # So small that the result does not depend on where a fit starts.
        linear = StructuredLogisticRegression(
            encode=True, tol=1e-5, max_iter=500, random_state=seed, allow_blocks=allow_blocks
        )
        return Linear(linear)
    return Trees(
        StructuredBoostingClassifier(
            learning_rate=0.1, n_jobs=1, random_state=seed, allow_blocks=allow_blocks
        )
    )


def model_around(estimator: Any) -> StudyModel:
    """Return the kind of model of the caller's own estimator."""
    if structure_parameter(estimator) == "structure":
        if isinstance(estimator, StructuredLogisticRegression):
            return Linear(estimator)
        if hasattr(estimator, "validation_log_loss_") or "early_stopping_rounds" in (
            estimator.get_params()
        ):
            return Trees(estimator)
    raise StructentError(
        "a comparison needs a StructuredBoostingClassifier, one like it, or a "
        f"StructuredLogisticRegression, got {type(estimator).__name__}; structure_test takes others"
    )


def shown_model(name: str) -> str:
    """Return what a kind of model is, in words."""
    return _NAMES[name]


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees, stopped early: validation rows choose the depth and the rounds.

    The depth is raced once in each split, without structure, and serves every candidate.
    """

    estimator: Any
    name: str = "boosting"

    def usable(
        self, candidates: Sequence[Candidate], structure: Structure | None
    ) -> tuple[Candidate, ...]:
        """Return those without smoothed leaves for other engines than our own."""
        del structure
        can_smooth = self.estimator.get_params().get("engine") == "structent"
        return tuple(each for each in candidates if can_smooth or not each.sharing)

    def tried(
        self, parts: Parts, structure: Structure, candidate: Candidate, plain: Tried | None
    ) -> Tried:
        """Return how good a candidate is."""
        given = self._parameters(structure, candidate)
        if plain is not None:
            given["max_depth"] = plain.settings["max_depth"]
        total, n_rows, rounds = 0.0, 0, []
        for train, validation in parts:
            model = clone(self.estimator).set_params(**given)
            model.fit(
                train.features, train.target, eval_set=(validation.features, validation.target)
            )
            given["max_depth"] = getattr(model, "max_depth_", model.max_depth)
            total += model.validation_log_loss_[model.best_iteration_] * len(validation)
            n_rows += len(validation)
            rounds.append(model.best_iteration_ + 1)
        settings = {
            "max_depth": given["max_depth"],
            "n_estimators": round(float(np.mean(rounds))),
            "early_stopping_rounds": None,
        }
        return Tried(candidate, structure, total / n_rows, settings)

    def fitted(self, rows: Rows, tried: Tried) -> Any:
        """Return the trees of a candidate."""
        given = self._parameters(tried.structure, tried.candidate)
        model = clone(self.estimator).set_params(**given, **tried.settings)
        return model.fit(rows.features, rows.target)

    def whole(self, structure: Structure, candidate: Candidate, all_tried: Sequence[Tried]) -> Any:
        """Return the estimator with the depth chosen most often, and the median of its rounds.

        Choosing them again on a few validation rows would often give a model that is more, or less,
        confident than the models whose test rows calibrate it.
        """
        depths = [tried.settings["max_depth"] for tried in all_tried]
        depth = max(sorted(set(depths)), key=depths.count)
        same = [tried.settings for tried in all_tried if tried.settings["max_depth"] == depth]
        rounds = int(np.median([settings["n_estimators"] for settings in same]))
        given = self._parameters(structure, candidate)
        settings = {**same[0], "n_estimators": rounds}
        return clone(self.estimator).set_params(**given, **settings)

    def _parameters(self, structure: Structure, candidate: Candidate) -> dict[str, Any]:
        given: dict[str, Any] = {"structure": structure, "weights": candidate.loss}
        if "leaf_smoothing" in self.estimator.get_params():
            given["leaf_smoothing"] = candidate.sharing or None
        return given


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear model: validation rows choose the penalty of every candidate."""

    estimator: Any
    name: str = "linear"

    def usable(
        self, candidates: Sequence[Candidate], structure: Structure | None
    ) -> tuple[Candidate, ...]:
        """Return those with the plain loss for a sampler: L-BFGS needs one that stays the same."""
        can_weigh = structure is None or isinstance(structure, RandomPartition)
        return tuple(each for each in candidates if can_weigh or each.loss == 1)

    def tried(
        self, parts: Parts, structure: Structure, candidate: Candidate, plain: Tried | None
    ) -> Tried:
        """Return how good a candidate is with the best penalty."""
        model = clone(self.estimator).set_params(C=1.0, **self._parameters(structure, candidate))
        prior = given_prior(structure, model.prior, model.C)
        folds = [
            problems_of(
                model, (train.features, train.target), (validation.features, validation.target)
            )
            for train, validation in parts
        ]
        search = SearchOfC(model, prior.structure, folds, [None] * len(folds), _STEPS)
        search.around(_FIRST_STEP if plain is None else int(plain.settings["step"]))
        n_rows = sum(len(validation) for _, validation in parts)
        step = search.best
        return Tried(candidate, structure, search.losses[step] / n_rows, {"step": step})

    def fitted(self, rows: Rows, tried: Tried) -> Any:
        """Return the linear model of a candidate."""
        model = self.whole(tried.structure, tried.candidate, [tried])
        return model.fit(rows.features, rows.target)

    def whole(self, structure: Structure, candidate: Candidate, all_tried: Sequence[Tried]) -> Any:
        """Return the estimator with the median of the penalties that were chosen."""
        step = int(np.median([tried.settings["step"] for tried in all_tried]))
        given = self._parameters(structure, candidate)
        return clone(self.estimator).set_params(C=factor_of_c(step), **given)

    @staticmethod
    def _parameters(structure: Structure, candidate: Candidate) -> dict[str, Any]:
        return {
            "structure": structure,
            "weights": candidate.loss,
            "prior": 1.0 - candidate.sharing,
        }
