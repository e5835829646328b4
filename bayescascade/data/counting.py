"""Counts of distinct rows in one pass, before levels and bins are known.

A column's cells become numbers: positions among the values so far (`Codebook`), or codes if its
levels or bins are known (`KnownCodes`). Arrow counts equal rows of numbers, batch by batch. What
remains are the distinct rows; levels are then found among the distinct values, and only distinct
rows are coded. Memory is proportional to the distinct rows.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_weight_values
from bayescascade.data.arrow_frames import frame_of_arrow, with_distinct_entries
from bayescascade.data.column import MAX_LEVELS, MISSING, Column
from bayescascade.data.distinct_rows import DistinctRows
from bayescascade.data.inference import Collector
from bayescascade.data.levels import Cells, Level, factorize, to_numbers
from bayescascade.data.sources import Batch

_FIRST_CAPACITY = 16
_MOST_UNDECLARED = 1_000  # values
_MISSING_CELL = pd.Series([None], dtype=object)


class ManyValuesError(DataError):
    """Columns have too many values to count them before their levels are known."""

    def __init__(self, message: str, columns: frozenset[str]) -> None:
        super().__init__(message, columns)
        self.columns = columns


class KnownCodes:
    """The codes of a column whose levels or bins are known."""

    def __init__(self, column: Column) -> None:
        self.name, self.capacity = column.name, column.n_levels
        self.column = column
        self.missing = column.n_levels - 1 if column.has_missing_level else MISSING

    def encode(self, cells: Cells) -> NDArray[np.int32]:
        """Return the code of each cell, (n_rows,) int32; raises DataError as `Column.encode`."""
        codes = self.column.encode(cells)
        if (codes == MISSING).any():
            raise DataError(f'column "{self.name}" has a missing cell but no level for it')
        return codes


class Codebook:
    """The distinct values of a column so far, numbered from 1 in order of appearance; 0 is missing.

    Declared values are levels, up to `MAX_LEVELS`. More than a thousand undeclared values, except
    categories, are refused: they are numbers for bins, or of no use to a model.
    """

    missing = 0  # the number of missing cells

    def __init__(self, name: str, is_declared: bool = True) -> None:
        self.name, self.capacity = name, _FIRST_CAPACITY
        self._is_declared = is_declared
        # Keyed by type as well: True and 1 are equal.
        self._number_of: dict[tuple[type, Level], int] = {}
        self._forms: set[tuple[bool, bool]] = set()
        self._samples: list[Cells] = []

    def encode(self, cells: Cells) -> NDArray[np.int32]:
        """Return the number of each cell, (n_rows,) int32; learns new values."""
        if self._refuses_numbers(cells):  # before each of them is looked at
            raise self._many(_MOST_UNDECLARED)
        factor = factorize(self.name, cells)
        form = (factor.is_categorical, factor.is_ordered)
        keys = [(type(value), value) for value in factor.values]
        new = [place for place, key in enumerate(keys) if key not in self._number_of]
        if keys and (new or form not in self._forms):
            self._forms.add(form)
            if factor.is_categorical:
                sample = pd.Series(cells.cat.categories).astype(cells.dtype)
            else:
                values = list(factor.intervals) or [factor.values[place] for place in new or [0]]
                sample = pd.Series(values, dtype=object)
            self._samples.append(sample)
            for place in new:
                self._number_of[keys[place]] = len(self._number_of) + 1
            is_domain = self._is_declared or self._forms != {(False, False)}
            if len(self._number_of) > (MAX_LEVELS if is_domain else _MOST_UNDECLARED):
                raise self._many(len(self._number_of))
            while self.capacity <= len(self._number_of):
                self.capacity *= 2
        numbers = [*(self._number_of[key] for key in keys), 0]  # of position -1
        found: NDArray[np.int32] = np.array(numbers, np.int32)[factor.positions]
        return found

    def _refuses_numbers(self, cells: Cells) -> bool:
        """Return whether cells are too many different numbers, and no declared levels."""
        is_domain = self._is_declared or not self._forms <= {(False, False)}
        if is_domain or not isinstance(cells.dtype, np.dtype) or cells.dtype.kind not in "iuf":
            return False
        return bool(cells.nunique() > _MOST_UNDECLARED)

    def _many(self, n_values: int) -> ManyValuesError:
        message = f'column "{self.name}" has over {n_values:,} values'
        return ManyValuesError(message, frozenset({self.name}))

    def show(self, collector: Collector) -> None:
        """Show a collector one cell of each value, in its forms in the data."""
        for sample in self._samples:
            collector.add(sample, None)

    def codes(self, column: Column) -> NDArray[np.int32]:
        """Return each number's code in a column, (n_numbers,) int32; MISSING if it has none."""
        codes = np.empty(len(self._number_of) + 1, np.int32)
        codes[:1] = column.encode(_MISSING_CELL)
        for sample in self._samples:
            codes[self.encode(sample)] = column.encode(sample)
        return codes

    def numbers_of(self, other: "Codebook") -> NDArray[np.int32]:
        """Return this codebook's number for each number of another; learns its values."""
        numbers = np.zeros(len(other._number_of) + 1, np.int32)
        for sample in other._samples:
            numbers[other.encode(sample)] = self.encode(sample)
        return numbers


class RawRows:
    """Distinct rows of numbers with their counts; for weights see `DistinctRows`."""

    def __init__(
        self, coders: Sequence[Codebook | KnownCodes], largest_weight: float | None
    ) -> None:
        self.coders = list(coders)
        self._columns = [_Column(coder) for coder in coders]
        self.n_rows = 0
        self.n_missing = np.zeros(len(self.coders), np.int64)  # cells of each column
        self.largest_weight = largest_weight
        self._capacities: list[int] = []
        self._rows = self._make_room()

    def add(
        self,
        batch: Batch,
        weights: str | NDArray[np.float64] | None,
        categorical: frozenset[str] = frozenset(),
    ) -> None:
        """Add the rows of a batch.

        weights (n_rows,) float64 >= 0, of the rows of all batches, or a column of the batch;
        `categorical` names columns of a RecordBatch whose dictionaries are categories. Raises
        DataError, which does not name the row, if a cell or weight cannot be used (a
        ManyValuesError has all columns of the batch with too many values), and
        pyarrow.ArrowException if Arrow cannot group a column.
        """
        n_rows = len(batch) if isinstance(batch, pd.DataFrame) else batch.num_rows
        first = self.n_rows
        row_weights = weights[first : first + n_rows] if isinstance(weights, np.ndarray) else None
        if isinstance(weights, str):
            label = f'weights column "{weights}"'
            cells = _weight_cells(batch, weights)
            row_weights = check_weight_values(label, to_numbers(label, cells), 1)
        numbers = np.empty((len(self.coders), n_rows), np.int32)
        many: list[ManyValuesError] = []
        for place, (column, row_numbers) in enumerate(zip(self._columns, numbers, strict=True)):
            try:
                row_numbers[:] = column.numbers(batch, column.name in categorical)
            except ManyValuesError as error:  # all at once: rows are read again after it
                many.append(error)
                continue
            self.n_missing[place] += np.count_nonzero(row_numbers == self.coders[place].missing)
        if many:
            raise ManyValuesError(
                str(many[0]), frozenset().union(*(column.columns for column in many))
            )
        self._add_sums(numbers, self._rows.to_limbs(row_weights, n_rows))
        self.n_rows += n_rows

    def merge(self, other: "RawRows") -> None:
        """Add the rows of another object with the same columns and largest weight."""
        numbers, limbs = other.sums()
        for coder, theirs, column in zip(self.coders, other.coders, numbers, strict=True):
            if isinstance(coder, Codebook) and isinstance(theirs, Codebook):
                column[:] = coder.numbers_of(theirs)[column]
        self.n_rows += other.n_rows
        self.n_missing += other.n_missing
        self._add_sums(numbers, limbs)

    def sums(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the distinct rows of numbers and their weights; see `DistinctRows.sums`."""
        return self._rows.sums()

    def _add_sums(self, numbers: NDArray[np.integer], limbs: NDArray[np.int64]) -> None:
        if [coder.capacity for coder in self.coders] != self._capacities:
            narrow = self._rows
            self._rows = self._make_room()
            self._rows.add_sums(*narrow.sums())
        self._rows.add_sums(numbers, limbs)

    def _make_room(self) -> DistinctRows:
        self._capacities = [coder.capacity for coder in self.coders]
        return DistinctRows(np.array(self._capacities, np.int64), self.largest_weight)


class _Column:
    """A column of the batches, with the numbers of its values so far."""

    def __init__(self, coder: Codebook | KnownCodes) -> None:
        self._coder, self.name = coder, coder.name
        self._is_continuous = isinstance(coder, KnownCodes) and coder.column.kind == "continuous"
        self._values: pyarrow.Array | None = None
        self._numbers = np.empty(0, np.int32)

    def numbers(self, batch: Batch, is_categorical: bool) -> NDArray[np.int32]:
        """Return the number of each cell; for Arrow's cells only new values are encoded."""
        if isinstance(batch, pd.DataFrame):
            return self._coder.encode(batch[self._coder.name])
        cells = batch.column(self._coder.name)
        if not pyarrow.types.is_dictionary(cells.type):
            if self._is_continuous:
                return self._coder.encode(_series(cells))
            cells = cells.dictionary_encode()
        else:
            cells = with_distinct_entries(cells)
        numbers = self._known_numbers(cells.dictionary)
        if numbers is None:
            numbers = self._categories(cells) if is_categorical else self._new_numbers(cells)
        positions = cells.indices
        if positions.null_count:
            numbers = np.append(numbers, self._coder.encode(_MISSING_CELL))
            positions = positions.fill_null(len(numbers) - 1)
        found: NDArray[np.int32] = numbers[positions.to_numpy()]
        return found

    def _known_numbers(self, values: pyarrow.Array) -> NDArray[np.int32] | None:
        """Return the number of each value; None if one is new."""
        if self._values is None or self._values.type != values.type:
            return None
        places = pyarrow.compute.index_in(values, value_set=self._values)
        return None if places.null_count else self._numbers[places.to_numpy()]

    def _new_numbers(self, cells: pyarrow.DictionaryArray) -> NDArray[np.int32]:
        """Return the number of each value that occurs; a dictionary may have others, too."""
        used = pyarrow.compute.unique(cells.indices.drop_null())
        values = cells.dictionary.take(used)
        found = self._coder.encode(_series(values))
        if self._is_continuous:  # nearly all values are new
            pass
        elif self._values is None or self._values.type != values.type:
            self._values, self._numbers = values, found
        else:
            self._values = pyarrow.concat_arrays([self._values, values])
            self._numbers = np.append(self._numbers, found)
        numbers = np.zeros(len(cells.dictionary), np.int32)
        numbers[used.to_numpy()] = found
        return numbers

    def _categories(self, cells: pyarrow.DictionaryArray) -> NDArray[np.int32]:
        """Return the number of each category: these are a domain, even if no cell has them."""
        if isinstance(self._coder, KnownCodes):
            return self._new_numbers(cells)
        places = pyarrow.array(np.arange(len(cells.dictionary)), pyarrow.int32())
        whole = pyarrow.DictionaryArray.from_arrays(
            places, cells.dictionary, ordered=cells.type.ordered
        )
        return self._coder.encode(_series(whole))


def _weight_cells(batch: Batch, name: str) -> Cells:
    if isinstance(batch, pd.DataFrame):
        return batch[name]
    cells = batch.column(name)
    if pyarrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return _series(cells)


def _series(cells: pyarrow.Array) -> Cells:
    return frame_of_arrow(pyarrow.table({"": cells}))[""]
