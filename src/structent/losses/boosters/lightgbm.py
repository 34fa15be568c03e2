"""The structured loss as an objective and a metric for LightGBM."""

from __future__ import annotations

from typing import Any

import numpy as np

from structent._optional import load_optional
from structent.losses.boosters.rounds import FloatRows, MeanLoss, Rounds
from structent.structure import LabelSets, PartitionSampler, RandomPartition

lightgbm = load_optional("lightgbm", extra="lightgbm", purpose="The structured loss for LightGBM")


def structured_objective(
    structure: RandomPartition | PartitionSampler,
    *,
    curvature: str = "gradient",
    first_round: int = 0,
    n_threads: int | None = None,
    label_sets: LabelSets | None = None,
) -> StructuredObjective:
    """Return the structured loss as an objective for LightGBM.

    Use it as ``params["objective"]`` of ``lightgbm.train``, with ``num_class``, or in LightGBM's
    scikit-learn estimators (``LGBMClassifier(objective=objective)``). Labels are class indices, in
    the order of ``structure.classes``. With a custom objective LightGBM predicts margins: their
    softmax gives the probabilities. Training starts from ``init_score``, or from 0.

    Parameters
    ----------
    structure
        A random partition, or a sampler. With a sampler each round has its own structure, a
        function of the sampler and the number of the round, so that restarts agree. LightGBM does
        not pass the number of the round, so calls are counted, from 0 in every ``lightgbm.train``.
    curvature
        What replaces the second derivative, which can be negative:
        "gradient" (its magnitude, which keeps every leaf value within 1), "bound" (q(1 - q)),
        "fisher" (its mean over labels drawn from q) or "native" (k/(k - 1) q(1 - q), LightGBM's own
        for k classes).
    first_round, n_threads, label_sets
        As for :func:`structent.losses.boosters.xgboost.structured_objective`.

    Examples
    --------
    >>> import numpy as np, lightgbm
    >>> from structent import circular
    >>> seasons = circular(["spring", "summer", "autumn", "winter"], width=2)
    >>> labels = seasons.encode(["spring", "summer", "autumn", "winter"] * 25)
    >>> data = lightgbm.Dataset(labels[:, None].astype(float), label=labels)
    >>> objective = structured_objective(seasons)
    >>> parameters = {"objective": objective, "num_class": 4, "verbose": -1}
    >>> booster = lightgbm.train(parameters, data, 20)
    >>> bool((booster.predict(labels[:, None]).argmax(axis=1) == labels).all())
    True
    """
    return StructuredObjective(structure, curvature, first_round, n_threads, label_sets)


class StructuredObjective:
    """The objective that :func:`structured_objective` returns.

    A copy, pickled or deep, counts its rounds from the start.
    """

    def __init__(
        self,
        structure: RandomPartition | PartitionSampler,
        curvature: str,
        first_round: int,
        n_threads: int | None,
        label_sets: LabelSets | None,
    ) -> None:
        self._arguments = (structure, curvature, first_round, n_threads, label_sets)
        self._rounds = Rounds(
            structure,
            curvature=curvature,
            native_factor=lambda k: k / max(k - 1, 1),
            first_round=first_round,
            n_threads=n_threads,
            label_sets=label_sets,
        )
        self._margins = np.empty((0, 0), dtype=np.float32)
        self._n_calls = 0

    # Three names, because LightGBM's scikit-learn estimators count them to know what to pass.
    def __call__(
        self, first: Any, second: Any, weight: Any | None = None
    ) -> tuple[FloatRows, FloatRows]:
        """Return gradient and curvature of the round, (n, classes).

        ``lightgbm.train`` passes margins and data; the estimators pass labels, margins and weights.
        """
        if isinstance(second, lightgbm.Dataset):
            margins, rows = first, self._rounds.rows_of(second)
        else:
            margins, rows = second, self._rounds.rows(first, weight)
        if self._margins.shape != margins.shape:
            self._margins = np.empty(margins.shape, dtype=np.float32)
        # LightGBM stores float64, one class after the other.
        np.copyto(self._margins, margins)
        self._n_calls += 1
        return self._rounds.gradient_and_curvature(self._n_calls - 1, self._margins, rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return (StructuredObjective, self._arguments)


def structured_metric(
    structure: RandomPartition, *, label_sets: LabelSets | None = None
) -> StructuredMetric:
    """Return the structured cross-entropy of margins as ``feval`` for ``lightgbm.train``.

    Pass the same ``label_sets`` as to the objective.

    Examples
    --------
    >>> import numpy as np, lightgbm
    >>> from structent import trivial
    >>> data = lightgbm.Dataset(np.zeros((2, 1)), label=[0, 1], params={"verbose": -1}).construct()
    >>> structured_metric(trivial(["a", "b"]))(np.zeros((2, 2)), data)
    ('structured-log-loss', 0.6931471805599453, False)
    """
    return StructuredMetric(structure, label_sets)


class StructuredMetric:
    """The metric that :func:`structured_metric` returns."""

    def __init__(self, structure: RandomPartition, label_sets: LabelSets | None) -> None:
        self._mean_loss = MeanLoss(structure, label_sets)

    def __call__(self, margins: Any, data: Any) -> tuple[str, float, bool]:
        """Return the name of the metric, its value, and whether more is better."""
        return MeanLoss.name, self._mean_loss(margins, data), False
