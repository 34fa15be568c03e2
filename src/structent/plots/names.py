"""Names of classes, blocks and levels, as a figure can show them."""

from typing import Any

LONGEST = 30


def shown(name: Any, longest: int = LONGEST) -> str:
    r"""Return a name as one short line, which matplotlib must not take for mathematics.

    Examples
    --------
    >>> shown("a\nb"), shown("cost in $"), shown("incomprehensibilities", longest=8)
    ('a b', 'cost in \\$', 'incompr…')
    """
    line = "".join(letter if letter.isprintable() else " " for letter in str(name))
    if len(line) > longest:
        line = line[: longest - 1] + "…"
    return line.replace("$", r"\$")
