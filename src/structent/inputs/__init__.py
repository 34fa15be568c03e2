"""Tables and structures as users bring them: CSV, TSV and Parquet; short forms and files."""

from structent.inputs.features import (
    FeatureColumn,
    LabelledTable,
    features_and_labels,
    features_from,
)
from structent.inputs.leaks import ColumnRemark
from structent.inputs.specs import (
    Specified,
    columns_of,
    files_of,
    has_classes_of_the_data,
    parse_structure,
    with_order,
)
from structent.inputs.structure_files import structure_from_file, write_structure
from structent.inputs.table import Labels, Table, open_table
from structent.inputs.taxonomy import hierarchy_from_taxonomy

__all__ = [
    "ColumnRemark",
    "FeatureColumn",
    "LabelledTable",
    "Labels",
    "Specified",
    "Table",
    "columns_of",
    "features_and_labels",
    "features_from",
    "files_of",
    "has_classes_of_the_data",
    "hierarchy_from_taxonomy",
    "open_table",
    "parse_structure",
    "structure_from_file",
    "with_order",
    "write_structure",
]
