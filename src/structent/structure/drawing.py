"""A structure as text: its partitions, their weights and blocks, at most a screenful."""

from structent._typing import FloatArray, Label
from structent.structure.partition import Partition

_WIDTH = 80
_MOST_PARTITIONS = 18
_LONGEST_LEVEL = 20


def draw(
    classes: tuple[Label, ...],
    partitions: tuple[Partition, ...],
    weights: FloatArray,
    level_of: tuple[str, ...],
) -> str:
    """Return a table with one partition per line, at most 80 columns wide and 22 lines long."""
    width = min(_LONGEST_LEVEL, max(map(len, level_of)))
    lines = [
        _cut(f"{len(classes)} classes: {', '.join(map(str, classes[:40]))}", _WIDTH),
        f"weight  blocks  {'level':<{width}}  blocks, largest first",
    ]
    for partition, weight, level in list(zip(partitions, weights, level_of, strict=True))[
        :_MOST_PARTITIONS
    ]:
        start = f"{weight:6.4f}  {partition.n_blocks:6}  {_cut(level, width):<{width}}  "
        lines.append(start + _cut(_block_list(partition), _WIDTH - len(start)))
    hidden = len(partitions) - _MOST_PARTITIONS
    if hidden > 0:
        rest = weights[_MOST_PARTITIONS:].sum()
        lines.append(f"{rest:6.4f}          and {hidden} partitions more, weights summed")
    return "\n".join(lines)


def _block_list(partition: Partition) -> str:
    if partition.is_singletons:
        return "every class by itself"
    sized = sorted(
        zip(map(len, partition.blocks), partition.names, strict=True), key=lambda item: -item[0]
    )
    return ", ".join(f"{name} ({size})" for size, name in sized[:20])


def _cut(text: str, width: int) -> str:
    # A name may contain characters that end a line or move the cursor.
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return shown if len(shown) <= width else shown[: max(width - 3, 0)] + "..."
