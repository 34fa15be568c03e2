"""Model files: written whole, read on any machine, never run."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from structent import (
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    StructuredBoostingClassifier,
)
from structent.estimators import files
from tests.estimators.problems import ENGINES, PLANTS, rows_of

QUICK = {"n_estimators": 8, "learning_rate": 0.3, "max_depth": 3, "n_jobs": 1, "random_state": 0}
FEATURES, LABELS = rows_of(PLANTS.classes)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.structent"
    StructuredBoostingClassifier(PLANTS, **QUICK).fit(FEATURES, LABELS).save(path)
    return path


def assert_same(model, loaded, features):
    np.testing.assert_array_equal(model.predict_proba(features), loaded.predict_proba(features))
    np.testing.assert_array_equal(model.predict(features), loaded.predict(features))
    np.testing.assert_array_equal(model.classes_, loaded.classes_)
    assert model.classes_.dtype == loaded.classes_.dtype
    assert model.best_iteration_ == loaded.best_iteration_
    np.testing.assert_array_equal(model.feature_importances_, loaded.feature_importances_)
    np.testing.assert_array_equal(model.weights_, loaded.weights_)
    assert (model.max_depth_, model.split_search_) == (loaded.max_depth_, loaded.split_search_)


@ENGINES
@pytest.mark.parametrize("kind", [str, int, bool, float])
def test_a_loaded_model_predicts_the_same(tmp_path, engine, kind):
    labels = np.array([kind(value) for value in (0, 1)])[(FEATURES[:, 0] > 0).astype(int)]
    model = StructuredBoostingClassifier(**QUICK, **engine).fit(FEATURES, labels)
    model.save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert_same(model, loaded, FEATURES)
    np.testing.assert_array_equal(model.validation_log_loss_, loaded.validation_log_loss_)
    assert loaded.engine == model.engine
    assert loaded.n_features_in_ == 4


@ENGINES
def test_the_structure_goes_along_with_the_weights_that_were_chosen(tmp_path, engine):
    model = StructuredBoostingClassifier(PLANTS, weights=[0.25, 0.75], **QUICK, **engine)
    model.fit(FEATURES, LABELS).save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert loaded.structure == PLANTS.reweight([0.25, 0.75])
    assert_same(model, loaded, FEATURES)
    levels = (m.predict_level(FEATURES, "kind") for m in (model, loaded))
    np.testing.assert_array_equal(*levels)


@ENGINES
def test_a_sampler_goes_along_too(tmp_path, engine):
    ring = SpanningTreePartitions(LabelGraph([("a", "b"), ("b", "c"), ("c", "a")]), 2, 0.5, seed=4)
    features, labels = rows_of(["a", "b", "c"])
    model = StructuredBoostingClassifier(ring, **QUICK, **engine).fit(features, labels)
    model.save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert loaded.structure == ring
    assert_same(model, loaded, features)


@ENGINES
def test_categories_and_names_of_columns_go_along(tmp_path, engine):
    table = pd.DataFrame({"size": FEATURES[:, 0], "colour": np.where(FEATURES[:, 1] > 0, "r", "b")})
    model = StructuredBoostingClassifier(**QUICK, **engine).fit(table, LABELS)
    model.save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["size", "colour"]
    assert_same(model, loaded, table)


def test_the_parameters_go_along_and_what_was_chosen_for_them(tmp_path):
    given = {"max_depth": "auto", "split_search": "auto", "refit": False, "n_bags": 2,
             "max_leaves": 5, "max_bins": 16}  # fmt: skip
    model = StructuredBoostingClassifier(PLANTS, **{**QUICK, **given}).fit(FEATURES, LABELS)
    model.save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert {name: loaded.get_params()[name] for name in given} == given
    assert loaded.max_depth_ in (2, 3, 4, 6, 8)
    assert_same(model, loaded, FEATURES)


def test_texts_may_be_kept_along_with_a_model(tmp_path):
    model = StructuredBoostingClassifier(PLANTS, **QUICK).fit(FEATURES, LABELS)
    model.save(tmp_path / "model", attachments={"columns.json": '["size"]'})
    assert files.attachment(tmp_path / "model", "columns.json") == '["size"]'
    assert files.attachment(tmp_path / "model", "other") is None
    assert_same(model, StructuredBoostingClassifier.load(tmp_path / "model"), FEATURES)


def test_a_model_loads_where_neither_dask_nor_pandas_is_loaded(saved):
    code = (
        "import sys, numpy as np; from structent import StructuredBoostingClassifier as S;"
        f"model = S.load({str(saved)!r}); print(model.predict(np.zeros((1, 4)))[0]);"
        "print({'dask', 'distributed', 'torch', 'keras'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    predicted, loaded = result.stdout.split()
    assert predicted in PLANTS.classes
    assert loaded == "set()"


@pytest.mark.requires("xgboost")
def test_a_model_of_another_engine_says_what_it_needs(tmp_path):
    model = StructuredBoostingClassifier(engine="xgboost", **QUICK).fit(FEATURES, LABELS)
    model.save(tmp_path / "model")
    code = (
        "import sys; sys.modules.update(xgboost=None);"
        "from structent import StructuredBoostingClassifier as S;"
        f"S.load({str(tmp_path / 'model')!r})"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    advice = "needs xgboost: pip install 'structent[xgboost]'"
    assert result.stderr.splitlines()[-1].endswith(advice)


# Files that are not whole, not ours, or not of this time


@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.99])
def test_a_file_that_is_cut_off_is_refused(saved, kept):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(kept * len(content)) if kept < 1 else kept])
    with pytest.raises(StructentError, match=r"must be one that save\(\) wrote, got model"):
        StructuredBoostingClassifier.load(saved)


def test_a_file_with_changed_bytes_is_refused(saved):
    content = bytearray(saved.read_bytes())
    for place in range(len(content) // 3, len(content) // 3 + 20):
        content[place] ^= 0xFF
    saved.write_bytes(content)
    with pytest.raises(StructentError, match=r"must be one that save\(\) wrote"):
        StructuredBoostingClassifier.load(saved)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.zip"
    path.write_text("label,size\n")
    with pytest.raises(StructentError, match=r"got other.zip: it is no zip file"):
        StructuredBoostingClassifier.load(path)
    for members in ({}, {"metadata.json": "{}", "booster": ""}):
        with zipfile.ZipFile(path, "w") as file:
            for name, text in members.items():
                file.writestr(name, text)
        with pytest.raises(StructentError, match=r"got other.zip: it is a zip file of something"):
            StructuredBoostingClassifier.load(path)
    with pytest.raises(FileNotFoundError):
        StructuredBoostingClassifier.load(tmp_path / "nothing")


def rewritten(path, name, change):
    """Write the file again with one member changed."""
    with zipfile.ZipFile(path) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    members[name] = change(members[name])
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for member, value in members.items():
            file.writestr(member, value)
    path.write_bytes(content.getvalue())


def with_field(field, value):
    def change(text):
        return json.dumps({**json.loads(text), field: value})

    return change


def test_a_file_of_a_newer_format_is_refused(saved):
    rewritten(saved, "metadata.json", with_field("version", 99))
    with pytest.raises(StructentError, match="reads model files of version 1, got version 99"):
        StructuredBoostingClassifier.load(saved)


@pytest.mark.parametrize(
    "field", ["parameters", "categories", "start", "scores", "labels", "block_scores"]
)
def test_metadata_of_another_kind_are_refused(saved, field):
    rewritten(saved, "metadata.json", with_field(field, "nonsense"))
    with pytest.raises(StructentError):
        StructuredBoostingClassifier.load(saved)


@pytest.mark.parametrize("scores", [[0.5, 0.25], [-0.5], [float("nan")], [[0.5]], ["a"]])
def test_scores_that_no_calibration_leaves_are_refused(saved, scores):
    rewritten(saved, "metadata.json", with_field("block_scores", scores))
    with pytest.raises(StructentError, match=r"must be one that save\(\) wrote"):
        StructuredBoostingClassifier.load(saved)


def test_a_file_from_before_there_was_calibration_is_read(saved):
    def without_scores(text):
        content = json.loads(text)
        del content["block_scores"]
        return json.dumps(content)

    rewritten(saved, "metadata.json", without_scores)
    assert StructuredBoostingClassifier.load(saved).block_scores_ is None


def test_a_file_from_before_there_was_an_engine_of_our_own_is_read(saved):
    def without_engine(text):
        content = json.loads(text)
        del content["chosen"]
        for name in ("max_leaves", "max_bins", "refit", "n_bags"):
            del content["parameters"][name]
        return json.dumps(content)

    rewritten(saved, "metadata.json", without_engine)
    loaded = StructuredBoostingClassifier.load(saved)
    assert (loaded.max_depth_, loaded.refit, loaded.n_bags) == (3, False, 1)


@pytest.mark.parametrize("booster", [b"", b"{}", b"{not a booster", b"\x80\x04cos\nsystem\n"])
def test_another_booster_is_refused_before_the_engine_sees_it(saved, booster):
    rewritten(saved, "booster", lambda _: booster)
    with pytest.raises(StructentError, match="the booster is not the one that was saved"):
        StructuredBoostingClassifier.load(saved)


def test_an_engine_by_another_name_is_not_imported(saved):
    content = json.loads(zipfile.ZipFile(saved).read("metadata.json"))
    content["parameters"]["engine"] = "antigravity"
    rewritten(saved, "metadata.json", lambda _: json.dumps(content))
    with pytest.raises(StructentError, match="engine 'antigravity'"):
        StructuredBoostingClassifier.load(saved)
    assert "antigravity" not in sys.modules


def test_what_stood_there_stays_if_writing_fails(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(files.zipfile.ZipFile, "writestr", _full_disk)
    model = StructuredBoostingClassifier(PLANTS, **QUICK).fit(FEATURES, LABELS)
    with pytest.raises(OSError, match="No space left"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def _full_disk(*_arguments, **_options):
    raise OSError("No space left")


def test_a_structure_without_a_file_format_is_named(tmp_path):
    class Sampler:
        classes = PLANTS.classes

        def sample(self, _iteration):
            return PLANTS

    model = StructuredBoostingClassifier(Sampler(), **QUICK).fit(FEATURES, LABELS)
    with pytest.raises(StructentError, match="got Sampler, which has no file format"):
        model.save(tmp_path / "model")
