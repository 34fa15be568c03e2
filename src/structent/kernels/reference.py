"""The formulas of the structured loss, as readable as they are on paper: the oracle for the rest.

Plain arrays in, plain arrays out, in any array namespace ``xp``. Shapes: ``logits`` (n, classes),
``labels`` (n,), ``distributions`` (n, classes), ``block_of`` (partitions, classes), ``weights``
(partitions,). Memory is at least (partitions, n, classes): for reading and testing, not for
training.

With q = softmax(logits), B_t(y) the block of partition t that holds y, Q(B) the sum of q over B,
and W the sum of the weights (1, unless partitions were left out):

    loss(y)      = sum_t w_t * [ logsumexp(logits) - logsumexp(logits over B_t(y)) ]
    gradient_j   = W q_j - sum_t w_t * 1[j in B_t(y)] * r_tj          r_tj = q_j / Q(B_t(j))
    curvature_j  = W q_j(1 - q_j) - sum_t w_t * 1[j in B_t(y)] * r_tj(1 - r_tj)

If only a set C that holds the class of a row is known, A_t(C) replaces B_t(y): it is the block of
partition t that holds C if one does, else C itself. Labels are then codes, and ``members``
(codes, classes) says which classes each code stands for. For a set of one class, A_t is B_t.
"""

from types import ModuleType
from typing import Any

Array = Any  # an array of the namespace xp


def structured_cross_entropy_from_logits(
    logits: Array, labels: Array, block_of: Array, weights: Array, *,
    xp: ModuleType, members: Array | None = None,
) -> Array:  # fmt: skip
    """Loss of each row, (n,)."""
    logits = _from_largest(logits, xp=xp)
    in_true_block = _in_true_block(labels, block_of, members, xp=xp)
    inside = xp.where(in_true_block, logits[None], -float("inf"))
    log_block = _logsumexp(inside, axis=2, xp=xp)[:, :, 0]  # (partitions, n)
    log_all = _logsumexp(logits, axis=1, xp=xp)[:, 0]  # (n,)
    return xp.sum(weights[:, None] * (log_all[None] - log_block), axis=0)


def structured_cross_entropy_of_distributions(
    logits: Array, distributions: Array, block_of: Array, weights: Array, *, xp: ModuleType
) -> Array:
    """Loss of each row whose label is a distribution, or any weights of the classes, (n,).

    loss(P) = sum_c P_c loss(c). With P_c = weight_c * probability_c these are class weights.
    """
    logits = _from_largest(logits, xp=xp)
    log_q = logits[None] - _logsumexp(logits, axis=1, xp=xp)[None]
    # (partitions, n, classes)
    log_block_q = log_q - _log_share_of_block(logits, _same_block(block_of), xp=xp)
    surprise = -xp.sum(weights[:, None, None] * log_block_q, axis=0)
    # A class without mass adds nothing, even if its loss is infinite.
    return xp.sum(
        xp.where(distributions == 0, xp.zeros_like(surprise), distributions * surprise), axis=1
    )


def gradient_from_logits(
    logits: Array, labels: Array, block_of: Array, weights: Array, *,
    xp: ModuleType, members: Array | None = None,
) -> Array:  # fmt: skip
    """Gradient of the loss of each row, (n, classes)."""
    q = _softmax(logits, xp=xp)
    share = _share_of_true_block(logits, labels, block_of, members, xp=xp)
    return xp.sum(weights) * q - xp.sum(weights[:, None, None] * share, axis=0)


def exact_curvature(
    logits: Array, labels: Array, block_of: Array, weights: Array, *,
    xp: ModuleType, members: Array | None = None,
) -> Array:  # fmt: skip
    """Second derivative of the loss by each logit, (n, classes): can be negative."""
    share = _share_of_true_block(logits, labels, block_of, members, xp=xp)
    inside = xp.sum(weights[:, None, None] * share * (1 - share), axis=0)
    return bound_curvature(logits, weights, xp=xp) - inside


def bound_curvature(logits: Array, weights: Array, *, xp: ModuleType) -> Array:
    """Upper bound W q(1 - q) of the curvature: what it leaves out is concave, (n, classes)."""
    q = _softmax(logits, xp=xp)
    return xp.sum(weights) * q * (1 - q)


def fisher_curvature(logits: Array, block_of: Array, weights: Array, *, xp: ModuleType) -> Array:
    """Mean of the exact curvature over labels drawn from q, (n, classes).

    sum_t w_t q_j^2 (1 - Q(B_t(j))) / Q(B_t(j))
    """
    return _mean_curvature(logits, _same_block(block_of), weights, xp=xp)


def fisher_curvature_of_codes(
    logits: Array, labels: Array, block_of: Array, weights: Array, *,
    xp: ModuleType, members: Array,
) -> Array:  # fmt: skip
    """Mean of the exact curvature over labels drawn from q, (n, classes).

    For a set C the labels are the blocks of the partitions that hold C, and C or "not C" in the
    partitions that cut it.
    """
    is_member, _, is_cut = _blocks_of_sets(labels, block_of, members, xp=xp)
    same_side = is_member[None, :, :, None] == is_member[None, :, None, :]
    together = xp.where(is_cut[..., None], same_side, _same_block(block_of))
    return _mean_curvature(logits, together, weights, xp=xp)


def gradient_magnitude(
    logits: Array, labels: Array, block_of: Array, weights: Array, *,
    xp: ModuleType, members: Array | None = None,
) -> Array:  # fmt: skip
    """Absolute gradient as a curvature, which bounds every leaf value by 1, (n, classes)."""
    gradient = gradient_from_logits(logits, labels, block_of, weights, xp=xp, members=members)
    return xp.abs(gradient)


def _from_largest(logits: Array, *, xp: ModuleType) -> Array:
    """Logits minus the largest of their row: the loss is the same, and more exact."""
    return logits - xp.max(logits, axis=1, keepdims=True)


def _in_true_block(
    labels: Array, block_of: Array, members: Array | None, *, xp: ModuleType
) -> Array:
    """Whether a class is in B_t(y), or in A_t(C) of a set, (partitions, n, classes)."""
    if members is not None:
        is_member, holds_set, is_cut = _blocks_of_sets(labels, block_of, members, xp=xp)
        return xp.where(is_cut, is_member[None], holds_set)
    true_block = xp.take(block_of, labels, axis=1)  # (partitions, n)
    return true_block[:, :, None] == block_of[:, None, :]


def _blocks_of_sets(
    labels: Array, block_of: Array, members: Array, *, xp: ModuleType
) -> tuple[Array, Array, Array]:
    """Whether a class is in the row's set, whether its block holds the set, whether no block does.

    Shapes: (n, classes), (partitions, n, classes) and (partitions, n, 1).
    """
    is_member = xp.take(members, labels, axis=0)
    with_all = _same_block(block_of) | ~is_member[None, :, None, :]
    holds_set = xp.all(with_all, axis=3)
    return is_member, holds_set, ~xp.any(holds_set, axis=2, keepdims=True)


def _share_of_true_block(
    logits: Array, labels: Array, block_of: Array, members: Array | None, *, xp: ModuleType
) -> Array:
    """Share of each class in the probability of the true block: r_tj, and 0 outside of it."""
    in_true_block = _in_true_block(labels, block_of, members, xp=xp)
    return _softmax(xp.where(in_true_block, logits[None], -float("inf")), xp=xp)


def _same_block(block_of: Array) -> Array:
    """Whether two classes are in one block, (partitions, 1, classes, classes)."""
    return block_of[:, None, :, None] == block_of[:, None, None, :]


def _log_share_of_block(logits: Array, together: Array, *, xp: ModuleType) -> Array:
    """Logarithm of r_tj for every class and its own block, (partitions, n, classes)."""
    inside = xp.where(together, logits[None, :, None, :], -float("inf"))
    return logits[None] - _logsumexp(inside, axis=3, xp=xp)[:, :, :, 0]


def _mean_curvature(logits: Array, together: Array, weights: Array, *, xp: ModuleType) -> Array:
    q = _softmax(logits, xp=xp)
    share = xp.exp(_log_share_of_block(logits, together, xp=xp))  # q_j / Q(B_t(j))
    return xp.sum(weights[:, None, None] * q[None] * (share - q[None]), axis=0)


def _softmax(logits: Array, *, xp: ModuleType) -> Array:
    axis = logits.ndim - 1
    exponentials = xp.exp(logits - _finite_largest(logits, axis=axis, xp=xp))
    return exponentials / xp.sum(exponentials, axis=axis, keepdims=True)


def _logsumexp(x: Array, *, axis: int, xp: ModuleType) -> Array:
    """Log-sum-exp along an axis, which is kept; -inf where all entries are -inf."""
    shift = _finite_largest(x, axis=axis, xp=xp)
    return xp.log(xp.sum(xp.exp(x - shift), axis=axis, keepdims=True)) + shift


def _finite_largest(x: Array, *, axis: int, xp: ModuleType) -> Array:
    largest = xp.max(x, axis=axis, keepdims=True)
    return xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
