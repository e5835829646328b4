"""Two values that are declared: of a feature or of labels, which of them occur being protected.

Whatever a reading says is published beside the sums. So its levels, centers and classes must not
come from cells that are to be protected: they are declared by the caller, by a type of truth values
or of two categories, or by others' rados. A cell with neither value is an error that names it: a
row with such a cell is not among the neighbors that are protected.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.levels import Cells, Level, factorize, level_text, plain_level, tidy_levels

Two = tuple[Level, Level]


def two_levels(name: str, given: Any) -> Two:
    """Return two declared levels, sorted: two texts, two numbers or two truth values.

    Numbers are such that floats hold their middle and half of their difference exactly, so that
    cells are exactly -1 and 1 in these units, and a sum's last digits give nothing away. Raises
    ParameterError if they are not; calls them `name`.
    """
    wrong = ParameterError(
        f"{name} must be two different texts, numbers or truth values, such as ('no', 'yes'), "
        f"got {given!r}"
    )
    if isinstance(given, str) or not np.iterable(given):
        raise wrong
    try:
        levels = [plain_level(name, one) for one in given]
    except DataError:
        raise wrong from None
    kinds = {float if type(one) is int else type(one) for one in levels}
    if len(levels) != 2 or len(kinds) != 1 or len(set(map(level_text, levels))) != 2:
        raise wrong
    low, high = tidy_levels(sorted(levels))
    if kinds == {float}:
        try:
            center, unit = middle_of(low, high)
        except OverflowError:
            raise wrong from None
        if not is_exact(center, unit) or (center - unit, center + unit) != (low, high):
            raise ParameterError(
                f"{name} must be numbers whose mean and half difference are exact as floats, "
                f"such as 0 and 1, got {low!r} and {high!r}"
            )
    return low, high


def declared_two(name: str, what: str, of: str, given: Any, cells: Cells) -> Two:
    """Return two levels that are given, or that the type of cells declares, else an error."""
    found = two_of_type(cells) if given is None else given
    if found is None:
        raise ParameterError(
            f"{name} must be {what}, such as ('no', 'yes'), unless {of} is of truth values or two "
            "categories: the values that occur are not public, got None"
        )
    return two_levels(name, found)


def two_of_type(cells: Cells) -> list[Any] | None:
    """Return the two values that the type of a column declares, or None."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        categories: list[Any] = cells.cat.categories.tolist()
        return categories if len(categories) == 2 else None
    return [False, True] if pd.api.types.is_bool_dtype(cells.dtype) else None


def codes_of_two(label: str, cells: Cells, levels: Two) -> NDArray[np.int64]:
    """Return 0 or 1 for each cell, which may be written as text; errors call cells `label`."""
    if isinstance(levels[0], str):
        factor = factorize(label, cells)
        texts: list[Level] = [level_text(value) for value in factor.values]
        places = [levels.index(text) if text in levels else -1 for text in texts]
        codes = np.array([*places, -1], np.int64)[factor.positions]
    else:
        parsed: Any = pd.to_numeric(with_truth_values(cells).astype(object), errors="coerce")
        numbers = parsed.to_numpy(np.float64, na_value=np.nan)
        codes = np.select([numbers == levels[0], numbers == levels[1]], [0, 1], -1)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        cell: Any = cells.iloc[row]
        got = "a missing cell" if pd.isna(cell) else f'"{cell}"'
        raise DataError(
            f'{label} must be "{level_text(levels[0])}" or "{level_text(levels[1])}", as was '
            f"declared, got {got} in row {row + 1}"
        )
    return codes


def with_truth_values(cells: Cells) -> Cells:
    """Return cells in which truth values that are written as text are 0 and 1."""
    if not (cells.dtype == object or pd.api.types.is_string_dtype(cells.dtype)):
        return cells
    truth = cells.astype(str).str.strip().str.lower().map({"true": 1.0, "false": 0.0})
    return cells.astype(object).where(truth.isna(), truth)


def middle_of(low: Any, high: Any) -> tuple[float, float]:
    """Return the middle of two numbers, and half of their difference, where neither overflows."""
    return float(low) / 2 + float(high) / 2, float(high) / 2 - float(low) / 2


def is_exact(center: float, unit: float) -> bool:
    """Return whether floats take what is a unit from the center for exactly -1 and 1."""
    with np.errstate(all="ignore"):
        middle, half = np.float64(center), np.float64(unit)
        return bool(
            ((middle - half - middle) / half, (middle + half - middle) / half) == (-1.0, 1.0)
        )
