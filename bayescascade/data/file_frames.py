"""Whole files as rows and labels, for estimators that learn from all rows at once."""

from typing import Any, NamedTuple

import pandas as pd

from bayescascade.base.errors import ParameterError
from bayescascade.data.files import are_paths, open_files
from bayescascade.data.levels import Cells, parse_texts
from bayescascade.data.names import check_distinct_names, listed_names
from bayescascade.data.read_as import ReadAs
from bayescascade.data.sources import Source, as_frame, weighted_blocks, with_missing_codes


class Given(NamedTuple):
    """What `fit` was given, read from files if it was."""

    X: Any
    y: Any
    sample_weight: Any


def as_rows(rows: Any, *, is_typed: bool = True) -> Any:
    """Return files or another library's table as a DataFrame, and other rows unchanged.

    With `is_typed`, columns of text get the types that pandas gives; else they stay text. Raises
    DataError if the rows cannot be read.
    """
    if not are_paths(rows):
        return as_frame(rows)
    source = open_files(rows)
    check_distinct_names(source.names)
    blocks = [cells for _, cells, _ in weighted_blocks(source, source.names, None)]
    frame = pd.concat(blocks, ignore_index=True)
    return with_missing_codes(typed_frame(source, frame) if is_typed else frame, source)


def with_labels(X: Any, y: Any, sample_weight: Any = None, *, is_typed: bool = True) -> Given:
    """Return rows, labels and weights, of which the last two may be columns of files.

    With files, `y` and `sample_weight` name columns, which are then no features; `is_typed` is that
    of `as_rows`. Raises ParameterError if files lack the column `y` or none is named, DataError if
    they cannot be read.
    """
    if not are_paths(X):
        return Given(X, y, sample_weight)
    if isinstance(X, ReadAs):
        X = X.with_names(labels=y, weights=sample_weight)
    frame = as_rows(X, is_typed=is_typed)
    columns = listed_names(list(frame.columns))
    if y is None:
        raise ParameterError(
            f"y must name the column of labels in {X}, or hold them, got None; columns: {columns}"
        )
    for option, name in (("y", y), ("sample_weight", sample_weight)):
        if isinstance(name, str) and name not in frame.columns:
            raise ParameterError(f"{option} must name a column of {X}, got {name!r}: {columns}")
    labels = frame.pop(y) if isinstance(y, str) else y
    weights = frame.pop(sample_weight) if isinstance(sample_weight, str) else sample_weight
    return Given(frame, labels, weights)


class TextTypes:
    """Types of columns of text, as pandas.read_csv gives them to the whole file, not to a block.

    All blocks are shown first, and then typed one by one. Of each block only texts are kept for
    which pandas chooses the same type as for the block.
    """

    def __init__(self) -> None:
        self._witnesses: dict[str, tuple[str, ...]] = {}
        self._has_missing: dict[str, bool] = {}

    def see(self, block: pd.DataFrame) -> None:
        """Take note of a block's texts; categories stay as they are."""
        for name in block.columns:
            if isinstance(block[name].dtype, pd.CategoricalDtype):
                continue
            positions, distinct = pd.factorize(block[name])
            seen = self._witnesses.get(name, ())
            self._witnesses[name] = _witnesses(pd.Series(parse_texts([*distinct, *seen])))
            self._has_missing[name] = self._has_missing.get(name, False) or -1 in positions

    def typed(self, block: pd.DataFrame) -> pd.DataFrame:
        """Return a block that was seen as numbers, truth values and texts."""
        return pd.DataFrame({name: self._typed(block[name]) for name in block.columns})

    def _typed(self, texts: Cells) -> Cells:
        if isinstance(texts.dtype, pd.CategoricalDtype):
            return texts.reset_index(drop=True)
        name = str(texts.name)
        positions, distinct = pd.factorize(texts)
        values: Cells = pd.Series(parse_texts([*distinct, *self._witnesses[name]]))
        if self._has_missing[name]:  # whose type has room for that, then, in every block
            return values.reindex([*positions, -1]).iloc[:-1].reset_index(drop=True)
        return values.reindex(positions).reset_index(drop=True)


def typed_frame(source: Source, cells: pd.DataFrame) -> pd.DataFrame:
    """Return all of a source's cells typed as pandas reads them."""
    if not source.is_text:
        return cells
    types = TextTypes()
    types.see(cells)
    return types.typed(cells)


def _witnesses(values: Cells) -> tuple[str, ...]:
    """Return few texts that are of the type that pandas has given to a column."""
    if values.empty:
        return ()
    if pd.api.types.is_bool_dtype(values.dtype):
        return ("True",)
    if pd.api.types.is_float_dtype(values.dtype):
        return ("0.5",)
    if isinstance(values.iloc[0], str):
        return ("text",)
    return (str(values.min()), str(values.max()))  # how large whole numbers are decides on theirs
