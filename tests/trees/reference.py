"""Trees and boosting from their definitions: every split is tried, in float64. The oracle."""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

NEAR = 1e-5  # of a node's score: what float32 cannot tell apart
LEAST_LAMBDA = 1e-7  # of a node's mean curvature


@dataclass(frozen=True)
class Split:
    """Which bins of a column go left; the last place is that of missing values."""

    column: int
    goes_left: tuple
    gain: float
    is_left: np.ndarray  # of the node's rows


@dataclass
class Node:
    rows: np.ndarray
    depth: int
    close: list  # the best splits, in the order of trial: all part the rows alike
    left: int = 0  # 0 for a leaf; the right child is the next

    @property
    def split(self):
        return self.close[0] if self.close else None


@dataclass
class Tree:
    nodes: list = field(default_factory=list)
    is_clear: bool = True  # no two different splits were nearly equally good


def score(gradient, curvature, reg_lambda):
    """The sum over the classes of G^2 / (H + lambda); what has no curvature has no gradient."""
    g, h = gradient.sum(axis=0), curvature.sum(axis=0) + reg_lambda
    return np.divide(g * g, h, where=g != 0, out=np.zeros_like(g)).sum()


def gain_of(is_left, gradient, curvature, reg_lambda):
    """What a split gains over the rows together, with at least the least lambda."""
    reg_lambda = max(reg_lambda, LEAST_LAMBDA * curvature.sum(axis=0).mean())
    sides = [score(gradient[side], curvature[side], reg_lambda) for side in (is_left, ~is_left)]
    return sum(sides) - score(gradient, curvature, reg_lambda)


def ways_to_split(n_bins, has_missing):
    """Every border, the missing values right, then left, each as a place for every bin."""
    for missing_left in (False, True) if has_missing else (False,):
        for border in range(n_bins if has_missing and not missing_left else n_bins - 1):
            yield *(b <= border for b in range(n_bins)), missing_left


def sets_of_categories(n_bins):
    """Every set of categories, with the missing values and without."""
    for size in range(n_bins + 2):
        for chosen in combinations(range(n_bins + 1), size):
            yield tuple(b in chosen for b in range(n_bins + 1))


def all_splits(table, rows, gradient, curvature, reg_lambda, min_child_weight=0.0):
    """Every split of the rows that leaves something on both sides, in the order of trial."""
    found = []
    n_bins = np.diff(table.first_cell) - 1
    for column in range(table.bins.shape[1]):
        if table.is_categorical[column]:
            ways = sets_of_categories(n_bins[column])
        else:
            ways = ways_to_split(n_bins[column], table.has_missing[column])
        for goes_left in ways:
            is_left = np.array(goes_left)[table.bins[rows, column]]
            if is_left.all() or not is_left.any():
                continue
            weights = [curvature[rows[side]].sum(axis=0).mean() for side in (is_left, ~is_left)]
            if min(weights) < min_child_weight:
                continue
            gain = gain_of(is_left, gradient[rows], curvature[rows], reg_lambda)
            found.append(Split(column, goes_left, gain, is_left))
    return found


def best_splits(table, rows, gradient, curvature, limits):
    """The best splits, none where none gains; and whether all of them part the rows alike."""
    splits = all_splits(
        table, rows, gradient, curvature, limits.reg_lambda, limits.min_child_weight
    )
    near = NEAR * (1 + score(gradient[rows], curvature[rows], limits.reg_lambda))
    most = max((split.gain for split in splits), default=0.0)
    if most <= near:
        return [], most <= near / 1e3
    close = [split for split in splits if split.gain > most - near]
    # The same two parts of the rows are the same split, whichever is called left.
    is_first = [(split.is_left == close[0].is_left).mean() for split in close]
    return close, all(share in (0, 1) for share in is_first)


def grow(table, gradient, curvature, rows, limits):
    """The tree, level by level, or with ``max_leaves`` the best split first."""
    tree = Tree()
    _open(tree, table, gradient, curvature, rows, 0, limits)
    while True:
        waiting = [i for i, node in enumerate(tree.nodes) if node.split and not node.left]
        if limits.max_leaves:
            if (len(tree.nodes) + 1) // 2 >= limits.max_leaves:
                waiting = []
            waiting = _best_of(tree, waiting)
        if not waiting:
            return tree
        for place in waiting:
            node = tree.nodes[place]
            node.left = len(tree.nodes)
            for side in (node.split.is_left, ~node.split.is_left):
                _open(tree, table, gradient, curvature, node.rows[side], node.depth + 1, limits)


def _open(tree, table, gradient, curvature, rows, depth, limits):
    close = []
    if depth < limits.max_depth and limits.max_leaves != 1:
        close, is_clear = best_splits(table, rows, gradient, curvature, limits)
        tree.is_clear &= is_clear
    tree.nodes.append(Node(rows, depth, close))


def _best_of(tree, waiting):
    if not waiting:
        return []
    gains = [tree.nodes[i].split.gain for i in waiting]
    tree.is_clear &= sum(gain > max(gains) * (1 - NEAR) for gain in gains) == 1
    return [waiting[int(np.argmax(gains))]]


def leaf_values(gradient, curvature, learning_rate, reg_lambda, s=None):
    """-rate * (G S) / (H S + lambda) of the rows of a leaf, (classes,)."""
    g, h = gradient.sum(axis=0), curvature.sum(axis=0)
    if s is not None:
        g, h = g @ s, h @ s
    return -learning_rate * g / (h + reg_lambda)


def similarity_smoother(similarity, smoothing):
    """S = s I + (1 - s) K without its diagonal, rows scaled to 1; s is 1 - smoothing."""
    k = len(similarity)
    s = np.zeros((k, k))
    for i in range(k):
        of_others = sum(similarity[i, j] for j in range(k) if j != i)
        for j in range(k):
            if of_others == 0:
                s[i, j] = i == j
            elif i == j:
                s[i, j] = 1 - smoothing
            else:
                s[i, j] = smoothing * similarity[i, j] / of_others
    return s


def block_mean_smoother(structure, smoothing):
    """S = s I + (1 - s) the mean over the block, in each partition but the singletons."""
    coarse = [
        (weight, [[structure.classes.index(c) for c in block] for block in partition.blocks])
        for weight, partition in zip(structure.weights, structure.partitions, strict=True)
        if not partition.is_singletons
    ]
    k, total = structure.n_classes, sum(weight for weight, _ in coarse)
    s = (1 - smoothing) * np.eye(k)
    for weight, blocks in coarse:
        for block in blocks:
            for i in block:
                for j in block:
                    s[i, j] += smoothing * weight / total / len(block)
    return s


def boosted_logits(table, logits, gradient_and_curvature, n_rounds, learning_rate, limits):
    """The logits after some rounds, and whether all their splits were clear."""
    rows, is_clear = np.arange(len(logits)), True
    for number in range(n_rounds):
        gradient, curvature = gradient_and_curvature(number, logits)
        tree = grow(table, gradient, curvature, rows, limits)
        is_clear &= tree.is_clear
        logits = logits.copy()
        for node in tree.nodes:
            if not node.left:
                logits[node.rows] += leaf_values(
                    gradient[node.rows], curvature[node.rows], learning_rate, limits.reg_lambda
                )
    return logits, is_clear


def walk(forest, bins):
    """The leaf's line of each tree for the bins of one row; an index out of range raises."""
    lines = []
    for tree in range(forest.n_trees):
        begin, end = forest.first_node[tree : tree + 2].tolist()
        node, n_steps = begin, 0
        while forest.column[node] >= 0:
            assert begin <= node < end
            assert n_steps < end - begin
            b = int(bins[forest.column[node]])
            is_left = int(forest.goes_left[node, b // 64]) >> (b % 64) & 1
            node, n_steps = begin + int(forest.child[node]) + 1 - is_left, n_steps + 1
        assert begin <= node < end
        assert 0 <= forest.child[node] < len(forest.values)
        lines.append(int(forest.child[node]))
    return lines


def predicted(forest, bins, start):
    """The logits of each row: those at the start, and the values of its leaf in every tree."""
    logits = np.tile(np.asarray(start, np.float32), (len(bins), 1))
    for i, of_row in enumerate(bins):
        for line in walk(forest, of_row):
            logits[i] += forest.values[line]
    return logits
