"""Model files: written whole, read on any machine, never run."""

import copy
import hashlib
import json
import re
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from structent import (
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
)
from structent.estimators import files
from tests.estimators.problems import ENGINES, LIGHTGBM, OURS, PLANTS, XGBOOST, rows_of

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
             "max_leaves": 5, "max_bins": 16, "leaf_smoothing": "auto"}  # fmt: skip
    model = StructuredBoostingClassifier(PLANTS, **{**QUICK, **given}).fit(FEATURES, LABELS)
    model.save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert {name: loaded.get_params()[name] for name in given} == given
    assert loaded.max_depth_ in (2, 3, 4, 6, 8)
    assert loaded.leaf_smoothing_ == model.leaf_smoothing_
    assert_same(model, loaded, FEATURES)


def test_what_is_loaded_smooths_its_leaves_as_before_when_it_is_fitted_again(tmp_path):
    settings = {**QUICK, "random_state": 0, "n_jobs": 1}
    model = StructuredBoostingClassifier(PLANTS, weights=1, leaf_smoothing=0.4, **settings)
    model.fit(FEATURES, LABELS).save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert loaded.leaf_smoothing == loaded.leaf_smoothing_ == 0.4
    again = clone(loaded).set_params(**settings).fit(FEATURES, LABELS)
    assert_same(model, again, FEATURES)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan"), "much", None])
def test_a_smoothing_that_no_model_has_is_refused(saved, smoothing):
    def changed(text):
        content = json.loads(text)
        content["chosen"]["leaf_smoothing"] = smoothing
        return json.dumps(content)

    rewritten(saved, "metadata.json", changed)
    with pytest.raises(StructentError, match="its content is not what it should be"):
        StructuredBoostingClassifier.load(saved)


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
    with pytest.raises(StructentError, match=r"must be one that structent saved, got model"):
        StructuredBoostingClassifier.load(saved)


def test_a_file_with_changed_bytes_is_refused(saved):
    content = bytearray(saved.read_bytes())
    for place in range(len(content) // 3, len(content) // 3 + 20):
        content[place] ^= 0xFF
    saved.write_bytes(content)
    with pytest.raises(StructentError, match=r"must be one that structent saved"):
        StructuredBoostingClassifier.load(saved)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.zip"
    path.write_text("label,size\n")
    with pytest.raises(StructentError, match=r"got other.zip: it is not a zip file"):
        StructuredBoostingClassifier.load(path)
    for members in ({}, {"metadata.json": "{}", "booster": ""}):
        with zipfile.ZipFile(path, "w") as file:
            for name, text in members.items():
                file.writestr(name, text)
        with pytest.raises(StructentError, match=r"got other.zip: it is a zip file of something"):
            StructuredBoostingClassifier.load(path)
    with pytest.raises(FileNotFoundError):
        StructuredBoostingClassifier.load(tmp_path / "nothing")


def members_of(path):
    with zipfile.ZipFile(path) as file:
        return {info.filename: file.read(info) for info in file.infolist()}


def write_members(path, members, digests=None, **compression):
    """Write a file with these members, and with digests that agree with them, or with others."""
    metadata = json.loads(members["metadata.json"])
    metadata["members"] = digests or {
        name: hashlib.sha256(content).hexdigest()
        for name, content in members.items()
        if name != "metadata.json"
    }
    members = {**members, "metadata.json": json.dumps(metadata).encode()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content, **compression)


def rewritten(path, name, change):
    """Write the file again with one member changed, and the old digests."""
    members = members_of(path)
    digests = json.loads(members["metadata.json"])["members"]
    write_members(path, {**members, name: change(members[name])}, digests)


def forged(path, name, change):
    """Write the file again with one member changed, and digests that agree with it."""
    members = members_of(path)
    write_members(path, {**members, name: change(members[name])})


def with_field(field, value):
    def change(text):
        return json.dumps({**json.loads(text), field: value}).encode()

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
    with pytest.raises(StructentError, match=r"must be one that structent saved"):
        StructuredBoostingClassifier.load(saved)


@pytest.mark.parametrize("booster", [b"", b"{}", b"{not a booster", b"\x80\x04cos\nsystem\n"])
def test_another_booster_is_refused_before_the_engine_sees_it(saved, booster):
    rewritten(saved, "booster", lambda _: booster)
    with pytest.raises(StructentError, match="its member 'booster' is not the one that was saved"):
        StructuredBoostingClassifier.load(saved)


def test_an_engine_by_another_name_is_not_imported(saved):
    content = json.loads(zipfile.ZipFile(saved).read("metadata.json"))
    content["parameters"]["engine"] = "antigravity"
    rewritten(saved, "metadata.json", lambda _: json.dumps(content))
    with pytest.raises(StructentError, match=r"engine must be .*, got 'antigravity'"):
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


# Members and digests


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file with every kind of member."""
    path = tmp_path_factory.mktemp("whole") / "model.structent"
    model = StructuredBoostingClassifier(PLANTS, **QUICK).fit(FEATURES, LABELS)
    model.save(path, attachments={"notes": "from the garden"})
    return path


@pytest.fixture
def copied(whole, tmp_path):
    path = tmp_path / whole.name
    path.write_bytes(whole.read_bytes())
    return path


def test_the_metadata_list_every_other_member_with_its_digest(whole):
    members = members_of(whole)
    digests = json.loads(members.pop("metadata.json"))["members"]
    assert set(members) == {"structure.json", "booster", "attachments/notes"}
    assert digests == {
        name: hashlib.sha256(content).hexdigest() for name, content in members.items()
    }


def assert_refused(path, reason, estimator=StructuredBoostingClassifier):
    for read in (estimator.load, lambda path: files.attachment(path, "notes")):
        with pytest.raises(StructentError, match=reason) as caught:
            read(path)
        assert len(str(caught.value)) < 500
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["structure.json", "booster", "attachments/notes"])
def test_a_member_that_is_missing_is_named(copied, name):
    members = members_of(copied)
    digests = json.loads(members["metadata.json"])["members"]
    del members[name]
    write_members(copied, members, digests)
    assert_refused(copied, f"got model.structent: its member '{name}' is missing")


@pytest.mark.parametrize("name", ["attachments/other", "coefficients", "x" * 1000, "../up"])
def test_a_member_that_was_added_is_named(copied, name):
    members = members_of(copied)
    digests = json.loads(members["metadata.json"])["members"]
    write_members(copied, {**members, name: b"something"}, digests)
    assert_refused(copied, f"it has a member '{re.escape(name[:60])}' that was not saved")


@pytest.mark.parametrize("name", ["structure.json", "booster", "attachments/notes"])
def test_a_member_that_was_changed_is_named(copied, name):
    rewritten(copied, name, lambda content: content[:-1] + bytes([content[-1] ^ 1]))
    assert_refused(copied, f"its member '{name}' is not the one that was saved")


def test_members_that_changed_places_are_named(copied):
    members = members_of(copied)
    digests = json.loads(members["metadata.json"])["members"]
    one, other = "structure.json", "attachments/notes"
    write_members(copied, {**members, one: members[other], other: members[one]}, digests)
    assert_refused(copied, "is not the one that was saved")


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_a_member_that_is_there_twice_is_refused(copied):
    with zipfile.ZipFile(copied, "a") as file:
        file.writestr("structure.json", file.read("structure.json"))
    assert_refused(copied, "two of its members have the same name")


@pytest.mark.parametrize("listed", [None, [], "all", {"booster": None}, {"booster": ["a"]}, {}])
def test_a_list_of_members_that_is_none_is_refused(copied, listed):
    members = members_of(copied)
    metadata = {**json.loads(members["metadata.json"]), "members": listed}
    with zipfile.ZipFile(copied, "w") as file:
        for name, content in (members | {"metadata.json": json.dumps(metadata)}).items():
            file.writestr(name, content)
    assert_refused(copied, "do not list its members|is not the one|that was not saved")


def test_no_byte_of_the_directory_changes_the_model_unnoticed(whole, tmp_path):
    """One flipped byte there used to lose the structure, and with it the order of the classes."""
    content = whole.read_bytes()
    before = StructuredBoostingClassifier.load(whole)
    path = tmp_path / "changed"
    n_refused = 0
    for place in range(content.index(b"PK\x01\x02"), len(content)):
        for bit in (0x01, 0x20, 0x80):
            changed = bytearray(content)
            changed[place] ^= bit
            path.write_bytes(changed)
            try:
                loaded = StructuredBoostingClassifier.load(path)
            except StructentError:
                n_refused += 1
                continue
            assert loaded.structure_ == before.structure_
            assert loaded._fitted.model.to_bytes() == before._fitted.model.to_bytes()
            assert files.attachment(path, "notes") == "from the garden"
    assert n_refused > 300


# Bounds


def peak_memory(load, path):
    """Return the bytes that Python took at most to refuse a file."""
    tracemalloc.start()
    try:
        with pytest.raises(StructentError) as caught:
            load(path)
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "name", ["metadata.json", "structure.json", "booster", "attachments/notes"]
)
def test_a_small_file_does_not_take_a_lot_of_memory(copied, name):
    """A file of 4.7 MB used to take 2.3 GB."""
    members = members_of(copied)
    with zipfile.ZipFile(copied, "w", zipfile.ZIP_DEFLATED) as file:
        for each, content in (members | {name: b" " * 50_000_000}).items():
            file.writestr(each, content)
    assert copied.stat().st_size < 100_000
    peak, message = peak_memory(StructuredBoostingClassifier.load, copied)
    assert peak < 1_000_000
    assert "is compressed or encrypted" in message or "is larger than what it comes" in message


N_BYTES = 100_000
RANDOM = np.random.default_rng(0)
NOISE = RANDOM.integers(128, size=3 * N_BYTES // 2, dtype=np.uint8).tobytes()
DIGITS = "".join(map(str, RANDOM.integers(10, size=3 * N_BYTES))).encode()
# So little of it can be compressed that the rest can be compressed as much as it can.
IN_OURS = b"[" + b"[]," * 6 * N_BYTES + NOISE
IN_XGBOOST = b"[#L%bSL%b" % ((struct.pack(">q", len(NOISE)),) * 2) + NOISE
IN_LIGHTGBM = DIGITS + b"\nend of trees\n"


def small(content, engine=OURS, member="booster"):
    needs = [] if engine is OURS else [pytest.mark.requires(engine["engine"])]
    return pytest.param(engine, member, content, marks=needs)


@pytest.mark.parametrize(
    ("engine", "name", "content"),
    [
        small(b', "labels": [' + b"[]," * N_BYTES + b"0]}", member="metadata.json"),
        small(b"[" + b'{"a":1},' * N_BYTES + b"0]", member="structure.json"),
        small(IN_OURS),
        small(IN_XGBOOST + b"{}" * 9 * N_BYTES, XGBOOST),
        small(IN_XGBOOST + b"i\1" * 9 * N_BYTES, XGBOOST),
        small(b"\nTree=" * 2 * N_BYTES + IN_LIGHTGBM, LIGHTGBM),
        small(b"\nTree=0\n" + b"a\n" * 8 * N_BYTES + IN_LIGHTGBM, LIGHTGBM),
    ],
    ids=["labels", "structure", "ours", "objects", "numbers", "trees", "lines"],
)
def test_what_can_be_in_a_small_file_takes_at_most_a_hundred_times_its_size(
    small_models, engine, name, content
):
    path = small_models(engine)
    members = members_of(path)
    if name == "metadata.json":
        content = members[name][:-1] + content  # the last field of a name counts
    with zipfile.ZipFile(path, "w") as file:
        members[name] = content
        metadata = members.pop("metadata.json")
        digests = {each: hashlib.sha256(inside).hexdigest() for each, inside in members.items()}
        metadata = metadata.replace(b'"members": {', b'"members": ' + json.dumps(digests).encode() +
                                    b', "old": {')  # fmt: skip
        file.writestr("metadata.json", metadata)
        for each, inside in members.items():
            kind = zipfile.ZIP_DEFLATED if each == "booster" else zipfile.ZIP_STORED
            file.writestr(each, inside, kind)
    peak, message = peak_memory(StructuredBoostingClassifier.load, path)
    assert re.search("labels, not all|a structure file must|the trees in the file are", message)
    assert peak < 100 * path.stat().st_size


def test_a_member_that_is_larger_than_it_says_is_not_read_on(copied):
    members = members_of(copied)
    with zipfile.ZipFile(copied, "w") as file:
        for name, content in members.items():
            if name != "booster":
                file.writestr(name, content)
        file.writestr("booster", b" " * 50_000_000, zipfile.ZIP_DEFLATED)
    content = bytearray(copied.read_bytes())
    size = struct.pack("<I", 50_000_000)
    for _ in range(2):  # in the directory and before the member
        place = content.index(size)
        content[place : place + 4] = struct.pack("<I", 1000)
    copied.write_bytes(content)
    peak, message = peak_memory(StructuredBoostingClassifier.load, copied)
    assert peak < 1_000_000
    assert "Bad CRC-32" in message


def test_members_that_share_their_bytes_are_refused(copied):
    """So many names for the same bytes could stand for any amount of memory."""
    with zipfile.ZipFile(copied, "a") as file:
        first = file.getinfo("booster")
        for number in range(100):
            other = copy.copy(first)
            other.filename = f"attachments/{number}"
            file.filelist.append(other)
            file.NameToInfo[other.filename] = other
        file._didModify = True
    assert_refused(copied, "its members are larger than the file|is compressed or encrypted|differ")


def test_a_member_beyond_any_bound_is_refused_and_not_written(copied, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 100)
    assert_refused(copied, "must have at most 100 bytes, got")
    model = StructuredBoostingClassifier(PLANTS, **QUICK).fit(FEATURES, LABELS)
    with pytest.raises(StructentError, match=r"could not be loaded again: .* at most 100 b"):
        model.save(tmp_path / "other")
    assert list(tmp_path.iterdir()) == [copied]


def test_what_compresses_too_well_is_stored_as_it_is(tmp_path):
    features = np.zeros((40, 2000))
    features[:, 0] = np.arange(40) % 2
    model = StructuredLogisticRegression().fit(features, np.arange(40) % 2)
    model.save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as file:
        assert file.getinfo("coefficients").compress_type == zipfile.ZIP_STORED
    loaded = StructuredLogisticRegression.load(tmp_path / "model")
    np.testing.assert_array_equal(model.coef_, loaded.coef_)


@pytest.mark.parametrize("name", ["metadata.json", "structure.json"])
def test_json_that_is_nested_too_deep_is_refused(copied, name):
    members = members_of(copied)
    deep = b"[" * 100_000 + b"]" * 100_000
    forged_members = {**members, name: deep}
    if name == "metadata.json":
        with zipfile.ZipFile(copied, "w") as file:
            for each, content in forged_members.items():
                file.writestr(each, content)
        assert_refused(copied, "its metadata are not JSON")
    else:
        write_members(copied, forged_members)
        with pytest.raises(StructentError, match="JSON must be nested at most 100 deep"):
            StructuredBoostingClassifier.load(copied)


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "<U1000000000"},
        {"dtype": "<U99999999"},
        {"dtype": "O8"},
        {"dtype": "V100"},
        {"dtype": "i4,i4"},
        {"dtype": "(1000,1000,1000)i4"},
        {"dtype": 8},
        {"dtype": "<i1", "labels": [0, 300]},
        {"dtype": "<i8", "labels": [0, 0.5]},
        {"dtype": "<i8", "labels": [0, 10**400]},
        {"dtype": "<U1", "labels": ["oak", "ash"]},
        {"dtype": "|O", "labels": [{}, []]},
        {"dtype": "|O", "labels": ["a", "b" * 10_001]},
        {"labels": [0, 0]},
        {"labels": [0]},
        {"labels": []},
        {"labels": [0, 1, 2]},
        {"labels": [float("nan"), 0], "dtype": "<f8"},
        {"labels": list(range(100_000))},
        {"start": []},
        {"start": [0.0]},
        {"start": [0.0, 0.0, 0.0]},
        {"start": [[0.0], [0.0]]},
        {"start": [float("nan"), 0]},
        {"start": [1e300, 0]},
        {"start": [10**400, 0]},
        {"start": [None, 0]},
        {"scores": [10**400]},
        {"scores": [{}]},
        {"block_scores": [10**400]},
        {"categories": []},
        {"categories": [None] * 3},
        {"categories": [None] * 5},
        {"categories": [None] * 3 + ["text"]},
        {"categories": [None] * 3 + [[[]]]},
        {"categories": [None] * 3 + [{}]},
        {"is_one_hot": None},
        {"feature_names": []},
        {"feature_names": ["a"] * 5},
        {"feature_names": [["a"]] * 4},
        {"feature_names": 4},
        {"chosen": None},
        {"chosen": {}},
        {"chosen": {"max_depth": 10**9, "split_search": "full", "leaf_smoothing": 0}},
        {"chosen": {"max_depth": True, "split_search": "full", "leaf_smoothing": 0}},
        {"chosen": {"max_depth": 3, "split_search": "x", "leaf_smoothing": 0}},
        {"chosen": {"max_depth": 3, "split_search": [], "leaf_smoothing": 0}},
        {"chosen": {"max_depth": 3, "split_search": "full", "leaf_smoothing": 10**400}},
        {"parameters": None},
        {"parameters": []},
        {"parameters": {}},
    ],
)
@ENGINES
def test_metadata_that_do_not_belong_to_the_booster_are_refused(small_models, changes, engine):
    path = small_models(engine)
    forged(path, "metadata.json", lambda text: json.dumps({**json.loads(text), **changes}).encode())
    with pytest.raises(StructentError, match="its content is not what it should be") as caught:
        StructuredBoostingClassifier.load(path)
    assert len(str(caught.value)) < 500


@pytest.fixture(scope="module")
def contents_of_small_models():
    return {}


@pytest.fixture
def small_models(contents_of_small_models, tmp_path):
    """Give the path of a copy of a model of two classes, without a structure, for an engine."""

    def of(engine):
        path = tmp_path / "model.structent"
        key = tuple(engine.values())
        if key not in contents_of_small_models:
            labels = (FEATURES[:, 0] > 0).astype(int)
            model = StructuredBoostingClassifier(**{**QUICK, "n_estimators": 2}, **engine)
            model.fit(FEATURES, labels).save(path)
            contents_of_small_models[key] = path.read_bytes()
        path.write_bytes(contents_of_small_models[key])
        return path

    return of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 10**400),
        ("learning_rate", 10**400),
        ("learning_rate", float("nan")),
        ("max_depth", 31),
        ("engine", ["xgboost"]),
        ("engine", "x" * 1000),
        ("trees", {}),
        ("refit", [[]]),
        ("validation_fraction", {}),
    ],
)
def test_parameters_that_no_model_has_are_refused(saved, name, value):
    def change(text):
        content = json.loads(text)
        content["parameters"][name] = value
        return json.dumps(content).encode()

    forged(saved, "metadata.json", change)
    with pytest.raises(StructentError, match="its content is not what it should be"):
        StructuredBoostingClassifier.load(saved)


def test_a_structure_of_other_classes_is_refused(saved):
    other = PLANTS.relabel({"rose": "rose", "oak": "ash", "ash": "oak"})
    forged(saved, "structure.json", lambda _: other.to_json().encode())
    with pytest.raises(StructentError, match="the labels are not the classes of the structure"):
        StructuredBoostingClassifier.load(saved)


def test_parameters_that_could_not_be_loaded_are_not_saved(tmp_path):
    model = StructuredBoostingClassifier(PLANTS, **QUICK).fit(FEATURES, LABELS)
    model.set_params(max_depth="deep")
    with pytest.raises(
        StructentError, match="not saved if it could not be loaded again: max_depth"
    ):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_attachment_that_is_no_text_is_refused(copied):
    forged(copied, "attachments/notes", lambda _: b"\xff")
    with pytest.raises(StructentError, match="its member attachments/notes is not text"):
        files.attachment(copied, "notes")
