"""The structures that come with the package."""

from collections import Counter

import numpy as np
import pytest

from structent.structure import catalog


def test_cifar100_has_the_sizes_of_the_paper():
    cifar = catalog.cifar100()
    assert [p.n_blocks for p in cifar.partitions] == [4, 8, 20, 100]
    assert cifar.weights.tolist() == [0.25] * 4
    superclasses = cifar.levels["superclass"][0]
    assert set(map(len, superclasses.blocks)) == {5}


@pytest.mark.parametrize(
    ("level", "block", "size"),
    [
        ("supercategory", "animals", 50),
        ("supercategory", "plants", 15),
        ("supercategory", "objects", 25),
        ("supercategory", "landscape", 10),
        ("category", "animals-water", 10),
        ("category", "animals-mammals", 20),
        ("category", "animals-human", 5),
        ("category", "animals-other", 15),
        ("category", "objects-vehicle", 10),
        ("category", "objects-other", 15),
        ("category", "plants", 15),
        ("category", "landscape", 10),
    ],
)
def test_cifar100_categories_have_the_sizes_of_the_appendix(level, block, size):
    (partition,) = catalog.cifar100().levels[level]
    assert Counter(partition.coarsen(list(partition.classes)).tolist())[block] == size


@pytest.mark.requires("shared-data")
def test_cifar100_is_spelt_and_ordered_as_in_the_data(shared_data):
    with np.load(shared_data / "cifar100.npz", allow_pickle=False) as data:
        class_names, superclass_names = data["class_names"], data["superclass_names"]
        superclass_of_class = data["superclass_of_class"]
    cifar = catalog.cifar100()
    assert list(cifar.classes) == class_names.tolist()
    (superclass,) = cifar.levels["superclass"]
    expected = superclass_names[superclass_of_class].tolist()
    assert superclass.coarsen(class_names).tolist() == expected


def test_months_are_the_circle_of_the_paper():
    months = catalog.months(singleton_weight=0.1)
    assert months.classes == tuple(range(1, 13))
    np.testing.assert_allclose(months.weights, [0.3, 0.3, 0.3, 0.1])
    assert months.partitions[0].blocks[0] == (1, 2, 3)


def test_california_has_58_counties():
    counties = catalog.california_counties()
    assert counties.n_classes == 58
    assert set(counties.neighbours("San Francisco")) == {"Alameda", "San Mateo"}


def test_there_are_48_contiguous_states_and_dc():
    states = catalog.us_states()
    assert states.n_classes == 49
    assert set(states.neighbours("District of Columbia")) == {"Maryland", "Virginia"}
    assert "Arizona" not in states.neighbours("Colorado")  # the Four Corners meet in a point
