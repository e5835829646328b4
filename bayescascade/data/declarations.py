"""What a user declares about a table: which columns to use, and what kind each one is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.data.column import MAX_LEVELS, Column, Kind
from bayescascade.data.levels import Level, plain_level, tidy_levels
from bayescascade.data.schema import check_known

__all__ = [
    "ColumnDeclaration",
    "ContinuousSpec",
    "Declarations",
    "Names",
    "NominalSpec",
    "OrdinalSpec",
    "by_name",
]

Names: TypeAlias = Sequence[str]
NominalSpec: TypeAlias = Names | Mapping[str, Sequence[Level] | None]
OrdinalSpec: TypeAlias = Names | Mapping[str, Sequence[Level] | None]
ContinuousSpec: TypeAlias = Mapping[str, int | Sequence[float]]


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """What is declared of one column; None where the data decide."""

    kind: Kind | None = None
    levels: tuple[Level, ...] | None = None
    edges: tuple[float, ...] | None = None
    n_bins: int | None = None


@dataclass(frozen=True, slots=True)
class Declarations:
    """A table's declarations, as `Table.from_frame` takes them; names are checked by `resolve`."""

    columns: Names | None = None
    drop: Names | None = None
    nominal: NominalSpec | None = None
    ordinal: OrdinalSpec | None = None
    continuous: ContinuousSpec | None = None
    missing: str = "error"

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
        """Whether nothing is said about columns and kinds."""
        options = (self.columns, self.drop, self.nominal, self.ordinal, self.continuous)
        return all(option is None for option in options)

    def resolve(self, names: Names, weights: str | None) -> dict[str, ColumnDeclaration]:
        """Return the declaration of each column to use, in order.

        Parameters
        ----------
        names : list of str
            The data's columns.
        weights : str or None
            The column that holds weights, which is not used otherwise.

        Raises
        ------
        DataError
            If a name is unknown or no column is left.
        ParameterError
            If declarations contradict each other or are malformed.
        """
        for option, chosen in (
            ("columns", self.columns),
            ("drop", self.drop),
            ("nominal", self.nominal),
            ("ordinal", self.ordinal),
            ("continuous", self.continuous),
            ("weights", None if weights is None else [weights]),
        ):
            check_known(option, chosen or (), names)
        if weights in (self.columns or ()):
            raise ParameterError(f'column "{weights}" must not be both in columns and the weights')
        unused = {weights, *(self.drop or ())}
        used = [name for name in dict.fromkeys(self.columns or names) if name not in unused]
        if not used:
            raise DataError("at least one column must be used, got none")
        return self._declare(used)

    def _declare(self, used: list[str]) -> dict[str, ColumnDeclaration]:
        declared: dict[str, ColumnDeclaration] = {}
        for option in ("nominal", "ordinal", "continuous"):
            for name in getattr(self, option) or ():
                if name not in used:
                    raise ParameterError(f'{option} names column "{name}", which is not used')
                if name in declared:
                    raise ParameterError(
                        f'column "{name}" must be declared once, '
                        f"got {declared[name].kind} and {option}"
                    )
                declared[name] = self._declare_column(name, option)
        return {name: declared.get(name, ColumnDeclaration()) for name in used}

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


def by_name(option: str, declared: Any, names: Names) -> dict[str, Any]:
    """Return a declaration by column name, which may have numbers; None for what is only listed.

    Raises
    ------
    DataError, ParameterError
        If a name is unknown, a number out of range, or a column named twice.
    """
    listed = () if declared is None else declared
    items = listed.items() if isinstance(listed, Mapping) else [(key, None) for key in listed]
    pairs = list(items)
    found = {
        key
        if isinstance(key, str)
        else names[check_integer(f"a column number in {option}", key, 0, len(names) - 1)]: value
        for key, value in pairs
    }
    if not isinstance(declared, str) and len(found) < len(pairs):
        raise ParameterError(f"{option} must name each column once, got {declared!r}")
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
