"""Model files: a zip of JSON, the structure, and what was learned as plain numbers or trees.

Nothing in it is ever run: no pickle, no code, no import by name.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from structent._files import save_bytes
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.classes import Classes
from structent.estimators.columns import Columns
from structent.estimators.engines import engine
from structent.estimators.training import CHOICES, Chosen, Encoder, FittedBoosting
from structent.structure import files as structure_files
from structent.structure import trivial
from structent.structure.samplers import Structure

VERSION = 1

Fitted = TypeVar("Fitted")

_METADATA, _STRUCTURE, _ATTACHED = "metadata.json", "structure.json", "attachments/"
# What files of older versions lack.
_LATER = {"allow_blocks": False, "max_leaves": None, "max_bins": None, "refit": False, "n_bags": 1}
_TYPES_OF_LABELS = "biufUO"  # those that scikit-learn takes


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
    block_scores
        The sorted scores of held-out rows, by which answers are calibrated; None without such rows.
    """

    classes: Classes
    coef: NDArray[Any]
    intercept: NDArray[Any]
    n_iter: int
    block_scores: FloatArray | None = None


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
     "early_stopping_rounds", "validation_fraction", "refit", "n_bags", "allow_blocks"),
)  # fmt: skip
_LINEAR = _Kind(
    "structent-linear", "StructuredLogisticRegression", "coefficients.npy",
    ("C", "tol", "max_iter", "warm_start", "allow_blocks"),
)  # fmt: skip
_KINDS = {kind.format: kind for kind in (_BOOSTING, _LINEAR)}


def save_boosting(
    path: str | os.PathLike[str],
    fitted: FittedBoosting,
    saved: Saved,
    attachments: Mapping[str, str],
) -> None:
    """Write the file of a booster, all or not at all, with further texts by name."""
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
    return _read(Path(path), _BOOSTING, _fitted_boosting)


def save_linear(
    path: str | os.PathLike[str],
    fitted: FittedLinear,
    saved: Saved,
    attachments: Mapping[str, str],
) -> None:
    """Write the file of a linear model, all or not at all, with further texts by name."""
    content = {
        **_shared_content(_LINEAR, saved, fitted.classes, fitted.block_scores),
        "n_iter": fitted.n_iter,
    }
    learned = io.BytesIO()
    table = np.column_stack([fitted.coef, fitted.intercept])  # (classes, features + 1)
    np.lib.format.write_array(learned, table, allow_pickle=False)
    structure = None if saved.parameters["structure"] is None else fitted.classes.structure
    _write(path, _LINEAR, content, structure, learned.getvalue(), attachments)


def load_linear(path: str | os.PathLike[str]) -> tuple[FittedLinear, Saved]:
    """Return the linear model of a model file, and what else its estimator has."""
    return _read(Path(path), _LINEAR, _fitted_linear)


def attachment(path: str | os.PathLike[str], name: str) -> str | None:
    """Return a text that was saved along with a model, None if there is none of that name."""
    content = _members(Path(path)).get(f"{_ATTACHED}{name}")
    return None if content is None else content.decode()


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
    metadata = {
        "format": kind.format,
        "version": VERSION,
        "structent": version("structent"),
        **content,
        # XGBoost ends the process when it is given a booster that is none: compared before that.
        _digest_of(kind): hashlib.sha256(learned).hexdigest(),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_METADATA, json.dumps(metadata, default=_plain))
        if structure is not None:
            file.writestr(_STRUCTURE, structure_files.structure_to_json(structure))
        file.writestr(kind.learned, learned)
        for name, text in attachments.items():
            file.writestr(f"{_ATTACHED}{name}", text)
    save_bytes(path, buffer.getvalue())


def _digest_of(kind: _Kind) -> str:
    return f"sha256_of_{Path(kind.learned).stem}"


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a model file cannot hold {value!r}")


# Reading


def _read(
    path: Path, kind: _Kind, fitted: Callable[[dict[str, Any], Classes, bytes], Fitted]
) -> tuple[Fitted, Saved]:
    """Return what a file of this kind holds, or say in one sentence what is wrong with it."""
    members = _members(path)
    metadata = _metadata(members, kind, path)
    try:
        structure = None
        if _STRUCTURE in members:
            structure = structure_files.structure_from_json(members[_STRUCTURE].decode())
        kept = {**_LATER, **metadata["parameters"]}
        parameters = {name: kept[name] for name in kind.parameters}
        learned = members[kind.learned]
        if hashlib.sha256(learned).hexdigest() != metadata[_digest_of(kind)]:
            raise ValueError(f"the {kind.learned} is not the one that was saved")
        names = metadata["feature_names"]
        feature_names = None if names is None else np.array(names, dtype=object)
        model = fitted(metadata, _classes(structure, metadata), learned)
        return model, Saved({"structure": structure, **parameters}, feature_names)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, StructentError):
            raise
        raise _broken(path, f"its content is not what it should be ({error})") from None


def _members(path: Path) -> dict[str, bytes]:
    known = {_METADATA, _STRUCTURE, *(kind.learned for kind in _KINDS.values())}
    try:
        with zipfile.ZipFile(path) as file:
            # Reading compares each member with its checksum.
            return {
                name: file.read(name)
                for name in file.namelist()
                if name in known or name.startswith(_ATTACHED)
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _broken(path, f"it is no zip file, or is cut off ({error})") from None


def _metadata(members: dict[str, bytes], kind: _Kind, path: Path) -> dict[str, Any]:
    try:
        content = json.loads(members.get(_METADATA, b"{}"))
    except ValueError:
        raise _broken(path, "its metadata are not JSON") from None
    metadata: dict[str, Any] = content if isinstance(content, dict) else {}
    given = metadata.get("format")
    if not isinstance(given, str) or given not in _KINDS:
        raise _broken(path, "it is a zip file of something else")
    if given != kind.format:
        raise StructentError(
            f"{kind.estimator}.load reads the file of such a model, got {path.name}, which holds a "
            f"{_KINDS[given].estimator}; load it with that class"
        )
    if metadata.get("version") != VERSION:
        raise StructentError(
            f"this structent reads model files of version {VERSION}, got version "
            f"{metadata.get('version')!r} in {path.name}; use the structent that wrote it "
            f"({metadata.get('structent')}), or a newer one"
        )
    if kind.learned not in members:
        raise _broken(path, f"it has no member {kind.learned!r}")
    return metadata


def _fitted_boosting(metadata: dict[str, Any], classes: Classes, booster: bytes) -> FittedBoosting:
    categories = [
        None if column is None else tuple(column) for column in _array(metadata, "categories")
    ]
    encoder = Encoder(Columns(tuple(categories)), classes, bool(metadata["is_one_hot"]))
    name = metadata["parameters"]["engine"]
    if name not in CHOICES["engine"]:
        raise ValueError(f"engine {name!r}")
    start = np.array(_array(metadata, "start"), dtype=np.float64)
    model = engine(name).from_bytes(booster, start)
    scores = tuple(map(float, _array(metadata, "scores")))
    chosen = metadata.get("chosen", metadata["parameters"])
    chosen = Chosen(int(chosen["max_depth"]), str(chosen["split_search"]))
    return FittedBoosting(encoder, model, scores, chosen, _block_scores(metadata))


def _fitted_linear(metadata: dict[str, Any], classes: Classes, learned: bytes) -> FittedLinear:
    table = np.lib.format.read_array(io.BytesIO(learned), allow_pickle=False)
    is_right = table.dtype in (np.float32, np.float64) and table.ndim == 2 and table.shape[1] > 1
    if not is_right or len(table) != len(classes.labels):
        raise ValueError(f"coefficients of type {table.dtype} and shape {table.shape}")
    # As they were fitted, in one piece: products of matrices may round otherwise elsewhere.
    coef, intercept = (np.ascontiguousarray(part) for part in (table[:, :-1], table[:, -1]))
    return FittedLinear(classes, coef, intercept, int(metadata["n_iter"]), _block_scores(metadata))


def _classes(structure: Structure | None, metadata: dict[str, Any]) -> Classes:
    labels = tuple(map(structure_files.label_from_json, _array(metadata, "labels")))
    if structure is not None:
        return Classes.of_structure(structure)
    dtype = np.dtype(metadata["dtype"])
    if dtype.kind not in _TYPES_OF_LABELS:
        raise ValueError(f"labels of type {dtype}")
    values = np.fromiter(labels, dtype=dtype, count=len(labels))
    return Classes(trivial(range(len(labels))), labels, values, np.arange(len(labels)))


def _block_scores(metadata: dict[str, Any]) -> FloatArray | None:
    # Files that were written before models could be calibrated say nothing of it.
    if metadata.get("block_scores") is None:
        return None
    scores = np.array(_array(metadata, "block_scores"), dtype=np.float64)
    grows = scores.ndim == 1 and (np.diff(scores, prepend=0.0) >= 0).all()
    if not (grows and np.isfinite(scores).all()):
        raise ValueError("block_scores are not sorted scores")
    return scores


def _array(metadata: dict[str, Any], name: str) -> list[Any]:
    value = metadata[name]
    if not isinstance(value, list):
        raise TypeError(f"{name} is no array")
    return value


def _broken(path: Path, reason: str) -> StructentError:
    return StructentError(f"a model file must be one that save() wrote, got {path.name}: {reason}")
