"""The prior of a linear model: given by its weights, or chosen together with C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from structent._typing import FloatArray, IndexArray
from structent.errors import StructureError
from structent.estimators.classes import Classes, Labels, check_two_codes
from structent.estimators.linear_objective import (
    GaussianPrior,
    LinearObjective,
    Minimum,
    gaussian_prior,
    minimum_of,
)
from structent.estimators.rows import checked_sample_weight, ordinary_exponent, row_weights
from structent.estimators.weights import (
    candidates_of,
    choosing_folds,
    held_out_loss,
    reweighted,
    weights_of,
)
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.fused import probabilities
from structent.kernels.layout import Layout
from structent.structure import RandomPartition, trivial
from structent.structure.samplers import Structure

# Coefficients, (classes, features), and intercepts, (classes,).
Coefs: TypeAlias = tuple[FloatArray, FloatArray]

# Weights of the singletons that prior="auto" tries. Plain ridge comes first: ties go to it.
PRIORS = (1.0, 0.8, 0.5, 0.2, 0.05)
# From a strong penalty to a weak one: each step multiplies C by the square root of 10.
STEPS_OF_C = range(-8, 9)
# With prior="auto" fits aim at tol times this share of the gradient at zero.
_SHARE = 0.1
_STRONGEST = 1e150  # penalty: half a square of coefficients times it is finite
_PLAIN = 1.0 - 1e-12  # a weight that was scaled to 1 may have been rounded


class Prior(NamedTuple):
    """The structure of a prior, None if the model has none, and the C that belongs to it."""

    structure: Structure | None
    c: float

    @property
    def is_plain(self) -> bool:
        """Whether it is plain ridge: only the singletons have weight."""
        return self.structure is None or singleton_weight_of(self.structure) >= _PLAIN

    @property
    def weights(self) -> FloatArray:
        """The weight of each partition."""
        return np.ones(1) if self.structure is None else weights_of(self.structure)

    @property
    def parameter(self) -> float | list[float]:
        """The parameter that gives an estimator this prior, if its structure has other weights."""
        if self.is_plain or not isinstance(self.structure, RandomPartition):
            return 1.0 if self.structure is None else singleton_weight_of(self.structure)
        return [float(weight) for weight in self.weights]


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Rows, their labels as codes, and the loss: what a linear model is fitted to.

    Attributes
    ----------
    features
        The features, (n, features).
    codes
        The code of each row's label, (n,).
    sample_weight
        The weight of each row, (n,).
    class_weight
        As in the estimator.
    classes
        The classes, and the sets of them that codes mean.
    layout, coarse
        The structure of the loss, compiled.
    """

    features: Any
    codes: IndexArray
    sample_weight: FloatArray
    class_weight: Any
    classes: Classes
    layout: Layout
    coarse: CoarseLayouts | None

    @classmethod
    def of(
        cls,
        model: Any,
        structure: Structure | None,
        features: Any,
        labels: Labels,
        sample_weight: ArrayLike | None,
    ) -> LinearProblem:
        """Return the problem of an estimator with the loss of a structure."""
        classes = (Classes.of_mixed if model.allow_blocks else Classes.of)(structure, labels)
        codes = classes.encode(labels)
        layout = Layout.of(fixed_for_loss(classes.structure))
        coarse = CoarseLayouts.of(layout, classes.sets) if classes.sets else None
        weights = checked_sample_weight(sample_weight, len(codes))
        has_weight = row_weights(weights, model.class_weight, codes, classes) > 0
        check_two_codes(codes[has_weight], classes)
        return cls(features, codes, weights, model.class_weight, classes, layout, coarse)

    def part(self, rows: NDArray[Any]) -> LinearProblem:
        """Return the problem of some of the rows."""
        return LinearProblem(
            self.features[rows], self.codes[rows], self.sample_weight[rows], self.class_weight,
            self.classes, self.layout, self.coarse,
        )  # fmt: skip

    def objective(self, c: float, prior: GaussianPrior | None) -> LinearObjective:
        """Return the function to minimise."""
        weights = row_weights(self.sample_weight, self.class_weight, self.codes, self.classes)
        # In a unit in which no sum overflows.
        exponent = ordinary_exponent(weights)
        weights = np.ldexp(weights, exponent)
        # Two classes have coefficients -a and a, and |2a|^2 is twice the sum of their squares.
        twice = 2.0 if len(self.classes.labels) == 2 else 1.0
        with np.errstate(over="ignore", divide="ignore"):
            penalty = np.ldexp(twice / (c * weights.sum()), exponent)
        penalty = min(float(penalty), _STRONGEST)  # then coefficients no longer change a logit
        return LinearObjective(
            self.features, self.codes, weights, self.layout,
            penalty=penalty, coarse=self.coarse, prior=prior,
        )  # fmt: skip


def fixed_for_loss(structure: Structure) -> RandomPartition:
    """Return the structure of the loss, which must not change while L-BFGS runs."""
    if isinstance(structure, RandomPartition):
        return structure
    if singleton_weight_of(structure) >= _PLAIN:
        return trivial(structure.classes)
    raise StructureError(
        f"structure must be a RandomPartition, got {type(structure).__name__}: L-BFGS cannot "
        "follow partitions that change with every iteration; fix them with its sample(0), use "
        "weights=1 to have the structure only in the prior, or use StructuredBoostingClassifier "
        "or the PyTorch loss"
    )


def singleton_weight_of(structure: Structure) -> float:
    """Return the weight of the singletons, in the first draw of a sampler."""
    fixed = structure if isinstance(structure, RandomPartition) else structure.sample(0)
    return fixed.singleton_weight


def given_prior(structure: Structure | None, prior: Any, c: float) -> Prior:
    """Return the prior that a number or an array of weights means.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> given_prior(plants, 0.75, 1.0).weights.tolist()
    [0.25, 0.75]
    >>> given_prior(None, 1, 1.0).is_plain
    True
    """
    if prior is None or isinstance(prior, str | bool):
        raise StructureError(
            "prior must be the weight of the singletons (1 for plain ridge), one number per "
            f"partition or 'auto', got {prior!r}"
        )
    if structure is None and np.ndim(prior) == 0 and prior == 1:
        return Prior(None, c)
    return Prior(reweighted(structure, prior, "prior"), c)


def chosen_prior(
    model: Any,
    structure: Structure | None,
    problem: LinearProblem,
    groups: NDArray[Any] | None = None,
) -> Prior:
    """Return the prior that the parameter ``prior`` of a linear model asks for, and its C.

    ``"auto"`` tries the weights 1 (plain ridge), .8, .5, .2 and .05 of the singletons, each with C
    times powers of the square root of 10. For plain ridge it starts at 1/10000 and goes up until
    the held-out loss has risen twice. For the other weights it starts at the best C of the weight
    before, and goes up and down while the loss falls. Every fit starts where the last one ended.
    The pair with the lowest held-out plain log loss in 3-fold cross-validation wins. Without a
    structure only C is chosen.

    Parameters
    ----------
    model
        An estimator with the parameters ``prior``, ``C``, ``tol``, ``max_iter`` and
        ``random_state``.
    structure
        Its structure, with the weights that it was given.
    problem
        The rows and the loss.
    groups
        The group of each row, or None: rows of one group share a fold.
    """
    if not is_chosen(model.prior):
        return given_prior(structure, model.prior, float(model.C))
    candidates = [None] if structure is None else candidates_of(structure, PRIORS, "prior")
    rows = np.flatnonzero(problem.sample_weight)
    folds = [
        (problem.part(train), problem.part(held_out))
        for train, held_out in choosing_folds(
            problem.codes, rows, check_random_state(model.random_state), groups
        )
    ]
    if not (folds and np.isfinite(model.C)):
        return Prior(candidates[0], float(model.C))
    searches: list[SearchOfC] = []
    for candidate in candidates:
        if not searches:
            search = SearchOfC(model, candidate, folds, [None] * len(folds))
            search.from_the_smallest()
        else:
            search = SearchOfC(model, candidate, folds, searches[-1].coefs)
            search.around(searches[-1].best)
        searches.append(search)
    best = min(searches, key=lambda search: search.losses[search.best])  # the first of equals
    return Prior(candidates[searches.index(best)], best.c(best.best))


class SearchOfC:
    """The search for the best C with one prior: the sum of the held-out losses by the step.

    Parameters
    ----------
    model
        The estimator. Step 0 is its C.
    structure
        The structure of the prior; None for plain ridge.
    folds
        The rows to train on and the held-out rows of each fold.
    coefs
        The coefficients that each fold starts from; None for zero.
    steps
        The steps that may be tried.
    """

    def __init__(
        self,
        model: Any,
        structure: Structure | None,
        folds: list[tuple[LinearProblem, LinearProblem]],
        coefs: list[Coefs | None],
        steps: range = STEPS_OF_C,
    ) -> None:
        plain = Prior(structure, model.C).is_plain
        self._prior = None if plain or structure is None else gaussian_prior(structure)
        self._model, self._folds, self._steps = model, folds, steps
        # Scaled by a power of two, which changes no choice: sums of huge weights would overflow.
        weights = [part.sample_weight for _, part in folds]
        exponent = ordinary_exponent(np.concatenate([*weights, np.zeros(1)]))
        self._judging = [np.ldexp(each, exponent) for each in weights]
        self.coefs = list(coefs)
        self.losses: dict[int, float] = {}

    @property
    def best(self) -> int:
        """The step of the best C so far."""
        return min(self.losses, key=lambda step: self.losses[step])

    def c(self, step: int) -> float:
        """Return the C of a step."""
        return float(self._model.C * factor_of_c(step))

    def from_the_smallest(self) -> None:
        """Try one C after the other until the loss has risen twice."""
        for step in self._steps:
            self._try(step)
            if step - self.best >= 2:
                break

    def around(self, start: int) -> None:
        """Try the C of a step, and then on both sides while the loss falls."""
        self._try(start)
        for side in (1, -1):
            step = start + side
            while step in self._steps:
                self._try(step)
                if self.best != step:
                    break
                step += side

    def _try(self, step: int) -> None:
        """Fit all folds with a C, each from where it ended last, and keep the held-out loss."""
        loss = 0.0
        for place, (train, held_out) in enumerate(self._folds):
            objective = train.objective(self.c(step), self._prior)
            found = fitted(self._model, objective, self.coefs[place])
            self.coefs[place] = coef, intercept = objective.split(found.parameters)
            proba = probabilities(held_out.features @ coef.T + intercept)
            loss += held_out_loss(
                held_out.classes, held_out.classes.sorted(proba), held_out.codes,
                self._judging[place],
            )  # fmt: skip
        self.losses[step] = loss


def factor_of_c(step: int) -> float:
    """Return what C is multiplied by at a step."""
    return float(10.0 ** (step / 2))


def fitted(model: Any, objective: LinearObjective, start: Coefs | None) -> Minimum:
    """Return the minimum of an objective, from coefficients and intercepts or from zero."""
    zero = np.zeros(objective.n_parameters)
    parameters = zero if start is None else objective.joined(*start)
    tol = float(model.tol)
    if not is_chosen(model.prior):
        return minimum_of(objective, parameters, tol=tol, max_iter=model.max_iter)
    # With few rows of many classes all gradients are small, so a fit that starts from another prior
    # or another C would stay there.
    aim = tol * min(1.0, _SHARE * float(np.abs(objective(zero)[1]).max()))
    return minimum_of(objective, parameters, tol=tol, aim=aim, max_iter=model.max_iter)


def is_chosen(prior: Any) -> bool:
    """Whether cross-validation chooses the prior."""
    return isinstance(prior, str) and prior == "auto"
