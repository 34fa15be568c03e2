"""``structent train``, ``predict`` and ``evaluate``: train a model and use it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import numpy as np
import polars as pl
import typer
from numpy.typing import NDArray
from rich.console import Group as Lines
from rich.text import Text

from structent._checks import checked_fraction
from structent._files import parsed_json
from structent.cli import options
from structent.cli.options import Columns, Question, read_question
from structent.cli.output import Output, caution_lines, check_outputs, check_table, write_table
from structent.decisions import HedgedPredictions, answer_report, calibrated_quantile
from structent.errors import LabelError, StructentError
from structent.estimators import files as model_files
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.linear import StructuredLogisticRegression
from structent.inputs import FeatureColumn, features_from, files_of, open_table
from structent.inputs.features import Kind
from structent.structure import RandomPartition
from structent.structure.samplers import Structure, checked_structure
from structent.studies.levels import scores_by_level

_ATTACHMENT = "table.json"
_ITERATIONS = 1000  # the most of a linear model: a command has no option to raise them

Fitted: TypeAlias = StructuredBoostingClassifier | StructuredLogisticRegression
_ESTIMATORS: dict[str, type[Fitted]] = {
    "StructuredBoostingClassifier": StructuredBoostingClassifier,
    "StructuredLogisticRegression": StructuredLogisticRegression,
}


def train(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.Structure,
    save: Annotated[Path, typer.Option(help="Save the model to this file.")],
    model: Annotated[
        str,
        typer.Option(
            help="boosting (trees), or linear (logistic regression).",
            callback=options.one_of("boosting", "linear"),
        ),
    ] = "boosting",
    features: options.Features = None,
    keep: options.Keep = None,
    drop: options.Drop = None,
    weights: Annotated[
        str,
        typer.Option(
            help="The structure in the loss, as the weight of the singletons: a number, auto, or "
            "own (as in the structure)."
        ),
    ] = "own",
    sharing: Annotated[
        str,
        typer.Option(
            help="The structure in the parameters: how much related classes share, from 0 to below "
            "1, or auto (chosen on held-out rows)."
        ),
    ] = "auto",
    calibrate: Annotated[
        float | None,
        typer.Option(
            help="Hold out this share of the rows, e.g. 0.2, to calibrate the answers of predict "
            "--confidence."
        ),
    ] = None,
    target_is_class: options.TargetIsClass = False,
    allow_blocks: options.AllowBlocks = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a model with the structure on all rows that are not held out."""
    output = Output(as_json=as_json, quiet=quiet)
    check_outputs({"--save": save}, [data, *files_of(structure)])
    columns = Columns(features, keep, drop)
    question = read_question(
        data, target, structure, columns, target_is_class=target_is_class,
        allow_blocks=allow_blocks,
    )  # fmt: skip
    output.notes(*question.notes)
    relation, table = question.specified.structure, question.table
    is_held_back = _held_back(calibrate, relation, table.labels, seed)
    _check_can_train(table.labels[~is_held_back], calibrate)
    fitted: Fitted
    if model == "linear":
        fitted = _untrained_linear(relation, _weights(weights), _sharing(sharing))
    else:
        shown = output.messages.is_terminal and not quiet and not as_json
        fitted = StructuredBoostingClassifier(
            relation, weights=_weights(weights), leaf_smoothing=_sharing(sharing), n_jobs=jobs,
            progress=shown,
        )  # fmt: skip
    fitted.set_params(random_state=seed, allow_blocks=allow_blocks)
    fitted.fit(table.features.filter(~is_held_back), table.labels[~is_held_back])
    if calibrate is not None:
        fitted.calibrate_blocks(table.features.filter(is_held_back), table.labels[is_held_back])
    save_model(fitted, save, question, target)
    sentence, facts = _trained(fitted, save, is_held_back)
    output.result(
        Lines(*caution_lines(question.cautions), Text(sentence)), {**facts, **question.as_data()}
    )


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, typer.Option("-o", "--output", help="A .parquet or .csv file.")],
    level: Annotated[str | None, typer.Option(help="Also write the block of this level.")] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Answer with a block of classes where a single class is less certain than this, "
            "e.g. 0.9."
        ),
    ] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the predictions of a model for the rows of a table."""
    output = Output(as_json=as_json, quiet=quiet)
    check_table(out)
    check_outputs({"--output": out}, [model, data])
    fitted, _, columns = _load_model(model)
    features = features_from(open_table(data, [column.name for column in columns]), columns)
    proba = fitted.predict_proba(features)
    made: dict[str, Any] = {
        "prediction": fitted.classes_[proba.argmax(axis=1)],
        "probability": proba.max(axis=1),
    }
    if level is not None:
        made[level] = fitted.predict_level(features, level)
    if confidence is not None:
        answers = _answers_of(fitted, features, confidence)
        made |= {"answer": list(answers.names), "answer_probability": answers.probability}
        output.notes(_trust_of(fitted, confidence))
    made |= {
        f"probability of {label}": proba[:, column] for column, label in enumerate(fitted.classes_)
    }
    write_table(pl.DataFrame(made), out)
    output.result(f"{out}: {len(proba):,} predictions", {"output": str(out), "rows": len(proba)})


def evaluate(
    model: options.Model,
    data: options.Data,
    confidence: Annotated[
        float | None,
        typer.Option(help="Also report on the answers of predict --confidence, e.g. 0.9."),
    ] = None,
    allow_blocks: options.AllowBlocks = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on the rows of a table, level by level."""
    output = Output(as_json=as_json, quiet=quiet)
    fitted, target, columns = _load_model(model)
    table = open_table(data, [target, *(column.name for column in columns)])
    labels = table.labels(target)
    output.notes(*labels.notes)
    features = features_from(table, columns).filter(labels.column.is_not_null())
    structure = checked_structure(fitted.structure_)
    proba = fitted.predict_proba(features)
    report = scores_by_level(
        labels.values, proba, structure, classes=fitted.classes_, allow_blocks=allow_blocks
    )
    shown, facts = str(report), report.to_dict()
    if confidence is not None:
        answered = answer_report(labels.values, _answers_of(fitted, features, confidence))
        output.notes(_trust_of(fitted, confidence))
        shown += f"\n\nanswers at confidence {confidence:g}\n{answered}"
        facts["answers"] = {"confidence": confidence, **answered.to_dict()}
    output.result(shown, facts)


def save_model(model: Fitted, path: Path, question: Question, target: str) -> None:
    """Write a model file that knows how columns of a table become its features."""
    recipe = {"target": target, "columns": [asdict(column) for column in question.table.columns]}
    model.save(path, attachments={_ATTACHMENT: json.dumps(recipe)})


def _held_back(
    share: float | None, structure: Structure, labels: NDArray[Any], seed: int
) -> NDArray[np.bool_]:
    """Return which rows are held out for calibration: a random share of all, none if None.

    They are not stratified by class, because new rows are not stratified either.
    """
    n_rows = len(labels)
    is_held_back = np.zeros(n_rows, dtype=np.bool_)
    if share is None:
        return is_held_back
    if not isinstance(structure, RandomPartition):
        raise StructentError(
            "--calibrate needs a structure that is fixed, got one that changes with every round; "
            "leave it out, or give a hierarchy, circular or ordinal structure"
        )
    try:
        structure.encode(labels)
    except LabelError as error:
        raise StructentError(
            f"--calibrate needs the class of every row, not a block: {error}"
        ) from None
    count = round(checked_fraction(share, "--calibrate") * n_rows)
    if not 0 < count < n_rows:
        raise StructentError(
            f"--calibrate must leave rows to train on and to calibrate on, got {share:g}, "
            f"which is {count:,} of {n_rows:,} rows"
        )
    is_held_back[np.random.default_rng(seed).choice(n_rows, size=count, replace=False)] = True
    return is_held_back


def _untrained_linear(
    structure: Structure, weights: str | float | None, sharing: str | float
) -> StructuredLogisticRegression:
    if not isinstance(structure, RandomPartition):
        raise StructentError(
            "--model linear needs a structure that is fixed, got one that changes with every "
            "round; use --model boosting, or give a hierarchy, circular or ordinal structure"
        )
    return StructuredLogisticRegression(
        structure, weights=weights, prior=sharing if isinstance(sharing, str) else 1.0 - sharing,
        encode=True, max_iter=_ITERATIONS,
    )  # fmt: skip


def _check_can_train(labels: NDArray[Any], calibrate: float | None) -> None:
    """Refuse tables with too few rows for early stopping."""
    _, counts = np.unique(labels, return_counts=True)
    if len(counts) < 2 or counts.max() < 2:
        advice = "give more rows" if calibrate is None else "hold out fewer with --calibrate"
        raise StructentError(
            "training needs two classes or more, one of them with two rows or more, got classes "
            f"with {counts[:10].tolist()} rows; {advice}"
        )


def _weights(given: str) -> str | float | None:
    if given == "own":
        return None
    if given == "auto":
        return given
    try:
        weight = float(given)
    except ValueError:
        raise StructentError(
            f"--weights must be own, auto or a number between 0 and 1, got {given!r}"
        ) from None
    return checked_fraction(weight, "--weights")


def _sharing(given: str) -> str | float:
    if given == "auto":
        return given
    wrong = StructentError(
        f"--sharing must be auto or a number from 0 to below 1, got {given!r}; 0 shares nothing"
    )
    try:
        share = float(given)
    except ValueError:
        raise wrong from None
    if not 0 <= share < 1:
        raise wrong
    return share


def _trained(
    model: Fitted, path: Path, is_held_back: NDArray[np.bool_]
) -> tuple[str, dict[str, Any]]:
    """Return the description of a trained model, as a sentence and for JSON."""
    if isinstance(model, StructuredLogisticRegression):
        what, facts = _trained_linear(model)
        steps, most, name = model.n_iter_, model.max_iter, "iterations"
    else:
        what, facts = _trained_boosting(model)
        steps, most, name = facts["rounds"], model.n_estimators, "rounds"
    sentence = f"{path}: {what}{_calibrated_on(is_held_back)}"
    if steps == most:
        sentence += f"; it was still improving after {steps:,} {name}, the limit"
    rest = {"weights": model.weights_.tolist(), "calibration_rows": int(is_held_back.sum())}
    return sentence, {"model": str(path), **facts, **rest}


def _trained_boosting(model: StructuredBoostingClassifier) -> tuple[str, dict[str, Any]]:
    facts: dict[str, Any] = {
        "rounds": model.best_iteration_ + 1,
        "max_depth": model.max_depth_,
        "sharing": model.leaf_smoothing_,
        "validation_log_loss": float(np.asarray(model.validation_log_loss_).min()),
    }
    what = (
        f"{facts['rounds']} rounds of trees of depth {facts['max_depth']}, "
        f"{_shared(facts['sharing'])}, validation log loss {facts['validation_log_loss']:.4f}"
    )
    return what, facts


def _trained_linear(model: StructuredLogisticRegression) -> tuple[str, dict[str, Any]]:
    n_classes, n_features = model.coef_.shape
    # The prior has the partitions of the structure, and the singletons if it lacks them.
    structure: Any = model.structure_
    partitions = structure.with_singleton_weight(0.5).partitions
    sharing = 1.0 - float(model.prior_[[each.is_singletons for each in partitions]].sum())
    what = (
        f"a linear model of {n_features:,} columns and {n_classes:,} classes, {_shared(sharing)}, "
        f"C = {model.C_:.2g}"
    )
    return what, {
        "iterations": model.n_iter_, "columns": n_features, "sharing": sharing, "C": model.C_,
    }  # fmt: skip


def _shared(sharing: float) -> str:
    return f"sharing {sharing:.2g}" if sharing > 0 else "sharing nothing"


def _calibrated_on(is_held_back: NDArray[np.bool_]) -> str:
    """Return what the result of training says about calibration."""
    count = int(is_held_back.sum())
    if not count:
        return ""
    return f"; answers calibrated on {count:,} of {len(is_held_back):,} rows, held out for that"


def _load_model(path: Path) -> tuple[Fitted, str, list[FeatureColumn]]:
    """Return the model of a file, its label column, and the columns that it wants."""
    if not path.is_file():
        raise StructentError(f"the model must be a file that structent saved, got no file {path}")
    model = _ESTIMATORS[model_files.estimator_of(path)].load(path)
    text = model_files.attachment(path, _ATTACHMENT)
    if text is None:
        raise StructentError(
            f"the model file must list its columns, got {path.name}, which does not; train it "
            "with structent train, or save it with structent compare --save"
        )
    target, columns = _recipe(text, path)
    made = [name for column in columns for name in column.features]
    if made != list(getattr(model, "feature_names_in_", ())):
        raise _no_recipe(path)
    return model, target, columns


def _recipe(text: str, path: Path) -> tuple[str, list[FeatureColumn]]:
    """Return what :func:`save_model` wrote: the label column, and the columns of features."""
    try:
        recipe = parsed_json(text)
        columns = [
            FeatureColumn(column["name"], column["kind"], tuple(column["features"]))
            for column in recipe["columns"]
        ]
        target = recipe["target"]
    except (KeyError, TypeError, ValueError):
        raise _no_recipe(path) from None
    names = [target, *(name for column in columns for name in (column.name, *column.features))]
    if not all(isinstance(name, str) for name in names) or not all(
        column.kind in get_args(Kind) for column in columns
    ):
        raise _no_recipe(path)
    return target, columns


def _no_recipe(path: Path) -> StructentError:
    return StructentError(
        f"{path.name} must list the columns that it needs, got something else in its member "
        f"{_ATTACHMENT}; train it again with structent train"
    )


def _answers_of(model: Fitted, features: pl.DataFrame, confidence: float) -> HedgedPredictions:
    """Return the answers of a model, or say that it has no blocks to answer with."""
    if not isinstance(model.structure_, RandomPartition):
        raise StructentError(
            "--confidence needs a model whose structure is fixed, got one that changes with every "
            "round; leave it out"
        )
    checked_fraction(confidence, "--confidence")
    return model.predict_blocks(features, confidence=confidence)


def _trust_of(model: Fitted, confidence: float) -> str:
    """Return a sentence on how far the answers can be trusted."""
    scores = model.block_scores_
    if scores is None:
        return (
            "Answers rely on the model's own probabilities; structent train --calibrate 0.2 makes "
            "a model with calibrated answers."
        )
    if math.isinf(calibrated_quantile(scores, confidence)):
        return (
            f"Every answer is all classes, because {len(scores):,} calibration rows are too few "
            f"for a confidence of {confidence:g}; hold out more rows, or ask for less."
        )
    return (
        f"On average, answers contain the true label of at least {100 * confidence:.4g} % of new "
        f"rows, if these are like the {len(scores):,} calibration rows."
    )
