"""Names in files without types, as CSV and Newick: they are what the labels of the data are."""

import re
from collections.abc import Sequence

from structent._typing import Label

WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_BOOLS = {"true": True, "false": False}


def as_typed(names: Sequence[str], labels: Sequence[Label]) -> list[Label]:
    """Return names as whole numbers or bools if the labels are and all names can be, else as text.

    Examples
    --------
    >>> as_typed(["1", "02"], [1, 2, 3]), as_typed(["1", "02"], ["1", "2"])
    ([1, 2], ['1', '02'])
    """
    types = {type(label) for label in labels}
    if types == {int} and all(WHOLE_NUMBER.fullmatch(name) for name in names):
        return [int(name) for name in names]
    if types == {bool} and all(name.lower() in _BOOLS for name in names):
        return [_BOOLS[name.lower()] for name in names]
    return list(names)
