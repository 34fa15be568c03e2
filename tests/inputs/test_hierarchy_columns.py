"""Columns of groups: each label has one value, and the levels are nested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructureError, hierarchy
from structent.inputs import open_table
from structent.inputs.hierarchy_columns import hierarchy_from_columns, hierarchy_from_groups


@st.composite
def nested_levels(draw):
    """Levels from fine to coarse, each merging groups of the one before, and never all."""
    n_classes = draw(st.integers(4, 10))
    levels = []
    groups = list(range(n_classes))
    while len(set(groups)) > 3:
        present = sorted(set(groups))
        first, second = draw(
            st.lists(st.sampled_from(present), min_size=2, max_size=2, unique=True)
        )
        groups = [first if group == second else group for group in groups]
        levels.append(groups)
    return levels


@given(nested_levels(), st.randoms())
def test_levels_are_sorted_from_the_coarsest_whatever_their_order(levels, rng):
    named = [(f"level of {len(set(groups))}", groups) for groups in levels]
    rng.shuffle(named)
    classes = [f"class {i}" for i in range(len(levels[0]))]
    structure, notes = hierarchy_from_groups(classes, dict(named))
    paths = zip(classes, zip(*levels[::-1], strict=True), strict=True)
    names = [f"level of {len(set(groups))}" for groups in levels[::-1]]
    assert structure == hierarchy(dict(paths), level_names=names)
    assert notes == ()


def test_labels_with_several_values_are_listed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,g\noak,A\noak,B\nelm,A\nfir,B\nfir,C\n")
    with pytest.raises(StructureError) as caught:
        hierarchy_from_columns(open_table(path), "y", ["g"])
    assert str(caught.value) == (
        "each label must have one value in column 'g', got several for "
        "'fir' ('B', 'C'), 'oak' ('A', 'B')"
    )


def test_groups_may_be_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,g\n1,10\n2,10\n3,20\n,20\n")
    structure, _ = hierarchy_from_columns(open_table(path), "y", ["g"])
    assert structure == hierarchy({1: (10,), 2: (10,), 3: (20,)}, level_names=["g"])
