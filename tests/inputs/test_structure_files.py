"""Structure files: each format gives the hierarchy that it describes, or a sentence."""

import json
import re
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    circular,
    hierarchy,
    ordinal,
    trivial,
)
from structent.inputs import parse_structure, write_structure
from structent.inputs.structure_files import graph_from_file, structure_from_file
from structent.structure import catalog
from tests.strategies import random_partitions

PLANTS = hierarchy(
    {
        "oak": ("plant", "tree"),
        "elm": ("plant", "tree"),
        "rose": ("plant", "flower"),
        "cat": ("animal", "pet"),
    }
)
CLASSES = ["oak", "elm", "rose", "cat"]

PLANT_FILES = {
    "nested.json": '{"plant": {"tree": ["oak", "elm"], "flower": ["rose"]},'
    ' "animal": {"pet": ["cat"]}}',
    "rooted.json": '{"life": {"plant": {"tree": ["oak", "elm"], "flower": ["rose"]},'
    ' "animal": {"pet": {"cat": null}}}}',
    "parents.json": '{"oak": "tree", "elm": "tree", "rose": "flower", "cat": "pet",'
    ' "tree": "plant", "flower": "plant", "pet": "animal"}',
    "nested.yaml": "plant:\n  tree: [oak, elm]\n  flower: [rose]\nanimal:\n  pet:\n  - cat\n",
    "lists.yml": "- plant:\n  - tree:\n    - oak\n    - elm\n  - flower:\n    - rose\n"
    "- animal:\n  - pet: [cat]\n",
    "levels.csv": "name,form,realm\noak,tree,plant\nelm,tree,plant\n"
    "rose,flower,plant\ncat,pet,animal\n",
    "coarse_first.tsv": "name\trealm\tform\noak\tplant\ttree\nelm\tplant\ttree\n"
    "rose\tplant\tflower\ncat\tanimal\tpet\n",
    "no_header.csv": "oak,plant,tree\nelm,plant,tree\nrose,plant,flower\ncat,animal,pet\n",
    "parents.csv": "name,parent\noak,tree\nelm,tree\nrose,flower\ncat,pet\ntree,plant\n"
    "flower,plant\npet,animal\n",
    "edges.csv": "child,parent\noak,tree\noak,tree\nelm,tree\nrose,flower\ncat,pet\ntree,plant\n"
    "flower,plant\npet,animal\n",
    "parents_first.csv": "Parent,Child\ntree,oak\ntree,elm\nflower,rose\npet,cat\nplant,tree\n"
    "plant,flower\nanimal,pet\n",
    "tree.nwk": "(((oak,elm)tree,(rose)flower)plant,((cat)pet)animal);",
}


@pytest.mark.parametrize("name", PLANT_FILES)
def test_every_format_gives_the_same_hierarchy(name, tmp_path):
    (tmp_path / name).write_text(PLANT_FILES[name])
    structure, notes = structure_from_file(tmp_path / name, CLASSES)
    assert structure.partitions == PLANTS.partitions
    assert [p.names for p in structure.partitions] == [p.names for p in PLANTS.partitions]
    assert structure.weights.tolist() == PLANTS.weights.tolist()
    assert notes == ()


@pytest.mark.parametrize(
    "structure",
    [
        PLANTS,
        circular(CLASSES, width=2),
        SpanningTreePartitions(
            LabelGraph([("oak", "elm"), ("elm", "rose"), ("rose", "cat")]), 2, 0.5
        ),
    ],
    ids=["hierarchy", "circular", "spanning trees"],
)
@pytest.mark.parametrize("name", ["saved.json", "saved.yaml"])
def test_what_structent_saves_comes_back(structure, name, tmp_path):
    structure.save(tmp_path / name)
    assert parse_structure(str(tmp_path / name), CLASSES).structure == structure


def test_names_in_files_without_types_are_what_the_labels_are(tmp_path):
    path = tmp_path / "quarters.csv"
    path.write_text("month,half\n1,first\n2,first\n3,second\n")
    assert structure_from_file(path, [1, 2, 3])[0].classes == (1, 2, 3)
    assert structure_from_file(path, ["1", "2", "3"])[0].classes == ("1", "2", "3")


def test_a_class_may_have_groups_at_fewer_levels(tmp_path):
    path = tmp_path / "levels.csv"
    path.write_text("name,form,realm\noak,tree,plant\nelm,tree,plant\nrose,,plant\ncat,,\n")
    structure, _ = structure_from_file(path, CLASSES)
    assert structure == hierarchy(
        {"oak": ("plant", "tree"), "elm": ("plant", "tree"), "rose": ("plant",), "cat": ()},
        level_names=["realm", "form"],
    )


def test_levels_that_say_nothing_are_left_out_with_a_note(tmp_path):
    path = tmp_path / "levels.csv"
    path.write_text("name,code,form,domain\noak,a,tree,life\nelm,b,tree,life\nrose,c,flower,life\n")
    structure, notes = structure_from_file(path, CLASSES)
    assert list(structure.levels) == ["form", "class"]
    assert notes == (
        "the level 'code' left out: each class is a group of its own",
        "the level 'domain' left out: all classes are in one group",
    )


def test_a_parent_that_is_a_label_is_a_class_too(tmp_path):
    path = tmp_path / "parents.yaml"
    path.write_text("oak: tree\nelm: tree\nrose: flower\nyew: tree\ntree: plant\nflower: plant\n")
    structure, _ = structure_from_file(path, ["oak", "elm", "rose", "tree"])
    assert set(structure.classes) == {"oak", "elm", "rose", "yew", "tree"}
    assert structure.distance("oak", "tree") < structure.distance("oak", "rose")


def test_edges_alone_are_no_structure(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("from,to\noak,elm\nelm,rose\nrose,cat\n")
    with pytest.raises(StructentError, match=f"write graph:{re.escape(str(path))},blocks=2"):
        structure_from_file(path, CLASSES)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", "{", "must be JSON, got text with an error: Expecting property name"),
        ("a.json", "3", "nested names must be mappings or lists, got 3"),
        ("a.json", '["oak", "elm"]', "must have a group that holds some of the classes, got none"),
        (
            "a.json",
            '{"a": ["oak"], "b": ["oak"]}',
            "must be in one group, got 'oak' more than once",
        ),
        (
            "a.json",
            '{"a": [], "b": ["oak"]}',
            "must hold a list of classes or further groups, got []",
        ),
        ("a.json", '{"a": ["oak", 1.5], "b": ["elm"]}', "a class must be a str, an int"),
        ("a.json", '{"format": "structent-structure", "version": 9}', "got version 9"),
        ("a.yaml", "a: [", "must be YAML, got text with an error"),
        ("a.yaml", "&a {x: *a}", "got text with an error: the alias *a; write out what it means"),
        ("a.yaml", "a: &a [x, y]\nb: {<<: [*a, *a]}", "the alias *a"),
        (
            "a.yaml",
            "a: 2001-99-99",
            "must be YAML, got text with an error: month must be in 1..12",
        ),
        ("a.yaml", "a: !!bool maybe", "must be YAML, got text with an error: 'maybe'"),
        ("a.yaml", "a: !!int ''", "must be YAML, got text with an error"),
        ("a.yaml", "[" * 5000, "must be YAML, got text with an error: maximum recursion depth"),
        ("a.yaml", "{a: " * 120 + "[x]" + "}" * 120, "nested names must be at most 100 deep"),
        ("a.json", "[" * 100_000, "got text with an error: JSON must be nested at most 100 deep"),
        ("a.json", '{"a": ' + "1" * 5000 + "}", "must be JSON, got text with an error"),
        ("a.json", '{"a": [{}, {}]}', "a list must hold classes or further groups, got {}"),
        ("a.json", '{"a": ["oak", ["elm", "ash"]]}', "a class must be a str, an int"),
        ("a.csv", "name\noak\n", "got one column"),
        ("a.csv", "name,form\n", "got only a header"),
        ("a.csv", "name,form\noak,tree\nelm\n", "same number of columns, got [1, 2]"),
        ("a.csv", 'name,form\n"oak,tree\n', "must be a table, got one with"),
        ("a.csv", "name,form\noak,tree\noak,flower\n", "classes must all differ, got 'oak' twice"),
        ("a.csv", "name,form\noak,x\n,x\nelm,y\n", "must hold the classes, got an empty cell"),
        ("a.csv", "name,f,f\noak,x,z\nelm,y,z\n", "must have different names, got ['f', 'f']"),
        ("a.csv", "name,f,g\noak,x,1\nelm,x,2\nrose,y,1\ncat,y,2\n", "must be nested, got"),
        ("a.csv", "name,f\noak,x\nelm,y\n", "needs a level with more than one group"),
        (
            "a.csv",
            "name,f,g\noak,x,1\nelm,x,1\nrose,y,1\ncat,z,\n",
            "must not have a gap, got 'cat'",
        ),
        (
            "a.csv",
            "child,parent\noak,tree\noak,shrub\ntree,plant\nshrub,plant\n",
            "must have one parent, got 'tree' and 'shrub' for 'oak'",
        ),
        ("a.nwk", "(oak,elm", "must end in ';', got text that ends too early"),
        ("a.nwk", "  \n", "got only white space"),
        ("a.txt", "oak", "must end in .json, .yaml"),
    ],
)
def test_what_is_no_structure_is_refused_in_one_sentence(name, content, reason, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(StructentError, match=re.escape(reason)) as caught:
        parse_structure(str(tmp_path / name), CLASSES)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StructentError, match="must be UTF-8 text"):
        structure_from_file(tmp_path / "a.json", CLASSES)


names = st.text(st.characters(categories=["L", "N", "Zs", "P"]), min_size=1, max_size=5)
nested = st.recursive(
    st.just(None),
    lambda inside: st.dictionaries(names, inside, min_size=1, max_size=3),
    max_leaves=8,
)


@given(nested.filter(lambda tree: tree is not None))
def test_nested_names_are_the_paths_to_them(tmp_path_factory, tree):
    paths = {}

    def walk(inside, above):
        for name, further in inside.items():
            # Number the names, so that each class is one.
            label = f"{len(paths)} {name}"
            if further is None:
                paths[label] = above
            else:
                walk(further, (*above, name))

    walk(tree, ())

    def numbered(inside, number):
        return {
            (f"{next(number)} {name}" if further is None else name): (
                None if further is None else numbered(further, number)
            )
            for name, further in inside.items()
        }

    path = tmp_path_factory.mktemp("nested") / "tree.json"
    path.write_text(json.dumps(numbered(tree, iter(range(99)))))
    first = next(iter(paths.values()))
    common = sum(
        all(p[: d + 1] == first[: d + 1] for p in paths.values()) for d in range(len(first))
    )
    paths = {label: above[common:] for label, above in paths.items()}
    if any(paths.values()):
        assert structure_from_file(path, ["x"])[0] == hierarchy(paths)
    else:
        with pytest.raises(StructentError, match="must have a group that holds some"):
            structure_from_file(path, ["x"])


PLANTS_AND_FISH = ["oak", "elm", "rose", "cat"]
text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=4)


@given(random_partitions())
def test_json_keeps_everything(tmp_path_factory, structure):
    path = tmp_path_factory.mktemp("json") / "s.json"
    write_structure(structure, path)
    assert parse_structure(str(path), structure.classes).structure == structure


@st.composite
def hierarchies(draw):
    """Hierarchies that have a level between one group for all and one for each class."""
    classes = draw(st.lists(text, min_size=3, max_size=8, unique=True))
    groups = st.lists(st.sampled_from("ABC"), min_size=2, max_size=2)
    drawn = {label: draw(groups) for label in classes}
    drawn[classes[0]], drawn[classes[1]], drawn[classes[2]] = ["A", "A"], ["A", "A"], ["B", "A"]
    # Behind a mark no class has: a group named as a class could be that class's parent.
    return hierarchy({label: tuple(f"group {g}" for g in path) for label, path in drawn.items()})


@given(hierarchies())
def test_a_hierarchy_comes_back_from_its_table(tmp_path_factory, structure):
    path = tmp_path_factory.mktemp("csv") / "s.csv"
    write_structure(structure, path)
    again = parse_structure(str(path), structure.classes).structure
    # A level that says nothing is left out, and two that say the same are one order or the other.
    kept = [p for p in structure.partitions if 1 < p.n_blocks < structure.n_classes]
    assert again.classes == structure.classes
    assert list(again.partitions[:-1]) == kept
    assert again.partitions[-1].is_singletons


@given(hierarchies())
def test_a_hierarchy_comes_back_from_its_tree(tmp_path_factory, structure):
    path = tmp_path_factory.mktemp("newick") / "s.nwk"
    write_structure(structure, path)
    again = parse_structure(str(path), structure.classes).structure.restrict(structure.classes)
    # A group that holds all classes says nothing and is left out.
    assert list(again.partitions) == [p for p in structure.partitions if p.n_blocks > 1]


def test_a_tree_holds_hierarchies_alone(tmp_path):
    with pytest.raises(StructentError, match="needs a hierarchy with nested partitions"):
        write_structure(circular(PLANTS_AND_FISH, width=2), tmp_path / "s.nwk")
    with pytest.raises(StructentError, match=r"got a sampler; write it to a \.json file"):
        write_structure(
            SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5), tmp_path / "s.nwk"
        )
    assert not list(tmp_path.iterdir())


def test_a_class_without_groups_comes_back_as_its_own(tmp_path):
    ragged = hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ()})
    write_structure(ragged, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text() == "class,level 1\noak,tree\nelm,tree\nrose,rose\n"
    again = parse_structure(str(tmp_path / "s.csv"), ragged.classes).structure
    assert again.partitions == ragged.partitions


@pytest.mark.parametrize(
    "structure",
    [
        circular(PLANTS_AND_FISH, width=2),
        SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5),
        trivial(PLANTS_AND_FISH),
        hierarchy({("a", 1): ("x",), ("b", 2): ("x",), ("c", 3): ("y",)}),
        hierarchy({"": ("x",), "b": ("x",), "c": ("y",)}),
    ],
    ids=["circle", "sampler", "trivial", "pairs", "empty name"],
)
def test_a_table_holds_hierarchies_of_plain_names_alone(structure, tmp_path):
    with pytest.raises(StructentError, match=r"a \.csv file needs .* to a \.json file"):
        write_structure(structure, tmp_path / "s.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(StructentError, match="cannot be written: No such file or directory"):
        write_structure(trivial(PLANTS_AND_FISH), tmp_path / "no" / "s.json")
    with pytest.raises(StructentError, match=r"to a \.json, \.csv or \.nwk file, got s\.yaml"):
        write_structure(trivial(PLANTS_AND_FISH), "s.yaml")


def test_a_level_called_class_comes_back_from_its_table(tmp_path):
    paths = {"cat": ("mammal",), "dog": ("mammal",), "trout": ("fish",)}
    structure = hierarchy(paths, level_names=["class"])
    write_structure(structure, tmp_path / "animals.csv")
    found = parse_structure(str(tmp_path / "animals.csv"), structure.classes).structure
    assert found == structure


SQUARE = LabelGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])


@pytest.mark.parametrize("header", ["from,to\n", ""])
def test_a_list_of_edges_may_have_a_header_or_none(header, tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(header + "a,b\nb,c\nc,d\nd,a\n")
    graph, notes = graph_from_file(path, ["a", "b", "c", "d"])
    assert graph == SQUARE
    assert notes == (
        () if header else (f"{path} has no header: its first row was read as an edge",)
    )


def test_the_classes_come_in_the_order_of_the_labels(tmp_path):
    path = tmp_path / "edges.tsv"
    path.write_text("from\tto\n3\t1\n1\t2\n2\t4\n")
    graph, _ = graph_from_file(path, [1, 2, 3])
    assert graph.classes == (1, 2, 3, 4)


def test_json_with_edges_is_a_graph(tmp_path):
    path = tmp_path / "states.json"
    states = catalog.us_states()
    path.write_text(json.dumps({"nodes": states.classes, "edges": states.edges}))
    assert graph_from_file(path, states.classes)[0] == states


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("e.csv", "a,b,c\n1,2,3\n", "two columns and at least one edge under its header, got 3"),
        ("e.csv", "from,to\n", "got 2 columns and 1 rows"),
        ("e.csv", "from,to\na,b\nc,d\n", "must be connected, got 2 parts"),
        ("e.csv", "from,to\na,a\na,b\n", "'a' joined to itself"),
        ("e.json", "{", "must be JSON"),
        ("e.json", '{"edges": [["a"]]}', "pairs of classes"),
        ("e.json", "[]", "pairs of classes"),
    ],
)
def test_what_is_no_graph_is_refused(name, content, reason, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(StructentError, match=reason):
        graph_from_file(tmp_path / name, ["a", "b"])


# Models


def model_file(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(f"{name}.json", text)
    return path


@pytest.mark.parametrize("name", ["m.structent", "m"])
@pytest.mark.parametrize(
    "structure", [ordinal(["a", "b", "c"]), SpanningTreePartitions(catalog.us_states(), 5, 0.5)]
)
def test_the_structure_of_a_model_is_read(tmp_path, name, structure):
    path = model_file(tmp_path / name, metadata="{}", structure=structure.to_json())
    assert structure_from_file(path, ()) == (structure, ())


def test_what_is_no_model_with_a_structure_is_refused(tmp_path):
    plain = model_file(tmp_path / "plain.structent", metadata="{}")
    with pytest.raises(
        StructentError, match="must be a model with a structure, got a zip file wit"
    ):
        structure_from_file(plain, ())
    broken = tmp_path / "broken.structent"
    broken.write_bytes(plain.read_bytes()[:40])
    with pytest.raises(StructentError, match="got a file that is damaged or another one"):
        structure_from_file(broken, ())
    with pytest.raises(
        StructentError, match=r"there is no file .*brokn.structent; did you mean 'br"
    ):
        structure_from_file(tmp_path / "brokn.structent", ())
