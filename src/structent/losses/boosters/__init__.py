"""Objectives and metrics for boosters: import the module of the booster that you use."""
