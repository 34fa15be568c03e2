"""Tables of ours beside the paper's, all losses side by side, and the paper's claims."""

import pytest

from paper.cifar100_results import Case, places, trials_of
from paper.cifar100_tables import beside_paper, best_loss, claims, which_loss
from tests.paper.made_up_runs import pair, run


def written(runs, *, name="1A", readings=("chosen epoch",)):
    text = beside_paper(
        places(name, runs),
        runs,
        losses=("standard", "structured"),
        pairs=[("structured", "standard")],
        readings=readings,
    )
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]


def test_values_and_paired_differences_stand_above_the_papers():
    # Gains of .1, .2 and .3: mean .2, standard deviation .1, error .1 / sqrt(3).
    rows = written(pair([0.1, 0.2, 0.3]))
    assert rows[2][:4] == ["1,000 images", "standard", "chosen epoch, 3 trials", "3.0000 ± 0.0000"]
    assert rows[3][:3] == ["", "", "in the paper, 10 trials"]
    assert rows[3][3:] == ["4.099", "0.1475", "0.2643", "0.3650", "0.4954"]
    assert rows[4][1:4] == ["structured", "chosen epoch, 3 trials", "2.8000 ± 0.0577"]
    assert rows[6][1:4] == ["structured - standard", "chosen epoch, 3 trials", "-0.2000 ± 0.0577"]
    # 3.999 - 4.099 and .1569 - .1475, and so on.
    assert rows[7][3:] == ["-0.100", "+0.0094", "+0.0230", "+0.0280", "+0.0217"]


def test_differences_beyond_their_interval_are_bold():
    # The interval of gains .19, .2 and .21 is .2 +- 4.303 * .01 / sqrt(3).
    assert written(pair([0.19, 0.2, 0.21]))[6][3] == "**-0.2000 ± 0.0058**"


def test_what_was_not_run_says_so():
    rows = written(pair([0.1]))
    assert rows[8] == ["2,500 images", "standard", "not run", "", "", "", "", ""]
    assert rows[12][1:4] == ["structured - standard", "not run", ""]


def test_one_trial_has_no_standard_error():
    assert written(pair([0.1]))[6][2:4] == ["chosen epoch, 1 trial", "-0.1000"]


def test_a_loss_without_the_other_has_no_difference():
    rows = written([run("standard", 0, entropy=[3.0])])
    assert rows[2][2:4] == ["chosen epoch, 1 trial", "3.0000"]
    assert rows[4][2] == "not run"
    assert rows[6][2] == "not run"


def test_each_reading_has_its_line():
    runs = [run(loss, 0, entropy=[3.0, 2.0, 4.0]) for loss in ("standard", "structured")]
    rows = written(runs, readings=("last epoch", "the paper's way"))
    assert [row[2:4] for row in rows[2:5]] == [
        ["last epoch, 1 trial", "4.0000"],
        ["the paper's way, 1 trial", "2.0000"],
        ["in the paper, 10 trials", "4.099"],
    ]


def test_the_papers_networks_stand_with_four_decimals():
    rows = written([], name="1C")
    assert rows[3][2:4] == ["in the paper, 50,000 images", "0.7956"]
    assert rows[13][3] == "-0.0036"


SMALL = Case(1000, "small CNN")


def smoothed(values, accuracy=0.2):
    return [
        run("label smoothing", trial, entropy=[value], accuracy=accuracy)
        for trial, value in enumerate(values)
    ]


def cells(text, loss, table):
    """The cells of a loss in the table of values (0) or of differences (1)."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {loss} |")]
    return [cell.strip() for cell in lines[table].split("|")[2:-1]]


def sentences(text):
    return [line for line in text.splitlines() if line.startswith("- ")]


def test_the_best_is_compared_with_the_structured_loss():
    # Structured: 2.9, 2.8, 2.7. Smoothed: .11, .1 and .09 lower, so .1 +- .01 / sqrt(3).
    text = which_loss(pair([0.1, 0.2, 0.3]) + smoothed([2.79, 2.7, 2.61]), SMALL)
    assert sentences(text)[0] == (
        "- Lowest cross-entropy: label smoothing, 2.7000 ± 0.0520 (3 trials); better than the "
        "structured loss by 0.1000 ± 0.0058, beyond its 95 % interval."
    )


def test_the_structured_loss_is_compared_with_the_next():
    # Behind by .2, 0 and .1: .1 +- .0577, and 4.303 errors are more than that.
    text = which_loss(pair([0.2, 0.2, 0.2]) + smoothed([3.0, 2.8, 2.9]), SMALL)
    assert sentences(text)[0].endswith(
        "better than the next, label smoothing, by 0.1000 ± 0.0577, within its 95 % interval."
    )


def test_class_accuracy_and_mistakes_are_judged_too():
    text = which_loss(pair([0.1, 0.2, 0.3]) + smoothed([3.0] * 3, accuracy=0.3), SMALL)
    # Of the made-up mistakes (.7 + .6 + .5 + .4) / .7 = 3.1429 levels are wrong.
    assert sentences(text)[1].startswith("- Highest class accuracy: label smoothing, 0.3000 ")
    assert sentences(text)[2].startswith("- Mildest mistakes: label smoothing, 3.1429 ")
    assert cells(text, "label smoothing", 0)[-1] == "**3.1429 ± 0.0000**"
    # For standard (.8 + .7 + .6 + .5) / .8 = 3.25.
    assert cells(text, "standard", 0)[-1] == "3.2500 ± 0.0000"
    assert cells(text, "label smoothing", 1)[-1] == "**-0.1071 ± 0.0000**"


def test_losses_that_were_not_run_say_so():
    text = which_loss(pair([0.1, 0.2]), SMALL)
    assert cells(text, "soft labels 30", 0) == ["not run", *[""] * 6]
    assert cells(text, "hierarchical .1", 1) == ["not run", *[""] * 6]


def test_one_trial_has_no_interval():
    text = which_loss(pair([0.1]), SMALL)
    assert sentences(text)[0] == (
        "- Lowest cross-entropy: structured, 2.9000 (1 trial); better than the next, standard, by "
        "0.1000, on one trial only, so without an interval."
    )


def test_without_runs_nothing_is_best():
    text = which_loss([], None)
    assert sentences(text)[0] == "- Lowest cross-entropy: no two losses share a trial yet."
    assert "**" not in text


def test_without_the_structured_loss_the_best_is_named_alone():
    runs = [run("standard", 0, entropy=[3.0]), *smoothed([2.5])]
    assert sentences(which_loss(runs, SMALL))[0] == (
        "- Lowest cross-entropy: label smoothing, 2.5000 (1 trial); the structured loss was not "
        "run."
    )


def test_the_best_is_taken_over_the_trials_that_all_losses_have():
    # Over its own trials label smoothing is lower; in trial 0, which all have, it is higher.
    runs = pair([0.1]) + smoothed([2.95, 1.0])
    trials = {x: trials_of(runs, SMALL, x) for x in ("standard", "structured", "label smoothing")}
    assert best_loss(trials, "cross-entropy") == ["structured", "label smoothing", "standard"]
    assert sentences(which_loss(runs, SMALL))[0].endswith(
        "structured, 2.9000 (1 trial); better than the next, label smoothing, by 0.0500, on one "
        "trial only, so without an interval."
    )


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
