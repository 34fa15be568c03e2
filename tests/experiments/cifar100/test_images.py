import io
import pickle
import subprocess
import sys
import tarfile

import numpy as np
import pytest

from structent.errors import MissingDependencyError, StructentError
from structent.experiments.cifar100.images import read_images
from structent.structure.catalog import cifar100

RNG = np.random.default_rng(0)
ARRAYS = {
    "x_train": RNG.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8),
    "y_train": np.array([0, 99, 3, 3, 50], dtype=np.uint8),
    "x_test": RNG.integers(0, 256, (2, 32, 32, 3), dtype=np.uint8),
    "y_test": np.array([7, 8], dtype=np.uint8),
}
NAMES = list(cifar100().classes)


@pytest.fixture
def npz(tmp_path):
    """Write the arrays to a file, some of them changed."""

    def write(**changed):
        np.savez(tmp_path / "cifar100.npz", **{**ARRAYS, **changed})
        return tmp_path / "cifar100.npz"

    return write


@pytest.fixture
def pickles(tmp_path):
    """Write the arrays as the original files, some of them changed."""

    def write(**changed):
        folder = tmp_path / "cifar-100-python"
        folder.mkdir()
        for name, content in {**_original(), **changed}.items():
            (folder / name).write_bytes(pickle.dumps(content, protocol=2))
        return folder

    return write


def test_an_npz_file_is_read(npz):
    _assert_same(read_images(npz()))


def test_labels_in_a_column_are_read(npz):
    path = npz(y_train=ARRAYS["y_train"][:, None], y_test=ARRAYS["y_test"][:, None])

    _assert_same(read_images(path))


def test_a_folder_with_an_npz_file_is_read(npz):
    _assert_same(read_images(npz().parent))


def test_an_npz_file_may_have_the_names_of_the_classes(npz):
    _assert_same(read_images(npz(class_names=np.array(NAMES))))


def test_the_original_folder_is_read(pickles):
    _assert_same(read_images(pickles()))


def test_a_folder_with_the_original_folder_is_read(pickles):
    _assert_same(read_images(pickles().parent))


@pytest.mark.parametrize("name", ["cifar-100-python.tar.gz", "mine.tgz", "mine.tar"])
def test_the_original_archive_is_read(tmp_path, name):
    _assert_same(read_images(_archive(tmp_path / name)))


def test_a_folder_with_the_original_archive_is_read(tmp_path):
    _archive(tmp_path / "cifar-100-python.tar.gz")

    _assert_same(read_images(tmp_path))


def test_a_row_has_all_reds_then_all_greens_then_all_blues(pickles):
    row = RNG.integers(0, 256, (1, 3072), dtype=np.uint8)
    images = read_images(pickles(test={b"data": row, b"fine_labels": [1]}))

    for colour, line, column in ((0, 0, 1), (0, 1, 0), (1, 0, 0), (2, 31, 30)):
        assert images.x_test[0, line, column, colour] == row[0, 1024 * colour + 32 * line + column]


@pytest.mark.requires("keras")
def test_without_a_path_keras_downloads(monkeypatch):
    import keras

    def load_data():
        x_train, y_train, x_test, y_test = ARRAYS.values()
        return (x_train, y_train[:, None]), (x_test, y_test[:, None])

    monkeypatch.setattr(keras.datasets.cifar100, "load_data", load_data)

    _assert_same(read_images(None))


@pytest.mark.requires("keras")
def test_a_download_that_fails_is_a_sentence(monkeypatch):
    import keras

    def load_data():
        raise Exception("URL fetch failure on https://...: None -- unreachable")

    monkeypatch.setattr(keras.datasets.cifar100, "load_data", load_data)

    with pytest.raises(StructentError, match=r"could not download.*unreachable.*path of a copy"):
        read_images(None)


def test_without_keras_the_download_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)

    with pytest.raises(MissingDependencyError, match=r"structent\[keras\]"):
        read_images(None)


def test_keras_is_not_loaded_for_a_file(npz):
    program = (
        "import sys; from pathlib import Path; "
        "from structent.experiments.cifar100.images import read_images; "
        "read_images(Path(sys.argv[1])); assert 'keras' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", program, str(npz())], check=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"x_train": ARRAYS["x_train"] / 255},
            r"x_train .* uint8, got \(5, 32, 32, 3\) of float64",
        ),
        ({"x_test": ARRAYS["x_test"].transpose(0, 3, 1, 2)}, r"x_test .* got \(2, 3, 32, 32\)"),
        ({"x_test": ARRAYS["x_test"][0]}, r"x_test .* got \(32, 32, 3\)"),
        ({"x_test": ARRAYS["x_test"][:0], "y_test": ARRAYS["y_test"][:0]}, r"got \(0, 32, 32, 3\)"),
        ({"y_train": ARRAYS["y_test"]}, r"y_train .* each of the 5 images, got \(2,\)"),
        ({"y_train": np.eye(5, dtype=int)}, r"y_train .* got \(5, 5\)"),
        ({"y_train": np.zeros(5)}, "y_train .* whole number .* of float64"),
        ({"y_test": np.array([7, 100])}, "y_test .* from 0 to 99, got 7 to 100"),
        ({"y_test": np.array([-1, 8])}, "y_test .* from 0 to 99, got -1 to 8"),
    ],
)
def test_arrays_that_are_not_cifar_100_are_refused(npz, changed, message):
    _assert_refused(npz(**changed), message)


def test_names_in_another_order_are_refused(npz):
    names = ["aquarium_fish", "apple", *NAMES[2:]]

    _assert_refused(
        npz(class_names=np.array(names)),
        "class_names .* alphabetical order, got 'aquarium_fish' for class 0, which is 'apple'",
    )


def test_pickled_names_in_another_order_are_refused(pickles):
    names = [name.encode() for name in [*NAMES[:98], "worm", "woman"]]

    _assert_refused(
        pickles(meta={b"fine_label_names": names}),
        "fine_label_names .* got 'worm' for class 98, which is 'woman'",
    )


def test_names_of_superclasses_are_refused(npz):
    names = np.array(sorted({"fish", "flowers", "people"}))

    _assert_refused(npz(class_names=names), "must be the 100 fine classes, got 3 names")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train", {b"data": np.zeros((1, 3072), np.uint8)}, r"must have fine_labels \(list\)"),
        ("test", {b"fine_labels": [1]}, r"must have data \(ndarray\), got fine_labels \(list\)"),
        ("test", {}, "must have data .* got nothing"),
        ("meta", {b"label_names": [b"airplane"]}, "must have fine_label_names"),
        (
            "train",
            {b"data": [[1, 2], [3]], b"fine_labels": [1]},
            r"must have data \(ndarray\), got data \(list\)",
        ),
    ],
)
def test_pickles_of_other_data_are_refused(pickles, name, content, message):
    _assert_refused(pickles(**{name: content}), f"{name} {message}")


def test_rows_of_another_length_are_refused(pickles):
    rows = {b"data": np.zeros((1, 784), np.uint8), b"fine_labels": [1]}

    _assert_refused(pickles(test=rows), r"data of .*test must be \(n, 3072\) bytes, got \(1, 784\)")


def test_ragged_labels_are_refused(pickles):
    rows = {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [[1], [1, 2]]}

    _assert_refused(pickles(test=rows), "y_test .* each of the 2 images, got .* of object")


@pytest.mark.parametrize("name", ["test", "meta"])
def test_a_folder_without_one_of_the_files_is_refused(pickles, name):
    folder = pickles()
    (folder / name).unlink()

    _assert_refused(folder, f"must have the files train, test and meta, got no {name}")


def test_a_path_that_does_not_exist_is_refused(tmp_path):
    _assert_refused(tmp_path / "nothing", r"cifar100\.npz, the folder .* got .* does not exist")


def test_a_folder_with_nothing_is_refused(tmp_path):
    _assert_refused(tmp_path, r"cifar-100-python\.tar\.gz, .* which has none of them")


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "images.zip").write_bytes(b"")

    _assert_refused(tmp_path / "images.zip", r"CIFAR-100 must be .* got the file .*images\.zip")


def test_an_npz_file_without_a_part_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=ARRAYS["x_train"], y_train=ARRAYS["y_train"])

    _assert_refused(tmp_path / "a.npz", "must have x_train, y_train, x_test, y_test, got no x_test")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.99])
def test_an_npz_file_that_ends_early_is_refused(npz, share):
    _assert_refused(_cut(npz(), share), "cifar100.npz must be an .npz file of plain arrays, got")


def test_an_array_that_is_no_archive_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", ARRAYS["x_train"])

    _assert_refused((tmp_path / "a.npy").rename(tmp_path / "a.npz"), "must be an .npz file")


def test_pickled_objects_in_an_npz_file_are_refused(npz):
    _assert_refused(npz(y_test=np.array([7, None])), "must be an .npz file of plain arrays")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_an_archive_that_ends_early_is_refused(tmp_path, share):
    path = _cut(_archive(tmp_path / "a.tar.gz"), share)

    _assert_refused(path, r"a\.tar\.gz must be the archive cifar-100-python\.tar\.gz, got a file")


def test_an_archive_without_one_of_the_files_is_refused(tmp_path):
    files = _original()
    del files["meta"]

    _assert_refused(_archive(tmp_path / "a.tgz", files), "must have cifar-100-python/meta, got an")


@pytest.mark.requires("shared-data")
def test_the_whole_data_set_has_its_known_counts_and_means(shared_data):
    images = read_images(shared_data)

    assert np.bincount(images.y_train).tolist() == [500] * 100
    assert np.bincount(images.y_test).tolist() == [100] * 100
    means = images.x_train.mean(axis=(0, 1, 2)) / 255
    np.testing.assert_allclose(means, [0.5071, 0.4867, 0.4408], atol=2e-4)


def _assert_refused(path, message):
    with pytest.raises(StructentError, match=message) as refused:
        read_images(path)
    assert "\n" not in str(refused.value)


def _assert_same(images):
    for name, expected in ARRAYS.items():
        np.testing.assert_array_equal(getattr(images, name), expected, strict=name[0] == "x")
    assert images.y_train.dtype == images.y_test.dtype == np.int64


def _original():
    def rows(x):
        return x.transpose(0, 3, 1, 2).reshape(len(x), 3072)

    x_train, y_train, x_test, y_test = ARRAYS.values()
    return {
        "train": {b"data": rows(x_train), b"fine_labels": y_train.tolist()},
        "test": {b"data": rows(x_test), b"fine_labels": y_test.tolist()},
        "meta": {b"fine_label_names": [name.encode() for name in NAMES]},
    }


def _archive(path, files=None):
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        for name, content in (files or _original()).items():
            data = pickle.dumps(content, protocol=2)
            member = tarfile.TarInfo(f"cifar-100-python/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def _cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    return path
