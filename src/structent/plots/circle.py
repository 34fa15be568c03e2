"""A circle of classes, drawn with a ring of arcs for each partition."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from structent._typing import FloatArray, IntArray
from structent.plots.order import coarse_partitions
from structent.plots.style import ink, level_colour, room, shown, stride, text_width
from structent.structure import RandomPartition

_MOST_RINGS = 8
_SIZE = 8.5


def draw_circle(structure: RandomPartition, ax: Axes) -> Axes:
    """Draw the classes around a circle, and a ring of arcs for each partition."""
    coarse = coarse_partitions(structure)
    levels = _weight_of_levels(structure)
    gap = min(0.14, 0.75 / min(len(coarse), _MOST_RINGS))
    for place, (partition, _, level) in enumerate(coarse[:_MOST_RINGS]):
        radius = 0.9 - gap * place
        for start, length in _arcs(partition.block_of):
            within = np.linspace(start - 0.38, start + length - 0.62, 12 * length + 2)
            x, y = _on_circle(within, structure.n_classes, radius)
            colour = level_colour(list(levels).index(level))
            ax.plot(x, y, color=colour, linewidth=6, solid_capstyle="butt")
    side = _name_classes(structure, ax)
    ax.set_aspect("equal")
    ax.set_xlim(-side, side)
    ax.set_ylim(-side, side)
    ax.axis("off")
    handles = [
        Line2D([], [], color=level_colour(k), linewidth=4, label=f"{shown(name)} (weight {w:.2f})")
        for k, (name, w) in enumerate(levels.items())
    ]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False,
              fontsize=_SIZE, ncols=2)  # fmt: skip
    if len(coarse) > _MOST_RINGS:
        ax.text(0, 0, f"{_MOST_RINGS} of {len(coarse)}\npartitions", ha="center", va="center",
                fontsize=_SIZE)  # fmt: skip
    return ax


def circle_size(structure: RandomPartition) -> tuple[float, float]:
    """Return the size of a figure with room for the names, at most a page."""
    side = float(np.clip(3.6 + 0.05 * structure.n_classes, 4.2, 8.5))
    return side, side + 0.3


def circle_summary(structure: RandomPartition) -> str:
    """Return what the drawing shows, in a sentence."""
    levels = ", ".join(
        f"{name} (weight {w:.2f})" for name, w in _weight_of_levels(structure).items()
    )
    n_partitions = len(coarse_partitions(structure))
    return (
        f"A circle of {structure.n_classes} classes with {n_partitions} partitions into arcs; "
        f"levels: {levels}."
    )


def _weight_of_levels(structure: RandomPartition) -> dict[str, float]:
    weights: dict[str, float] = {}
    for _, weight, level in coarse_partitions(structure):
        weights[level] = weights.get(level, 0.0) + weight
    return weights


def _arcs(block_of: IntArray) -> list[tuple[int, int]]:
    """Return the first class and the length of each run around the circle."""
    n = len(block_of)
    starts = np.flatnonzero(block_of != np.roll(block_of, 1)).tolist() or [0]
    ends = [*starts[1:], starts[0] + n]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def _on_circle(places: FloatArray, n_classes: int, radius: float) -> tuple[FloatArray, FloatArray]:
    """Return coordinates: the first class at the top, the others clockwise."""
    angle = 2 * np.pi * places / n_classes
    return radius * np.sin(angle), radius * np.cos(angle)


def _name_classes(structure: RandomPartition, ax: Axes) -> float:
    """Write the names around the circle, and return half the side of the square around them."""
    n = structure.n_classes
    names = [shown(label, 18) for label in structure.classes]
    longest = max(text_width(name, _SIZE) for name in names) + 6
    half = min(room(ax)) / 2
    side = 1.08 / (1 - min(longest / half, 0.6))
    x, y = _on_circle(np.arange(n, dtype=np.float64), n, 1.0)
    ax.plot(x, y, "o", markersize=3.5 if n <= 40 else 2, color=ink())
    circumference = 2 * np.pi * half / side
    step = stride(n, circumference, _SIZE + 1)
    upright = n <= 24
    for k in range(0, n, step):
        turn = 90 - 360 * k / n
        is_left = 90 < turn % 360 < 270
        ax.text(
            1.06 * x[k],
            1.06 * y[k],
            names[k],
            fontsize=_SIZE,
            rotation=0 if upright else turn + 180 * is_left,
            rotation_mode="anchor",
            ha="center" if upright and abs(x[k]) < 0.1 else "right" if is_left else "left",
            va="center" if abs(y[k]) < 0.95 or not upright else "bottom" if y[k] > 0 else "top",
        )
    return side
