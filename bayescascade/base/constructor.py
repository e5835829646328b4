"""What constructors of estimators take to declare columns.

Estimators are dataclasses: scikit-learn reads the names of parameters off the signature, and finds
the values unchanged in attributes of the same names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["ColumnKinds", "Columns", "Continuous", "Names", "Ordinal"]

Names: TypeAlias = Sequence[str | int] | None
Ordinal: TypeAlias = Mapping[Any, Sequence[Any] | None] | Sequence[str | int] | None
Continuous: TypeAlias = Mapping[Any, int | Sequence[float]] | None
"""Declarations of columns; Any stands for names or, with arrays, indices, and for levels."""


@dataclass(eq=False, repr=False, kw_only=True)
class ColumnKinds:
    """How to read columns; see `bayescascade.data.table.Table`."""

    nominal: Names = None
    ordinal: Ordinal = None
    continuous: Continuous = None
    missing: str = "error"


@dataclass(eq=False, repr=False, kw_only=True)
class Columns(ColumnKinds):
    """Which columns to use, and how to read them; see `bayescascade.data.table.Table`."""

    columns: Names = None
    drop: Names = None
