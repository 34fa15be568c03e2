"""Taxonomy dumps: levels are ranks, and classes are found by their ids or scientific names."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structent import LabelError, StructentError, StructureError, hierarchy, hxe
from structent.inputs import hierarchy_from_taxonomy, parse_structure, structure_from_file

# Ids, parents, ranks and names as NCBI has them, with some clades without a rank left out.
TAXA = [
    (1, 1, "no rank", "root"),
    (131567, 1, "cellular root", "cellular organisms"),
    (2, 131567, "domain", "Bacteria"),
    (1224, 2, "phylum", "Pseudomonadota"),
    (91347, 1224, "order", "Enterobacterales"),
    (543, 91347, "family", "Enterobacteriaceae"),
    (561, 543, "genus", "Escherichia"),
    (562, 561, "species", "Escherichia coli"),
    (2759, 131567, "domain", "Eukaryota"),
    (7711, 2759, "phylum", "Chordata"),
    (40674, 7711, "class", "Mammalia"),
    (9347, 40674, "clade", "Eutheria"),
    (9443, 9347, "order", "Primates"),
    (9604, 9443, "family", "Hominidae"),
    (9605, 9604, "genus", "Homo"),
    (9606, 9605, "species", "Homo sapiens"),
    (9596, 9604, "genus", "Pan"),
    (9597, 9596, "species", "Pan paniscus"),
    (9598, 9596, "species", "Pan troglodytes"),
    (9989, 9347, "order", "Rodentia"),
    (10088, 9989, "genus", "Mus"),  # without a family, for the test
    (10090, 10088, "species", "Mus musculus"),
]
PRIMATES = ["Homo sapiens", "Pan paniscus", "Pan troglodytes"]
LIFE = [*PRIMATES, "Mus musculus", "Escherichia coli"]


def written(folder, taxa=TAXA):
    """Write both files with the separators of NCBI, and names that are none of the scientific."""
    nodes = "".join(f"{t}\t|\t{p}\t|\t{rank}\t|\t\t|\t1\t|\n" for t, p, rank, _ in taxa)
    names = "".join(
        f"{t}\t|\t{name}, common\t|\t\t|\tcommon name\t|\n"
        f"{t}\t|\t{name}\t|\t{name} <{t}>\t|\tscientific name\t|\n"
        for t, _, _, name in taxa
    )
    (folder / "nodes.dmp").write_text(nodes)
    (folder / "names.dmp").write_text(names)
    return folder / "nodes.dmp", folder / "names.dmp"


def blocks(structure):
    return {name: cut[0].blocks for name, cut in structure.levels.items()}


def test_ranks_are_levels_and_what_they_add_nothing_to_is_left_out(tmp_path):
    found = hierarchy_from_taxonomy(*written(tmp_path), classes=LIFE)
    assert blocks(found) == {
        "domain": ((*PRIMATES, "Mus musculus"), ("Escherichia coli",)),
        "order": (tuple(PRIMATES), ("Mus musculus",), ("Escherichia coli",)),
        "genus": (
            ("Homo sapiens",),
            ("Pan paniscus", "Pan troglodytes"),
            ("Mus musculus",),
            ("Escherichia coli",),
        ),
        "class": tuple((name,) for name in LIFE),
    }
    assert found.levels["order"][0].names == ("Primates", "Rodentia", "Enterobacterales")


def test_a_rank_that_a_lineage_lacks_is_stood_for_by_the_next_finer_one(tmp_path):
    nodes, names = written(tmp_path)
    ranks = ["class", "family"]
    found = hierarchy_from_taxonomy(nodes, names, hxe(0.5), ranks=ranks, classes=LIFE)
    assert list(found.levels) == ["class", "family", "label"]
    assert found.levels["family"][0].names == ("Hominidae", "Mus musculus", "Enterobacteriaceae")
    assert found.levels["class"][0].names == ("Mammalia", "Enterobacteriaceae")
    assert found.weights.tolist() == hxe(0.5)(3).tolist()
    with_genus = hierarchy_from_taxonomy(nodes, names, ranks=["family", "genus"], classes=LIFE)
    assert with_genus.levels["family"][0].names == ("Hominidae", "Mus", "Enterobacteriaceae")


def test_classes_are_ids_or_names_or_all_leaves(tmp_path):
    nodes, names = written(tmp_path)
    by_name = hierarchy_from_taxonomy(nodes, names, classes=LIFE)
    ids = {name: taxon for taxon, _, _, name in TAXA}
    for kind in (int, str):
        labels = [kind(ids[name]) for name in LIFE]
        found = hierarchy_from_taxonomy(nodes, names, classes=labels)
        assert found == by_name.relabel(dict(zip(LIFE, labels, strict=True)))
    assert set(hierarchy_from_taxonomy(nodes, names).classes) == set(LIFE)
    assert hierarchy_from_taxonomy(nodes, names).restrict(LIFE) == by_name
    without_names = hierarchy_from_taxonomy(nodes)
    assert without_names.levels["domain"][0].names == ("2", "2759")
    assert set(without_names.classes) == {ids[name] for name in LIFE}


def test_a_class_that_is_a_group_of_others_is_in_that_group(tmp_path):
    found = hierarchy_from_taxonomy(*written(tmp_path), classes=["Pan", *LIFE])
    assert found.levels["genus"][0].blocks[0] == ("Pan", "Pan paniscus", "Pan troglodytes")


def test_groups_that_share_a_name_are_told_apart_by_their_ids(tmp_path):
    taxa = [
        (1, 1, "no rank", "root"),
        *((n, 1, "phylum", name) for n, name in ((2, "Bacillota"), (3, "Animals"))),
        *((n, p, "genus", "Bacillus") for n, p in ((20, 2), (30, 3))),
        *((n, n // 10, "species", f"s{n}") for n in (200, 201, 300, 301)),
    ]
    found = hierarchy_from_taxonomy(*written(tmp_path, taxa))
    assert found.n_partitions == 2  # genera divide as phyla do
    genera = hierarchy_from_taxonomy(*written(tmp_path, taxa), ranks=["genus"])
    assert genera.levels["genus"][0].names == ("Bacillus (20)", "Bacillus (30)")
    with pytest.raises(
        LabelError, match="got 'Bacillus', which is the name of 20 and 30; give tax"
    ):
        hierarchy_from_taxonomy(*written(tmp_path, taxa), classes=["Bacillus", "s200"])


RANKS = ["phylum", "order", "family", "genus"]


@st.composite
def taxonomies(draw):
    """Clades, some of them without a rank, and for each class the clade that it is in."""
    clades = [(None, -1)]  # the root: parent, and the place of its rank
    for _ in range(draw(st.integers(2, 12))):
        parent = draw(st.integers(0, len(clades) - 1))
        above = clades[parent][1]
        rank = draw(st.one_of(st.none(), st.integers(above + 1, len(RANKS))))
        no_rank = rank is None or rank == len(RANKS)
        clades.append((parent, above if no_rank else rank))
    return clades, draw(st.lists(st.integers(0, len(clades) - 1), min_size=2, max_size=8))


def ranked_lineage(clades, at):
    """Return the clade of each rank above a class: a clade without one shows its parent's."""
    found = {}
    while clades[at][0] is not None:
        parent, rank = clades[at]
        if rank > clades[parent][1]:
            found[rank] = at
        at = parent
    return found


@given(taxonomies(), st.randoms(use_true_random=False))
def test_classes_are_together_at_a_rank_if_their_taxa_of_it_are_the_same(
    tmp_path_factory, taxonomy, random
):
    clades, of_class = taxonomy
    taxa = [(1, 1, "no rank", "root")]
    for n, (parent, rank) in enumerate(clades):
        if parent is not None:
            is_ranked = rank > clades[parent][1]
            taxa.append((n + 1, parent + 1, RANKS[rank] if is_ranked else "clade", f"clade {n}"))
    species = [(100 + i, at + 1, "species", f"species {i}") for i, at in enumerate(of_class)]
    random.shuffle(taxa)
    files = written(tmp_path_factory.mktemp("taxonomy"), [*species, *taxa, (50, 1, "genus", "x")])
    classes = [name for *_, name in species]

    def taxon(i, rank):
        lineage = ranked_lineage(clades, of_class[i])
        finer = [r for r in sorted(lineage) if r >= rank]
        return lineage[finer[0]] if finer else f"class {i}"

    expected = {
        name: [[taxon(i, rank) == taxon(j, rank) for i in range(len(classes))]
               for j in range(len(classes))]
        for rank, name in enumerate(RANKS)
    }  # fmt: skip
    tells = [name for name in RANKS if 1 < len(set(map(tuple, expected[name]))) < len(classes)]
    assume(tells)
    found = hierarchy_from_taxonomy(*files, classes=classes)
    for name, (cut,) in found.levels.items():
        if name in RANKS:
            together = cut.block_of[:, None] == cut.block_of
            assert together.tolist() == expected[name]
    different = {str(expected[name]) for name in tells}
    assert {name for name in found.levels if name in RANKS} <= set(tells)
    assert len(found.levels) == len(different) + 1


# On the command line


def test_nodes_and_the_names_beside_them_are_a_structure_file(tmp_path):
    nodes, names = written(tmp_path)
    expected = hierarchy_from_taxonomy(nodes, names, classes=LIFE)
    found = parse_structure(str(nodes), LIFE).structure
    assert found.restrict(LIFE) == expected
    assert structure_from_file(nodes, [])[0] == hierarchy_from_taxonomy(nodes, names)
    with_blocks = parse_structure(str(nodes), [*LIFE, "Primates"], allow_blocks=True).structure
    assert set(with_blocks.classes) == set(LIFE)
    names.unlink()
    assert parse_structure(str(nodes), [9606, 9597, 9598, 10090]).structure.n_classes == 4
    with pytest.raises(
        StructureError, match=r"need names.dmp, got 'Escherichia coli' .* same folder"
    ):
        parse_structure(str(nodes), LIFE)


def test_names_alone_have_no_tree(tmp_path):
    _, names = written(tmp_path)
    with pytest.raises(StructentError, match=r"in its nodes.dmp, got .*names.dmp; name that file"):
        structure_from_file(names, LIFE)


# What is refused


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a table, with commas", "must begin with a number .* got 'a table, with commas'"),
        ("x\t|\t1\t|\tgenus\t|", "must begin with a number .* got 'x'"),
        ("7\t|\ty\t|\tgenus\t|", "must begin with a number .* got 'y'"),
        ("7\t|\t99\t|\tgenus\t|", "the parent 99 of 7, which is missing"),
        ("7\t|\t8\t|\tgenus\t|\n8\t|\t7\t|\tgenus\t|", "the parent 7 of 8, which is its own"),
    ],
)
def test_what_is_no_taxonomy_is_refused(tmp_path, line, message):
    nodes, _ = written(tmp_path)
    nodes.write_text(nodes.read_text() + line + "\n\n")
    with pytest.raises(StructureError, match=message):
        hierarchy_from_taxonomy(nodes, classes=[7, 9606])


def test_unknown_classes_and_ranks_are_listed(tmp_path):
    nodes, names = written(tmp_path)
    with pytest.raises(LabelError, match="got 2 that are not: 'Homo sapien', 'Pan pan'"):
        hierarchy_from_taxonomy(nodes, names, classes=["Homo sapien", "Pan", "Pan pan"])
    with pytest.raises(LabelError, match="got 1 that are not: 5"):
        hierarchy_from_taxonomy(nodes, names, classes=[9606, 5])
    with pytest.raises(StructureError, match=r"\(.*domain, .*\), got tribe"):
        hierarchy_from_taxonomy(nodes, names, ranks=["order", "tribe"], classes=LIFE)
    with pytest.raises(StructureError, match="a hierarchy needs a level with"):
        hierarchy_from_taxonomy(nodes, names, classes=["Pan paniscus", "Pan troglodytes"])


def test_bytes_that_are_no_text_are_refused(tmp_path):
    nodes, _ = written(tmp_path)
    nodes.write_bytes(b"1\t|\t1\t|\t\xff\t|\n")
    with pytest.raises(StructureError, match="must be UTF-8 text"):
        hierarchy_from_taxonomy(nodes)


def test_a_dump_gives_what_its_paths_give(tmp_path):
    found = hierarchy_from_taxonomy(*written(tmp_path), ranks=["order", "genus"], classes=LIFE)
    paths = {
        "Homo sapiens": ("Primates", "Homo"),
        "Pan paniscus": ("Primates", "Pan"),
        "Pan troglodytes": ("Primates", "Pan"),
        "Mus musculus": ("Rodentia", "Mus"),
        "Escherichia coli": ("Enterobacterales", "Escherichia"),
    }
    assert found == hierarchy(paths, level_names=["order", "genus"])
