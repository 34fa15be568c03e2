"""Model files: a zip of JSON, the structure, and what was learned as plain numbers or trees.

Nothing in it is ever run: no pickle, no code, no import by name. The metadata list every other
member with its digest. Text is not compressed: JSON can take thirty times its size in memory, so a
small file never needs a lot of memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._files import parsed_json, save_bytes
from structent._typing import FloatArray
from structent.errors import MissingDependencyError, StructentError
from structent.estimators.classes import Classes
from structent.estimators.columns import Columns
from structent.estimators.design import Design
from structent.estimators.engines import engine
from structent.estimators.prior import Prior, given_prior
from structent.estimators.training import CHOICES, Chosen, Encoder, FittedBoosting, Settings
from structent.structure import files as structure_files
from structent.structure import trivial
from structent.structure.files import LARGEST_ARRAY, LARGEST_FILE
from structent.structure.samplers import Structure
from structent.trees.forest import DEEPEST_TREE

VERSION = 1

_METADATA, _STRUCTURE, _ATTACHED = "metadata.json", structure_files.IN_MODEL, "attachments/"
_TYPE_OF_LABELS = re.compile(r"[<>|=]?(?:[biuf]\d{1,2}|U\d{1,8}|O)")  # those of scikit-learn
_MOST_TIMES = 20  # the largest compression ratio of what was learned
_LARGEST_LEARNED = 2**32  # bytes
_LARGEST_START = 1e30
_TYPES_OF_CATEGORIES = {str, int, float, bool}
_LONGEST_PARAMETER, _LONGEST_REASON = 100, 300  # characters
# What the conversions of wrong content raise.
_WRONG = (ArithmeticError, LookupError, TypeError, ValueError)
_IS_ENCRYPTED = 0x1  # a flag of zip files


class FittedLinear(NamedTuple):
    """A fitted linear model.

    Attributes
    ----------
    classes
        The classes of its rows of coefficients.
    coef, intercept
        The coefficients, (classes, features), and the intercepts, (classes,), sorted by class.
    n_iter
        How many iterations the fit took.
    prior
        The prior of the coefficients.
    block_scores
        The sorted scores of held-out rows that calibrate answers; None without such rows.
    design
        How the columns of a table become features; None if they are the features.
    """

    classes: Classes
    coef: NDArray[Any]
    intercept: NDArray[Any]
    n_iter: int
    prior: Prior
    block_scores: FloatArray | None = None
    design: Design | None = None

    @property
    def n_columns(self) -> int:
        """How many columns X has."""
        n_features: int = self.coef.shape[1]
        return n_features if self.design is None else len(self.design.columns.categories)


class Saved(NamedTuple):
    """What a model file keeps of an estimator besides what was learned.

    Attributes
    ----------
    parameters
        The parameters of the estimator; in a file the structure is the one that was used.
    feature_names
        The names of the columns of X; None if they had none.
    """

    parameters: dict[str, Any]
    feature_names: NDArray[Any] | None


class _Kind(NamedTuple):
    """A kind of model file: its name, its estimator, its largest member, and what is kept."""

    format: str
    estimator: str
    learned: str
    parameters: tuple[str, ...]


_BOOSTING = _Kind(
    "structent-boosting", "StructuredBoostingClassifier", "booster",
    ("n_estimators", "learning_rate", "max_depth", "max_leaves", "max_bins", "min_child_weight",
     "reg_lambda", "subsample", "colsample", "engine", "trees", "curvature", "split_search",
     "leaf_smoothing", "early_stopping_rounds", "validation_fraction", "refit", "n_bags",
     "allow_blocks"),
)  # fmt: skip
_LINEAR = _Kind(
    "structent-linear", "StructuredLogisticRegression", "coefficients",
    ("prior", "C", "tol", "max_iter", "warm_start", "allow_blocks"),
)  # fmt: skip
_KINDS = {kind.format: kind for kind in (_BOOSTING, _LINEAR)}
_LEARNED = frozenset(kind.learned for kind in _KINDS.values())


def save_boosting(
    path: str | os.PathLike[str],
    fitted: FittedBoosting,
    saved: Saved,
    attachments: Mapping[str, str],
) -> None:
    """Write the file of a booster, completely or not at all, with further texts by name."""
    classes, columns = fitted.encoder.classes, fitted.encoder.columns
    content = {
        **_shared_content(_BOOSTING, saved, classes, fitted.block_scores),
        "categories": columns.categories,
        "is_one_hot": fitted.encoder.is_one_hot,
        "scores": fitted.scores,
        "start": fitted.model.start.tolist(),
        "chosen": fitted.chosen._asdict(),
    }
    structure = None if saved.parameters["structure"] is None else classes.structure
    _write(path, _BOOSTING, content, structure, fitted.model.to_bytes(), attachments)


def load_boosting(path: str | os.PathLike[str]) -> tuple[FittedBoosting, Saved]:
    """Return the booster of a model file, and what else its estimator has."""
    return _read(Path(path), _BOOSTING)


def save_linear(
    path: str | os.PathLike[str],
    fitted: FittedLinear,
    saved: Saved,
    attachments: Mapping[str, str],
) -> None:
    """Write the file of a linear model, completely or not at all, with further texts by name."""
    table = np.column_stack([fitted.coef, fitted.intercept])  # (classes, features + 1)
    table = table.astype(table.dtype.newbyteorder("<"))
    content = {
        **_shared_content(_LINEAR, saved, fitted.classes, fitted.block_scores),
        "n_iter": fitted.n_iter,
        "coefficients": {"dtype": table.dtype.str, "shape": table.shape},
        "design": None if fitted.design is None else _design_content(fitted.design),
    }
    structure = None if saved.parameters["structure"] is None else fitted.classes.structure
    _write(path, _LINEAR, content, structure, table.tobytes(), attachments)


def load_linear(path: str | os.PathLike[str]) -> tuple[FittedLinear, Saved]:
    """Return the linear model of a model file, and what else its estimator has."""
    return _read(Path(path), _LINEAR)


def estimator_of(path: str | os.PathLike[str]) -> str:
    """Return the name of the class that loads a model file."""
    metadata = _metadata(_members(Path(path)), Path(path))
    return _KINDS[metadata["format"]].estimator


def attachment(path: str | os.PathLike[str], name: str) -> str | None:
    """Return a text that was saved along with a model, None if there is none of that name."""
    members = _members(Path(path))
    _check_members(members, _metadata(members, Path(path)), Path(path))
    content = members.get(f"{_ATTACHED}{name}")
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        raise _broken(Path(path), f"its member {_ATTACHED}{name} is not text") from None


# Writing


def _shared_content(
    kind: _Kind, saved: Saved, classes: Classes, block_scores: FloatArray | None
) -> dict[str, Any]:
    names = saved.feature_names
    return {
        "parameters": {name: saved.parameters[name] for name in kind.parameters},
        "labels": classes.labels,
        "dtype": classes.values.dtype.str,
        "feature_names": None if names is None else names.tolist(),
        "block_scores": None if block_scores is None else block_scores.tolist(),
    }


def _write(
    path: str | os.PathLike[str],
    kind: _Kind,
    content: dict[str, Any],
    structure: Structure | None,
    learned: bytes,
    attachments: Mapping[str, str],
) -> None:
    members = {kind.learned: learned}
    if structure is not None:
        members[_STRUCTURE] = structure_files.structure_to_json(structure).encode()
    members |= {f"{_ATTACHED}{name}": text.encode() for name, text in attachments.items()}
    metadata = {
        "format": kind.format,
        "version": VERSION,
        "structent": version("structent"),
        **content,
        "members": {name: _digest(member) for name, member in members.items()},
    }
    members = {_METADATA: json.dumps(metadata, default=_plain).encode(), **members}
    _check_that_it_can_be_read(kind, members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, member in members.items():
            file.writestr(name, member, _compression(name, member))
    save_bytes(path, buffer.getvalue())


def _compression(name: str, content: bytes) -> int:
    """Return how to write a member: what was learned is compressed, but never too much."""
    if name not in _LEARNED or _MOST_TIMES * len(zlib.compress(content)) < len(content):
        return zipfile.ZIP_STORED
    return zipfile.ZIP_DEFLATED


def _check_that_it_can_be_read(kind: _Kind, members: Mapping[str, bytes]) -> None:
    """Refuse to write a model that could not be read again, such as a booster in a newer format."""
    try:
        for name, content in members.items():
            _check_size(name, len(content))
        _content(kind, parsed_json(members[_METADATA].decode()), members)
    except _WRONG as error:
        raise StructentError(
            f"a model is not saved if it could not be loaded again: {_reason(error)}"
        ) from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a model file cannot hold {value!r}")


def _design_content(design: Design) -> dict[str, Any]:
    return {
        "categories": design.columns.categories,
        "centre": design.centre,
        "scale": design.scale,
        "has_missing": design.has_missing,
    }


# Reading


def _read(path: Path, kind: _Kind) -> tuple[Any, Saved]:
    """Return the content of a file of this kind, or say in one sentence what is wrong with it."""
    members = _members(path)
    metadata = _metadata(members, path)
    _check_kind(metadata, kind, path)
    _check_members(members, metadata, path)
    try:
        return _content(kind, metadata, members)
    except MissingDependencyError:
        raise
    except _WRONG as error:
        reason = f"its content is not what it should be ({_reason(error)})"
        raise _broken(path, reason) from None


def _members(path: Path) -> dict[str, bytes]:
    """Return the members of a zip file that cannot become much larger than the file is."""
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                listed = archive.infolist()
                _check_listed(listed, os.fstat(file.fileno()).st_size)
                return {info.filename: _member(archive, info) for info in listed}
        # zipfile raises more than it documents, from OSError to struct.error.
        except Exception as error:  # noqa: BLE001
            reason = f"it is not a zip file, or it was changed or cut off ({_reason(error)})"
            raise _broken(path, reason) from None


def _check_listed(listed: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Refuse members that could not be in a file of this size, before any of them is read."""
    if len({info.filename for info in listed}) < len(listed):
        raise ValueError("two of its members have the same name")
    if sum(info.compress_size for info in listed) > size:
        raise ValueError("its members are larger than the file")
    for info in listed:
        _check_size(info.filename, info.file_size)
        times = 1
        if info.compress_type == zipfile.ZIP_DEFLATED and info.filename in _LEARNED:
            times = _MOST_TIMES
        elif info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _IS_ENCRYPTED:
            raise ValueError(f"its member {info.filename[:60]!r} is compressed or encrypted")
        if info.file_size > times * info.compress_size:
            raise ValueError(f"its member {info.filename[:60]!r} is larger than what it comes from")


def _check_size(name: str, size: int) -> None:
    largest = _LARGEST_LEARNED if name in _LEARNED else LARGEST_FILE
    if size > largest:
        raise ValueError(f"{name[:60]!r} must have at most {largest:,} bytes, got {size:,}")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as member:
        # Never more than that, whatever the compressed bytes are; compared with the checksum.
        content = member.read(info.file_size)
    if len(content) != info.file_size:
        raise ValueError(f"its member {info.filename[:60]!r} ends too early")
    return content


def _metadata(members: Mapping[str, bytes], path: Path) -> dict[str, Any]:
    """Return the metadata of a model file of any kind."""
    try:
        content = parsed_json(members.get(_METADATA, b"{}").decode())
    except ValueError:
        raise _broken(path, "its metadata are not JSON") from None
    metadata: dict[str, Any] = content if isinstance(content, dict) else {}
    given = metadata.get("format")
    if not isinstance(given, str) or given not in _KINDS:
        raise _broken(path, "it is a zip file of something else")
    if metadata.get("version") != VERSION:
        by, number = (str(metadata.get(name))[:20] for name in ("structent", "version"))
        raise StructentError(
            f"this structent reads model files of version {VERSION}, got version {number} in "
            f"{path.name}; use the structent that wrote it ({by}), or a newer one"
        )
    return metadata


def _check_kind(metadata: dict[str, Any], kind: _Kind, path: Path) -> None:
    given = metadata["format"]
    if given != kind.format:
        raise StructentError(
            f"{kind.estimator}.load reads the file of such a model, got {path.name}, which holds a "
            f"{_KINDS[given].estimator}; load it with that class"
        )


def _check_members(members: Mapping[str, bytes], metadata: dict[str, Any], path: Path) -> None:
    """Refuse a file if a member was removed from it or added to it."""
    digests = metadata.get("members")
    if not isinstance(digests, dict):
        raise _broken(path, "its metadata do not list its members")
    for name in [*digests, *members]:
        if name not in members:
            raise _broken(path, f"its member {name[:60]!r} is missing")
        if name == _METADATA:
            continue
        if name not in digests:
            raise _broken(path, f"it has a member {name[:60]!r} that was not saved")
        if _digest(members[name]) != digests[name]:
            raise _broken(path, f"its member {name[:60]!r} is not the one that was saved")


def _content(
    kind: _Kind, metadata: dict[str, Any], members: Mapping[str, bytes]
) -> tuple[Any, Saved]:
    """Return the content of metadata and members; wrong content raises an error of _WRONG."""
    structure = None
    if _STRUCTURE in members:
        structure = structure_files.structure_from_json(members[_STRUCTURE].decode())
    parameters = {name: _parameter(metadata["parameters"][name]) for name in kind.parameters}
    classes, learned = _classes(structure, metadata), members[kind.learned]
    fitted: FittedBoosting | FittedLinear
    if kind is _BOOSTING:
        fitted = _fitted_boosting(metadata, parameters, classes, learned)
        n_columns = len(fitted.encoder.columns.categories)
    else:
        fitted = _fitted_linear(metadata, parameters, classes, learned)
        n_columns = fitted.n_columns
        parameters["encode"] = fitted.design is not None
    names = _feature_names(metadata, n_columns)
    return fitted, Saved({"structure": structure, **parameters}, names)


def _parameter(value: Any) -> Any:
    """Return a parameter of an estimator that is a number, a word, or numbers."""
    if isinstance(value, list) and all(isinstance(each, float | int) for each in value):
        return value
    is_word = isinstance(value, str) and len(value) <= _LONGEST_PARAMETER
    if value is None or is_word or isinstance(value, float | int):
        return value
    raise ValueError("a parameter is neither a number nor a word")


def _fitted_boosting(
    metadata: dict[str, Any], parameters: dict[str, Any], classes: Classes, booster: bytes
) -> FittedBoosting:
    settings = Settings(**{name: parameters[name] for name in Settings.__dataclass_fields__})
    columns = _columns(metadata)
    is_one_hot = metadata["is_one_hot"]
    if not isinstance(is_one_hot, bool):
        raise TypeError("is_one_hot is not true or false")
    encoder = Encoder(columns, classes, is_one_hot)
    start = np.array(_array(metadata, "start"), dtype=np.float64)
    # Within float32, because the engines add in float32.
    if start.shape != (len(classes.labels),) or not (np.abs(start) < _LARGEST_START).all():
        raise ValueError(f"start is not a number for each of the {len(classes.labels)} classes")
    model = engine(settings.engine).from_bytes(booster, start, encoder.n_categories)
    scores = tuple(map(float, _array(metadata, "scores")))
    return FittedBoosting(encoder, model, scores, _chosen(metadata), _block_scores(metadata))


def _columns(content: dict[str, Any]) -> Columns:
    columns = Columns(tuple(map(_categories, _array(content, "categories"))))
    if not columns.categories:
        raise ValueError("no column")
    return columns


def _categories(column: Any) -> tuple[Any, ...] | None:
    if column is None:
        return None
    if not isinstance(column, list) or not {type(each) for each in column} <= _TYPES_OF_CATEGORIES:
        raise TypeError("categories are not text, numbers or bools")
    return tuple(column)


def _chosen(metadata: dict[str, Any]) -> Chosen:
    chosen = Chosen(**metadata["chosen"])
    smoothing = float(chosen.leaf_smoothing)
    if chosen.split_search not in CHOICES["split_search"] or not 0.0 <= smoothing < 1.0:
        raise ValueError(f"split_search {chosen.split_search!r}, leaf_smoothing {smoothing!r}")
    if type(chosen.max_depth) is not int or not 1 <= chosen.max_depth <= DEEPEST_TREE:
        raise ValueError(f"max_depth {chosen.max_depth!r}")
    return chosen._replace(leaf_smoothing=smoothing)


def _fitted_linear(
    metadata: dict[str, Any], parameters: dict[str, Any], classes: Classes, learned: bytes
) -> FittedLinear:
    dtype, shape = (metadata["coefficients"][name] for name in ("dtype", "shape"))
    if dtype not in ("<f4", "<f8") or not all(type(length) is int for length in shape):
        raise ValueError("coefficients of another type")
    n_classes, n_columns = shape
    if n_columns < 2 or n_classes != len(classes.labels):
        raise ValueError(f"coefficients of shape {shape} for {len(classes.labels)} classes")
    table = np.frombuffer(learned, dtype).reshape(n_classes, n_columns)
    if not np.isfinite(table).all():
        raise ValueError("a coefficient is not finite")
    # In one piece, as they were fitted: otherwise matrix products may round differently.
    coef, intercept = (
        np.ascontiguousarray(part, dtype=np.dtype(dtype).newbyteorder("="))
        for part in (table[:, :-1], table[:, -1])
    )
    prior = given_prior(classes.structure, parameters["prior"], float(parameters["C"]))
    n_iter, block_scores = int(metadata["n_iter"]), _block_scores(metadata)
    design = _design(metadata["design"])
    if design is not None and design.n_features != coef.shape[1]:
        raise ValueError(f"{coef.shape[1]} coefficients for {design.n_features} columns")
    return FittedLinear(classes, coef, intercept, n_iter, prior, block_scores, design)


def _design(content: Any) -> Design | None:
    if content is None:
        return None
    centre, scale = (tuple(map(float, _array(content, name))) for name in ("centre", "scale"))
    has_missing = tuple(_array(content, "has_missing"))
    if not all(isinstance(each, bool) for each in has_missing):
        raise TypeError("has_missing is not true or false")
    return Design(_columns(content), centre, scale, has_missing)


def _classes(structure: Structure | None, metadata: dict[str, Any]) -> Classes:
    labels = tuple(map(structure_files.label_from_json, _array(metadata, "labels")))
    structure_files.check_names(labels)
    if len(set(labels)) < max(len(labels), 2):
        raise ValueError(f"{len(labels)} labels, not all of them different")
    if structure is not None:
        if labels != structure.classes:
            raise ValueError("the labels are not the classes of the structure")
        return Classes.of_structure(structure)
    name = metadata["dtype"]
    if not isinstance(name, str) or not _TYPE_OF_LABELS.fullmatch(name):
        raise ValueError("dtype")
    dtype = np.dtype(name)
    if dtype.itemsize * len(labels) > LARGEST_ARRAY:
        raise ValueError(f"labels of type {dtype}, {len(labels):,} of them")
    values = np.fromiter(labels, dtype=dtype, count=len(labels))
    if values.tolist() != list(labels):
        raise ValueError(f"labels of type {dtype}, which cannot hold them")
    return Classes(trivial(range(len(labels))), labels, values, np.arange(len(labels)))


def _feature_names(metadata: dict[str, Any], n_columns: int) -> NDArray[Any] | None:
    names = metadata["feature_names"]
    if names is None:
        return None
    if len(names) != n_columns or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names are not the names of {n_columns} columns")
    return np.array(names, dtype=object)


def _block_scores(metadata: dict[str, Any]) -> FloatArray | None:
    if metadata["block_scores"] is None:
        return None
    scores = np.array(_array(metadata, "block_scores"), dtype=np.float64)
    grows = scores.ndim == 1 and (np.diff(scores, prepend=0.0) >= 0).all()
    if not (grows and np.isfinite(scores).all()):
        raise ValueError("block_scores are not sorted scores")
    return scores


def _array(metadata: dict[str, Any], name: str) -> list[Any]:
    value = metadata[name]
    if not isinstance(value, list):
        raise TypeError(f"{name} is not an array")
    return value


def _broken(path: Path, reason: str) -> StructentError:
    return StructentError(
        f"a model file must be one that structent saved, got {path.name}: {reason}"
    )


def _reason(error: Exception) -> str:
    """Return what an error says as part of a sentence."""
    text = " ".join(str(error).split())
    if isinstance(error, KeyError):
        text = f"there is no {text}"
    return text[:_LONGEST_REASON] or type(error).__name__
