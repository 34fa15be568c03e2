"""The images of CIFAR-100: read from any of their file formats, split into trials, augmented."""

from __future__ import annotations

import io
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.digests import Sources
from structent._optional import load_optional
from structent._typing import IndexArray
from structent.errors import StructentError
from structent.structure.catalog import cifar100

_NPZ, _PICKLES, _ARCHIVE = "cifar100.npz", "cifar-100-python", "cifar-100-python.tar.gz"
_ARCHIVE_ENDINGS = (".tar.gz", ".tgz", ".tar")
_PARTS = ("x_train", "y_train", "x_test", "y_test")
_CONTENT: dict[str, dict[str, type]] = {
    "train": {"data": np.ndarray, "fine_labels": list},
    "test": {"data": np.ndarray, "fine_labels": list},
    "meta": {"fine_label_names": list},
}
# Errors of the readers of zip and tar files if a file is cut short or has another format.
_UNREADABLE = (
    OSError, EOFError, ValueError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error,
    tarfile.TarError,
)  # fmt: skip
_EXPECTED = f"CIFAR-100 must be {_NPZ}, the folder {_PICKLES}, {_ARCHIVE}, or a folder with one"
# Errors of unpickling damaged bytes; StructentError is a ValueError too.
_DAMAGE = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError,
    OverflowError, MemoryError,
)  # fmt: skip
_MOST_SHIFT = 3  # pixels: a tenth of 32


@dataclass(frozen=True, eq=False)
class Images:
    """CIFAR-100: images, (n, 32, 32, 3), and the indices of their classes, (n,).

    Classes are numbered as in ``catalog.cifar100().classes``, in the data set's own order.
    """

    x_train: NDArray[np.uint8]
    y_train: IndexArray
    x_test: NDArray[np.uint8]
    y_test: IndexArray


@cache
def read_images(path: Path | None) -> Images:
    """Return the images of CIFAR-100.

    Parameters
    ----------
    path
        An ``.npz`` file with the arrays ``x_train``, ``y_train``, ``x_test`` and ``y_test``; the
        original folder ``cifar-100-python`` or its ``.tar.gz``; or a folder that holds one of them.
        If None, Keras downloads the images, and keeps them for the next time.
    """
    if path is None:
        return _downloaded()
    files = _files_at(path)
    if len(files) == 1:
        return _in_file(files[0])
    folder = files[0].parent
    return _in_pickles({name: _file_in_folder(folder, name) for name in _CONTENT}, folder)


def image_sources(path: Path | None) -> Sources:
    """Return the files of the images, as a source of runs; none if Keras downloads them."""
    return {"CIFAR-100": () if path is None else _files_at(path)}


def load_pickle(content: bytes, source: str) -> dict[str, Any]:
    """Return a pickled dictionary of plain values and arrays of bytes, by Python 2 or 3.

    No function named in the pickle is called. A pickle may call any function that the unpickler
    finds for it. This unpickler only finds our own replacements for the names that an array in such
    a pickle needs, so not even NumPy's code reads the content.

    Parameters
    ----------
    content
        The pickle.
    source
        Where it is from, for messages.

    Examples
    --------
    >>> load_pickle(pickle.dumps({b"fine_labels": [3, 1]}, protocol=2), "train")
    {'fine_labels': [3, 1]}
    >>> load_pickle(pickle.dumps(print), "train")
    Traceback (most recent call last):
    ...
    structent.errors.StructentError: train must hold plain values and arrays of uint8, got \
a pickle that asks for builtins.print; use a file from the makers of CIFAR-100
    """
    try:
        # Python 2 did not distinguish text from bytes; latin1 would copy the images twice.
        loaded = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except _Unwanted as unwanted:
        raise StructentError(
            f"{source} must hold plain values and arrays of uint8, got a pickle that asks for "
            f"{unwanted}; use a file from the makers of CIFAR-100"
        ) from None
    except _DAMAGE:
        raise StructentError(
            f"{source} must be a whole pickle, got {len(content):,} bytes that end early or are "
            "damaged; download it again"
        ) from None
    if not isinstance(loaded, dict):
        raise StructentError(
            f"{source} must be a pickled dictionary, got a {type(loaded).__name__}; use a file of "
            "cifar-100-python"
        )
    return {_as_text(key): _as_array(value) for key, value in loaded.items()}


@dataclass(frozen=True)
class TrialImages:
    """Images, (n, 32, 32, 3), and their labels, (n,), of the three parts of a trial."""

    train: NDArray[np.uint8]
    train_labels: IndexArray
    validation: NDArray[np.uint8]
    validation_labels: IndexArray
    test: NDArray[np.uint8]
    test_labels: IndexArray


def images_of_trial(
    images: Images, *, size: int, trial: int, n_validation: int, n_test: int
) -> TrialImages:
    """Return the images of a trial, the same for every loss.

    Trials learn from slices that do not overlap. The images after a slice are its validation
    images, continuing from the start after the last image. If a slice is the whole set, its first
    images are for validation and not for training.

    Parameters
    ----------
    images
        All images.
    size
        The length of a slice.
    trial
        The number of the slice.
    n_validation, n_test
        How many validation images, and how many of the first test images.
    """
    n_images = len(images.y_train)
    _check_enough(images, size, trial, n_validation, n_test)
    validation = np.arange((trial + 1) * size, (trial + 1) * size + n_validation) % n_images
    train = np.setdiff1d(np.arange(trial * size, (trial + 1) * size), validation)
    return TrialImages(
        images.x_train[train],
        images.y_train[train],
        images.x_train[validation],
        images.y_train[validation],
        images.x_test[:n_test],
        images.y_test[:n_test],
    )


def augmented(images: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return each image shifted by whole pixels, up to a tenth each way, half of them mirrored.

    New pixels repeat the edge, as in Keras's own ``ImageDataGenerator``.

    Parameters
    ----------
    images
        The images, (n, height, width, channels).
    rng
        Draws the shifts and which are mirrored.

    Examples
    --------
    >>> plain = np.full((2, 32, 32, 3), 7, dtype=np.uint8)
    >>> bool((augmented(plain, np.random.default_rng(0)) == plain).all())  # nothing comes in
    True
    """
    n_images, height, width, _ = images.shape
    up, left = rng.integers(-_MOST_SHIFT, _MOST_SHIFT + 1, size=(2, n_images))
    rows = np.clip(np.arange(height) + up[:, None], 0, height - 1)
    columns = np.clip(np.arange(width) + left[:, None], 0, width - 1)
    mirrored = rng.random(n_images) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    which = np.arange(n_images)[:, None, None]
    moved: NDArray[np.uint8] = images[which, rows[:, :, None], columns[:, None, :]]
    return moved


def as_pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return images as numbers in [0, 1]."""
    return images.astype(np.float32) / np.float32(255)


def _downloaded() -> Images:
    keras = load_optional("keras", extra="keras", purpose="Downloading CIFAR-100")
    try:
        (x_train, y_train), (x_test, y_test) = keras.datasets.cifar100.load_data()
    except Exception as error:  # Keras raises no narrower one without a network connection
        raise StructentError(
            f"Keras could not download CIFAR-100 ({error}); give the path of a copy"
        ) from error
    arrays = (x_train, y_train, x_test, y_test)
    return _checked(dict(zip(_PARTS, arrays, strict=True)), "Keras's download")


def _files_at(path: Path) -> tuple[Path, ...]:
    """Return the file of the images, or the three files of pickles."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise StructentError(f"{_EXPECTED}, got {path}, which does not exist")
    for folder in (path, path / _PICKLES):
        if (folder / "train").is_file():
            return tuple(folder / name for name in _CONTENT)
    for name in (_NPZ, _ARCHIVE):
        if (path / name).is_file():
            return (path / name,)
    raise StructentError(f"{_EXPECTED}, got the folder {path}, which has none of them")


def _in_file(path: Path) -> Images:
    if path.suffix == ".npz":
        return _in_npz(path)
    if path.name.endswith(_ARCHIVE_ENDINGS):
        return _in_archive(path)
    raise StructentError(f"{_EXPECTED}, got the file {path}")


def _in_npz(path: Path) -> Images:
    try:
        # Opened here, because NumPy does not close a file that is not an archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in (*_PARTS, "class_names") if name in file}
    except _UNREADABLE as error:
        raise _unreadable(path, "an .npz file of plain arrays", error) from None
    missing = [name for name in _PARTS if name not in arrays]
    if missing:
        raise StructentError(f"{path} must have {', '.join(_PARTS)}, got no {missing[0]}")
    if "class_names" in arrays:
        names = np.asarray(arrays["class_names"]).ravel().tolist()
        _check_names(names, f"class_names of {path}")
    return _checked(arrays, path)


def _in_archive(path: Path) -> Images:
    try:
        with tarfile.open(path) as archive:
            content = {name: _file_in_archive(archive, name) for name in _CONTENT}
    except StructentError:
        raise
    except _UNREADABLE as error:
        raise _unreadable(path, f"the archive {_ARCHIVE}", error) from None
    return _in_pickles(content, path)


def _in_pickles(content: Mapping[str, bytes], source: Path) -> Images:
    train, test, meta = (_pickled(content[name], source / name) for name in _CONTENT)
    _check_names(meta["fine_label_names"], f"fine_label_names of {source / 'meta'}")
    return _checked(
        {
            "x_train": _from_rows(train["data"], source / "train"),
            "y_train": train["fine_labels"],
            "x_test": _from_rows(test["data"], source / "test"),
            "y_test": test["fine_labels"],
        },
        source,
    )


def _pickled(content: bytes, source: Path) -> dict[str, Any]:
    values = load_pickle(content, str(source))
    for key, kind in _CONTENT[source.name].items():
        if not isinstance(values.get(key), kind):
            has = ", ".join(f"{name} ({type(value).__name__})" for name, value in values.items())
            raise StructentError(
                f"{source} must have {key} ({kind.__name__}), got {has or 'nothing'}; use "
                "CIFAR-100's files for Python"
            )
    return values


def _file_in_folder(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise StructentError(
            f"{folder} must have the files train, test and meta, got no {name} "
            f"({error.strerror}); unpack {_ARCHIVE} again"
        ) from None


def _file_in_archive(archive: tarfile.TarFile, name: str) -> bytes:
    for member in archive.getmembers():
        if member.name.removeprefix("./") == f"{_PICKLES}/{name}" and member.isfile():
            file = archive.extractfile(member)
            if file is not None:
                return file.read()
    raise StructentError(
        f"{archive.name!s} must have {_PICKLES}/{name}, got an archive without it; use {_ARCHIVE}"
    )


def _from_rows(rows: NDArray[np.uint8], source: Path) -> NDArray[np.uint8]:
    """Return images from rows that hold all red values, then all green, then all blue ones."""
    if rows.ndim != 2 or rows.shape[1] != 3072:
        raise StructentError(f"data of {source} must be (n, 3072) bytes, got {rows.shape}")
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _check_names(names: Iterable[object], what: str) -> None:
    """Refuse labels that mean other classes than the structure's."""
    classes = cifar100().classes
    given = [_as_text(name) for name in names]
    if len(given) != len(classes):
        raise StructentError(f"{what} must be the 100 fine classes, got {len(given)} names")
    for place, (name, known) in enumerate(zip(given, classes, strict=True)):
        if name != known:
            raise StructentError(
                f"{what} must be the fine classes of CIFAR-100 in alphabetical order, got {name!r} "
                f"for class {place}, which is {known!r}"
            )


def _checked(arrays: Mapping[str, Any], source: Path | str) -> Images:
    x_train, x_test = (_images(arrays[name], f"{name} of {source}") for name in _PARTS[::2])
    y_train, y_test = (
        _labels(arrays[name], f"{name} of {source}", n=len(x))
        for name, x in zip(_PARTS[1::2], (x_train, x_test), strict=True)
    )
    return Images(x_train, y_train, x_test, y_test)


def _images(values: Any, what: str) -> NDArray[np.uint8]:
    images = np.asarray(values)
    if images.shape[1:] != (32, 32, 3) or len(images) == 0 or images.dtype != np.uint8:
        raise StructentError(
            f"{what} must be images, (n, 32, 32, 3) of uint8, got {images.shape} of {images.dtype}"
        )
    return images


def _labels(values: Any, what: str, *, n: int) -> IndexArray:
    try:
        labels = np.asarray(values)
    except ValueError:  # lists of different lengths
        labels = np.asarray(values, dtype=object)
    if labels.shape not in ((n,), (n, 1)) or labels.dtype.kind not in "iu":
        raise StructentError(
            f"{what} must be a whole number for each of the {n:,} images, got {labels.shape} of "
            f"{labels.dtype}"
        )
    if labels.min() < 0 or labels.max() >= 100:
        raise StructentError(
            f"{what} must be fine classes from 0 to 99, got {labels.min()} to {labels.max()}"
        )
    return labels.reshape(n).astype(np.int64)


def _unreadable(path: Path, expected: str, error: Exception) -> StructentError:
    reason = getattr(error, "strerror", None) or "it is damaged, or something else"
    return StructentError(
        f"{path} must be {expected}, got a file that cannot be read as one ({reason}); download it "
        "again"
    )


def _as_text(value: object) -> str:
    """Return what Python 2 called a string.

    >>> _as_text(b"apple"), _as_text("apple")
    ('apple', 'apple')
    """
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


class _Unwanted(Exception):  # noqa: N818  raised and caught in this file
    """A pickle asks for something that images and labels do not need."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        wanted = f"{module}.{name}"
        if wanted not in _STAND_INS:
            raise _Unwanted(wanted)
        return _STAND_INS[wanted]


class _Array:
    """An array as a pickle describes it; ``values`` is None until the pickle provides them."""

    values: NDArray[np.uint8] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, _dtype, is_fortran, content = state
        order = "F" if is_fortran else "C"
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order=order)  # type: ignore[call-overload]


class _Uint8:
    """The type of an array; its state is ignored, because uint8 has no byte order or fields."""

    def __setstate__(self, state: object) -> None:
        pass


def _new_array(*_: object) -> _Array:
    return _Array()


def _dtype(name: str | bytes, *_: object) -> _Uint8:
    if _as_text(name) not in ("u1", "|u1", "uint8"):
        raise _Unwanted(f"an array of {_as_text(name)}")
    return _Uint8()


def _encode(text: str, encoding: str) -> bytes:
    # Python 3 writes bytes like this in a pickle for Python 2.
    if encoding != "latin1":
        raise _Unwanted(f"the encoding {encoding}")
    return text.encode("latin1")


_STAND_INS: dict[str, Callable[..., Any]] = {
    "numpy.core.multiarray._reconstruct": _new_array,
    "numpy._core.multiarray._reconstruct": _new_array,  # since NumPy 2
    "numpy.ndarray": _Array,
    "numpy.dtype": _dtype,
    "_codecs.encode": _encode,
}


def _as_array(value: object) -> object:
    return value.values if isinstance(value, _Array) else value


def _check_enough(images: Images, size: int, trial: int, n_validation: int, n_test: int) -> None:
    n_images = len(images.y_train)
    # Validation images are taken from a slice only if there are no others.
    beside = n_validation if size < n_images else 0
    needed = max((trial + 1) * size, size + beside, n_validation + 1)
    if needed > n_images:
        raise StructentError(
            f"trial {trial} of {size:,} images and {n_validation:,} validation images needs "
            f"{needed:,} training images, got {n_images:,}; use all of CIFAR-100"
        )
    if n_test > len(images.y_test):
        raise StructentError(
            f"the test needs {n_test:,} test images, got {len(images.y_test):,}; use all of "
            "CIFAR-100"
        )
