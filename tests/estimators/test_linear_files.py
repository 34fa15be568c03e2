"""Files of linear models: what is loaded predicts the same, bit for bit, and no code is run."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from structent import (
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
    ordinal,
)
from structent.estimators import files
from tests.estimators.problems import PLANTS, rows_of
from tests.estimators.test_files import members_of, rewritten, with_field, write_members

FEATURES, LABELS = rows_of(PLANTS.classes, n=120)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.structent"
    StructuredLogisticRegression(PLANTS).fit(FEATURES, LABELS).save(path)
    return path


def assert_comes_back(model, path, features):
    """Save, load and compare; return the loaded model."""
    model.save(path)
    loaded = StructuredLogisticRegression.load(path)
    for name in ("coef_", "intercept_", "weights_", "classes_"):
        one, other = getattr(model, name), getattr(loaded, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    for method in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
        one, other = (getattr(m, method)(features) for m in (model, loaded))
        np.testing.assert_array_equal(one, other)
    assert loaded.structure_ == model.structure_
    assert loaded.structure == model.structure_
    assert loaded.n_iter_ == model.n_iter_
    assert loaded.n_features_in_ == model.n_features_in_
    kept = ("C", "tol", "max_iter", "warm_start", "allow_blocks")
    assert [loaded.get_params()[n] for n in kept] == [model.get_params()[n] for n in kept]
    return loaded


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [str, int, bool, float])
def test_a_model_without_a_structure_comes_back(tmp_path, kind, precision):
    features = FEATURES.astype(precision)
    labels = np.array([kind(value) for value in (0, 1)])[(FEATURES[:, 0] > 0).astype(int)]
    model = StructuredLogisticRegression(C=0.5, tol=1e-3).fit(features, labels)
    assert assert_comes_back(model, tmp_path / "model", features).structure is None


@pytest.mark.parametrize("weights", [None, 0.25, [0.25, 0.75], "auto"])
def test_the_structure_goes_along_with_the_weights_that_were_used(tmp_path, weights):
    model = StructuredLogisticRegression(PLANTS, weights=weights, random_state=0)
    loaded = assert_comes_back(model.fit(FEATURES, LABELS), tmp_path / "model", FEATURES)
    levels = (m.predict_level(FEATURES, "kind") for m in (model, loaded))
    np.testing.assert_array_equal(*levels)


def test_classes_that_are_tuples_come_back(tmp_path):
    pairs = circular(["spring", "summer", "autumn"], width=2).product(ordinal([1, 2]))
    features, places = rows_of(range(pairs.n_classes), n=150)
    labels = [pairs.classes[place] for place in places]
    model = StructuredLogisticRegression(pairs).fit(features, labels)
    loaded = assert_comes_back(model, tmp_path / "model", features)
    assert loaded.classes_[0] == ("autumn", 1)
    assert loaded.score(features, labels) == model.score(features, labels)


def test_a_model_of_labels_that_may_be_blocks_comes_back(tmp_path):
    kinds = PLANTS.levels["kind"][0].coarsen(LABELS)
    labels = np.where(np.arange(len(LABELS)) % 3, LABELS, kinds)
    model = StructuredLogisticRegression(PLANTS, allow_blocks=True).fit(FEATURES, labels)
    loaded = assert_comes_back(model, tmp_path / "model", FEATURES)
    assert loaded.allow_blocks
    again = loaded.fit(FEATURES, labels)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_what_calibration_learned_comes_back(tmp_path):
    held_out, true = rows_of(PLANTS.classes, n=80, seed=1)
    model = StructuredLogisticRegression(PLANTS).fit(FEATURES, LABELS)
    model.calibrate_blocks(held_out, true)
    loaded = assert_comes_back(model, tmp_path / "model", FEATURES)
    np.testing.assert_array_equal(loaded.block_scores_, model.block_scores_)
    answers = [m.predict_blocks(FEATURES, confidence=0.8) for m in (model, loaded)]
    assert answers[0].sets == answers[1].sets


def test_a_short_form_comes_back_as_the_structure_that_was_built(tmp_path):
    features, labels = rows_of([1, 2, 3])
    model = StructuredLogisticRegression("ordinal").fit(features, labels)
    assert assert_comes_back(model, tmp_path / "model", features).structure == ordinal([1, 2, 3])


def test_names_of_columns_and_sparse_tables_are_known_again(tmp_path):
    table = pd.DataFrame(FEATURES, columns=["a", "b", "c", "d"])
    model = StructuredLogisticRegression(PLANTS).fit(table, LABELS)
    loaded = assert_comes_back(model, tmp_path / "model", table)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(table.rename(columns={"a": "z"}))
    sparse = csr_array(FEATURES)
    model = StructuredLogisticRegression(PLANTS).fit(sparse, LABELS)
    assert_comes_back(model, tmp_path / "model", sparse)


def test_training_goes_on_from_a_loaded_model(saved):
    loaded = StructuredLogisticRegression.load(saved).set_params(warm_start=True, max_iter=3)
    before = loaded.coef_.copy()
    assert loaded.fit(FEATURES, LABELS).n_iter_ <= 1
    np.testing.assert_allclose(loaded.coef_, before, atol=1e-3)


def test_texts_may_be_kept_along_with_a_model(tmp_path):
    model = StructuredLogisticRegression(PLANTS).fit(FEATURES, LABELS)
    model.save(tmp_path / "model", attachments={"notes": "from the garden"})
    assert files.attachment(tmp_path / "model", "notes") == "from the garden"


def test_a_model_must_be_fitted_to_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        StructuredLogisticRegression(PLANTS).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# Files of other models, and files that were changed


def test_a_file_of_the_other_estimator_is_named(saved, tmp_path):
    with pytest.raises(StructentError) as caught:
        StructuredBoostingClassifier.load(saved)
    assert str(caught.value) == (
        "StructuredBoostingClassifier.load reads the file of such a model, got model.structent, "
        "which holds a StructuredLogisticRegression; load it with that class"
    )
    trees = StructuredBoostingClassifier(PLANTS, n_estimators=2, n_jobs=1).fit(FEATURES, LABELS)
    trees.save(tmp_path / "trees")
    with pytest.raises(StructentError, match="holds a StructuredBoostingClassifier; load it with"):
        StructuredLogisticRegression.load(tmp_path / "trees")


def test_other_files_are_refused(tmp_path, saved):
    path = tmp_path / "other"
    path.write_text("label,size\n")
    with pytest.raises(
        StructentError, match=r"must be one that structent saved, got other: it is no"
    ):
        StructuredLogisticRegression.load(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("coefficients", b"")
    with pytest.raises(StructentError, match="it is a zip file of something else"):
        StructuredLogisticRegression.load(path)
    with zipfile.ZipFile(path, "w") as file, zipfile.ZipFile(saved) as whole:
        file.writestr("metadata.json", whole.read("metadata.json"))
    with pytest.raises(StructentError, match="its member 'coefficients' is missing"):
        StructuredLogisticRegression.load(path)


def test_coefficients_that_were_changed_are_refused(saved):
    rewritten(saved, "coefficients", lambda content: content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StructentError, match="'coefficients' is not the one that was saved"):
        StructuredLogisticRegression.load(saved)


def test_a_file_that_is_cut_off_is_refused(saved):
    saved.write_bytes(saved.read_bytes()[:200])
    with pytest.raises(StructentError, match=r"must be one that structent saved"):
        StructuredLogisticRegression.load(saved)


COEFFICIENTS = np.zeros((3, 5))


@pytest.mark.parametrize(
    ("content", "about"),
    [
        (b"", {}),
        (COEFFICIENTS.tobytes()[:-1], {}),
        (COEFFICIENTS.tobytes() + b"\0" * 8, {}),
        (np.full((3, 5), np.nan).tobytes(), {}),
        (COEFFICIENTS[:2].tobytes(), {"shape": [2, 5]}),
        (COEFFICIENTS[:, :1].tobytes(), {"shape": [3, 1]}),
        (COEFFICIENTS.tobytes(), {"shape": [15]}),
        (COEFFICIENTS.tobytes(), {"shape": [-3, -5]}),
        (COEFFICIENTS.tobytes(), {"shape": [3, 10**400]}),
        (COEFFICIENTS.tobytes(), {"shape": [3.0, 5.0]}),
        (COEFFICIENTS.tobytes(), {"shape": 3}),
        (COEFFICIENTS.tobytes(), {"dtype": "<i8"}),
        (COEFFICIENTS.tobytes(), {"dtype": "|O"}),
        (COEFFICIENTS.tobytes(), {"dtype": ["<f8"]}),
    ],
)
def test_what_cannot_be_coefficients_is_refused(saved, content, about):
    members = members_of(saved)
    metadata = json.loads(members["metadata.json"])
    metadata["coefficients"] |= about
    changed = {"metadata.json": json.dumps(metadata).encode(), "coefficients": content}
    write_members(saved, {**members, **changed})
    with pytest.raises(StructentError, match="its content is not what it should be"):
        StructuredLogisticRegression.load(saved)


@pytest.mark.parametrize("field", ["parameters", "labels", "n_iter", "block_scores"])
def test_metadata_of_another_kind_are_refused(saved, field):
    rewritten(saved, "metadata.json", with_field(field, "nonsense"))
    with pytest.raises(StructentError):
        StructuredLogisticRegression.load(saved)


def test_a_file_of_a_newer_format_is_refused(saved):
    rewritten(saved, "metadata.json", with_field("version", 99))
    with pytest.raises(StructentError, match="reads model files of version 1, got version 99"):
        StructuredLogisticRegression.load(saved)


def test_the_metadata_are_plain_json(saved):
    content = json.loads(zipfile.ZipFile(saved).read("metadata.json"))
    assert content["format"] == "structent-linear"
    assert content["parameters"]["C"] == 1.0


# Models of tables

TABLE = pd.DataFrame(
    {
        "size": np.where(FEATURES[:, 0] > 1, np.nan, 1000 * FEATURES[:, 0]),
        "colour": np.where(FEATURES[:, 1] > 0, "red", "blue"),
        "count": FEATURES[:, 2] / 3,
    }
)
UNSEEN = TABLE.assign(colour="mauve", count=np.nan)


@pytest.fixture
def of_table(tmp_path):
    path = tmp_path / "table.structent"
    StructuredLogisticRegression(PLANTS, encode=True).fit(TABLE, LABELS).save(path)
    return path


@pytest.mark.parametrize("weights", [None, "auto"])
def test_a_model_of_a_table_comes_back_bit_for_bit(tmp_path, weights):
    model = StructuredLogisticRegression(PLANTS, weights=weights, encode=True, random_state=0)
    model.fit(TABLE, LABELS).calibrate_blocks(TABLE, LABELS)
    for rows in (TABLE, UNSEEN, TABLE[:1]):
        loaded = assert_comes_back(model, tmp_path / "model", rows)
    assert loaded.encode
    assert loaded.coef_names_ == model.coef_names_
    assert loaded.feature_names_in_.tolist() == ["size", "colour", "count"]
    again = loaded.fit(TABLE, LABELS)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_categories_and_numbers_come_back(tmp_path_factory, data):
    numbers = st.floats(width=32, allow_infinity=False) | st.none()
    kinds = st.sampled_from([st.text(max_size=4), st.integers(-(2**70), 2**70), st.booleans()])
    column = st.lists(data.draw(kinds) | st.none(), min_size=8, max_size=8)
    table = pd.DataFrame(
        {
            "number": pd.Series(data.draw(st.lists(numbers, min_size=8, max_size=8)), dtype=float),
            "kind": pd.Series(data.draw(column), dtype=object).astype("category"),
        }
    )
    model = StructuredLogisticRegression(encode=True).fit(table, list("aabbccab"))
    assert_comes_back(model, tmp_path_factory.mktemp("models") / "model", table)


def changed_design(**change):
    def changed(text):
        content = json.loads(text)
        content["design"] |= change
        return json.dumps(content)

    return changed


@pytest.mark.parametrize(
    "change",
    [
        {"categories": None},
        {"categories": []},
        {"categories": [None, ["blue", "red", "green"], None]},
        {"categories": [None, ["blue"], None]},
        {"categories": [None, ["blue", {}], None]},
        {"categories": [["a"], ["blue", "red"], None]},
        {"categories": [None, ["blue", "red"]]},
        {"centre": [0.0, 0.0]},
        {"centre": [float("nan"), 0.0, 0.0]},
        {"centre": [1e308, 0.0, 0.0]},
        {"centre": ["x", 0.0, 0.0]},
        {"scale": [0.0, 1.0, 1.0]},
        {"scale": [float("inf"), 1.0, 1.0]},
        {"scale": 1.0},
        {"has_missing": [False, False, False]},
        {"has_missing": [1, 0, 0]},
        {"has_missing": [False, True, False]},
        {"has_missing": None},
    ],
)
def test_a_design_that_does_not_go_with_the_coefficients_is_refused(of_table, change):
    rewritten(of_table, "metadata.json", changed_design(**change))
    with pytest.raises(StructentError, match="its content is not what it should be") as caught:
        StructuredLogisticRegression.load(of_table)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("design", ["nonsense", [], {}, 1, None])
def test_what_is_no_design_is_refused(of_table, design):
    rewritten(of_table, "metadata.json", with_field("design", design))
    with pytest.raises(StructentError, match="its content is not what it should be"):
        StructuredLogisticRegression.load(of_table)


def test_the_class_that_loads_a_file_is_named(saved):
    assert files.estimator_of(saved) == "StructuredLogisticRegression"
