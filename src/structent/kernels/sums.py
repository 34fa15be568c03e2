"""Sums of many numbers at once, in the same order on every processor.

A compiler that may reorder a sum adds as many numbers side by side as the processor likes. Then
processors of different kinds round differently, and boosted trees are different trees. So these
sums are written in LLVM's own terms: always eight numbers in a vector, and four vectors at a time.
Compiled functions call them like any others; nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

_LANES, _VECTORS = 8, 4
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_BYTES_OF_ALL = 4  # alignment that every number has
_cgutils: Any = cgutils  # Numba has no types here
_loop: Any = partial(cgutils.for_range_slice, intp=_INT64)

# Returns what begins at a place: a vector of numbers, or one number.
_Read = Callable[[Any, Any, Any], Any]


def _sum_of(_context: Any, x: Any, at: Any, n: Any) -> Any:
    """Return the sum of the n numbers ``x[at]``, ``x[at + 1]``, ..."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = _first(context, builder, signature, arguments, 0, 1)

        def read(builder: Any, kind: Any, place: Any) -> Any:
            return _load(builder, numbers, place, kind)

        return _total(builder, numbers.type.pointee, arguments[2], read)

    return x.dtype(x, at, n), generate


def _sum_where(_context: Any, x: Any, at: Any, n: Any, ids: Any, ids_at: Any, wanted: Any) -> Any:
    """Return the sum of the same numbers, but only of those whose id is the wanted one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = _first(context, builder, signature, arguments, 0, 1)
        ids = _first(context, builder, signature, arguments, 3, 4)
        own = context.cast(builder, arguments[5], signature.args[5], signature.args[3].dtype)

        def read(builder: Any, kind: Any, place: Any) -> Any:
            value, zero = _load(builder, numbers, place, kind), ir.Constant(kind, None)
            if isinstance(kind, ir.VectorType):
                several = ir.VectorType(own.type, _LANES)
                found = _load(builder, ids, place, several)
                same = builder.icmp_signed("==", found, _repeated(builder, own, several))
            else:
                same = builder.icmp_signed("==", _load(builder, ids, place, own.type), own)
            return builder.select(same, value, zero)

        return _total(builder, numbers.type.pointee, arguments[2], read)

    return x.dtype(x, at, n, ids, ids_at, wanted), generate


sum_of: Any = intrinsic(_sum_of)
sum_where: Any = intrinsic(_sum_where)


def _total(builder: Any, kind: Any, n: Any, read: _Read) -> Any:
    """Return the sum of what is read at the places 0 to n - 1."""
    vector = ir.VectorType(kind, _LANES)
    zero = ir.Constant(vector, [0.0] * _LANES)
    sums = [_cgutils.alloca_once_value(builder, zero) for _ in range(_VECTORS)]
    rest = _cgutils.alloca_once_value(builder, ir.Constant(kind, 0.0))

    def add(to: Any, number: Any) -> None:
        builder.store(builder.fadd(builder.load(to), number), to)

    n = builder.zext(n, _INT64) if n.type.width < _INT64.width else n
    at_once = _INT64(_LANES * _VECTORS)
    of_four = builder.sub(n, builder.urem(n, at_once))
    of_one = builder.sub(n, builder.urem(n, _INT64(_LANES)))
    with _loop(builder, _INT64(0), of_four, at_once) as (place, _):
        for v, each in enumerate(sums):
            add(each, read(builder, vector, builder.add(place, _INT64(v * _LANES))))
    with _loop(builder, of_four, of_one, _INT64(_LANES)) as (place, _):
        add(sums[0], read(builder, vector, place))
    with _loop(builder, of_one, n, _INT64(1)) as (place, _):
        add(rest, read(builder, kind, place))
    a, b, c, d = (builder.load(each) for each in sums)
    both = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
    return builder.fadd(_across(builder, both), builder.load(rest))


def _across(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's numbers."""
    for distance in (4, 2, 1):
        turned = ir.Constant(
            ir.VectorType(_INT32, _LANES), [(lane + distance) % _LANES for lane in range(_LANES)]
        )
        undefined = ir.Constant(vector.type, ir.Undefined)
        vector = builder.fadd(vector, builder.shuffle_vector(vector, undefined, turned))
    return builder.extract_element(vector, _INT32(0))


def _first(context: Any, builder: Any, signature: Any, arguments: Any, array: int, at: int) -> Any:
    """Return a pointer to the number of an array at a place; both are arguments."""
    made = context.make_array(signature.args[array])(context, builder, arguments[array])
    return builder.gep(made.data, [arguments[at]])


def _load(builder: Any, numbers: Any, place: Any, kind: Any) -> Any:
    """Return the vector, or the number, that begins at a place."""
    pointer = builder.bitcast(builder.gep(numbers, [place]), kind.as_pointer())
    return builder.load(pointer, align=_BYTES_OF_ALL)


def _repeated(builder: Any, number: Any, vector: Any) -> Any:
    """Return a vector in which all numbers are this one."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, _INT32(0))
    zeros = ir.Constant(ir.VectorType(_INT32, _LANES), [0] * _LANES)
    return builder.shuffle_vector(first, undefined, zeros)
