"""Decisions from probabilities: the class with the lowest expected cost, and sets of classes."""

from structent.decisions.conformal import block_scores, calibrated_hedge, calibrated_quantile
from structent.decisions.hedging import HedgedPredictions, hedge
from structent.decisions.report import AnswerReport, LevelAnswers, answer_report
from structent.decisions.risk import minimum_risk

__all__ = [
    "AnswerReport",
    "HedgedPredictions",
    "LevelAnswers",
    "answer_report",
    "block_scores",
    "calibrated_hedge",
    "calibrated_quantile",
    "hedge",
    "minimum_risk",
]
