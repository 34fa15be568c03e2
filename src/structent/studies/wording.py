"""The sentences in which terminal and report say what a comparison chose and recommends."""

from __future__ import annotations

from math import sqrt

from structent.studies.comparison import Comparison
from structent.studies.plan import NONE, Candidate

_MANY_SPLITS = 50  # more splits hardly narrow an interval
_WORTH_REPEATING = 0.9  # repeats must find gains this much smaller to be recommended


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
        text += f", and no structure in {n_plain}." if most != NONE and n_plain > 0 else "."
    return f"{text} For scrambled copies they chose no structure in {n_plain_copies} of {n_copies}."


def kept_sentence(comparison: Comparison, model: object) -> str:
    """Return a sentence on a saved model: its structure, mechanism, rows and rounds."""
    candidate = comparison.recommended
    if candidate == NONE:
        how = "without the structure"
    else:
        how = f"with the structure in its {shown_candidate(candidate, comparison.model)}"
    rounds = getattr(model, "best_iteration_", None)
    kind = "linear model" if rounds is None else f"boosted trees, {rounds + 1:,} rounds"
    return f"Trained {how}, on all {comparison.task.n_rows:,} rows ({kind})."


def next_steps(comparison: Comparison, *, repeats: str = "--repeats {}") -> list[str]:
    """Return what to do if a comparison could not decide: which gains more work would find.

    The training sets of all splits share their rows. So more repeats make the interval only a
    little narrower, and they are not recommended if they gain less than a tenth.

    Parameters
    ----------
    comparison
        What was found.
    repeats
        How to ask for a number of repeats: on the command line or in Python.
    """
    verdict, difference = comparison.verdict, comparison.against_none
    if verdict.finding != "undecided":
        return []
    n_splits, n_folds = comparison.n_splits, comparison.plan.n_folds
    steps = []
    n_repeats = _MANY_SPLITS // n_folds
    share = 1 / (n_folds - 1)
    ratio = sqrt((1 / max(n_repeats * n_folds, n_splits) + share) / (1 / n_splits + share))
    if ratio <= _WORTH_REPEATING:
        gain = ratio * difference.smallest_found
        steps.append(f"To find a gain of {gain:.2g}, add {repeats.format(n_repeats)}.")
    half = difference.smallest_found / 2
    steps.append(
        f"To find a gain of {half:.2g}, you need about {4 * comparison.task.n_rows:,} rows, four "
        "times as many."
    )
    return steps
