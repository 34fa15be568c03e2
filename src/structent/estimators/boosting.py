"""Gradient boosting under the structured loss, with scikit-learn's interface."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from structent._checks import checked_fraction
from structent._threads import checked_n_jobs
from structent._typing import FloatArray
from structent.decisions import HedgedPredictions
from structent.errors import StructureError
from structent.estimators import files
from structent.estimators.answers import block_answers, calibration_scores, predicted_level
from structent.estimators.classes import (
    accuracy,
    check_two_codes,
    given_structure,
    label_column,
    labels_to_fit,
)
from structent.estimators.columns import CodedTable, table_to_fit, validated_table
from structent.estimators.engines import engine
from structent.estimators.folds import checked_groups
from structent.estimators.rows import (
    TrainingRows,
    checked_eval_set,
    classes_of_rows,
    held_back,
    held_back_groups,
    log_prior,
)
from structent.estimators.training import (
    Encoder,
    FittedBoosting,
    Model,
    Settings,
    Training,
    recording,
    round_progress,
)
from structent.estimators.weights import chosen_structure, weights_of
from structent.kernels.fused import probabilities
from structent.structure.samplers import Structure


class StructuredBoostingClassifier(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    BaseEstimator,  # type: ignore[misc]  # scikit-learn has no types
):
    """Gradient boosted trees that know how their classes are related.

    Every round lowers the structured cross-entropy of the training rows. Each leaf of a tree holds
    a vector with one value per class (the paper's Problems 2 and 3). Training starts from the class
    prior. Validation rows choose the depth of the trees and the number of rounds by their plain log
    loss; then the model is trained again on all rows.

    Parameters
    ----------
    structure
        A random partition or a sampler of the classes, matched to the labels by value; a short form
        of the command line, ``"ordinal"`` or ``"circular:width=3"``, which ``fit`` builds from the
        labels; plain log loss if None. Classes without a row get a column, too.
    weights
        None keeps the structure's own weights, a number is the weight of the singletons (1 for
        plain log loss), an array replaces them all, and "auto" chooses the weight of the singletons
        by cross-validation from a small grid that includes "no structure": with enough rows, a
        wrong structure costs only time. See ``weights_``.
    n_estimators
        The maximum number of rounds. There is a warning if the validation log loss was still
        falling in the last round.
    max_depth
        The most splits above a leaf. "auto" tries 2, 3, 4, 6 and 8 in a short race on the
        validation rows: see ``max_depth_``. It is 3 without validation rows, and with other engines
        than our own.
    learning_rate, min_child_weight, reg_lambda
        As in XGBoost: the factor of every tree, the smallest curvature in a leaf, and the L2
        penalty on leaf values. The last two are compared with sums over rows, so they are in the
        unit of the row weights.
    max_leaves
        The maximum number of leaves of a tree. If given, the leaf with the largest gain is split
        next; otherwise all leaves of a level are split. Needs ``engine="structent"``.
    max_bins
        The maximum number of bins of a column, at most 255. Columns with fewer distinct values have
        a bin for each; the rarest categories share the last bin. None means 255, but for numbers
        one bin per 16 rows if that is less, and at least 64. Needs ``engine="structent"``.
    subsample, colsample
        The share of the rows, and of the columns, that each tree sees.
    engine
        "structent" is our own engine: vector leaves, categories split as sets, the same model for
        any number of threads, and no other package needed. "xgboost" and "lightgbm" use these
        packages.
    trees
        "vector" (one tree per round, with vectors in its leaves) or "per_class" (one tree per class
        and round; the only kind that LightGBM has).
    curvature
        What replaces the second derivative: "gradient" (its magnitude), "bound" (q(1 - q)) or
        "fisher".
    split_search
        "full" searches splits on the whole gradient. "structured" searches on its sums over the
        blocks of a partition, drawn in every round from the structure by its own weights (those of
        ``weights="auto"`` if chosen): faster with many classes. With ``weights=1`` the loss is
        plain, and only the splits use the structure. Needs vector leaves. "sketch" searches on the
        gradient along one random direction among the classes, a new one in every round; it needs
        ``engine="structent"``. "auto" is "sketch" with this engine, and "full" with others. Leaf
        values always come from the whole gradient.
    leaf_smoothing
        How much the leaf values of a class borrow from related classes: None or 0 for nothing, a
        number below 1 for the share of a class's gradient and curvature that goes to its relatives,
        or "auto" to choose among 0, 0.3, 0.6 and 0.8 in a race on the validation rows (0 without
        such rows), or on folds of the training rows if there are few: see ``leaf_smoothing_``. How
        closely classes are related is ``structure.similarity()``; with a sampler, whether they
        share a block of the partition that is drawn for the round. It is independent of the loss,
        which ``weights`` decides: ``weights=1, leaf_smoothing=0.4`` is the plain loss with smoothed
        leaves. Needs a structure and ``engine="structent"``.
    early_stopping_rounds
        Training ends after this many rounds without a better validation log loss, and keeps the
        best round. With None all rounds are trained, on all rows.
    validation_fraction
        The share of the rows, in every class, that is held out for early stopping if there is no
        ``eval_set``.
    refit
        Whether to train again on all rows, with the depth and the number of rounds that the
        held-out rows have chosen. Rows of an ``eval_set`` are never used for training.
    n_bags
        How many models to train and average; each holds out other rows. Needs
        ``engine="structent"``.
    class_weight
        None, "balanced", or the weight of each class, as in scikit-learn.
    random_state
        The seed of all random choices: held-out rows, sampled rows and columns, drawn splits.
    n_jobs
        How many threads to use; if None or -1, as many as the process may use.
    progress
        Whether to show a progress bar.
    allow_blocks
        Whether a label may also be the name of a block ("tree", or "kind:tree" if levels share
        names) or a set of classes, for rows whose class is not known exactly. Such a row enters the
        loss with what is known; its ``class_weight`` is the mean over its classes, and its
        validation loss is -log of the probability of its set. A sampler's blocks have no names, but
        sets of classes can be used.

    Attributes
    ----------
    classes_
        The classes, sorted: the columns of ``predict_proba``.
    weights_
        The weights that were used, one per partition of the structure.
    structure_
        The structure with these weights, built if it was a short form; None without one.
    best_iteration_
        The index of the best round, from 0: the model has one round more than that.
    max_depth_, split_search_, leaf_smoothing_
        The values that were used, also for "auto"; a ``leaf_smoothing_`` of 0 means none.
    validation_log_loss_
        The log loss of the validation rows after every round, before any refit; None without
        validation rows. With ``n_bags``, this and the four above describe the first model.
    block_scores_
        The sorted scores of the rows of ``calibrate_blocks``; None without.
    feature_importances_
        The share of each column in the gain of all splits.
    n_features_in_, feature_names_in_
        The columns of X, as in scikit-learn.

    Notes
    -----
    ``cross_val_predict(..., method="predict_proba")`` of scikit-learn replaces labels by integers
    before it fits. Give it a structure of integers,
    ``structure.relabel({label: place for place, label in enumerate(sorted(structure.classes))})``.

    Examples
    --------
    >>> import numpy as np
    >>> from structent import circular
    >>> seasons = circular(["spring", "summer", "autumn", "winter"], width=2)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(seasons.classes, size=400)
    >>> temperature = {"spring": 10, "summer": 20, "autumn": 11, "winter": 1}
    >>> X = np.array([[rng.normal(temperature[label], 3)] for label in y])
    >>> model = StructuredBoostingClassifier(seasons, random_state=0).fit(X, y)
    >>> model.predict([[22.0], [-1.0]]).tolist()
    ['summer', 'winter']
    >>> model.classes_.tolist()
    ['autumn', 'spring', 'summer', 'winter']
    """

    def __init__(  # noqa: PLR0913  scikit-learn's way: every parameter by name
        self,
        structure: Structure | str | None = None,
        *,
        weights: Any = None,
        n_estimators: int = 2000,
        learning_rate: float = 0.05,
        max_depth: int | str = "auto",
        max_leaves: int | None = None,
        max_bins: int | None = None,
        min_child_weight: float = 0.0,
        reg_lambda: float = 1.0,
        subsample: float = 0.8,
        colsample: float = 1.0,
        engine: str = "structent",
        trees: str = "vector",
        curvature: str = "gradient",
        split_search: str = "auto",
        leaf_smoothing: float | str | None = None,
        early_stopping_rounds: int | None = 25,
        validation_fraction: float = 0.15,
        refit: bool = True,
        n_bags: int = 1,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
        allow_blocks: bool = False,
    ) -> None:
        self.structure = structure
        self.weights = weights
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.max_bins = max_bins
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.subsample = subsample
        self.colsample = colsample
        self.engine = engine
        self.trees = trees
        self.curvature = curvature
        self.split_search = split_search
        self.leaf_smoothing = leaf_smoothing
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.n_bags = n_bags
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.allow_blocks = allow_blocks

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        eval_set: Any = None,
        groups: Any = None,
    ) -> Self:
        """Train on the rows of ``X`` and their labels.

        Parameters
        ----------
        X
            A pandas or polars table, or an array, (n, columns). Values may be missing;
            categorical and text columns of tables are encoded.
        y
            The label of each row, (n,).
        sample_weight
            The weight of each row, (n,).
        eval_set
            The rows that decide when to stop: ``(X, y)``, or a list of one such pair.
        groups
            The group of each row, (n,), if rows belong together: the hours of a day, the pictures
            of a patient. Then validation rows, and the folds of ``weights="auto"``, are whole
            groups, so that rows similar to training rows do not decide.
        """
        settings = self._settings()
        random = check_random_state(self.random_state)
        labels = labels_to_fit(y, self.structure, allow_blocks=self.allow_blocks)
        given = given_structure(self.structure, labels, allow_blocks=self.allow_blocks)
        table = table_to_fit(self, X)
        check_consistent_length(table, labels)
        group_of = checked_groups(groups, len(labels))
        structure = chosen_structure(self, given, X, labels, sample_weight, group_of)
        classes = classes_of_rows(structure, labels, eval_set, allow_blocks=self.allow_blocks)
        encoder = Encoder.of(table.columns, classes, settings)
        rows = encoder.rows(table.codes, labels, sample_weight, self.class_weight, group_of)
        check_two_codes(rows.labels, classes)  # other classes may only have rows of weight 0
        splits, leaves = self._split_structure(given, structure), self._leaf_structure(given)
        bags = [
            self._fitted_bag(rows, eval_set, encoder, splits, leaves, settings, random)
            for _ in range(settings.n_bags)
        ]
        _warn_if_cut_short([bag.scores for bag in bags], settings)
        if len(bags) == 1:
            return self.adopt(bags[0])
        model = engine(settings.engine).mean_of([bag.model for bag in bags])
        return self.adopt(replace(bags[0], model=model))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the logits, (n, classes); for two classes, the log odds of the second, (n,)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, (n,)."""
        best = self._logits(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    score = accuracy

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, (n, classes), in the order of ``classes_``."""
        return probabilities(self._logits(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities, exact also if these underflow."""
        return log_softmax(self._logits(X), axis=1)

    def predict_level(self, X: Any, level: str) -> NDArray[np.str_]:
        """Return the name of the most probable block of a level for each row, (n,).

        See :func:`~structent.estimators.answers.predicted_blocks`.
        """
        proba = self.predict_proba(X)
        return predicted_level(proba, self._fitted.encoder.classes, self.structure_, level)

    def calibrate_blocks(self, X: Any, y: Any, *, proba: Any = None) -> Self:
        """Calibrate the answers of :meth:`predict_blocks` on held-out rows.

        Afterwards its sets hold the true class with at least the requested probability, for rows
        from the same distribution (:func:`~structent.decisions.calibrated_hedge`). One calibration
        is enough for every confidence; a new ``fit`` discards it.

        Parameters
        ----------
        X, y
            Rows that were not used for training or early stopping, and their classes. Some
            hundreds are usual; a confidence of 0.9 needs at least 9 rows, one of 0.99 needs 99.
        proba
            For rows that were used for training: their out-of-fold probabilities, (n, classes), in
            the order of ``classes_``, by cross-validation of models like this one. X is not used
            then and may be None.
        """
        given = self.predict_proba(X) if proba is None else proba
        scores = calibration_scores(y, given, self.classes_, self.structure_)
        return self.adopt(replace(self._fitted, block_scores=scores))

    def predict_blocks(self, X: Any, *, confidence: float = 0.9) -> HedgedPredictions:
        """Return for each row the smallest set of its chain that can be trusted.

        The chain goes from the most probable class, through blocks that contain it, to all classes:
        see :func:`~structent.decisions.hedge`. Without calibration the answer is the first set
        whose predicted probability reaches the confidence. After :meth:`calibrate_blocks` it
        contains the true class with at least that probability, even if the model is overconfident;
        with fewer than confidence / (1 - confidence) calibration rows every answer is all classes.

        :func:`~structent.decisions.answer_report` measures coverage, size and depth on labelled
        rows.
        """
        return block_answers(
            self.predict_proba(X), self.classes_, self.structure_, self.block_scores_, confidence
        )

    @property
    def feature_importances_(self) -> FloatArray:
        """The share of each column of X in the gain of all splits."""
        return self._fitted_model().feature_importances()

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, str] | None = None
    ) -> None:
        """Write the model to a file, completely or not at all: a zip of JSON and the trees.

        A loaded model gives the same predictions. Its ``structure`` is the one that was used, with
        the weights that were used. ``attachments`` are texts to keep with it, by name:
        :func:`structent.estimators.files.attachment` reads them.
        """
        fitted = self._fitted_model()
        names = getattr(self, "feature_names_in_", None)
        saved = files.Saved(self.get_params(deep=False), names)
        files.save_boosting(path, fitted, saved, attachments or {})

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the model as an ONNX file, completely or not at all.

        The file has the outputs ``label``, (n,), and ``probabilities``, (n, classes), in the order
        of ``classes_``. Without categories its input is ``X``, float32, (n, columns). With
        categories there is one input per column, (n, 1), by the column's name: float32 for numbers;
        for categories text, int64 for whole numbers and bools, or float32. NaN is a missing number,
        and any unknown value is a missing category. Needs ``engine="structent"`` and
        ``structent[onnx]``.
        """
        from structent.estimators import onnx  # noqa: PLC0415  it loads the engine

        names = getattr(self, "feature_names_in_", None)
        onnx.save_boosting(path, self._fitted_model(), self.engine, names)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model of a file that :meth:`save` wrote. No code of the file is run.

        Load boosters of XGBoost and LightGBM only from sources you trust: we check them, but then
        these packages read them, and their own readers check little.
        """
        fitted, saved = files.load_boosting(path)
        model = cls(**saved.parameters)
        model.n_features_in_ = len(fitted.encoder.columns.categories)
        if saved.feature_names is not None:
            model.feature_names_in_ = saved.feature_names
        return model.adopt(fitted)

    def adopt(self, fitted: FittedBoosting) -> Self:
        """Use a booster that was trained with these parameters, here or elsewhere."""
        self._fitted = fitted
        self.classes_ = fitted.encoder.classes.values
        self.structure_ = None if self.structure is None else fitted.encoder.classes.structure
        self.weights_ = weights_of(fitted.encoder.classes.structure)
        self.best_iteration_ = fitted.model.n_rounds - 1
        self.max_depth_, self.split_search_, self.leaf_smoothing_ = fitted.chosen
        self.validation_log_loss_ = np.array(fitted.scores) if fitted.scores else None
        self.block_scores_ = fitted.block_scores
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _settings(self) -> Settings:
        return Settings(**{name: getattr(self, name) for name in Settings.__dataclass_fields__})

    def _with_validation(
        self, rows: TrainingRows, encoder: Encoder, eval_set: Any, random: np.random.RandomState
    ) -> tuple[TrainingRows, TrainingRows | None]:
        """Return the rows to train on and the rows that decide when to stop."""
        if eval_set is not None:
            X, y = checked_eval_set(eval_set, self.n_features_in_)
            codes = encoder.columns.codes(validated_table(self, X, reset=False))
            return rows, encoder.rows(codes, label_column(y, encoder.classes), None, None)
        if self.early_stopping_rounds is None:
            return rows, None
        fraction = checked_fraction(self.validation_fraction, "validation_fraction")
        if rows.groups is not None:
            held = held_back_groups(rows.groups, fraction, random)
            return rows.take(~held), rows.take(held)
        # In the order of classes_, so that the structure's own order does not matter.
        held = held_back(encoder.classes.sorted_codes(rows.labels), fraction, random)
        return rows.take(~held), rows.take(held)

    def _fitted_bag(
        self, rows: TrainingRows, eval_set: Any, encoder: Encoder,
        split_structure: Structure | None, leaf_structure: Structure | None, settings: Settings,
        random: np.random.RandomState,
    ) -> FittedBoosting:  # fmt: skip
        """Return one booster: early stopping on validation rows, then a refit on all rows."""
        train, validation = self._with_validation(rows, encoder, eval_set, random)
        scores: list[float] = []
        with round_progress(settings.n_estimators, shown=self.progress) as show:
            training = Training(
                train,
                validation,
                encoder.classes.structure,
                split_structure,
                log_prior(train, encoder.classes),
                encoder.is_categorical,
                settings,
                int(random.randint(2**31 - 1)),
                checked_n_jobs(self.n_jobs),
                recording(scores, show),
                encoder.classes.label_sets,
                leaf_structure,
            )
            model, chosen = engine(settings.engine).train(training)
        if self.refit and validation is not None and eval_set is None:
            model = self._refitted(
                training, rows, encoder, settings.settled(model.n_rounds, chosen)
            )
        return FittedBoosting(encoder, model, tuple(scores), chosen)

    def _refitted(
        self, training: Training, rows: TrainingRows, encoder: Encoder, settled: Settings
    ) -> Model:
        """Return the booster trained on all rows, also those that were held out."""
        start = log_prior(rows, encoder.classes)
        whole = replace(training, rows=rows, validation=None, start=start, settings=settled)
        n_rounds, what = settled.n_estimators, "boosting on all rows"
        with round_progress(n_rounds, shown=self.progress, what=what) as show:
            model: Model = engine(settled.engine).train(replace(whole, on_round=show)).model
        return model

    def _split_structure(
        self, given: Structure | None, weighted: Structure | None
    ) -> Structure | None:
        if self.split_search != "structured":
            return None
        # Weights that were chosen say how far to trust the structure, in splits and in the loss.
        # Weights that were given are for the loss only.
        return weighted if isinstance(self.weights, str) else given

    def _leaf_structure(self, given: Structure | None) -> Structure | None:
        if not self.leaf_smoothing:
            return None
        if given is None and not isinstance(self.leaf_smoothing, str):
            raise StructureError(
                f"leaf_smoothing={self.leaf_smoothing!r} needs a structure that says which classes "
                "are related, got none; give one, or set leaf_smoothing=None"
            )
        return given  # whatever the weights of the loss are

    def _fitted_model(self) -> FittedBoosting:
        check_is_fitted(self, "classes_")
        return self._fitted

    def _logits(self, X: Any) -> FloatArray:
        fitted = self._fitted_model()
        return fitted.logits(validated_table(self, X, reset=False), checked_n_jobs(self.n_jobs))


def _warn_if_cut_short(scores_of_bags: Sequence[Sequence[float]], settings: Settings) -> None:
    if settings.early_stopping_rounds is None:
        return
    most = settings.n_estimators
    if any(len(scores) == most and min(scores) == scores[-1] for scores in scores_of_bags):
        warnings.warn(
            f"the validation log loss was still falling after all {most} rounds; raise "
            "n_estimators or learning_rate",
            ConvergenceWarning,
            stacklevel=3,
        )


def coded_table(X: Any) -> CodedTable:
    """Return a table or array, checked and coded once, for models of many parts of its rows."""
    return table_to_fit(StructuredBoostingClassifier(), X)
