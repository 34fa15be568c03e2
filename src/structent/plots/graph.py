"""A graph of classes, drawn so that distances on paper follow the distances along its edges."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from scipy.sparse.csgraph import shortest_path

from structent._typing import FloatArray, IndexArray, IntArray
from structent.plots.style import OF_LEVELS, counted, ink, level_colour, room, shown, text_width
from structent.structure import LabelGraph, SpanningTreePartitions
from structent.structure.graph import adjacency
from structent.structure.labels import class_indices

_SIZE = 7.5
_N_ROUNDS = 300
_MARKERS = "os^D"
# Where a name may stand beside its node: (x, y) in widths and heights of the name.
_PLACES = ((0.5, 0), (-0.5, 0), (0, 1), (0, -1), (0.5, 1), (-0.5, 1), (0.5, -1), (-0.5, -1))


def draw_graph(sampler: SpanningTreePartitions, ax: Axes) -> Axes:
    """Draw the graph of a sampler and its first draw, with as many names as there is room for.

    Classes of one block have one colour and one marker, and thick edges between them; blocks that
    are neighbours differ.
    """
    graph = sampler.graph
    width, height = room(ax)
    points = _scaled(layout(graph), width, height)
    ends = class_indices([label for edge in graph.edges for label in edge], graph.classes)
    ends = ends.reshape(-1, 2)
    block_of = sampler.sample(0).partitions[0].block_of
    is_inside = block_of[ends[:, 0]] == block_of[ends[:, 1]]
    ax.plot(*_lines(points, ends[~is_inside]), color=ink(), alpha=0.4, linewidth=0.8, zorder=1)
    for block, number in enumerate(_distinct_numbers(block_of, ends)):
        colour = level_colour(number)
        marker = _MARKERS[number // len(OF_LEVELS) % len(_MARKERS)]
        inside = ends[is_inside & (block_of[ends[:, 0]] == block)]
        ax.plot(*_lines(points, inside), color=colour, linewidth=2.2, alpha=0.8, zorder=1)
        ax.plot(*points[block_of == block].T, marker, markersize=5, color=colour, zorder=2)
    n_left_out = _name_nodes(ax, graph, points, width, height)
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    ax.axis("off")
    title = (
        f"{counted(graph.n_classes, 'class')}, {counted(len(graph.edges), 'edge')}, "
        f"{counted(sampler.n_blocks, 'block')} per draw"
    )
    if n_left_out:
        title += f"; {counted(n_left_out, 'name')} left out: too little room"
    ax.set_title(title, fontsize=_SIZE + 1.5, loc="left")
    return ax


def _lines(points: FloatArray, ends: IndexArray) -> FloatArray:
    """Return the edges as one broken line, (2, places)."""
    broken = np.full((len(ends), 1, 2), np.nan)
    lines: FloatArray = np.concatenate([points[ends], broken], axis=1).reshape(-1, 2)
    return lines.T


def _distinct_numbers(block_of: IntArray, ends: IndexArray) -> list[int]:
    """Return a small number for each block, such that blocks joined by an edge differ.

    Examples
    --------
    >>> _distinct_numbers(np.array([0, 1, 2]), np.array([[0, 1], [1, 2]]))
    [0, 1, 2]
    """
    neighbours: dict[int, set[int]] = {block: set() for block in range(int(block_of.max()) + 1)}
    for first, second in block_of[ends].tolist():
        neighbours[first].add(second)
        neighbours[second].add(first)
    numbers: list[int] = []
    for block, others in neighbours.items():
        taken = {numbers[other] for other in others if other < block}
        free = [number for number in range(len(OF_LEVELS)) if number not in taken]
        further = next(
            n for n in range(len(OF_LEVELS), len(OF_LEVELS) + block + 2) if n not in taken
        )
        numbers.append(min(free, key=numbers.count, default=further))
    return numbers


def layout(graph: LabelGraph) -> FloatArray:
    r"""Return a place in the plane for each class, (classes, 2), by stress majorisation.

    It lowers :math:`\sum_{i<j} (|x_i - x_j| - d_{ij})^2 / d_{ij}^2` with the distances
    :math:`d_{ij}` along the edges, starting from classical scaling. Nothing in it is random.

    Examples
    --------
    >>> path = layout(LabelGraph([("a", "b"), ("b", "c")]))
    >>> float(np.linalg.norm(path[0] - path[2]).round(3))
    2.0
    """
    distance = shortest_path(adjacency(graph), unweighted=True)
    weight = np.zeros_like(distance)
    apart = distance > 0
    weight[apart] = distance[apart] ** -2.0
    laplacian = np.diag(weight.sum(axis=0)) - weight
    inverse = np.linalg.pinv(laplacian)
    points = _classical_scaling(distance)
    for _ in range(_N_ROUNDS):
        between = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = np.zeros_like(between)
        moved = between > 0
        pull[moved] = weight[moved] * distance[moved] / between[moved]
        points = inverse @ ((np.diag(pull.sum(axis=0)) - pull) @ points)
    return points


def graph_size(sampler: SpanningTreePartitions) -> tuple[float, float]:
    """Return the size of a figure with room for most names, at most a page."""
    side = float(np.clip(3.0 + 0.75 * np.sqrt(sampler.graph.n_classes), 4.5, 9.0))
    return side, 0.9 * side


def graph_summary(sampler: SpanningTreePartitions) -> str:
    """Return what the drawing shows, in a sentence."""
    graph = sampler.graph
    return (
        f"A graph of {counted(graph.n_classes, 'class')} and {counted(len(graph.edges), 'edge')} "
        "between neighbours; each iteration draws a partition of it into "
        f"{counted(sampler.n_blocks, 'connected block')}. The colours show the first one drawn."
    )


def _classical_scaling(distance: FloatArray) -> FloatArray:
    """Return the plane in which squared distances are kept best (Torgerson)."""
    n = len(distance)
    centred = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centred @ distance**2 @ centred)
    # A path lies on a line: the second value may be 0, or negative by rounding.
    scale = np.sqrt(np.maximum(values[-2:], 0.0))
    plane: FloatArray = vectors[:, -2:] * scale
    # An eigenvector's sign is arbitrary: the first class off the axis is put at the bottom left.
    return plane * -np.sign(plane[np.abs(plane).argmax(axis=0), range(plane.shape[1])])


def _scaled(points: FloatArray, width: float, height: float) -> FloatArray:
    """Return the points scaled to the page, with the longer side along the page's longer side."""
    _, _, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    turned = (points - points.mean(axis=0)) @ axes.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    margin = np.array([60.0, 16.0])
    frame = np.maximum(np.array([width, height]) - 2 * margin, 1.0)
    span = np.maximum(high - low, 1e-9)  # a path has no height, which must not be divided by
    scaled: FloatArray = margin + (turned - low) / span * frame
    return np.where(high - low > 1e-9, scaled, margin + frame / 2)


def _name_nodes(
    ax: Axes, graph: LabelGraph, points: FloatArray, width: float, height: float
) -> int:
    """Write each name where it covers nothing, and return for how many there is no room."""
    boxes = [(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    n_left_out = 0
    for node in np.argsort(-graph.degrees, kind="stable"):
        name = shown(graph.classes[node], 20)
        w, h = text_width(name, _SIZE), _SIZE + 1
        for right, up in _PLACES:
            x = points[node, 0] + right * (w + 10)
            y = points[node, 1] + up * (h / 2 + 4)
            box = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            inside = box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height
            if inside and not any(_overlap(box, other) for other in boxes):
                boxes.append(box)
                ax.text(x, y, name, fontsize=_SIZE, ha="center", va="center", zorder=3)
                break
        else:
            n_left_out += 1
    return n_left_out


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
