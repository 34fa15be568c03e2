"""Scores of predicted probabilities under a structure, on NumPy and Dask arrays."""

from structent.metrics.accuracy import block_accuracy
from structent.metrics.blocks import block_proba
from structent.metrics.calibration import calibration_error
from structent.metrics.distance import average_distance, mistake_severity
from structent.metrics.log_loss import block_log_loss, skill, structured_log_loss
from structent.metrics.report import LevelReport, LevelScores, level_report
from structent.metrics.scorers import Scorer, scorer

__all__ = [
    "LevelReport",
    "LevelScores",
    "Scorer",
    "average_distance",
    "block_accuracy",
    "block_log_loss",
    "block_proba",
    "calibration_error",
    "level_report",
    "mistake_severity",
    "scorer",
    "skill",
    "structured_log_loss",
]
