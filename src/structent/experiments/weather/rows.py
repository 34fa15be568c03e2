"""California's daily weather: what Problems 2 and 3 of the paper learn from.

The paper's own table cannot be had. The one read here (NOAA GHCN-Daily) has the same columns and
37 of California's counties: log losses differ from the paper's, differences between methods can be
compared.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray
from structent.errors import StructentError
from structent.inputs import features_and_labels, open_table
from structent.structure import LabelGraph

FEATURES = ("PRCP", "TMAX", "TMIN")
_TABLE = "california_daily_2000_2018.parquet"
_GRAPH = "california_counties_37.json"


class Rows(NamedTuple):
    """Rows of the table: their features, (n, 3), and their labels, (n,)."""

    features: FloatArray
    labels: NDArray[np.generic]


@dataclass(frozen=True)
class Draw:
    """The rows of one trial, drawn without replacement: no row is in two of the three parts."""

    train: Rows
    validation: Rows
    test: Rows


def draw(
    data: Path, label: str, *, n_train: int, n_validation: int, n_test: int, trial: int
) -> Draw:
    """Return the rows of a trial, the same for every method.

    Parameters
    ----------
    data
        The folder that holds the table, or one that holds it in ``weather``.
    label
        The column to predict.
    n_train, n_validation, n_test
        How many rows.
    trial
        The number of the trial; with ``n_train`` it seeds the draw.
    """
    rows = _rows(data, label)
    wanted = n_test + n_validation + n_train
    if wanted > len(rows.labels):
        raise StructentError(
            f"a trial needs {wanted:,} rows, got a table with {len(rows.labels):,}; use a smaller "
            "preset"
        )
    rng = np.random.default_rng((trial, n_train))
    drawn = rng.choice(len(rows.labels), size=wanted, replace=False)
    parts = np.split(drawn, [n_test, n_test + n_validation])
    test, validation, train = (Rows(rows.features[part], rows.labels[part]) for part in parts)
    return Draw(train, validation, test)


@cache
def county_graph(data: Path) -> LabelGraph:
    """Return the graph of neighbouring counties that comes with the table."""
    file = _file(data, _GRAPH)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return LabelGraph(content["edges"], content["nodes"])
    except StructentError as error:
        raise StructentError(f"{file} must hold a graph of counties: {error}") from None
    except (ValueError, KeyError, TypeError):
        raise StructentError(
            f"{file} must be a JSON object with the counties in nodes and pairs of them in edges"
        ) from None


@cache
def _rows(data: Path, label: str) -> Rows:
    file = _file(data, _TABLE)
    table = features_and_labels(open_table(file, [label, *FEATURES]), label, features=FEATURES)
    wrong = [column.name for column in table.columns if column.kind != "number"]
    if wrong:
        raise StructentError(f"{file} must hold numbers in {', '.join(wrong)}, got other values")
    return Rows(table.features.to_numpy().astype(np.float64), table.labels)


def _file(data: Path, name: str) -> Path:
    for folder in (data, data / "weather"):
        if (folder / name).is_file():
            return folder / name
    raise StructentError(
        f"--data must be a folder that holds {name}, by itself or in weather/, got {data}"
    )
