"""The trivial structure and mixtures."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from structent import circular, mix, ordinal, structured_entropy, trivial
from structent.structure import catalog
from tests.strategies import class_sets, distributions, random_partitions


@given(class_sets())
def test_definition_11_the_trivial_structure_has_only_the_singletons(classes):
    structure = trivial(classes)
    assert structure.n_partitions == 1
    assert structure.singleton_weight == 1.0
    assert structure.partitions[0].n_blocks == len(classes)


@given(st.data(), st.floats(0.0, 1.0))
def test_the_entropy_of_a_mixture_is_the_mixture_of_the_entropies(data, share):
    classes = data.draw(class_sets())
    first, second = (data.draw(random_partitions(classes)) for _ in range(2))
    p = data.draw(distributions(len(classes)))
    mixed = mix([first, second], [share, 1 - share])
    expected = share * structured_entropy(p, first) + (1 - share) * structured_entropy(p, second)
    np.testing.assert_allclose(structured_entropy(p, mixed), expected, rtol=1e-10, atol=1e-12)


def test_mixed_levels_of_one_name_are_kept_apart_and_the_singletons_shared():
    hours = range(24)
    mixed = mix([circular(hours, 3), circular(hours, 6), ordinal(hours), ordinal(hours)])
    assert list(mixed.levels) == ["cut", "cut (2)", "width 6", "width 3", "class"]
    assert len(mixed.levels["class"]) == 4


def test_a_hierarchy_mixed_with_the_trivial_structure_keeps_its_distances():
    cifar = catalog.cifar100()
    mixed = mix([cifar, trivial(cifar.classes)])
    assert mixed.distance("oak_tree", "maple_tree") == 1
    assert mixed.distance("oak_tree", "trout") == 4
