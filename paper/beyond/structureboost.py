"""structent compared with structureboost, the booster of the paper's author, on the months.

``make structureboost`` runs ``benchmarks/structureboost_months.py`` in an environment of its own,
and then makes this page. The rows of a trial are the same for both.
"""

from __future__ import annotations

from paper.beyond import Asked
from paper.digests import check_one_data
from paper.experiment import Experiment, Finished
from paper.pages import Page, difference_of, mean_of, signed, table, with_error
from paper.weather_results import STANDARD, Arm, chosen_on_validation
from structent.errors import StructentError

_SIZE = 1000


def experiments(_: Asked) -> list[Experiment]:
    """Return nothing: structureboost is run by ``make structureboost``."""
    return []


def page(asked: Asked) -> Page:
    """Return the page: every method in both packages, and the difference trial by trial."""
    ours, theirs = (asked.kept(name).finished() for name in ("months", "structureboost"))
    if not (ours and theirs):
        raise StructentError(
            f"structureboost needs months.jsonl and structureboost.jsonl in {asked.results}; "
            "`python -m paper months` and `make structureboost` write them"
        )
    check_one_data(run.data for run in (*ours, *theirs))
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
    return Page("structureboost", f"{_opening(theirs)}\n\n{table(header, rows)}")


def _opening(theirs: list[Finished]) -> str:
    schedule = ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in theirs[0].settings["schedule"].items()
    )
    n_trials = len({run.settings["trial"] for run in theirs})
    return f"""\
# structent beside structureboost

Which month is it? {_SIZE:,} training rows of California's daily weather, the same in both,
{n_trials} trials. Test log loss, the depth of the trees chosen on validation rows; ± is the
standard error over trials, and below 0 is better.

structureboost 0.7.0 is the booster of the paper's author. It draws bootstraps of the rows and
tries 25 thresholds per feature, while XGBoost draws a share of the rows and tries 256. So also
compare what each gains over its own standard loss. Its diagonal Hessian has the wrong sign inside
the true block, which matters most if the structure varies and the singleton weight is small.

Command: `make structureboost`; our runs are from [months](months.md).

structureboost: {schedule}. Machine: {theirs[0].machine}, {theirs[0].date}."""


def _name(arm: Arm) -> str:
    return (
        arm.method if arm == STANDARD else f"{arm.method}, singleton weight {arm.singleton_weight}"
    )


def _gain(by_trial: dict[int, float], standard: dict[int, float], arm: Arm) -> str:
    return "" if arm == STANDARD else signed(difference_of(by_trial, standard))
