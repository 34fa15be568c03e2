"""Structured mutual information of a feature and a target, estimated from rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.special import entr, gammaln

from structent._checks import checked_integer
from structent._compiled import inlined, kernel
from structent._typing import FloatArray, IndexArray
from structent.entropy.quantities import Blocks, in_base
from structent.errors import LabelError
from structent.structure import RandomPartition
from structent.structure.labels import is_missing, plain_values
from structent.structure.samplers import checked_fixed

# Differences below this are rounding errors, not information.
_ROUNDING = 1e-12


def structured_mutual_information_from_labels(
    x: ArrayLike | Sequence[Any],
    y: ArrayLike | Sequence[Any],
    structure: RandomPartition,
    *,
    n_bins: int = 10,
    base: float | None = None,
) -> float:
    r"""Estimate the mutual information of a feature and a structured target from rows.

    .. math:: \hat I(X; Y_Z) = I_n(X; Y_Z) - \mathbb{E}_\pi I_n(X; \pi(Y)_Z), \qquad
              \text{or } 0 \text{ where that is negative}

    The plug-in estimate :math:`I_n` grows with the number of different values; for a column of
    unique identifiers it is the whole entropy of the target. Its mean over all permutations of the
    rows is its value for a feature without information. This mean is computed exactly (each count
    is hypergeometric), so the estimate is not random, and a unique identifier gets exactly 0.

    Parameters
    ----------
    x
        The feature, (n,). Numbers and dates are binned at quantiles, everything else is
        categorical. A missing value (None, NaN) is a value of its own.
    y
        The target's labels, (n,).
    structure
        The random partition :math:`Z` of the target's classes.
    n_bins
        The number of bins, of about equal size, for numbers with more distinct values than that.
    base
        The base of the logarithm; None for nats.

    Examples
    --------
    >>> from structent import trivial
    >>> weather, plain = ["wet", "dry"] * 50, trivial(["dry", "wet"])
    >>> round(structured_mutual_information_from_labels(weather, weather, plain, base=2), 2)
    0.99
    >>> identifiers = [f"row {i}" for i in range(100)]
    >>> structured_mutual_information_from_labels(identifiers, weather, plain)
    0.0
    """
    target = checked_fixed(structure).encode(y)
    n_bins = checked_integer(n_bins, "n_bins", at_least=2, at_most=2**31)
    feature = _value_codes(x, n_bins)
    n = len(target)
    if n == 0 or len(feature) != n:
        raise LabelError(f"x and y must have one entry per row, got {len(feature)} and {n}")
    blocks = Blocks.of(structure)
    shape = (int(feature.max()) + 1, structure.n_classes)
    counts = coo_array((np.ones(n), (feature, target)), shape).tocsr() @ blocks.indicator
    row_totals, row_counts = np.unique(np.bincount(feature), return_counts=True)
    column_totals = np.bincount(target, minlength=structure.n_classes) @ blocks.indicator
    # I = H(X) + H(Y_Z) - H(X, Y_Z): only the joint entropy differs from its permutation mean.
    expected = _expected_joint_entropy(
        row_totals,
        row_counts,
        column_totals.astype(np.int64),
        blocks.weights,
        gammaln(np.arange(n + 1) + 1.0),
    )
    found = entr(counts.data / n) @ blocks.weights[counts.indices]
    told = in_base(float(expected - found), base)
    return told if told > _ROUNDING else 0.0


def _value_codes(x: ArrayLike | Sequence[Any], n_bins: int) -> IndexArray:
    """Return the feature as codes 0, 1, ...: of its categories, or of the bins of its numbers."""
    values = np.asarray(x)
    if values.dtype.kind in "mM":
        values = np.where(np.isnat(values), np.nan, values.astype(np.int64))
    if values.dtype.kind in "iuf":
        return _binned(values.astype(np.float64), n_bins)
    plain = plain_values(x if values.ndim == 1 else values)
    present = [value for value in plain if not is_missing(value)]
    if present and all(type(value) in (int, float) for value in present):
        numbers = [np.nan if is_missing(value) else value for value in plain]
        return _binned(np.array(numbers, dtype=np.float64), n_bins)
    code_of: dict[Any, int] = {}
    keys = (None if is_missing(value) else value for value in plain)
    return np.array([code_of.setdefault(key, len(code_of)) for key in keys], dtype=np.int64)


def _binned(values: FloatArray, n_bins: int) -> IndexArray:
    if values.ndim != 1:
        raise LabelError(f"x must have one axis, got shape {values.shape}")
    missing = np.isnan(values)
    present = values[~missing]
    edges = np.unique(present)
    if len(edges) > n_bins:
        # inverted_cdf takes values that occur, so infinities do no harm.
        quantiles = np.arange(1, n_bins) / n_bins
        edges = np.unique(np.quantile(present, quantiles, method="inverted_cdf"))
    codes = np.searchsorted(edges, values)
    codes[missing] = len(edges) + 1
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


@inlined
def _expected_entr(a: int, b: int, n: int, log_factorial: FloatArray) -> float:
    """Return the mean of entr(N / n) for the hypergeometric count N of a cell with margins a, b."""
    mode = (a + 1) * (b + 1) // (n + 2)
    log_probability = (
        log_factorial[a] + log_factorial[n - a] + log_factorial[b] + log_factorial[n - b]
        - log_factorial[n] - log_factorial[mode] - log_factorial[a - mode]
        - log_factorial[b - mode] - log_factorial[n - a - b + mode]
    )  # fmt: skip
    peak = np.exp(log_probability)
    total = 0.0
    probability, count = peak, mode
    while probability > 1e-20 * peak:
        if count > 0:
            total -= probability * (count / n) * np.log(count / n)
        probability *= (a - count) / (count + 1) * ((b - count) / (n - a - b + count + 1))
        count += 1
    probability, count = peak, mode
    while True:
        probability *= count / (a - count + 1) * ((n - a - b + count) / (b - count + 1))
        count -= 1
        if probability <= 1e-20 * peak or count <= 0:
            return total
        total -= probability * (count / n) * np.log(count / n)


@kernel
def _expected_joint_entropy(
    row_totals: IndexArray,
    row_counts: IndexArray,
    column_totals: IndexArray,
    column_weights: FloatArray,
    log_factorial: FloatArray,
) -> float:
    """Return the mean of the joint entropy over all permutations of the rows.

    ``row_totals`` are the different totals, ``row_counts`` how often each occurs.
    """
    n = len(log_factorial) - 1
    total = 0.0
    for i in range(len(row_totals)):
        for j in range(len(column_totals)):
            cell = _expected_entr(row_totals[i], column_totals[j], n, log_factorial)
            total += row_counts[i] * column_weights[j] * cell
    return total
