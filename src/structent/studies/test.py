"""The permutation test of a structure against scrambled copies, and what each partition adds."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from structent._checks import checked_integer
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.structure import RandomPartition, trivial
from structent.structure.samplers import Structure
from structent.studies.differences import paired_difference
from structent.studies.fitting import (
    asked_structure,
    drawn_seed,
)
from structent.studies.orbit import Orbit, Scrambled, checked_scrambled, draw_copies
from structent.studies.progress import OnProgress, telling
from structent.studies.scoring import Scoring, scoring_of
from structent.studies.setup import quiet_and_on_one_thread
from structent.studies.significance import (
    PartitionGain,
    PValue,
    StructureTest,
    as_good_as,
    p_value_of,
)

_MOST_PERMUTATIONS = 100_000


def structure_test(  # noqa: PLR0913  a question has many sides
    X: Any,
    y: Any,
    structure: Structure | str,
    *,
    model: str = "auto",
    estimator: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    n_permutations: int = 199,
    level: float = 0.05,
    stop_after: int | None = 10,
    n_folds: int | None = None,
    n_repeats: int = 1,
    keep_in: str | os.PathLike[str] | None = None,
) -> StructureTest:
    r"""Return whether a structure helps more than the same structure with its classes scrambled.

    The paper's Experiment 1B as a permutation test. A scrambled copy has blocks of the same sizes
    and weights, but no meaning. If the structure had no meaning either, its cross-validated log
    loss would be at a random place among the losses of its copies:

    .. math:: p = \frac{1 + \#\{\text{copies as good or better}\}}{1 + \#\{\text{copies drawn}\}}

    Copies are drawn without replacement from the different structures that scrambling can give; if
    there are fewer than asked for, all are used (:func:`~structent.studies.orbit.draw_copies`).
    All are trained on the same folds. Ties count against the structure. When h = ``stop_after``
    copies are as good as the structure, the test stops, and p = h / l at the l-th copy
    (:func:`~structent.studies.significance.p_value_of`). The answer depends only on the seed, never
    on ``n_jobs``.

    The test also compares the structure with no structure, by the corrected t-test for repeated
    cross-validation (Nadeau and Bengio, 2003). A structure that beats its copies but not "no
    structure" is not reported to help.

    Parameters
    ----------
    X, y
        A table or array, (n, columns), and the label of each row, (n,); None if a function gives
        the losses.
    structure
        A random partition or a sampler of structent, also a product or a mix, or a short form of
        the command line ("circular:width=3"), which is built from the labels. For spanning-tree
        partitions the graph is scrambled.
    model
        "boosting", "linear" or "auto", as in :func:`~structent.compare`, with the same models and
        splits, so that the two agree. In each split validation rows choose where the structure
        acts; the copies have the same choice.
    estimator
        Instead of ``model``, a classifier with the parameter ``structure``, or a pipeline with one;
        it is used as it is, with the same ``weights`` for all structures. Or a function that takes
        a structure and returns its loss in each fold, lower is better; ``n_folds`` then says how
        many of its losses make one cross-validation.
    groups
        The group of each row, (n,), if rows belong together: rows of one group share a fold.
    random_state
        The seed of folds and copies, also of the estimator if its own ``random_state`` is None. If
        None, a seed is drawn; it is the test's ``seed``.
    n_jobs
        How many structures to train at a time, in threads; all processors if None or -1.
    progress
        Whether to show a progress bar, or a function that is called with the name of the step, how
        much of it is done, and how much there is.
    n_permutations
        How many scrambled copies to draw, at least ``1 / level - 1``.
    level
        The level of significance.
    stop_after
        Stop when this many copies are as good as the structure; None to look at all copies.
    n_folds, n_repeats
        Folds of the cross-validation, and its repeats with other folds. If ``n_folds`` is None,
        those of :func:`~structent.compare`, and 5 with an estimator.
    keep_in
        A file of JSON lines for the losses. A test that was interrupted continues from it, and
        structures that were scored are not scored again. This needs a ``random_state``, the same
        each time. A function needs a file of its own.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression, circular
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(8, size=80)
    >>> angle = 2 * np.pi * y / 8 + rng.normal(scale=0.6, size=80)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> circle = circular(range(8), width=2, singleton_weight=0.2)
    >>> model = StructuredLogisticRegression(C=10.0)
    >>> found = structure_test(
    ...     X, y, circle, estimator=model, random_state=0, n_jobs=1, n_permutations=19, n_folds=3
    ... )
    >>> found.p_value, found.finding
    (0.05, 'helps')
    """
    start, seed = perf_counter(), drawn_seed(random_state)
    asked = checked_scrambled(asked_structure(structure, y))
    _check_question(n_permutations, level, stop_after)
    orbit = _drawn(asked, n_permutations, seed)
    with telling(progress) as tell, quiet_and_on_one_thread():
        scoring = scoring_of(
            X, y, asked, (model, estimator), groups, seed, n_jobs, n_folds, n_repeats,
            _checked_file(keep_in, random_state), tell,
        )  # fmt: skip
        losses, without = scoring.losses_of([asked, trivial(asked.classes)])
        p, null = _permuted(scoring, orbit, losses, stop_after, tell)
    return StructureTest(
        asked, p, level, orbit.size, losses, without, null,
        paired_difference(losses - null.mean(axis=0), scoring.n_folds),
        paired_difference(losses - without, scoring.n_folds),
        scoring.n_folds, scoring.n_rows, perf_counter() - start, seed,
    )  # fmt: skip


def partition_gains(  # noqa: PLR0913  a question has many sides
    X: Any,
    y: Any,
    structure: Structure | str,
    *,
    model: str = "auto",
    estimator: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    n_folds: int | None = None,
    n_repeats: int = 1,
    keep_in: str | os.PathLike[str] | None = None,
) -> tuple[PartitionGain, ...]:
    """Return what each partition adds to a structure, by leaving it out.

    The weights of the others are rescaled to sum to 1. If a level has several partitions, the whole
    level is left out, too. The singletons stay, because without them nothing may tell all classes
    apart. The folds are those of :func:`structure_test` with the same ``random_state``. Each
    interval is a corrected 95 % interval by itself, not for all differences at once.

    Parameters
    ----------
    X, y, structure, model, estimator, groups, random_state, n_jobs, progress
        As for :func:`~structent.studies.structure_test`; the structure must be fixed.
    n_folds, n_repeats, keep_in
        As there.

    Examples
    --------
    The estimator may be a function. Here the loss is the weight of the singletons.

    >>> from structent import circular
    >>> year = circular(range(4), width=2, singleton_weight=0.5)
    >>> gains = partition_gains(None, None, year, estimator=lambda s: [s.singleton_weight] * 5)
    >>> [(gain.name, round(gain.difference.mean, 3)) for gain in gains]
    [('width 2: 0+1, 2+3', -0.167), ('width 2: 0+3, 1+2', -0.167), ('width 2: all', -0.5)]
    """
    asked = asked_structure(structure, y)
    if not isinstance(asked, RandomPartition):
        raise StructentError(
            "structure must be a RandomPartition, so that partitions can be left out, got "
            f"{type(structure).__name__}"
        )
    parts, seed = _parts(asked), drawn_seed(random_state)
    found: list[FloatArray] = []
    with telling(progress) as tell, quiet_and_on_one_thread():
        scoring = scoring_of(
            X, y, asked, (model, estimator), groups, seed, n_jobs, n_folds, n_repeats,
            _checked_file(keep_in, random_state), tell,
        )  # fmt: skip
        for losses in scoring.losses_of([asked, *(_without(asked, kept) for _, kept in parts)]):
            found.append(losses)
            tell("partitions left out", len(found) - 1, len(parts))
    whole, *others = found
    return tuple(
        PartitionGain(
            level,
            asked.partitions[places[0]] if len(places) == 1 else None,
            float(asked.weights[list(places)].sum()),
            paired_difference(whole - losses, scoring.n_folds),
        )
        for (level, places), losses in zip(parts, others, strict=True)
    )


def _check_question(n_permutations: int, level: float, stop_after: int | None) -> None:
    checked_integer(n_permutations, "n_permutations", at_least=1, at_most=_MOST_PERMUTATIONS)
    if stop_after is not None:
        checked_integer(stop_after, "stop_after", at_least=1, at_most=_MOST_PERMUTATIONS)
    if isinstance(level, bool) or not isinstance(level, float) or not 0 < level < 1:
        raise StructentError(f"level must be a number between 0 and 1, got {level!r}")


def _checked_file(keep_in: str | os.PathLike[str] | None, random_state: Any) -> Path | None:
    if keep_in is None:
        return None
    path = Path(keep_in)
    if not path.parent.is_dir():
        raise StructentError(f"keep_in must be a file in a folder that exists, got {path}")
    if random_state is None:
        raise StructentError(
            "keep_in needs a random_state, so that folds and copies are the same every time, "
            "got None; give a number, e.g. random_state=0"
        )
    return path


def _drawn(structure: Scrambled, n_permutations: int, seed: int) -> Orbit:
    orbit = draw_copies(structure, n_permutations, np.random.default_rng(seed))
    if not orbit.copies:
        raise StructentError(
            "there must be a scrambled copy that differs from the structure, got a structure that "
            "stays the same however its classes are scrambled; no permutation can test it"
        )
    return orbit


def _permuted(
    scoring: Scoring, orbit: Orbit, losses: FloatArray, stop_after: int | None,
    tell: OnProgress,
) -> tuple[PValue, FloatArray]:  # fmt: skip
    """Return the p-value, and the losses of the copies that it is based on."""
    null, as_good = list[FloatArray](), list[bool]()
    tell("scrambled copies", 0, len(orbit.copies))
    with closing(scoring.losses_of(orbit.copies)) as scored:
        for of_copy in scored:
            null.append(of_copy)
            as_good += as_good_as(of_copy.mean(keepdims=True), float(losses.mean()))
            tell("scrambled copies", len(null), len(orbit.copies))
            if sum(as_good) == stop_after:
                break
    return p_value_of(as_good, stop_after=stop_after), np.array(null)


def _parts(structure: RandomPartition) -> list[tuple[str, tuple[int, ...]]]:
    """Return what can be left out: each partition but the singletons, then levels of several."""
    of_level: dict[str, list[int]] = {}
    for place, (level, partition) in enumerate(
        zip(structure.level_of, structure.partitions, strict=True)
    ):
        if not partition.is_singletons:
            of_level.setdefault(level, []).append(place)
    single = [(level, (place,)) for level, places in of_level.items() for place in places]
    several = [(level, tuple(places)) for level, places in of_level.items() if len(places) > 1]
    return [*single, *several]


def _without(structure: RandomPartition, places: tuple[int, ...]) -> RandomPartition:
    kept = [place for place in range(structure.n_partitions) if place not in places]
    weights = np.array(structure.weights[kept])
    if not weights.sum() > 0:
        return trivial(structure.classes)
    return RandomPartition(
        [structure.partitions[place] for place in kept],
        weights / weights.sum(),
        levels=[structure.level_of[place] for place in kept],
    )
