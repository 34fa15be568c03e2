"""Which loss to choose."""

from structent.experiments.cifar100.choice import best_loss, which_loss
from structent.experiments.cifar100.readings import Case, trials_of
from tests.experiments.cifar100.made_up import pair, run

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
