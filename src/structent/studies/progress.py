"""How a study reports progress: to the caller's function, or by a bar on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from structent._optional import load_optional
from structent.errors import StructentError

# Called with the name of the step, how much of it is done, and how much there is: "folds", 3, 10.
OnProgress: TypeAlias = Callable[[str, int, int], None]


def tell_nobody(_what: str, _done: int, _total: int) -> None:
    """Report no progress."""


@contextmanager
def telling(progress: bool | OnProgress) -> Iterator[OnProgress]:
    """Yield the function to call with progress: the caller's, one that moves a bar, or neither.

    Examples
    --------
    >>> with telling(lambda what, done, total: print(what, done, "of", total)) as tell:
    ...     tell("folds", 3, 10)
    folds 3 of 10
    """
    if callable(progress):
        yield progress
    elif progress is True:
        rich = load_optional("rich.progress", extra="cli", purpose="A progress bar")
        # A console of its own: rich's shared one may have been made where there was no terminal.
        console = load_optional("rich.console", extra="cli", purpose="A progress bar").Console()
        columns = rich.Progress.get_default_columns()
        with rich.Progress(*columns, transient=True, console=console) as bar:
            task = bar.add_task("")
            yield lambda what, done, total: bar.update(
                task, description=what, completed=done, total=total
            )
    elif progress is False:
        yield tell_nobody
    else:
        raise StructentError(f"progress must be True, False or a function, got {progress!r}")
