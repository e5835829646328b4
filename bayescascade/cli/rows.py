"""How commands read data files."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError
from bayescascade.cli.output import note
from bayescascade.data.changed_source import with_parts
from bayescascade.data.column import MAX_NOMINAL_LEVELS, Column
from bayescascade.data.declarations import Declarations
from bayescascade.data.files import open_learned
from bayescascade.data.given import TextTypes, typed_frame
from bayescascade.data.inference import dates_error
from bayescascade.data.label_notes import own_label_notes
from bayescascade.data.levels import Cells
from bayescascade.data.names import check_distinct_names, check_known, check_present, listed_names
from bayescascade.data.odd_texts import notes_on_frame
from bayescascade.data.read_as import ReadAs
from bayescascade.data.sources import Source, weighted_blocks, with_readings
from bayescascade.data.table import Table, without_unusable
from bayescascade.model.roles import Predictor

_CHUNK_ROWS = 100_000


def read_table(path: str | ReadAs, **declared: Any) -> Table:
    """Read a data file as a table; a note names columns that are left out as unusable.

    `declared` as in `Table.from_csv`.
    """
    return without_unusable(partial(Table.from_files, path), note, **declared)


def open_rows(
    path: str | ReadAs, chunk_rows: int | None = None, columns: Iterable[Column] = ()
) -> Source:
    """Open a file, to be read in blocks as a model's `columns` were; print notes on its format."""
    source = open_learned(path, columns, chunk_rows or _CHUNK_ROWS)
    for text in source.notes:
        note(text)
    return source


def read_blocks(
    source: Source, names: Sequence[str], weights: str | None
) -> Iterator[tuple[int, pd.DataFrame, Any]]:
    """Yield the number of a block's first row, its cells in columns `names`, and its weights.

    Weights are (n,) float64; None without a column of weights. Raises DataError if a column is
    missing or stands twice, a weight is no number >= 0, or there are no rows.
    """
    needed = list(names) if weights is None else [*names, weights]
    source = with_parts(source, needed)
    check_distinct_names([name for name in source.names if name in needed])
    check_present(needed, source.names)
    others = [name for name in names if name != weights]
    for first_row, cells, row_weights in weighted_blocks(source, others, weights):
        yield first_row, cells[list(names)], row_weights


def read_frame(
    source: Source,
    names: Sequence[str],
    weights: str | None,
    as_texts: Sequence[str] = (),
    declared: Sequence[str] = (),
) -> tuple[pd.DataFrame, Floats | None]:
    """Return all cells in columns `names`, typed as pandas reads them, and the weights.

    Columns `as_texts` keep the text of the file, so that no cell changes how others are read.
    Raises DataError for dates that are too many levels, except in columns `declared`. Weights and
    other errors: see `read_blocks`.
    """
    notes = list(source.notes)
    blocks = list(read_blocks(source, names, weights))
    for text in source.notes:  # on cells, which are read now
        if text not in notes:
            note(text)
    cells = pd.concat([cells for _, cells, _ in blocks], ignore_index=True)
    typed = with_readings(typed_frame(cells) if source.is_text else cells, source)
    frame = typed.assign(**{name: cells[name] for name in as_texts})
    for name in typed.columns:
        if name not in (*as_texts, *declared):
            _check_no_dates(name, typed[name])
    for text in notes_on_frame(typed.drop(columns=list(as_texts))):
        note(text)
    if weights is None:
        return frame, None
    row_weights = np.concatenate([block_weights for _, _, block_weights in blocks])
    if not row_weights.any():
        raise DataError("weights must not be all zero, got only zeros")
    return frame, row_weights


def _check_no_dates(name: str, cells: Cells) -> None:
    if not pd.api.types.is_string_dtype(cells.dtype):
        return
    texts = cells.dropna().unique().tolist()
    is_long = len(texts) > MAX_NOMINAL_LEVELS
    if is_long and (error := dates_error(name, texts)) is not None:
        raise error


def read_for(
    model: Predictor, source: Source, also: Sequence[str], weights: str | None
) -> Iterator[tuple[int, pd.DataFrame, Floats | None]]:
    """Yield the rows that a model predicts, with the columns `also`; see `read_blocks`.

    One block is in memory at a time.
    """
    needed = list(dict.fromkeys([*model.feature_texts, *also]))
    read = read_blocks if model.takes_texts else read_typed
    yield from read(source, needed, weights)


def read_typed(
    source: Source, names: Sequence[str], weights: str | None
) -> Iterator[tuple[int, pd.DataFrame, Floats | None]]:
    """Yield what `read_blocks` does, typed as pandas reads the whole file.

    Text files are read twice, because types depend on all rows.
    """
    if not source.is_text:
        yield from read_blocks(source, names, weights)
        return
    types = TextTypes()
    for _, cells, _ in read_blocks(source, names, weights):
        types.see(cells)
    for first_row, cells, row_weights in read_blocks(source, names, weights):
        yield first_row, types.typed(cells), row_weights


def read_labeled(
    source: Source,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    weights: str | None = None,
    as_texts: Sequence[str] | None = (),
    **kinds: Any,
) -> tuple[pd.DataFrame, Cells, Floats | None]:
    """Return the cells of the features, the labels in `target`, and the weights.

    By default all other columns are features. Cells of columns `as_texts` (None: all) keep the text
    of the file, where they are used; `kinds` are further arguments of `Declarations`. Raises
    DataError if a column is unknown, no feature is left or all their cells are missing, most rows
    have a label of their own, or as `read_blocks`.
    """
    check_distinct_names(source.names)
    check_known("target", [target], source.names)
    others = [name for name in source.names if name != target]
    if columns is not None:  # they may include the target
        columns = [name for name in columns if name != target]
    if columns == [] or not others:
        raise DataError(f"at least one column besides {target} must be used, got none")
    used = Declarations(columns=columns, drop=drop, **kinds).resolve(others, weights)
    names = [*used, target]
    texts = names if as_texts is None else [name for name in names if name in as_texts]
    of_kinds = (name for kind in ("nominal", "ordinal") for name in kinds.get(kind) or ())
    frame, row_weights = read_frame(source, names, weights, texts, [target, *of_kinds])
    labels = frame.pop(target)
    check_some_known(frame)
    n_rows = len(frame) if row_weights is None else int(row_weights.sum())
    if not pd.api.types.is_float_dtype(labels.dtype):  # which are no labels anyway
        for text in own_label_notes(labels.nunique(), n_rows):
            raise DataError(f'column "{target}": {text}')
    return frame, labels, row_weights


def check_some_known(features: pd.DataFrame) -> None:
    """Raise DataError if all cells of all features are missing."""
    if all(cells.isna().all() for _, cells in features.items()):
        listed = listed_names([f'"{name}"' for name in features])
        raise DataError(f"features must have cells that are not missing, got none in {listed}")
