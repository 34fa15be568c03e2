"""An attack on estimators by odd inputs: ``python -m tests.attack_inputs --tries 2000 --record``.

Tables, labels and weights of every kind are put together at random, by a seed, and fitted. A fit
must give a model with finite probabilities, which is the same when it is saved and loaded, or a
StructentError, ValueError or TypeError of one sentence. All else is a failure: another error, NaN,
a warning of another library, a process that ended, a fit that takes longer than any should.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tests import reliability
from tests.trials import run_trials, say

SECONDS = 120  # a fit of so few rows that takes longer hangs, however busy the machine is
FITTED, REFUSED = "fitted", "refused"
# The worst first.
WORST = (
    "process ended",
    "hangs",
    "nan",
    "not saved",
    "other error",
    "several sentences",
    "warning",
)
LONGEST = 600  # characters of a sentence
_N_ROWS = (0, 1, 2, 3, 10, *(40,) * 15)

Rng = np.random.Generator
Maker = Callable[[int, Rng], Any]


# Tables


def _numbers(n: int, rng: Rng) -> Any:
    return rng.normal(size=(n, 3))


def _with(value: Any, share: float = 0.1) -> Maker:
    def maker(n: int, rng: Rng) -> Any:
        made = _numbers(n, rng)
        made[rng.random(made.shape) < share] = value
        return made

    return maker


def _frame(n: int, rng: Rng) -> Any:
    import pandas as pd

    numbers = _numbers(n, rng)
    return pd.DataFrame(
        {
            "size": numbers[:, 0],
            "colour": rng.choice(["red", "blue", None], size=n),
            "n": numbers[:, 1],
        }
    )


def _column(make: Maker) -> Maker:
    """Return what makes a pandas table with a column of these values."""

    def maker(n: int, rng: Rng) -> Any:
        import pandas as pd

        return pd.DataFrame({"size": rng.normal(size=n)}).assign(odd=make(n, rng))

    return maker


def _typed(dtype: str) -> Maker:
    def maker(n: int, rng: Rng) -> Any:
        import pandas as pd

        values = pd.Series(rng.integers(2, size=n)).astype(dtype)
        return values.mask(pd.Series(rng.random(n) < 0.2))

    return maker


def _objects(*values: Any) -> Maker:
    def maker(n: int, rng: Rng) -> Any:
        made = np.empty(n, dtype=object)
        for row, place in enumerate(rng.integers(len(values), size=n)):
            made[row] = values[place]
        return made

    return maker


def _dates(n: int, rng: Rng) -> Any:
    return np.datetime64("2020-01-01", "ns") + rng.integers(3, size=n).astype("timedelta64[D]")


def _polars(dtype: str) -> Maker:
    def maker(n: int, rng: Rng) -> Any:
        import polars as pl

        values = rng.integers(4, size=n).tolist()
        odd = {
            "text": [f"v{v}" if v else None for v in values],
            "null": [None] * n,
            "bool": [bool(v) if v else None for v in values],
            "int": [v or None for v in values],
            "date": [datetime.date(2020, 1, 1 + v) for v in values],
            "list": [[v] for v in values],
            "struct": [{"a": v} for v in values],
        }[dtype]
        return pl.DataFrame({"size": rng.normal(size=n), "odd": pl.Series(odd, strict=False)})

    return maker


def _sparse(kind: str) -> Maker:
    def maker(n: int, rng: Rng) -> Any:
        import scipy.sparse

        return getattr(scipy.sparse, kind)(_with(0.0, 0.7)(n, rng))

    return maker


def _duplicated(n: int, rng: Rng) -> Any:
    frame = _frame(n, rng)
    frame.columns = ["same", "other", "same"]
    return frame


def _named(*names: Any) -> Maker:
    def maker(n: int, rng: Rng) -> Any:
        import pandas as pd

        return pd.DataFrame(_numbers(n, rng)[:, : len(names)], columns=list(names))

    return maker


TABLES: dict[str, Maker] = {
    "numbers": _numbers,
    "float32": lambda n, rng: _numbers(n, rng).astype(np.float32),
    "float16": lambda n, rng: _numbers(n, rng).astype(np.float16),
    "longdouble": lambda n, rng: _numbers(n, rng).astype(np.longdouble),
    "NaN": _with(np.nan),
    "all NaN": _with(np.nan, 1.0),
    "inf": _with(np.inf),
    "1e300": _with(1e300),
    "1e-300": _with(1e-300),
    "1e38": _with(3e38),
    "constant": lambda n, _rng: np.ones((n, 2)),
    "one column": lambda n, rng: _numbers(n, rng)[:, :1],
    "no column": lambda n, _rng: np.empty((n, 0)),
    "1D": lambda n, rng: rng.normal(size=n),
    "3D": lambda n, rng: rng.normal(size=(n, 2, 2)),
    "scalar": lambda _n, _rng: 3.0,
    "None": lambda _n, _rng: None,
    "text": lambda n, rng: rng.choice(["a", "b"], size=(n, 2)),
    "text that is numbers": lambda n, rng: rng.integers(5, size=(n, 2)).astype(str),
    "a string": lambda _n, _rng: "data.csv",
    "a dict": lambda n, rng: {"a": rng.normal(size=n)},
    "lists": lambda n, rng: _numbers(n, rng).tolist(),
    "ragged lists": lambda n, rng: [[1.0] * int(rng.integers(1, 4)) for _ in range(n)],
    "ints": lambda n, rng: rng.integers(-5, 5, size=(n, 2)),
    "huge ints": lambda n, rng: rng.integers(2**62, 2**63 - 1, size=(n, 2)),
    "unsigned": lambda n, rng: rng.integers(2**63, 2**64 - 1, size=(n, 2), dtype=np.uint64),
    "bools": lambda n, rng: rng.random((n, 2)) < 0.5,
    "complex": lambda n, rng: _numbers(n, rng) + 1j,
    "objects": lambda n, rng: _numbers(n, rng).astype(object),
    "objects with None": lambda n, rng: np.column_stack([_objects(1.5, None)(n, rng)] * 2),
    "objects with text": lambda n, rng: np.column_stack([_objects(1.5, "x")(n, rng)] * 2),
    "python ints beyond 64 bits": lambda n, rng: np.column_stack([_objects(10**30, 1)(n, rng)]),
    "dates": lambda n, rng: np.column_stack([_dates(n, rng)] * 2),
    "bytes": lambda n, rng: rng.choice([b"a", b"b"], size=(n, 2)),
    "records": lambda n, _rng: np.zeros(n, dtype=[("a", float), ("b", int)]),
    "masked": lambda n, rng: np.ma.masked_less(_numbers(n, rng), 0),
    "matrix": lambda n, rng: np.asmatrix(_numbers(n, rng)),
    "Fortran order": lambda n, rng: np.asfortranarray(_numbers(n, rng)),
    "every other row": lambda n, rng: _numbers(2 * n, rng)[::2],
    "big-endian": lambda n, rng: _numbers(n, rng).astype(">f8"),
    "sparse csr": _sparse("csr_matrix"),
    "sparse coo": _sparse("coo_array"),
    "sparse csc": _sparse("csc_array"),
    "frame": _frame,
    "frame: empty": lambda n, rng: _frame(n, rng)[[]],
    "frame: duplicated names": _duplicated,
    "frame: names 0, 1": _named(0, 1),
    "frame: mixed names": _named(0, "b"),
    "frame: names with brackets": _named("a[0]", "b<1>", '"c",'),
    "frame: Int64": _column(_typed("Int64")),
    "frame: Float64": _column(_typed("Float64")),
    "frame: boolean": _column(_typed("boolean")),
    "frame: string": _column(_typed("string")),
    "frame: category": _column(_typed("category")),
    "frame: dates": _column(_dates),
    "frame: mixed": _column(_objects("a", 1, 2.5, None)),
    "frame: Decimal": _column(_objects(decimal.Decimal("1.5"), decimal.Decimal(2))),
    "frame: lists": _column(_objects([1], [2])),
    "frame: bytes": _column(_objects(b"a", b"b")),
    "frame: complex": _column(lambda n, rng: rng.normal(size=n) + 1j),
    "frame: inf": _column(_objects(np.inf, 1.0)),
    "frame: huge ints": _column(_objects(10**30, 1)),
    "frame: all None": _column(_objects(None)),
    **{f"polars: {kind}": _polars(kind) for kind in
       ("text", "null", "bool", "int", "date", "list", "struct")},
}  # fmt: skip


# Labels


def _labels(values: Any) -> Maker:
    return lambda n, rng: np.asarray(values)[rng.integers(len(values), size=n)]


def _series(dtype: str) -> Maker:
    def maker(n: int, rng: Rng) -> Any:
        import pandas as pd

        return pd.Series(rng.integers(2, size=n)).astype(dtype)

    return maker


LABELS: dict[str, Maker] = {
    "text": _labels(["oak", "ash", "rose"]),
    "ints": _labels([1, 2, 3]),
    "bools": _labels([True, False]),
    "one class": _labels(["oak"]),
    "every row another": lambda n, _rng: np.arange(n).astype(str),
    "every row another int": lambda n, _rng: np.arange(n),
    "amounts": lambda n, rng: rng.normal(size=n),
    "whole floats": _labels([1.0, 2.0]),
    "huge ints": _labels([2**62, 2**63 - 1]),
    "unsigned": _labels(np.array([2**63, 2**64 - 1], dtype=np.uint64)),
    "python ints beyond 64 bits": _objects(10**30, 10**31),
    "NaN": _labels([1.0, np.nan]),
    "inf": _labels([1.0, np.inf]),
    "None among text": _objects("oak", "ash", None),
    "mixed": _objects("oak", 1, 2.5),
    "numbers of several types": _objects(1, 2.0, True),
    "bytes": _labels([b"oak", b"ash"]),
    "bytes as objects": _objects(b"oak", b"ash"),
    "dates": _dates,
    "timedeltas": lambda n, rng: _dates(n, rng) - np.datetime64("2020-01-01"),
    "python dates": _objects(datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
    "timestamps": _series("datetime64[ns]"),
    "complex": _labels([1j, 2j]),
    "tuples": _objects(("oak", 1), ("ash", 2)),
    "lists": _objects([1], [2]),
    "sets": _objects({"oak"}, {"ash"}),
    "dicts": _objects({"a": 1}, {"a": 2}),
    "empty text": _labels(["", "ash"]),
    "odd text": _labels(["\ud800"[:0] + "é", "\x00a", "line\nbreak"]),
    "long text": _labels(["x" * 20_000, "y"]),
    "float16": lambda n, rng: rng.integers(2, size=n).astype(np.float16),
    "2D": lambda n, rng: rng.integers(2, size=(n, 2)),
    "one-hot": lambda n, rng: np.eye(3)[rng.integers(3, size=n)],
    "column": lambda n, rng: rng.integers(3, size=(n, 1)),
    "too few": lambda n, rng: rng.integers(3, size=max(n - 1, 0)),
    "scalar": lambda _n, _rng: 1,
    "None": lambda _n, _rng: None,
    "a string": lambda _n, _rng: "species",
    "masked": lambda n, rng: np.ma.masked_equal(rng.integers(3, size=n), 0),
    "a list": lambda n, rng: rng.choice(["oak", "ash"], size=n).tolist(),
    "category": _series("category"),
    "Int64": _series("Int64"),
    "string": _series("string"),
    "boolean": _series("boolean"),
    "polars": lambda n, rng: __import__("polars").Series(rng.integers(3, size=n)),
    "polars text": lambda n, rng: __import__("polars").Series(_labels(["a", "b"])(n, rng)),
    "sparse": lambda n, _rng: __import__("scipy.sparse").sparse.csr_array(np.eye(max(n, 1))),
}  # fmt: skip

WEIGHTS: dict[str, Maker] = {
    "none": lambda _n, _rng: None,
    "ones": lambda n, _rng: np.ones(n),
    "1e-300": lambda n, _rng: np.full(n, 1e-300),
    "1e300": lambda n, _rng: np.full(n, 1e300),
    "1e308": lambda n, _rng: np.full(n, 1.5e308),
    "1e-320": lambda n, _rng: np.full(n, 1e-320),
    "both": lambda n, rng: rng.choice([1e-300, 1.0, 1e300], size=n),
    "zeros": lambda n, rng: (rng.random(n) < 0.3).astype(float),
    "one row": lambda n, _rng: (np.arange(n) == 0).astype(float),
    "all zero": lambda n, _rng: np.zeros(n),
    "negative": lambda n, rng: rng.normal(size=n),
    "NaN": lambda n, _rng: np.full(n, np.nan),
    "text": lambda n, _rng: np.full(n, "1"),
    "objects": lambda n, _rng: np.full(n, None),
    "2D": lambda n, _rng: np.ones((n, 2)),
    "a number": lambda _n, _rng: 2.0,
    "complex": lambda n, _rng: np.full(n, 1j),
    "bools": lambda n, rng: rng.random(n) < 0.8,
}

_BOOSTING = {
    "our trees": {},
    "XGBoost": {"engine": "xgboost"},
    "XGBoost, a tree per class": {"engine": "xgboost", "trees": "per_class"},
    "LightGBM": {"engine": "lightgbm", "trees": "per_class"},
}
_NEEDS = {"XGBoost": "xgboost", "XGBoost, a tree per class": "xgboost", "LightGBM": "lightgbm"}
MODELS = tuple(
    name
    for name in ("our trees", "linear", "our trees", "linear", *_NEEDS)
    if find_spec(_NEEDS.get(name, "numpy")) is not None
)


def model(name: str, rng: Rng) -> Any:
    """Return an estimator with settings drawn at random."""
    from structent import StructuredBoostingClassifier, StructuredLogisticRegression

    structure = (None, None, None, "ordinal", "circular:width=2")[rng.integers(5)]
    balanced = "balanced" if rng.random() < 0.2 else None
    if name == "linear":
        prior = 1.0 if structure is None else (1.0, 0.5, "auto")[rng.integers(3)]
        return StructuredLogisticRegression(
            structure, prior=prior, class_weight=balanced, max_iter=30, random_state=0
        )
    return StructuredBoostingClassifier(
        structure, n_estimators=4, max_depth=2, n_jobs=1, random_state=0, class_weight=balanced,
        early_stopping_rounds=(None, 2)[rng.integers(2)], **_BOOSTING[name],
    )  # fmt: skip


def drawn(seed: int, number: int) -> tuple[dict[str, str], Callable[[], tuple[Any, ...]]]:
    """Return what is put together in a try, by name, and what makes it.

    Mostly one part is odd, so that each is looked at by itself; sometimes all are.
    """
    rng = np.random.default_rng([seed, number])
    labels = "ints" if rng.random() < 0.7 else "text"
    names = {"table": "numbers", "labels": labels, "weights": "none"}
    kinds = {"table": list(TABLES), "labels": list(LABELS), "weights": list(WEIGHTS)}
    odd = ("table", "table", "labels", "labels", "weights", "all")[rng.integers(6)]
    for part, choices in kinds.items():
        if odd in (part, "all"):
            names[part] = choices[rng.integers(len(choices))]
    name = MODELS[rng.integers(len(MODELS))]
    n = int(_N_ROWS[rng.integers(len(_N_ROWS))])

    def make() -> tuple[Any, ...]:
        made = [
            makers[names[part]](n, rng)
            for part, makers in (("table", TABLES), ("labels", LABELS), ("weights", WEIGHTS))
        ]
        return model(name, rng), *made

    return {"group": name, "rows": str(n), **names}, make


def fitted(estimator: Any, features: Any, y: Any, sample_weight: Any, folder: Path) -> str:
    """Fit, predict, save and load; return what came of it."""
    estimator.fit(features, y, sample_weight=sample_weight)
    proba = estimator.predict_proba(features)
    is_right = np.isfinite(proba).all() and np.allclose(proba.sum(axis=1), 1)
    if not is_right or proba.shape[1] != len(estimator.classes_):
        return "nan"
    estimator.predict(features)
    path = folder / "model.structent"
    estimator.save(path)
    again = type(estimator).load(path)
    same = np.array_equal(again.predict_proba(features), proba)
    return FITTED if same and list(again.classes_) == list(estimator.classes_) else "not saved"


def work(folder: Path, seed: int, numbers: range, seconds: int) -> None:
    """Make some of the tries, and say of each what is tried, then what came of it."""
    from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

    for number in numbers:
        about, make = drawn(seed, number)
        say({"number": number, **about})
        signal.alarm(seconds)  # which ends the process
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            made = make()  # NumPy warns of what we put together
            warnings.simplefilter("always")
            outcome, why = _tried(made, folder)
        signal.alarm(0)
        # Ours, and the one of a column of labels, which scikit-learn demands.
        ours = (ConvergenceWarning, DataConversionWarning)
        foreign = [str(each.message) for each in caught if not issubclass(each.category, ours)]
        if foreign and outcome in (FITTED, REFUSED):
            outcome, why = "warning", foreign[0]
        say({"outcome": outcome, "why": why})


def _tried(made: Sequence[Any], folder: Path) -> tuple[str, str]:
    try:
        return fitted(*made, folder), ""
    except (ValueError, TypeError) as error:  # a StructentError is a ValueError
        why = f"{type(error).__name__}: {error}"
        is_sentence = "\n" not in why and len(why) <= LONGEST
        return (REFUSED if is_sentence else "several sentences"), why
    except Exception:  # noqa: BLE001  this is what we look for
        return "other error", traceback.format_exc()


def attack(folder: Path, seed: int, n_tries: int) -> list[dict[str, Any]]:
    """Return what came of every try; where a process ended, another one goes on."""
    command = ["-m", "tests.attack_inputs", "work", str(folder), str(seed)]
    return run_trials(command, n_tries, SECONDS)


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table in Markdown: a line for each kind of model."""
    tries = sorted((each["group"], each["outcome"]) for each in found)
    return reliability.table("model", tries, {FITTED: "fitted", REFUSED: "refused"}, WORST)


def main() -> None:
    """Attack, and print the table and what failed."""
    if sys.argv[1:2] == ["work"]:
        seed, first, last, seconds = map(int, sys.argv[3:])
        work(Path(sys.argv[2]), seed, range(first, last), seconds)
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = attack(Path(name), options.seed, options.tries)
    for each in found:
        if each["outcome"] in WORST:
            print(each)
    print("\n".join(table(found)))
    if options.record:
        packages = ("numpy", "scikit-learn", "pandas", "polars", "xgboost", "lightgbm")
        reliability.record("attack by inputs", table(found), options.seed, packages)


if __name__ == "__main__":
    main()
