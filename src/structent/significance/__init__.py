"""Is a structure significant? It against its scrambled copies, against none, and part by part."""

from structent.significance.gains import PartitionGain, partition_gains
from structent.significance.result import StructureTest
from structent.significance.run import structure_test

__all__ = ["PartitionGain", "StructureTest", "partition_gains", "structure_test"]
