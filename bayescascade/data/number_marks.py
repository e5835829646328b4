"""Marks in numbers, where all cells of a column agree: "20%", "$18,000", a real minus sign.

Other programs write numbers for readers. Without their marks, such cells are numbers; with them,
they would be levels. All present cells of a column must have the same marks, because 0.2 beside
"20%" may be a fifth. A note names the marks.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import pyarrow
from pyarrow import compute

from bayescascade.data.names import listed_names

CURRENCIES = "$€£¥₹₩₽₺₪฿₫₴"
_SEPARATORS = ("'", "\u2019", "\u00a0", "\u202f")  # of thousands, beside the comma or the point
_MOST_NAMED = 3  # columns that have a note each
_SIGN = "[-+\u2212]?"


class Marks(NamedTuple):
    """The marks of a column of numbers."""

    decimal: str = "."
    separator: str = ""  # between thousands
    currency: str = ""
    has_percent: bool = False
    has_minus: bool = False  # the real minus sign

    @property
    def pattern(self) -> str:
        """What each cell looks like, as a regular expression for Python and Arrow."""
        point, currency = re.escape(self.decimal), re.escape(self.currency)
        digits = "(0|[1-9][0-9]*"
        if self.separator:
            digits += f"|[1-9][0-9]{{0,2}}({re.escape(self.separator)}[0-9]{{3}})+"
        number = f"{digits})({point}[0-9]+)?"
        if self.currency:
            return f"^({_SIGN}{currency} ?{_SIGN}{number}|{_SIGN}{number} ?{currency})$"
        return f"^{_SIGN}{number} ?%$" if self.has_percent else f"^{_SIGN}{number}$"

    @property
    def words(self) -> str:
        """The marks in words, empty if there are none."""
        texts = [f'the currency "{self.currency}"'] if self.currency else []
        texts += ["percent signs"] * self.has_percent
        texts += [f'"{self.separator}" between thousands'] * bool(self.separator)
        texts += ["real minus signs"] * self.has_minus
        return " and ".join(texts)

    def plain(self, text: str) -> str:
        """Return a cell's number without marks."""
        return str(self.without(pyarrow.array([text]))[0])

    def without(self, texts: pyarrow.Array) -> pyarrow.Array:
        """Return texts without marks, with a decimal point; others stay unchanged."""
        are_fit, whole = compute.match_substring_regex(texts, self.pattern), texts
        for mark in (self.separator, self.currency, "%" * self.has_percent):
            if mark:
                texts = compute.replace_substring(texts, mark, "")
        texts = compute.replace_substring(texts, "\u2212", "-")
        if self.decimal != ".":
            texts = compute.replace_substring(texts, self.decimal, ".")
        return compute.if_else(are_fit, compute.replace_substring(texts, " ", ""), whole)

    def fit(self, texts: pyarrow.Array, ignored: Collection[str]) -> bool:
        """Return whether all texts have these marks, but those that are ignored."""
        texts = texts.drop_null()
        are_fit = compute.match_substring_regex(texts, self.pattern)
        others = compute.unique(texts.filter(compute.invert(are_fit)))
        return set(others.to_pylist()) <= set(ignored)


def found_marks(
    cells: Iterable[str], decimal: str, ignored: Collection[str], separator: str | None = None
) -> Marks | None:
    """Return the marks of a column's cells, None without any, or if cells differ.

    `separator` is the only one of thousands that may be found, if given.
    """
    texts = [cell for cell in dict.fromkeys(cells) if cell and cell not in ignored]
    if not texts:
        return None
    first = texts[0]
    between = [separator] if separator else [{".": ",", ",": "."}[decimal], *_SEPARATORS]
    found = Marks(
        decimal=decimal,
        separator=next((s for s in between if any(s in text for text in texts)), ""),
        currency=next((sign for sign in CURRENCIES if sign in first), ""),
        has_percent=first.endswith("%"),
        has_minus=any("\u2212" in text for text in texts),
    )
    return found if found.words and found.fit(pyarrow.array(texts), ()) else None


def notes_on_marks(marks: Sequence[tuple[str, Marks, str]]) -> list[str]:
    """Return notes on columns, their marks, and a cell of each."""
    if len(marks) > _MOST_NAMED:
        names = listed_names([f'"{name}"' for name, _, _ in marks])
        words = ", ".join(dict.fromkeys(each.words for _, each, _ in marks))
        return [f"columns {names} hold numbers with marks ({words}), which are left out"]
    return [
        f'column "{name}" holds numbers with {each.words}: "{cell}" is read as {each.plain(cell)}'
        for name, each, cell in marks
    ]
