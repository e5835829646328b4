"""Declarations about a table: which columns to use, and the kind of each.

Estimators have the same declarations. They are dataclasses: scikit-learn reads the names of
parameters from the signature, and the unchanged values from attributes of the same names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypedDict

import numpy as np

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.data.column import MAX_LEVELS, Column, Kind
from bayescascade.data.levels import Level, plain_level, tidy_levels
from bayescascade.data.names import check_known

Names: TypeAlias = Sequence[str | int] | None
Levels: TypeAlias = Mapping[Any, Sequence[Any] | None] | Names
Bins: TypeAlias = Mapping[Any, int | Sequence[float]] | None
"""Declarations of columns; Any stands for names or, with arrays, indices, and for levels."""


class Declared(TypedDict, total=False):
    """Declarations as keywords; see `bayescascade.data.table.Table`."""

    columns: Names
    drop: Names
    nominal: Levels
    ordinal: Levels
    continuous: Bins
    missing: str


class ColumnKinds(Protocol):
    """The declarations of an estimator; see `bayescascade.data.table.Table`."""

    nominal: Levels
    ordinal: Levels
    continuous: Bins
    missing: str


def declared(columns: ColumnKinds) -> Any:  # Any: a Declared
    """Return the declarations by keyword."""
    names = Declared.__annotations__
    return {name: getattr(columns, name) for name in names if hasattr(columns, name)}


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """The declaration of one column; None means that the data decide."""

    kind: Kind | None = None
    levels: tuple[Level, ...] | None = None
    edges: tuple[float, ...] | None = None
    n_bins: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class Declarations:
    """The declarations of a table, as in `Table.from_frame`; `resolve` checks names."""

    columns: Names = None
    drop: Names = None
    nominal: Levels = None
    ordinal: Levels = None
    continuous: Bins = None
    missing: str = "level"

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, ("error", "level"))
        for option in ("columns", "drop", "nominal", "ordinal"):
            value = getattr(self, option)
            if value is not None and (isinstance(value, str) or not isinstance(value, Iterable)):
                raise ParameterError(f"{option} must be a list of column names, got {value!r}")
        if not isinstance(self.continuous, Mapping | None):
            raise ParameterError(
                "continuous must map column names to a number of bins or a list of edges, "
                f"got {self.continuous!r}"
            )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is declared about columns and kinds."""
        return all(each is None for name, each in declared(self).items() if name != "missing")

    def resolve(self, names: Sequence[str], weights: str | None) -> dict[str, ColumnDeclaration]:
        """Return the declaration of each column to use, in order; `names` are the data's columns.

        The column `weights`, if any, is left out. Raises DataError if a name is unknown or no
        column is left, ParameterError if declarations contradict each other or are malformed.
        """
        for option in ("columns", "drop", "nominal", "ordinal", "continuous"):
            check_known(option, getattr(self, option) or (), names)
        check_known("weights", () if weights is None else [weights], names)
        if weights in (self.columns or ()):
            raise ParameterError(f'column "{weights}" must not be both in columns and the weights')
        unused = {weights, *(self.drop or ())}
        chosen: Any = self.columns or names  # which are known, so they are text
        used = [name for name in dict.fromkeys(chosen) if name not in unused]
        if not used:
            raise DataError("at least one column must be used, got none")
        return self._declare(used)

    def _declare(self, used: list[str]) -> dict[str, ColumnDeclaration]:
        found: dict[str, ColumnDeclaration] = {}
        for option in ("nominal", "ordinal", "continuous"):
            for name in getattr(self, option) or ():
                if name not in used:
                    raise ParameterError(f'{option} names column "{name}", which is not used')
                if name in found:
                    raise ParameterError(
                        f'column "{name}" must be declared once, '
                        f"got {found[name].kind} and {option}"
                    )
                found[name] = self._declare_column(name, option)
        return {name: found.get(name, ColumnDeclaration()) for name in used}

    def _declare_column(self, name: str, option: str) -> ColumnDeclaration:
        if option == "continuous":
            assert self.continuous is not None
            return _declare_continuous(name, self.continuous[name])
        kind: Kind = "nominal" if option == "nominal" else "ordinal"
        spec = getattr(self, option)
        levels = spec[name] if isinstance(spec, Mapping) else None
        if levels is None:
            return ColumnDeclaration(kind)
        if isinstance(levels, str) or not isinstance(levels, Sequence | np.ndarray):
            raise ParameterError(f'levels of column "{name}" must be a list, got {levels!r}')
        plain = [plain_level(name, level) for level in levels]
        tidy = tidy_levels(plain)
        if len(tidy) != len(plain):
            raise DataError(f'levels of column "{name}" must be different, got {plain}')
        if kind == "nominal":
            tidy.sort()
        return ColumnDeclaration(kind, levels=Column(name, kind, tuple(tidy)).levels)


def by_name(option: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a declaration by column name, from names or numbers; None for columns only listed."""
    listed = () if given is None else given
    items = listed.items() if isinstance(listed, Mapping) else [(key, None) for key in listed]
    pairs = list(items)
    found = {
        key
        if isinstance(key, str)
        else names[check_integer(f"a column number in {option}", key, 0, len(names) - 1)]: value
        for key, value in pairs
    }
    if not isinstance(given, str) and len(found) < len(pairs):
        raise ParameterError(f"{option} must name each column once, got {given!r}")
    check_known(option, found, names)
    return found


def _declare_continuous(name: str, spec: object) -> ColumnDeclaration:
    if isinstance(spec, Sequence | np.ndarray) and not isinstance(spec, str):
        try:
            edges = tuple(float(edge) for edge in spec)
        except (TypeError, ValueError):
            raise ParameterError(
                f'edges of column "{name}" must be numbers, got {spec!r}'
            ) from None
        return ColumnDeclaration("continuous", edges=Column(name, "continuous", (), edges).edges)
    n_bins = check_integer(f'continuous["{name}"]', spec, 1, MAX_LEVELS - 1)
    return ColumnDeclaration("continuous", n_bins=n_bins)
