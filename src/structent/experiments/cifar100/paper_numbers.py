"""The paper's tables of experiments 1A, 1C and 1D."""

from __future__ import annotations

from dataclasses import dataclass

# The columns of all three tables; the paper's Cr Ent, Acc, Acc2, Acc3, Acc4.
COLUMNS = ("cross-entropy", "accuracy", "accuracy 2", "accuracy 3", "accuracy 4")


@dataclass(frozen=True)
class PaperCase:
    """Two lines of a table of the paper: the same case under both losses.

    Attributes
    ----------
    setting
        What its numbers rest on, in words.
    standard, structured
        The best test values over epochs of the trajectories averaged over trials, by column.
    decimals
        With how many decimals its cross-entropy is printed; accuracies have four.
    """

    setting: str
    standard: tuple[float, float, float, float, float]
    structured: tuple[float, float, float, float, float]
    decimals: int

    def of(self, loss: str) -> dict[str, float] | None:
        """Return the values of a loss by column; None for a loss that the table does not have."""
        values = {"standard": self.standard, "structured": self.structured}.get(loss)
        return None if values is None else dict(zip(COLUMNS, values, strict=True))


TABLE_1A = {  # by training images
    1000: PaperCase(
        "10 trials",
        standard=(4.099, 0.1475, 0.2643, 0.3650, 0.4954),
        structured=(3.999, 0.1569, 0.2873, 0.3930, 0.5171),
        decimals=3,
    ),
    2500: PaperCase(
        "10 trials",
        standard=(3.521, 0.2345, 0.3613, 0.4576, 0.5648),
        structured=(3.429, 0.2405, 0.3829, 0.4804, 0.5833),
        decimals=3,
    ),
    5000: PaperCase(
        "10 trials",
        standard=(2.999, 0.2993, 0.4335, 0.5216, 0.6149),
        structured=(2.931, 0.3077, 0.4578, 0.5458, 0.6334),
        decimals=3,
    ),
    10000: PaperCase(
        "5 trials",
        standard=(2.543, 0.3678, 0.5076, 0.5860, 0.6665),
        structured=(2.485, 0.3725, 0.5337, 0.6122, 0.6821),
        decimals=3,
    ),
    50000: PaperCase(
        "1 trial",
        standard=(2.197, 0.4365, 0.5843, 0.6502, 0.7135),
        structured=(2.186, 0.4369, 0.5952, 0.6652, 0.7189),
        decimals=3,
    ),
}

TABLE_1C = {  # by network
    "ResNet50": PaperCase(
        "50,000 images",
        standard=(0.7956, 0.8028, 0.8857, 0.9085, 0.9233),
        structured=(0.7772, 0.8075, 0.8926, 0.9147, 0.9276),
        decimals=4,
    ),
    "MobileNetV2": PaperCase(
        "50,000 images",
        standard=(0.7260, 0.8051, 0.8894, 0.9109, 0.9264),
        structured=(0.7224, 0.8080, 0.8943, 0.9166, 0.9313),
        decimals=4,
    ),
}

TABLE_1D = {  # by training images
    1000: PaperCase(
        "3 trials",
        standard=(2.556, 0.3620, 0.5300, 0.6132, 0.6772),
        structured=(2.528, 0.3658, 0.5414, 0.6260, 0.6878),
        decimals=3,
    ),
}
