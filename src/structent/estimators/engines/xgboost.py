"""XGBoost: trees with vector leaves, or one tree per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structent._files import parsed_json
from structent._interrupts import interrupts_postponed
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.columns import FloatTable
from structent.estimators.engines.ubjson import from_ubjson
from structent.estimators.rows import TrainingRows
from structent.estimators.training import OnRound, Settings, Trained, Training
from structent.losses.boosters.xgboost import structured_metric, structured_objective, xgboost
from structent.structure import RandomPartition, trivial
from structent.structure.targets import LabelSets
from structent.trees.forest import check_children, damaged

VALIDATION = "validation"
METRIC = "mlogloss"  # early stopping looks at plain log loss, whatever the structure
_OBJECTIVE = "multi:softprob"  # set in addition to ours, so that XGBoost predicts probabilities
_OF_NODES = {
    "left_children": ">i4", "right_children": ">i4", "parents": ">i4", "split_indices": ">i4",
    "split_conditions": ">f4", "split_type": "u1", "default_left": "u1", "loss_changes": ">f4",
    "sum_hessian": ">f4",
}  # fmt: skip


def train(training: Training) -> Trained:
    """Return the booster of the best round."""
    training = training.with_ordinary_weights()
    settings = training.settings
    data = _matrix(training.rows, training)
    evals = []
    if training.validation is not None:
        evals = [(_matrix(training.validation, training, ref=data), VALIDATION)]
    booster = xgboost.train(
        parameters(training),
        data,
        settings.n_estimators,
        obj=objective(training),
        custom_metric=metric(training),
        evals=evals,
        callbacks=callbacks(settings, training.on_round, with_validation=bool(evals)),
        verbose_eval=False,
    )
    return Trained(XGBoostModel(booster, training.start), training.unraced)


def objective(training: Training) -> Any:
    """Return the objective of a task."""
    return structured_objective(
        training.structure,
        curvature=training.settings.curvature,
        split_structure=training.split_structure,
        split_seed=training.seed,
        n_threads=training.n_threads,
        label_sets=training.label_sets,
    )


def metric(training: Training) -> Any:
    """Return the metric that replaces XGBoost's log loss if labels may be sets, else None."""
    if training.label_sets is None:
        return None
    return _LogLossOfSets(trivial(training.structure.classes), training.label_sets)


def parameters(training: Training) -> dict[str, Any]:
    """Return the settings under XGBoost's names."""
    settings, start = training.settings, training.start
    # XGBoost's own metric refuses labels that are not classes.
    has_sets = training.label_sets is not None
    return {
        "objective": _OBJECTIVE,
        "num_class": len(start),
        "base_score": start.tolist(),
        **({"disable_default_eval_metric": True} if has_sets else {"eval_metric": METRIC}),
        "tree_method": "hist",
        "multi_strategy": (
            "multi_output_tree" if settings.trees == "vector" else "one_output_per_tree"
        ),
        "learning_rate": settings.learning_rate,
        "max_depth": training.unraced.max_depth,
        "min_child_weight": settings.min_child_weight,
        "reg_lambda": settings.reg_lambda,
        "subsample": settings.subsample,
        "colsample_bytree": settings.colsample,
        "seed": training.seed,
        "nthread": training.n_threads,
        "verbosity": 0,
    }


def matrix_options(rows: TrainingRows, training: Training) -> dict[str, Any]:
    """Return the arguments of an XGBoost matrix beside the features."""
    has_categories = any(training.is_categorical)
    types = ["c" if is_category else "q" for is_category in training.is_categorical]
    return {
        "label": rows.labels,
        "weight": rows.weights,
        "feature_types": types if has_categories else None,
        "enable_categorical": has_categories,
    }


def callbacks(settings: Settings, on_round: OnRound, *, with_validation: bool) -> list[Any]:
    """Return the callback that XGBoost calls after every round."""
    called: list[Any] = [_OnRound(on_round)]
    if with_validation and settings.early_stopping_rounds is not None:
        called.append(
            xgboost.callback.EarlyStopping(
                rounds=int(settings.early_stopping_rounds),
                metric_name=METRIC,
                data_name=VALIDATION,
                save_best=True,
            )
        )
    return called


def from_bytes(
    content: bytes, start: FloatArray, n_categories: Sequence[int | None]
) -> XGBoostModel:
    """Return the booster that ``to_bytes`` wrote, if every index in it is in range."""
    check_booster(content, len(start), n_categories)
    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(content))
    except xgboost.core.XGBoostError as error:
        reason = str(error).splitlines()[0]
        raise StructentError(f"XGBoost cannot read the booster in the file: {reason}") from None
    return XGBoostModel(booster, start)


def check_booster(content: bytes, n_classes: int, n_categories: Sequence[int | None]) -> None:
    """Refuse anything that is not our booster: XGBoost would read outside of its arrays, or abort.

    Fields that a newer XGBoost may add are ignored.

    Parameters
    ----------
    content
        The booster as UBJSON.
    n_classes
        How many classes the model has.
    n_categories
        How many categories each column of the features has, None for a column of numbers.
    """
    try:
        learner = from_ubjson(content)["learner"]
        _check_learner(learner, n_classes, n_categories)
        model = learner["gradient_booster"]["model"]
        size = int(model["trees"][0]["tree_param"]["size_leaf_vector"])
        if size not in (1, n_classes):
            raise ValueError(f"its leaves have {size} values, but there are {n_classes} classes")
        _check_rounds(model, 1 if size > 1 else n_classes)
        for number, tree in enumerate(model["trees"]):
            if tree["id"] != number:
                raise ValueError(f"tree {number} has another number")
            _check_tree(tree, size, n_categories)
    except StructentError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise damaged(f"XGBoost's booster is not what it should be ({error})") from None


def _check_learner(learner: Any, n_classes: int, n_categories: Sequence[int | None]) -> None:
    parameters, booster = learner["learner_model_param"], learner["gradient_booster"]
    base_score = parsed_json(parameters["base_score"])
    if len(base_score) != n_classes or not np.isfinite(np.array(base_score, np.float64)).all():
        raise ValueError("base_score")
    types = ["q" if n is None else "c" for n in n_categories]
    cats = booster["model"]["cats"]
    for name, given, wanted in (
        ("num_class", parameters["num_class"], str(n_classes)),
        ("num_feature", parameters["num_feature"], str(len(n_categories))),
        ("num_target", parameters["num_target"], "1"),
        ("boost_from_average", parameters["boost_from_average"] in ("0", "1"), True),
        ("objective", learner["objective"]["name"], _OBJECTIVE),
        ("num_class of the objective",
         learner["objective"]["softmax_multiclass_param"]["num_class"], str(n_classes)),
        ("gradient_booster", booster["name"], "gbtree"),
        ("feature_names", learner["feature_names"], []),
        ("feature_types", learner["feature_types"], types if "c" in types else []),
        ("cats", [len(cats[each]) for each in ("enc", "feature_segments", "sorted_idx")], [0] * 3),
        ("attributes", {*map(type, learner["attributes"].values())} <= {str}, True),
    ):  # fmt: skip
        if type(given) is not type(wanted) or given != wanted:
            raise ValueError(name)


def _check_rounds(model: Any, per_round: int) -> None:
    """Refuse trees that do not form whole rounds, or that belong to wrong classes."""
    n_trees = len(model["trees"])
    n_rounds, rest = divmod(n_trees, per_round)
    parameters = model["gbtree_model_param"]
    if (
        rest
        or (parameters["num_trees"], parameters["num_parallel_tree"]) != (str(n_trees), "1")
        or list(map(int, model["iteration_indptr"])) != list(range(0, n_trees + 1, per_round))
        or list(map(int, model["tree_info"])) != list(range(per_round)) * n_rounds
    ):
        raise ValueError(f"{n_trees} trees are no rounds of {per_round}")


def _check_tree(tree: Any, size: int, n_categories: Sequence[int | None]) -> None:
    """Refuse a tree with a walk that never ends or leaves its arrays."""
    n_nodes = len(tree["left_children"])
    wanted = {"num_nodes": n_nodes, "num_feature": len(n_categories), "num_deleted": 0,
              "size_leaf_vector": size}  # fmt: skip
    if any(tree["tree_param"][name] != str(value) for name, value in wanted.items()):
        raise ValueError("tree_param")
    nodes = {name: _numbers(tree, name, kind, n_nodes) for name, kind in _OF_NODES.items()}
    left, right = (nodes[side].astype(np.int64) for side in ("left_children", "right_children"))
    splits, leaves = np.flatnonzero(left != -1), np.flatnonzero(left == -1)
    check_children(splits, left[splits], right[splits], n_nodes)
    if not all(np.array_equal(nodes["parents"][side[splits]], splits) for side in (left, right)):
        raise ValueError("parents")
    columns = nodes["split_indices"]
    if (columns < 0).any() or (columns >= len(n_categories)).any():
        raise ValueError("split_indices")
    if (nodes["default_left"] > 1).any():
        raise ValueError("default_left")
    _numbers(tree, "base_weights", ">f4", n_nodes * size)
    values = nodes["split_conditions"][leaves]
    if size > 1:
        values = _numbers(tree, "leaf_weights", ">f4", len(leaves) * size)
        if not np.array_equal(np.sort(right[leaves]), np.arange(len(leaves))):
            raise ValueError("leaves")
    elif (right[leaves] != -1).any():
        raise ValueError("right_children")
    if not np.isfinite(values).all():
        raise ValueError("a leaf whose value is not finite")
    _check_categories(tree, nodes["split_type"], columns, n_categories)


def _check_categories(
    tree: Any, split_type: Any, columns: IndexArray, n_categories: Sequence[int | None]
) -> None:
    """Refuse sets of categories that reach beyond their arrays, or hold unknown categories."""
    n_sets, n_members = len(tree["categories_nodes"]), len(tree["categories"])
    nodes = _numbers(tree, "categories_nodes", ">i4", n_sets)
    members = _numbers(tree, "categories", ">i4", n_members)
    begins = _numbers(tree, "categories_segments", ">i8", n_sets)
    sizes = _numbers(tree, "categories_sizes", ">i8", n_sets)
    if not np.array_equal(np.flatnonzero(split_type), nodes) or (split_type > 1).any():
        raise ValueError("categories_nodes")
    # Compared before they are summed, because the sum could overflow.
    if ((sizes < 1) | (sizes > n_members)).any() or sizes.sum() != n_members:
        raise ValueError("categories_sizes")
    if not np.array_equal(begins, np.cumsum(sizes) - sizes):
        raise ValueError("categories_segments")
    known = np.array([n or 0 for n in n_categories])[columns[nodes]]
    if (members < 0).any() or (members >= np.repeat(known, sizes.astype(np.int64))).any():
        raise ValueError("categories")


def _numbers(tree: Any, name: str, kind: str, count: int) -> Any:
    numbers = tree[name]
    if not isinstance(numbers, np.ndarray) or numbers.dtype != kind or len(numbers) != count:
        raise ValueError(name)
    return numbers


class XGBoostModel:
    """A booster of XGBoost."""

    def __init__(self, booster: Any, start: FloatArray) -> None:
        self.booster = booster
        self.start = start
        self._n_threads = 0

    @property
    def n_rounds(self) -> int:
        """How many rounds it has."""
        return int(self.booster.num_boosted_rounds())

    def margins(self, features: FloatTable, n_threads: int) -> FloatArray:
        """Return the logits of each row, (n, classes)."""
        if n_threads != self._n_threads:  # threads may share a booster, but not change it
            self.booster.set_param({"nthread": n_threads})
            self._n_threads = n_threads
        types = self.booster.feature_types
        data = xgboost.DMatrix(
            features, feature_types=types, enable_categorical=bool(types), nthread=n_threads
        )
        margins: FloatArray = self.booster.predict(
            data, output_margin=True, validate_features=False
        ).astype(np.float64)
        return margins

    def gains(self, n_columns: int) -> FloatArray:
        """Return how much all splits of each column gained."""
        gains = np.zeros(n_columns)
        for name, gain in self.booster.get_score(importance_type="total_gain").items():
            gains[int(name[1:])] = gain  # "f0", "f1", ...
        return gains

    def to_bytes(self) -> bytes:
        """Return the booster as UBJSON."""
        return bytes(self.booster.save_raw("ubj"))


class _OnRound(xgboost.callback.TrainingCallback):  # type: ignore[misc,name-defined]  # a module
    def __init__(self, on_round: OnRound) -> None:
        super().__init__()
        self._on_round = on_round

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        scores = evals_log.get(VALIDATION, {}).get(METRIC)
        self._on_round(epoch, scores[-1] if scores else None)
        return False


class _LogLossOfSets:
    """Plain log loss, under XGBoost's own name; for a set of classes, -log of its probability."""

    def __init__(self, structure: RandomPartition, label_sets: LabelSets) -> None:
        self._mean_loss = structured_metric(structure, label_sets=label_sets)

    def __call__(self, margins: Any, data: Any) -> tuple[str, float]:
        weight = float(data.get_weight().sum())
        total = weight * self._mean_loss(margins, data)[1] if data.num_row() else 0.0
        if xgboost.collective.is_distributed():
            # XGBoost takes the mean over workers, however many rows each of them has.
            sums = np.array([total, weight])
            total, weight = xgboost.collective.allreduce(sums, xgboost.collective.Op.SUM)
        return METRIC, float(total / weight)


def _matrix(rows: TrainingRows, training: Training, ref: Any = None) -> Any:
    options = matrix_options(rows, training)
    # XGBoost asks Python for rows several times. An interrupt during such a call is lost: XGBoost
    # takes it for the end of the rows, and the memory of the process may be damaged.
    with interrupts_postponed():
        return xgboost.QuantileDMatrix(
            rows.features, ref=ref, nthread=training.n_threads, **options
        )
