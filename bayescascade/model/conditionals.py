"""Conditional densities: missing cells are filled, and any column is predicted.

A density over rows can predict each of its columns. The probability of a level, given the other
cells of a row, is the density of the row with that level, times the level's width, over the sum of
these; missing cells are integrated out by the density. So answers are as exact as scores, and are
averages over a posterior if scores are.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.column import MISSING, Column
from bayescascade.data.given import GivenRows
from bayescascade.data.levels import Cells, level_text, plain_level
from bayescascade.data.names import check_known
from bayescascade.data.schema import CodedTable, Rows, Schema

FILLINGS = ("mode", "draw")
PREDICTIONS = ("mode", "mean")

_MOST_COMBINATIONS = 256  # for the missing cells of a row
_MOST_SCORED = 1 << 20  # rows scored together


class PredictedColumn(NamedTuple):
    """The predictions for one column."""

    values: NDArray[np.generic]  # (n_rows,), see `ReadableDensity.predict`
    probabilities: pd.DataFrame  # (n_rows, n_levels), see `ReadableDensity.predict_proba`


class Question(NamedTuple):
    """A question: the probabilities of combinations of codes, given the other cells of rows."""

    rows: NDArray[np.intp]  # (n_rows,), positions of the rows
    columns: NDArray[np.intp]  # (n,)
    combinations: Codes  # (n, n_combinations)
    seen: Codes  # (n_columns, n_distinct), the distinct rows
    position: NDArray[np.intp]  # (n_rows,), position of each row among these

    @classmethod
    def of(
        cls, codes: Codes, rows: NDArray[np.intp], columns: NDArray[np.intp], combinations: Codes
    ) -> "Question":
        """Make the question for some rows of (n_columns, n_rows) codes."""
        seen, position = np.unique(codes[:, rows], axis=1, return_inverse=True)
        return cls(rows, columns, combinations, seen, position.reshape(-1))

    @property
    def n_scored(self) -> int:
        """Number of rows to score."""
        return int(self.seen.shape[1] * self.combinations.shape[1])

    def blocks(self) -> Iterator[Codes]:
        """Yield the rows to score, with the combinations of a row one after the other."""
        n_combinations = self.combinations.shape[1]
        at_once = max(1, _MOST_SCORED // n_combinations)
        for start in range(0, self.seen.shape[1], at_once):
            rows = self.seen[:, start : start + at_once]
            block = np.repeat(rows, n_combinations, axis=1)
            block[self.columns] = np.tile(self.combinations, rows.shape[1])
            yield block


class ColumnPredictor(Protocol):
    """A density that can predict each of its columns."""

    schema_: Schema

    def encode(self, X: Rows, *, first_row: int = 1, unknown: UnknownCells | None = None) -> Codes:
        """Return the codes of rows, (n_columns, n_rows), negative where missing or unknown."""

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of (n_columns, n_rows) coded rows, nats; see `encode`."""


def fill_missing(
    density: ColumnPredictor,
    X: Rows,
    how: str,
    random_state: int | np.random.Generator | None,
    first_row: int,
    unknown: UnknownCells | None,
) -> pd.DataFrame:
    """Return rows with their missing cells filled; see `ReadableDensity.impute`."""
    check_is_fitted(density)
    check_choice("how", how, FILLINGS)
    rng = np.random.default_rng(random_state)
    if isinstance(X, CodedTable):
        raise ParameterError("X must be rows with missing cells to impute, got a Table")
    frame = _frame_of(GivenRows.of(X, density.schema_.columns), density.schema_.names)
    codes = density.encode(frame, first_row=first_row, unknown=unknown)
    for column, of_column in zip(density.schema_.columns, codes, strict=True):
        if column.has_missing_level:
            of_column[of_column == column.n_levels - 1] = MISSING
    is_missing = codes == MISSING
    if how == "mode":
        _fill_modes(density, codes, first_row)
    else:
        _fill_draws(density, codes, rng, first_row)
    rows_filled, names = frame.copy(), [str(name) for name in frame.columns]
    for column, of_column, gone in zip(density.schema_.columns, codes, is_missing, strict=True):
        if gone.any() and column.name in names:  # otherwise it is a part of a date
            place, rows = names.index(column.name), np.flatnonzero(gone)
            values = _values_of(column, of_column[rows], rng if how == "draw" else None)
            cells = _filled(frame.iloc[:, place], column, rows, of_column[rows], values)
            rows_filled.isetitem(place, cells)  # type: ignore[arg-type] # a Series, too
    return rows_filled


def predict_given_others(
    density: ColumnPredictor,
    X: Rows,
    target: str,
    how: str = "mode",
    first_row: int = 1,
    unknown: UnknownCells | None = None,
) -> PredictedColumn:
    """Predict a column, given the other cells of each row; rows are scored only once."""
    column, index, log_shares = _given_others(density, X, target, how, first_row, unknown)
    shares = _level_frame(column, index, log_shares)
    return PredictedColumn(_chosen(column, log_shares, how), shares)


def _given_others(
    density: ColumnPredictor,
    X: Rows,
    target: str,
    how: str,
    first_row: int,
    unknown: UnknownCells | None,
) -> tuple[Column, pd.Index, Floats]:
    """Return the target, the rows' index and log probabilities (n_rows, n_levels)."""
    check_is_fitted(density)
    check_known("target", [target], density.schema_.names)
    check_choice("how", how, PREDICTIONS)
    j = density.schema_.names.index(target)
    column = density.schema_.columns[j]
    is_numeric = column.kind == "continuous" or not isinstance(column.levels[0], str | bool)
    if how == "mean" and not is_numeric:
        raise ParameterError(
            f'how must be "mode" for column "{target}", whose levels are no numbers, got "mean"'
        )
    if isinstance(X, CodedTable):
        codes = density.encode(X)
        index: pd.Index = pd.RangeIndex(codes.shape[1])
    else:
        frame = _without(
            _frame_of(GivenRows.of(X, density.schema_.columns), density.schema_.names, target),
            target,
        )
        codes = density.encode(frame, first_row=first_row, unknown=unknown)
        index = frame.index
    codes[j] = MISSING
    every = np.arange(density.schema_.n_levels[j], dtype=np.int32)
    rows = np.arange(codes.shape[1])
    question = Question.of(codes, rows, np.array([j]), every[np.newaxis])
    (log_shares,) = _log_shares(density, [question], first_row)
    return column, index, log_shares


def _log_shares(
    density: ColumnPredictor, questions: Iterable[Question], first_row: int
) -> Iterator[Floats]:
    """Yield each question's log probabilities, (n_rows, n_combinations); probabilities sum to 1.

    DataError if no combination is possible in a row.
    """
    for batch in _batches(questions):
        blocks = [block for question in batch for block in question.blocks()]
        if len(batch) > 1 and blocks:
            blocks = [np.concatenate(blocks, axis=1)]
        scores = np.concatenate([np.empty(0), *map(density.score_codes, blocks)])
        ends = np.cumsum([question.n_scored for question in batch])
        for question, of_question in zip(batch, np.split(scores, ends[:-1]), strict=True):
            logs = of_question.reshape(-1, question.combinations.shape[1])
            for j, chosen in zip(question.columns, question.combinations, strict=True):
                logs = logs + np.log(density.schema_.columns[j].widths)[chosen]
            totals = logsumexp(logs, axis=1, keepdims=True)
            is_impossible = np.isneginf(totals)[:, 0]
            if is_impossible.any():
                row = first_row + question.rows[np.argmax(is_impossible[question.position])]
                raise DataError(
                    f"the known cells of row {row} must have a positive probability under the "
                    "density, got 0"
                )
            yield (logs - totals)[question.position]


def _fill_modes(density: ColumnPredictor, codes: Codes, first_row: int) -> None:
    """Fill missing codes of rows by the most probable ones."""
    columns, questions = density.schema_.columns, []
    patterns, members = np.unique(codes == MISSING, axis=1, return_inverse=True)
    for number, is_missing in enumerate(patterns.T):
        rows, missing = (np.flatnonzero(members.reshape(-1) == number), np.flatnonzero(is_missing))
        n_combinations = math.prod(_n_known(columns[j]) for j in missing)
        groups = missing[:, np.newaxis]
        if missing.size > 0 and n_combinations <= _MOST_COMBINATIONS:
            groups = missing[np.newaxis]
        for group in groups:
            sizes = [_n_known(columns[j]) for j in group]
            combinations = np.indices(sizes, np.int32).reshape(len(sizes), -1)
            questions.append(Question.of(codes, rows, group, combinations))
    for question, log_shares in zip(
        questions, _log_shares(density, questions, first_row), strict=True
    ):
        codes[np.ix_(question.columns, question.rows)] = question.combinations[
            :, log_shares.argmax(axis=1)
        ]


def _fill_draws(
    density: ColumnPredictor, codes: Codes, rng: np.random.Generator, first_row: int
) -> None:
    """Fill missing codes of rows by draws, column by column, given the columns before."""
    for j, column in enumerate(density.schema_.columns):
        rows = np.flatnonzero(codes[j] == MISSING)
        if rows.size == 0:
            continue
        every = np.arange(_n_known(column), dtype=np.int32)[np.newaxis]
        question = Question.of(codes, rows, np.array([j]), every)
        (log_shares,) = _log_shares(density, [question], first_row)
        shares = np.exp(log_shares).cumsum(axis=1)
        places = (rng.random((rows.size, 1)) * shares[:, -1:] >= shares).sum(axis=1)
        codes[j, rows] = np.minimum(places, every.size - 1)


def _n_known(column: Column) -> int:
    """Return the number of codes without the missing level, at least one."""
    n_known = column.n_levels - column.has_missing_level
    if n_known == 0:
        raise DataError(f'column "{column.name}" must have a level to fill in, got none')
    return n_known


def _chosen(column: Column, log_shares: Floats, how: str) -> NDArray[np.generic]:
    """Return a column's most probable value in each row, or its mean, if it is not missing."""
    log_shares = log_shares[:, : _n_known(column)]
    if how == "mode":
        return _values_of(column, log_shares.argmax(axis=1), None).to_numpy()
    shares = np.exp(log_shares - logsumexp(log_shares, axis=1, keepdims=True))
    means: Floats = shares @ _numbers_of(column)
    return means


def _level_frame(column: Column, index: pd.Index, log_shares: Floats) -> pd.DataFrame:
    """Return the probability of each level, by row."""
    kept = object if column.has_missing_level else None  # otherwise None would become NaN
    labels = pd.Index(_labels_of(column), dtype=kept, name=column.name)
    return pd.DataFrame(np.exp(log_shares), index=index, columns=labels)


def _batches(questions: Iterable[Question]) -> Iterator[list[Question]]:
    """Yield questions in batches, because an averaged density is slow for each call."""
    batch: list[Question] = []
    for question in questions:
        if batch and sum(queued.n_scored for queued in [*batch, question]) > _MOST_SCORED:
            yield batch
            batch = []
        batch.append(question)
    if batch:
        yield batch


def _frame_of(given: GivenRows, names: Sequence[str], target: str | None = None) -> pd.DataFrame:
    """Return rows as a DataFrame, which may lack the target."""
    if target is not None and np.shape(given.cells)[1:] == (len(names) - 1,):
        names = [name for name in names if name != target]
    return given.named(names)


def _without(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return rows with all cells of a target missing."""
    others = frame.loc[:, [str(name) != target for name in frame.columns]]
    nothing = pd.DataFrame({target: pd.Series([None] * len(frame), dtype=object)})
    return pd.concat([others, nothing.set_axis(frame.index)], axis=1)


def _labels_of(column: Column) -> list[object]:
    """Return the label of each code of a column."""
    if column.kind == "continuous":
        labels: list[object] = [column.bin_words(k, k) for k in range(len(column.edges) - 1)]
    else:
        labels = list(column.levels)
    return [*labels, None] if column.has_missing_level else labels


def _values_of(
    column: Column, codes: NDArray[np.integer], rng: np.random.Generator | None
) -> Cells:
    """Return levels, and numbers in bins: drawn, or without a generator the (lower) middle."""
    if column.kind == "continuous" and rng is None:
        middles = _middles(column)
        if column.is_whole:
            middles = np.floor(middles).astype(np.int64)
        return pd.Series(middles[codes], name=column.name)
    return column.decode(codes, rng or np.random.default_rng(0))


def _numbers_of(column: Column) -> Floats:
    """Return the number of each code of a column of numbers, for a mean."""
    if column.kind == "continuous":
        return _middles(column)
    return np.array(column.levels, np.float64)


def _filled(
    cells: Cells, column: Column, rows: NDArray[np.intp], codes: NDArray[np.integer], values: Cells
) -> Cells:
    """Return cells with new values in some rows, in the cells' type if it can hold them."""
    if len(rows) == len(cells) and not isinstance(cells.dtype, pd.CategoricalDtype):
        return values.set_axis(cells.index)
    found: list[object] = values.tolist()
    with_values = cells.astype(object)
    if isinstance(cells.dtype, pd.CategoricalDtype) and column.kind != "continuous":
        categories = cells.cat.categories
        known = column.encode(pd.Series(categories), allow_unknown=True)
        of_code = dict(zip(known.tolist(), categories, strict=True))
        of_code.pop(column.other_code, None)  # no grouped level
        found = [of_code.get(code, v) for code, v in zip(codes.tolist(), found, strict=True)]
        cells = cells.cat.add_categories([v for v in dict.fromkeys(found) if v not in categories])
    elif pd.api.types.infer_dtype(cells, skipna=True) == "string" and not isinstance(found[0], str):
        found = [level_text(plain_level(column.name, value)) for value in found]
    with_values.iloc[rows] = pd.Series(found, dtype=object).to_numpy()
    try:
        return with_values.astype(cells.dtype)
    except (TypeError, ValueError):  # such as the middle of a bin in a column of integers
        return with_values.infer_objects()


def _middles(column: Column) -> Floats:
    edges = np.array(column.edges)
    middles: Floats = edges[:-1] + np.diff(edges) / 2
    return middles
