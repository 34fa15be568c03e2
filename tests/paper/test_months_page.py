"""The page on months, from runs made up so that its numbers can be worked out by hand."""

import json
from io import StringIO

import matplotlib as mpl
import pytest

from paper.experiment import Finished
from paper.months_page import claims, figures, markdown, summary
from paper.paper_numbers import MONTH_LOSSES, SINGLETON_WEIGHTS

BLOCKS = {"variable": 4, "variable, scrambled": 4}
# Trials differ by far more than methods; what methods gain wavers a little from trial to trial.
TRIALS = (0.0, 0.3, 0.1)
WAVERS = (-0.0001, 0.0001, 0.0)


def run(size, method, weight, trial, difference):
    test = 2.0 + TRIALS[trial] + difference + (0.0 if method == "standard" else WAVERS[trial])
    settings = {"experiment": "months", "preset": "paper", "size": size, "method": method,
                "n_blocks": BLOCKS.get(method), "singleton_weight": weight, "trial": trial,
                "schedule": {}}  # fmt: skip
    result = {"depth": [2, 3], "validation": [test, test + 0.1], "test": [test, test + 0.1],
              "trees": [10, 10]}  # fmt: skip
    return Finished(settings, result, 1.0, "2026-01-01", "a machine")


def grid(fixed, variable, *, control=None, sizes=tuple(MONTH_LOSSES), trials=range(3)):
    """Return runs whose differences to standard are functions of size and singleton weight."""
    runs = []
    for size in sizes:
        for trial in trials:
            runs.append(run(size, "standard", 1.0, trial, 0.0))
            for weight in SINGLETON_WEIGHTS:
                runs.append(run(size, "fixed", weight, trial, fixed(size, weight)))
                runs.append(run(size, "variable", weight, trial, variable(size, weight)))
            if control is not None:
                runs.append(run(size, "fixed, scrambled", 0.1, trial, control))
    return runs


def as_the_paper(size, weight, best=0.2):
    """Return a gain that is largest at one weight and for few rows."""
    return -(1.0 - abs(weight - best)) * 5 / size


def by_claim(finished):
    return [claim.holds for claim in claims(finished)]


def row_with(text, *starts):
    return next(line for line in text.splitlines() if line.startswith("| " + " | ".join(starts)))


GOOD = grid(as_the_paper, lambda n, w: as_the_paper(n, w, 0.5) / 2, control=0.04)


def test_all_claims_hold_where_the_numbers_are_as_the_paper_says():
    assert by_claim(GOOD) == ["yes"] * 9


def test_the_numbers_of_a_claim_are_counts_of_cells():
    # Half an interval is 4.303 * .0001 / sqrt(3) = .000248: with 10,000 rows the gains .0002 at
    # 0.8 and .00015 at 0.9 are inside of it.
    assert claims(GOOD)[0].numbers.startswith("lower in 45 of 45, clearly in 43; ")
    assert (
        claims(GOOD)[7].numbers
        == "higher in 5 of 5, clearly in 5; clearly lower in 0; 3 trials each"
    )


def test_no_claim_holds_where_the_numbers_say_the_opposite():
    bad = grid(lambda n, w: w * n / 1000, lambda n, w: w * n / 1000, control=-0.04)
    # Both are best at the smallest weight; the control beats standard and structure.
    assert by_claim(bad) == ["no"] * 9


def test_a_single_bad_cell_leaves_a_claim_in_part_and_is_named():
    def but_one(size, weight):
        return 0.02 if (size, weight) == (2_000, 0.9) else as_the_paper(size, weight)

    claim = claims(grid(but_one, as_the_paper))[0]
    assert claim.holds == "in part"
    assert claim.numbers == (
        "lower in 44 of 45, clearly in 42; not lower: fixed 0.9 with 2,000 rows "
        "(+0.0200 ± 0.0001); clearly higher in 1; 3 trials each"
    )


def test_variable_that_fails_at_small_weights_alone_fails_that_claim_alone():
    def as_the_papers_code(size, weight):
        return 0.01 if weight < 0.25 else as_the_paper(size, weight, 0.5)

    holds = by_claim(grid(as_the_paper, as_the_papers_code))
    assert holds[2:4] == ["yes", "no"]


def test_another_best_weight_that_is_not_clearly_better_leaves_the_claim_in_part():
    finished = grid(lambda n, w: as_the_paper(n, w, 0.1), as_the_paper, trials=range(1))
    assert claims(finished)[1].holds == "in part"
    assert claims(finished)[1].numbers.startswith(
        "best: 0.1 with 500 rows (0.2 is +0.0010 from it)"
    )


def test_gains_that_shrink_but_not_at_every_step_hold_in_part():
    gains = {500: 0.05, 1_000: 0.02, 2_000: 0.03, 5_000: 0.01, 10_000: 0.005}
    finished = grid(lambda n, w: -gains[n] + w / 1e6, as_the_paper)
    assert claims(finished)[5].holds == "in part"
    assert "smaller after 3 of 4 steps" in claims(finished)[5].numbers


def test_the_table_has_ours_beside_the_papers():
    cells = row_with(markdown(GOOD, []), "500", "fixed").strip("| ").split(" | ")
    # A mean of 2 + .4 / 3 - .01 at 0.2; the trials 0, .3, .1 have a standard error of .0882.
    assert cells[2:5] == ["2.1233 ± 0.0882 at 0.2", "2.1233 ± 0.0882 at 0.2", "2.2058"]
    assert cells[5:] == ["**-0.0100 ± 0.0001**", "**-0.0100 ± 0.0001**", "-0.0138"]


def test_the_weight_is_chosen_on_validation_and_in_the_papers_way_on_test():
    finished = [run(500, "standard", 1.0, 0, 0.0), run(500, "fixed", 0.1, 0, -0.02),
                run(500, "fixed", 0.4, 0, -0.01)]  # fmt: skip
    finished[2].result["validation"] = [1.0, 1.1]
    cells = row_with(markdown(finished, []), "500", "fixed").strip("| ").split(" | ")
    assert cells[2:4] == ["1.9899 at 0.4", "1.9799 at 0.1"]


def test_the_data_are_said_not_to_be_the_papers_before_all_else():
    first, second, third = markdown(GOOD, ["by a command"]).split("\n\n")[:3]
    assert first == "# Months"
    assert second.startswith("**The data are not the paper's.**")
    assert "37 counties, 54 stations" in second
    assert third == "by a command"


def test_what_is_missing_is_said_to_be_not_run():
    some = [r for r in GOOD if r.settings["size"] <= 1_000]
    text = markdown(some, [])
    assert "not run | not run | 2.1550" in row_with(text, "2,000", "fixed")
    assert "### 5,000 training rows\n\nNot run." in text
    assert claims(some)[0].holds == "in part"
    assert claims(some)[0].numbers.endswith("; 27 cells not run")


def test_fewer_trials_are_said_in_the_cell():
    gone = [r for r in GOOD
            if (r.settings["method"], r.settings["trial"]) != ("variable", 2)]  # fmt: skip
    grid_row = row_with(markdown(gone, []), "0.5")
    assert "(2 trials)" in grid_row
    assert grid_row.count("trials") == 1


def test_one_trial_has_no_intervals_and_says_so():
    one = [r for r in GOOD if r.settings["trial"] == 0]
    assert "1 trial each, which has no interval" in claims(one)[0].numbers
    assert "±" not in row_with(markdown(one, []), "500", "fixed")
    assert json.loads(json.dumps(summary(one), allow_nan=False)) == summary(one)
    assert len(figures(one)) == 2


def test_nothing_run_is_a_page_of_the_papers_numbers():
    assert by_claim([]) == ["not run"] * 9
    assert ".svg" not in markdown([], [])
    assert figures([]) == {}


def test_the_summary_has_the_numbers_of_the_tables():
    best = summary(GOOD)["chosen on validation"]["500"]["fixed"]
    assert best["singleton_weight"] == 0.2
    # The errors are those of -.0001, .0001, 0: a standard deviation of .0001 over sqrt(3).
    assert best["difference"] == {"mean": -0.01, "error": 0.000058, "trials": 3}
    assert len(summary(GOOD)["differences"]) == 5 * (9 + 9 + 1)


def test_the_page_shows_every_figure():
    for name in figures(GOOD):
        assert f"]({name}.svg)" in markdown(GOOD, [])


def test_a_control_far_above_is_named_over_the_panel_and_the_rest_stays_readable():
    panel = figures(GOOD)["months-differences"].axes[0]
    assert [text.get_text() for text in panel.texts] == ["fixed, scrambled: up to 0.040"]
    assert panel.get_ylim()[1] < 0.02
    assert "leaves its panel" in markdown(GOOD, [])
    near = grid(as_the_paper, as_the_paper, control=0.0001)
    assert "leaves its panel" not in markdown(near, [])


def test_the_band_of_standard_is_its_standard_error():
    panel = figures(GOOD)["months-log-loss"].axes[0]
    (band,) = panel.patches
    # The trials 0, .3, .1 have a standard deviation of .152753, and .0881917 over sqrt(3).
    assert band.get_height() == pytest.approx(2 * 0.0881917, abs=1e-6)


def test_figures_are_the_same_whatever_the_users_style():
    def drawn(figure):
        text = StringIO()
        with mpl.rc_context({"svg.hashsalt": "months"}):
            figure.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue()

    plain = figures(GOOD)["months-differences"]
    with mpl.rc_context({"text.color": "red", "axes.edgecolor": "red", "axes.linewidth": 9}):
        styled = figures(GOOD)["months-differences"]
    assert drawn(styled) == drawn(plain)
