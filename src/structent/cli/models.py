"""``structent train``, ``predict`` and ``evaluate``: a model of one's own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer

from structent.cli import options
from structent.cli.output import Output, check_can_write
from structent.cli.question import load_model, read_question, save_model
from structent.comparison.result import scored_structure
from structent.decisions import hedge
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.classes import checked_structure
from structent.metrics import level_report
from structent.structure import RandomPartition, files
from structent.tables import read_features, read_labels, read_table

_WRITERS = {".parquet": "write_parquet", ".csv": "write_csv"}


def train(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.Structure,
    save: Annotated[Path, typer.Option(help="Where to keep the model.")],
    features: options.Features = None,
    weights: Annotated[
        str, typer.Option(help="The weight of the singletons, auto, or own (the structure's).")
    ] = "own",
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a model with the structure on all rows."""
    output = Output(as_json=as_json, quiet=quiet)
    check_can_write(save)
    question = read_question(data, target, structure, options.separated(features), None)
    output.notes(*question.notes)
    model = StructuredBoostingClassifier(
        question.specified.structure, weights=_weights(weights), random_state=seed, n_jobs=jobs,
        progress=output.messages.is_terminal and not quiet and not as_json,
    ).fit(question.table.features, question.table.labels)  # fmt: skip
    save_model(model, save, question, target)
    facts = {
        "model": str(save),
        "rounds": model.best_iteration_ + 1,
        "validation_log_loss": float(np.asarray(model.validation_log_loss_).min()),
        "weights": model.weights_.tolist(),
    }
    output.result(
        f"{save}: {facts['rounds']} rounds, validation log loss {facts['validation_log_loss']:.4f}",
        facts,
    )


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, typer.Option("-o", "--output", help="A .parquet or .csv file.")],
    level: Annotated[str | None, typer.Option(help="Name the block of this level, too.")] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="Retreat to a block until it has this probability, e.g. 0.9."),
    ] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the predictions of a model for the rows of a table."""
    output = Output(as_json=as_json, quiet=quiet)
    if out.suffix not in _WRITERS:
        raise StructentError(f"the output must end in .parquet or .csv, got {out.name}")
    check_can_write(out)
    fitted, _, columns = load_model(model)
    features = read_features(data, columns)
    proba = fitted.predict_proba(features)
    made: dict[str, Any] = {
        "prediction": fitted.classes_[proba.argmax(axis=1)],
        "probability": proba.max(axis=1),
    }
    if level is not None:
        made[level] = fitted.predict_level(features, level)
    if confidence is not None:
        made |= _hedged(fitted, proba, confidence)
    made |= {
        f"probability of {label}": proba[:, column] for column, label in enumerate(fitted.classes_)
    }
    _write(pl.DataFrame(made), out)
    output.result(f"{out}: {len(proba):,} predictions", {"output": str(out), "rows": len(proba)})


def evaluate(
    model: options.Model,
    data: options.Data,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on the rows of a table, level by level."""
    output = Output(as_json=as_json, quiet=quiet)
    fitted, target, columns = load_model(model)
    labels = read_labels(data, target)
    output.notes(*labels.notes)
    has_label = read_table(data, [target])[target].is_not_null().to_numpy()
    features = read_features(data, columns).filter(has_label)
    structure = scored_structure(checked_structure(fitted.structure_))
    report = level_report(
        labels.values, fitted.predict_proba(features), structure, classes=fitted.classes_
    )
    output.result(str(report), report.to_dict())


def _weights(given: str) -> str | float | None:
    if given == "own":
        return None
    if given == "auto":
        return given
    try:
        return float(given)
    except ValueError:
        raise StructentError(
            f"--weights must be own, auto or a number between 0 and 1, got {given!r}"
        ) from None


def _hedged(fitted: Any, proba: Any, confidence: float) -> dict[str, Any]:
    if not isinstance(fitted.structure_, RandomPartition):
        raise StructentError(
            "--confidence needs a model whose structure is fixed, got one that changes with every "
            "round; leave it out"
        )
    answers = hedge(proba, fitted.structure_, confidence, classes=fitted.classes_)
    return {"answer": list(answers.names), "answer_probability": np.asarray(answers.probability)}


def _write(table: pl.DataFrame, path: Path) -> None:
    content = io.BytesIO()
    getattr(table, _WRITERS[path.suffix])(content)
    files.save_bytes(path, content.getvalue())
