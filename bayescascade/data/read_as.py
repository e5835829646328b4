"""Files or a table, with options for reading them."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_real
from bayescascade.data.cell_texts import BLANKS, MISSING_TEXTS
from bayescascade.data.column import Column
from bayescascade.data.dialects import GivenDialect
from bayescascade.data.levels import Level, level_text, plain_level

Codes: TypeAlias = Sequence[Any] | Mapping[str | None, Sequence[Any]] | None
"""Any is for levels, which are checked one by one."""


@dataclass(frozen=True, eq=False)
class ReadAs:
    """Files or a table with options for reading; can be used wherever files can.

    `fit`, `Table.from_files` and all methods that score rows accept it. The model then reads new
    rows in the same way: it knows the codes of missing cells, the levels that were not rare, and
    the required parts of dates.

    Parameters
    ----------
    rows : path, URL, list of them, DataFrame or other table
    sep : str, optional
        The character between cells of text files. By default it is detected, like the next two
        options.
    encoding : str, optional
        Encoding of text files, such as "cp1252".
    decimal : {".", ","}, optional
        Decimal separator in text files.
    thousands : str, optional
        The character between thousands in text files. By default it is detected where all cells of
        a column agree, like percent signs and signs of currencies, which are left out.
    skip : int >= 0
        Lines before the header, such as titles, that are left out; also of an Excel sheet.
    comment : str, optional
        Lines of text files that begin with this text, such as "#", are left out.
    strip : bool
        Whether blanks at the ends of cells of text files and spreadsheets are left out.
    keep_na : list of str
        Columns of text files and spreadsheets in which texts such as "NA" or "None" are levels, and
        only empty cells are missing.
    na : list, or mapping of str to list, optional
        Values that mean a missing cell: [-9, -8] in all columns, {"income": [-9]} in one column.
        The key None of a mapping is for all other columns.
    rare : float or mapping of str to float, optional
        Levels of text with less than this share of the rows, such as 0.01, are merged into the
        level "other levels". In columns that are named in a mapping, levels of numbers are merged
        as well. In new rows, unknown levels also become "other levels". A column is not changed if
        only one level is rare, or if all are.
    dates : {"error", "parts"}
        "parts": columns of dates are replaced by year, month, weekday and, unless it is always
        midnight, hour. Dates in text look like 2024-01-31 or 31.01.2024, with or without a time.
        The parts of "start" are called "start.year" and so on.
    missing_labels : {"error", "drop"}
        Rows without a label are an error, or are left out.
    labels, weights : str, optional
        Name of the column of labels, which is not changed, and of the column of weights. `fit` sets
        both if it gets their names.
    whole : list of str
        Columns whose levels and dates are not changed, such as columns to be dropped.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import ReadAs, Table
    >>> rows = pd.DataFrame({"town": ["Rome"] * 60 + ["Oslo"] * 38 + ["Bonn", "Cork"]})
    >>> Table.from_files(ReadAs(rows, rare=0.02)).schema.columns[0].levels
    ('Oslo', 'Rome', 'other levels')
    """

    rows: Any
    _: KW_ONLY
    sep: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    skip: int = 0
    comment: str | None = None
    strip: bool = True
    keep_na: Sequence[str] = ()
    na: Codes = None
    rare: float | Mapping[str, float] | None = None
    dates: str = "error"
    missing_labels: str = "error"
    labels: str | None = None
    weights: str | None = None
    whole: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.keep_na, str):
            raise ParameterError(f"keep_na must be a list of columns, got {self.keep_na!r}")
        codes_by_column(self.na, [])
        self.dialect  # noqa: B018 # checks it
        shares = self.rare if isinstance(self.rare, Mapping) else {"": self.rare}
        for name, share in shares.items():
            if share is not None:
                check_real(f'rare["{name}"]' if name else "rare", share, above=0.0, below=1.0)
        check_choice("dates", self.dates, ("error", "parts"))
        check_choice("missing_labels", self.missing_labels, ("error", "drop"))

    def __fspath__(self) -> str:
        """Return the path, if it is one."""
        path: str = os.fspath(self.rows)
        return path

    def __str__(self) -> str:
        """Return its name in messages."""
        return str(self.rows) if isinstance(self.rows, str | os.PathLike) else "the table"

    @property
    def dialect(self) -> GivenDialect:
        """The given options of text files."""
        return GivenDialect(
            self.sep,
            self.encoding,
            self.decimal,
            self.skip,
            self.comment,
            self.strip,
            tuple(self.keep_na),
            self.thousands,
            tuple(level_text(code) for code in self._codes),
        )

    @property
    def _codes(self) -> list[Level]:
        """The codes of missing cells in any column."""
        listed = self.na.values() if isinstance(self.na, Mapping) else [self.na]
        return [
            plain_level("", code)
            for codes in listed
            for code in (() if codes is None or isinstance(codes, str) else codes)
        ]

    @property
    def depends_on_all_rows(self) -> bool:
        """Whether a row may change how other rows are read, or the number of rows."""
        return self.rare is not None or self.dates == "parts" or self.missing_labels == "drop"

    @property
    def unchanged(self) -> "ReadAs":
        """The same rows without any change of cells."""
        plain = ReadAs(self.rows)
        return replace(
            self,
            na=plain.na,
            rare=plain.rare,
            dates=plain.dates,
            missing_labels=plain.missing_labels,
            labels=None,
            weights=None,
            whole=(),
        )

    def among(self, names: Collection[str]) -> "ReadAs":
        """Return a copy without options for columns that are not among the names."""

        def kept(given: Any) -> Any:
            if not isinstance(given, Mapping):
                return given
            return {name: value for name, value in given.items() if name is None or name in names}

        return replace(
            self,
            na=kept(self.na),
            rare=kept(self.rare),
            labels=self.labels if self.labels in names else None,
            weights=self.weights if self.weights in names else None,
            whole=[name for name in self.whole if name in names],
            keep_na=[name for name in self.keep_na if name in names],
        )

    def with_names(self, *, labels: object, weights: object) -> "ReadAs":
        """Return a copy with the names of the columns of labels and weights, if they are names."""
        return replace(
            self,
            labels=labels if isinstance(labels, str) else self.labels,
            weights=weights if isinstance(weights, str) else self.weights,
        )


def as_learned(rows: Any, columns: Iterable[Column]) -> Any:
    """Return files to be read so that the texts of a model's columns are levels again.

    A model may have learned the level "NA", or levels or names that end in blanks, which are
    otherwise not read as such.
    """
    texts = {c.name: [text for text in c.levels if isinstance(text, str)] for c in columns}
    kept = [name for name, levels in texts.items() if not set(MISSING_TEXTS).isdisjoint(levels)]
    blanks = any(text != text.strip(BLANKS) for name in texts for text in (name, *texts[name]))
    if not kept and not blanks:
        return rows
    given = rows if isinstance(rows, ReadAs) else ReadAs(rows)
    names = tuple(dict.fromkeys([*given.keep_na, *kept]))
    return replace(given, strip=given.strip and not blanks, keep_na=names)


def check_row_by_row(rows: object) -> None:
    """Raise ParameterError if the options make rows depend on other rows."""
    if isinstance(rows, ReadAs) and rows.depends_on_all_rows:
        raise ParameterError(
            "rare, dates and missing_labels must not be given for private sums: they would "
            "reveal something about the rows"
        )


def codes_by_column(na: Codes, names: Sequence[str]) -> dict[str, tuple[Level, ...]]:
    """Return the codes of missing cells of each column."""
    by_column = na if isinstance(na, Mapping) else {None: () if na is None else na}
    found: dict[str | None, tuple[Level, ...]] = {}
    for name, codes in by_column.items():
        if isinstance(codes, str) or not isinstance(codes, Sequence | np.ndarray):
            raise ParameterError(f"na must be a list of values, by column too, got {codes!r}")
        found[name] = tuple(plain_level(name or "", code) for code in codes)
    by_name = {name: found.get(name, found.get(None, ())) for name in names}
    return {name: codes for name, codes in by_name.items() if codes}
