"""ONNX files of models: two other programs give the same labels and probabilities."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import (
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    ordinal,
    trivial,
)
from structent.errors import MissingDependencyError
from structent.estimators import onnx as onnx_files
from structent.estimators.engines.structent import Part, StructentModel
from tests.estimators.problems import LIGHTGBM, PLANTS, XGBOOST, engines, planted_problem, rows_of

pytestmark = [pytest.mark.requires("onnx"), pytest.mark.requires("onnxruntime")]

QUICK = {
    "n_estimators": 4, "learning_rate": 0.5, "max_depth": 3, "early_stopping_rounds": None,
    "subsample": 1.0, "random_state": 0, "n_jobs": 1,
}  # fmt: skip


def quick(structure=None, **more):
    return StructuredBoostingClassifier(structure, **{**QUICK, **more})


def encoded():
    return StructuredLogisticRegression(encode=True)


def exported(model, folder):
    """Return the file of a model, which the checks of ONNX itself pass."""
    import onnx

    path = folder / "model.onnx"
    model.to_onnx(path)
    onnx.checker.check_model(path, full_check=True)
    return path


def answers(path, feed):
    """Return labels and probabilities by onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    assert {given.name for given in session.get_inputs()} == set(feed)
    labels, proba = session.run(["label", "probabilities"], feed)
    return labels, proba


def columns_of(table, texts=(), whole=()):
    """Return the inputs of a model of a table, as the documentation tells."""
    feed = {}
    for name in table.columns:
        if name in texts:
            column = table[name].astype(object).where(table[name].notna(), "missing: no category")
            feed[name] = column.to_numpy(object)[:, None]
        elif name in whole:
            feed[name] = table[name].astype(object).fillna(-999).to_numpy(np.int64)[:, None]
        else:
            feed[name] = table[name].to_numpy(np.float32)[:, None]
    return feed


def assert_same(model, features, path, feed):
    labels, proba = answers(path, feed)
    np.testing.assert_allclose(proba, model.predict_proba(features), rtol=0, atol=1e-5)
    expected = model.predict(features)
    # Where two classes are as probable up to rounding, either is right.
    first, second = np.sort(model.predict_proba(features), axis=1)[:, [-1, -2]].T
    clear = first - second > 1e-6
    np.testing.assert_array_equal(np.asarray(labels)[clear], expected[clear])
    return clear


# Numbers

numbers = st.floats(width=32, allow_infinity=False, allow_nan=True)


@st.composite
def close_numbers(draw, n_rows):
    """A column whose values are often the same, or neighbours among the floats of 32 bits."""
    few = draw(st.lists(numbers, min_size=1, max_size=6))
    column = np.array(draw(st.lists(st.sampled_from(few), min_size=n_rows, max_size=n_rows)))
    steps = draw(arrays(np.int8, n_rows, elements=st.integers(-1, 1)))
    column = column.astype(np.float32)
    with np.errstate(over="ignore"):
        moved = np.nextafter(column, np.where(steps > 0, np.inf, -np.inf).astype(np.float32))
    return np.where((steps == 0) | np.isinf(moved), column, moved)


def around_edges(model):
    """Return rows of one value each: all edges, and the floats on either side of them."""
    bins = model._fitted.model.parts[0].bins
    edges = np.concatenate([*bins.edges, [0.0]]).astype(np.float32)
    with np.errstate(over="ignore"):
        both = [np.nextafter(edges, np.float32(far)) for far in (-np.inf, np.inf)]
    values = np.concatenate([edges, *both, [np.nan]]).astype(np.float32)
    values = values[~np.isinf(values)]
    return np.repeat(values[:, None], bins.n_columns, axis=1)


@settings(max_examples=60)
@given(st.data())
def test_float32_values_take_the_same_way_even_beside_an_edge(tmp_path_factory, data):
    n_rows = data.draw(st.integers(4, 24))
    features = np.column_stack([data.draw(close_numbers(n_rows)) for _ in range(2)])
    labels = np.resize(["a", "b", "c"], n_rows)
    model = quick(reg_lambda=0.0).fit(features, labels)
    path = exported(model, tmp_path_factory.mktemp("numbers"))
    for rows in (features, around_edges(model)):
        assert_same(model, rows, path, {"X": rows})


def test_a_value_between_two_floats_goes_where_predict_rounds_it(tmp_path):
    between = np.array([[1.0], [1.0 + 2.0**-26], [1.0 + 2.0**-24], [1.0 + 2.0**-23], [2.0]])
    features = np.repeat(between, 8, axis=0)
    labels = np.repeat([0, 0, 0, 1, 1], 8)
    model = quick().fit(features, labels)
    path = exported(model, tmp_path)
    clear = assert_same(model, between, path, {"X": between.astype(np.float32)})
    assert clear.all()
    assert model.predict(between).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("n_bags", [1, 3])
def test_an_ordinary_model_is_the_same_with_missing_values_and_bags(tmp_path, n_bags):
    structure, features, labels = planted_problem(600)
    features[np.random.default_rng(0).random(features.shape) < 0.2] = np.nan
    settings = {"n_estimators": 40, "early_stopping_rounds": 5, "subsample": 0.8}
    model = quick(structure, n_bags=n_bags, **settings).fit(features, labels)
    path = exported(model, tmp_path)
    clear = assert_same(model, features, path, {"X": features.astype(np.float32)})
    assert clear.all()
    one_row = features[:1].astype(np.float32)  # one row alone is added up in another order
    assert_same(model, one_row, path, {"X": one_row})


def test_one_node_holds_all_trees_with_a_weight_per_class_in_every_leaf(tmp_path):
    import onnx

    structure, features, labels = planted_problem(300)
    model = quick(structure, n_bags=2).fit(features, labels)
    (trees,) = [
        node for node in onnx.load(exported(model, tmp_path)).graph.node if "Tree" in node.op_type
    ]
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in trees.attribute}
    n_leaves = list(attributes["nodes_modes"]).count(b"LEAF")
    assert len(attributes["target_weights"]) == n_leaves * structure.n_classes
    assert len(set(attributes["nodes_treeids"])) == 8


def test_missing_values_that_part_from_all_numbers(tmp_path):
    features = np.array([[np.nan], [1.0], [2.0]] * 10, dtype=np.float32)
    labels = ["none", "some", "some"] * 10
    model = quick().fit(features, labels)
    path = exported(model, tmp_path)
    rows = np.array([[np.nan], [-3e38], [3e38]], dtype=np.float32)
    assert assert_same(model, rows, path, {"X": rows}).all()
    assert answers(path, {"X": rows})[0].tolist() == ["none", "some", "some"]


def test_trees_without_a_split_answer_with_the_prior(tmp_path):
    table = pd.DataFrame({"kind": pd.Categorical(["same"] * 30)})
    model = quick().fit(table, ["a", "b", "b"] * 10)
    assert not (model._fitted.model.parts[0].forest.column >= 0).any()
    path = exported(model, tmp_path)
    assert assert_same(model, table, path, columns_of(table, texts=["kind"])).all()


# Categories


@settings(max_examples=40)
@given(st.data())
def test_sets_of_categories_missing_and_unseen_ones_are_the_same(tmp_path_factory, data):
    n_rows = data.draw(st.integers(6, 30))
    letters = st.characters(exclude_categories=["Cs"])
    texts = data.draw(st.lists(st.text(letters, max_size=3), min_size=1, max_size=6, unique=True))
    ints = data.draw(st.lists(st.integers(-5, 2**40), min_size=1, max_size=6, unique=True))

    def column(values):
        drawn = st.lists(st.sampled_from([None, *values]), min_size=n_rows, max_size=n_rows)
        return [values[0], *data.draw(drawn)[1:]]

    table = pd.DataFrame(
        {
            "text": pd.Categorical(column(texts)),
            "number": data.draw(arrays(np.float32, n_rows, elements=numbers)),
            "whole": pd.Categorical(column(ints)),
        }
    )
    model = quick(reg_lambda=0.0).fit(table, np.resize([3, 1, 2], n_rows))
    path = exported(model, tmp_path_factory.mktemp("categories"))
    unseen = pd.DataFrame(
        {
            "text": pd.Categorical(["never seen"]),
            "number": np.float32([0]),
            "whole": pd.Categorical([-7]),
        }
    )
    for rows in (table, unseen):
        feed = columns_of(rows, texts=["text"], whole=["whole"])
        assert_same(model, rows, path, feed)


@pytest.mark.parametrize("max_bins", [None, 4])
def test_rare_categories_that_share_a_bin_are_the_same(tmp_path, max_bins):
    rng = np.random.default_rng(0)
    names = np.array([f"town {i}" for i in range(400)])
    town = rng.choice(names, p=rng.dirichlet(np.full(400, 0.3)), size=900)
    table = pd.DataFrame({"town": town, "x": rng.normal(size=900)})
    labels = np.char.str_len(town.astype(str)) + (rng.random(900) < 0.1)
    model = quick(max_bins=max_bins, n_estimators=20).fit(table, labels)
    assert_same(model, table, exported(model, tmp_path), columns_of(table, texts=["town"]))


@pytest.mark.parametrize("values", [[True, False, None], [0.1, 2.0, None], [1, 2, 3]])
def test_categories_may_be_numbers_and_bools(tmp_path, values):
    column = pd.Categorical(values * 10)
    table = pd.DataFrame({"kind": column, "x": np.arange(30.0)})
    model = quick().fit(table, ["a", "b", "c"] * 10)
    whole = [] if values[0] == 0.1 else ["kind"]
    path = exported(model, tmp_path)
    feed = columns_of(table, whole=whole)
    assert assert_same(model, table, path, feed).all()
    assert model.predict(table).tolist() == ["a", "b", "c"] * 10


def test_a_column_in_which_all_is_missing_is_an_input_of_text(tmp_path):
    nothing = pd.Categorical([None] * 20, categories=["a"])
    table = pd.DataFrame({"x": np.arange(20.0), "nothing": nothing})
    model = quick().fit(table, ["x", "y"] * 10)
    feed = columns_of(table, texts=["nothing"])
    assert_same(model, table, exported(model, tmp_path), feed)


def test_columns_without_names_are_called_by_their_places(tmp_path):
    table = pd.DataFrame({0: ["a", "b"] * 10, 1: np.arange(20.0)})
    model = quick().fit(table, ["x", "y"] * 10)
    feed = {"x0": table[[0]].to_numpy(object), "x1": table[[1]].to_numpy(np.float32)}
    assert assert_same(model, table, exported(model, tmp_path), feed).all()


def test_columns_may_be_called_like_parts_of_the_graph(tmp_path):
    names = ["cast", "concat", "constant", "gather", "X"]
    table = pd.DataFrame({name: ["a", "b"] * 10 for name in names})
    model = quick().fit(table, ["x", "y"] * 10)
    feed = columns_of(table, texts=names)
    assert assert_same(model, table, exported(model, tmp_path), feed).all()


# Classes and other models


@pytest.mark.parametrize(
    ("classes", "output"),
    [
        (["rose", "oak", "ash"], "tensor(string)"),
        ([10, 9, -(2**40)], "tensor(int64)"),
        ([True, False], "tensor(bool)"),
        ([1.0, 2.0], "tensor(double)"),
    ],
)
@pytest.mark.parametrize("kind", [quick, StructuredLogisticRegression])
def test_labels_keep_their_type_and_columns_are_sorted(tmp_path, kind, classes, output):
    import onnxruntime

    features, labels = rows_of(classes, n=90)
    structure = None if isinstance(classes[0], float) else trivial(classes)
    model = kind(structure).fit(features, labels)
    path = exported(model, tmp_path)
    rows = features.astype(np.float32)
    assert assert_same(model, rows, path, {"X": rows}).all()
    session = onnxruntime.InferenceSession(path)
    assert [each.type for each in session.get_outputs()] == [output, "tensor(float)"]


@pytest.mark.parametrize("kind", [quick, StructuredLogisticRegression])
def test_the_evaluator_of_onnx_itself_agrees(tmp_path, kind):
    from onnx.reference import ReferenceEvaluator

    features, labels = rows_of(PLANTS.classes, n=90)
    model = kind(PLANTS).fit(features, labels)
    rows = features.astype(np.float32)
    evaluator = ReferenceEvaluator(str(exported(model, tmp_path)))
    found, proba = evaluator.run(None, {"X": rows})
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-5)
    assert found.tolist() == model.predict(rows).tolist()


@pytest.mark.filterwarnings("ignore:L-BFGS did not converge")  # nor need it
@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]), st.floats(1e-3, 1e4))
def test_linear_models_are_the_same_also_where_features_are_not_scaled(
    tmp_path_factory, seed, dtype, size
):
    rng = np.random.default_rng(seed)
    features = (rng.normal(size=(40, 5)) * size * [1, 10, 1, 1, 1] + size).astype(dtype)
    labels = np.resize(["b", "a", "c"], 40)
    model = StructuredLogisticRegression(ordinal(["c", "b", "a"]), max_iter=3)
    model.fit(features, labels)
    path = exported(model, tmp_path_factory.mktemp("linear"))
    rows = features.astype(np.float32)
    labels, proba = answers(path, {"X": rows})
    exact = rows.astype(np.float64) @ model.coef_.T.astype(np.float64) + model.intercept_
    expected = np.exp(exact - exact.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        proba, expected / expected.sum(axis=1, keepdims=True), rtol=0, atol=1e-6
    )
    np.testing.assert_array_equal(labels, model.classes_[exact.argmax(axis=1)])
    if dtype == np.float64:
        np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_linear_models_of_tables_are_the_same_with_missing_and_unseen_values(
    tmp_path_factory, data
):
    n_rows = data.draw(st.integers(6, 30))
    names = data.draw(st.lists(st.text("abc", min_size=1), min_size=1, max_size=6, unique=True))
    ordinary = st.floats(-1e6, 1e6, width=32) | st.just(np.nan)
    columns = {
        "text": st.sampled_from([None, *names]), "number": ordinary, "other": ordinary,
        "whole": st.sampled_from([None, -7, 2**40]),
    }  # fmt: skip
    drawn = {
        name: data.draw(st.lists(values, min_size=n_rows, max_size=n_rows))
        for name, values in columns.items()
    }
    table = pd.DataFrame(
        {name: pd.Categorical(v) if name in ("text", "whole") else v for name, v in drawn.items()}
    )
    table = table[data.draw(st.permutations(list(table.columns)))]
    model = StructuredLogisticRegression(encode=True).fit(table, np.resize([3, 1, 2], n_rows))
    path = exported(model, tmp_path_factory.mktemp("tables"))
    unseen = pd.DataFrame(
        {"text": ["no"], "number": [np.nan], "other": [np.nan], "whole": [5]}
    ).astype({"text": "category", "whole": "category"})[list(table.columns)]
    # A column in which all is missing is an input of text.
    is_whole = model._design.columns.categories[list(table.columns).index("whole")] != ()
    texts, whole = (["text"], ["whole"]) if is_whole else (["text", "whole"], [])
    for rows in (table, unseen):
        assert_same(model, rows, path, columns_of(rows, texts=texts, whole=whole))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_linear_models_of_numbers_have_one_input_also_where_some_are_missing(tmp_path, scale):
    structure, features, labels = planted_problem(300)
    features = (scale * features).astype(np.float32)
    features[np.random.default_rng(0).random(features.shape) < 0.2] = np.nan
    features[:, 0] = 7.0
    model = StructuredLogisticRegression(structure, encode=True).fit(features, labels)
    path = exported(model, tmp_path)
    assert_same(model, features, path, {"X": features})
    assert_same(model, features[:1], path, {"X": features[:1]})


def test_linear_models_of_categories_alone_have_no_numbers(tmp_path):
    table = pd.DataFrame({"label of it": ["a", "b"] * 10, "b": ["x", None, "y", "z"] * 5})
    model = StructuredLogisticRegression(encode=True).fit(table, ["x", "y"] * 10)
    feed = columns_of(table, texts=["label of it", "b"])
    assert assert_same(model, table, exported(model, tmp_path), feed).all()


def test_a_model_that_was_loaded_gives_the_same_file(tmp_path):
    features, labels = rows_of(PLANTS.classes, n=90)
    model = quick(PLANTS).fit(features, labels)
    model.save(tmp_path / "model.structent")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model.structent")
    written = exported(model, tmp_path).read_bytes()
    assert exported(loaded, tmp_path).read_bytes() == written


# What is refused


@engines(XGBOOST, LIGHTGBM)
def test_the_trees_of_other_engines_are_refused_with_the_converter_for_them(tmp_path, engine):
    features, labels = rows_of(PLANTS.classes, n=60)
    model = StructuredBoostingClassifier(n_estimators=2, early_stopping_rounds=None, **engine)
    model.fit(features, labels)
    name = engine["engine"]
    with pytest.raises(StructentError, match=f"got those of engine='{name}'; .* with onnxmltools"):
        model.to_onnx(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        ([("jan", 1), ("feb", 2)], r"\('feb', 2\)|\('jan', 1\)"),
        ([1, 2, 2**70], str(2**70)),
        (["a", "b", 1], r"\['a', 'b', 1\]"),
    ],
)
def test_classes_that_onnx_has_no_type_for_are_refused(tmp_path, classes, shown):
    labels = classes[:2] * 20  # a class without rows has a column, too
    model = quick(trivial(classes)).fit(np.arange(40.0)[:, None] % 2, labels)
    path = tmp_path / "model.onnx"
    path.write_text("what was there before")
    with pytest.raises(StructentError, match=f"must be all text, or all numbers .*got.*({shown})"):
        model.to_onnx(path)
    assert path.read_text() == "what was there before"


@pytest.mark.parametrize("kind", [quick, encoded])
@pytest.mark.parametrize(
    ("column", "name", "message"),
    [
        ([1, "a"], "kind", "one type in an ONNX model, got int and str in 'kind'"),
        ([1.0, 1.0 + 1e-12], "kind", "must differ as float32 .* in 'kind'"),
        ([1, 2**63], "kind", "at most 64 bits .* in 'kind'"),
        (["a", "b"], "label", "other than '', 'label' and 'probabilities', got 'label'"),
    ],
)
def test_columns_that_onnx_cannot_hold_are_refused(tmp_path, kind, column, name, message):
    table = pd.DataFrame({name: pd.Categorical(column * 10)})
    model = kind().fit(table, ["x", "y"] * 10)
    with pytest.raises(StructentError, match=message):
        model.to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_model_beyond_the_largest_file_is_refused(tmp_path, monkeypatch):
    model = quick().fit(*rows_of(PLANTS.classes, n=90))
    size = len(exported(model, tmp_path).read_bytes())
    monkeypatch.setattr(onnx_files, "_MOST_BYTES", size)  # what is counted is never less
    with pytest.raises(StructentError, match=r"at most 2 GB, got a model of \d+ leaves with 3"):
        model.to_onnx(tmp_path / "model.onnx")


def test_trees_that_were_never_grown_are_refused(tmp_path):
    model = quick().fit(*rows_of(PLANTS.classes, n=90))
    (part,) = model._fitted.model.parts
    flipped = replace(part.forest, goes_left=~part.forest.goes_left)
    changed = StructentModel([Part(part.bins, flipped)], model._fitted.model.start)
    model.adopt(replace(model._fitted, model=changed))
    with pytest.raises(StructentError, match="numbers that go left are not the lowest ones"):
        model.to_onnx(tmp_path / "model.onnx")


@pytest.mark.parametrize("kind", [quick, StructuredLogisticRegression])
def test_without_onnx_the_extra_is_named(tmp_path, kind, monkeypatch):
    model = kind().fit(*rows_of(PLANTS.classes, n=60))
    monkeypatch.setitem(sys.modules, "onnx", None)
    advice = r"Writing ONNX files needs onnx: pip install 'structent\[onnx\]'"
    with pytest.raises(MissingDependencyError, match=advice):
        model.to_onnx(tmp_path / "model.onnx")
