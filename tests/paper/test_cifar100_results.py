"""Finished runs on CIFAR-100: read in four ways, put in their places, summed up."""

import json
import math
from dataclasses import replace

import pytest

from paper.cifar100_results import (
    Case,
    as_gain,
    cases,
    chosen,
    chosen_epochs,
    difference,
    epochs_of,
    last,
    losses_of,
    mean_value,
    one_epoch,
    papers_way,
    places,
    runs_of,
    summary,
    trajectory,
    trials_of,
)
from paper.pages import Mean
from paper.paper_numbers import TABLE_1A, TABLE_1C, TABLE_1D
from structent.errors import StructentError
from tests.paper.made_up_runs import ACCURACIES, pair, run

SMALL = Case(1000, "small CNN")
# Validation is best at the first epoch in trial 0, and at the second in trial 1.
RUNS = [
    run("standard", 1, entropy=[3.0, 2.5, 2.75], accuracy=[0.1, 0.2, 0.4], validation=[9, 7, 8]),
    run("standard", 0, entropy=[2.0, 2.5, 1.75], accuracy=[0.3, 0.2, 0.0], validation=[7, 8, 9]),
]
TRIALS = trials_of(RUNS, SMALL, "standard")


def validated(validation_accuracy, **values):
    """A run whose validation accuracies are not those of the test."""
    made = run("standard", 0, **values)
    made.result["validation"]["accuracy"] = validation_accuracy
    return trials_of([made], SMALL, "standard")


def test_the_chosen_epoch_is_the_one_whose_validation_value_of_the_metric_is_best():
    trials = validated(
        [0.1, 0.3, 0.2], entropy=[3, 4, 5], accuracy=[0.9, 0.5, 0.7], validation=[8, 9, 7]
    )
    assert chosen(trials, "cross-entropy") == {0: 5.0}
    assert chosen(trials, "accuracy") == {0: 0.5}
    assert chosen_epochs(trials, "cross-entropy") == {0: 30}
    assert chosen_epochs(trials, "accuracy") == {0: 20}


def test_the_severity_of_mistakes_is_that_of_the_epoch_with_the_best_accuracy():
    # On validation the first epoch is the more accurate, though its mistakes are graver:
    # (.7 + .7 + .6 + .5) / .7 = 3.57 levels, and (.9 + .7 + .6 + .5) / .9 = 3 in the second.
    trials = validated([0.3, 0.1], entropy=[3, 4], accuracy=[0.2, 0.2])
    assert chosen_epochs(trials, "mistake severity") == {0: 10}


def test_one_epoch_for_all_metrics_is_that_of_the_least_validation_cross_entropy():
    assert one_epoch(TRIALS, "cross-entropy") == {0: 2.0, 1: 2.5}
    assert one_epoch(TRIALS, "accuracy") == {0: 0.3, 1: 0.2}


def test_an_epoch_that_diverged_is_never_chosen():
    trials = validated(
        [0.1, 0.2, math.nan],
        entropy=[3, 4, 5],
        accuracy=[0.3, 0.4, 0.5],
        validation=[math.nan, 1, 2],
    )
    assert chosen(trials, "cross-entropy") == {0: 4.0}
    assert chosen(trials, "accuracy") == {0: 0.4}


def test_the_last_epoch_is_read_in_every_trial():
    assert last(TRIALS, "cross-entropy") == {0: 1.75, 1: 2.75}


def test_the_papers_way_takes_the_best_of_the_mean_trajectory_each_metric_by_itself():
    # Cross-entropy: means 2.5, 2.5, 2.25, so the last; accuracy: .2, .2, .2, so the first.
    assert papers_way(TRIALS, "cross-entropy") == {0: 1.75, 1: 2.75}
    assert papers_way(TRIALS, "accuracy") == {0: 0.3, 1: 0.1}
    rising = trials_of([run("standard", 0, entropy=[1, 2], accuracy=[0.1, 0.5])], SMALL, "standard")
    assert papers_way(rising, "accuracy") == {0: 0.5}
    assert papers_way(rising, "cross-entropy") == {0: 1.0}


def test_trials_come_in_their_order():
    assert list(TRIALS) == [0, 1]


def test_mistake_severity_is_the_mean_number_of_levels_that_a_mistake_gets_wrong():
    # Ten images: five are right; of the five mistakes one is wrong at 1 level, two at 2, none at
    # 3, two at 4. So 5, 4, 2 and 2 are wrong, and a mistake gets (1 + 4 + 8) / 5 levels wrong.
    right = {"accuracy": 0.5, "accuracy 2": 0.6, "accuracy 3": 0.8, "accuracy 4": 0.8}
    result = {"test": {name: [share] for name, share in right.items()}}
    assert trajectory(result, "mistake severity") == pytest.approx([13 / 5], rel=1e-12)


def test_without_mistakes_there_is_no_severity():
    result = {"test": {name: [1.0] for name in ACCURACIES}}
    assert math.isnan(trajectory(result, "mistake severity")[0])


def test_less_severe_mistakes_are_better_the_papers_way():
    runs = [run("standard", 0, entropy=[1, 1], accuracy=[0.2, 0.4])]
    trials = trials_of(runs, SMALL, "standard")
    # (.8 + .7 + .6 + .5) / .8 = 3.25 and (.6 + .5 + .4 + .3) / .6 = 3.
    assert papers_way(trials, "mistake severity")[0] == pytest.approx(3.0, rel=1e-12)


def test_differences_are_paired_by_trial():
    other = [run("structured", trial, entropy=[e]) for trial, e in ((0, 1.5), (1, 1.0), (7, 99.0))]
    minus = difference(trials_of(other, SMALL, "structured"), TRIALS, "cross-entropy", chosen)
    # 1.5 - 2 and 1 - 2.5: mean -1, standard deviation sqrt(.5), error .5.
    assert minus == pytest.approx((-1.0, 0.5, 2), rel=1e-12)


def test_a_loss_that_was_not_run_has_neither_mean_nor_difference():
    assert mean_value({}, "accuracy", papers_way) is None
    assert difference({}, TRIALS, "accuracy", chosen) is None
    only_third = trials_of([run("structured", 2, entropy=[1.0])], SMALL, "structured")
    assert difference(only_third, TRIALS, "accuracy", chosen) is None


def test_one_trial_has_no_standard_error():
    one = mean_value({0: TRIALS[0]}, "cross-entropy", last)
    assert one is not None
    assert one.value == 1.75
    assert math.isnan(one.error)


def test_a_gain_is_above_zero_where_the_metric_is_better():
    assert as_gain(Mean(-0.5, 0.1, 3), "cross-entropy") == Mean(0.5, 0.1, 3)
    assert as_gain(Mean(-0.5, 0.1, 3), "mistake severity") == Mean(0.5, 0.1, 3)
    assert as_gain(Mean(-0.5, 0.1, 3), "accuracy 3") == Mean(-0.5, 0.1, 3)


def test_experiment_1b_takes_the_standard_and_structured_runs_of_1a_of_its_size():
    finished = [
        run("standard", 0, entropy=[1], size=5000),
        run("structured", 0, entropy=[1], size=5000),
        run("label smoothing", 0, entropy=[1], size=5000),
        run("standard", 0, entropy=[1], size=1000),
        run("scrambled", 0, entropy=[1], size=5000, experiment="1B"),
        run("standard", 0, entropy=[1], size=5000, experiment="1D"),
    ]
    found = runs_of("1B", finished)
    assert losses_of(found, Case(5000, "small CNN")) == ["standard", "structured", "scrambled"]
    assert cases(found) == [Case(5000, "small CNN")]
    assert len(found) == 3
    assert runs_of("1B", finished[:4]) == finished[:2]


def test_losses_come_in_the_order_of_the_tables():
    finished = [run(x, 0, entropy=[1]) for x in ("soft labels 10", "label smoothing", "standard")]
    assert losses_of(finished, SMALL) == ["standard", "label smoothing", "soft labels 10"]


def test_two_runs_of_one_trial_are_refused():
    with pytest.raises(StructentError, match="got two of trial 1 with the loss 'standard' on 1000"):
        trials_of([*RUNS, RUNS[0]], SMALL, "standard")


def test_trials_of_different_schedules_are_refused():
    longer = replace(RUNS[0], result={**RUNS[0].result, "epochs": [1, 2, 3]})
    with pytest.raises(
        StructentError, match=r"the same epochs, got \[10, 20, 30\] and \[1, 2, 3\]"
    ):
        epochs_of(trials_of([RUNS[1], longer], SMALL, "standard"))


def test_an_unknown_experiment_is_refused():
    with pytest.raises(StructentError, match="one of 1A, 1B, 1C, 1D, got '2A'"):
        runs_of("2A", RUNS)


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


def test_means_differences_and_errors_are_plain_numbers():
    # Gains of .1 and .3: mean .2, standard deviation .1 sqrt(2), error .1.
    found = summary("1A", pair([0.1, 0.3]))
    standard, structured = found["results"]
    assert structured["loss"] == "structured"
    assert structured["size"] == 1000
    assert structured["chosen epochs"]["accuracy"] == [10.0, 10.0]
    minus = structured["last epoch, minus standard"]["cross-entropy"]
    assert minus == {"mean": -0.2, "error": 0.1, "trials": 2}
    assert structured["chosen epoch"]["accuracy 4"]["mean"] == 0.51
    assert standard["the paper's way"]["cross-entropy"]["mean"] == 3.0
    assert "chosen epoch, minus standard" not in standard


def test_one_trial_has_a_null_error():
    text = json.dumps(summary("1A", pair([0.1])), allow_nan=False)
    assert '"cross-entropy": {"mean": 2.9, "error": null, "trials": 1}' in text


def test_nothing_run_gives_no_results():
    assert summary("1C", pair([0.1])) == {"experiment": "1C", "results": []}
