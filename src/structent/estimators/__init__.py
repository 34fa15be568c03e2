"""Estimators with scikit-learn's interface that know the structure of their classes."""

from structent._optional import load_optional

load_optional("sklearn", extra="sklearn", purpose="An estimator")

from structent.estimators.boosting import (  # noqa: E402  after the advice for those without it
    StructuredBoostingClassifier,
)
from structent.estimators.linear import StructuredLogisticRegression  # noqa: E402

__all__ = ["StructuredBoostingClassifier", "StructuredLogisticRegression"]
