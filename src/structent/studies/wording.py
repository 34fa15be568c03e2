"""How the terminal and the report say what a comparison chose and recommends."""

from __future__ import annotations

from math import sqrt

from structent.studies.comparison import Comparison
from structent.studies.plan import NONE, Candidate

_MANY_SPLITS = 50  # more hardly narrow an interval


def shown_candidate(candidate: Candidate, model: str) -> str:
    """Return a candidate in the words of the estimator's parameters.

    Examples
    --------
    >>> shown_candidate(Candidate(0.4, 0.6), "boosting")
    'loss (weights=0.4) and leaves (leaf_smoothing=0.6)'
    >>> shown_candidate(Candidate(sharing=0.3), "linear")
    'prior (prior=0.7)'
    """
    if candidate == NONE:
        return "no structure"
    parts = []
    if candidate.loss < 1:
        parts.append(f"loss (weights={candidate.loss:g})")
    if candidate.sharing > 0 and model == "linear":
        parts.append(f"prior (prior={1 - candidate.sharing:g})")
    elif candidate.sharing > 0:
        parts.append(f"leaves (leaf_smoothing={candidate.sharing:g})")
    return " and ".join(parts)


def chosen_sentence(comparison: Comparison) -> str:
    """Return what validation rows chose, in one or two sentences."""
    chosen = comparison.n_chosen("structure")
    n_splits, n_plain = comparison.n_splits, chosen.get(NONE, 0)
    most, count = next(iter(chosen.items()))
    of_copies = comparison.n_chosen("scrambled")
    n_copies, n_plain_copies = sum(of_copies.values()), of_copies.get(NONE, 0)
    if n_plain == n_splits:
        text = (
            "The structured model is identical to the one without structure, because validation "
            f"rows chose no structure in all {n_splits} splits."
        )
    else:
        text = (
            f"Validation rows chose {shown_candidate(most, comparison.model)} most often, in "
            f"{count} of {n_splits} splits"
        )
        text += "." if most == NONE else f", and no structure in {n_plain}."
    return f"{text} For scrambled copies they chose no structure in {n_plain_copies} of {n_copies}."


def kept_sentence(comparison: Comparison, model: object) -> str:
    """Return what a saved model is: its structure, its mechanism, its rows, its rounds."""
    candidate = comparison.recommended
    if candidate == NONE:
        how = "without the structure"
    else:
        how = f"with the structure in its {shown_candidate(candidate, comparison.model)}"
    rounds = getattr(model, "best_iteration_", None)
    kind = "linear model" if rounds is None else f"boosted trees, {rounds + 1:,} rounds"
    return f"Trained {how}, on all {comparison.task.n_rows:,} rows ({kind})."


def next_steps(comparison: Comparison) -> list[str]:
    """Return what to do where a comparison could not decide: what more of the same would find.

    More repeats make the interval narrower only down to what the rows themselves allow: the
    training sets of all splits share their rows.
    """
    verdict, difference = comparison.verdict, comparison.against_none
    if verdict.finding != "undecided":
        return []
    n_splits, n_folds = comparison.n_splits, comparison.plan.n_folds
    steps = []
    n_repeats = _MANY_SPLITS // n_folds
    if n_repeats * n_folds >= 2 * n_splits:
        share = 1 / (n_folds - 1)
        ratio = sqrt((1 / (n_repeats * n_folds) + share) / (1 / n_splits + share))
        steps.append(
            f"To find a gain of {ratio * difference.smallest_found:.3g}, add --repeats {n_repeats}."
        )
    half = difference.smallest_found / 2
    steps.append(
        f"To find half of it, {half:.2g}, takes about {4 * comparison.task.n_rows:,} rows: the "
        "same command on a table four times as long."
    )
    return steps
