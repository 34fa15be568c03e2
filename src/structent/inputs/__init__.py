"""Tables and structures as users bring them: CSV, TSV and Parquet; short forms and files."""

from structent.inputs.features import (
    FeatureColumn,
    LabelledTable,
    features_and_labels,
    features_from,
)
from structent.inputs.specs import Specified, columns_of, parse_structure
from structent.inputs.structure_files import structure_from_file, write_structure
from structent.inputs.table import Labels, Table, open_table

__all__ = [
    "FeatureColumn",
    "LabelledTable",
    "Labels",
    "Specified",
    "Table",
    "columns_of",
    "features_and_labels",
    "features_from",
    "open_table",
    "parse_structure",
    "structure_from_file",
    "write_structure",
]
