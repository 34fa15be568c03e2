"""The permutation test of a structure against its scrambled copies, and what its parts add."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from joblib import hash as digest_of
from sklearn.base import clone

from structent._checks import checked_integer
from structent._files import JsonLines
from structent._threads import checked_n_jobs
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.metrics import structured_log_loss
from structent.structure import RandomPartition, trivial
from structent.structure.samplers import Structure
from structent.studies.arms import Contest, Split
from structent.studies.differences import paired_difference
from structent.studies.fitting import (
    Rows,
    asked_structure,
    checked_folds,
    checked_rows,
    drawn_seed,
    prior_parameter,
    seeded,
    structure_parameter,
    weights_parameter,
)
from structent.studies.models import StudyModel, Tried
from structent.studies.orbit import Orbit, Scrambled, checked_scrambled, draw_copies, identity
from structent.studies.plan import Plan
from structent.studies.progress import OnProgress, telling
from structent.studies.setup import (
    Clock,
    Numbers,
    checked_plan,
    models_of,
    quiet_and_on_one_thread,
    raced_losses,
    splits_of,
)
from structent.studies.significance import (
    PartitionGain,
    PValue,
    StructureTest,
    as_good_as,
    p_value_of,
)

_MOST_PERMUTATIONS = 100_000
_FOLDS = 5

# Fits models with a structure, and gives a loss for every fold: the lower the better.
FitAndScore: TypeAlias = Callable[[Any], Any]


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

    The paper's Experiment 1B as a permutation test. A scrambled copy has the same blocks, sizes and
    weights, and no meaning. If the structure had no meaning either, its cross-validated log loss
    would be a random one among the losses of its copies:

    .. math:: p = \frac{1 + \#\{\text{copies as good or better}\}}{1 + \#\{\text{copies drawn}\}}

    Copies are drawn without replacement from the different structures that scrambling can give, all
    of them if there are fewer than asked for (:func:`~structent.studies.orbit.draw_copies`).
    All are trained on the same folds. Ties count against the structure. Where h = ``stop_after``
    copies are as good as the structure, no more are looked at, and p = h / l at the l-th copy
    (:func:`~structent.studies.significance.p_value_of`). The answer depends on the seed alone,
    never on ``n_jobs``.

    The test also answers the direct question, whether the structure helps against none at all, by
    the corrected t-test for repeated cross-validation (Nadeau and Bengio, 2003). A structure that
    beats its copies but not "no structure" is not said to help.

    Parameters
    ----------
    X, y
        A table or array, (n, columns), and the label of each row, (n,); None if a function gives
        the losses.
    structure
        A random partition or a sampler of structent, products and mixes among them, or a short form
        of the command line ("circular:width=3"), which is built from the labels. Of spanning-tree
        partitions the graph is scrambled.
    model
        "boosting", "linear" or "auto", as in :func:`~structent.compare`: its models and splits, so
        that the two agree. In each split validation rows choose where a structure
        acts, for every copy alike.
    estimator
        In place of these, a classifier with the parameter ``structure``, or a pipeline with one; it
        is used as it is, its ``weights`` the same for all structures. Or a function that takes a
        structure and returns its loss in each fold, the lower the better; ``n_folds`` then says
        how many of its losses make one cross-validation.
    groups
        Rows of one group share a fold, (n,), where rows belong together.
    random_state
        Seeds folds, copies, and the estimator where its own ``random_state`` is None. If None, a
        seed is drawn; the test has it as ``seed``.
    n_jobs
        How many structures to train at a time, in threads; all processors if None or -1.
    progress
        Whether to show a progress bar, or a function that is called with what is being done, how
        much is done, and how much there is.
    n_permutations
        How many scrambled copies to draw; ``1 / level - 1`` at the least.
    level
        The level of significance asked for.
    stop_after
        After how many copies as good as the structure to stop; None to look at all.
    n_folds, n_repeats
        Folds of the cross-validation, and its repeats with other folds. If ``n_folds`` is None,
        those of :func:`~structent.compare`, and 5 with an estimator.
    keep_in
        A file of JSON lines for the losses. A test that is broken off goes on from there, and
        structures that were scored are not scored again: for the same ``random_state``, which must
        be given. A function needs a file of its own.

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
        scoring = _scoring(
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

    The weights of the others are divided by their sum. Where a level has several partitions, the
    whole level is left out, too. The singletons stay: without them there may be nothing that tells
    all classes apart. The differences are on the folds of :func:`structure_test` with the same
    ``random_state``, with corrected intervals of 95 % each, not for all of them at once.

    Parameters
    ----------
    X, y, structure, model, estimator, groups, random_state, n_jobs, progress
        As for :func:`~structent.studies.structure_test`; the structure must be fixed.
    n_folds, n_repeats, keep_in
        As there.

    Examples
    --------
    A function may stand for the estimator: here its loss is the weight of the singletons.

    >>> from structent import circular
    >>> year = circular(range(4), width=2, singleton_weight=0.5)
    >>> gains = partition_gains(None, None, year, estimator=lambda s: [s.singleton_weight] * 5)
    >>> [(gain.name, round(gain.difference.mean, 3)) for gain in gains]
    [('width 2: 0+1, 2+3', -0.167), ('width 2: 0+3, 1+2', -0.167), ('width 2: all', -0.5)]
    """
    asked = asked_structure(structure, y)
    if not isinstance(asked, RandomPartition):
        raise StructentError(
            "structure must be a RandomPartition, whose partitions can be left out one by one, got "
            f"{type(structure).__name__}"
        )
    parts, seed = _parts(asked), drawn_seed(random_state)
    found: list[FloatArray] = []
    with telling(progress) as tell, quiet_and_on_one_thread():
        scoring = _scoring(
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
            "keep_in needs random_state, without which folds and copies are drawn again every "
            "time, got None; give a number, e.g. random_state=0"
        )
    return path


def _drawn(structure: Scrambled, n_permutations: int, seed: int) -> Orbit:
    orbit = draw_copies(structure, n_permutations, np.random.default_rng(seed))
    if not orbit.copies:
        raise StructentError(
            "there must be a scrambled copy that differs from the structure, got one that is the "
            "same however its classes are scrambled; no permutation can test it"
        )
    return orbit


def _permuted(
    scoring: _Scoring, orbit: Orbit, losses: FloatArray, stop_after: int | None,
    tell: OnProgress,
) -> tuple[PValue, FloatArray]:  # fmt: skip
    """Return the p-value, and the losses of the copies that it was counted from."""
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


def _scoring(  # noqa: PLR0913, PLR0917  all that structure_test and partition_gains share
    X: Any, y: Any, structure: Scrambled, model_or_estimator: tuple[str, Any], groups: Any,
    seed: int, n_jobs: int | None, n_folds: int | None, n_repeats: int, path: Path | None,
    tell: OnProgress,
) -> _Scoring:  # fmt: skip
    """Return how the structures of a test are scored, all that was given checked."""
    workers, (model, estimator) = checked_n_jobs(n_jobs), model_or_estimator
    checked_integer(n_repeats, "n_repeats", at_least=1, at_most=1000)
    if estimator is None:
        return _choosing(
            X, y, structure, model, groups, seed, workers, n_folds, n_repeats, path, tell
        )
    n_folds = _FOLDS if n_folds is None else n_folds
    if callable(estimator) and not isinstance(estimator, type):
        checked_integer(n_folds, "n_folds", at_least=2, at_most=10_000)
        kept = _KeptLosses(path, "a function")
        return _Scoring(estimator, n_folds, None, workers, kept, kept.read())
    _check_parameters(estimator)
    rows = checked_rows(X, y, structure, estimator=estimator, groups=groups)
    checked_folds(n_folds, rows, at_least=2)
    folds_of = [rows.folds(n_folds, np.random.RandomState((seed, i))) for i in range(n_repeats)]
    validated = _CrossValidated(seeded(estimator, seed), rows, tuple(folds_of))
    kept = _KeptLosses(path, "" if path is None else validated.digest(X))
    return _Scoring(validated, n_folds, len(rows), workers, kept, kept.read())


def _choosing(  # noqa: PLR0913, PLR0917  the same
    X: Any, y: Any, structure: Scrambled, model: str, groups: Any, seed: int, workers: int,
    n_folds: int | None, n_repeats: int, path: Path | None, tell: OnProgress,
) -> _Scoring:  # fmt: skip
    """Return how structures are scored by the models and splits of a comparison."""
    models = models_of(model, None, seed, allow_blocks=False)
    rows = checked_rows(X, y, structure, estimator=models[0].estimator, groups=groups)
    numbers, clock = Numbers(n_folds, n_repeats, 1), Clock(perf_counter(), None)
    raced = raced_losses(models, structure, rows, numbers, seed, clock, tell)
    chosen = min(models, key=lambda each: raced.get(each.name, 0.0))
    plan = checked_plan(chosen, rows, structure, numbers)
    scored = _Compared.of(chosen, structure, rows, plan, seed, workers)
    kept = _KeptLosses(path, "" if path is None else scored.digest(X, seed))
    return _Scoring(scored, plan.n_folds, len(rows), workers, kept, kept.read())


@dataclass(frozen=True, eq=False)
class _Scoring:
    """How structures are scored: by what, how many at a time, and where their losses are kept.

    Attributes
    ----------
    fit_and_score
        Gives the losses of a structure.
    n_folds, n_rows
        The folds of one repeat, and the rows; None if a function gives the losses.
    n_jobs
        How many structures at a time.
    kept
        The file of losses.
    known
        The losses so far, by the identity of the structure.
    """

    fit_and_score: FitAndScore
    n_folds: int
    n_rows: int | None
    n_jobs: int
    kept: _KeptLosses
    known: dict[str, FloatArray]

    def losses_of(self, structures: Iterable[Scrambled]) -> Generator[FloatArray]:
        """Give the losses of each structure, (folds,), in the order of the structures."""
        waiting = iter(structures)
        # Threads, not processes: the compiled loops of training release the interpreter's lock.
        with Parallel(n_jobs=self.n_jobs, backend="threading") as run:
            while batch := [(identity(s), s) for s in islice(waiting, self.n_jobs)]:
                missing = {name: s for name, s in batch if name not in self.known}
                scored = run(
                    delayed(_checked_losses)(self.fit_and_score, structure, self.n_folds)
                    for structure in missing.values()
                )
                for name, losses in zip(missing, scored, strict=True):
                    self.known[name] = losses
                    self.kept.add(name, losses)
                for name, _ in batch:
                    yield self._of_same_length(self.known[name])

    def _of_same_length(self, losses: FloatArray) -> FloatArray:
        expected = len(next(iter(self.known.values())))
        if len(losses) != expected:
            raise StructentError(
                "fit_and_score must return as many losses for every structure, got "
                f"{expected} and then {len(losses)}"
            )
        return losses


class _Plain(NamedTuple):
    """A split of a comparison: its contest, its test rows, and its model without structure."""

    contest: Contest
    test: Rows
    tried: Tried
    loss: float


@dataclass(frozen=True, eq=False)
class _Compared:
    """The log loss in every split of a comparison, where validation rows choose the candidate.

    Called with a structure, it gives the losses, (splits,). Models without structure are trained
    once for all structures.

    Attributes
    ----------
    model
        The kind of model.
    rows
        Features, labels and groups.
    plan
        The candidates and splits.
    splits
        What all structures share in each split.
    """

    model: StudyModel
    rows: Rows
    plan: Plan
    splits: tuple[_Plain, ...]

    @classmethod
    def of(
        cls, model: StudyModel, structure: Scrambled, rows: Rows, plan: Plan, seed: int,
        workers: int,
    ) -> _Compared:  # fmt: skip
        """Return what scores structures; the models without structure are trained here."""

        def plain(split: Split) -> _Plain:
            rest = rows.outside(split.fold_of, split.fold)
            test = rows.inside(split.fold_of, split.fold)
            contest = Contest.of(model, structure, rest, rows.coded.classes, plan, split.rng(seed))
            tried = contest.plain()
            return _Plain(contest, test, tried, _test_loss(contest.model_of(tried), test))

        run = Parallel(n_jobs=workers, backend="threading")
        splits = run(delayed(plain)(split) for split in splits_of(rows, plan, seed))
        return cls(model, rows, plan, tuple(splits))

    def __call__(self, structure: Any) -> FloatArray:
        """Return the log loss of the test rows in each split, (splits,)."""
        return np.array([self._loss(split, structure) for split in self.splits])

    def digest(self, X: Any, seed: int) -> str:
        """Return a text that stands for data, splits and model, whatever the structure."""
        settings = (self.model.name, self.model.estimator.get_params(), self.plan, seed)
        found: str = digest_of((settings, X, self.rows.labels.tolist(), self.rows.groups))
        return found

    def _loss(self, split: _Plain, structure: Any) -> float:
        if _is_trivial(structure):
            return split.loss
        best = split.contest.best(split.tried, structure, self.plan.candidates)
        if best is split.tried:
            return split.loss
        return _test_loss(split.contest.model_of(best), split.test)


def _test_loss(model: Any, test: Rows) -> float:
    proba = model.predict_proba(test.features)
    plain = trivial(model.classes_.tolist())
    return structured_log_loss(test.labels, proba, plain, classes=model.classes_)


@dataclass(frozen=True, eq=False)
class _CrossValidated:
    """The log loss of an estimator in every fold of repeated cross-validation.

    Called with a structure, it gives the losses, (folds,), on folds that are always the same.

    Attributes
    ----------
    estimator
        A classifier one of whose parameters, or of its steps', is called ``structure``.
    rows
        Features, labels and groups.
    folds_of
        The fold of each row, in each repeat.
    """

    estimator: Any
    rows: Rows
    folds_of: tuple[IndexArray, ...]

    def __call__(self, structure: Any) -> FloatArray:
        """Return the log loss of the rows held out in each fold, (folds,)."""
        model = clone(self.estimator).set_params(**self._parameters(structure))
        return np.array(
            [
                self._held_out_loss(model, fold_of, fold)
                for fold_of in self.folds_of
                for fold in range(int(fold_of.max()) + 1)
            ]
        )

    def digest(self, X: Any) -> str:
        """Return a text that stands for data, folds and estimator, whatever its structure."""
        nothing = {structure_parameter(self.estimator): None}
        model = clone(self.estimator).set_params(**nothing)
        rows = (X, self.rows.labels.tolist())
        found: str = digest_of((type(model).__qualname__, model.get_params(), rows, self.folds_of))
        return found

    def _parameters(self, structure: Any) -> dict[str, Any]:
        parameters = {structure_parameter(self.estimator): structure}
        if not _is_trivial(structure):
            return parameters
        # There a weight of the singletons has nothing to be set against.
        given = self.estimator.get_params()
        weights, prior = weights_parameter(self.estimator), prior_parameter(self.estimator)
        if weights in given:
            parameters[weights] = None
        if isinstance(given.get(prior), Real):
            parameters[prior] = 1.0
        return parameters

    def _held_out_loss(self, model: Any, fold_of: IndexArray, fold: int) -> float:
        train, test = self.rows.outside(fold_of, fold), self.rows.inside(fold_of, fold)
        return _test_loss(model.fit(train.features, train.target), test)


def _checked_losses(fit_and_score: FitAndScore, structure: Any, n_folds: int) -> FloatArray:
    """Return the losses of a structure, (folds,): finite, and of whole cross-validations."""
    try:
        losses = np.atleast_1d(np.array(fit_and_score(structure), dtype=np.float64))
    except TypeError as error:
        raise StructentError(f"fit_and_score must return numbers: {error}") from error
    if losses.ndim != 1 or (len(losses) > 1 and len(losses) % n_folds):
        raise StructentError(
            f"fit_and_score must return one loss, or one for each of the {n_folds} folds of every "
            f"repeat, got shape {losses.shape}; say how many folds there are by n_folds"
        )
    if not np.isfinite(losses).all():
        raise StructentError(
            f"losses must be finite, got {losses.tolist()}; a model that gives the true class the "
            "probability 0 cannot be compared by its log loss"
        )
    return losses


def _check_parameters(estimator: Any) -> None:
    names = weights_parameter(estimator), prior_parameter(estimator)
    for name, allowed in zip(names, ("None, 'auto'", "'auto'"), strict=True):
        given = estimator.get_params().get(name)
        if given is not None and np.ndim(given) > 0:
            raise StructentError(
                f"{name.rpartition('__')[2]} of the estimator must be {allowed} or one number, got "
                "one per partition; give them to the structure: structure.reweight(weights)"
            )


def _is_trivial(structure: Any) -> bool:
    return isinstance(structure, RandomPartition) and all(
        partition.is_singletons for partition in structure.partitions
    )


@dataclass(frozen=True)
class _KeptLosses:
    """The losses of structures, in a file that several commands may add to.

    Attributes
    ----------
    path
        The file, or None to keep nothing; it need not exist yet.
    question
        Stands for data, folds and model. Lines of other questions are left alone.
    """

    path: Path | None
    question: str

    def read(self) -> dict[str, FloatArray]:
        """Return the losses of each structure that was scored, by its identity."""
        if self.path is None:
            return {}
        lines = JsonLines(self.path).read(
            _of_line,
            what="hold the losses of a structure",
            then="or keep the losses in another file",
        )
        return {
            structure: losses for question, structure, losses in lines if question == self.question
        }

    def add(self, structure: str, losses: FloatArray) -> None:
        """Write down the losses of a structure."""
        if self.path is not None:
            JsonLines(self.path).add(
                {"question": self.question, "structure": structure, "losses": losses.tolist()}
            )


def _of_line(line: Any) -> tuple[str, str, FloatArray]:
    return line["question"], line["structure"], np.array(line["losses"], dtype=np.float64)
