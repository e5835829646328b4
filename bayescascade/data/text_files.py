"""Text files with a header: CSV, and the like of other programs and countries."""

import csv
import io
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.csv
from pyarrow.compute import not_equal

from bayescascade.base.errors import DataError
from bayescascade.base.typed_words import typed
from bayescascade.data.arrow_frames import with_distinct_entries
from bayescascade.data.cell_texts import BLANKS, MISSING_TEXTS, CellTexts
from bayescascade.data.data_file import DataFile, OpenedFile, explained_errors
from bayescascade.data.dialects import SNIFFED_BYTES, TO_BE_FOUND, GivenDialect, KeptLines, sniffed
from bayescascade.data.number_marks import CURRENCIES, Marks, found_marks, notes_on_marks
from bayescascade.data.sources import Batch, Units

_CSV_BLOCK_BYTES = 2 << 20
_UNITS = frozenset(f"%{CURRENCIES}")
_MOST_BLANK = 1 << 12  # characters after a header that are searched for rows


class CsvSource(OpenedFile):
    """A text file with a header, perhaps compressed, all cells as text; see `Dialect`."""

    format_name = "CSV"
    is_text = True
    categorical: frozenset[str] = frozenset()

    def __init__(
        self,
        path: str | PathLike[str] | DataFile,
        chunk_rows: int,
        dialect: GivenDialect = TO_BE_FOUND,
    ) -> None:
        super().__init__(path, chunk_rows)
        self._given = dialect
        self._dialect = sniffed(self._file.start(SNIFFED_BYTES), dialect)
        words = self._dialect.words
        self.opening_notes = [f"{self.label} is read as text with {words}"] if words else []
        self._texts = CellTexts(dialect)
        rows, self._dialect = self._dialect.rows, replace(self._dialect, rows=())
        self._raw_names = self._read_header()
        if len(self._raw_names) == 1 and (advice := self._advice()):
            whole = typed('ReadAs(sep=",")', "--sep ,")
            if not self._dialect.has_commas_between:
                advice += f"; if it is a table of one column, {whole} says so"
            raise DataError(
                f"{self.label} begins with a line of one cell before rows of several{advice}"
            )
        # pandas' name for a column without a name
        tidy = [name.strip(BLANKS) if dialect.strip else name for name in self._raw_names]
        self.names = [name or f"Unnamed: {i}" for i, name in enumerate(tidy)]
        n_unnamed = tidy.count("")
        if n_unnamed > 1 and 2 * n_unnamed >= len(tidy):
            self.opening_notes.append(
                f"{self.label} has {n_unnamed} columns without a name: if its first line is a "
                f"title, {_skip_words(dialect.skip + 1)} leaves it out"
            )

        self._marks: dict[str, Marks] = {}
        if self._has_rows and len(set(self.names)) == len(self.names):
            self._marks = self._agreed(dict(self._candidates(rows)))
        self.units: Units = {}
        for name, cells in zip(self.names, zip(*rows, strict=True), strict=False):
            if filled := [cell for cell in cells if cell not in MISSING_TEXTS]:
                marks = self._marks.get(name, Marks())
                unit = "%" if marks.has_percent else marks.currency
                odd = max(filled, key=lambda cell: (_UNITS.isdisjoint(cell), len(cell)))
                self.units[name] = unit, odd

    @property
    def notes(self) -> Sequence[str]:
        """Notes on how the rows are read, as far as they were."""
        return [*self.opening_notes, *self._texts.notes]

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, at most `chunk_rows` rows at a time."""
        # Arrow numbers rows only if one thread reads, which is fast enough.
        for batch in self._batches(names, pyarrow.string(), use_threads=False):
            yield batch.to_pandas()

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`, as dictionaries of texts."""
        return self._batches(names, pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))

    def _batches(
        self,
        names: Sequence[str],
        kind: pyarrow.DataType,
        *,
        use_threads: bool = True,
        as_written: bool = False,
    ) -> Generator[pyarrow.RecordBatch, None, None]:
        if not self._has_rows:  # Arrow's threads could abort a program that exits soon
            return
        raw_names = [self._raw_names[self.names.index(name)] for name in names]
        broken_rows = []

        def refuse(row: pyarrow.csv.InvalidRow) -> str:
            broken_rows.append(row)
            return "error"

        with explained_errors(self.label, broken_rows, self._given.encoding, self._advice()):
            stream, encoding = self._stream()
            options = (
                pyarrow.csv.ReadOptions(
                    use_threads=use_threads,
                    block_size=_CSV_BLOCK_BYTES,
                    encoding=encoding.removesuffix("-sig"),  # Arrow skips the mark itself
                ),
                pyarrow.csv.ParseOptions(
                    delimiter=self._dialect.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=refuse,
                ),
                pyarrow.csv.ConvertOptions(
                    include_columns=raw_names,
                    column_types=dict.fromkeys(raw_names, kind),
                    null_values=self._texts.missing_texts,
                    strings_can_be_null=True,
                ),
            )
            with stream, pyarrow.csv.open_csv(stream, *options) as reader:
                for batch in reader:
                    columns = [
                        self._texts.of(name, column)
                        for name, column in zip(names, batch.columns, strict=True)
                    ]
                    if not as_written:
                        columns = list(map(self._without_marks, names, columns))
                    batch = pyarrow.RecordBatch.from_arrays(columns, list(names))
                    for start in range(0, batch.num_rows, self._chunk_rows):
                        yield batch.slice(start, self._chunk_rows)

    def _without_marks(self, name: str, column: pyarrow.Array) -> pyarrow.Array:
        """Return texts, or a dictionary of them, with numbers as Python writes them."""
        marks = self._marks.get(name)
        if marks is None:
            return self._dialect.with_points(column)
        if not isinstance(column, pyarrow.DictionaryArray):
            return marks.without(column)
        entries = marks.without(column.dictionary)
        return with_distinct_entries(pyarrow.DictionaryArray.from_arrays(column.indices, entries))

    def _candidates(self, rows: Sequence[Sequence[str]]) -> Iterator[tuple[str, Marks]]:
        """Yield columns whose first cells agree in marks of numbers, and these."""
        decimal = "," if self._dialect.has_decimal_commas else "."
        ignored = {*MISSING_TEXTS, *self._given.missing_codes}
        given = self._given.thousands
        for name, cells in zip(self.names, zip(*rows, strict=True), strict=False):
            texts = [cell.strip(BLANKS) for cell in cells] if self._given.strip else cells
            marks = found_marks(texts, decimal, ignored, given)
            if marks is None and given is not None:
                marks = Marks(decimal, given)
            if marks is not None:
                yield name, marks

    def _agreed(self, marks: dict[str, Marks]) -> dict[str, Marks]:
        """Return the marks in which all cells of a column agree, and tell of them."""
        cells: dict[str, str] = {}
        kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        try:
            for batch in self._batches(list(marks), kind, as_written=True) if marks else ():
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    texts = column.dictionary
                    if name in marks and not marks[name].fit(texts, self._given.missing_codes):
                        del marks[name]
                    elif name in marks and name not in cells:
                        changed = texts.filter(not_equal(texts, marks[name].without(texts)))
                        cells |= {name: str(changed[0])} if len(changed) else {}
                if not marks:
                    break
        except DataError:  # a later pass explains it
            return {}
        agreed = {name: each for name, each in marks.items() if name in cells}
        self.opening_notes += notes_on_marks([(n, m, cells[n]) for n, m in agreed.items()])
        return agreed

    def _stream(self) -> tuple[Any, str]:
        """Return a stream of the header and the rows, and its encoding."""
        stream, dialect = self._file.stream(), self._dialect
        if not dialect.n_skipped and dialect.comment is None:
            return stream, dialect.encoding
        return KeptLines(stream, dialect.encoding, dialect.n_skipped, dialect.comment), "utf-8"

    def _read_header(self) -> list[str]:
        with explained_errors(self.label, encoding=self._given.encoding):
            stream, encoding = self._stream()
            with io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
                rows = csv.reader(text, delimiter=self._dialect.delimiter)
                header = next((row for row in rows if row), None)
                rest = text.read(_MOST_BLANK)
        if header is None:
            raise DataError(f"{self.label} must have a header and rows, got an empty file")
        self._has_rows = bool(rest.strip()) or len(rest) == _MOST_BLANK
        return header

    def _advice(self) -> str:
        """Return what may help if rows have another number of cells than the header."""
        advised = []
        if self._dialect.n_titles:
            lines = "line is" if self._dialect.n_titles == 1 else "lines are"
            number = "" if self._dialect.n_titles == 1 else f"{self._dialect.n_titles} "
            texts = _skip_words(self._given.skip + self._dialect.n_titles)
            advised.append(f"if the first {number}{lines} no header, {texts} leaves them out")
        if self._dialect.has_comments:
            texts = typed('ReadAs(comment="#")', "--comment '#'")
            advised.append(f'lines begin with "#": {texts} leaves them out')
        return "".join(f"; {each}" for each in advised)


def _skip_words(n: int) -> str:
    return typed(f"ReadAs(skip={n})", f"--skip {n}")
