"""A hierarchy drawn as an indented tree, a row for each block and each class."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from structent._typing import IndexArray
from structent.plots.order import coarse_partitions
from structent.plots.style import counted, ink, level_colour, room, shown, text_width
from structent.structure import RandomPartition

_SIZE = 8.0  # of the letters, in points
_LINE = 11.0  # from row to row
_INDENT = 12.0  # from level to level
_GAP = 18.0  # from column to column
_WIDTH, _HEIGHT = 9.0, 12.0  # of the page, in inches
_ROWS_OF_ONE_COLUMN = 36


class _Row(NamedTuple):
    """A block or a class: its name, its level, and whether it continues from the last column."""

    name: str
    depth: int
    is_class: bool
    is_repeated: bool = False


def draw_tree(structure: RandomPartition, ax: Axes) -> Axes:
    """Draw the tree of nested partitions, as many of its levels as there is room for."""
    width, height = room(ax)
    n_levels = len(_coarse_levels(structure)) + 1
    per_column = max(int(height / _LINE), 2)
    for depth in range(n_levels, 0, -1):
        rows = list(_rows(structure, depth))
        columns = _columns(rows, per_column)
        if len(columns) * _column_width(rows) <= width + _GAP or depth == 1:
            break
    fitting = max(int((width + _GAP) / _column_width(rows)), 1)
    n_shown = sum(not row.is_repeated for column in columns[:fitting] for row in column)
    for place, column in enumerate(columns[:fitting]):
        _draw_column(ax, column, place * _column_width(rows), n_levels)
    ax.set_xlim(-4, width - 4)
    ax.set_ylim(max(map(len, columns)) - 0.4, -0.6)
    ax.axis("off")
    _add_legend(ax, structure, depth)
    if depth < n_levels:
        ax.set_title(f"the first {depth} of {n_levels} levels", fontsize=_SIZE + 1, loc="right")
    if n_shown < len(rows):
        ax.set_title(f"the first {n_shown} of {len(rows)} rows", fontsize=_SIZE + 1, loc="right")
    return ax


def tree_size(structure: RandomPartition) -> tuple[float, float]:
    """Return the size of a figure with room for the whole tree, at most a page."""
    n_levels = len(_coarse_levels(structure)) + 1
    for depth in range(n_levels, 0, -1):
        rows = list(_rows(structure, depth))
        most_columns = max(int((72 * _WIDTH + _GAP) / _column_width(rows)), 1)
        n_columns = min(most_columns, ceil(len(rows) / _ROWS_OF_ONE_COLUMN))
        repeated = (depth + 1) * (n_columns - 1)
        height = ceil((len(rows) + repeated) / n_columns) * _LINE / 72
        if height <= _HEIGHT:
            break
    width = max(5.0, (n_columns * _column_width(rows) + 20) / 72)
    return min(width, _WIDTH), min(height, _HEIGHT) + 0.9  # and the legend


def tree_summary(structure: RandomPartition) -> str:
    """Return what the drawing shows, in a sentence."""
    levels = [f"{name} ({max(map(len, cut))})" for name, cut in structure.levels.items()]
    return (
        f"A tree of {counted(structure.n_classes, 'class')}; levels, with the number of their "
        "blocks: "
        f"{', '.join(levels)}."
    )


def _coarse_levels(structure: RandomPartition) -> list[tuple[IndexArray, tuple[str, ...], str]]:
    """Return block numbers, names and level of each partition above the classes, coarsest first."""
    ordered = sorted(coarse_partitions(structure), key=lambda entry: len(entry[0]))
    return [(p.block_of.astype(np.int64), p.names, f"{name}") for p, _, name in ordered]


def _rows(structure: RandomPartition, n_levels: int) -> Iterator[_Row]:
    cuts = _coarse_levels(structure)

    def below(members: IndexArray, depth: int) -> Iterator[_Row]:
        if depth == n_levels:
            return
        # A class by itself needs no block of the same name above it.
        if depth == len(cuts) or len(members) == 1:
            for place in members:
                yield _Row(shown(structure.classes[place]), depth, True)
            return
        block_of, names, _ = cuts[depth]
        for block in np.unique(block_of[members]):
            inside = members[block_of[members] == block]
            if len(inside) > 1:
                yield _Row(shown(names[block]), depth, False)
                yield from below(inside, depth + 1)
            else:
                yield from below(inside, depth)

    return below(np.arange(structure.n_classes), 0)


def _columns(rows: list[_Row], per_column: int) -> list[list[_Row]]:
    """Break rows into columns; each starts by repeating the blocks of its first row."""
    n_columns = ceil(len(rows) / per_column)
    aim = min(per_column, ceil(len(rows) / n_columns) + (2 if n_columns > 1 else 0))
    columns: list[list[_Row]] = [[]]
    path: list[_Row] = []
    for row in rows:
        path = path[: row.depth]
        if len(columns[-1]) >= max(aim, len(path) + 1):
            columns.append([above._replace(is_repeated=True) for above in path])
        columns[-1].append(row)
        path.append(row)
    return columns


def _column_width(rows: list[_Row]) -> float:
    return _GAP + max(_INDENT * (row.depth + 1) + text_width(row.name, _SIZE) for row in rows)


def _draw_column(ax: Axes, column: list[_Row], left: float, n_levels: int) -> None:
    reached: list[float] = []  # how far down the line below each block above the row has come
    xs: list[float] = []
    ys: list[float] = []
    for y, row in enumerate(column):
        x = left + _INDENT * row.depth
        reached = reached[: row.depth]
        if reached:
            above = left + _INDENT * (len(reached) - 1)
            xs += [above, above, x, np.nan]
            ys += [reached[-1], y, y, np.nan]
            reached[-1] = y
        reached.append(y + 0.25)
        name = f"{row.name} …" if row.is_repeated else row.name
        faint = 0.65 if row.is_repeated else 1.0
        ax.text(x + 6, y, name, fontsize=_SIZE, va="center", alpha=faint)
    ax.plot(xs, ys, color=ink(), alpha=0.45, linewidth=0.7, zorder=1)
    for y, row in enumerate(column):
        place = n_levels - 1 if row.is_class else row.depth
        marker = "o" if row.is_class else "s"
        x = left + _INDENT * row.depth
        ax.plot(x, y, marker, markersize=3.5, color=level_colour(place), zorder=2)


def _add_legend(ax: Axes, structure: RandomPartition, depth: int) -> None:
    names = [level for _, _, level in _coarse_levels(structure)]
    names.append(next((n for n, (cut, *_) in structure.levels.items() if cut.is_singletons), ""))
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker="o" if place == len(names) - 1 else "s",
            markersize=4,
            color=level_colour(place),
            label=_level_label(structure, name),
        )
        for place, name in enumerate(names[:depth])
    ]
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=min(len(handles), 2),
        frameon=False,
        fontsize=_SIZE,
        borderaxespad=0.2,
    )


def _level_label(structure: RandomPartition, name: str) -> str:
    weights = [
        weight
        for weight, level in zip(structure.weights, structure.level_of, strict=True)
        if level == name
    ]
    return f"{shown(name) or 'class'} (weight {sum(weights):.2f})"
