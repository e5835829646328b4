"""What constructors of estimators do with their parameters: keep them as they are."""

from collections.abc import Mapping
from typing import Any

__all__ = ["store_parameters"]


def store_parameters(estimator: object, parameters: Mapping[str, Any]) -> None:
    """Set the parameters of a constructor as attributes, from its ``locals()``.

    scikit-learn reads their names off the constructor's signature and wants them unchanged.
    """
    for name, value in parameters.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
