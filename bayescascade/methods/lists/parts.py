"""The parts of a list: their rows, their volumes, and random draws from a part.

A row's part is that of the first rule that it satisfies, otherwise the last. The volume of a part
is that of the cells that satisfy its rule and no rule before it: the number of cells if no column
is continuous, otherwise the sum of products of bin widths. `kernels.volumes` has the method and its
worst case. Cells are never listed, so it works for any number of columns; 200 binary columns and 15
rules of three conditions take tens of microseconds.

Rows are drawn uniformly: cells are drawn from the rule's box until they are in no earlier box. If
the earlier rules leave less than `LEAST_SHARE` of a box, and more than `FREE_TRIES` cells would be
drawn, it is first cut along a column, and each piece gets its exact share of the rows; so the work
stays bounded for any share.

`encode_for_labels` gives the codes of rows for label lists. Unlike a density (`Schema.encode`), a
label is also predicted for a value beyond the training range: it is in the outer bin of a
continuous column. An unknown level may be accepted: it satisfies no condition.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Codes, Floats, Integers
from bayescascade.base.errors import DataError, ParameterError, UnknownLevelError
from bayescascade.base.typed_words import typed_setting
from bayescascade.data.cell_policy import UnknownCells, advised
from bayescascade.data.column import MISSING, UNKNOWN, Column
from bayescascade.data.levels import check_numbers, to_numbers, without_codes
from bayescascade.data.schema import Conditions, Schema
from bayescascade.data.sql import sql_column, sql_condition
from bayescascade.methods.lists.antecedents import Antecedent, Condition, candidate_arrays

LEAST_SHARE = 0.01  # least share of a box for rejection: 100 tries a row

FREE_TRIES = 4096  # drawing this number of cells takes as long as a cut

_MOST_CELLS = 1 << 22  # cells drawn at once

Box = Mapping[int, Sequence[int]]


def parts_of_codes(codes: Codes, rules: Sequence[Antecedent]) -> Integers:
    """Return the part of each row, (n_rows,), the `else` last; -1 satisfies no condition."""
    from bayescascade.methods.lists.kernels.volumes import first_parts

    conditions = [condition for antecedent in rules for condition in antecedent]
    parts = np.empty(codes.shape[1], np.int64)
    first_parts(
        np.ascontiguousarray(codes, np.int32),
        np.array(conditions, np.int64).reshape(-1, 3),
        np.cumsum([0, *(len(antecedent) for antecedent in rules)]),
        parts,
    )
    return parts


def log_first_volumes(
    schema: Schema, rules: Sequence[Antecedent], conditions: Box | None = None
) -> Floats:
    """Return the log volume that each part of a list of at most 62 rules captures first.

    (len(rules) + 1,) float64 nats, the `else` last; -inf where nothing is captured. Cells
    outside the conditions have no volume. ParameterError: more rules, kept as bits of one number.
    """
    from bayescascade.methods.lists.kernels.layout import MAX_RULES, new_space
    from bayescascade.methods.lists.kernels.volumes import first_log_volumes

    if len(rules) > MAX_RULES:
        raise ParameterError(f"rules must be at most {MAX_RULES}, got {len(rules)}")
    widths = [column.widths for column in schema.columns]
    for index, codes in (conditions or {}).items():
        inside = np.isin(np.arange(widths[index].size), list(codes))
        widths[index] = np.where(inside, widths[index], 0.0)
    arrays = candidate_arrays(schema, rules)._replace(widths=np.concatenate(widths))
    out = np.empty(len(rules) + 1)
    first_log_volumes(arrays, np.arange(len(rules)), new_space(arrays), out)
    with np.errstate(divide="ignore"):
        out += sum(np.log(w.sum()) for w in widths)
    return out


def draw_from_part(
    schema: Schema,
    rules: Sequence[Antecedent],
    part: int,
    n: int,
    rng: np.random.Generator,
    conditions: Conditions,
) -> Codes:
    """Return (n_columns, n) codes drawn uniformly from a part, which must have cells."""
    box: dict[int, Sequence[int]] = {
        j: conditions.get(j, range(column.n_levels)) for j, column in enumerate(schema.columns)
    }
    for condition in rules[part] if part < len(rules) else ():
        box[condition.column] = _inside(box[condition.column], condition)
    draws = _Draws(schema, rules[:part], rng, np.empty((schema.n_columns, n), np.int32))
    draws.fill(box, rng.permutation(n))
    for j in set(box) - set(draws.columns):
        draws.codes[j] = draws.draw(j, box[j], n)
    return draws.codes


@dataclass
class _Draws:
    """Draws of rows from the cells that some rules leave."""

    schema: Schema
    rules: Sequence[Antecedent]
    rng: np.random.Generator
    codes: Codes

    def __post_init__(self) -> None:
        from bayescascade.methods.lists.kernels.layout import new_space

        self.widths = [column.widths for column in self.schema.columns]
        self.columns = sorted({condition.column for rule in self.rules for condition in rule})
        self._arrays = candidate_arrays(self.schema, self.rules)
        self._space = new_space(self._arrays)

    def draw(self, column: int, codes: Sequence[int], n: int) -> Integers:
        """Return n random codes of a column, weighted by width."""
        widths = self.widths[column][list(codes)]
        return self.rng.choice(list(codes), size=n, p=widths / widths.sum())

    def fill(self, box: Box, rows: Integers) -> None:
        """Draw the rules' columns of some rows, from the cells that the rules leave of a box."""
        inside = [all(_inside(box[c.column], c) for c in rule) for rule in self.rules]
        rules = [rule for rule, overlaps in zip(self.rules, inside, strict=True) if overlaps]
        places = np.flatnonzero(inside)
        log_left, log_box = self._log_left(places, box)
        share = math.exp(log_left - log_box)
        if share >= LEAST_SHARE or rows.size <= FREE_TRIES * share:
            self._fill_by_rejection(box, rules, share, rows)
            return
        pieces = {
            j: _pieces(box[j], [c for rule in rules for c in rule if c.column == j])
            for j in self.columns
        }
        column = max(pieces, key=lambda j: len(pieces[j]))
        boxes = [{**box, column: piece} for piece in pieces[column]]
        logs = np.array([self._log_left(places, piece)[0] for piece in boxes])
        shares = np.exp(logs - logs.max())
        counts = self.rng.multinomial(rows.size, shares / shares.sum())
        for piece, own in zip(boxes, np.split(rows, np.cumsum(counts)[:-1]), strict=True):
            if own.size:
                self.fill(piece, own)

    def _log_left(self, rules: Integers, box: Box) -> tuple[float, float]:
        """Return the log volume that some of the rules leave of a box, and that of the box."""
        from bayescascade.methods.lists.kernels.volumes import log_share_left

        log_box, widths = 0.0, np.zeros(self._arrays.widths.size)
        for j, codes in box.items():
            own = self.widths[j][list(codes)]
            widths[self._arrays.offsets[j] + np.array(codes)] = own
            log_box += math.log(own.sum())
        arrays = self._arrays._replace(widths=widths)
        return float(log_share_left(arrays, rules, self._space)) + log_box, log_box

    def _fill_by_rejection(
        self, box: Box, rules: Sequence[Antecedent], share: float, rows: Integers
    ) -> None:
        most = max(1, _MOST_CELLS // len(self.widths))
        while rows.size:
            n = min(int(1.1 * rows.size / share) + 1, most)
            drawn = np.zeros((len(self.widths), n), np.int32)
            for j in self.columns:
                drawn[j] = self.draw(j, box[j], n)
            kept = np.flatnonzero(parts_of_codes(drawn, rules) == len(rules))[: rows.size]
            now, rows = rows[: kept.size], rows[kept.size :]
            for j in self.columns:
                self.codes[j, now] = drawn[j, kept]


def _inside(codes: Sequence[int], condition: Condition) -> tuple[int, ...]:
    return tuple(code for code in codes if condition.low <= code < condition.high)


def _pieces(codes: Sequence[int], conditions: Sequence[Condition]) -> list[list[int]]:
    """Return a column's codes in groups on which each condition holds for all codes or none."""
    groups: dict[tuple[bool, ...], list[int]] = {}
    for code in codes:
        groups.setdefault(tuple(c.low <= code < c.high for c in conditions), []).append(code)
    return list(groups.values())


def encode_for_labels(
    schema: Schema,
    frame: pd.DataFrame,
    *,
    missing: str = "error",
    unknown: str = "error",
    first_row: int = 1,
    whole: UnknownCells | None = None,
) -> Codes:
    """Return the codes of rows, (n_columns, n_rows) int32, -1 where a cell satisfies no condition.

    Columns are matched by name. A `missing` cell is an "error", the missing "level" of its column,
    or, with "none" and no such level, satisfies no condition. `unknown` is "ignore" or "error".
    Rows with ignored levels are appended to `whole` if it is given; otherwise an
    `UnknownLevelWarning` names the levels. DataError names column, value and row.
    """
    found = UnknownCells()
    codes = np.empty((schema.n_columns, len(frame)), np.int32)
    columns = zip(schema.columns, schema.cells_of(frame, first_row), codes, strict=True)
    for column, given, column_codes in columns:
        cells = without_codes(given, column.missing_codes)
        is_missing = cells.isna().to_numpy(dtype=np.bool_)
        if is_missing.any() and _is_refused(column, missing, unknown):
            row = first_row + int(np.argmax(is_missing))
            raise DataError(
                f'column "{column.name}" has a missing cell (NaN) in row {row}, and had none in fit'
                + _remedy(missing)
            )
        if column.kind == "continuous":
            numbers = to_numbers(f'continuous column "{column.name}"', cells, first_row)
            check_numbers(f'column "{column.name}"', numbers, first_row)
            cells = pd.Series(np.clip(numbers, column.edges[0], column.edges[-1]))
        try:
            column_codes[:] = column.encode(cells, first_row, allow_unknown=unknown == "ignore")
            if missing == "level":
                column_codes[column_codes == MISSING] = UNKNOWN  # the column has no such level
            found.note(column.name, cells, column_codes)
        except UnknownLevelError as error:
            raise advised(error, "ignore") from None
    found.tell("meets no condition", whole)
    codes[codes == UNKNOWN] = MISSING
    return codes


def readable_sql(column: Column, missing: str, unknown: str) -> str:
    """Return the condition for cells without an error in `encode_for_labels`; "" if always true."""
    name, known = sql_column(column), range(column.n_levels - column.has_missing_level)
    is_refused = _is_refused(column, missing, unknown)
    is_any = column.kind == "continuous" or unknown == "ignore"
    if is_any:
        return f"{name} IS NOT NULL" if is_refused else ""
    condition = sql_condition(column, known)
    return condition if is_refused else f"({condition} OR {name} IS NULL)"


def _is_refused(column: Column, missing: str, unknown: str) -> bool:
    is_unknown = missing == "level" and not column.has_missing_level
    return missing == "error" or (is_unknown and unknown == "error")


def _remedy(missing: str) -> str:
    """Return advice for a missing cell that is an error, by the parameter `missing`."""
    if missing == "error":
        return f": fill it, or fit with {typed_setting('missing', 'level')}"
    return f": fill it, or accept it with {typed_setting('unknown', 'ignore')}"
