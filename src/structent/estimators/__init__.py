"""Estimators with scikit-learn's interface that know the structure of their classes."""
