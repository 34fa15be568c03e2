"""Short forms and files: each gives the structure that the library itself would."""

import re

import pytest

from structent import (
    LabelError,
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    circular,
    hierarchy,
    ordinal,
    trivial,
)
from structent.inputs import columns_of, files_of, open_table, parse_structure, with_order
from structent.structure import catalog

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("trivial", trivial(sorted(MONTHS))),
        ("circular", circular(MONTHS, width=3, singleton_weight=0.3)),
        ("circular:width=4", circular(MONTHS, width=4, singleton_weight=0.3)),
        ("circular:width=2,weight=0.5", circular(MONTHS, width=2, singleton_weight=0.5)),
        ("ordinal", ordinal(MONTHS, singleton_weight=0.5)),
        ("ordinal:weight=0.25", ordinal(MONTHS, singleton_weight=0.25)),
    ],
)
def test_a_short_form_is_the_structure_it_names(spec, expected):
    structure = parse_structure(spec, sorted(MONTHS)).structure
    assert structure.partitions == expected.partitions
    assert structure.weights.tolist() == pytest.approx(expected.weights.tolist(), abs=1e-15)
    assert structure.level_of == expected.level_of


def test_numbered_months_are_the_circle_of_the_catalog():
    assert parse_structure("circular:width=3", range(12, 0, -1)).structure == catalog.months()


def test_an_order_that_is_given_may_hold_classes_that_no_row_has():
    specified = parse_structure("ordinal:order=S|M|L|XL,weight=0.5", ["XL", "S", "M"])
    assert specified.structure == ordinal(["S", "M", "L", "XL"])
    assert specified.notes == ("1 class of the structure has no row, but gets a probability: 'L'",)


@pytest.fixture
def flowers(tmp_path):
    path = tmp_path / "flowers.csv"
    path.write_text(
        "species,family,genus,height\n"
        "dog rose,Rosaceae,Rosa,1\ntea rose,Rosaceae,Rosa,2\napple,Rosaceae,Malus,3\n"
        "oak,Fagaceae,Quercus,4\nbeech,Fagaceae,Fagus,5\noak,Fagaceae,,6\n"
    )
    return open_table(path)


SPECIES = ["apple", "beech", "dog rose", "oak", "tea rose"]


@pytest.mark.parametrize("columns", ["genus,family", "family,genus"])
def test_columns_of_the_data_are_a_hierarchy_in_any_order(columns, flowers):
    specified = parse_structure(
        f"hierarchy:columns={columns}", SPECIES, table=flowers, target="species"
    )
    assert specified.structure == hierarchy(
        {
            "apple": ("Rosaceae", "Malus"),
            "beech": ("Fagaceae", "Fagus"),
            "dog rose": ("Rosaceae", "Rosa"),
            "oak": ("Fagaceae", "Quercus"),
            "tea rose": ("Rosaceae", "Rosa"),
        },
        level_names=["family", "genus"],
    )
    assert specified.columns_used == tuple(columns.split(","))


def test_the_weight_of_a_hierarchy_is_that_of_its_classes(flowers):
    spec = "hierarchy:columns=family,genus,weight=0.5"
    structure = parse_structure(spec, SPECIES, table=flowers, target="species").structure
    assert structure.weights.tolist() == [0.25, 0.25, 0.5]


def test_a_graph_comes_from_its_edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("from,to\na,b\nb,c\nc,d\nb,a\n")
    specified = parse_structure(f"graph:{path},blocks=2,weight=0.25", ["d", "c", "b", "a"])
    graph = LabelGraph([("a", "b"), ("b", "c"), ("c", "d")], ["a", "b", "c", "d"])
    assert specified.structure == SpanningTreePartitions(graph, 2, 0.25)
    assert specified.notes == (f"1 edges of {path} are listed twice and were used once",)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("xyz", "a structure must be one of trivial, circular, ordinal, months, cifar100, us-stat"),
        ("circle", "'circle' is not a structure; did you mean circular?"),
        ("Ordnial:order=S|M", "did you mean 'ordinal:order=S|M'?"),
        ("monts:width=2", "did you mean months:width=2?"),
        ("us-sates", "did you mean us-states?"),
        ("hierachy:columns=a,b", "did you mean hierarchy:columns=a,b?"),
        ("lern", "did you mean learn?"),
        (
            "months:with=2",
            "months takes the options width, weight, got 'with'; did you mean 'width'",
        ),
        ("us-states:blocks=100", "blocks of us-states must be between 1 and 49, the number of"),
        ("cifar100:width=3", "cifar100 takes the options weight, got 'width'"),
        ("circular:widht=3", "width, weight, order, got 'widht'; did you mean 'width'?"),
        ("circular:3", "circular takes the options width, weight, order, got '3'"),
        ("circular:width=three", "width of circular must be a whole number, got 'three'"),
        ("circular:width=13", "width must be"),
        ("circular:width=3,width=4", "circular takes 'width' once, got it twice"),
        ("ordinal:weight=heavy", "weight of ordinal must be a number, got 'heavy'"),
        ("ordinal:weight=2", "weight of ordinal must"),
        ("trivial:weight=1", "trivial takes no options, got 'weight'"),
        ("hierarchy", "hierarchy needs 'columns', got none; write it as in hierarchy:columns="),
        ("hierarchy:columns=genus", "needs data with these columns, got none"),
        ("graph", "graph needs a file, got none; write it as in graph:edges.csv,blocks=10"),
        ("graph:edges.csv", "graph needs 'blocks', got none"),
        ("graph:edges.csv,blocks=3", "there is no file edges.csv"),
        ("graph:edges.xml,blocks=3", "must come from a .csv, .tsv or .json file, got edges.xml"),
        ("no.nwk", "there is no file no.nwk"),
        ("ordinal:order=jan|feb", "got 10 that are not: 'apr', 'aug'"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_sentence(spec, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StructentError, match=re.escape(reason)) as caught:
        parse_structure(spec, MONTHS)
    assert "\n" not in str(caught.value)


def test_labels_without_an_order_need_one():
    message = "got 'L', 'M', 'S'; write 'ordinal:order=L|M|S' with all labels in their order"
    with pytest.raises(StructentError, match=re.escape(message)):
        parse_structure("ordinal", ["S", "M", "L"])


def test_labels_that_the_file_lacks_are_listed_with_what_is_near(tmp_path):
    path = tmp_path / "trees.json"
    path.write_text('{"tree": ["maple", "oak"], "flower": ["rose", "7"]}')
    with pytest.raises(LabelError) as caught:
        parse_structure(str(path), ["mapel", "oak", 7, "rose", "zzzz"])
    assert str(caught.value) == (
        "every label of the data must be a class of the structure, got 3 that are not: "
        "7 (it has '7' of type str, not int), 'mapel' (did you mean 'maple'?), 'zzzz'; "
        "correct the labels or the structure"
    )


def test_numbers_in_the_data_are_not_text_in_the_file(tmp_path):
    path = tmp_path / "year.json"
    path.write_text('{"winter": ["1", "2"], "summer": ["7", "8"]}')
    with pytest.raises(LabelError, match="it has '1' of type str, not int"):
        parse_structure(str(path), [1, 2, 7, 8])


def test_columns_must_exist_and_not_be_the_target(flowers):
    for columns, reason in (
        ("genuss", "no column 'genuss'; did you mean 'genus'"),
        ("species", "must not be the target, got 'species'"),
    ):
        with pytest.raises(StructentError, match=reason):
            parse_structure(
                f"hierarchy:columns={columns}", SPECIES, table=flowers, target="species"
            )


def test_the_columns_that_a_structure_needs_are_known_before_the_table_is_read():
    assert columns_of("hierarchy:columns=genus,family,weight=0.2") == ("genus", "family")
    assert columns_of("ordinal:weight=0.5") == columns_of("species.csv") == ()
    with pytest.raises(StructentError, match="hierarchy needs 'columns', got none"):
        columns_of("hierarchy:weight=0.2")


@pytest.mark.parametrize("spec", ["months", "cifar100", "us-states", "california_counties"])
def test_the_catalog_needs_no_labels_and_knows_its_own(spec):
    specified = parse_structure(spec)
    assert specified.notes == ()
    some = specified.structure.classes[:3]
    assert parse_structure(spec, some).structure == specified.structure
    (note,) = parse_structure(spec, some).notes
    assert note.startswith(f"{len(specified.structure.classes) - 3} classes of the structure have")
    with pytest.raises(LabelError, match="'Atlantis' is not a class of the structure"):
        parse_structure(spec, ["Atlantis"])


def test_blocks_of_the_catalog_may_be_labels():
    specified = parse_structure("cifar100", ["fish", "rose"], allow_blocks=True)
    assert specified.structure == catalog.cifar100()
    with pytest.raises(LabelError, match="'fisch'"):
        parse_structure("cifar100", ["fisch", "rose"], allow_blocks=True)


def test_a_structure_of_labels_needs_labels_unless_it_names_them():
    for spec in ("circular:width=3", "ordinal", "trivial"):
        with pytest.raises(StructentError, match="is built from the labels of the data, got none"):
            parse_structure(spec)
    assert parse_structure("ordinal:order=S|M|L").structure == ordinal(["S", "M", "L"])


def test_files_that_are_near_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("my plants.json", "animals.csv", "notes.txt"):
        (tmp_path / name).write_text("{}")
    for spec, near in (
        ("my plants", "'my plants.json'"),
        ("my plant.jsn", "'my plants.json'"),
        ("animal.cvs", "animals.csv"),
        (str(tmp_path / "animals"), str(tmp_path / "animals.csv")),
    ):
        with pytest.raises(StructentError, match=re.escape(f"did you mean {near}?")):
            parse_structure(spec, MONTHS)


def test_the_files_of_a_structure_are_known_before_they_are_read():
    assert [str(file) for file in files_of("graph:my edges.csv,blocks=3")] == ["my edges.csv"]
    assert [str(file) for file in files_of("trees.json")] == ["trees.json"]
    for spec in ("months", "us_states:blocks=3", "learn:levels=2", "hierarchy:columns=a", "graph"):
        assert files_of(spec) == ()


def test_classes_are_in_the_order_that_is_given():
    spec = with_order("circular:width=2", ["c", "a", "b"])
    assert parse_structure(spec, ["a", "b", "c"]).structure.classes == ("c", "a", "b")
    for unchanged in ("trivial", "ordinal:order=x|y", "trees.json", "months"):
        assert with_order(unchanged, ["x", "y"]) == unchanged
    with pytest.raises(StructentError, match=r"must not contain '\|' or '=', got 'a\|b'"):
        with_order("ordinal", ["a|b", "c"])
