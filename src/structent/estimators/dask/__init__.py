"""Gradient boosting under the structured loss on a Dask cluster."""

from structent.estimators.dask.classifier import DaskStructuredBoostingClassifier

__all__ = ["DaskStructuredBoostingClassifier"]
