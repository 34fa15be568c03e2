"""Structure files: what is written comes back, and what is broken is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    FixedStructure,
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    mix,
    ordinal,
    trivial,
)
from structent.structure import catalog, files
from structent.structure.composed import ScrambledPartitions
from structent.structure.files import structure_from_json
from tests.strategies import class_sets, random_partitions


@given(random_partitions())
def test_a_structure_comes_back_from_json_as_it_was(structure):
    again = RandomPartition.from_json(structure.to_json())
    assert again == structure
    assert [type(label) for label in again.classes] == [type(label) for label in structure.classes]


@given(class_sets())
def test_classes_keep_their_types(classes):
    structure = trivial(classes).product(trivial([True, False]))
    again = RandomPartition.from_json(structure.to_json())
    assert list(map(repr, again.classes)) == list(map(repr, structure.classes))


@pytest.mark.parametrize(
    "structure",
    [catalog.cifar100(), catalog.months(), mix([trivial(["é", "\ud800", "a\nb"])])],
    ids=["cifar100", "months", "odd names"],
)
def test_a_structure_comes_back_from_a_file_as_it_was(structure, tmp_path):
    path = tmp_path / "structure.json"
    structure.save(path)
    again = RandomPartition.load(path)
    assert again == structure
    assert [p.names for p in again.partitions] == [p.names for p in structure.partitions]


def test_the_file_says_what_it_is():
    content = json.loads(catalog.months().to_json())
    assert content["format"] == "structent-structure"
    assert content["version"] == 1
    assert content["kind"] == "random_partition"


GOOD = json.loads(catalog.months().to_json())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (catalog.months().to_json()[:100], "must be JSON, got text with an error .* column 101"),
        ("", "must be JSON"),
        ("classes: [a, b]", "must be JSON"),
        ("[1, 2]", 'must be a JSON object with "format": "structent-structure", got \'.1, 2.\''),
        ('{"format": "other"}', "must be a JSON object with"),
        (json.dumps({**GOOD, "version": 2}), "reads structure files of version 1, got version 2"),
        (json.dumps({**GOOD, "kind": "x"}), "of kind 'random_partition', got kind 'x'"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "weights"}), "the field 'weights'"),
        (json.dumps({**GOOD, "classes": "abc"}), "'classes' must be an array, got 'abc'"),
        (json.dumps({**GOOD, "classes": [1.5] * 12}), "got 1.5 of type float"),
        (json.dumps({**GOOD, "weights": [1]}), "each of the 4 partitions"),
        (json.dumps({**GOOD, "partitions": [1, 2]}), "the field 'block_of' where it has 1"),
        (json.dumps({**GOOD, "levels": [1, 2, 3, 4]}), "one name for each of the 4 partitions"),
    ],
)
def test_a_broken_file_is_refused(text, message, tmp_path):
    with pytest.raises(StructureError, match=message):
        RandomPartition.from_json(text)
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(StructureError, match=message):
        RandomPartition.load(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


PLACES = [
    *((name,) for name in GOOD),
    *((name, 0) for name in ("classes", "partitions", "weights", "levels")),
    ("partitions", 0, "block_of"),
    ("partitions", 0, "block_of", 3),
    ("partitions", 0, "names"),
]


@given(st.sampled_from(PLACES), json_values)
def test_whatever_a_field_holds_is_accepted_whole_or_refused(place, value):
    content = json.loads(catalog.months().to_json())
    inner = content
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    try:
        structure = RandomPartition.from_json(json.dumps(content))
    except StructureError:
        return
    assert RandomPartition.from_json(structure.to_json()) == structure


PAIR = trivial(["a", "b"])
TREES = SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5)
SCRAMBLED = json.loads(ScrambledPartitions(TREES, (1, 0)).to_json())
FIXED = json.loads(FixedStructure(PAIR).to_json())


@pytest.mark.parametrize(
    "structure",
    [
        PAIR,
        FixedStructure(PAIR),
        TREES,
        ScrambledPartitions(TREES, (1, 0)),
        mix([PAIR, TREES]),
        PAIR.product(TREES),
    ],
    ids=lambda structure: type(structure).__name__,
)
def test_every_kind_of_structure_is_saved_and_loaded_in_the_same_way(structure, tmp_path):
    path = tmp_path / "structure.json"
    structure.save(path)
    assert type(structure).load(path) == structure
    assert structure_from_json(path.read_text()) == structure
    assert path.read_text() == structure.to_json() + "\n"


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "structure.json"
    PAIR.save(path)
    with pytest.raises(StructureError, match="of kind 'fixed_structure', got kind 'random_parti"):
        FixedStructure.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**GOOD, "kind": ["x"]}, r"must be of kind 'random_partition'.*, got \['x'\]"),
        ({**GOOD, "kind": {}}, "must be of kind 'random_partition'.*, got {}"),
        ({**SCRAMBLED, "places": ["x", 1]}, r"numbers from 0 to 1 in some order, got \['x', 1\]"),
        ({**SCRAMBLED, "places": [None, {}]}, "numbers from 0 to 1 in some order"),
        ({**SCRAMBLED, "places": [True, False]}, r"in some order, got \[True, False\]"),
        ({**SCRAMBLED, "places": [1.0, 0.0]}, r"in some order, got \[1.0, 0.0\]"),
        (
            {**FIXED, "structure": json.loads(TREES.to_json())},
            "must be a RandomPartition, got SpanningTreePartitions; a sampler is used as it is",
        ),
        ({**FIXED, "structure": FIXED}, "must be a RandomPartition, got FixedStructure"),
    ],
)
def test_a_file_whose_parts_are_of_the_wrong_type_is_refused(content, message):
    with pytest.raises(StructureError, match=message):
        structure_from_json(json.dumps(content))


def test_a_fixed_structure_is_a_structure():
    with pytest.raises(StructureError, match="must be a RandomPartition, got str"):
        FixedStructure("abc")


def test_places_may_be_numbers_of_numpy():
    scrambled = ScrambledPartitions(TREES, tuple(np.array([1, 0])))
    assert structure_from_json(scrambled.to_json()) == ScrambledPartitions(TREES, (1, 0))


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "binary.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StructureError, match="must be UTF-8 text"):
        RandomPartition.load(path)


# Bounds


def with_classes(classes):
    partition = {"block_of": list(range(len(classes))), "names": None}
    return {**GOOD, "classes": classes, "partitions": [partition], "weights": [1], "levels": ["a"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "cannot be read: JSON must be nested at most 100 deep, got 100000"),
        (
            json.dumps(GOOD).replace("0.3", "1" * 5000),
            "a structure file cannot be read: Exceeds the limit",
        ),
        ({**SCRAMBLED, "singleton_weight": 10**400}, "must be between 0 and 1, got 1000000"),
        ({**json.loads(TREES.to_json()), "seed": 10**400}, "between 0 and 92.*, got 1000000"),
        (with_classes(["a", "b" * 10_001]), "a name must have at most 10,000 characters"),
        (with_classes([*range(9000), *map(str, range(9000)), "c" * 9000]), "got 9,001 names of up"),
        (
            {**GOOD, "partitions": [{"block_of": [0] * 12, "names": ["x" * 10_001]}] * 4},
            "1 names of up to 10,001 characters; give them shorter names",
        ),
        (
            {**GOOD, "partitions": [{"block_of": [0] * 11 + ["1"], "names": None}] * 4},
            "'block_of' must be an array of whole numbers, got",
        ),
        ({**GOOD, "weights": ["x"] * 10_000}, "weights must be numbers, got"),
        ({**GOOD, "kind": "x" * 10_000}, "must be of kind 'random_partition'.*, got 'xxx"),
        ({**GOOD, "version": ["x" * 10_000] * 1000}, "reads structure files of version 1, got"),
        (
            {**GOOD, "partitions": [{"block_of": [0] * 12, "names": ["x"] * 10_000}] * 4},
            "there must be 1 block names, one per block, got",
        ),
        ({**GOOD, "levels": ["x"] * 10_000}, "one name for each of the 4 partitions, got"),
    ],
    ids=lambda value: "content" if isinstance(value, dict) or len(value) > 100 else value[:30],
)
def test_what_is_out_of_bounds_is_refused_in_one_sentence(content, message):
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(StructureError, match=message) as caught:
        structure_from_json(text)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "structure.json"
    PAIR.save(path)
    monkeypatch.setattr(files, "LARGEST_FILE", path.stat().st_size)
    assert RandomPartition.load(path) == PAIR
    monkeypatch.setattr(files, "LARGEST_FILE", path.stat().st_size - 1)
    with pytest.raises(StructureError, match=r"must have at most \d+ bytes, got \d+ in"):
        RandomPartition.load(path)


@pytest.mark.parametrize(
    "structure",
    [
        trivial(["a", "b" * 10_001]),
        RandomPartition([Partition(["a", "b"], [0, 0], names=["x" * 10_001])]),
    ],
    ids=["class", "block"],
)
def test_a_structure_that_could_not_be_read_again_is_not_written(structure, tmp_path):
    with pytest.raises(StructureError, match="must have at most 10,000 characters"):
        structure.save(tmp_path / "structure.json")
    assert list(tmp_path.iterdir()) == []


def test_a_structure_that_is_too_large_to_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 100)
    with pytest.raises(StructureError, match="at most 100 bytes, got a structure that needs 1"):
        PAIR.save(tmp_path / "structure.json")


def product_json(first, second):
    parts = [json.loads(structure.to_json()) for structure in (first, second)]
    content = dict(zip(("first", "second"), parts, strict=True))
    return files.to_json("product_partitions", {**content, "singleton_weight": None})


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (trivial(range(1000)), trivial(range(1001)), "at most 1,000,000 pairs .*, got 1,001,000"),
        (ordinal(range(101)), ordinal(range(101)), "times classes, got 104,060,401"),
    ],
    ids=["pairs", "partitions"],
)
def test_a_small_file_of_a_product_that_no_memory_holds_is_refused(first, second, message):
    text = product_json(first, FixedStructure(second))
    assert len(text) < 200_000
    with pytest.raises(StructureError, match=message):
        structure_from_json(text)


def test_a_small_file_of_a_mixture_that_no_memory_holds_is_refused():
    product = json.loads(product_json(ordinal(range(80)), FixedStructure(ordinal(range(80)))))
    content = {"structures": [product] * 3, "weights": [0.5, 0.25, 0.25], "singleton_weight": None}
    with pytest.raises(StructureError, match="times classes, got 122,880,000"):
        structure_from_json(files.to_json("mixed_partitions", content))
