"""The weights that an estimator gives to the partitions of its structure, chosen or given."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from structent._typing import FloatArray, IndexArray
from structent.errors import StructureError
from structent.estimators.classes import Classes, Labels
from structent.estimators.columns import rows_at
from structent.estimators.folds import dealt_folds, grouped_folds
from structent.estimators.rows import checked_sample_weight, ordinary_exponent
from structent.structure import RandomPartition
from structent.structure.samplers import Structure

Array: TypeAlias = NDArray[Any]

# "No structure" comes first: ties go to it.
SINGLETON_WEIGHTS = (1.0, 0.7, 0.4, 0.1)
N_FOLDS = 3


def chosen_structure(
    estimator: Any,
    structure: Structure | None,
    X: Any,
    y: Labels,
    sample_weight: ArrayLike | None,
    groups: Array | None = None,
) -> Structure | None:
    """Return a structure with the weights that the estimator's parameter ``weights`` asks for.

    ``None`` keeps the structure's own weights, a number is the weight of the singletons (1 for no
    structure), the other partitions in proportion, and an array replaces them all.

    ``"auto"`` tries the singleton weights 1, .7, .4 and .1 by 3-fold cross-validation on the rows
    given, and takes the one with the lowest held-out log loss. That is plain log loss for every
    structure (for a coarse label, of its set of classes), so with enough rows a wrong structure
    loses to "no structure". With few rows any structure may win, because it also acts as
    regularisation. It costs 12 more fits, of clones of the estimator, all with the same
    ``random_state``.

    Parameters
    ----------
    estimator
        A classifier with the parameters ``structure``, ``weights`` and ``random_state``.
    structure
        Its structure; a short form must already be built from the labels.
    X
        The features: an array, a sparse matrix, a pandas or polars table.
    y
        The label of each row.
    sample_weight
        One weight per row, or None. Rows without weight are left out.
    groups
        The group of each row, or None: rows of one group share a fold.
    """
    weights = estimator.weights
    if weights is None:
        return structure
    if isinstance(weights, str):
        if weights != "auto":
            raise StructureError(
                "weights must be None, 'auto', the weight of the singletons or one number per "
                f"partition, got {weights!r}"
            )
        if structure is None:
            return None
        return _cross_validated(estimator, structure, X, y, sample_weight, groups)
    return reweighted(structure, weights, "weights")


def reweighted(structure: Structure | None, weights: Any, name: str) -> Structure:
    """Return a structure with this weight on its singletons, or one for each of its partitions.

    ``name`` is the name of the parameter, for error messages.
    """
    if isinstance(weights, Real) and not isinstance(weights, bool) and structure is not None:
        return _adjustable(structure, name).with_singleton_weight(float(weights))
    if not isinstance(structure, RandomPartition):
        given = "no structure" if structure is None else type(structure).__name__
        raise StructureError(
            f"the numbers of {name} need a RandomPartition, got {given}; "
            "a sampler has them from its singleton_weight"
        )
    return structure.reweight(weights)


def candidates_of(
    structure: Structure, singleton_weights: Sequence[float], name: str
) -> list[Structure]:
    """Return the structure with each of these weights on its singletons.

    If the singletons are its only partition, there is nothing to choose, and it is returned alone.
    """
    if all(partition.is_singletons for partition in _first(structure).partitions):
        return [structure]
    adjustable = _adjustable(structure, name)
    return [adjustable.with_singleton_weight(weight) for weight in singleton_weights]


def weights_of(structure: Structure) -> FloatArray:
    """Return the weights of the partitions; for a sampler, those of its first draw."""
    return _first(structure).weights


def choosing_folds(
    codes: IndexArray,
    rows: NDArray[np.intp],
    random_state: np.random.RandomState,
    groups: Array | None = None,
) -> list[tuple[Array, Array]]:
    """Return the rows to train on and the held-out rows of each fold.

    Each class is spread over the folds, and may have fewer rows than there are folds; groups stay
    whole if there are any. A fold is left out if only one class is left to train on.
    """
    if groups is None:
        fold_of = dealt_folds(codes[rows], N_FOLDS, random_state)
    else:
        fold_of = grouped_folds(groups[rows], N_FOLDS, random_state)
    folds = [(rows[fold_of != fold], rows[fold_of == fold]) for fold in range(N_FOLDS)]
    return [
        (train, held) for train, held in folds if len(held) and len(np.unique(codes[train])) > 1
    ]


def held_out_loss(classes: Classes, proba: Array, codes: IndexArray, weights: FloatArray) -> float:
    """Return the sum of the log losses of rows, times their weights.

    ``proba`` are in the order of ``classes.values``, (n, classes).
    """
    of_label = classes.probability_of(proba, codes)
    # A probability that underflowed to 0 must not make the losses of all candidates infinite.
    losses = -np.log(np.maximum(of_label, np.finfo(of_label.dtype).tiny))
    return float(losses @ weights)


@runtime_checkable
class _WithSingletonWeight(Protocol):
    def with_singleton_weight(self, singleton_weight: float) -> Structure: ...


def _cross_validated(
    estimator: Any,
    structure: Structure,
    features: Any,
    y: Labels,
    sample_weight: ArrayLike | None,
    groups: Array | None,
) -> Structure:
    candidates = candidates_of(structure, SINGLETON_WEIGHTS, "weights")
    if len(candidates) == 1:
        return structure
    if hasattr(features, "tocsr"):
        features = features.tocsr()  # not every sparse format can be indexed
    weights = checked_sample_weight(sample_weight, len(y))
    random_state = check_random_state(estimator.random_state)
    of_labels = Classes.of_mixed if getattr(estimator, "allow_blocks", False) else Classes.of
    classes = of_labels(structure, y)
    codes = classes.encode(y)  # a label outside the structure costs no fit
    folds = choosing_folds(codes, np.flatnonzero(weights), random_state, groups)
    seed = int(random_state.randint(2**31 - 1))
    # Scaled by a power of two, which changes no choice: sums of huge weights would overflow.
    judging = np.ldexp(weights, ordinary_exponent(weights))
    losses = []
    for candidate in candidates:
        model = clone(estimator).set_params(structure=candidate, weights=None, random_state=seed)
        losses.append(
            sum(
                _loss_of_fold(model, features, y, classes, weights, judging, groups, *fold)
                for fold in folds
            )
        )
    return candidates[int(np.argmin(losses))]


def _loss_of_fold(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    model: Any, features: Any, y: Labels, classes: Classes, weights: FloatArray,
    judging: FloatArray, groups: Array | None, train: Array, held_out: Array,
) -> float:  # fmt: skip
    """Return the sum of the log losses of the rows held out, times their weights."""
    given = {} if groups is None else {"groups": groups[train]}
    model.fit(rows_at(features, train), y[train], sample_weight=weights[train], **given)
    proba = model.predict_proba(rows_at(features, held_out))
    return held_out_loss(classes, proba, classes.encode(y[held_out]), judging[held_out])


def _adjustable(structure: Any, name: str) -> _WithSingletonWeight:
    if not isinstance(structure, _WithSingletonWeight):
        as_it_is = "None to use it as it is" if name == "weights" else "1 for no prior"
        raise StructureError(
            f"{name} needs a structure with the method with_singleton_weight, got "
            f"{type(structure).__name__}; leave {name} at {as_it_is}"
        )
    return structure


def _first(structure: Structure) -> RandomPartition:
    return structure if isinstance(structure, RandomPartition) else structure.sample(0)
