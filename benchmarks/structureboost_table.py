"""structent beside structureboost 0.7.0 on the months: a page of ``docs/results``.

``python -m benchmarks.structureboost_table`` reads what ``structent reproduce months`` and
``benchmarks/structureboost_months.py`` left there. The rows of a trial are the same for both.
"""

from pathlib import Path

from structent.experiments.kept import Finished, Kept
from structent.experiments.markdown import signed, table, with_error
from structent.experiments.paired import difference_of, mean_of
from structent.experiments.weather.results import STANDARD, Arm, chosen_on_validation

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SIZE = 1000


def page(ours: list[Finished], theirs: list[Finished]) -> str:
    """Return the page: every method of theirs beside ours, and the difference trial by trial."""
    our_readings, their_readings = map(chosen_on_validation, (ours, theirs))
    rows = []
    for size, arm in their_readings:
        us, them = our_readings[size, arm].test, their_readings[size, arm].test
        rows.append(
            [
                _name(arm),
                with_error(mean_of(us)),
                with_error(mean_of(them)),
                _gain(us, our_readings[size, STANDARD].test, arm),
                _gain(them, their_readings[size, STANDARD].test, arm),
                signed(difference_of(us, them)),
            ]
        )
    header = [
        "method", "structent", "structureboost", "structent against its standard",
        "structureboost against its standard", "structent minus structureboost",
    ]  # fmt: skip
    return f"{_opening(theirs)}\n\n{table(header, rows)}\n"


def _opening(theirs: list[Finished]) -> str:
    schedule = ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in theirs[0].settings["schedule"].items()
    )
    n_trials = len({run.settings["trial"] for run in theirs})
    return f"""\
# structent beside structureboost

Which month is it? {SIZE:,} training rows of California's daily weather, the same in both,
{n_trials} trials. Test log loss, the depth of the trees chosen on validation rows; ± is the
standard error over trials, and below 0 is better.

structureboost 0.7.0 is the booster of the paper's author. It draws bootstraps of the rows and
tries 25 thresholds a feature, where XGBoost draws a share of the rows and tries 256: look at what
each gains over its own standard, too. Its diagonal Hessian has the wrong sign inside the true
block, which shows most where the structure varies and the weight of the singletons is small.

Command: `make structureboost`; our runs are those of [months](months.md).

structureboost: {schedule}. Machine: {theirs[0].machine}, {theirs[0].date}."""


def _name(arm: Arm) -> str:
    return (
        arm.method if arm == STANDARD else f"{arm.method}, singleton weight {arm.singleton_weight}"
    )


def _gain(by_trial: dict[int, float], standard: dict[int, float], arm: Arm) -> str:
    return "" if arm == STANDARD else signed(difference_of(by_trial, standard))


if __name__ == "__main__":
    months, peer = (
        Kept(RESULTS / f"{name}.jsonl").finished() for name in ("months", "structureboost")
    )
    (RESULTS / "structureboost.md").write_text(page(months, peer), encoding="utf-8")
    print((RESULTS / "structureboost.md").read_text(encoding="utf-8"))
