"""The images of CIFAR-100: from files that people have, into trials, shifted and mirrored."""

import io
import os
import pickle
import struct
import subprocess
import sys
import tarfile

import numpy as np
import pytest

from paper.images import Images, as_pixels, augmented, images_of_trial, load_pickle, read_images
from structent.errors import MissingDependencyError, StructentError
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
        "from paper.images import read_images; "
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


# Pickles

ROWS = np.random.default_rng(0).integers(0, 256, (2, 3072), dtype=np.uint8)


def test_a_pickle_of_python_2_is_read():
    loaded = load_pickle(_by_python_2(ROWS, [3, 99]), "train")

    assert loaded["fine_labels"] == [3, 99]
    assert loaded["filenames"] == [b"a.png"]
    np.testing.assert_array_equal(loaded["data"], ROWS)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("key", ["data", b"data"])
def test_a_pickle_of_python_3_is_read(protocol, key):
    loaded = load_pickle(pickle.dumps({key: ROWS}, protocol), "train")

    np.testing.assert_array_equal(loaded["data"], ROWS)


def test_an_array_with_columns_first_is_read():
    loaded = load_pickle(pickle.dumps({"data": np.asfortranarray(ROWS)}, 2), "train")

    np.testing.assert_array_equal(loaded["data"], ROWS)


class _Command:
    def __init__(self, function, *arguments):
        self.called = function, arguments

    def __reduce__(self):
        return self.called


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_command_in_a_pickle_is_refused_and_not_run(tmp_path, protocol):
    trace = tmp_path / "trace"
    content = pickle.dumps({"data": _Command(os.system, f"touch {trace}")}, protocol)
    pickle.loads(content)  # noqa: S301  our own: it would be run
    assert trace.exists()
    trace.unlink()

    with pytest.raises(StructentError, match=r"train must hold .* asks for posix\.system"):
        load_pickle(content, "train")

    assert not trace.exists()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (_Command(eval, "1"), r"__builtin__\.eval"),
        (_Command(np.load, "file"), r"numpy\.load"),
        (np.arange(3), "an array of i8"),
        (np.array([print]), "an array of O"),
        (ROWS.view(np.ma.MaskedArray), r"numpy\.ma"),
        (b"".join, r"__builtin__\.getattr"),
    ],
)
def test_what_images_do_not_need_is_refused_by_name(value, named):
    with pytest.raises(StructentError, match=f"asks for {named}"):
        load_pickle(pickle.dumps({"data": value}, 2), "train")


def test_no_encoding_but_latin1_is_looked_up():
    # Codecs are found by importing modules.
    content = b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R."

    with pytest.raises(StructentError, match="asks for the encoding rot13"):
        load_pickle(content, "train")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_a_pickle_that_ends_early_is_refused(share):
    content = _by_python_2(ROWS, [3, 99])

    with pytest.raises(StructentError, match=r"train must be a whole pickle.*download it again"):
        load_pickle(content[: int(share * len(content))], "train")


@pytest.mark.parametrize(
    "content",
    [
        b"no pickle",
        b"\x80\x02cnumpy\nndarray\nK\x01\x85R.",  # a shape, where the stand-in takes none
        b"\x80\x02cnumpy\nndarray\n)R(K\x01tb.",  # an array of one thing, of five
        b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f" + b"data.",  # more bytes than any machine has
    ],
)
def test_a_pickle_that_makes_no_sense_is_refused(content):
    with pytest.raises(StructentError, match="train must be a whole pickle"):
        load_pickle(content, "train")


def test_a_pickle_of_something_else_than_a_dictionary_is_refused():
    with pytest.raises(StructentError, match="must be a pickled dictionary, got a list"):
        load_pickle(pickle.dumps([1, 2], 2), "train")


def _by_python_2(rows, labels):
    """The bytes that Python 2.7 and its NumPy write with protocol 2, memo aside."""
    content = rows.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        + (b"cnumpy\nndarray\n" + b"K\x00\x85" + _string(b"b") + b"\x87")
        + b"R(K\x01"
        + (b"K" + bytes([len(rows)]) + b"M" + struct.pack("<H", rows.shape[1]) + b"\x86")
        + (b"cnumpy\ndtype\n" + _string(b"u1") + b"K\x00K\x01\x87R")
        + (b"(K\x03" + _string(b"|") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb")
        + (b"\x89T" + struct.pack("<i", len(content)) + content + b"tb")
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    names = b"](" + _string(b"a.png") + b"e"
    items = {b"data": array, b"fine_labels": numbers, b"filenames": names}
    return b"\x80\x02}(" + b"".join(_string(key) + value for key, value in items.items()) + b"u."


def _string(text):
    return b"U" + bytes([len(text)]) + text


# The images of a trial


def counted(n_train, n_test=10):
    """Images whose labels are their places, as is their every pixel."""

    def part(n):
        rows = np.arange(n)
        return np.broadcast_to(rows.astype(np.uint8)[:, None, None, None], (n, 32, 32, 3)), rows

    return Images(*part(n_train), *part(n_test))


def rows_of(trial, *, size, n_train=100, n_validation=15, n_test=10):
    images = images_of_trial(
        counted(n_train), size=size, trial=trial, n_validation=n_validation, n_test=n_test
    )
    for pixels, labels in (
        (images.train, images.train_labels),
        (images.validation, images.validation_labels),
        (images.test, images.test_labels),
    ):
        assert pixels[:, 0, 0, 0].tolist() == labels.tolist()
        assert pixels.shape[1:] == (32, 32, 3)
    return [
        part.tolist()
        for part in (images.train_labels, images.validation_labels, images.test_labels)
    ]


def test_trials_learn_from_slices_that_follow_one_another():
    slices = [rows_of(trial, size=25)[0] for trial in range(4)]

    assert slices == np.arange(100).reshape(4, 25).tolist()


@pytest.mark.parametrize("trial", range(4))
def test_validation_images_are_outside_the_slice(trial):
    train, validation, _ = rows_of(trial, size=25)

    assert len(set(validation)) == 15
    assert not set(train) & set(validation)


def test_validation_images_follow_the_slice():
    assert rows_of(1, size=25)[1] == list(range(50, 65))


def test_validation_images_of_the_last_slice_are_the_first_of_all():
    assert rows_of(3, size=25)[1] == list(range(15))


def test_validation_images_go_on_at_the_start_where_few_follow():
    train, validation, _ = rows_of(2, size=30)

    assert validation == [*range(90, 100), *range(5)]
    assert train == list(range(60, 90))


def test_the_whole_set_goes_without_its_validation_images():
    train, validation, _ = rows_of(0, size=100)

    assert validation == list(range(15))
    assert train == list(range(15, 100))


def test_the_first_test_images_are_taken():
    assert rows_of(0, size=25, n_test=7)[2] == list(range(7))


def test_a_trial_beyond_the_last_slice_is_refused():
    with pytest.raises(StructentError, match=r"trial 4 .* needs 125 training images, got 100;"):
        rows_of(4, size=25)


def test_validation_images_that_would_come_out_of_the_slice_are_refused():
    with pytest.raises(StructentError, match=r"trial 0 .* needs 105 training images, got 100;"):
        rows_of(0, size=90)


def test_a_whole_set_of_validation_images_is_refused():
    with pytest.raises(StructentError, match=r"needs 101 training images, got 100;"):
        rows_of(0, size=100, n_validation=100)


def test_too_few_test_images_are_refused():
    with pytest.raises(StructentError, match=r"needs 11 test images, got 10;"):
        rows_of(0, size=25, n_test=11)


# Shifted and mirrored

IMAGES = np.random.default_rng(0).integers(0, 256, (900, 12, 12, 3), dtype=np.uint8)
SHIFTS = range(-3, 4)


def moved(image, up, left, *, mirrored):
    """Shift an image pixel by pixel, the edge repeated; then mirror it."""
    height, width, _ = image.shape
    out = np.empty_like(image)
    for row in range(height):
        for column in range(width):
            from_row = min(max(row + up, 0), height - 1)
            from_column = min(max(column + left, 0), width - 1)
            place = width - 1 - column if mirrored else column
            out[row, place] = image[from_row, from_column]
    return out


def movement(image, result):
    """Return which shift and mirroring makes a result of an image."""
    # The middle of the image tells shifts apart; the whole is compared after that.
    for up in SHIFTS:
        for left in SHIFTS:
            middle = image[3 + up : 9 + up, 3 + left : 9 + left]
            for mirrored in (False, True):
                seen = result[3:9, 3:9]
                if np.array_equal(middle, seen[:, ::-1] if mirrored else seen):
                    return up, left, mirrored
    return pytest.fail("no shift of up to three pixels gives the image")


@pytest.fixture(scope="module")
def movements():
    results = augmented(IMAGES, np.random.default_rng(1))
    return results, [movement(*pair) for pair in zip(IMAGES, results, strict=True)]


def test_every_image_is_shifted_with_its_edge_repeated_and_then_perhaps_mirrored(movements):
    results, found = movements

    for image, result, (up, left, mirrored) in zip(IMAGES[:150], results, found, strict=False):
        assert np.array_equal(result, moved(image, up, left, mirrored=mirrored))


def test_shifts_are_all_of_minus_3_to_3_and_alike_in_number_each_way(movements):
    _, found = movements

    for way in (0, 1):
        values, counts = np.unique([move[way] for move in found], return_counts=True)
        assert values.tolist() == list(SHIFTS)
        # A seventh of 900 is 129, with a standard deviation of 10.5.
        assert counts.min() > 129 - 4 * 10.5
        assert counts.max() < 129 + 4 * 10.5


def test_shifts_up_and_left_are_drawn_apart(movements):
    up, left, mirrored = np.array(movements[1]).T

    assert abs(np.corrcoef([up, left, mirrored]) - np.eye(3)).max() < 4 / np.sqrt(900)


def test_half_of_the_images_are_mirrored(movements):
    # 450, with a standard deviation of 15.
    assert abs(sum(move[2] for move in movements[1]) - 450) < 4 * 15


def test_the_generator_alone_decides():
    same = [augmented(IMAGES, np.random.default_rng(5)) for _ in range(2)]

    assert np.array_equal(*same)
    assert not np.array_equal(same[0], augmented(IMAGES, np.random.default_rng(6)))


def test_the_images_given_stay_as_they_are():
    before = IMAGES.copy()
    augmented(IMAGES, np.random.default_rng(5))

    assert np.array_equal(IMAGES, before)


def test_pixels_are_numbers_from_0_to_1():
    pixels = as_pixels(np.array([0, 51, 255], dtype=np.uint8))

    assert pixels.dtype == np.float32
    assert pixels.tolist() == pytest.approx([0.0, 0.2, 1.0])
