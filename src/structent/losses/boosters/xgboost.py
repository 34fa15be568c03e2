"""The structured loss as an objective and a metric for XGBoost."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from structent._optional import load_optional
from structent._private import PrivateInterface
from structent.errors import StructureError
from structent.losses.boosters.rounds import FloatRows, MeanLoss, Rounds, drawn_blocks
from structent.structure import LabelSets, PartitionSampler, RandomPartition

_PURPOSE = "The structured loss for XGBoost"
xgboost = load_optional("xgboost", extra="xgboost", purpose=_PURPOSE)
XGBOOST = PrivateInterface("xgboost", "3.2.0", needed_by=_PURPOSE)

# XGBoost passes the round to an objective of this kind, and asks it for a gradient to search splits
# on. It is new in 3.2 and called experimental.
TreeObjective: Any = XGBOOST.name("xgboost.objective:TreeObjective")


def structured_objective(
    structure: RandomPartition | PartitionSampler,
    *,
    curvature: str = "gradient",
    split_structure: RandomPartition | PartitionSampler | None = None,
    split_seed: int = 0,
    first_round: int = 0,
    n_threads: int | None = None,
    label_sets: LabelSets | None = None,
) -> StructuredObjective:
    """Return the structured loss as an objective for XGBoost.

    Use it as ``xgboost.train(params, data, obj=objective)``, with vector leaves
    (``multi_strategy="multi_output_tree"``) or one tree per class, or in XGBoost's scikit-learn
    estimators (``XGBClassifier(objective=objective)``). Labels are class indices, in the order of
    ``structure.classes``. Also set ``objective="multi:softprob"`` and ``num_class`` in the
    parameters, otherwise predictions are not probabilities. Training starts from ``base_score``.

    Parameters
    ----------
    structure
        A random partition, or a sampler. With a sampler each round has its own structure, a
        function of the sampler and the number of the round, so that restarts and workers agree.
    curvature
        What replaces the second derivative, which can be negative:
        "gradient" (its magnitude, which keeps every leaf value within 1), "bound" (q(1 - q)),
        "fisher" (its mean over labels drawn from q) or "native" (2q(1 - q), XGBoost's own).
    split_structure
        If given, splits are searched on the gradient summed over the blocks of a partition. The
        partition is drawn from this structure by weight in every round. Leaf values still come from
        the whole gradient. Needs vector leaves.
    split_seed
        The draws are a function of ``(split_seed, round)``.
    first_round
        The number of rounds that were trained before, if training is continued.
    n_threads
        How many threads to use; if None, as many as the process may use.
    label_sets
        The result of ``structure.encode_with_blocks(labels)``, if rows are labelled by classes,
        blocks or sets of classes. Labels are then its codes. XGBoost's own metrics accept only
        classes, so set ``disable_default_eval_metric`` and use :func:`structured_metric`.

    Examples
    --------
    >>> import numpy as np, xgboost
    >>> from structent import circular
    >>> seasons = circular(["spring", "summer", "autumn", "winter"], width=2)
    >>> labels = seasons.encode(["spring", "summer", "autumn", "winter"] * 5)
    >>> data = xgboost.DMatrix(labels[:, None].astype(float), label=labels)
    >>> parameters = {"objective": "multi:softprob", "num_class": 4, "min_child_weight": 0}
    >>> booster = xgboost.train(parameters, data, 20, obj=structured_objective(seasons))
    >>> bool((booster.predict(data).argmax(axis=1) == labels).all())
    True
    """
    return StructuredObjective(
        structure, curvature, split_structure, split_seed, first_round, n_threads, label_sets
    )


class StructuredObjective(TreeObjective):  # type: ignore[misc]  # known only at run time
    """The objective that :func:`structured_objective` returns.

    ``xgboost.train`` calls it with the round, the margins and the data; the scikit-learn estimators
    with labels, margins and possibly weights. These do not pass the round, so calls are counted:
    use an objective for one training only. A copy, pickled or deep, counts from the start.
    """

    def __init__(
        self,
        structure: RandomPartition | PartitionSampler,
        curvature: str,
        split_structure: RandomPartition | PartitionSampler | None,
        split_seed: int,
        first_round: int,
        n_threads: int | None,
        label_sets: LabelSets | None,
    ) -> None:
        self._arguments = (
            structure, curvature, split_structure, split_seed, first_round, n_threads, label_sets,
        )  # fmt: skip
        self._rounds = Rounds(
            structure,
            curvature=curvature,
            native_factor=lambda _: 2.0,
            first_round=first_round,
            n_threads=n_threads,
            label_sets=label_sets,
        )
        self._splits = None
        if split_structure is not None:
            _check_same_classes(split_structure, structure)
            self._splits = SplitSearch(split_structure, split_seed, first_round)
        self._n_calls = 0

    def __call__(
        self, *arguments: Any, sample_weight: Any | None = None
    ) -> tuple[FloatRows, FloatRows]:
        """Return gradient and curvature of the round, (n, classes)."""
        match arguments:
            case (iteration, margins, xgboost.DMatrix() as data):
                rows = self._rounds.rows_of(data)
            case (labels, np.ndarray() as margins):
                rows = self._rounds.rows(labels, sample_weight)
                iteration = self._n_calls
                self._n_calls += 1
            case _:
                raise TypeError(f"expected margins and data as XGBoost gives them, got {arguments}")
        return self._rounds.gradient_and_curvature(iteration, margins, rows)

    def split_grad(
        self, iteration: int, grad: FloatRows, hess: FloatRows
    ) -> tuple[FloatRows, FloatRows] | None:
        """Return the gradient and curvature to search splits on; None for the full ones."""
        return None if self._splits is None else self._splits.reduced(iteration, grad, hess)

    def __reduce__(self) -> tuple[Any, ...]:
        return (StructuredObjective, self._arguments)


def _check_same_classes(
    split_structure: RandomPartition | PartitionSampler,
    structure: RandomPartition | PartitionSampler,
) -> None:
    both = zip_longest(split_structure.classes, structure.classes)
    for place, (given, expected) in enumerate(both):
        if given != expected:
            raise StructureError(
                "split_structure must have the classes of structure in the same order, got "
                f"{given!r} instead of {expected!r} as class {place}"
            )


class SplitSearch:
    """The gradient summed over the blocks of a partition that is drawn in every round.

    That is the derivative for shifting all logits of a block together, so the search finds splits
    that separate blocks. Fewer columns also make the search faster.
    """

    def __init__(
        self, structure: RandomPartition | PartitionSampler, seed: int, first_round: int
    ) -> None:
        self._structure = structure
        self._seed = seed
        self._first_round = first_round
        self._kept: dict[int, tuple[FloatRows, FloatRows]] = {}

    def reduced(
        self, iteration: int, gradient: FloatRows, hessian: FloatRows
    ) -> tuple[FloatRows, FloatRows] | None:
        """Return gradient and curvature of the blocks, (n, blocks); None for the singletons."""
        block_of = drawn_blocks(self._structure, self._seed, self._first_round + iteration)
        n_blocks = int(block_of.max()) + 1
        if n_blocks == len(block_of):
            return None
        indicator = (block_of[:, None] == np.arange(n_blocks)).astype(np.float32)
        shape = (len(gradient), n_blocks)
        kept = self._kept.get(n_blocks)
        if kept is None or kept[0].shape != shape:
            kept = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
            self._kept[n_blocks] = kept
        return (
            np.matmul(gradient, indicator, out=kept[0]),
            np.matmul(hessian, indicator, out=kept[1]),
        )


def structured_metric(
    structure: RandomPartition, *, label_sets: LabelSets | None = None
) -> StructuredMetric:
    """Return the structured cross-entropy as ``custom_metric`` for ``xgboost.train``.

    It takes margins, which XGBoost passes if the objective is also a callable. Pass the same
    ``label_sets`` as to the objective.

    Examples
    --------
    >>> import numpy as np, xgboost
    >>> from structent import trivial
    >>> data = xgboost.DMatrix(np.zeros((2, 1)), label=[0, 1])
    >>> structured_metric(trivial(["a", "b"]))(np.zeros((2, 2)), data)
    ('structured-log-loss', 0.6931471805599453)
    """
    return StructuredMetric(structure, label_sets)


class StructuredMetric:
    """The metric that :func:`structured_metric` returns."""

    def __init__(self, structure: RandomPartition, label_sets: LabelSets | None) -> None:
        self._mean_loss = MeanLoss(structure, label_sets)

    def __call__(self, margins: Any, data: Any) -> tuple[str, float]:
        """Return the name of the metric and its value."""
        return MeanLoss.name, self._mean_loss(margins, data)
