"""An attack on model and structure files: ``python -m tests.attack_files --tries 40000 --record``.

Files are changed at random, by a seed, and loaded. A changed file must give a StructentError, or
the model that was saved. Where the digests were written again to go with the change, or where there
are none, it may give another model, which must predict. All else is a failure: another error, a
model that changed unnoticed, a process that ended, a load that takes longer than any should, or a
lot of memory. Libraries in C++ can end the process, so the files are loaded in another one.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tests import reliability
from tests.trials import run_trials, say

SECONDS = 60  # a load that takes longer hangs, however busy the machine is
MEGABYTES = 300  # more than this, beyond what the process had before, is a lot of memory
REFUSED, SAME, OTHER = "refused", "same", "other"
WORST = ("process ended", "hangs", "memory", "unnoticed", "other error")  # the worst first


@dataclass(frozen=True)
class Target:
    """A file to attack.

    Attributes
    ----------
    name
        Its name, with the ending that tells its format.
    group
        The line of the table that it is counted in.
    """

    name: str
    group: str

    @property
    def is_model(self) -> bool:
        return self.name.endswith(".structent")


MODELS = {
    "trees.structent": "models of our own engine",
    "categories.structent": "models of our own engine",
    "bags.structent": "models of our own engine",
    "linear.structent": "linear models",
    "pairs.structent": "linear models",
    "table.structent": "linear models",
    "vector.structent": "models of XGBoost",
    "per_class.structent": "models of XGBoost",
    "lightgbm.structent": "models of LightGBM",
}
STRUCTURES = {
    "partition.json": "structures, as saved",
    "graph.json": "structures, as saved",
    "mixed.json": "structures, as saved",
    "product.json": "structures, as saved",
    "scrambled.json": "structures, as saved",
    "fixed.json": "structures, as saved",
    "nested.json": "hierarchies and graphs that users write",
    "parents.yaml": "hierarchies and graphs that users write",
    "table.csv": "hierarchies and graphs that users write",
    "tree.nwk": "hierarchies and graphs that users write",
    "edges.csv": "hierarchies and graphs that users write",
}
_NEEDS = {"vector": "xgboost", "per_class": "xgboost", "lightgbm": "lightgbm", "parents": "yaml"}
TARGETS = tuple(
    Target(name, group)
    for name, group in (MODELS | STRUCTURES).items()
    if find_spec(_NEEDS.get(name.split(".")[0], "numpy")) is not None
)


# The files as they were saved

LABELS = ("ash", "oak", "rose")


def write_targets(folder: Path) -> None:
    """Write every file that is attacked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are trained for a few rounds only
        for name, model in _models():
            model.save(folder / name, attachments={"notes": "from the garden"})
    for name, structure in _structures().items():
        structure.save(folder / name)
    nested = {"tree": {"maple": ["oak"], "other": ["ash"]}, "flower": ["rose", "lily"]}
    parents = "oak: tree\nash: tree\nrose: flower\ntree: plant\nflower: plant\n"
    table = "class,form,realm\noak,tree,plant\nash,tree,plant\nrose,flower,plant\ncat,pet,animal\n"
    tree = "((oak:1,ash:2)tree,('dog rose',rose)flower[a comment])plants;"
    texts = {
        "nested.json": json.dumps(nested), "parents.yaml": parents, "table.csv": table,
        "tree.nwk": tree, "edges.csv": "from,to\noak,ash\nash,rose\nrose,cat\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)


def _models() -> Iterator[tuple[str, Any]]:
    from structent import StructuredBoostingClassifier, StructuredLogisticRegression

    plants = _structures()["partition.json"]
    table, labels = _table(200), _labels(200)
    numbers = table[["size", "weight"]].to_numpy()
    settings = {"n_estimators": 5, "max_depth": 3, "n_jobs": 1, "random_state": 0}
    boosting = {
        "trees": ({}, numbers),
        "categories": ({}, table),
        "bags": ({"n_bags": 2}, table),
        "vector": ({"engine": "xgboost"}, table),
        "per_class": ({"engine": "xgboost", "trees": "per_class"}, table),
        "lightgbm": ({"engine": "lightgbm", "trees": "per_class"}, table),
    }
    known = {target.name for target in TARGETS}
    for name, (more, features) in boosting.items():
        if f"{name}.structent" in known:
            structure = None if name == "categories" else plants
            model = StructuredBoostingClassifier(structure, **{**settings, **more})
            yield f"{name}.structent", model.fit(features, labels)
    linear = StructuredLogisticRegression(plants, prior=0.5).fit(numbers, labels)
    yield "linear.structent", linear.calibrate_blocks(numbers, labels)
    gaps = table.assign(size=table["size"].where(table["size"] < 1.5))
    of_table = StructuredLogisticRegression(plants, encode=True).fit(gaps, labels)
    yield "table.structent", of_table
    pairs = _structures()["fixed.json"].structure.product(plants)
    places = np.arange(200) % len(pairs.classes)
    of_pairs = StructuredLogisticRegression(pairs, max_iter=5)
    yield "pairs.structent", of_pairs.fit(numbers, [pairs.classes[place] for place in places])


def _structures() -> dict[str, Any]:
    from structent import (
        FixedStructure,
        LabelGraph,
        SpanningTreePartitions,
        circular,
        hierarchy,
        mix,
        ordinal,
    )

    plants = hierarchy({"rose": ("flower",), "oak": ("tree",), "ash": ("tree",)})
    graph = LabelGraph([("rose", "oak"), ("oak", "ash"), ("ash", "rose")])
    trees = SpanningTreePartitions(graph, 2, 0.5, seed=4)
    return {
        "partition.json": plants,
        "graph.json": trees,
        "mixed.json": mix([plants, trees]),
        "product.json": circular(range(1, 5), width=2).product(trees),
        "scrambled.json": trees.scramble(np.random.default_rng(0)).product(
            FixedStructure(ordinal([1, 2]))
        ).scramble(np.random.default_rng(1)),
        "fixed.json": FixedStructure(ordinal([1, 2, 3])),
    }  # fmt: skip


def _table(n_rows: int) -> Any:
    import pandas as pd

    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n_rows),
            "weight": np.round(rng.normal(size=n_rows)),
            "colour": rng.choice(["red", "blue", "green", "grey"], size=n_rows),
        }
    )


def _labels(n_rows: int) -> Any:
    table = _table(n_rows)
    return np.array(LABELS)[(table["size"] > 0).astype(int) + (table["colour"] == "red")]


# How they are changed

HOSTILE: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 255, 256, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63, -(2**63), 10**400, 0.5,
    -0.5, 1e-300, 1e308, float("nan"), float("inf"), None, True, False, "", "x", "x" * 20_000, "\0",
    "\ud800", "1e999", "<U100000000", "|O", "V8", "auto", [], {}, [[]], [None], [0, 1], {"x": 1},
    [0] * 5000, ["x"] * 5000,
)  # fmt: skip
HOSTILE_WORDS = (
    "", "0", "-1", "1", "7", "2147483648", "-2147483649", "99999999999999999999", "nan", "inf",
    "1e999", "0.5", "x", "1 1", " ", "=", "\n", "\r\n", "'", '"', "[", "{", "*a", "&a", "!!int ''",
    "2001-99-99", "<<: {}",
)  # fmt: skip
_NUMBERS = [0, 1, -1, 2, 127, 255, 2**15, 2**31 - 1, -(2**31)]


def changed(target: Target, content: bytes, rng: np.random.Generator) -> tuple[str, bytes, bool]:
    """Return how a file was changed, what it is now, and whether its digests go with the change."""
    if not target.is_model:
        ways = (
            of_bytes,
            of_bytes,
            of_words,
            of_json if target.name.endswith(".json") else of_words,
        )
        way = ways[rng.integers(len(ways))]
        return way.__name__, way(content, rng), True
    kind = rng.integers(4)
    if kind == 0:
        return "bytes of the file", of_bytes(content, rng), False
    if kind == 1:
        start = content.index(b"PK\x01\x02")  # the directory
        return "the directory", content[:start] + of_bytes(content[start:], rng), False
    if kind == 2:
        return "members", _with_other_members(content, rng), False
    return "members, with their digests", _forged(content, rng), True


def of_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, repeat, insert, exchange or overwrite bytes."""
    made = bytearray(content)
    first, last = sorted(rng.integers(len(made) + 1, size=2).tolist())
    short = slice(first, min(last, first + int(rng.integers(1, 40))))
    kind = rng.integers(7)
    if kind <= 1:
        for place in rng.integers(max(len(made), 1), size=rng.integers(1, 5)):
            made[place : place + 1] = bytes([made[place] ^ (1 << int(rng.integers(8)))])
    elif kind == 2:
        del made[slice(first, last) if rng.random() < 0.5 else short]
    elif kind == 3:
        made[first:first] = made[short] * int(rng.integers(1, 4))
    elif kind == 4:
        made[short] = rng.bytes(int(rng.integers(1, 20)))
    elif kind == 5:
        size = int(rng.integers(1, 60))
        made[first : first + size], made[last : last + size] = (
            made[last : last + size],
            made[first : first + size],
        )
    else:
        number = _NUMBERS[rng.integers(len(_NUMBERS))]
        form = ("<i4", ">i4", "<i8", ">i8", "<f4", ">f4")[rng.integers(6)]
        raw = np.array([number]).astype(form).tobytes()
        made[first : first + len(raw)] = raw
    return bytes(made)


def of_words(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace, remove or exchange words and lines of text."""
    parts = re.split(rb"([ \n=,:()\[\]{}])", content)
    for _ in range(rng.integers(1, 3)):
        one, other = rng.integers(len(parts), size=2)
        kind = rng.integers(3)
        if kind == 0:
            parts[one] = HOSTILE_WORDS[rng.integers(len(HOSTILE_WORDS))].encode()
        elif kind == 1:
            parts[one], parts[other] = parts[other], parts[one]
        else:
            parts[one] = b""
    return b"".join(parts)


def of_json(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace, remove, repeat or exchange values in JSON."""
    whole = [json.loads(content)]
    for _ in range(rng.integers(1, 3)):
        places = list(_places(whole))
        inside, key = places[rng.integers(len(places))]
        kind = rng.integers(6)
        if kind <= 2:
            inside[key] = copy.deepcopy(HOSTILE[rng.integers(len(HOSTILE))])
        elif kind == 3 and inside is not whole:
            del inside[key]
        elif kind == 4 and isinstance(inside, list):
            inside.insert(key, copy.deepcopy(inside[key]))
        elif kind == 5:
            # A copy: what holds itself has no JSON.
            other, at = places[rng.integers(len(places))]
            inside[key] = copy.deepcopy(other[at])
        else:
            inside[key] = [[inside[key]]]
    deep = b"[" * 200 + b"]" * 200
    text = json.dumps(whole[0]).encode() if whole else b""
    return deep if rng.random() < 0.01 else text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Give every list and object with each of its keys."""
    keys = range(len(value)) if isinstance(value, list) else list(value)
    for key in keys:
        yield value, key
        if isinstance(value[key], list | dict):
            yield from _places(value[key])


def _with_other_members(content: bytes, rng: np.random.Generator) -> bytes:
    """Remove, add, exchange, rename or change members, and leave the digests as they are."""
    members = _members(content)
    names = list(members)
    one, other = (names[place] for place in rng.integers(len(names), size=2))
    kind = rng.integers(5)
    if kind == 0:
        del members[one]
    elif kind == 1:
        members[("attachments/other", "coefficients", "x")[rng.integers(3)]] = rng.bytes(20)
    elif kind == 2:
        members[one], members[other] = members[other], members[one]
    elif kind == 3:
        members[one + "x"] = members.pop(one)
    else:
        name = names[rng.integers(1, len(names))]  # all but the metadata, which have no digest
        members[name] = _changed_member(name, members[name], rng)
    return _zipped(members, rng)


def _forged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change the content of a member, and write the digests that go with it."""
    members = _members(content)
    names = ["metadata.json", "metadata.json", *members, *members]
    learned = next(name for name in members if name in ("booster", "coefficients"))
    name = [*names, learned, learned, learned][rng.integers(len(names) + 3)]
    members[name] = _changed_member(name, members[name], rng)
    with contextlib.suppress(ValueError, TypeError):
        metadata = json.loads(members["metadata.json"])
        digests = {
            name: hashlib.sha256(member).hexdigest()
            for name, member in members.items()
            if name != "metadata.json"
        }
        members["metadata.json"] = json.dumps({**metadata, "members": digests}).encode()
    return _zipped(members, rng)


def _changed_member(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    if name.endswith(".json"):
        return (of_json, of_json, of_json, of_bytes, of_words)[rng.integers(5)](content, rng)
    is_text = content.startswith(b"tree\n") or name.startswith("attachments")
    return (of_words if is_text and rng.random() < 0.7 else of_bytes)(content, rng)


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {info.filename: file.read(info) for info in file.infolist()}


def _zipped(members: dict[str, bytes], rng: np.random.Generator) -> bytes:
    buffer = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if rng.random() < 0.05 else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", kind) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


# What they give


def loaded(path: Path, name: str) -> Any:
    """Load a file, use what it gives, and return what can be compared."""
    if name in _SELF_TESTS:
        return _SELF_TESTS[name]()
    if name.endswith(".structent"):
        return _loaded_model(path, name)
    return _loaded_structure(path, name)


def _loaded_model(path: Path, name: str) -> Any:
    from structent import StructuredBoostingClassifier, StructuredLogisticRegression
    from structent.estimators import files

    is_linear = MODELS[name] == "linear models"
    cls = StructuredLogisticRegression if is_linear else StructuredBoostingClassifier
    model = cls.load(path)
    notes = files.attachment(path, "notes")
    structure = None if model.structure is None else model.structure.to_json()
    about = (repr(model), model.classes_.tolist(), structure, notes)
    table = _table(20)
    if name.removesuffix(".structent") in ("linear", "pairs", "trees"):
        table = table[["size", "weight"]].to_numpy()
    names = getattr(model, "feature_names_in_", None)
    if model.n_features_in_ != table.shape[1] or (
        names is not None and list(names) != list(getattr(table, "columns", ()))
    ):
        return about  # a model of other columns
    proba = model.predict_proba(table)
    if proba.shape != (20, len(model.classes_)):
        raise AssertionError(f"probabilities of shape {proba.shape}")
    if not is_linear:
        _ = model.feature_importances_
    return (*about, proba.tobytes())


def _loaded_structure(path: Path, name: str) -> Any:
    from structent.inputs.structure_files import graph_from_file, structure_from_file
    from structent.structure.files import load, structure_from_json

    if STRUCTURES[name] == "structures, as saved":
        structure = structure_from_json(load(path))
    elif name == "edges.csv":
        graph, _ = graph_from_file(path, LABELS)
        return graph.classes, graph.edges
    else:
        structure, _ = structure_from_file(path, LABELS)
    text = structure.to_json()
    if structure_from_json(text) != structure:
        raise AssertionError("a structure that is not the same when it is saved and loaded again")
    if hasattr(structure, "sample"):
        structure.sample(3)
    return text


# The process that loads them, and the one that looks after it


def work(folder: Path, names: Sequence[str], seed: int, numbers: range, seconds: int) -> None:
    """Make some of the tries, and say of each what is tried, then what came of it."""
    from structent.errors import StructentError

    warnings.simplefilter("ignore")
    targets = {target.name: target for target in TARGETS}
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    saved = {name: (folder / name).read_bytes() for name in names if name in targets}
    before = {name: loaded(folder / name, name) for name in saved}  # compiles what is compiled
    path = Path(tempfile.mkdtemp(dir=folder))
    for number in numbers:
        name = names[number % len(names)]
        rng = np.random.default_rng([seed, number])
        how, content, is_forged = "as it is", b"", False
        if name in targets:
            how, content, is_forged = changed(targets[name], saved[name], rng)
        (path / name).write_bytes(content)
        say({"number": number, "name": name, "how": how})
        memory = _megabytes()
        signal.alarm(seconds)  # which ends the process
        why = ""
        try:
            found = loaded(path / name, name)
            outcome = SAME if found == before.get(name) else OTHER
        except StructentError as error:
            outcome, why = REFUSED, str(error)
        except Exception:  # noqa: BLE001  this is what we look for
            outcome, why = "other error", traceback.format_exc()
        signal.alarm(0)
        if outcome == REFUSED and ("\n" in why or len(why) > 1000):
            outcome = "other error"  # more than a sentence
        if outcome == OTHER and not is_forged:
            outcome = "unnoticed"
        if _megabytes() - memory > MEGABYTES:
            outcome = "memory"
        say({"outcome": outcome, "why": why if outcome in WORST else ""})


def _megabytes() -> float:
    """Return how much memory this process has had at most."""
    status = Path("/proc/self/status")
    if status.exists():  # the other count begins with what the process had that started this one
        return int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1]) / 2**10
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (2**20 if sys.platform == "darwin" else 2**10)


def attack(folder: Path, names: Sequence[str], seed: int, n_tries: int) -> list[dict[str, Any]]:
    """Return what came of every try; where a process ended, another one goes on."""
    command = ["-m", "tests.attack_files", "work", str(folder), ",".join(names), str(seed)]
    return run_trials(command, n_tries, SECONDS)


def _hang() -> None:
    while True:
        pass


def _fail() -> None:
    raise KeyError("something")


# Names under which the attack itself is tested.
_SELF_TESTS: dict[str, Callable[[], Any]] = {
    "abort": os.abort,
    "hang": _hang,
    "fail": _fail,
    "much": lambda: len(b"x" * (MEGABYTES + 50) * 2**20),
    "other": lambda: "something else",
}


# The table


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table in Markdown: a line for each group of files."""
    group_of = MODELS | STRUCTURES
    tries = ((group_of[each["name"]], each["outcome"]) for each in found)
    shown = {REFUSED: "refused", SAME: "unchanged", OTHER: "another one"}
    return reliability.table("files", tries, shown, WORST)


def main() -> None:
    """Attack, and print the table and what failed."""
    if sys.argv[1:2] == ["work"]:
        folder, names = Path(sys.argv[2]), sys.argv[3].split(",")
        seed, first, last, seconds = map(int, sys.argv[4:])
        work(folder, names, seed, range(first, last), seconds)
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_targets(folder)
        found = attack(folder, [target.name for target in TARGETS], options.seed, options.tries)
    for each in found:
        if each["outcome"] in WORST:
            print(each["number"], each["name"], each["how"], each["outcome"], each["why"])
    print("\n".join(table(found)))
    if options.record:
        packages = ("xgboost", "lightgbm", "numpy")
        reliability.record("attack on files", table(found), options.seed, packages)


if __name__ == "__main__":
    main()
