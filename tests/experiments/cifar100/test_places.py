"""The places of the tables."""

import pytest

from structent.experiments.cifar100.paper_numbers import TABLE_1A, TABLE_1C, TABLE_1D
from structent.experiments.cifar100.places import places
from structent.experiments.cifar100.readings import Case
from tests.experiments.cifar100.made_up import run


def test_sizes_of_the_paper_that_were_not_run_have_places_without_a_case():
    found = places("1A", [run("standard", 0, entropy=[1], size=2500)])
    assert [(place.label, place.case) for place in found] == [
        ("1,000 images", None),
        ("2,500 images", Case(2500, "small CNN")),
        ("5,000 images", None),
        ("10,000 images", None),
        ("50,000 images", None),
    ]
    assert [place.paper for place in found] == list(TABLE_1A.values())


def test_a_size_that_the_paper_does_not_have_stands_without_it():
    first, *_ = places("1A", [run("standard", 0, entropy=[1], size=100)])
    assert (first.label, first.slug, first.paper) == ("100 images", "100", None)


def test_several_networks_are_told_apart():
    runs = [run("standard", 0, entropy=[1], experiment="1D", network=n) for n in ("a_b", "c d")]
    found = places("1D", runs)
    assert [place.label for place in found] == ["1,000 images, a_b", "1,000 images, c d"]
    assert [place.slug for place in found] == ["1000-a_b", "1000-c-d"]
    assert [place.paper for place in found] == [TABLE_1D[1000]] * 2


@pytest.mark.parametrize(
    ("ours", "papers"),
    [
        ("mobilenet_v2_imagenet", "MobileNetV2"),
        ("MobileNetV2", "MobileNetV2"),
        ("resnet50", "ResNet50"),
        ("ResNet50V2", None),
        ("MobileNetV3Small", None),
    ],
)
def test_networks_are_matched_to_the_papers(ours, papers):
    found = places("1C", [run("standard", 0, entropy=[1], experiment="1C", network=ours)])
    (place,) = [place for place in found if place.case is not None]
    assert place.paper == (TABLE_1C[papers] if papers else None)
    assert len(found) == (2 if papers else 3)


def test_a_network_under_another_name_is_called_by_both():
    runs = [run("standard", 0, entropy=[1], experiment="1C", network="mobilenet_v2_imagenet")]
    _, place = places("1C", runs)
    assert place.label == "MobileNetV2 (mobilenet_v2_imagenet), 1,000 images"
    assert place.slug == "mobilenet_v2_imagenet-1000"
