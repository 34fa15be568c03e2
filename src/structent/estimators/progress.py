"""A progress bar of boosting rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from structent._optional import load_optional
from structent.estimators.training import OnRound


@contextmanager
def round_progress(n_rounds: int, *, shown: bool) -> Iterator[OnRound]:
    """Give what is called after every round, with or without a bar on the terminal."""
    if not shown:
        yield lambda _round, _log_loss: None
        return
    rich = load_optional("rich.progress", extra="cli", purpose="A progress bar")
    columns = (
        *rich.Progress.get_default_columns(),
        rich.TextColumn("{task.completed} rounds"),
        rich.TextColumn("{task.fields[score]}"),
    )
    with rich.Progress(*columns) as bar:
        task = bar.add_task("boosting", total=n_rounds, score="")

        def on_round(number: int, log_loss: float | None) -> None:
            score = "" if log_loss is None else f"validation log loss {log_loss:.4f}"
            bar.update(task, completed=number + 1, score=score)

        yield on_round
