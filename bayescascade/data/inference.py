"""From the cells of a column to its kind and its levels.

A collector reads a column block by block, in bounded memory, and then returns its `Column`: as
declared, or as inferred from the cells; otherwise it raises an error that says what to declare.

Where nothing is declared, numbers are cut into bins if some are not whole, if more than 12 are
different, or if all rows of five or more have others: into as many as the cube root of their weight
comes nearest to, from 2 to 10. That a column is one of those is known when all of it was read, so
it is then read once more, for its bins: they do not depend on how rows come in blocks.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError, UndeclaredError
from bayescascade.base.typed_words import typed, typed_setting
from bayescascade.data.bins import RowSample, default_bins
from bayescascade.data.column import LARGEST_WHOLE, MAX_LEVELS, MAX_NOMINAL_LEVELS, Column
from bayescascade.data.declarations import ColumnDeclaration
from bayescascade.data.levels import (
    Cells,
    DatesError,
    Level,
    are_numbers,
    check_numbers,
    factorize,
    first_padded,
    holds_numbers,
    is_padded,
    level_text,
    parse_texts,
    plain_level,
    tidy_levels,
    to_numbers,
)
from bayescascade.data.names import listed_names, typed_names
from bayescascade.data.odd_texts import (
    Oddity,
    hold_ambiguous_dates,
    hold_dates,
    marked_words,
    notes_on,
    odd_among_numbers,
    odd_words,
    oddities,
)

# In fewer rows, all values of an ordinary column may differ by chance.
_MIN_IDENTIFIED_ROWS = 5
_MOST_WHOLE = 12  # undeclared integers that are levels
_LARGEST_EXACT = 2.0**53  # larger integers are rounded as floats
_MOST_NAMED = 3  # columns that have a note each


def collected_columns(
    collectors: Sequence["Collector"], missing: str, is_weighted: bool
) -> tuple[Column, ...]:
    """Return the columns of the collectors; UndeclaredError names those that must be declared."""
    columns: list[Column] = []
    undeclared: list[UndeclaredError] = []
    for collector in collectors:
        try:
            columns.append(collector.column(missing, is_weighted))
        except UndeclaredError as error:
            undeclared.append(error)
    if len(undeclared) == 1:
        raise undeclared[0]
    if undeclared:
        reasons = {name: why for error in undeclared for name, why in error.reasons.items()}
        names = list(reasons)
        raise UndeclaredError(
            f"{len(names)} columns must be declared or dropped: {reason_words(reasons)}; "
            f"{typed(f'drop={names}', f'--drop {typed_names(*names)}')} leaves them out, "
            f"{typed('ReadAs(rare=0.01)', '--rare 0.01')} groups rare levels, "
            "text can be declared ordinal with its levels in order",
            reasons,
        )
    return tuple(columns)


def reason_words(reasons: Mapping[str, str]) -> str:
    """Return columns and why each cannot be used, such as '"id" (different in every row)'."""
    return ", ".join(f'"{name}" ({why})' for name, why in reasons.items())


@dataclass(kw_only=True)
class Collector(ABC):
    """A summary of the cells of one column so far."""

    name: str
    declared: ColumnDeclaration
    is_text: bool  # whether numbers come as text, as in CSV
    row_of: Callable[[str, str], int | None] = lambda _name, _text: None  # the first with a text
    n_rows: int = 0
    n_missing: int = 0
    first_missing_row: int = 0

    @property
    def typed_name(self) -> str:
        """The name as a user types it."""
        return typed_names(self.name)

    @property
    def drop_words(self) -> str:
        """The advice on leaving the column out."""
        return _drop_words(self.name)

    @abstractmethod
    def add(self, cells: Cells, weights: Floats | None) -> None:
        """Read the next block of cells and the rows' weights, (n,) or None for ones."""

    @abstractmethod
    def column(self, missing: str, is_weighted: bool) -> Column:
        """Return the column; `missing` is "error" or "level"."""

    def oddities(self) -> list[Oddity]:
        """Return what may be wrong in a column that is read."""
        return []

    def _row_of(self, text: str) -> int | None:
        return self.row_of(self.name, text)

    def _count_missing(self, is_missing: Flags) -> None:
        if is_missing.any() and not self.n_missing:
            self.first_missing_row = self.n_rows + 1 + int(np.argmax(is_missing))
        self.n_missing += int(is_missing.sum())
        self.n_rows += len(is_missing)

    def _has_missing_level(self, missing: str) -> bool:
        if self.n_missing and missing == "error":
            cells = "1 missing cell" if self.n_missing == 1 else f"{self.n_missing:,} missing cells"
            raise DataError(
                f'column "{self.name}" has {cells}, the first in row {self.first_missing_row}: '
                "fill them, drop the column, or make them a level with "
                + typed_setting("missing", "level")
            )
        if self.n_missing == self.n_rows:
            message = f'column "{self.name}" has only missing cells: {self.drop_words}'
            raise UndeclaredError(message, {self.name: "only missing cells"})
        return self.n_missing > 0


@dataclass(kw_only=True)
class LevelCollector(Collector):
    """Collects the distinct values of a counted or undeclared column."""

    _is_categorical: bool = False
    _is_ordered: bool = True
    # Keyed by type as well: True and 1 are equal. Intervals stand beside their text.
    _values: dict[tuple[type, Level], Any] = field(default_factory=dict)
    _has_many_numbers: bool = False  # too many to be kept
    _problem: UndeclaredError | None = None

    def add(self, cells: Cells, weights: Floats | None) -> None:
        """Read the next block of cells; weights do not matter."""
        if self.declared.levels is not None:  # encoding finds cells outside
            self._count_missing(cells.isna().to_numpy())
            return
        if self._problem is not None:
            return
        if self._has_many_numbers and not self.is_text and holds_numbers(cells):
            self._count_missing(cells.isna().to_numpy())
            return
        try:
            factor = factorize(self.name, cells)
        except DatesError as error:
            words = _dates_words("dates or times") if error.has_parts else "times or durations"
            self._problem = UndeclaredError(str(error), {self.name: words})
            if self.declared.kind is not None:
                raise
            return
        self._count_missing(factor.positions < 0)
        if self._has_many_numbers:
            if factor.values and not are_numbers(self._parsed(factor.values)):
                self._problem = self._too_many(f"over {MAX_LEVELS:,}", has_missing_level=False)
            return
        self._is_categorical |= factor.is_categorical
        self._is_ordered &= factor.is_ordered or not factor.values
        for value, interval in itertools.zip_longest(factor.values, factor.intervals):
            self._values.setdefault((type(value), value), interval)
        if len(self._values) > MAX_LEVELS:
            # These are too many for any kind (unless several spell the same value): keep no more.
            if self.declared.kind is not None or self._is_categorical or self._is_ordered:
                self.column("level", is_weighted=weights is not None)
            elif are_numbers(self._parsed(list(self._plain_values))):
                self._has_many_numbers = True
                self._values.clear()
            elif len(levels := self._levels) > MAX_NOMINAL_LEVELS:
                self._problem = self._too_many(f"over {MAX_LEVELS:,}", has_missing_level=False)
                if self._are_different(levels, weights is not None):
                    self._problem = self._different()
                self._values.clear()

    def needs_bins(self, is_weighted: bool) -> bool:
        """Return whether the column, after all rows, must be cut into bins."""
        is_declared = self.declared.kind is not None or self.declared.levels is not None
        if is_declared or self._problem is not None or self._is_categorical:
            return False
        if self._has_many_numbers:
            return True
        levels = [] if self._is_ordered else self._levels
        if len(levels) < 2 or not are_numbers(levels):
            return False
        is_real, is_long = isinstance(levels[0], float), len(levels) > _MOST_WHOLE
        return is_real or is_long or self._are_different(levels, is_weighted)

    def with_bins(self, is_weighted: bool) -> "BinCollector":
        """Return a collector of bins for the same undeclared column."""
        levels = self._levels
        is_whole = bool(levels) and isinstance(levels[0], int)
        is_short = len(levels) + (self.n_missing > 0) <= MAX_NOMINAL_LEVELS
        return BinCollector(
            name=self.name,
            declared=self.declared,
            is_text=self.is_text,
            may_be_nominal=is_whole and is_short,
            may_identify=is_whole and self._are_different(levels, is_weighted),
            are_numbers=True,
        )

    @property
    def _plain_values(self) -> list[Level]:
        return [value for _, value in self._values]

    def _parsed(self, values: Sequence[Level]) -> Sequence[Level]:
        return parse_texts(values) if self.is_text else values

    @property
    def _levels(self) -> list[Level]:
        """The distinct levels, numbers if all are."""
        return tidy_levels(self._parsed(self._plain_values))

    def _are_different(self, levels: list[Level], is_weighted: bool) -> bool:
        """Return whether all rows have different levels."""
        return len(levels) == self.n_rows >= _MIN_IDENTIFIED_ROWS and not is_weighted

    def column(self, missing: str, is_weighted: bool) -> Column:
        """Return the column that fits the cells; see `Collector.column`."""
        if self._problem is not None:
            raise self._problem
        has_missing_level = self._has_missing_level(missing)
        kind = self.declared.kind or ("ordinal" if self._is_ordered else "nominal")
        if self.declared.levels is not None:
            return Column(self.name, kind, self.declared.levels, (), has_missing_level)
        values = self._plain_values
        intervals = list(self._values.values())
        if self._is_ordered and None not in intervals:  # other blocks may have values in between
            values = [value for _, value in sorted(zip(intervals, values, strict=True))]
        # Text may say "inf", which is read as a number.
        levels = [plain_level(self.name, level) for level in tidy_levels(self._parsed(values))]
        is_undeclared = self.declared.kind is None
        is_plain = is_undeclared and not (self._is_categorical or self._is_ordered)
        if is_plain and self._are_different(levels, is_weighted):
            raise self._different()
        if kind == "nominal" and len(levels) + has_missing_level > MAX_NOMINAL_LEVELS:
            count = f"{len(levels) + has_missing_level:,}"
            problem = self._too_many(count, has_missing_level)
            raise problem if is_undeclared else DataError(str(problem))
        is_in_order = kind == "ordinal" and self._is_ordered
        if kind == "ordinal" and any(map(is_padded, levels)) and all(map(_is_whole_text, levels)):
            levels.sort(key=lambda level: (int(level), level))
            is_in_order = True
        if kind == "ordinal" and not is_in_order and isinstance(levels[0], str):
            some = [level_text(level) for level in sorted(levels)[:3]]
            python = f'ordinal={{"{self.name}": {some}}}'
            command = f"--ordinal {self.typed_name}:{','.join(some)}"
            raise DataError(
                f'ordinal column "{self.name}" holds text: give its levels in order, as in '
                + typed(python, command)
            )
        return Column(
            self.name, kind, tuple(levels if is_in_order else sorted(levels)), (), has_missing_level
        )

    def _different(self) -> UndeclaredError:
        if (of_dates := dates_error(self.name, self._texts)) is not None:
            return of_dates
        message = (
            f'column "{self.name}" has a different value in every row ({self.n_rows:,} read): '
            f"{self.drop_words} or declare its kind"
        )
        why = "different in every row"
        if odd := odd_among_numbers(self._texts):
            words = f"numbers but for {self._odd_words(odd)}"
            message, why = f"{message}. All its values are {words}", f"{why}; all {words}"
        return UndeclaredError(message, {self.name: why})

    def _odd_words(self, odd: Sequence[str]) -> str:
        return odd_words(self.name, odd, self._row_of)

    @property
    def _texts(self) -> list[str]:
        """The distinct values, if all are text."""
        values = self._plain_values
        texts = [value for value in values if isinstance(value, str)]
        return texts if len(texts) == len(values) else []

    def oddities(self) -> list[Oddity]:
        """Return what may be wrong in a column that is read; see `Collector.oddities`."""
        is_plain = not (self._is_categorical or self._is_ordered)
        if self.declared.kind is not None or not is_plain or are_numbers(self._levels):
            return []
        return oddities(self.name, self._texts, self._row_of)

    def _too_many(self, count: str, has_missing_level: bool) -> UndeclaredError:
        if (of_dates := dates_error(self.name, self._texts)) is not None:
            return of_dates
        counted = f"{count} levels" + (" (one of them for missing cells)" * has_missing_level)
        if odd := odd_among_numbers(self._texts):
            words = f"numbers but for {self._odd_words(odd)}"
            message = f'column "{self.name}" has {counted}, which are {words}'
            return UndeclaredError(f"{message}; otherwise {self.drop_words}", {self.name: words})
        if marked := marked_words(self._texts):
            message = f'column "{self.name}" {marked}, and has {counted}: {self.drop_words}'
            return UndeclaredError(message, {self.name: marked})
        grouped = typed(f'ReadAs(rare={{"{self.name}": 0.01}})', f"--rare {self.typed_name}:0.01")
        message = (
            f'nominal column "{self.name}" has {counted}, more than {MAX_NOMINAL_LEVELS}: '
            f"group rare levels ({grouped}), declare it ordinal "
            f"with its levels in order, or {self.drop_words}"
        )
        return UndeclaredError(message, {self.name: f"{count} levels"})


@dataclass(kw_only=True)
class BinCollector(Collector):
    """Collects the range and a sample of a continuous column, for declared or `default_bins`."""

    may_be_nominal: bool = False  # whether it has few enough integers
    may_identify: bool = False  # whether its integers differ in all rows
    are_numbers: bool = False  # whether all its values are known to be numbers
    n_bins: int = 0  # once they were cut

    _lowest: float = math.inf
    _highest: float = -math.inf
    _are_whole: bool = True
    _weight: float = 0.0
    _sample: "RowSample" = field(default_factory=lambda: RowSample())

    def add(self, cells: Cells, weights: Floats | None) -> None:
        """Read the next block of cells and the rows' weights."""
        first_row = self.n_rows + 1
        # Others that are not declared have shown all their values to a `LevelCollector`.
        is_unseen = self.is_text and self.declared.kind is None and not self.are_numbers
        if is_unseen and (padded := first_padded(cells)) is not None:
            raise DataError(f'column "{self.name}" has leading zeros, as in {padded}')
        label = f'continuous column "{self.name}"'
        numbers = to_numbers(label, cells, first_row)
        present = ~np.isnan(numbers)
        check_numbers(label, numbers, first_row)
        self._count_missing(~present)
        if self.declared.edges is None and present.any():
            values = numbers[present]
            self._lowest = min(self._lowest, float(values.min()))
            self._highest = max(self._highest, float(values.max()))
            self._are_whole = self._are_whole and bool((values == np.rint(values)).all())
            weights = np.ones(len(numbers)) if weights is None else weights
            self._weight += float(weights[present].sum())
            self._sample.add(values, weights[present], first_row + np.flatnonzero(present))

    def column(self, missing: str, is_weighted: bool) -> Column:  # noqa: ARG002
        """Return the column that fits the cells; see `Collector.column`."""
        has_missing_level = self._has_missing_level(missing)
        if self.declared.edges is not None:
            edges = self.declared.edges
        elif self._lowest == self._highest:
            message = (
                f'continuous column "{self.name}" must vary, got {self._lowest:g} in every row: '
                f"{self.drop_words} or give its bin edges"
            )
            if not (self.is_beyond_exact and self.declared.kind is None):
                raise DataError(message)
            raise UndeclaredError(
                f'column "{self.name}" has whole numbers that differ only beyond the 16 digits '
                f"that bins distinguish: {self.drop_words}",
                {self.name: "whole numbers that differ only beyond 16 digits"},
            )
        else:
            n_bins = self.declared.n_bins or default_bins(self._weight)
            cut = self._sample.whole_edges if self.is_whole else self._sample.edges
            edges = cut(n_bins, self._lowest, self._highest)
        self.n_bins = len(edges) - 1
        return Column(self.name, "continuous", (), edges, has_missing_level, self.is_whole)

    @property
    def is_whole(self) -> bool:
        """Whether the column holds integers and no edges are declared."""
        largest = max(-self._lowest, self._highest)
        return self.declared.edges is None and self._are_whole and largest < LARGEST_WHOLE

    @property
    def is_beyond_exact(self) -> bool:
        """Whether it has integers that are rounded as floats, and no edges are declared."""
        largest = max(-self._lowest, self._highest)
        return self.declared.edges is None and self._are_whole and largest > _LARGEST_EXACT


def dates_error(name: str, texts: Sequence[str]) -> UndeclaredError | None:
    """Return the error for a column whose texts are too many levels, if they are dates."""
    drop = _drop_words(name)
    if hold_ambiguous_dates(texts):
        message = (
            f'column "{name}" holds dates such as {texts[0]}, whose days and months '
            f"cannot be distinguished: write them as 2024-01-31, or {drop}"
        )
        return UndeclaredError(message, {name: "dates such as " + texts[0]})
    if not hold_dates(texts):
        return None
    message = (
        f'column "{name}" holds dates such as {texts[0]}: '
        f"read their parts ({typed_setting('dates', 'parts', 'ReadAs')}), or {drop}"
    )
    return UndeclaredError(message, {name: _dates_words("dates")})


def notes_of(collectors: Sequence[Collector]) -> list[str]:
    """Return notes on how columns are read; many columns share one note."""
    texts = _notes_of_bins(
        [
            collector
            for collector in collectors
            if isinstance(collector, BinCollector) and collector.declared.kind is None
        ]
    )
    texts += notes_on(each for collector in collectors for each in collector.oddities())
    gaps = [collector for collector in collectors if collector.n_missing]
    if len(gaps) <= _MOST_NAMED:
        for one in gaps:
            cells = "1 missing cell" if one.n_missing == 1 else f"{one.n_missing:,} missing cells"
            texts.append(f'column "{one.name}" has {cells}: a separate level')
        return texts
    names = listed_names([f'"{column.name}"' for column in gaps])
    return [*texts, f"columns {names} have missing cells: a separate level in each column"]


def _notes_of_bins(cut: Sequence[BinCollector]) -> list[str]:
    if len(cut) <= _MOST_NAMED:
        return [_note_of_bins(column) for column in cut]
    names = listed_names([f'"{column.name}"' for column in cut])
    fewest, most = min(column.n_bins for column in cut), max(column.n_bins for column in cut)
    bins = f"{fewest} bins" if fewest == most else f"{fewest} to {most} bins"
    text = (
        f"columns {names} hold numbers, cut into {bins} with about equal numbers of rows; "
        + _bins_words("{NAME: BINS}", "NAME")
    )
    if any(column.may_be_nominal for column in cut):
        text += f", {typed('nominal=[NAME]', '--nominal NAME')} keeps whole numbers as levels"
    return [text]


def _note_of_bins(column: BinCollector) -> str:
    whole = "whole numbers" if column.is_whole else "numbers"
    bins = f"{column.n_bins} bins with about equal numbers of rows"
    bins = "1 bin" if column.n_bins == 1 else bins
    text = f'column "{column.name}" holds {whole}, cut into {bins}; ' + _bins_words(
        f'{{"{column.name}": BINS}}', column.typed_name
    )
    if column.may_be_nominal:
        kept = typed(f"nominal={[column.name]}", f"--nominal {column.typed_name}")
        text += f", {kept} keeps them as levels"
    if column.is_beyond_exact:
        text += "; bins ignore their digits after the 16th"
    if column.may_identify:
        text += f"; all are different: if they only identify rows, {column.drop_words}"
    return text


def _bins_words(python: str, command: str) -> str:
    return typed(f"continuous={python}", f"--continuous {command}:BINS") + " changes the bins"


def _is_whole_text(text: Level) -> bool:
    return isinstance(text, str) and text.lstrip("+-").isdecimal()


def _drop_words(name: str) -> str:
    return f"drop it ({typed(f'drop={[name]}', f'--drop {typed_names(name)}')})"


def _dates_words(dates: str) -> str:
    parts = typed_setting("dates", "parts", "ReadAs")
    return f"{dates}; {parts} keeps them as year, month and weekday"
