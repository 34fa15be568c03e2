"""Whether what the paper claims holds."""

import pytest

from structent.experiments.cifar100.claims import claims
from tests.experiments.cifar100.made_up import pair, run

# Gains of exactly .1, .2, .3: .2 +- .0577, whose 95 % interval is 4.303 errors, so it has 0 in it.
WIDE = [0.1, 0.2, 0.3]
NARROW = [0.19, 0.2, 0.21]


def holds(name, finished):
    return [claim.holds for claim in claims(name, finished)]


def test_structured_better_everywhere_is_a_yes_with_its_counts():
    every, *_ = claims("1A", pair(NARROW, size=1000) + pair(WIDE, size=2500))
    assert every.holds == "yes"
    # The accuracies gain .01 in every trial, which is beyond any interval; so 8 and one of two.
    assert every.numbers == (
        "in 10 of 10, 9 beyond their 95 % interval; the paper's way in 10 of 10, 9 beyond their "
        "95 % interval; not run: 5,000 images, 10,000 images, 50,000 images"
    )


def test_an_exception_is_named():
    every, *_ = claims("1A", pair(NARROW, size=1000) + pair([-0.1, 0.0, 0.0], size=2500))
    assert every.holds == "in part"
    assert every.numbers.startswith(
        "in 9 of 10, 9 beyond their 95 % interval; not so: cross-entropy -0.0333 ± 0.0333 at "
        "2,500 images; "
    )


def test_structured_worse_is_a_no():
    every, less, coarser = claims("1A", pair([-0.19, -0.2, -0.21], accuracy_gain=-0.01))
    assert every.holds == "no"
    assert every.numbers.startswith(
        "in 0 of 5, 0 beyond their 95 % interval and 5 beyond it the other way; by cross-entropy "
        "-0.2000 ± 0.0058, Acc -0.0100 ± 0.0000, "
    )
    assert less.holds == "not run"  # one size
    assert coarser.holds == "no"


@pytest.mark.parametrize(
    ("gains", "answer"),
    [
        ([0.4, 0.3, 0.2, 0.1], "yes"),
        ([0.4, 0.3, 0.1, 0.2], "in part"),
        ([0.1, 0.2, 0.3, 0.4], "no"),
        ([-0.1, -0.2, -0.3, -0.4], "no"),  # no gains at all
    ],
)
def test_gains_are_larger_with_less_data(gains, answer):
    finished = [
        line
        for size, gain in zip((1000, 2500, 5000, 10_000), gains, strict=True)
        for line in pair([gain, gain], size=size, accuracy_gain=gain / 10)
    ]
    assert claims("1A", finished)[1].holds == answer


def test_gains_of_every_metric_are_counted_from_size_to_size():
    small, large = pair([0.3, 0.3], size=1000), pair([0.2, 0.2], size=2500, accuracy_gain=0.02)
    claim = claims("1A", small + large)[1]
    assert claim.holds == "no"  # cross-entropy alone gains less
    assert claim.numbers == (
        "the gain is smaller after 1 of 5 steps to more images; with 1,000 images, 2,500 images: "
        "cross-entropy +0.3000 ± 0.0000, +0.2000 ± 0.0000; Acc +0.0100 ± 0.0000, +0.0200 ± 0.0000; "
        "Acc2 +0.0100 ± 0.0000, +0.0200 ± 0.0000; Acc3 +0.0100 ± 0.0000, +0.0200 ± 0.0000; Acc4 "
        "+0.0100 ± 0.0000, +0.0200 ± 0.0000; not run: 5,000 images, 10,000 images, 50,000 images"
    )


def test_gains_at_coarser_levels_are_counted_against_that_of_classes():
    standard, structured = pair([0.1], experiment="1D")
    values = {"accuracy": 0.21, "accuracy 2": 0.33, "accuracy 3": 0.42, "accuracy 4": 0.505}
    structured.result["test"].update({name: [value] for name, value in values.items()})
    claim = claims("1D", [standard, structured])[1]
    # From .2, .3, .4, .5: gains of .01, .03, .02, .005.
    assert claim.holds == "in part"
    assert claim.numbers == (
        "higher in 2 of 3; 1,000 images: Acc +0.0100, Acc2 +0.0300, Acc3 +0.0200, Acc4 +0.0050"
    )


def test_equal_gains_at_all_levels_are_not_higher():
    # Halves are exact, so that equal gains are equal.
    standard, structured = pair([0.1], experiment="1D")
    for line, value in ((standard, 0.25), (structured, 0.5)):
        line.result["test"].update({f"accuracy{x}": [value] for x in ("", " 2", " 3", " 4")})
    assert holds("1D", [standard, structured]) == ["yes", "no"]


def scrambled(entropies, accuracy):
    return [
        run("scrambled", trial, entropy=[e], accuracy=accuracy, experiment="1B", size=5000)
        for trial, e in enumerate(entropies)
    ]


def test_a_scrambled_structure_that_is_worse_is_a_yes():
    finished = pair(NARROW, size=5000) + scrambled([3.1, 3.1, 3.1], accuracy=0.15)
    than_standard, than_structured = claims("1B", finished)
    assert (than_standard.holds, than_structured.holds) == ("yes", "yes")
    assert "by cross-entropy +0.1000 ± 0.0000, Acc +0.0500 ± 0.0000" in than_standard.numbers
    assert "by cross-entropy +0.3000 ± 0.0058, Acc +0.0600 ± 0.0000" in than_structured.numbers


def test_a_scrambled_structure_between_the_two_is_worse_than_one_only():
    finished = pair(NARROW, size=5000) + scrambled([2.9, 2.9, 2.9], accuracy=0.205)
    assert holds("1B", finished) == ["no", "yes"]


def test_one_trial_is_counted_without_intervals():
    finished = pair([0.1], experiment="1C", size=5000, network="MobileNetV2")
    resnet, mobilenet = claims("1C", finished)
    assert (resnet.holds, mobilenet.holds) == ("not run", "yes")
    assert mobilenet.says.endswith("MobileNetV2, 5,000 images")
    assert mobilenet.numbers == (
        "in 5 of 5 (one trial, so no intervals); by cross-entropy +0.1000, Acc +0.0100, Acc2 "
        "+0.0100, Acc3 +0.0100, Acc4 +0.0100; the paper's way in 5 of 5 (one trial, so no "
        "intervals)"
    )


def test_sizes_with_one_trial_are_told_from_those_with_more():
    every, *_ = claims("1A", pair(NARROW, size=1000) + pair([0.1], size=2500))
    assert every.numbers.startswith(
        "in 10 of 10, 5 beyond their 95 % interval (5 have one trial, so no interval)"
    )


@pytest.mark.parametrize(("name", "n"), [("1A", 3), ("1B", 2), ("1C", 2), ("1D", 2)])
def test_without_runs_no_claim_is_judged(name, n):
    assert holds(name, []) == ["not run"] * n
