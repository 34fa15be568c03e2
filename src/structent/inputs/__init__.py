"""Tables and structures as users bring them: CSV, TSV and Parquet; short forms and files."""

from structent.inputs.columns import FeatureColumn
from structent.inputs.labelled import (
    LabelledTable,
    Labels,
    features_and_labels,
    read_features,
    read_labels,
)
from structent.inputs.reading import column_names, read_table
from structent.inputs.specs import Specified, parse_structure
from structent.inputs.structure_files import write_structure

__all__ = [
    "FeatureColumn",
    "LabelledTable",
    "Labels",
    "Specified",
    "column_names",
    "features_and_labels",
    "parse_structure",
    "read_features",
    "read_labels",
    "read_table",
    "write_structure",
]
