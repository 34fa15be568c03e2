"""Boosted trees with a vector of values in every leaf: plain arrays in, plain arrays out."""
