"""What constructors of estimators take to declare columns, and how they keep parameters."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["Continuous", "Names", "Ordinal", "store_parameters"]

Names: TypeAlias = Sequence[str | int] | None
Ordinal: TypeAlias = Mapping[Any, Sequence[Any] | None] | Sequence[str | int] | None
Continuous: TypeAlias = Mapping[Any, int | Sequence[float]] | None
"""Declarations of columns; Any stands for names or, with arrays, indices, and for levels."""


def store_parameters(estimator: object, parameters: Mapping[str, Any]) -> None:
    """Set the parameters of a constructor as attributes, from its ``locals()``.

    scikit-learn reads their names off the constructor's signature and wants them unchanged.
    """
    for name, value in parameters.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
