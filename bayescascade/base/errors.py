"""All exceptions that the package raises on purpose, with one base class, and its warnings.

A message names the parameter or column, the rule it broke, and the value found.
"""

import sys
import warnings
from collections.abc import Mapping

from bayescascade.base.texts import printable

_MOST_NAMED = 5  # columns that a warning names


class BayesCascadeError(Exception):
    """Base class of all errors raised by bayescascade; the first argument is the message."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ParameterError(BayesCascadeError, ValueError):
    """A parameter is out of its range or of the wrong type."""


class TooLargeError(ParameterError):
    """An exact computation would exceed its limit on memory or work.

    Parameters
    ----------
    message : str
        The size of the search, and the limit.
    needed : str
        Size of the computation, such as "4,782,969 boxes, 77 MB".
    """

    def __init__(self, message: str, needed: str) -> None:
        super().__init__(message)
        self.needed = needed

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.needed)


class InternalError(BayesCascadeError, RuntimeError):
    """A result contradicts its own proof: a bug of this package; please report it."""


class MissingExtraError(BayesCascadeError, ImportError):
    """A library of one of the package's extras is not installed."""


class PrivacyError(BayesCascadeError, ValueError):
    """A release would exceed the remaining privacy budget."""


class DataError(BayesCascadeError, ValueError):
    """The data break a rule: an unknown level, a missing cell, an unusable column."""


class UnknownLevelError(DataError):
    """A value is not one of the levels of its column.

    Parameters
    ----------
    message : str
    column : str
        Name of the column.
    level : str
        Text of the value.
    row : int or None
        Number of the data row, counted from 1; None if there is none.
    """

    def __init__(self, message: str, column: str, level: str, row: int | None) -> None:
        super().__init__(message, column, level, row)
        self.column, self.level, self.row = column, level, row

    def advising(self, advice: str) -> "UnknownLevelError":
        """Return the error with advice at the end of its message."""
        return UnknownLevelError(f"{self}; {advice}", self.column, self.level, self.row)


class UndeclaredError(DataError):
    """Columns cannot be used without a declaration; `reasons` says why, in few words, by column."""

    def __init__(self, message: str, reasons: Mapping[str, str]) -> None:
        super().__init__(message, reasons)
        self.reasons = dict(reasons)


class UnknownLevelWarning(UserWarning):
    """Rows have values that fit did not see; the message says how they are treated.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    levels : mapping of str to str or None
        For each column with such values, the text of the first one; None if it is a missing cell.
    meaning : str
        How such a cell is treated, such as "counts as missing".
    """

    def __init__(self, n_rows: int, levels: Mapping[str, str | None], meaning: str) -> None:
        super().__init__(n_rows, levels, meaning)
        self.n_rows, self.levels, self.meaning = n_rows, dict(levels), meaning

    def __str__(self) -> str:
        texts = [_cell_words(name, level) for name, level in self.levels.items()]
        more = f" and {len(texts) - _MOST_NAMED} more columns" if len(texts) > _MOST_NAMED else ""
        rows = "1 row has" if self.n_rows == 1 else f"{self.n_rows:,} rows have"
        such = "" if self.n_rows == 1 else "such as "
        return (
            f"{rows} values that fit did not see ({such}{', '.join(texts[:_MOST_NAMED])}{more}): "
            f"such a cell {self.meaning}"
        )


def _cell_words(name: str, level: str | None) -> str:
    """Return a column and the content of its cell on one line, whatever characters these have."""
    if level is None:
        return f"a missing cell of {printable(name)}"
    return f'{printable(name)} "{printable(level)}"'


class ModelFileError(BayesCascadeError, ValueError):
    """A saved model cannot be read: the file is truncated, edited or of another format."""


def warn_user(warning: Warning) -> None:
    """Warn with the line of the user's code that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(str(frame.f_globals.get("__name__"))):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
