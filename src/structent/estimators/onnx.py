"""ONNX files of fitted models: one tree ensemble or one matrix product, then softmax and label.

Inputs are float32, and text or whole numbers for categories. Numbers are compared with the edges of
bins, which are float32, too, so a float32 value reaches the same leaf as in ``predict``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._files import save_bytes
from structent._optional import load_optional
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.design import Design
from structent.estimators.engines.structent import Part, StructentModel
from structent.estimators.files import FittedLinear
from structent.estimators.training import FittedBoosting
from structent.trees.bins import Bins
from structent.trees.forest import damaged

INPUT, LABEL, PROBABILITIES = "X", "label", "probabilities"

# TreeEnsembleRegressor, because a leaf of the newer TreeEnsemble holds one number and not one per
# class. All runtimes since 2022 read these versions.
_ML = "ai.onnx.ml"
_OPSETS, _IR_VERSION = {"": 15, _ML: 3}, 8
_LARGEST = np.finfo(np.float32).max
_MOST_BYTES = 2**31 - 2**20  # of a protobuf message, with some room for its small parts
_BYTES_OF_WEIGHT, _BYTES_OF_NODE = 17, 40  # in a file, at most


def save_boosting(
    path: str | os.PathLike[str],
    fitted: FittedBoosting,
    engine: str,
    feature_names: Sequence[str] | None,
) -> None:
    """Write the ONNX file of trees, completely or not at all."""
    model = fitted.model
    if not isinstance(model, StructentModel):
        raise StructentError(
            f"to_onnx writes the trees of engine='structent', got those of engine={engine!r}; "
            "convert that booster with onnxmltools (save() keeps it as the member 'booster' of the "
            "model file), or train with engine='structent'"
        )
    graph = _Graph()
    categories = fitted.encoder.columns.categories
    splits = _Splits.of(model.parts, categories)
    columns = fitted.encoder.classes.columns
    _check_size(model.parts, len(columns), splits)
    table = _table(graph, categories, feature_names, splits.tables)
    logits = graph.add(
        "TreeEnsembleRegressor",
        table,
        domain=_ML,
        n_targets=len(columns),
        base_values=model.start[columns].tolist(),
        **_nodes(model.parts, splits),
        **_weights(model.parts, columns),
    )
    _save(path, graph, logits, fitted.encoder.classes.values)


def save_linear(
    path: str | os.PathLike[str], fitted: FittedLinear, feature_names: Sequence[str] | None
) -> None:
    """Write the ONNX file of a linear model, completely or not at all."""
    graph = _Graph()
    # In float64, as in predict: features that are not scaled would lose digits.
    coef = fitted.coef.T.astype(np.float64)
    if fitted.design is None:
        features = graph.cast(graph.input(INPUT, np.float32, len(coef)), np.float64)
        parts = [graph.add("MatMul", features, graph.constant(coef))]
    else:
        parts = _products(graph, fitted.design, coef, feature_names)
    logits = graph.constant(fitted.intercept.astype(np.float64))
    for part in parts:
        logits = graph.add("Add", part, logits)
    _save(path, graph, logits, fitted.classes.values)


def _save(path: str | os.PathLike[str], graph: _Graph, logits: str, classes: NDArray[Any]) -> None:
    labels = _label_values(classes)
    best = graph.add("ArgMax", logits, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(labels), best, output=LABEL)
    proba = graph.add("Softmax", logits, axis=1)
    graph.cast(proba, np.float32, output=PROBABILITIES)
    outputs = ((LABEL, labels.dtype, ()), (PROBABILITIES, np.float32, (len(labels),)))
    save_bytes(path, graph.model(outputs).SerializeToString())


def _label_values(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as an array of one type that ONNX has."""
    values = classes.tolist()
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return np.array(values, dtype=object)
    if kinds <= {int, float, bool} and len(kinds) == 1:
        found = np.array(values)
        if found.dtype in (np.int64, np.float64, np.bool_):
            return found
    strange = next((v for v in values if type(v) not in (str, int, float, bool)), values)
    raise StructentError(
        "the classes of an ONNX model must be all text, or all numbers of at most 64 bits, got "
        f"{strange!r:.80}; train with other labels, e.g. their str()"
    )


# Inputs


def _table(
    graph: _Graph,
    categories: Sequence[tuple[Any, ...] | None],
    feature_names: Sequence[str] | None,
    tables: Sequence[NDArray[np.uint8]],
) -> str:
    """Add the inputs, and return the numbers that trees are split by, (n, columns + sets)."""
    if all(of_column is None for of_column in categories):
        return graph.input(INPUT, np.float32, len(categories))
    given = _inputs_by_name(graph, categories, feature_names)
    columns, sets = [], []
    for name, of_column, table in zip(given, categories, tables, strict=True):
        if of_column is None:
            columns.append(name)
            continue
        codes = _codes(graph, name, of_column)
        columns.append(graph.cast(codes, np.float32))  # it keeps the place of the column
        if table.shape[1]:
            sets.append(graph.cast(graph.rows_at(table, codes), np.float32))
    return graph.add("Concat", *columns, *sets, axis=1)


def _inputs_by_name(
    graph: _Graph,
    categories: Sequence[tuple[Any, ...] | None],
    feature_names: Sequence[str] | None,
) -> list[str]:
    """Add one input per column, (n, 1)."""
    names = _input_names(feature_names, len(categories))
    return [
        graph.input(name, np.float32 if of_column is None else _type_of(of_column, name), 1)
        for name, of_column in zip(names, categories, strict=True)
    ]


def _input_names(feature_names: Sequence[str] | None, n_columns: int) -> list[str]:
    if feature_names is None:
        return [f"x{j}" for j in range(n_columns)]
    names = list(feature_names)
    for name in names:
        if name in ("", LABEL, PROBABILITIES) or names.count(name) > 1:
            raise StructentError(
                f"the columns of an ONNX model must have different names, other than '', {LABEL!r} "
                f"and {PROBABILITIES!r}, got {name!r}; rename it and train again"
            )
    return names


def _type_of(categories: tuple[Any, ...], name: str) -> Any:
    """Return the type of an input of categories."""
    kinds = {int if type(value) is bool else type(value) for value in categories} or {str}
    if len(kinds) > 1:
        raise StructentError(
            "the categories of a column must be of one type in an ONNX model, got "
            f"{' and '.join(sorted(kind.__name__ for kind in kinds))} in {name!r}; convert them, "
            "e.g. with str()"
        )
    kind = kinds.pop()
    if kind is int and not -(2**63) <= min(categories) <= max(categories) < 2**63:
        raise StructentError(
            "categories that are whole numbers must have at most 64 bits in an ONNX model, got "
            f"more in {name!r}; convert them, e.g. with str()"
        )
    return {str: np.object_, int: np.int64, float: np.float32}[kind]


def _codes(graph: _Graph, name: str, categories: tuple[Any, ...]) -> str:
    """Return the code of each category, (n, 1); unknown values get the next code."""
    kind = _type_of(categories, name)
    values: list[Any] = np.array(categories or ("",), dtype=kind).tolist()
    if len(set(values)) < len(values):
        raise StructentError(
            "categories that are numbers must differ as float32 in an ONNX model, got some that do "
            f"not in {name!r}; convert them, e.g. with str()"
        )
    keys = {np.object_: "keys_strings", np.int64: "keys_int64s", np.float32: "keys_floats"}
    encoded: dict[str, Any] = {
        keys[kind]: values,
        "values_int64s": list(range(len(categories))) or [0],
    }
    return graph.add("LabelEncoder", name, domain=_ML, default_int64=len(categories), **encoded)


# Linear models of tables


def _products(
    graph: _Graph, design: Design, coef: FloatArray, feature_names: Sequence[str] | None
) -> list[str]:
    """Add the inputs, and return the logits that come from numbers and from each category."""
    categories, is_number = design.columns.categories, design.is_number
    if is_number.all():
        return _products_of_numbers(
            graph, graph.input(INPUT, np.float32, len(categories)), design, coef
        )
    given = _inputs_by_name(graph, categories, feature_names)
    parts = []
    if is_number.any():
        numbers = [name for name, is_one in zip(given, is_number, strict=True) if is_one]
        parts += _products_of_numbers(graph, graph.add("Concat", *numbers, axis=1), design, coef)
    for name, of_column, first in zip(given, categories, design.first, strict=True):
        if of_column is not None:
            # After the last category, the code of unknown values, which add nothing.
            table = np.vstack([coef[first : first + len(of_column)], np.zeros(coef.shape[1])])
            parts.append(graph.rows_at(table, _codes(graph, name, of_column)))
    return parts


def _products_of_numbers(
    graph: _Graph, numbers: str, design: Design, coef: FloatArray
) -> list[str]:
    """Return the logits that come from numbers, and from missing numbers."""
    is_number, has_missing = design.is_number, np.array(design.has_missing)
    centre, scale = (np.array(each)[is_number] for each in (design.centre, design.scale))
    centred = graph.add("Sub", graph.cast(numbers, np.float64), graph.constant(centre))
    scaled = graph.add("Div", centred, graph.constant(scale))
    is_missing = graph.add("IsNaN", numbers)
    features = graph.add("Where", is_missing, graph.constant(np.zeros(1)), scaled)
    parts = [graph.add("MatMul", features, graph.constant(coef[design.first[is_number]]))]
    if has_missing.any():
        of_missing = np.zeros((len(centre), coef.shape[1]))
        of_missing[has_missing[is_number]] = coef[design.first[has_missing] + 1]
        says_missing = graph.cast(is_missing, np.float64)
        parts.append(graph.add("MatMul", says_missing, graph.constant(of_missing)))
    return parts


# Trees


class _Splits(NamedTuple):
    """What the nodes of all parts compare, (nodes,) each, and the sets of categories.

    Attributes
    ----------
    feature
        The column that is compared: of the table, or one of the columns for sets that follow.
    threshold
        The largest number that goes left.
    is_missing_left
        Whether missing values go left.
    tables
        For each column: whether each category, and a missing value last, goes right in each of the
        sets by which the column is split, (categories + 1, sets).
    """

    feature: IndexArray
    threshold: NDArray[np.float32]
    is_missing_left: NDArray[np.bool_]
    tables: tuple[NDArray[np.uint8], ...]

    @classmethod
    def of(cls, parts: Sequence[Part], categories: Sequence[tuple[Any, ...] | None]) -> _Splits:
        column = np.concatenate([part.forest.column for part in parts]).astype(np.int64)
        feature = np.maximum(column, 0)
        threshold = np.zeros(len(column), np.float32)
        is_missing_left = np.zeros(len(column), np.bool_)
        tables, n_features = [], len(categories)
        for j, of_column in enumerate(categories):
            here = column == j
            if of_column is None:
                of_parts = [_borders(part, j) for part in parts]
                threshold[here] = np.concatenate([borders for borders, _ in of_parts])
                is_missing_left[here] = np.concatenate([missing for _, missing in of_parts])
                tables.append(np.empty((0, 0), np.uint8))
                continue
            goes_right = np.concatenate([_sets(part, j, len(of_column)) for part in parts])
            different, which = np.unique(goes_right, axis=0, return_inverse=True)
            tables.append(np.ascontiguousarray(different.T))
            feature[here], threshold[here] = n_features + which.reshape(-1), 0.5
            n_features += len(different)
        return cls(feature, threshold, is_missing_left, tuple(tables))


def _borders(part: Part, column: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the largest number that goes left, and whether missing values do, by node."""
    n_bins = int(part.bins.n_bins[column])
    goes_left = _goes_left(part, column)
    n_left = goes_left[:, :n_bins].sum(axis=1)
    if not (n_left > 0).all() or (np.diff(goes_left[:, :n_bins].astype(np.int8)) > 0).any():
        raise damaged("numbers that go left are not the lowest ones")
    # Beyond the last edge: all numbers go left, and the missing ones right.
    upper_edges = np.append(part.bins.edges[column], _LARGEST).astype(np.float32)
    return upper_edges[n_left - 1], goes_left[:, n_bins]


def _sets(part: Part, column: int, n_categories: int) -> NDArray[np.uint8]:
    """Return whether each category and a missing value go right, (nodes, categories + 1)."""
    bins: Bins = part.bins
    n_bins, of_category = int(bins.n_bins[column]), bins.bin_of_category[column]
    bin_of = np.full(n_categories + 1, n_bins)  # categories without rows count as missing
    n_known = min(n_categories, len(of_category))
    bin_of[:n_known] = of_category[:n_known]
    return (~_goes_left(part, column)[:, bin_of]).astype(np.uint8)


def _goes_left(part: Part, column: int) -> NDArray[np.bool_]:
    """Return which bins go left at the nodes that are split by a column, (nodes, 256)."""
    words = np.ascontiguousarray(part.forest.goes_left[part.forest.column == column], "<u8")
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def _nodes(parts: Sequence[Part], splits: _Splits) -> dict[str, Any]:
    tree, node = _numbers_of_nodes(parts)
    is_leaf = np.concatenate([part.forest.column for part in parts]) < 0
    left = np.concatenate([part.forest.child for part in parts])
    return {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": splits.feature.tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values": splits.threshold.tolist(),
        "nodes_truenodeids": np.where(is_leaf, 0, left).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, left + 1).tolist(),
        "nodes_missing_value_tracks_true": splits.is_missing_left.astype(int).tolist(),
    }


def _weights(parts: Sequence[Part], columns: IndexArray) -> dict[str, Any]:
    """Return the values of all leaves, one for each class, divided by the number of parts."""
    tree, node = _numbers_of_nodes(parts)
    is_leaf = np.concatenate([part.forest.column for part in parts]) < 0
    values: FloatArray = np.concatenate(
        [part.forest.values[part.forest.child[part.forest.column < 0]] for part in parts]
    ).astype(np.float64) / len(parts)
    return {
        "target_treeids": np.repeat(tree[is_leaf], len(columns)).tolist(),
        "target_nodeids": np.repeat(node[is_leaf], len(columns)).tolist(),
        "target_ids": np.tile(np.arange(len(columns)), len(values)).tolist(),
        "target_weights": values[:, columns].reshape(-1).tolist(),
    }


def _numbers_of_nodes(parts: Sequence[Part]) -> tuple[IndexArray, IndexArray]:
    """Return the tree of each node, and its number within the tree."""
    sizes = np.concatenate([np.diff(part.forest.first_node) for part in parts])
    first = np.cumsum(sizes) - sizes
    return np.repeat(np.arange(len(sizes)), sizes), np.arange(sizes.sum()) - np.repeat(first, sizes)


def _check_size(parts: Sequence[Part], n_classes: int, splits: _Splits) -> None:
    n_leaves = sum(int((part.forest.column < 0).sum()) for part in parts)
    n_bytes = _BYTES_OF_WEIGHT * n_leaves * n_classes + _BYTES_OF_NODE * len(splits.feature)
    n_bytes += sum(table.nbytes for table in splits.tables)
    if n_bytes > _MOST_BYTES:
        raise StructentError(
            f"an ONNX file holds at most 2 GB, got a model of {n_leaves:,} leaves with {n_classes} "
            "values each; train with fewer rounds, bags or leaves"
        )


class _Graph:
    """An ONNX graph under construction; every method returns the name of what it adds."""

    def __init__(self) -> None:
        self._onnx = load_optional("onnx", extra="onnx", purpose="Writing ONNX files")
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._constants: list[Any] = []
        self._taken = {LABEL, PROBABILITIES}

    def input(self, name: str, kind: Any, width: int) -> str:
        """Add an input, (n, width)."""
        self._inputs.append(self._value(name, kind, (width,)))
        self._taken.add(name)
        return name

    def constant(self, values: NDArray[Any]) -> str:
        """Add an array of numbers or of text."""
        name = self._free("constant")
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def add(
        self, operator: str, *inputs: str, output: str | None = None, domain: str = "", **how: Any
    ) -> str:
        """Add an operator with one output."""
        output = output or self._free(operator.lower())
        node = self._onnx.helper.make_node(operator, inputs, [output], domain=domain, **how)
        self._nodes.append(node)
        return output

    def cast(self, given: str, kind: Any, output: str | None = None) -> str:
        """Add a conversion to another type."""
        return self.add("Cast", given, output=output, to=self._type(kind))

    def rows_at(self, table: NDArray[Any], codes: str) -> str:
        """Add the rows of a table at some places, (n, 1)."""
        flat = self.add("Reshape", codes, self.constant(np.array([-1])))
        return self.add("Gather", self.constant(table), flat)

    def model(self, outputs: Sequence[tuple[str, Any, tuple[int, ...]]]) -> Any:
        """Return the graph with its outputs, each (n, ...), as a model."""
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            "structent",
            self._inputs,
            [self._value(*output) for output in outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid(domain, number) for domain, number in _OPSETS.items()]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=_IR_VERSION,
            producer_name="structent",
            producer_version=version("structent"),
        )

    def _value(self, name: str, kind: Any, shape: tuple[int, ...]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(kind), ["n", *shape])

    def _type(self, kind: Any) -> int:
        number: int = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return number

    def _free(self, wanted: str) -> str:
        """Return a name that no input, output or part of the graph has."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted} {number}"
        self._taken.add(name)
        return name
