"""Notes on columns of text that may be meant otherwise.

Numbers with one cell such as "<0.5" are text, as are postal codes and dates; "No" and "no" are two
levels. Nothing is changed: a note names the cells, and an option that reads them otherwise.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import pandas as pd

from bayescascade.base.typed_words import typed, typed_setting
from bayescascade.data.date_parts import AMBIGUOUS, are_dates
from bayescascade.data.levels import Cells, is_padded
from bayescascade.data.names import listed_names, typed_names
from bayescascade.data.number_marks import CURRENCIES

_MOST_ODD = 3  # texts in a column of numbers
_MOST_DATES = 100  # texts that are tested for dates
_MOST_NAMED = 3  # columns that have a note each, and groups of levels in a note
_MOST_LEVELS = 10_000  # texts that are compared

_MARKED_NUMBER = re.compile(
    rf"[-+\u2212]?[{CURRENCIES}]? ?[-+\u2212]?"
    r"(\d+|\d{1,3}([,.'\u2019 \u00a0\u202f]\d{3})+)([.,]\d+)?"
    rf" ?[%{CURRENCIES}]?"
)
_MARKED = "hold numbers with marks, so their cells are levels"

RowOf: TypeAlias = Callable[[str], int | None]
"""Gives the first row in which a column has a text, from 1; None if that is not known."""


class Oddity(NamedTuple):
    """What may be wrong in a column."""

    name: str
    words: str  # after the name of the column
    of_many: str  # after the names of several columns


def oddities(name: str, texts: Sequence[str], row_of: RowOf) -> list[Oddity]:
    """Return what may be wrong in a column with these distinct texts as levels."""
    if not texts:
        return []
    if odd := odd_among_numbers(texts):
        text = f"holds numbers but for {odd_words(name, odd, row_of)}, so its cells are levels"
        return [Oddity(name, text, "hold numbers but for a few cells, so their cells are levels")]
    if marked := marked_words(texts):
        return [Oddity(name, f"{marked}, so its cells are levels", _MARKED)]
    if any(map(is_padded, texts)) and not _no_numbers(texts):
        padded = next(filter(is_padded, texts))
        text = f"has leading zeros, as in {padded}: its cells are levels, not numbers"
        return [Oddity(name, text, "have leading zeros: their cells are levels, not numbers")]
    if hold_dates(texts):
        how = f"{typed_setting('dates', 'parts', 'ReadAs')} reads their parts"
        text = f"holds dates or times such as {texts[0]}, each of them a level: {how}"
        return [Oddity(name, text, f"hold dates or times, each of them a level: {how}")]
    if hold_ambiguous_dates(texts):
        why = "whose days and months cannot be distinguished"
        text = f"holds dates such as {texts[0]}, {why}: its cells are levels; write 2024-01-31"
        return [Oddity(name, text, f"hold dates {why}: their cells are levels; write 2024-01-31")]
    if alike := _alike(texts):
        groups = "; ".join(map(quoted_texts, alike[:_MOST_NAMED]))
        more = f" and {len(alike) - _MOST_NAMED} more" if len(alike) > _MOST_NAMED else ""
        words = "levels that differ only in case, blanks or the form of characters"
        return [Oddity(name, f"has {words}: {groups}{more}", f"have {words}")]
    return []


def notes_on(found: Iterable[Oddity]) -> list[str]:
    """Return a note for each column, or one for many columns with the same oddity."""
    by_kind: dict[str, list[Oddity]] = {}
    for each in found:
        by_kind.setdefault(each.of_many, []).append(each)
    texts = []
    for of_many, alike in by_kind.items():
        if len(alike) > _MOST_NAMED:
            names = listed_names([f'"{group.name}"' for group in alike])
            texts.append(f"columns {names} {of_many}")
        else:
            texts += (f'column "{group.name}" {group.words}' for group in alike)
    return texts


def notes_on_frame(frame: pd.DataFrame) -> list[str]:
    """Return notes on the columns of text of a frame, whose rows count from 1."""
    found: list[Oddity] = []
    for name, cells in frame.items():
        if not (cells.dtype == object or pd.api.types.is_string_dtype(cells.dtype)):
            continue
        distinct = list(cells.dropna().unique()[:_MOST_LEVELS])
        if all(isinstance(text, str) for text in distinct):
            found += oddities(str(name), distinct, _rows_in(cells))
    return notes_on(found)


def odd_among_numbers(texts: Sequence[str]) -> list[str]:
    """Return the few texts that are not numbers among many numbers; otherwise nothing."""
    if len(texts) > _MOST_LEVELS:
        return []
    odd = [text for text in _no_numbers(texts) if not _MARKED_NUMBER.fullmatch(text)]
    return odd if 0 < len(odd) <= min(_MOST_ODD, len(texts) / 10) else []


def marked_words(texts: Sequence[str]) -> str:
    """Return which numbers have marks, if all texts are numbers with or without; else nothing."""
    others = _no_numbers(texts)
    if not others or not all(map(_MARKED_NUMBER.fullmatch, others)):
        return ""
    plain = next((text for text in texts if text not in set(others)), None)
    beside = "" if plain is None else f' beside "{plain}"'
    words = f'holds numbers with marks, such as "{others[0]}"{beside}'
    if all("," in text and text.replace(",", "").isdecimal() for text in others):
        how = typed('ReadAs(thousands=",")', "--thousands ,")
        words += f" ({how} reads them as numbers)"
    return words


def odd_words(name: str, odd: Sequence[str], row_of: RowOf) -> str:
    """Return texts that are not numbers, their rows, and the option that reads numbers."""
    places = {text: row_of(text) for text in odd}
    texts = (f'"{t}"' + (f" in row {row}" if row else "") for t, row in places.items())
    values = {name: list(odd)}
    missing = typed(f"ReadAs(na={values})", f"--na {typed_names(name)}:{typed_names(*odd)}")
    more = ""
    if list(places.values()) == [1]:
        skip = typed("ReadAs(skip=1)", "--skip 1")
        more = f"; if row 1 is a second header, {skip} reads it as the header"
    return f"{', '.join(texts)} ({missing} reads missing cells there{more})"


def quoted_texts(texts: Iterable[str]) -> str:
    """Return texts in quotes, with commas between them."""
    return ", ".join(f'"{text}"' for text in texts)


def hold_dates(texts: Sequence[str]) -> bool:
    """Return whether texts are dates or times."""
    return are_dates(pd.Series(list(texts[:_MOST_DATES]), dtype=object))


def hold_ambiguous_dates(texts: Sequence[str]) -> bool:
    """Return whether texts are dates whose days and months cannot be distinguished."""
    return bool(texts) and all(map(AMBIGUOUS.fullmatch, texts[:_MOST_DATES]))


def _no_numbers(texts: Sequence[str]) -> list[str]:
    numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    return [text for text, is_odd in zip(texts, numbers.isna(), strict=True) if is_odd]


def _alike(texts: Sequence[str]) -> list[list[str]]:
    """Return groups of texts that look nearly the same."""
    groups: dict[str, list[str]] = {}
    for text in texts:
        folded = unicodedata.normalize("NFKC", text).casefold()
        groups.setdefault(" ".join(folded.split()), []).append(text)
    return [sorted(group) for group in groups.values() if len(group) > 1]


def _rows_in(cells: Cells) -> RowOf:
    return lambda text: int((cells == text).to_numpy().argmax()) + 1
