"""Samplers: a random partition for each iteration, always the same or drawn from a graph."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy.sparse.csgraph import shortest_path

from structent._checks import checked_fraction, checked_integer
from structent._notebook import drawing_html
from structent._typing import FloatArray, Label
from structent.errors import StructureError
from structent.structure import files
from structent.structure.graph import LabelGraph, adjacency
from structent.structure.partition import Partition
from structent.structure.random_partition import CLASS_LEVEL, RandomPartition
from structent.structure.similarity import N_DRAWS, mean_similarity
from structent.structure.spanning_tree import sample_connected_blocks

if TYPE_CHECKING:
    from structent.structure.composed import ProductPartitions

_MOST = 2**63 - 1  # what a signed 64-bit counter holds, in every framework


@runtime_checkable
class PartitionSampler(Protocol):
    """An object that gives a random partition for each iteration.

    ``sample`` must be a pure function of the iteration, so that workers, ranks and restarts agree
    without communication.
    """

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes of every partition drawn."""

    def sample(self, iteration: int) -> RandomPartition:
        """Return the random partition of this iteration."""


Structure: TypeAlias = RandomPartition | PartitionSampler


def checked_structure(structure: Any, name: str = "structure") -> Structure:
    """Return a random partition or a sampler, or say how to make one."""
    if not isinstance(structure, RandomPartition | PartitionSampler):
        raise StructureError(
            f"{name} must be a RandomPartition or a sampler, got {type(structure).__name__}; "
            "hierarchy(), circular() and ordinal() make one"
        )
    return structure


def checked_fixed(structure: Any, name: str = "structure") -> RandomPartition:
    """Return a random partition, or say how to make one from a partition or a sampler."""
    if isinstance(structure, RandomPartition):
        return structure
    raise StructureError(
        f"{name} must be a RandomPartition, got {type(structure).__name__}; "
        "RandomPartition([partition]) makes one from a partition, .sample(0) draws one from a "
        "sampler"
    )


def drawn(structure: Structure, iteration: int, singleton_weight: float | None) -> RandomPartition:
    """Return the random partition of an iteration, with this weight on the singletons if any."""
    fixed = structure if isinstance(structure, RandomPartition) else structure.sample(iteration)
    return fixed if singleton_weight is None else fixed.with_singleton_weight(singleton_weight)


def seeds_of(structure: Structure) -> frozenset[int]:
    """Return the seeds of the draws of a structure; none if nothing is drawn."""
    seeds: frozenset[int] = getattr(structure, "seeds", frozenset())
    return seeds


def product_with(sampler: Structure, other: Structure) -> ProductPartitions:
    """Return the sampler of pairs of one of its classes and one class of another structure.

    At each iteration it gives the product of the two random partitions. The other is a random
    partition, or a sampler with another seed.
    """
    from structent.structure.composed import (  # noqa: PLC0415  it needs this file
        ProductPartitions,
    )

    return ProductPartitions(sampler, other)


@files.readable
@dataclass(frozen=True)
class FixedStructure:
    """The sampler that gives the same random partition at every iteration.

    Examples
    --------
    >>> from structent import trivial
    >>> FixedStructure(trivial(["a", "b"])).sample(7) == trivial(["a", "b"])
    True
    """

    KIND: ClassVar[str] = "fixed_structure"  # in files

    structure: RandomPartition

    def __post_init__(self) -> None:
        if not isinstance(self.structure, RandomPartition):
            raise StructureError(
                "a fixed structure must be a RandomPartition, got "
                f"{type(self.structure).__name__}; a sampler is used as it is"
            )

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes of the structure."""
        return self.structure.classes

    def sample(self, iteration: int) -> RandomPartition:  # noqa: ARG002  the same at each one
        """Return the structure."""
        return self.structure

    def with_singleton_weight(self, singleton_weight: float) -> FixedStructure:
        """Return the structure with this weight on the singletons, the others in proportion."""
        return FixedStructure(self.structure.with_singleton_weight(singleton_weight))

    @property
    def singleton_weight(self) -> float:
        """The weight of the singletons."""
        return self.structure.singleton_weight

    def similarity(self, *, n_draws: int = N_DRAWS) -> FloatArray:  # noqa: ARG002  nothing is drawn
        """Return how similar the classes of the structure are, (classes, classes)."""
        return self.structure.similarity()

    def scramble(self, rng: np.random.Generator) -> FixedStructure:
        """Return the structure with its classes shuffled over the blocks."""
        return FixedStructure(self.structure.scramble(rng))

    product = product_with

    def to_json(self) -> str:
        """Return the sampler as JSON text with a format version."""
        return files.to_json(self.KIND, {"structure": files.as_part(self.structure)})

    @classmethod
    def from_json(cls, text: str) -> FixedStructure:
        """Return the sampler that :meth:`to_json` wrote."""
        return cls(files.from_part(files.field(files.from_json(text, cls.KIND), "structure")))

    save = files.save_structure

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FixedStructure:
        """Return the sampler of a JSON file."""
        return cls.from_json(files.load(path))


@files.readable
@dataclass(frozen=True, init=False)
class SpanningTreePartitions:
    """The sampler of the paper's section 4.3.1, for labels that form a graph.

    At each iteration a spanning tree of the graph is drawn uniformly (Wilson's algorithm), and
    ``n_blocks - 1`` of its edges are removed at random. That partition into connected blocks has
    the weight ``1 - singleton_weight``, the singletons have the rest.

    Parameters
    ----------
    graph
        The graph of the classes.
    n_blocks
        The number of blocks m, from 1 to the number of classes.
    singleton_weight
        The weight of the singletons.
    seed
        Draws are a pure function of ``(seed, iteration)``.

    Examples
    --------
    >>> square = LabelGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    >>> sampler = SpanningTreePartitions(square, n_blocks=2, singleton_weight=0.5)
    >>> sampler.sample(3) == sampler.sample(3)
    True
    >>> sampler.sample(3).partitions[0].n_blocks
    2
    """

    KIND: ClassVar[str] = "spanning_tree_partitions"  # in files

    graph: LabelGraph
    n_blocks: int
    singleton_weight: float
    seed: int

    def __init__(
        self, graph: LabelGraph, n_blocks: int, singleton_weight: float, seed: int = 0
    ) -> None:
        if not isinstance(graph, LabelGraph):
            raise StructureError(
                f"graph must be a LabelGraph, got {type(graph).__name__}; LabelGraph(edges) makes "
                "one from pairs of classes or a networkx graph"
            )
        n_blocks = checked_integer(
            n_blocks,
            "n_blocks",
            at_least=1,
            at_most=graph.n_classes,
            reason=", the number of classes",
        )
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "n_blocks", n_blocks)
        weight = checked_fraction(singleton_weight, "singleton_weight")
        object.__setattr__(self, "singleton_weight", weight)
        seed = checked_integer(seed, "seed", at_least=0, at_most=_MOST)
        object.__setattr__(self, "seed", seed)

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes of the graph."""
        return self.graph.classes

    @property
    def seeds(self) -> frozenset[int]:
        """The seed, as a set: a sampler made of several has several."""
        return frozenset([self.seed])

    def _repr_html_(self) -> str:
        return drawing_html(self)

    def sample(self, iteration: int) -> RandomPartition:
        """Return the random partition of this iteration."""
        iteration = checked_integer(iteration, "iteration", at_least=0, at_most=_MOST)
        block_of = sample_connected_blocks(
            self.graph.start,
            self.graph.neighbour_indices,
            self._root,
            self.n_blocks,
            np.uint64(self.seed),
            np.uint64(iteration),
        )
        drawn = Partition._trusted(self.classes, block_of)
        return RandomPartition._trusted(
            (drawn, self._singletons), self._weights, ("blocks", CLASS_LEVEL)
        )

    def with_singleton_weight(self, singleton_weight: float) -> SpanningTreePartitions:
        """Return the sampler of the same partitions with this weight on the singletons."""
        return SpanningTreePartitions(self.graph, self.n_blocks, singleton_weight, self.seed)

    def similarity(self, *, n_draws: int = N_DRAWS) -> FloatArray:
        """Return the probability that a draw puts two classes into one block, (classes, classes).

        It is exact if the graph is a tree or a ring. Otherwise it is the mean over the first
        ``n_draws`` iterations, with a standard error of at most ``0.5 / sqrt(n_draws)``.

        Examples
        --------
        >>> path = LabelGraph([("S", "M"), ("M", "L")])  # one of its two edges is cut
        >>> SpanningTreePartitions(path, n_blocks=2, singleton_weight=0.0).similarity().tolist()
        [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
        """
        together = self._exactly_together
        if together is None:
            return mean_similarity(self, n_draws)
        similarity = (1.0 - self.singleton_weight) * together
        np.fill_diagonal(similarity, 1.0)
        return similarity

    def scramble(self, rng: np.random.Generator) -> SpanningTreePartitions:
        """Return the sampler of the same graph with its classes shuffled over the nodes."""
        other = [self.classes[place] for place in rng.permutation(len(self.classes))]
        node = dict(zip(self.classes, other, strict=True))
        edges = [(node[a], node[b]) for a, b in self.graph.edges]
        graph = LabelGraph(edges, self.classes)
        return SpanningTreePartitions(graph, self.n_blocks, self.singleton_weight, self.seed)

    product = product_with

    def to_json(self) -> str:
        """Return the sampler as JSON text with a format version."""
        content = {
            "classes": self.classes,
            "edges": self.graph.edges,
            "n_blocks": self.n_blocks,
            "singleton_weight": self.singleton_weight,
            "seed": self.seed,
        }
        return files.to_json(self.KIND, content)

    @classmethod
    def from_json(cls, text: str) -> SpanningTreePartitions:
        """Return the sampler that :meth:`to_json` wrote."""
        content = files.from_json(text, cls.KIND)
        classes = files.classes_field(content, "classes")
        edges = [files.label_from_json(edge) for edge in files.list_field(content, "edges")]
        return cls(
            LabelGraph(edges, classes),
            files.field(content, "n_blocks"),
            files.field(content, "singleton_weight"),
            files.field(content, "seed"),
        )

    save = files.save_structure

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SpanningTreePartitions:
        """Return the sampler of a JSON file."""
        return cls.from_json(files.load(path))

    @property
    def _exactly_together(self) -> FloatArray | None:
        """The probability that two nodes share a block of the drawn partition, if it is known.

        In a tree the path between two nodes has a fixed length. A ring becomes a tree when one of
        its edges is removed, all with the same probability.
        """
        n_nodes, n_edges = self.graph.n_classes, len(self.graph.edges)
        if n_edges > n_nodes or (n_edges == n_nodes and self.graph.degrees.max() > 2):
            return None
        # The chance that none of L edges is cut: prod_{i < L} (kept - i) / (edges - i), at L.
        edge = np.arange(n_nodes - 1)
        none_cut = np.cumprod([1.0, *((n_nodes - self.n_blocks - edge) / (n_nodes - 1 - edge))])
        length = shortest_path(adjacency(self.graph), unweighted=True).astype(np.int64)
        if n_edges < n_nodes:
            return none_cut[length]
        other = np.minimum(n_nodes - length, n_nodes - 1)  # taken if the short way is broken
        broken = length / n_nodes
        return (1.0 - broken) * none_cut[length] + broken * none_cut[other]

    @cached_property
    def _root(self) -> int:
        return int(self.graph.degrees.argmax())

    @cached_property
    def _singletons(self) -> Partition:
        return Partition.singletons(self.classes)

    @cached_property
    def _weights(self) -> FloatArray:
        weights = np.array([1.0 - self.singleton_weight, self.singleton_weight])
        weights.setflags(write=False)
        return weights
