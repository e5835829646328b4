"""From a source to coded, distinct rows: in one pass if possible.

Rows are counted before their levels are known (`bayescascade.data.counting`). An earlier pass reads
only the columns whose range must be known first: weights, and numbers for bins of equal frequency.
After an error, rows are read again block by block, so that messages name the first wrong row.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.changed_source import with_parts
from bayescascade.data.column import Column
from bayescascade.data.counting import Codebook, KnownCodes, ManyValuesError, RawRows
from bayescascade.data.declarations import ColumnDeclaration, Declarations
from bayescascade.data.distinct_rows import DistinctRows
from bayescascade.data.files import check_units, located_errors
from bayescascade.data.inference import (
    BinCollector,
    Collector,
    LevelCollector,
    collected_columns,
    notes_of,
)
from bayescascade.data.names import check_distinct_names, check_present
from bayescascade.data.partitions import PartitionedSource
from bayescascade.data.schema import Schema
from bayescascade.data.sources import FrameSource, Source, missing_codes_of, weighted_blocks

_FEW = 10_000  # rows

Weights = str | Floats | None


class CountedRows(NamedTuple):
    """The distinct rows of a source."""

    schema: Schema
    codes: Codes  # (n_columns, n_distinct), in lexicographic order
    weights: Floats  # (n_distinct,) > 0
    n_rows: int
    notes: tuple[str, ...] = ()  # on how columns are read


@dataclass(frozen=True)
class RowReader:
    """A request to read a source's rows; made by `of`."""

    source: Source
    columns: dict[str, ColumnDeclaration]  # those to use, in order; empty with a schema
    schema: Schema | None  # None if it is inferred from the rows
    weights: Weights  # a column's name, (n_rows,) >= 0, or None
    missing: str  # "error" or "level"

    @classmethod
    def of(
        cls, source: Source, declarations: Declarations, weights: Weights, schema: Schema | None
    ) -> "RowReader":
        """Check the request; DataError or ParameterError as in `Table.from_frame`."""
        check_distinct_names(source.names)
        weights_column = weights if isinstance(weights, str) else None
        columns = {}
        if schema is None:
            columns = declarations.resolve(source.names, weights_column)
        else:
            if not declarations.is_empty:
                raise ParameterError(
                    "schema excludes columns, drop, nominal, ordinal and continuous"
                )
            check_units(source, schema.columns)
            source = with_parts(source, schema.names)
            needed = schema.names if weights_column is None else [*schema.names, weights_column]
            check_present(needed, source.names)
        return cls(source, columns, schema, weights, declarations.missing)

    def read(self) -> CountedRows:
        """Return the distinct rows, coded; errors name column, rule, value and row."""
        if isinstance(self.source, FrameSource) and self.source.n_rows <= _FEW:
            return self.read_by_blocks()  # faster for few rows
        try:
            return self.read_at_once()
        except (DataError, pyarrow.ArrowException):
            pass  # the pass below gives a better message
        return self.read_by_blocks()

    def read_at_once(self, binned: frozenset[str] = frozenset()) -> CountedRows:
        """Return the rows, counted, then coded; `binned` are undeclared columns for bins."""
        raw, collectors = self._room(binned)
        names = [coder.name for coder in raw.coders]
        weights = self.weights if isinstance(self.weights, str) else None
        if weights is not None:
            names.append(weights)
        try:
            if isinstance(self.source, PartitionedSource):
                raw = self.source.count(raw, names, weights)
            else:
                with closing(self.source.batches(names)) as batches:
                    for batch in batches:
                        raw.add(batch, self.weights, self.source.categorical)
        except ManyValuesError as error:
            many = error.columns
            if many & binned or any(self.columns[name].kind is not None for name in many):
                raise
        else:
            return self._coded(raw, collectors)
        return self.read_at_once(binned | many)

    def read_by_blocks(self) -> CountedRows:
        """Return the same, with rows coded block by block: slower, with full messages."""
        with located_errors(self.source):
            schema = self.schema
            collectors = list(self._collectors().values())
            largest_weight = None
            if collectors or self.weights is not None:
                largest_weight = self._scan(collectors)
            notes: tuple[str, ...] = ()
            if schema is None:
                collectors = self._with_bins(collectors)
                schema, notes = self._found(collectors)
            rows = DistinctRows(schema.n_levels, largest_weight)
            n_rows = 0
            blocks = weighted_blocks(self.source, schema.names, self.weights)
            for first_row, cells, block_weights in blocks:
                codes = schema.encode(cells, allow_missing=False, first_row=first_row)
                if self.schema is not None and self.missing == "error":
                    _check_present_cells(schema, codes, first_row)
                rows.add(codes, block_weights)
                n_rows += len(cells)
        return self._checked(CountedRows(schema, *rows.result(), n_rows, notes))

    def _room(self, binned: frozenset[str]) -> tuple[RawRows, dict[str, Collector]]:
        """Return an empty counter of rows, and collectors after the pass for bins and weights."""
        collectors = self._collectors(binned)
        first = [
            collector
            for collector in collectors.values()
            if isinstance(collector, BinCollector) and collector.declared.edges is None
        ]
        largest_weight = self._scan(first) if first or self.weights is not None else None
        known = {} if self.schema is None else {c.name: c for c in self.schema.columns}
        for collector in first:
            known[collector.name] = collector.column(self.missing, self.weights is not None)
        for name, declared in self.columns.items():
            if declared.edges is not None:
                known[name] = Column(name, "continuous", (), declared.edges, True)
        names = self.columns if self.schema is None else self.schema.names
        coders = [
            KnownCodes(known[name])
            if name in known
            else Codebook(name, is_declared=self.columns[name].kind is not None)
            for name in names
        ]
        return RawRows(coders, largest_weight), collectors

    def _coded(self, raw: RawRows, collectors: dict[str, Collector]) -> CountedRows:
        """Return distinct rows with the codes of their levels."""
        if not raw.n_rows:
            raise DataError(f"{self.source.label or 'the table'} must have at least one row")
        if self.schema is not None and self.missing == "error" and raw.n_missing.any():
            raise DataError("a cell is missing")  # the pass by blocks gives a better message
        numbers, limbs = raw.sums()
        for coder, n_missing in zip(raw.coders, raw.n_missing.tolist(), strict=True):
            if coder.name not in collectors:
                continue
            collector = collectors[coder.name]
            if isinstance(coder, Codebook):
                coder.show(collector)
            collector.n_rows, collector.n_missing = raw.n_rows, n_missing
        notes: tuple[str, ...] = ()
        schema = self.schema
        if schema is None:
            schema, notes = self._found(self._with_bins(list(collectors.values())))
        for coder, column, codes in zip(raw.coders, schema.columns, numbers, strict=True):
            if isinstance(coder, Codebook):
                codes[:] = coder.codes(column)[codes]
                if (codes < 0).any():
                    raise DataError(f'column "{column.name}" has a missing cell')
        rows = DistinctRows(schema.n_levels, raw.largest_weight)
        rows.add_sums(numbers, limbs)
        return self._checked(CountedRows(schema, *rows.result(), raw.n_rows, notes))

    def _found(self, collectors: Sequence[Collector]) -> tuple[Schema, tuple[str, ...]]:
        """Return the columns of the collectors, and notes on them."""
        is_weighted = self.weights is not None
        found = collected_columns(collectors, self.missing, is_weighted)
        codes, units = missing_codes_of(self.source), self.source.units
        columns = (
            replace(c, missing_codes=codes.get(c.name, ()), unit=units.get(c.name, ("", ""))[0])
            for c in found
        )
        schema = Schema(tuple(columns) if codes or units else found)
        return schema, tuple(notes_of(collectors))

    def _with_bins(self, collectors: Sequence[Collector]) -> list[Collector]:
        """Return the collectors; columns of numbers for bins are read again."""
        is_weighted = self.weights is not None
        found = [
            c.with_bins(is_weighted)
            if isinstance(c, LevelCollector) and c.needs_bins(is_weighted)
            else c
            for c in collectors
        ]
        binned = [new for new, old in zip(found, collectors, strict=True) if new is not old]
        if binned:
            self._scan(binned)
        return found

    def _collectors(self, binned: frozenset[str] = frozenset()) -> dict[str, Collector]:
        found: dict[str, Collector] = {}
        for name, declared in self.columns.items():
            has_bins = declared.kind == "continuous" or name in binned
            kind = BinCollector if has_bins else LevelCollector
            found[name] = kind(
                name=name, declared=declared, is_text=self.source.is_text, row_of=self._row_of
            )
        return found

    def _row_of(self, name: str, text: str) -> int | None:
        """Return the first row in which a column has a text."""
        for first_row, cells, _ in weighted_blocks(self.source, [name], None):
            is_there = (cells[name] == text).to_numpy(np.bool_)
            if is_there.any():
                return first_row + int(np.argmax(is_there))
        return None

    def _scan(self, collectors: Sequence[Collector]) -> float | None:
        """Show all rows to the collectors; return the largest weight, None without weights."""
        largest = 0.0
        names = [collector.name for collector in collectors]
        if isinstance(self.weights, np.ndarray) and not names:
            largest = float(self.weights.max(initial=0.0))
        else:
            for _, cells, block_weights in weighted_blocks(self.source, names, self.weights):
                for collector in collectors:
                    collector.add(cells[collector.name], block_weights)
                if block_weights is not None:
                    largest = max(largest, float(block_weights.max()))
        if self.weights is None:
            return None
        if largest == 0:
            raise DataError("weights must not be all zero, got only zeros")
        return largest

    def _checked(self, rows: CountedRows) -> CountedRows:
        if self.schema is None and (rows.schema.n_levels == 1).all():
            counted = "1 row" if rows.n_rows == 1 else f"{rows.n_rows:,} rows"
            raise DataError(
                f"at least one column must vary, got {counted} with the same values: "
                "no split is possible"
            )
        return rows


def _check_present_cells(schema: Schema, codes: Codes, first_row: int) -> None:
    """Raise DataError if a cell is missing."""
    for column, column_codes in zip(schema.columns, codes, strict=True):
        is_missing = column_codes == column.n_levels - 1
        if column.has_missing_level and is_missing.any():
            raise DataError(
                f'column "{column.name}" has a missing cell in row '
                f'{first_row + int(np.argmax(is_missing))}, which missing="error" refuses: fill '
                'it, or read it as the level that the schema has for it with missing="level"'
            )
