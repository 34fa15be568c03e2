"""How a comparison tells what it is doing."""

from collections.abc import Callable
from typing import TypeAlias

# Told what is being done, how much of it is done, and how much there is: "folds", 3, 10.
OnProgress: TypeAlias = Callable[[str, int, int], None]
