"""What a sampler is: whatever gives a random partition for each iteration."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

from structent._typing import Label
from structent.errors import StructureError
from structent.structure.random_partition import RandomPartition


@runtime_checkable
class PartitionSampler(Protocol):
    """Whatever gives a random partition for each iteration.

    ``sample`` must be a pure function of the iteration, so that workers, ranks and restarts agree
    without talking.
    """

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes of every partition drawn."""

    def sample(self, iteration: int) -> RandomPartition:
        """Return the random partition of this iteration."""


Structure: TypeAlias = RandomPartition | PartitionSampler


def checked_structure(structure: Any, taker: str) -> Structure:
    """Return a random partition or a sampler, or say that nothing else is taken."""
    if not isinstance(structure, RandomPartition | PartitionSampler):
        raise StructureError(f"{taker} takes a RandomPartition or a sampler, got {structure!r}")
    return structure


def checked_fixed(structure: Any, name: str = "structure") -> RandomPartition:
    """Return a random partition, or say how to come by one."""
    if isinstance(structure, RandomPartition):
        return structure
    raise StructureError(
        f"{name} must be a RandomPartition, got {type(structure).__name__}; "
        "RandomPartition([partition]) makes one of a partition, .sample(0) draws one of a sampler"
    )


def drawn(structure: Structure, iteration: int, singleton_weight: float | None) -> RandomPartition:
    """Return the random partition of an iteration, with this weight on the singletons if any."""
    fixed = structure if isinstance(structure, RandomPartition) else structure.sample(iteration)
    return fixed if singleton_weight is None else fixed.with_singleton_weight(singleton_weight)


def seeds_of(structure: Structure) -> frozenset[int]:
    """Return the seeds that the draws of a structure come from; none where nothing is drawn."""
    seeds: frozenset[int] = getattr(structure, "seeds", frozenset())
    return seeds
