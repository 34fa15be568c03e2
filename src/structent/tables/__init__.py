"""Tables for the command line: what is read from a file, and what becomes a feature or a label.

A command reads in this order: :func:`read_labels` gives the classes, from which
:func:`structent.specs.parse_structure` makes the structure; the columns that define the structure
are then ``excluded`` from :func:`features_and_labels`. What that learned of the columns turns later
tables into the same features: :func:`read_features`.
"""

from structent.tables.columns import FeatureColumn
from structent.tables.labelled import LabelledTable, features_and_labels, read_features
from structent.tables.labels import Labels, read_labels
from structent.tables.reading import column_names, read_table

__all__ = [
    "FeatureColumn",
    "LabelledTable",
    "Labels",
    "column_names",
    "features_and_labels",
    "read_features",
    "read_labels",
    "read_table",
]
