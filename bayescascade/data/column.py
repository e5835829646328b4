"""One column of a table: its kind, its levels or bins, and their codes.

Codes are 0 .. n_levels - 1: positions in `levels` for a counted column, bins for a continuous one.
The missing level, if any, is the last code. Bins are half-open, [edge, next edge), except the last,
which is closed. The missing level of a continuous column is an atom of volume 1 beside its bins.
Edges of bins of integers are halfway between two integers: the width of a bin is its number of
integers, and words name the first and the last.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError, UnknownLevelError
from bayescascade.base.store import As, Saved, Words
from bayescascade.data.levels import (
    OTHER_LEVELS,
    Cells,
    Level,
    check_numbers,
    factorize,
    level_set_words,
    level_text,
    match_texts,
    plain_level,
    quoted,
    run_words,
    runs,
    tidy_levels,
    to_numbers,
    without_codes,
)
from bayescascade.data.number_marks import CURRENCIES

Kind: TypeAlias = Literal["nominal", "ordinal", "continuous"]

MISSING = -1  # the code of a missing cell in a column without a missing level
UNKNOWN = -2  # the code of a cell outside the domain, if that is not an error
MAX_NOMINAL_LEVELS = 64  # a set of levels is one 64-bit word
MAX_LEVELS = 65_536  # codes are at most uint16
LARGEST_WHOLE = 2.0**51  # below, every half is a float

_MOST_SHOWN = 8  # levels in a message


def _read_levels(data: Any) -> tuple[Level, ...]:
    if not isinstance(data, list):
        raise ModelFileError(f"a saved column's levels must be a list, got {data!r}")
    return tuple(plain_level("", level) for level in data)


Levels = Annotated[tuple[Level, ...], As(list, _read_levels)]
Unit = Annotated[str, Words("%", *CURRENCIES)]
"""What a number is of: a share in percent, or a currency."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, kind and domain.

    The constructor raises DataError if the levels or edges break the rules below, or there are
    none, or too many (64 for a nominal column, 65,536 for any, the missing level included).
    """

    name: str
    kind: Annotated[Kind, Words("nominal", "ordinal", "continuous")]
    # all of one type, no two with the same text; nominal: sorted; ordinal: in their order,
    # empty for a continuous column
    levels: Levels = ()
    # continuous: strictly increasing, finite edges of the bins; otherwise empty
    edges: tuple[float, ...] = ()
    has_missing_level: bool = False  # whether missing cells are a level, the last code
    # whether a continuous column holds whole numbers, below 2**51; its edges are then all
    # halfway between two of them, such as 29.5
    is_whole: Annotated[bool, Saved("is_whole", is_optional=True)] = False
    # values, such as -9, that stand for missing cells
    missing_codes: Annotated[Levels, Saved("missing_codes", is_optional=True)] = ()
    # left out of the numbers of a text file
    unit: Annotated[Unit, Saved("unit", is_optional=True)] = ""

    def __post_init__(self) -> None:
        if self.kind not in ("nominal", "ordinal", "continuous"):
            raise DataError(
                f'column "{self.name}" must be nominal, ordinal or continuous, got {self.kind!r}'
            )
        if self.kind == "continuous":
            self._check_edges()
        else:
            self._check_levels()
        limit = MAX_NOMINAL_LEVELS if self.kind == "nominal" else MAX_LEVELS
        if not 1 <= self.n_levels <= limit:
            raise DataError(
                f'{self.kind} column "{self.name}" must have 1 to {limit:,} levels, '
                f"got {self.n_levels:,}"
            )

    @property
    def n_levels(self) -> int:
        """Number of codes: levels or bins, including the missing level."""
        return max(len(self.levels), len(self.edges) - 1) + self.has_missing_level

    @property
    def other_code(self) -> int:
        """The code of an unknown level: that of `OTHER_LEVELS` if the column has it."""
        has_others = self.kind == "nominal" and OTHER_LEVELS in self.levels
        return self.levels.index(OTHER_LEVELS) if has_others else UNKNOWN

    @property
    def widths(self) -> Floats:
        """Volume of each code, (n_levels,) float64: 1 per level, a bin's width, 1 if missing."""
        widths = np.ones(self.n_levels)
        if self.kind == "continuous":
            widths[: len(self.edges) - 1] = np.diff(self.edges)
        return widths

    def encode(self, cells: Cells, first_row: int = 1, *, allow_unknown: bool = False) -> Codes:
        """Return the code of each cell, (n_rows,) int32; MISSING without a level for those cells.

        `first_row` numbers the first cell's data row, for messages. Raises DataError, which names
        the column, the value and the row, if a continuous column's cell is no finite number, or a
        cell is outside the domain (UnknownLevelError in a counted column); `allow_unknown` codes
        the latter as UNKNOWN instead.
        """
        missing_code = self.n_levels - 1 if self.has_missing_level else MISSING
        cells = without_codes(cells, self.missing_codes)
        if self.kind == "continuous":
            numbers = to_numbers(f'continuous column "{self.name}"', cells, first_row)
            if allow_unknown:  # text is an error, not outside
                check_numbers(f'column "{self.name}"', numbers, first_row)
            codes = self._bins(numbers)
            codes[np.isnan(numbers)] = missing_code
        else:
            factor = factorize(self.name, cells)
            code_of_value = np.append(self._codes_of_levels(factor.values), missing_code)
            codes = code_of_value[factor.positions]  # position -1 is the appended missing code
        unknown = codes == UNKNOWN
        if unknown.any() and not allow_unknown:
            row = int(np.argmax(unknown))
            raise self._unknown(cells.iloc[row], first_row + row)
        return codes

    def decode(self, codes: NDArray[np.integer], rng: np.random.Generator) -> Cells:
        """Return the values of `codes`, drawn uniformly within a bin; integers stay integers."""
        positions = codes.astype(np.int64)
        if codes.size and (codes.min() < 0 or codes.max() >= self.n_levels):
            raise ParameterError(
                f'codes of column "{self.name}" must be from 0 to {self.n_levels - 1}, '
                f"got {codes.min()} to {codes.max()}"
            )
        missing = positions == (self.n_levels - 1 if self.has_missing_level else MISSING)
        if self.kind == "continuous":
            numbers = self._draw_within_bins(positions, missing, rng)
            drawn: Cells = pd.Series(numbers, name=self.name)
            if self.is_whole:
                drawn = drawn.astype(pd.Int64Dtype() if missing.any() else np.int64)
            return drawn
        if not self.levels:
            return pd.Series([None] * len(positions), name=self.name, dtype=object)
        values: Cells = pd.Series(list(self.levels), name=self.name)
        values = values.take(np.where(missing, 0, positions)).reset_index(drop=True)
        if not missing.any():
            return values
        # A plain integer or truth-value column cannot hold missing cells.
        nullable = {"i": pd.Int64Dtype(), "b": pd.BooleanDtype()}.get(values.dtype.kind)
        return (values if nullable is None else values.astype(nullable)).mask(missing)

    def codes_for(self, condition: object) -> tuple[int, ...]:
        """Return the sorted codes that `condition` allows.

        Columns of levels take a level, or a list, tuple or set of levels; continuous ones take a
        number, which selects its bin, or a pair, which selects the bins between two edges. None
        selects the missing level. Raises DataError for no level, an unknown one, or a pair that is
        not two increasing edges.
        """
        if pd.api.types.is_scalar(condition) and self._is_missing(condition):
            if not self.has_missing_level:
                raise DataError(
                    f'column "{self.name}" has no level for missing cells, got {condition}'
                )
            return (self.n_levels - 1,)
        if self.kind == "continuous" and _is_many(condition):
            return self._bins_between(list(condition))
        if self.kind == "continuous":
            return (int(self.encode(pd.Series([condition], dtype=object))[0]),)
        chosen = list(condition) if _is_many(condition) else [condition]
        if not chosen:
            raise DataError(f'conditions on column "{self.name}" must name a level, got none')
        levels = [plain_level(self.name, value) for value in chosen]
        codes = self._codes_of_levels(levels)
        for level, code in zip(levels, codes, strict=True):
            if code == UNKNOWN:
                raise self._unknown(level, None)
        return tuple(sorted({int(code) for code in codes}))

    def condition_words(
        self, codes: Iterable[int], *, is_full: bool = False, is_open: bool = False
    ) -> str:
        """Return the condition that a cell has one of some codes, such as "class is crew, 3rd"."""
        text = self.describe_codes(codes, is_full=is_full, is_open=is_open)
        return f"{quoted(self.name)} is {text}"

    def describe_codes(
        self, codes: Iterable[int], *, is_full: bool = False, is_open: bool = False
    ) -> str:
        """Return words for a set of codes that fit after "*name* is".

        "crew, 3rd" for a nominal column, of which many levels are shortened unless `is_full`, and
        most of all are "not 1st" (see `levels`); "1, 2" or "3 to 7" for an ordinal one; "in
        [0, 2.5)" for a continuous one, "29 to 54" if it is of whole numbers, and with `is_open`,
        where the outer bins have no ends, "below 2.5" or "at most 54"; "missing" for the missing
        level, "not missing" for all others; "anything" for all codes. Levels that would read as
        several, or as several conditions, are in quotes.
        """
        chosen = sorted({int(code) for code in codes})
        if len(chosen) == self.n_levels:
            return "anything"
        is_missing = self.has_missing_level and bool(chosen) and chosen[-1] == self.n_levels - 1
        if is_missing:
            chosen.pop()
        if self.kind == "nominal":
            gap = is_missing if self.has_missing_level else None
            return level_set_words(self.levels, chosen, gap, is_full=is_full)
        is_all_else = self.has_missing_level and not is_missing and len(chosen) == self.n_levels - 1
        if is_all_else and (len(chosen) > 1 or self.kind == "continuous"):
            return "not missing"
        words = ["missing"] * is_missing
        if self.kind == "ordinal" and chosen:
            texts = itertools.chain(*(run_words(self.levels, *run) for run in runs(chosen)))
            words.insert(0, ", ".join(texts))
        elif chosen and is_open:
            words.insert(0, " or ".join(self._open_bins(*run) for run in runs(chosen)))
        elif chosen:
            bins = " or ".join(self.bin_words(*run) for run in runs(chosen))
            words.insert(0, bins if self.is_whole else "in " + bins)
        return " or ".join(words)

    def bin_words(self, first: int, last: int) -> str:
        """Return neighboring bins in words: "[0, 2.5)", or "29 to 54" for integers."""
        if self.is_whole:
            low, high = self.whole_ends(first, last)
            return f"{low} to {high}" if low < high else str(low)
        texts = self.edge_texts()
        closing = "]" if last == len(self.edges) - 2 else ")"
        return f"[{texts[first]}, {texts[last + 1]}{closing}"

    def _open_bins(self, first: int, last: int) -> str:
        """Return neighboring bins in words, with open outer bins: "below 2.5"."""
        is_lowest, is_highest = first == 0, last == len(self.edges) - 2
        if self.is_whole:
            low, high = self.whole_ends(first, last)
            if (is_lowest or is_highest) and low < high:
                return f"at most {high}" if is_lowest else f"at least {low}"
            return self.bin_words(first, last)
        texts = self.edge_texts()
        if is_lowest:
            return f"below {texts[last + 1]}"
        return f"{texts[first]} or more" if is_highest else "in " + self.bin_words(first, last)

    def whole_ends(self, first: int, last: int) -> tuple[int, int]:
        """Return the lowest and the highest integer of neighboring bins."""
        return math.ceil(self.edges[first]), math.floor(self.edges[last + 1])

    def edge_texts(self) -> list[str]:
        """Return the edges in words, with six digits, or more if edges would look equal."""
        if self.is_whole:
            return [f"{edge:.1f}" for edge in self.edges]
        for digits in range(6, 18):
            texts = [
                str(int(edge)) if edge.is_integer() and abs(edge) < 1e15 else f"{edge:.{digits}g}"
                for edge in self.edges
            ]
            if len({float(text) for text in texts}) == len(texts):
                break
        return texts

    def _check_levels(self) -> None:
        if self.edges or self.is_whole:
            raise DataError(f'{self.kind} column "{self.name}" must have no edges')
        if tidy_levels(self.levels) != list(self.levels) or len(
            {level_text(level) for level in self.levels}
        ) != len(self.levels):
            raise DataError(
                f'levels of column "{self.name}" must be different and of one type, '
                f"got {_shorten(self.levels)}"
            )
        if self.kind == "nominal" and sorted(self.levels) != list(self.levels):
            raise DataError(
                f'levels of nominal column "{self.name}" must be sorted, '
                f"got {_shorten(self.levels)}"
            )

    def _check_edges(self) -> None:
        if self.levels:
            raise DataError(f'continuous column "{self.name}" must have no levels')
        increasing = all(low < high for low, high in itertools.pairwise(self.edges))
        finite = all(map(math.isfinite, self.edges))
        if not (
            len(self.edges) >= 2
            and increasing
            and finite
            and math.isfinite(self.edges[-1] - self.edges[0])
        ):
            raise DataError(
                f'edges of column "{self.name}" must be at least two finite, strictly increasing '
                f"numbers, got {_shorten(self.edges)}"
            )
        if self.is_whole and not all(
            (edge - 0.5).is_integer() and abs(edge) < LARGEST_WHOLE for edge in self.edges
        ):
            raise DataError(
                f'edges of column "{self.name}" of whole numbers must be halfway between two of '
                f"them, got {_shorten(self.edges)}"
            )

    def _codes_of_levels(self, values: list[Level]) -> Codes:
        """Return the code of each value, (len(values),) int32, `other_code` where there is none."""
        code_of_text = {level_text(level): code for code, level in enumerate(self.levels)}
        texts, other = match_texts(values, self.levels), self.other_code
        return np.array([code_of_text.get(text, other) for text in texts], dtype=np.int32)

    def _is_missing(self, value: object) -> bool:
        cells = without_codes(pd.Series([value], dtype=object), self.missing_codes)
        return bool(cells.isna()[0])

    def _bins(self, numbers: Floats) -> Codes:
        bins = np.searchsorted(self.edges, numbers, side="right").astype(np.int32) - np.int32(1)
        bins[numbers == self.edges[-1]] = len(self.edges) - 2
        bins[~((numbers >= self.edges[0]) & (numbers <= self.edges[-1]))] = UNKNOWN
        return bins

    def _bins_between(self, pair: list[object]) -> tuple[int, ...]:
        # An edge may also be given as printed: for integers, the first and the last.
        position = {edge: i for i, edge in enumerate(self.edges)}
        position |= {float(text): i for i, text in enumerate(self.edge_texts())} | position
        starts = ends = position
        if self.is_whole:
            starts, ends = (
                {e + half: i for e, i in position.items()} | position for half in (0.5, -0.5)
            )
        numbers = [end for end in pair if isinstance(end, (int, float))]
        low = high = -1
        if len(numbers) == len(pair) == 2:
            low, high = starts.get(numbers[0], -1), ends.get(numbers[1], -1)
        if not 0 <= low < high:
            rule = f"a pair of increasing edges out of {', '.join(self.edge_texts())}"
            if self.is_whole:
                bins = [self.whole_ends(i, i) for i in range(len(self.edges) - 1)]
                begin, end = (", ".join(map(str, ends)) for ends in zip(*bins, strict=True))
                rule = f"a range that begins at {begin} and ends at {end}"
            words = ", ".join(f"{end:g}" if isinstance(end, float) else str(end) for end in pair)
            raise DataError(
                f'conditions on column "{self.name}" must be a number or {rule}, got {words}'
            )
        return tuple(range(low, high))

    def _draw_within_bins(
        self, codes: Integers, missing: Flags, rng: np.random.Generator
    ) -> Floats:
        edges = np.array(self.edges)
        bins = np.where(missing, 0, codes)
        low, high = edges[bins], edges[bins + 1]
        # Rounding must not move a value onto the next bin's edge.
        values = np.minimum(low + rng.random(len(codes)) * (high - low), np.nextafter(high, low))
        if self.is_whole:
            values = np.minimum(np.floor(values + 0.5), high - 0.5)
        return np.where(missing, np.nan, values)

    def _unknown(self, value: object, row: int | None) -> DataError:
        where = "" if row is None else f" in row {row}"
        if self.kind == "continuous":
            rule = "" if self.is_whole else " (a bin includes its lower edge, the last bin both)"
            return DataError(
                f'column "{self.name}" has {value}{where}, outside '
                f"{self.bin_words(0, len(self.edges) - 2)}{rule}"
            )
        shown = value if isinstance(value, str) else level_text(plain_level(self.name, value))
        return UnknownLevelError(
            f'column "{self.name}" has the unknown level "{shown}"{where}; '
            f"known levels: {_shorten(self.levels)}",
            self.name,
            shown,
            row,
        )


def _is_many(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))


def _shorten(values: Iterable[Level]) -> str:
    texts = [level_text(value) for value in values]
    return ", ".join(texts[:_MOST_SHOWN]) + (", ..." if len(texts) > _MOST_SHOWN else "")
