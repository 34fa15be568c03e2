"""Vector instructions, because Numba does not vectorise these loops itself.

Numba cannot know that two arrays do not overlap, so it does not vectorise short loops that read one
and write the other. These functions are written in LLVM's own terms instead. Compiled functions
call them like any others; nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # numbers that are always processed together
PER_VECTOR = 8  # float32 numbers in 256 bits
ROWS_AT_ONCE = 32  # bytes in 256 bits
PAIR = 2  # a gradient and a curvature along one direction among the classes

_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_VECTOR = ir.VectorType(_FLOAT, PER_VECTOR)
_MARKS = ir.VectorType(ir.IntType(8), ROWS_AT_ONCE)
_ZERO = ir.Constant(_VECTOR, [0.0] * PER_VECTOR)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)

_cgutils: Any = cgutils  # Numba has no types here


def _function(signed: Callable[..., Any]) -> Any:
    """Return a function for compiled code; ``signed`` returns its signature and generator."""
    return intrinsic(signed)


@_function
def prefetch(_context: Any, array: Any, at: Any) -> Any:
    """Prefetch the number ``array[at]``, which is needed soon."""

    def build(builder: Any, array: Any, at: Any) -> None:
        place = builder.bitcast(builder.gep(array, [at]), _BYTES)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
        function = _cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, _INT32(0), _INT32(3), _INT32(1)])

    return types.void(array, at), _on_data(build)


def _add_to_cells(  # noqa: PLR0913  what a row needs
    builder: Any, row: list[Any], n_vectors: int, bins: Any, first_cell: Any, first: Any,
    last: Any, cells: Any, *, one_more: tuple[Any, Any] | None = None,
) -> None:  # fmt: skip
    """Add the vectors of a row to the first vectors of its cell in every column.

    A cell has ``n_vectors`` vectors. ``one_more`` is the place of one more number in the cell, and
    what to add to it.
    """
    with _cgutils.for_range_slice(builder, first, last, _INT64(1), intp=_INT64) as (j, _):
        bin_of_row = builder.zext(builder.load(builder.gep(bins, [j])), _INT64)
        cell = builder.add(builder.load(builder.gep(first_cell, [j])), bin_of_row)
        vector = row[0].type
        to = builder.gep(cells, [builder.mul(cell, _INT64(n_vectors * vector.count))])
        before = _load(builder, to, len(row), vector)
        _store(builder, [builder.fadd(*pair) for pair in zip(before, row, strict=True)], to)
        if one_more:
            place, number = builder.gep(to, [one_more[0]]), one_more[1]
            builder.store(builder.fadd(builder.load(place), number), place)


def _row_adder(n_vectors: int, add: Callable[..., None], vector: Any = _VECTOR) -> Any:
    def build(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
        builder: Any, numbers: Any, at: Any, bins: Any, bins_at: Any, first_cell: Any,
        first: Any, last: Any, cells: Any, cells_at: Any,
    ) -> None:  # fmt: skip
        row = _load(builder, builder.gep(numbers, [at]), n_vectors, vector)
        bins, cells = builder.gep(bins, [bins_at]), builder.gep(cells, [cells_at])
        add(builder, row, bins, first_cell, first, last, cells)

    @_function
    def add_row(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
        _context: Any, numbers: Any, at: Any, bins: Any, bins_at: Any, first_cell: Any,
        first: Any, last: Any, cells: Any, cells_at: Any,
    ) -> Any:  # fmt: skip
        given = (numbers, at, bins, bins_at, first_cell, first, last, cells, cells_at)
        return types.void(*given), _on_data(build)

    return add_row


def _add_as_it_is(builder: Any, row: list[Any], *to: Any) -> None:
    _add_to_cells(builder, row, len(row), *to)


def _add_signed(builder: Any, row: list[Any], *to: Any) -> None:
    """Add gradients g to the first half of the cell, and max(-g, 0) to the second half.

    With the plain loss a row has one negative gradient, the one of its label. Then only one number
    is added to the second half, or none.
    """
    n_vectors, mask_type = 2 * len(row), ir.IntType(LANES)
    is_negative = [builder.fcmp_ordered("<", vector, _ZERO) for vector in row]
    parts = [
        builder.select(negative, builder.fsub(_ZERO, vector), _ZERO)
        for negative, vector in zip(is_negative, row, strict=True)
    ]
    low, high = (
        builder.zext(builder.bitcast(negative, ir.IntType(PER_VECTOR)), mask_type)
        for negative in is_negative
    )
    mask = builder.or_(low, builder.shl(high, mask_type(PER_VECTOR)))
    without_first = builder.and_(mask, builder.sub(mask, mask_type(1)))
    with builder.if_else(builder.icmp_unsigned("==", without_first, mask_type(0))) as (few, many):
        with few, builder.if_else(builder.icmp_unsigned("==", mask, mask_type(0))) as (none, one):
            with none:
                _add_to_cells(builder, row, n_vectors, *to)
            with one:
                lane = builder.cttz(mask, ir.IntType(1)(0))
                # All other negative parts are 0, so the sum equals this one.
                number = _sum(builder, builder.fadd(*parts))
                place = builder.add(builder.zext(lane, _INT64), _INT64(LANES))
                _add_to_cells(builder, row, n_vectors, *to, one_more=(place, number))
        with many:
            _add_to_cells(builder, row + parts, n_vectors, *to)


add_pair: Any = _row_adder(1, _add_as_it_is, ir.VectorType(_FLOAT, PAIR))
add_wide_row: Any = _row_adder(2 * LANES // PER_VECTOR, _add_as_it_is)
add_signed_row: Any = _row_adder(LANES // PER_VECTOR, _add_signed)
"""``add_row(numbers, at, bins, bins_at, first_cell, first, last, cells, cells_at)`` adds the
numbers of a row, from ``at`` on, to its cell in each of the columns first to last - 1. They stay in
registers over all columns. The signed function adds 16 gradients g to the first half of a cell of
32 numbers, and max(-g, 0) to the second half."""


@_function
def add_border_scores(
    _context: Any, cells: Any, begin: Any, n: Any, start: Any, totals: Any, totals_at: Any,
    reg_lambda: Any, scores: Any,
) -> Any:  # fmt: skip
    """Sum n wide cells from the left, and add to each score the score of the border after its cell.

    The sum begins with the cell at ``start`` if that is not negative.
    """

    def build(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
        builder: Any, cells: Any, begin: Any, n: Any, start: Any, totals: Any, totals_at: Any,
        reg_lambda: Any, scores: Any,
    ) -> None:  # fmt: skip
        n_vectors = 2 * LANES // PER_VECTOR
        total = _load(builder, builder.gep(totals, [totals_at]), n_vectors)
        left = [_cgutils.alloca_once(builder, _VECTOR) for _ in range(n_vectors)]
        for vector in left:
            builder.store(_ZERO, vector)
        with builder.if_then(builder.icmp_signed(">=", start, _INT64(0))):
            at_start = _load(builder, builder.gep(cells, [start]), n_vectors)
            for vector, value in zip(left, at_start, strict=True):
                builder.store(value, vector)
        with _cgutils.for_range(builder, n, intp=_INT64) as loop:
            offset = builder.mul(loop.index, _INT64(n_vectors * PER_VECTOR))
            cell = _load(builder, builder.gep(cells, [builder.add(begin, offset)]), n_vectors)
            here = [
                builder.fadd(builder.load(vector), value)
                for vector, value in zip(left, cell, strict=True)
            ]
            for vector, value in zip(left, here, strict=True):
                builder.store(value, vector)
            rest = [builder.fsub(*pair) for pair in zip(total, here, strict=True)]
            _add_score(builder, here, rest, reg_lambda, builder.gep(scores, [loop.index]))

    given = (cells, begin, n, start, totals, totals_at, reg_lambda, scores)
    return types.void(*given), _on_data(build)


def _add_score(builder: Any, here: Any, rest: Any, reg_lambda: Any, to: Any) -> None:
    """Add the sum over 16 classes of G_left^2 / (H_left + lambda) + the same on the right."""
    reg_lambda, parts = _repeated(builder, reg_lambda), []
    for i in range(2):
        left, right = here[i], rest[i]
        of_left, of_right = (
            builder.fadd(_at_least_zero(builder, side[2 + i]), reg_lambda) for side in (here, rest)
        )
        # One division for both: a/b + c/d = (a d + c b) / (b d).
        above = builder.fadd(
            builder.fmul(builder.fmul(left, left), of_right),
            builder.fmul(builder.fmul(right, right), of_left),
        )
        parts.append(builder.fdiv(above, builder.fmul(of_left, of_right)))
    builder.store(builder.fadd(builder.load(to), _sum(builder, builder.fadd(*parts))), to)


def _product(*, of_magnitudes: bool) -> Any:
    def build(builder: Any, numbers: Any, at: Any, n: Any, factors: Any) -> Any:
        numbers = builder.gep(numbers, [at])
        total, rest = (_cgutils.alloca_once(builder, kind) for kind in (_VECTOR, _FLOAT))
        builder.store(_ZERO, total)
        builder.store(_FLOAT(0.0), rest)
        whole, step = builder.and_(n, _INT64(-PER_VECTOR)), _INT64(PER_VECTOR)
        with _cgutils.for_range_slice(builder, _INT64(0), whole, step, intp=_INT64) as (i, _):
            (values,), (times,) = (
                _load(builder, builder.gep(pointer, [i]), 1) for pointer in (numbers, factors)
            )
            add(builder, values, times, total)
        with _cgutils.for_range_slice(builder, whole, n, _INT64(1), intp=_INT64) as (i, _):
            value, times = (
                builder.load(builder.gep(pointer, [i])) for pointer in (numbers, factors)
            )
            add(builder, value, times, rest)
        return builder.fadd(_sum(builder, builder.load(total)), builder.load(rest))

    def add(builder: Any, values: Any, times: Any, to: Any) -> None:
        if of_magnitudes:
            zero = ir.Constant(values.type, None)
            is_negative = builder.fcmp_ordered("<", values, zero)
            values = builder.select(is_negative, builder.fsub(zero, values), values)
        builder.store(builder.fadd(builder.load(to), builder.fmul(values, times)), to)

    @_function
    def product(_context: Any, numbers: Any, at: Any, n: Any, factors: Any) -> Any:
        return types.float32(numbers, at, n, factors), _on_data(build)

    return product


product: Any = _product(of_magnitudes=False)
product_of_magnitudes: Any = _product(of_magnitudes=True)
"""``product(numbers, at, n, factors)`` returns the dot product of n numbers, from ``at`` on, and
the factors."""


@_function
def add_numbers(_context: Any, numbers: Any, at: Any, n: Any, out: Any, out_at: Any) -> Any:
    """Add n numbers, from ``at`` on, to another array from ``out_at`` on."""

    def build(builder: Any, numbers: Any, at: Any, n: Any, out: Any, out_at: Any) -> None:
        _add_lines(builder, [builder.gep(numbers, [at])], n, builder.gep(out, [out_at]))

    return types.void(numbers, at, n, out, out_at), _on_data(build)


@_function
def add_four(
    _context: Any, numbers: Any, at_1: Any, at_2: Any, at_3: Any, at_4: Any, n: Any, out: Any,
    out_at: Any,
) -> Any:  # fmt: skip
    """Add n numbers from each of four places, one place after the other, like ``add_numbers``.

    The sums stay in registers, which takes half the time of four calls.
    """

    def build(builder: Any, numbers: Any, *given: Any) -> None:
        *places, n, out, out_at = given
        lines = [builder.gep(numbers, [at]) for at in places]
        _add_lines(builder, lines, n, builder.gep(out, [out_at]))

    given = (numbers, at_1, at_2, at_3, at_4, n, out, out_at)
    return types.void(*given), _on_data(build)


def _add_lines(builder: Any, lines: list[Any], n: Any, out: Any) -> None:
    whole, step = builder.and_(n, _INT64(-PER_VECTOR)), _INT64(PER_VECTOR)
    with _cgutils.for_range_slice(builder, _INT64(0), whole, step, intp=_INT64) as (i, _):
        to = builder.gep(out, [i])
        (total,) = _load(builder, to, 1)
        for line in lines:
            total = builder.fadd(total, *_load(builder, builder.gep(line, [i]), 1))
        _store(builder, [total], to)
    with _cgutils.for_range_slice(builder, whole, n, _INT64(1), intp=_INT64) as (i, _):
        to = builder.gep(out, [i])
        total = builder.load(to)
        for line in lines:
            total = builder.fadd(total, builder.load(builder.gep(line, [i])))
        builder.store(total, to)


@_function
def part_rows(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    _context: Any, bins: Any, bins_at: Any, n: Any, low: Any, length: Any, first_run: Any,
    last_run: Any, reached: Any, here: Any, left: Any,
) -> Any:  # fmt: skip
    """Split n rows at a node; rows that have reached it have all bits set from ``here`` on.

    The marks of its children are written from ``left`` on, n for each child. A bin goes left if it
    is in one of the runs ``low[run]`` to ``low[run] + length[run]``.
    """

    def build(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
        builder: Any, bins: Any, bins_at: Any, n: Any, low: Any, length: Any, first_run: Any,
        last_run: Any, reached: Any, here: Any, left: Any,
    ) -> None:  # fmt: skip
        bins, right = builder.gep(bins, [bins_at]), builder.gep(reached, [builder.add(left, n)])
        here, left = builder.gep(reached, [here]), builder.gep(reached, [left])
        mark, step, one = _cgutils.alloca_once(builder, _MARKS), _INT64(ROWS_AT_ONCE), _INT64(1)
        with _cgutils.for_range_slice(builder, _INT64(0), n, step, intp=_INT64) as (i, _):
            (of_rows,), (all_,) = (
                _load(builder, builder.gep(each, [i]), 1, _MARKS, align=1) for each in (bins, here)
            )
            builder.store(ir.Constant(_MARKS, None), mark)
            with _cgutils.for_range_slice(builder, first_run, last_run, one, _INT64) as (run, _):
                lowest, most = (
                    _repeated(builder, builder.load(builder.gep(each, [run])), _MARKS)
                    for each in (low, length)
                )
                is_in = builder.icmp_unsigned("<=", builder.sub(of_rows, lowest), most)
                marked = builder.or_(builder.load(mark), builder.sext(is_in, _MARKS))
                builder.store(marked, mark)
            goes_left = builder.load(mark)
            parts = builder.and_(all_, goes_left), builder.and_(all_, builder.not_(goes_left))
            for part, to in zip(parts, (left, right), strict=True):
                _store(builder, [part], builder.gep(to, [i]), align=1)

    given = (bins, bins_at, n, low, length, first_run, last_run, reached, here, left)
    return types.void(*given), _on_data(build)


@_function
def write_place(
    _context: Any, reached: Any, here: Any, n: Any, place: Any, places: Any, at: Any
) -> Any:
    """Write a place, one byte per row, for each marked row of n; the bytes must be 0 before."""

    def build(
        builder: Any, reached: Any, here: Any, n: Any, place: Any, places: Any, at: Any
    ) -> None:
        reached, places = builder.gep(reached, [here]), builder.gep(places, [at])
        place, step = _repeated(builder, place, _MARKS), _INT64(ROWS_AT_ONCE)
        with _cgutils.for_range_slice(builder, _INT64(0), n, step, intp=_INT64) as (i, _):
            to = builder.gep(places, [i])
            (marks,), (before,) = (
                _load(builder, each, 1, _MARKS, align=1) for each in (builder.gep(reached, [i]), to)
            )
            _store(builder, [builder.or_(before, builder.and_(marks, place))], to, align=1)

    return types.void(reached, here, n, place, places, at), _on_data(build)


def _on_data(build: Callable[..., Any]) -> Any:
    """Return a code generator for Numba; ``build`` gets pointers to the data of the arrays."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, given, strict=True)
        ]
        result = build(builder, *data)
        return context.get_dummy_value() if result is None else result

    return generate


def _at_least_zero(builder: Any, value: Any) -> Any:
    """Return a curvature, at least 0: for a bin without rows, rounding may leave it below 0."""
    return builder.select(builder.fcmp_ordered(">", value, _ZERO), value, _ZERO)


def _load(
    builder: Any, pointer: Any, n_vectors: int, vector: Any = _VECTOR, align: int = 4
) -> list[Any]:
    vectors = builder.bitcast(pointer, vector.as_pointer())
    places = [builder.gep(vectors, [_INT32(v)]) for v in range(n_vectors)]
    return [builder.load(place, align=align) for place in places]


def _store(builder: Any, values: list[Any], pointer: Any, align: int = 4) -> None:
    vectors = builder.bitcast(pointer, values[0].type.as_pointer())
    for v, value in enumerate(values):
        builder.store(value, builder.gep(vectors, [_INT32(v)]), align=align)


def _repeated(builder: Any, number: Any, vector: Any = _VECTOR) -> Any:
    """Return a vector in which all numbers are this one."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, _INT32(0))
    return builder.shuffle_vector(first, undefined, _places([0] * vector.count))


def _sum(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's numbers."""
    for distance in (4, 2, 1):
        places = _places([(place + distance) % PER_VECTOR for place in range(PER_VECTOR)])
        vector = builder.fadd(vector, builder.shuffle_vector(vector, _UNDEFINED, places))
    return builder.extract_element(vector, _INT32(0))


def _places(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INT32, len(places)), places)
