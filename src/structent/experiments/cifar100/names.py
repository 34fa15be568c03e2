"""The names of losses and of what is measured, as results have them."""

PAPER_LOSSES = ("standard", "structured")
OTHER_LOSSES = (
    "label smoothing", "hierarchical .1", "hierarchical .3", "hierarchical .5",
    "soft labels 10", "soft labels 30",
)  # fmt: skip
# At the level of classes, superclasses, categories and supercategories.
ACCURACIES = ("accuracy", "accuracy 2", "accuracy 3", "accuracy 4")
MEASURES = ("cross-entropy", "structured", *ACCURACIES)
# How many images Experiment 1B has, and other losses are tried on.
SIZE_OF_1B = 5000
