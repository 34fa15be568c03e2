"""Rows to decide on, and the chain of growing sets from its definition."""

import numpy as np
from hypothesis import strategies as st

from structent import hierarchy
from tests.metrics.problems import dyadic
from tests.strategies import random_partitions

PLANTS = hierarchy({"elm": ("tree",), "maple": ("tree",), "rose": ("flower",)})


@st.composite
def undecided_rows(draw, structures=None, max_rows=5):
    """A structure and probabilities, both in multiples of 1/64: ties are ties."""
    structure = draw(random_partitions() if structures is None else structures)
    structure = structure.reweight(draw(dyadic(structure.n_partitions)))
    n = draw(st.integers(1, max_rows))
    return structure, np.stack([draw(dyadic(structure.n_classes)) for _ in range(n)])


def chain_of(row, structure):
    """A row's growing sets, each with its probability, from the definition."""
    classes = structure.classes

    def total(members):
        return sum(q for q, label in zip(row, classes, strict=True) if label in members)

    blocks = [block for partition in structure.partitions for block in partition.blocks]
    chain = [(classes[row.tolist().index(row.max())],)]
    while len(chain[-1]) < len(classes):
        around = [b for b in blocks if set(chain[-1]) < set(b)]
        smallest = [b for b in around if len(b) == min(map(len, around))]
        chain.append(max(smallest, key=total) if smallest else classes)
    return [(members, total(members)) for members in chain]
