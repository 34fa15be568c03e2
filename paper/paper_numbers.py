"""The paper's settings and results, with which ours are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class MonthLosses(NamedTuple):
    """Test log loss by standard cross-entropy, and at the best weight of both structures."""

    standard: float
    fixed: float
    variable: float


class CountyLosses(NamedTuple):
    """Test log loss by standard cross-entropy, and by each of ``COUNTY_COMBINATIONS``."""

    standard: float
    variable: tuple[float, ...]


SINGLETON_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MONTH_BLOCKS = 4

# By training rows: the figure "Log Loss vs Singleton Weight", from its author's notebooks.
MONTH_LOSSES = {
    500: MonthLosses(2.2196, 2.2058, 2.2133),
    1_000: MonthLosses(2.1846, 2.1746, 2.1809),
    2_000: MonthLosses(2.1633, 2.1550, 2.1602),
    5_000: MonthLosses(2.1471, 2.1432, 2.1454),
    10_000: MonthLosses(2.1363, 2.1343, 2.1356),
}

# Number of blocks and singleton weight, in the order of the paper's columns.
COUNTY_COMBINATIONS = ((10, 0.25), (10, 0.5), (10, 0.75), (5, 0.5), (20, 0.5))

# By training rows: the table "Log Loss values for County Prediction".
COUNTY_LOSSES = {
    500: CountyLosses(3.883, (3.865, 3.866, 3.876, 3.868, 3.869)),
    1_000: CountyLosses(3.650, (3.639, 3.634, 3.643, 3.636, 3.637)),
    2_000: CountyLosses(3.534, (3.532, 3.521, 3.529, 3.523, 3.522)),
    5_000: CountyLosses(3.473, (3.466, 3.462, 3.468, 3.465, 3.463)),
    10_000: CountyLosses(3.441, (3.440, 3.434, 3.438, 3.435, 3.434)),
    20_000: CountyLosses(3.417, (3.416, 3.412, 3.415, 3.413, 3.412)),
}

# Losses, by their names in results; losses of other authors were not tried in the paper.
PAPER_LOSSES = ("standard", "structured")
OTHER_LOSSES = (
    "label smoothing", "hierarchical .1", "hierarchical .3", "hierarchical .5",
    "soft labels 10", "soft labels 30",
)  # fmt: skip
# With the structure in the last layer: alone, with the paper's loss, and scrambled.
LAYERS = ("structured layer", "loss and layer", "scrambled layer")
# Accuracy at the level of classes, superclasses, categories and supercategories.
ACCURACIES = ("accuracy", "accuracy 2", "accuracy 3", "accuracy 4")
# The metrics of a network after every epoch.
MEASURES = ("cross-entropy", "structured", *ACCURACIES)
# The number of images in Experiment 1B, on which other losses are tried, too.
SIZE_OF_1B = 5000
# The columns of the tables on CIFAR-100; the paper's Cr Ent, Acc, Acc2, Acc3, Acc4.
COLUMNS = ("cross-entropy", "accuracy", "accuracy 2", "accuracy 3", "accuracy 4")


@dataclass(frozen=True)
class PaperCase:
    """Two lines of a table of the paper: the same case under both losses.

    Attributes
    ----------
    setting
        How its numbers were obtained, in words.
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
