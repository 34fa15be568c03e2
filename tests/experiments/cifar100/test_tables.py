"""The tables of ours beside the paper's."""

from structent.experiments.cifar100.places import places
from structent.experiments.cifar100.tables import beside_paper
from tests.experiments.cifar100.made_up import pair, run


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
