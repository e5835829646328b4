"""Sets of nominal levels in words, short for many levels.

If there are more than six, numbers become runs of the column's levels, "29 to 54". If few levels
are left out, the words name these, perhaps with missing: "not x", "none of x, y", "neither x nor
missing". Both are exact. Sets that are still too long are shortened: "x, y, ... (18 of 49 levels)".
"""

import itertools
from collections.abc import Iterator, Sequence

from bayescascade.data.levels import Level, are_numbers, level_text, quoted

_MOST_NAMED = 6  # up to so few levels, each is named if there is room
_MOST_LEFT_OUT = 3  # levels named because they are left out
_FEWEST_CUT = 5  # levels of which some are left out
_MOST_LETTERS = 50  # of levels in a row
_LETTERS_LEFT = 18  # characters that remain of a longer text: two lines of a tree


def level_set_words(
    levels: Sequence[Level], codes: Sequence[int], is_missing: bool | None, *, is_full: bool = False
) -> str:
    """Return words for some levels of a nominal column; exact, with nothing cut, if `is_full`.

    `levels` are all of the column, ascending; `codes` the chosen ones, ascending; `is_missing`
    says whether the missing level is one of them, None if the column has none.
    """
    if not codes:
        return "missing" * bool(is_missing)
    texts = [quoted(level_text(level)) for level in levels]
    pieces = [texts[code] for code in codes]
    if len(codes) > _MOST_NAMED or len(", ".join(pieces)) > _MOST_LETTERS:
        if are_numbers(levels):
            pieces = [words for run in runs(codes) for words in run_words(levels, *run)]
        others = sorted(set(range(len(levels))) - set(codes))
        left_out = [texts[code] for code in others] + ["missing"] * (is_missing is False)
        if len(left_out) <= _MOST_LEFT_OUT < len(pieces):
            return "missing or " * bool(is_missing) + _none_of(left_out)
    if not is_full and len(codes) >= _FEWEST_CUT:
        pieces = shortened(pieces, f"({len(codes):,} of {len(levels):,} levels)")
    return ", ".join(pieces) + " or missing" * bool(is_missing)


def _none_of(left_out: Sequence[str]) -> str:
    """Return words for all levels but one to three; "missing" may be the last of these."""
    if len(left_out) == 1:
        return f"not {left_out[0]}"
    if len(left_out) == 2 and left_out[1] == "missing":
        return f"neither {left_out[0]} nor missing"
    return f"none of {', '.join(left_out)}"


def shortened(texts: Sequence[str], count: str, letters: int = _LETTERS_LEFT) -> list[str]:
    """Return texts in one line; of too many only the first ones and their number."""
    if len(", ".join(texts)) <= _MOST_LETTERS:
        return list(texts)
    lengths = itertools.accumulate(len(text) + 2 for text in texts)
    n_kept = max(1, sum(length <= letters for length in lengths))
    return [*texts[:n_kept], f"... {count}"]


def run_words(levels: Sequence[Level], first: int, last: int) -> list[str]:
    """Return a run of levels: "3 to 7", or each of two or one."""
    ends = [quoted(level_text(levels[code])) for code in (first, last)]
    if last - first > 1:
        return [" to ".join(ends)]
    return ends[: 1 + last - first]


def runs(codes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of consecutive codes, ascending."""
    chosen = set(codes)
    starts = (code for code in codes if code - 1 not in chosen)
    return zip(starts, (code for code in codes if code + 1 not in chosen), strict=True)
