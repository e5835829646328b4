"""Texts of cells as they are read: without blanks at their ends, and some of them missing.

A blank at the end of "male " is invisible, and would make another level. A note says which columns
have some. Texts such as "NA" are missing cells, except in columns where they are levels.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow
from pyarrow import compute

from bayescascade.base.typed_words import typed
from bayescascade.data.arrow_frames import with_distinct_entries
from bayescascade.data.dialects import GivenDialect
from bayescascade.data.levels import Cells
from bayescascade.data.names import listed_names

MISSING_TEXTS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that pandas.read_csv reads as missing cells."""

BLANKS = "".join(
    map(chr, (*range(9, 14), 32, 133, 160, 5760, *range(8192, 8204), 8232, 8233, 8239, 8287, 8288,
              12288, 65279))
)  # fmt: skip
"""Unicode's blanks, and characters without width."""

_ASCII_BLANKS = (b" ", b"\t", b"\n", b"\r")
_OTHER_BLANKS = tuple(
    {blank.encode()[:2] for blank in BLANKS if not blank.isascii()}
)  # their start
_MOST_NAMED = 3  # columns that have a note each
_MOST_TESTED = 1_000  # cells


class CellTexts:
    """How texts of cells are read; remembers the columns that had blanks at the ends of cells."""

    def __init__(self, dialect: GivenDialect) -> None:
        self._strips, self._kept = dialect.strip, frozenset(dialect.keep_na)
        self._stripped: dict[str, str] = {}  # a cell by the name of the column

    @property
    def missing_texts(self) -> Sequence[str]:
        """The texts that the reader of a file reads as missing cells."""
        return ("",) if self._kept else MISSING_TEXTS

    @property
    def notes(self) -> list[str]:
        """Notes on columns that had blanks at the ends of cells, as far as cells were read."""
        keep = typed("ReadAs(strip=False)", "--no-strip")
        if len(self._stripped) > _MOST_NAMED:
            names = listed_names([f'"{name}"' for name in self._stripped])
            return [f"columns {names} have cells that end in blanks, left out ({keep} keeps them)"]
        return [
            f'column "{name}" has cells with blanks at the ends, such as "{cell}": '
            f"the blanks are left out ({keep} keeps them)"
            for name, cell in self._stripped.items()
        ]

    def of(self, name: str, column: pyarrow.Array) -> pyarrow.Array:
        """Return a column of texts, or a dictionary of them, as it is read."""
        if isinstance(column, pyarrow.DictionaryArray):
            entries = self._read(name, column.dictionary)
            if entries is column.dictionary:
                return column
            return with_distinct_entries(
                pyarrow.DictionaryArray.from_arrays(column.indices, entries)
            )
        return self._read(name, column)

    def of_frame(self, frame: pd.DataFrame, missing_texts: Sequence[str]) -> pd.DataFrame:
        """Return a table of another program with its texts as they are read."""
        columns = [
            self._of_cells(str(name), frame.iloc[:, place], missing_texts)
            for place, name in enumerate(frame)
        ]
        whole = pd.concat(columns, axis=1) if columns else frame
        return whole.set_axis(frame.columns, axis=1)

    def _of_cells(self, name: str, cells: Cells, missing_texts: Sequence[str]) -> Cells:
        if isinstance(cells.dtype, pd.CategoricalDtype):
            texts = cells.cat.categories
            if not self._strips or not all(isinstance(text, str) for text in texts):
                return cells
            tidy = [text.strip(BLANKS) for text in texts]
            self._note(name, list(texts), tidy)
            return cells.cat.rename_categories(tidy) if len(set(tidy)) == len(tidy) else cells
        if cells.dtype != object and not pd.api.types.is_string_dtype(cells.dtype):
            return cells
        positions, distinct = pd.factorize(cells.astype(object))
        if not any(isinstance(value, str) for value in distinct):
            return cells
        tidy = [v.strip(BLANKS) if isinstance(v, str) and self._strips else v for v in distinct]
        self._note(name, list(distinct), tidy)
        missing = ("",) if name in self._kept else missing_texts
        found = [None if isinstance(v, str) and v in missing else v for v in tidy]
        values = np.empty(len(found) + 1, object)
        values[:] = [*found, None]
        return pd.Series(values[positions], cells.index, dtype=object)

    def _read(self, name: str, texts: pyarrow.Array) -> pyarrow.Array:
        missing = None
        if self._kept:  # the reader knows only empty cells
            missing = ("",) if name in self._kept else MISSING_TEXTS
        if self._strips and _may_have_blanks(texts):
            tidy = compute.utf8_trim(texts, characters=BLANKS)
            if not tidy.equals(texts):
                self._note_arrow(name, texts, tidy)
                texts, missing = tidy, ("",) if name in self._kept else MISSING_TEXTS
        if missing is None:
            return texts
        is_missing = compute.is_in(texts, value_set=pyarrow.array(missing, texts.type))
        return compute.if_else(is_missing, pyarrow.scalar(None, texts.type), texts)

    def _note_arrow(self, name: str, texts: pyarrow.Array, tidy: pyarrow.Array) -> None:
        if name not in self._stripped:
            are_other = compute.fill_null(compute.not_equal(texts, tidy), False)
            self._note(name, *(
                each.filter(are_other).slice(0, _MOST_TESTED).to_pylist() for each in (texts, tidy)
            ))  # fmt: skip

    def _note(self, name: str, texts: Sequence[object], tidy: Sequence[object]) -> None:
        """Remember a column, unless it holds numbers, which are read with blanks, too."""
        others = [text for text, new in zip(texts, tidy, strict=True) if text != new and new != ""]
        numbers = pd.to_numeric(pd.Series(others, dtype=object), errors="coerce")
        found = [
            str(text) for text, number in zip(others, numbers, strict=True) if number != number
        ]
        if found:
            self._stripped.setdefault(name, found[0])


def _may_have_blanks(texts: pyarrow.Array) -> bool:
    """Return whether there may be blanks in texts: quick, as most columns have none."""
    data = texts.buffers()[2]
    if data is None:
        return False
    letters = data.to_pybytes()
    return any(blank in letters for blank in _ASCII_BLANKS) or (
        not letters.isascii() and any(start in letters for start in _OTHER_BLANKS)
    )
