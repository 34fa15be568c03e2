"""What most commands ask about: a table, its label column, and the structure of the labels."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from structent.errors import StructentError
from structent.estimators import files
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.inputs import (
    FeatureColumn,
    LabelledTable,
    Specified,
    features_and_labels,
    parse_structure,
    read_labels,
)

_ATTACHMENT = "table.json"


@dataclass(frozen=True, eq=False)
class Question:
    """A table ready to learn from, and the structure of its labels."""

    table: LabelledTable
    specified: Specified
    allow_blocks: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table and the structure, one sentence each."""
        return (*self.table.notes, *self.specified.notes)


def read_question(
    data: Path,
    target: str,
    structure: str,
    features: list[str] | None,
    group: str | None,
    *,
    allow_blocks: bool = False,
) -> Question:
    """Return the table and the structure that a user names."""
    labels = read_labels(data, target)
    specified = parse_structure(
        structure, labels.classes, table=data, target=target, allow_blocks=allow_blocks
    )
    table = features_and_labels(
        data,
        target,
        features=features,
        group=group,
        excluded=specified.columns_used,
    )
    return Question(table, specified, allow_blocks)


def save_model(
    model: StructuredBoostingClassifier, path: Path, question: Question, target: str
) -> None:
    """Write a model file that knows how columns of a table become its features."""
    recipe = {"target": target, "columns": [asdict(column) for column in question.table.columns]}
    model.save(path, attachments={_ATTACHMENT: json.dumps(recipe)})


def load_model(path: Path) -> tuple[StructuredBoostingClassifier, str, list[FeatureColumn]]:
    """Return the model of a file, its label column, and the columns that it wants."""
    if not path.is_file():
        raise StructentError(f"the model must be a file that structent saved, got no file {path}")
    model = StructuredBoostingClassifier.load(path)
    text = files.attachment(path, _ATTACHMENT)
    if text is None:
        raise StructentError(
            f"{path.name} was saved by Python, and does not say which columns it wants; "
            "predict with it in Python, or train it by structent train"
        )
    recipe = json.loads(text)
    columns = [
        FeatureColumn(column["name"], column["kind"], tuple(column["features"]))
        for column in recipe["columns"]
    ]
    return model, recipe["target"], columns
