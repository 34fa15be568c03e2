"""Which loss to choose: all losses that were run in a case, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from structent.experiments.cifar100.paper_numbers import COLUMNS
from structent.experiments.cifar100.readings import (
    LOSSES,
    SEVERITY,
    Case,
    Trials,
    as_gain,
    chosen,
    difference,
    losses_of,
    mean_value,
    trials_of,
)
from structent.experiments.cifar100.tables import (
    HEADING,
    NOT_RUN,
    emphasised_difference,
    n_trials,
)
from structent.experiments.kept import Finished
from structent.experiments.markdown import table, with_error
from structent.experiments.paired import Mean

_METRICS = (*COLUMNS, SEVERITY)
_BEST = {
    "cross-entropy": "Lowest cross-entropy",
    "accuracy": "Highest class accuracy",
    SEVERITY: "Mildest mistakes",
}
_VALUES = (
    "Test values at the chosen epoch. Bold is the best over the trials that all losses have, of "
    "which the sentences above speak, too. The best of several on the same test images looks a "
    "little better than it is."
)
_MINUS = (
    "Differences to the standard loss, trial by trial; bold are those beyond their 95 % interval."
)


def which_loss(runs: Sequence[Finished], case: Case | None) -> str:
    """Return, in Markdown, the values of all losses at the chosen epoch, and the best of them.

    Parameters
    ----------
    runs
        The finished runs of the experiment.
    case
        The case; None where nothing was run.
    """
    others = [] if case is None else [x for x in losses_of(runs, case) if x not in LOSSES]
    trials = {loss: trials_of(runs, case, loss) for loss in (*LOSSES, *others)}
    header = ["loss", "trials", *(HEADING[metric] for metric in _METRICS)]
    values = [_row(loss, trials[loss], best=_all_best(trials)) for loss in trials]
    minus = [_minus_row(loss, trials) for loss in trials if loss != "standard"]
    sentences = "\n".join(f"- {_sentence(trials, metric)}" for metric in _BEST)
    return "\n\n".join([sentences, _VALUES, table(header, values), _MINUS, table(header, minus)])


def best_loss(trials: dict[str, Trials], metric: str) -> list[str]:
    """Return the losses from the best to the worst, over the trials that all of them have."""
    means = {
        loss: mean
        for loss, results in shared_trials(trials).items()
        if (mean := mean_value(results, metric, chosen)) is not None
    }
    return sorted(means, key=lambda loss: as_gain(means[loss], metric).value, reverse=True)


def shared_trials(trials: dict[str, Trials]) -> dict[str, Trials]:
    """Return the losses that were run, each with the trials that all of them have."""
    run = {loss: results for loss, results in trials.items() if results}
    shared = set.intersection(*map(set, run.values())) if run else set()
    return {
        loss: {trial: result for trial, result in results.items() if trial in shared}
        for loss, results in run.items()
    }


def _all_best(trials: dict[str, Trials]) -> dict[str, str]:
    ranks = {metric: best_loss(trials, metric) for metric in _METRICS}
    return {metric: ranked[0] for metric, ranked in ranks.items() if len(ranked) > 1}


def _row(loss: str, trials: Trials, *, best: dict[str, str]) -> list[str]:
    means = [mean_value(trials, metric, chosen) for metric in _METRICS]
    cells = [with_error(mean) for mean in means if mean is not None]
    if not cells:
        return _not_run(loss)
    return [
        loss,
        str(len(trials)),
        *(
            f"**{cell}**" if best.get(metric) == loss else cell
            for metric, cell in zip(_METRICS, cells, strict=True)
        ),
    ]


def _minus_row(loss: str, trials: dict[str, Trials]) -> list[str]:
    minus = [difference(trials[loss], trials["standard"], m, chosen) for m in _METRICS]
    found = [mean for mean in minus if mean is not None]
    if not found:
        return _not_run(loss)
    return [loss, str(found[0].n_trials), *map(emphasised_difference, found)]


def _not_run(loss: str) -> list[str]:
    return [loss, NOT_RUN, *[""] * len(_METRICS)]


def _sentence(trials: dict[str, Trials], metric: str) -> str:
    ranked, shared = best_loss(trials, metric), shared_trials(trials)
    if len(ranked) < 2:
        return f"{_BEST[metric]}: no two losses share a trial yet."
    best = ranked[0]
    text = f"{_BEST[metric]}: {best}"
    values = mean_value(shared[best], metric, chosen)
    if values is not None:
        text += f", {with_error(values)} ({n_trials(values.n_trials)})"
    if "structured" not in shared:
        return f"{text}; the structured loss was not run."
    other = ranked[1] if best == "structured" else "structured"
    minus = difference(shared[best], shared[other], metric, chosen)
    name = f"the next, {other}," if best == "structured" else "the structured loss"
    return text if minus is None else f"{text}; {_against(as_gain(minus, metric), name)}."


def _against(gain: Mean, name: str) -> str:
    by = f"better than {name} by {with_error(gain)}"
    if math.isnan(gain.error):
        return f"{by}, on one trial only, so without an interval"
    return f"{by}, {'beyond' if gain.is_higher else 'within'} its 95 % interval"
