"""A structure drawn by its kind: a tree, a circle, a scale, a graph, or a matrix."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structent.errors import StructureError
from structent.plots.circle import circle_size, circle_summary, draw_circle
from structent.plots.graph import draw_graph, graph_size, graph_summary
from structent.plots.matrix import draw_togetherness, togetherness_summary
from structent.plots.order import is_circle, is_order
from structent.plots.scale import draw_scale, scale_size, scale_summary
from structent.plots.style import axes_or_new
from structent.plots.tree import draw_tree, tree_size, tree_summary
from structent.structure import (
    FixedStructure,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
)


class Drawing(NamedTuple):
    """How a structure is drawn.

    Attributes
    ----------
    draw
        Draws it into axes.
    size
        The width and height of a figure in which all of it is legible, in inches.
    summary
        What the drawing shows, in a sentence.
    """

    draw: Callable[[Axes], Axes]
    size: tuple[float, float]
    summary: str


def draw_structure(structure: RandomPartition | PartitionSampler, ax: Axes | None = None) -> Axes:
    """Draw a structure into axes, by its kind.

    Nested partitions are drawn as an indented tree; if the axes are too small for all rows, only
    the first levels are drawn, and a line says so. Partitions of a circle into arcs are drawn as
    rings, cuts of an order as thresholds on a line, and a sampler on a graph as that graph. Any
    other structure is drawn as a matrix: the weight of the partitions in which two classes share a
    block.

    Parameters
    ----------
    structure
        A random partition, or a sampler. For a sampler without a graph, its first draw is shown.
    ax
        The axes, :func:`drawing_of` says how large they should be; those of a new figure if None.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> ax = draw_structure(plants, Figure().add_subplot())
    >>> [text.get_text() for text in ax.texts]
    ['tree', 'oak', 'maple', 'rose']
    """
    drawing = drawing_of(structure)
    return drawing.draw(axes_or_new(ax, drawing.size))


def structure_svg(structure: RandomPartition | PartitionSampler) -> str:
    """Return a structure as a picture: SVG with text that a page can style and read out.

    Examples
    --------
    >>> from structent.structure.catalog import months
    >>> structure_svg(months())[:4]
    '<svg'
    """
    drawing, picture = drawing_of(structure), StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "structent"}):
        figure = Figure(figsize=drawing.size, layout="constrained")
        drawing.draw(figure.add_subplot())
        figure.savefig(picture, format="svg", transparent=True, metadata={"Date": None})
    text = picture.getvalue()
    return text[text.index("<svg") :]


def drawing_of(structure: RandomPartition | PartitionSampler) -> Drawing:
    """Return how a structure is drawn, how large, and what the drawing shows.

    Examples
    --------
    >>> from structent.structure.catalog import months
    >>> drawing_of(months()).summary
    'A circle of 12 classes with 3 partitions into arcs; levels: width 3 (weight 0.70).'
    """
    if isinstance(structure, SpanningTreePartitions):
        sampler = structure
        return Drawing(
            lambda ax: draw_graph(sampler, ax), graph_size(sampler), graph_summary(sampler)
        )
    fixed = _fixed(structure)
    if fixed.is_nested:
        return Drawing(lambda ax: draw_tree(fixed, ax), tree_size(fixed), tree_summary(fixed))
    if is_order(fixed):
        return Drawing(lambda ax: draw_scale(fixed, ax), scale_size(fixed), scale_summary(fixed))
    if is_circle(fixed):
        return Drawing(lambda ax: draw_circle(fixed, ax), circle_size(fixed), circle_summary(fixed))
    summary = togetherness_summary(fixed)
    return Drawing(lambda ax: draw_togetherness(fixed, ax), (6.5, 6.0), summary)


def _fixed(structure: RandomPartition | PartitionSampler) -> RandomPartition:
    if isinstance(structure, RandomPartition):
        return structure
    if isinstance(structure, FixedStructure):
        return structure.structure
    if isinstance(structure, PartitionSampler):
        return structure.sample(0)
    raise StructureError(
        f"structure must be a RandomPartition or a sampler, got {type(structure).__name__}; "
        "hierarchy(), circular() and ordinal() make one"
    )
