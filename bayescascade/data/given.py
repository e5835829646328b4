"""Rows from a user, read once into one value: files, tables, arrays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.arrow_frames import as_column, as_frame
from bayescascade.data.column import Column
from bayescascade.data.files import are_paths, open_learned
from bayescascade.data.levels import Cells, Level, parse_texts
from bayescascade.data.names import check_distinct_names, listed_names
from bayescascade.data.read_as import ReadAs
from bayescascade.data.sources import missing_codes_of, weighted_blocks, with_readings


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows:
    """Rows, and perhaps their labels and weights; made by `of` or `labeled`.

    All methods that take rows first make this value; only this module looks at the type of the
    rows.
    """

    cells: Any  # a DataFrame; for rows without named columns an array that is not checked yet
    labels: Any = None  # (n_rows,), not checked yet, like weights
    weights: Any = None
    is_text: bool = False  # whether numbers are still the texts of a file

    @classmethod
    def of(cls, X: Any, columns: Iterable[Column] = ()) -> "GivenRows":
        """Read rows; a Series, or a mapping of single values, is one row.

        Files are read as a model's `columns` were; see `open_learned`.
        """
        if isinstance(X, cls):
            return X
        if are_paths(X):
            return cls._of_files(X, columns).typed()
        return cls._of_table(X)

    @classmethod
    def labeled(cls, X: Any, y: Any, sample_weight: Any = None) -> "GivenRows":
        """Read rows, labels and weights; for files these may be columns, then not features."""
        return cls.of_texts(X, y, sample_weight).typed()

    @classmethod
    def validating(cls, X: Any, y: Any) -> "GivenRows | None":
        """Read validation rows, with or without labels; None if there are no rows."""
        if X is None and y is not None:
            raise ParameterError("X_val must be given with y_val, got None")
        return None if X is None else cls.of(X) if y is None else cls.labeled(X, y)

    @classmethod
    def of_texts(cls, X: Any, y: Any, sample_weight: Any = None) -> "GivenRows":
        """Read rows as `labeled` does, but keep the texts of numbers in text files."""
        if isinstance(X, cls) or not are_paths(X):
            rows = X if isinstance(X, cls) else cls._of_table(X)
            return replace(rows, labels=y, weights=sample_weight)
        if isinstance(X, ReadAs):
            X = X.with_names(labels=y, weights=sample_weight)
        rows = cls._of_files(X)
        columns = listed_names(list(rows.cells.columns))
        if y is None:
            raise ParameterError(
                f"y must be the labels, or the name of the label column in {X}, got None; "
                f"columns: {columns}"
            )
        for option, name in (("y", y), ("sample_weight", sample_weight)):
            if isinstance(name, str) and name not in rows.cells.columns:
                raise ParameterError(f"{option} must name a column of {X}, got {name!r}: {columns}")
        labels, weights = (
            rows.cells.pop(given) if isinstance(given, str) else given
            for given in (y, sample_weight)
        )
        return replace(rows, labels=labels, weights=weights)

    @classmethod
    def _of_files(cls, paths: Any, columns: Iterable[Column] = ()) -> "GivenRows":
        source = open_learned(paths, columns)
        check_distinct_names(source.names)
        blocks = [cells for _, cells, _ in weighted_blocks(source, source.names, None)]
        whole = with_readings(pd.concat(blocks, ignore_index=True), source)
        return cls(whole, is_text=source.is_text)

    @classmethod
    def _of_table(cls, X: Any) -> "GivenRows":
        X = as_frame(X)
        if isinstance(X, pd.Series):
            X = X.to_dict()
        if isinstance(X, Mapping) and not hasattr(X, "tocoo"):  # a sparse matrix may be one
            X = frame_from_mapping(X)
        if isinstance(X, list | tuple):  # NumPy would turn all cells into text if some are
            X = np.array(X, dtype=object)
        return cls(X)

    def typed(self) -> "GivenRows":
        """Return the rows with columns of text in the types that pandas gives."""
        if not self.is_text:
            return self
        labels, weights = (
            typed_frame(values.to_frame()).iloc[:, 0] if isinstance(values, pd.Series) else values
            for values in (self.labels, self.weights)
        )
        return GivenRows(with_readings(typed_frame(self.cells), self.cells), labels, weights)

    @property
    def is_named(self) -> bool:
        """Whether columns are matched by name, and not by position."""
        return isinstance(self.cells, pd.DataFrame)

    @property
    def index(self) -> pd.Index | None:
        """The names of the rows; None if they are numbered."""
        return self.cells.index if self.is_named else None

    @property
    def missing_codes(self) -> Mapping[str, tuple[Level, ...]]:
        """See `missing_codes_of`."""
        return missing_codes_of(self.cells)

    def numbers(self, least_rows: int = 0) -> NDArray[Any] | None:
        """Return an array of numbers, which is faster than a frame; None if it is no such array.

        DataError if it has fewer than `least_rows`.
        """
        if self.is_named:
            return None
        array = self._array(least_rows)
        return array if array.dtype.kind in "biuf" else None

    def named(self, names: Sequence[str] | None) -> pd.DataFrame:
        """Return the cells as a DataFrame, with `names` for an array; see `frame_from_array`."""
        return (
            cast(pd.DataFrame, self.cells) if self.is_named else frame_from_array(self.cells, names)
        )

    def frame(self, names: Sequence[str] | None = None, owner: str = "") -> pd.DataFrame:
        """Return rows as a DataFrame whose names of columns are text.

        `names` are those of an array's columns, by default x0, x1, ...; messages name their
        `owner`. ValueError, in scikit-learn's words, if an array is not a table of as many columns.
        """
        if not self.is_named:
            array = self._array(int(names is None))  # fit needs rows
            if names is not None:
                check_width(array.shape[1], len(names), owner)
            return frame_from_array(array, names)
        columns = [str(name) for name in self.cells.columns]
        check_distinct_names(columns)
        if not columns or (names is None and not len(self.cells)):  # fit needs rows
            shape = self.cells.shape
            raise DataError(f"X must have at least one row and column, got shape {shape}")
        return self.named(None).set_axis(columns, axis=1)

    def plain(self) -> Any:
        """Return rows as a table, or as an array if their columns have no names."""
        frame = self.frame()
        return frame if self.is_named else frame.to_numpy()

    def _array(self, least_rows: int) -> NDArray[Any]:
        from sklearn.utils import check_array  # a Table does not need names of rows

        if isinstance(self.cells, np.ndarray):
            check_no_records(self.cells)
        array: NDArray[Any] = check_array(
            self.cells, dtype=None, ensure_all_finite=False, ensure_min_samples=least_rows
        )
        return array


def column_text(column: str | int) -> str:
    """Return a column's name, or "x3" for an index."""
    return column if isinstance(column, str) else f"x{column}"


def frame_from_array(data: object, names: Sequence[str] | None) -> pd.DataFrame:
    """Return a 2-D array or list of lists as a DataFrame; names default to x0, x1, ..."""
    # Object cells keep their types: np.array([[1, "a"]]) would turn 1 into text.
    array = data if isinstance(data, np.ndarray) else np.array(data, dtype=object)
    check_no_records(array)
    if array.ndim != 2:
        raise DataError(f"an array of rows must have 2 dimensions, got {array.ndim}")
    if names is None:
        names = [column_text(index) for index in range(array.shape[1])]
    if array.shape[1] != len(names):
        raise DataError(f"rows must have {len(names)} columns, got {array.shape[1]}")
    columns = (pd.Series(array[:, index]) for index in range(array.shape[1]))
    return pd.concat(columns, axis=1, keys=list(names)) if len(names) else pd.DataFrame()


def check_no_records(array: NDArray[np.generic]) -> None:
    """Raise DataError if an array's rows are dicts or records, whose cells have names."""
    is_records = array.dtype.names is not None
    is_dicts = array.ndim == 1 and len(array) > 0 and isinstance(array[0], Mapping)
    if is_records or is_dicts:
        found = "records" if is_records else "dicts"
        raise DataError(f"rows must be a table or lists of cells, got {found}: use DataFrame(rows)")


def frame_from_mapping(data: Mapping[Any, object]) -> pd.DataFrame:
    """Return a row, name to value, or columns, name to values, as a DataFrame."""
    is_single = all(pd.api.types.is_scalar(value) for value in data.values())
    if is_single:
        return pd.DataFrame({name: pd.Series([v], dtype=object) for name, v in data.items()})
    columns = {name: as_column(cells) for name, cells in data.items()}
    try:
        return pd.DataFrame(columns)
    except ValueError as error:
        raise DataError(f"columns must have the same length: {error}") from None


def check_width(width: int, expected: int, owner: str) -> None:
    """Raise DataError, in scikit-learn's words, if rows are not as wide as an estimator expects."""
    if width != expected:
        raise DataError(
            f"X has {width} features, but {owner} is expecting {expected} features as input"
        )


class TextTypes:
    """Types of columns of text, as pandas.read_csv gives them to the whole file, not to a block.

    All blocks are shown first, and then typed one by one. From each block only a few texts are
    kept, for which pandas chooses the same type as for the block.
    """

    def __init__(self) -> None:
        self._witnesses: dict[str, tuple[str, ...]] = {}
        self._has_missing: dict[str, bool] = {}

    def see(self, block: pd.DataFrame) -> None:
        """Record a block's texts; categories stay unchanged."""
        for name in block.columns:
            if isinstance(block[name].dtype, pd.CategoricalDtype):
                continue
            positions, distinct = pd.factorize(block[name])
            seen = self._witnesses.get(name, ())
            self._witnesses[name] = _witnesses(pd.Series(parse_texts([*distinct, *seen])))
            self._has_missing[name] = self._has_missing.get(name, False) or -1 in positions

    def typed(self, block: pd.DataFrame) -> pd.DataFrame:
        """Return a recorded block as numbers, truth values and texts."""
        seen, gaps = self._witnesses, self._has_missing  # without categories
        typed = {n: _typed(block[n], seen.get(n, ()), gaps.get(n, False)) for n in block.columns}
        return pd.DataFrame(typed)


def typed_frame(cells: pd.DataFrame) -> pd.DataFrame:
    """Return all cells of a text file typed as pandas reads them."""
    return pd.DataFrame({name: _typed(cells[name]) for name in cells.columns})


def _typed(texts: Cells, witnesses: Sequence[str] = (), has_missing: bool = False) -> Cells:
    if isinstance(texts.dtype, pd.CategoricalDtype):
        return texts.reset_index(drop=True)
    positions, distinct = pd.factorize(texts)
    values: Cells = pd.Series(parse_texts([*distinct.tolist(), *witnesses]))
    if has_missing:  # so its type allows missing cells in every block
        return values.reindex([*positions, -1]).iloc[:-1].reset_index(drop=True)
    return values.reindex(positions).reset_index(drop=True)


def _witnesses(values: Cells) -> tuple[str, ...]:
    """Return a few texts that give the same type as the whole column."""
    if values.empty:
        return ()
    if pd.api.types.is_bool_dtype(values.dtype):
        return ("True",)
    if pd.api.types.is_float_dtype(values.dtype):
        return ("0.5",)
    if isinstance(values.iloc[0], str):
        return ("text",)
    return (str(values.min()), str(values.max()))  # the type of integers depends on their size
