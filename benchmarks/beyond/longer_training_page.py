"""The page on longer training: both losses on 5,000 images, for as long as in the paper."""

from collections.abc import Sequence

from structent.experiments.cifar100.names import PAPER_LOSSES, SIZE_OF_1B
from structent.experiments.cifar100.paper_numbers import TABLE_1A
from structent.experiments.cifar100.places import Place
from structent.experiments.cifar100.readings import READINGS, cases
from structent.experiments.cifar100.tables import beside_paper
from structent.experiments.kept import Finished
from structent.experiments.pages import about


def page(own: Sequence[Finished], shorter: Sequence[Finished], command: str, *, n_runs: int) -> str:
    """Return the page as Markdown, of the longer runs and those of the quick preset."""
    parts = [
        "# Longer training on 5,000 images",
        (
            "In [1A](cifar100-1A.md) the structured loss finds the class less often than the "
            "standard loss with 5,000 images, where the paper has it find the class more often. "
            "The quick preset learns there for 60 epochs, whose rates add up to 0.6 of the paper's "
            "sum; with fewer images they add up to all of it. Here they do with 5,000 images, too: "
            "100 epochs from 1e-3, everything else as it was."
        ),
        *about(own, n_runs, command),
        "Values and differences are read as in [1A](cifar100-1A.md#ours-beside-the-papers).",
        "## 100 epochs",
        _values(own),
        "## 60 epochs, the quick preset",
        _values(shorter),
    ]
    return "\n\n".join(parts) + "\n"


def _values(runs: Sequence[Finished]) -> str:
    (case,) = cases(runs) or [None]
    return beside_paper(
        [Place(f"{SIZE_OF_1B:,} images", str(SIZE_OF_1B), case, TABLE_1A[SIZE_OF_1B])],
        runs,
        losses=PAPER_LOSSES,
        pairs=[("structured", "standard")],
        readings=list(READINGS),
    )
