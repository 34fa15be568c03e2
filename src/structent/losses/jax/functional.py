"""Structured cross-entropy as pure functions, in the manner of optax's losses."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from structent.errors import LabelError, StructureError
from structent.losses.jax.distributions import loss_of_distributions
from structent.losses.jax.formulas import as_matrix, loss_of_codes, loss_of_labels
from structent.losses.jax.plan import Structure, compiled, not_fixed
from structent.structure import LabelSets, RandomPartition
from structent.structure.targets import checked_label_sets


def structured_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    structure: Structure,
    *,
    axis: int = -1,
    where: ArrayLike | None = None,
    label_sets: LabelSets | None = None,
) -> Array:
    r"""Structured cross-entropy of logits and class indices: one value for each example, (...).

    .. math:: \ell(z, y) = \sum_t w_t \, [\mathrm{lse}(z) - \mathrm{lse}(z \text{ over } B_t(y))]

    With the trivial structure this is ``optax.softmax_cross_entropy_with_integer_labels``. It works
    under ``jit``, ``grad``, ``vmap`` and ``hessian``. The result has the dtype of the logits, but
    bfloat16 and float16 accumulate in float32.

    Parameters
    ----------
    logits
        Unnormalised log-probabilities, (..., classes).
    labels
        Indices of the classes, (...). An index out of range is an error; inside a jitted function,
        where its value is not known, it makes the loss of that example NaN.
    structure
        How the classes are related; if it changes with every step, its :func:`partition_arrays`.
    axis
        The axis of the logits that holds the classes.
    where
        What counts, as in optax: a mask of examples, (...), or of classes, in the shape of the
        logits. If nothing of an example counts, its loss is 0, whatever the label; a class that
        does not count is treated as if its logit were -inf.
    label_sets
        If labels may be blocks or sets of classes: what ``structure.encode_with_blocks(labels)``
        returned, a constant of a jitted function. The labels are then its codes. This is slower
        for all examples, also for those labelled by a class.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> logits = jnp.log(jnp.array([[0.25, 0.25, 0.5]]))
    >>> loss = structured_cross_entropy(logits, jnp.array([0]), plants)
    >>> print(loss / jnp.log(2))  # half of 1 bit for "tree" and half of 2 for "oak"
    [1.5]
    """
    rows = _checked_rows(logits, structure, axis)
    codes = _checked_labels(labels, rows.shape[:-1])
    loss_of = loss_of_labels
    sets = () if label_sets is None else _checked_sets(label_sets, structure)
    if sets:
        loss_of = partial(loss_of_codes, sets=sets)
    if where is None:
        return loss_of(rows, codes, structure)
    counted = _checked_where(where, rows, axis)
    has_any = counted.any(-1)
    rows = jnp.where(has_any[..., None], jnp.where(counted, rows, -jnp.inf), 0)
    loss = loss_of(rows, jnp.where(has_any, codes, 0), structure)
    return jnp.where(has_any, loss, 0)


def structured_cross_entropy_with_distributions(
    logits: ArrayLike, distributions: ArrayLike, structure: Structure, *, axis: int = -1
) -> Array:
    r"""Structured cross-entropy of logits and distributions: one value for each example, (...).

    .. math:: \ell(z, P) = \sum_c P_c \, \ell(z, c)

    With the trivial structure this is ``optax.softmax_cross_entropy``, but a class with the
    probability 0 adds nothing, even if its logit is -inf.

    Parameters
    ----------
    distributions
        The probability of each class, or any weights of the classes, in the shape of the logits.
    logits, structure, axis
        As in :func:`structured_cross_entropy`.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> p = jnp.array([[0.25, 0.25, 0.5]])
    >>> loss = structured_cross_entropy_with_distributions(jnp.log(p), p, plants)
    >>> print(loss / jnp.log(2))  # half of 1 bit for tree or flower, half of 1.5 for the class
    [1.25]
    """
    rows = _checked_rows(logits, structure, axis)
    mass = jnp.asarray(distributions)
    if mass.shape != jnp.shape(logits):
        raise StructureError(
            f"distributions must have the shape of the logits, {jnp.shape(logits)}, got "
            f"{mass.shape}; class indices go to structured_cross_entropy"
        )
    matrix = as_matrix(rows)
    mass = jnp.moveaxis(mass, axis, -1).reshape(matrix.shape).astype(matrix.dtype)
    plan, arrays = compiled(structure)
    loss: Array = loss_of_distributions(plan, matrix, mass, arrays)
    return loss.reshape(rows.shape[:-1]).astype(rows.dtype)


def _checked_rows(logits: ArrayLike, structure: Structure, axis: int) -> Array:
    """Return the logits with the classes on the last axis."""
    array = jnp.asarray(logits)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise StructureError(f"logits must be floating-point numbers, got {array.dtype}")
    if not -array.ndim <= axis < array.ndim:
        raise StructureError(f"axis must be one of the {array.ndim} of the logits, got {axis}")
    if not isinstance(structure, Structure):
        raise not_fixed(structure)
    n_classes = structure.block_of.shape[1]
    if array.shape[axis] != n_classes:
        raise StructureError(
            f"structure covers {n_classes} classes but axis {axis} of the logits has "
            f"{array.shape[axis]} entries"
        )
    return jnp.moveaxis(array, axis, -1)


def _checked_labels(labels: ArrayLike, shape: tuple[int, ...]) -> Array:
    codes = jnp.asarray(labels)
    if not jnp.issubdtype(codes.dtype, jnp.integer):
        raise LabelError(
            f"labels must be indices of classes, got {codes.dtype}; structure.encode gives the "
            "indices of names, and structured_cross_entropy_with_distributions takes distributions"
        )
    if codes.shape != shape:
        raise LabelError(f"labels must have the shape {shape} of the examples, got {codes.shape}")
    return codes


def _checked_sets(label_sets: LabelSets, structure: Structure) -> tuple[tuple[int, ...], ...]:
    if isinstance(structure, RandomPartition):
        return checked_label_sets(label_sets, structure.classes).coarse_sets
    n_classes = structure.block_of.shape[1]  # the arrays know only this of their classes
    classes = label_sets.classes if isinstance(label_sets, LabelSets) else ()
    if len(classes) != n_classes:
        classes = tuple(range(n_classes))
    return checked_label_sets(label_sets, classes).coarse_sets


def _checked_where(where: ArrayLike, rows: Array, axis: int) -> Array:
    """Return the mask with the classes on the last axis, of length 1 if they share it."""
    counted = jnp.asarray(where, dtype=bool)
    is_by_class = counted.ndim == rows.ndim
    counted = jnp.moveaxis(counted, axis, -1) if is_by_class else counted[..., None]
    if counted.shape not in (rows.shape, (*rows.shape[:-1], 1)):
        raise StructureError(
            f"where must have the shape of the logits or of the labels, got {jnp.shape(where)}"
        )
    return counted
