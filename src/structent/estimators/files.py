"""Model files: a zip of JSON, the structure and the booster in its engine's own format.

Nothing in it is ever run: no pickle, no code, no import by name.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structent._files import save_bytes
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.classes import Classes
from structent.estimators.columns import Columns
from structent.estimators.engines import engine
from structent.estimators.training import CHOICES, Encoder, FittedBoosting
from structent.structure import files as structure_files
from structent.structure import trivial
from structent.structure.samplers import Structure

FORMAT = "structent-boosting"
VERSION = 1

_METADATA, _STRUCTURE, _BOOSTER = "metadata.json", "structure.json", "booster"
_ATTACHED = "attachments/"
_PARAMETERS = (
    "n_estimators", "learning_rate", "max_depth", "min_child_weight", "reg_lambda", "subsample",
    "colsample", "engine", "trees", "curvature", "split_search", "early_stopping_rounds",
    "validation_fraction", "allow_blocks",
)  # fmt: skip
_LATER = {"allow_blocks": False}  # what files of older versions lack
_KINDS = "biufUO"  # of the labels that scikit-learn takes


def save(
    path: str | os.PathLike[str],
    fitted: FittedBoosting,
    parameters: dict[str, Any],
    feature_names: NDArray[Any] | None,
    attachments: Mapping[str, str],
) -> None:
    """Write a model file, all or not at all, with further texts by name."""
    classes, has_structure = fitted.encoder.classes, parameters["structure"] is not None
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "structent": version("structent"),
        "parameters": {name: parameters[name] for name in _PARAMETERS},
        "labels": classes.labels,
        "dtype": classes.values.dtype.str,
        "categories": fitted.encoder.columns.categories,
        "is_one_hot": fitted.encoder.is_one_hot,
        "feature_names": None if feature_names is None else feature_names.tolist(),
        "scores": fitted.scores,
        "start": fitted.model.start.tolist(),
        "block_scores": None if fitted.block_scores is None else fitted.block_scores.tolist(),
    }
    booster = fitted.model.to_bytes()
    # XGBoost ends the process when it is given a booster that is none: compared before it sees it.
    metadata["sha256_of_booster"] = hashlib.sha256(booster).hexdigest()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_METADATA, json.dumps(metadata, default=_plain))
        if has_structure:
            file.writestr(_STRUCTURE, structure_files.structure_to_json(classes.structure))
        file.writestr(_BOOSTER, booster)
        for name, text in attachments.items():
            file.writestr(f"{_ATTACHED}{name}", text)
    save_bytes(path, content.getvalue())


def load(
    path: str | os.PathLike[str],
) -> tuple[FittedBoosting, dict[str, Any], NDArray[Any] | None]:
    """Return the fitted booster of a model file, the estimator's parameters, the feature names."""
    members = _members(Path(path))
    metadata = _metadata(members[_METADATA], Path(path))
    try:
        return _read(members, metadata)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, StructentError):
            raise
        raise _broken(Path(path), f"its content is not what it should be ({error})") from None


def attachment(path: str | os.PathLike[str], name: str) -> str | None:
    """Return a text that was saved along with a model, None if there is none of that name."""
    content = _members(Path(path)).get(f"{_ATTACHED}{name}")
    return None if content is None else content.decode()


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a model file cannot hold {value!r}")


def _members(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as file:
            names = set(file.namelist())
            if not {_METADATA, _BOOSTER} <= names:
                raise _broken(path, "it is a zip file of something else")
            # Reading compares each member with its checksum.
            return {
                name: file.read(name)
                for name in names
                if name in (_METADATA, _STRUCTURE, _BOOSTER) or name.startswith(_ATTACHED)
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _broken(path, f"it is no zip file, or is cut off ({error})") from None


def _metadata(content: bytes, path: Path) -> dict[str, Any]:
    try:
        metadata = json.loads(content)
    except ValueError:
        raise _broken(path, "its metadata are not JSON") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise _broken(path, "it is a zip file of something else")
    if metadata.get("version") != VERSION:
        raise StructentError(
            f"this structent reads model files of version {VERSION}, got version "
            f"{metadata.get('version')!r} in {path.name}; use the structent that wrote it "
            f"({metadata.get('structent')}), or a newer one"
        )
    return metadata


def _read(
    members: dict[str, bytes], metadata: dict[str, Any]
) -> tuple[FittedBoosting, dict[str, Any], NDArray[Any] | None]:
    structure = None
    if _STRUCTURE in members:
        structure = structure_files.structure_from_json(members[_STRUCTURE].decode())
    kept = {**_LATER, **metadata["parameters"]}
    parameters = {name: kept[name] for name in _PARAMETERS}
    categories = [
        None if column is None else tuple(column) for column in _array(metadata, "categories")
    ]
    encoder = Encoder(
        Columns(tuple(categories)), _classes(structure, metadata), bool(metadata["is_one_hot"])
    )
    if hashlib.sha256(members[_BOOSTER]).hexdigest() != metadata["sha256_of_booster"]:
        raise ValueError("the booster is not the one that was saved")
    start = np.array(_array(metadata, "start"), dtype=np.float64)
    model = engine(_known_engine(parameters["engine"])).from_bytes(members[_BOOSTER], start)
    names = metadata["feature_names"]
    feature_names = None if names is None else np.array(names, dtype=object)
    scores = tuple(map(float, _array(metadata, "scores")))
    fitted = FittedBoosting(encoder, model, scores, _block_scores(metadata))
    return fitted, {"structure": structure, **parameters}, feature_names


def _array(metadata: dict[str, Any], name: str) -> list[Any]:
    value = metadata[name]
    if not isinstance(value, list):
        raise TypeError(f"{name} is no array")
    return value


def _block_scores(metadata: dict[str, Any]) -> FloatArray | None:
    # Files that were written before models could be calibrated say nothing of it.
    if metadata.get("block_scores") is None:
        return None
    scores = np.array(_array(metadata, "block_scores"), dtype=np.float64)
    grows = scores.ndim == 1 and (np.diff(scores, prepend=0.0) >= 0).all()
    if not (grows and np.isfinite(scores).all()):
        raise ValueError("block_scores are not sorted scores")
    return scores


def _classes(structure: Structure | None, metadata: dict[str, Any]) -> Classes:
    labels = tuple(map(structure_files.label_from_json, _array(metadata, "labels")))
    if structure is not None:
        return Classes.of_structure(structure)
    dtype = np.dtype(metadata["dtype"])
    if dtype.kind not in _KINDS:
        raise ValueError(f"labels of type {dtype}")
    values = np.fromiter(labels, dtype=dtype, count=len(labels))
    return Classes(trivial(range(len(labels))), labels, values, np.arange(len(labels)))


def _known_engine(name: str) -> str:
    if name not in CHOICES["engine"]:
        raise ValueError(f"engine {name!r}")
    return name


def _broken(path: Path, reason: str) -> StructentError:
    return StructentError(f"a model file must be one that save() wrote, got {path.name}: {reason}")
