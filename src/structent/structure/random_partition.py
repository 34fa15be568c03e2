"""A random partition: partitions of the same classes, each with a probability."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import checked_fraction, checked_weights
from structent._notebook import drawing_html
from structent._typing import FloatArray, IndexArray, IntArray, Label
from structent.errors import StructureError
from structent.structure import files
from structent.structure.drawing import draw
from structent.structure.labels import as_label, class_indices, shown, unknown_label
from structent.structure.partition import Partition
from structent.structure.similarity import similarity_of_blocks
from structent.structure.targets import LabelSets, label_sets_of
from structent.structure.tree import networkx_of, newick_of

if TYPE_CHECKING:
    from structent.structure.composed import ProductPartitions
    from structent.structure.samplers import PartitionSampler

CLASS_LEVEL = "class"  # the level of the singletons


@files.readable
@dataclass(frozen=True, eq=False, repr=False)
class RandomPartition:
    """A random variable Z that takes partitions of the classes as its values (Definition 6).

    Parameters
    ----------
    partitions
        Partitions of the same classes. The order of the classes may differ; the order of the first
        partition is kept.
    weights
        The probability of each partition, with sum 1; equal if None.
    levels
        The name of the level that each partition belongs to. Partitions of one level are different
        views of the same coarseness, and are scored together. If None, each partition is a level
        of its own, and the singletons are the level ``"class"``.

    Examples
    --------
    >>> every_outcome = Partition.singletons(["died", "readmitted", "well"])
    >>> sick_or_well = Partition.from_blocks([["died", "readmitted"], ["well"]])
    >>> hospital = RandomPartition([sick_or_well, every_outcome], weights=[0.3, 0.7])
    >>> hospital.block_of.tolist()
    [[0, 0, 1], [0, 1, 2]]
    >>> hospital.singleton_weight
    0.7
    """

    KIND: ClassVar[str] = "random_partition"  # in files

    partitions: tuple[Partition, ...]
    weights: FloatArray
    level_of: tuple[str, ...]

    def __init__(
        self,
        partitions: Iterable[Partition],
        weights: ArrayLike | None = None,
        *,
        levels: Sequence[str] | None = None,
    ) -> None:
        given = tuple(partitions)
        if not given or not all(isinstance(partition, Partition) for partition in given):
            raise StructureError(f"partitions must be one or more Partition, got {given!r}")
        classes = given[0].classes
        aligned = tuple(partition.reordered(classes) for partition in given)
        if weights is None:
            weights = np.full(len(aligned), 1.0 / len(aligned))
        level_of = _default_levels(aligned) if levels is None else _checked_levels(levels, aligned)
        self._set(aligned, checked_weights(weights, len(aligned)), level_of)

    @classmethod
    def _trusted(
        cls, partitions: tuple[Partition, ...], weights: FloatArray, level_of: tuple[str, ...]
    ) -> Self:
        structure = cls.__new__(cls)
        structure._set(partitions, weights, level_of)
        return structure

    def _set(
        self, partitions: tuple[Partition, ...], weights: FloatArray, level_of: tuple[str, ...]
    ) -> None:
        object.__setattr__(self, "partitions", partitions)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "level_of", level_of)

    # What it consists of

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, in the order in which every array holds them."""
        return self.partitions[0].classes

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def n_partitions(self) -> int:
        """How many partitions there are."""
        return len(self.partitions)

    @cached_property
    def block_of(self) -> IntArray:
        """The block of each class in each partition, (partitions, classes)."""
        # Not np.stack, which takes longer for a few small partitions: they are drawn at each step.
        block_of = np.empty((self.n_partitions, self.n_classes), dtype=np.int32)
        for t, partition in enumerate(self.partitions):
            block_of[t] = partition.block_of
        block_of.setflags(write=False)
        return block_of

    @property
    def singleton_weight(self) -> float:
        """The probability of the partition in which every class is a block of its own."""
        return float(self.weights[self._is_singletons].sum())

    @cached_property
    def levels(self) -> dict[str, tuple[Partition, ...]]:
        """The partitions of each level, from the coarsest level to the singletons."""
        members: dict[str, list[Partition]] = {}
        for name, partition in zip(self.level_of, self.partitions, strict=True):
            members.setdefault(name, []).append(partition)
        by_coarseness = sorted(members.items(), key=lambda item: item[1][0].n_blocks)
        return {name: tuple(partitions) for name, partitions in by_coarseness}

    def level(self, name: str) -> RandomPartition:
        """Return a structure of one level: its partitions, in proportion to their weights."""
        if name not in self.levels:
            raise unknown_label(name, self.levels, kind="level")
        kept = np.flatnonzero([level == name for level in self.level_of])
        # The partitions of a level without weight get equal weights, so that it can be scored.
        weights = _in_proportion(self.weights[kept], 1.0)
        return RandomPartition(
            [self.partitions[t] for t in kept], weights, levels=[name] * len(kept)
        )

    @cached_property
    def is_nested(self) -> bool:
        """Whether the partitions are nested: of any two, one refines the other."""
        ordered = sorted(self.partitions, key=len)
        return all(ordered[t + 1].refines(ordered[t]) for t in range(len(ordered) - 1))

    @cached_property
    def is_strictly_proper(self) -> bool:
        """Whether only the true distribution minimises the structured cross-entropy.

        This holds exactly if the indicators of the blocks with positive weight have rank
        ``n_classes``.

        Examples
        --------
        >>> from structent import circular
        >>> circular(range(12), width=3, singleton_weight=0.1).is_strictly_proper
        True
        >>> circular(range(12), width=3, singleton_weight=0.0).is_strictly_proper
        False
        """
        if self.singleton_weight > 0:
            return True
        weighted = self.block_of[self.weights > 0]
        indicators = [ids == np.arange(ids.max() + 1)[:, None] for ids in weighted]
        return int(np.linalg.matrix_rank(np.concatenate(indicators))) == self.n_classes

    def distance(self, a: Any, b: Any) -> float:
        """Return how far apart two classes are.

        If the partitions are nested, as in a hierarchy: the height of the lowest common ancestor,
        which is the number of levels that separate the two. Otherwise: the total weight of the
        partitions that separate them.

        Examples
        --------
        >>> from structent import hierarchy, ordinal
        >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
        >>> plants.distance("oak", "maple"), plants.distance("oak", "rose")
        (1.0, 2.0)
        >>> ordinal(["low", "mid", "high"], singleton_weight=0.0).distance("low", "high")
        1.0
        """
        first, second = class_indices([a, b], self.classes)
        separates = self.block_of[:, first] != self.block_of[:, second]
        if self.is_nested:
            return float(len({self.level_of[t] for t in np.flatnonzero(separates)}))
        return float(self.weights[separates].sum())

    def similarity(self) -> FloatArray:
        r"""Return how similar the classes are: the probability that Z puts two into one block.

        .. math:: K_{ij} = \sum_t w_t \, 1[B_t(i) = B_t(j)]

        The matrix, (classes, classes), is positive semi-definite and has ones on its diagonal. As
        the covariance of the parameters of the classes it is the prior of
        :class:`~structent.estimators.StructuredLogisticRegression`.

        Examples
        --------
        >>> from structent import hierarchy
        >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
        >>> plants.similarity().tolist()
        [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        return similarity_of_blocks(self.block_of, self.weights)

    # Others made from it

    def reweight(self, weights: ArrayLike) -> RandomPartition:
        """Return the same partitions with other weights."""
        return RandomPartition(self.partitions, weights, levels=self.level_of)

    def with_singleton_weight(self, singleton_weight: float) -> RandomPartition:
        """Return the structure with this weight on the singletons, the others in proportion.

        Examples
        --------
        >>> from structent import circular
        >>> seasons = circular(range(4), width=2, singleton_weight=0.5)
        >>> seasons.with_singleton_weight(0.2).weights.tolist()
        [0.4, 0.4, 0.2]
        """
        singleton_weight = checked_fraction(singleton_weight, "singleton_weight")
        if not self._is_singletons.any():
            return RandomPartition(
                [*self.partitions, Partition.singletons(self.classes)],
                np.append(self.weights * (1.0 - singleton_weight), singleton_weight),
                levels=[*self.level_of, class_level(self.level_of)],
            )
        if self._is_singletons.all():
            if singleton_weight == 1.0:
                return self
            raise StructureError(
                "singleton_weight must be 1 if the singletons are the only partition, "
                f"got {singleton_weight:g}"
            )
        weights = np.array(self.weights)
        for kept, total in (
            (self._is_singletons, singleton_weight),
            (~self._is_singletons, 1.0 - singleton_weight),
        ):
            weights[kept] = _in_proportion(weights[kept], total)
        return self.reweight(weights)

    @overload
    def product(self, other: RandomPartition) -> RandomPartition: ...

    @overload
    def product(self, other: PartitionSampler) -> ProductPartitions: ...

    def product(self, other: Any) -> Any:
        """Return the joint random partition W x Z of the pairs of classes (Definition 21).

        Its levels are pairs of levels: ``"width 3 x class"``. With a sampler it is a sampler.

        Examples
        --------
        >>> from structent import trivial
        >>> pairs = trivial(["hot", "cold"]).product(trivial(["wet", "dry"]))
        >>> pairs.classes
        (('hot', 'wet'), ('hot', 'dry'), ('cold', 'wet'), ('cold', 'dry'))
        """
        from structent.structure.composed import product_of  # noqa: PLC0415  samplers need this file

        return product_of(self, other)

    def relabel(self, new_label: Mapping[Any, Any]) -> RandomPartition:
        """Return the same structure with other names for its classes: ``{old: new}``."""
        old = [as_label(label) for label in new_label]
        class_indices(old, self.classes)
        if len(old) < self.n_classes:
            missing = next(label for label in self.classes if label not in set(old))
            raise StructureError(f"relabel must name every class, got no new name for {missing!r}")
        classes = [new_label[label] for label in self.classes]
        relabelled = (Partition(classes, p.block_of, names=p.given_names) for p in self.partitions)
        return RandomPartition(relabelled, self.weights, levels=self.level_of)

    def scramble(self, rng: np.random.Generator) -> RandomPartition:
        """Return the structure with its classes shuffled over the blocks (Experiment 1B).

        Sizes, weights and names of the blocks stay, but which class is in which block becomes
        meaningless. This is the control for any claim that a structure helps.
        """
        return self._shuffled(rng.permutation(self.n_classes))

    def _shuffled(self, places: IndexArray) -> RandomPartition:
        partitions = tuple(
            Partition._renumbered(self.classes, partition.block_of[places], partition.given_names)
            for partition in self.partitions
        )
        return RandomPartition._trusted(partitions, self.weights, self.level_of)

    def restrict(self, classes: Iterable[Any]) -> RandomPartition:
        """Return the structure of some of the classes, in the order given."""
        kept = tuple(map(as_label, classes))
        partitions = [partition.restrict(kept) for partition in self.partitions]
        return RandomPartition(partitions, self.weights, levels=self.level_of)

    # Labels

    def encode(self, labels: ArrayLike | Sequence[Any]) -> IndexArray:
        """Return the index of each label among the classes, (n,).

        Examples
        --------
        >>> from structent import trivial
        >>> trivial(["oak", "maple", "rose"]).encode(["rose", "oak"]).tolist()
        [2, 0]
        """
        return class_indices(labels, self.classes)

    def encode_with_blocks(self, labels: ArrayLike | Sequence[Any]) -> LabelSets:
        """Return the code of each label, and the classes that each code stands for.

        A label is a class, the name of a block (``"tree"``, or ``"superclass:trees"`` if levels
        share names) or a set of classes.

        Examples
        --------
        >>> from structent import hierarchy
        >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
        >>> plants.encode_with_blocks(["rose", "tree", {"oak", "rose"}]).classes_of_rows()
        [('rose',), ('oak', 'maple'), ('oak', 'rose')]
        """
        return label_sets_of(labels, self.classes, self.levels)

    # Files

    def to_json(self) -> str:
        """Return the structure as JSON text with a format version."""
        for partition in self.partitions:
            files.check_names(partition.given_names or ())
        partitions = [
            {"block_of": partition.block_of.tolist(), "names": partition.given_names}
            for partition in self.partitions
        ]
        content = {
            "classes": self.classes,
            "partitions": partitions,
            "weights": self.weights.tolist(),
            "levels": self.level_of,
        }
        return files.to_json(self.KIND, content)

    @classmethod
    def from_json(cls, text: str) -> RandomPartition:
        """Return the structure that :meth:`to_json` wrote."""
        content = files.from_json(text, cls.KIND)
        classes = files.classes_field(content, "classes")
        partitions = [
            Partition(
                classes,
                files.integers_field(partition, "block_of"),
                names=files.names_field(partition, "names"),
            )
            for partition in files.list_field(content, "partitions")
        ]
        weights, levels = (files.list_field(content, name) for name in ("weights", "levels"))
        return cls(partitions, weights, levels=levels)

    def to_newick(self) -> str:
        """Return a hierarchy as text in the Newick format, which programs for trees read.

        It has the classes and the names of their groups; :meth:`save` also keeps levels and
        weights. A group that is a single class of the same name is left out. The inverse is
        :func:`~structent.structure.hierarchy_from_newick`.

        Examples
        --------
        >>> from structent import hierarchy
        >>> plants = hierarchy({"oak": ("tree",), "red maple": ("tree",), "rose": ("flower",)})
        >>> plants.to_newick()
        "((oak,'red maple')tree,(rose)flower);"
        """
        return newick_of(self)

    def to_networkx(self) -> Any:
        """Return a hierarchy as a directed networkx tree, with edges from parent to child.

        The root is the node ``"root"``, the leaves are the classes, and the nodes between them are
        the names of the groups, with the attribute ``level``. A name that another node also has is
        written with its level, ``"kind:tree"``. ``hierarchy(tree)`` is the inverse.

        Examples
        --------
        >>> from structent import hierarchy
        >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
        >>> tree = plants.to_networkx()
        >>> list(tree["root"]), list(tree["tree"])
        (['tree', 'flower'], ['oak', 'maple'])
        """
        return networkx_of(self)

    save = files.save_structure

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RandomPartition:
        """Return the structure of a JSON file."""
        return cls.from_json(files.load(path))

    # A value: compared, hashed, pickled and printed by its content

    @cached_property
    def _is_singletons(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.array([partition.is_singletons for partition in self.partitions])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RandomPartition):
            return NotImplemented
        return (
            self.partitions == other.partitions
            and bool(np.array_equal(self.weights, other.weights))
            and self.level_of == other.level_of
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Kept, because compiled forms of a structure are looked up by it at every training step.
        return hash((self.partitions, self.weights.tobytes(), self.level_of))

    def __reduce__(self) -> tuple[Any, ...]:
        rebuilt = partial(RandomPartition, levels=self.level_of)
        return (rebuilt, (self.partitions, np.array(self.weights)))

    def __str__(self) -> str:
        return draw(self.classes, self.partitions, self.weights, self.level_of)

    def __repr__(self) -> str:
        return (
            f"<RandomPartition of {self.n_classes} classes, {self.n_partitions} partitions, "
            f"singleton_weight {self.singleton_weight:g}>"
        )

    def _repr_html_(self) -> str:
        return drawing_html(self)


def trivial(classes: Iterable[Any]) -> RandomPartition:
    """Return the trivial random partition: the singletons, with probability one (Definition 11).

    Every quantity on it is the ordinary one: its entropy is Shannon's, its loss cross-entropy.

    Examples
    --------
    >>> trivial(["maple", "oak", "trout"]).singleton_weight
    1.0
    """
    return RandomPartition([Partition.singletons(classes)])


def with_singletons(
    partitions: Sequence[Partition], singleton_weight: float, *, level: str
) -> RandomPartition:
    """Return equally probable partitions as one level, followed by the singletons."""
    singleton_weight = checked_fraction(singleton_weight, "singleton_weight")
    share = (1.0 - singleton_weight) / len(partitions)
    return RandomPartition(
        [*partitions, Partition.singletons(partitions[0].classes)],
        [share] * len(partitions) + [singleton_weight],
        levels=[level] * len(partitions) + [CLASS_LEVEL],
    )


def class_level(taken: Collection[str]) -> str:
    """Return the name of the level of the singletons, given the names of the other levels.

    "class" is also a rank of biology.

    >>> class_level(["genus", "family"]), class_level(["family", "order", "class"])
    ('class', 'label')
    """
    return CLASS_LEVEL if CLASS_LEVEL not in taken else free_name("label", taken)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, followed by a number if it is taken.

    >>> free_name("cut", []), free_name("cut", ["cut", "cut (2)"])
    ('cut', 'cut (3)')
    """
    numbered = (f"{name} ({number})" for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)


def _in_proportion(weights: FloatArray, total: float) -> FloatArray:
    ratios = weights if weights.sum() > 0 else np.ones_like(weights)
    scaled: FloatArray = ratios * (total / ratios.sum())
    return scaled


def _default_levels(partitions: tuple[Partition, ...]) -> tuple[str, ...]:
    """Make each partition a level of its own, and the singletons the level of the classes."""
    by_coarseness = sorted(range(len(partitions)), key=lambda t: partitions[t].n_blocks)
    level_of = [CLASS_LEVEL] * len(partitions)
    coarse = [t for t in by_coarseness if not partitions[t].is_singletons]
    for number, t in enumerate(coarse, start=1):
        level_of[t] = f"level {number}"
    return tuple(level_of)


def _checked_levels(levels: Sequence[str], partitions: tuple[Partition, ...]) -> tuple[str, ...]:
    """Return the name of each partition's level, if names are unique within a level."""
    named = not isinstance(levels, str) and all(isinstance(level, str) for level in levels)
    if not named or len(levels) != len(partitions):
        raise StructureError(
            f"levels must be one name for each of the {len(partitions)} partitions, got "
            f"{shown(levels)}"
        )
    members: dict[str, list[Partition]] = {}
    for level, partition in zip(levels, partitions, strict=True):
        members.setdefault(level, []).append(partition)
    for level, of_level in members.items():
        _check_names_within_level(level, of_level)
    return tuple(map(str, levels))


def _check_names_within_level(level: str, partitions: list[Partition]) -> None:
    """Check that a name means one set of classes in a level, or "tree" could mean two."""
    if len(partitions) == 1 or all(partition.given_names is None for partition in partitions):
        return
    meaning: dict[str, tuple[Label, ...]] = {}
    for partition in partitions:
        for name, block in zip(partition.names, partition.blocks, strict=True):
            if meaning.setdefault(name, block) != block:
                raise StructureError(
                    f"block names must be unique within a level, got {shown(name)} for two "
                    f"different blocks of level {shown(level)}; give the partitions levels of "
                    "their own"
                )
