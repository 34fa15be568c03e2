"""The parameter by which a classifier, or a pipeline that ends in one, takes a structure."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from structent.errors import StructentError
from structent.structure import RandomPartition


def with_structure(estimator: Any, structure: RandomPartition) -> Any:
    """Return a clone of the estimator that has the structure.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from structent import StructuredLogisticRegression, trivial
    >>> model = make_pipeline(StandardScaler(), StructuredLogisticRegression())
    >>> with_structure(model, trivial(["a", "b"]))[-1].structure.classes
    ('a', 'b')
    """
    return clone(estimator).set_params(**{structure_parameter(estimator): structure})


def structure_parameter(estimator: Any) -> str:
    """Return the name of the parameter ``structure``; ``weights`` beside it must be left alone."""
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    found: list[str] = [name for name in parameters if name.rpartition("__")[2] == "structure"]
    if len(found) != 1:
        raise StructentError(
            "estimator must be a classifier with one parameter structure, such as "
            "StructuredBoostingClassifier(), or a pipeline that ends in one, got "
            f"{type(estimator).__name__} with {len(found)}"
        )
    (name,) = found
    weights = parameters.get(name.removesuffix("structure") + "weights")
    if parameters[name] is not None or weights is not None:
        raise StructentError(
            "estimator must have structure=None and weights=None, which are to be learned, got "
            f"structure={parameters[name]!r} and weights={weights!r}"
        )
    return name
