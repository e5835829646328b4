"""``bayescascade impute``: fills the missing cells of a file by a density."""

from collections.abc import Generator, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.loading import ROWS_OPTION, UNKNOWN_OPTION, in_role, load_model, open_for
from bayescascade.cli.options import IntegerType
from bayescascade.cli.output import check_outputs
from bayescascade.cli.reading import with_reading

if TYPE_CHECKING:
    from bayescascade.cli.streaming import Columns
    from bayescascade.data.sources import Source
    from bayescascade.model.roles import Density


@click.command(short_help="Fill missing cells.")
@click.argument("model", metavar="MODEL.json")
@click.argument("data")
@ROWS_OPTION
@click.option(
    "--how",
    type=click.Choice(["mode", "draw"]),
    default="mode",
    show_default=True,
    help="Fill in the most probable values (mode), or random draws given the row's other cells "
    "(draw).",
)
@click.option("--seed", type=IntegerType(0), help="Same seed, same draws.")
@UNKNOWN_OPTION
@with_reading(learns=False)
def impute(
    model: str, data: str, out: str | None, how: str, seed: int | None, unknown: str | None
) -> None:
    """Fill the missing cells in the rows of DATA by the density in MODEL.json.

    Cells are filled given the other cells of their row. Several missing cells of a row are filled
    together. DATA must have all columns of the model. All other cells stay unchanged. For multiple
    imputation, repeat it with --how draw and several seeds.
    """
    check_outputs({"--out": out}, {"MODEL.json": model, "DATA": data})
    if seed is not None and how != "draw":
        raise click.UsageError(f"--seed needs --how draw, got {how}")
    loaded = load_model(model, unknown)
    from bayescascade.cli.streaming import is_parquet, write_rows
    from bayescascade.model.roles import Density

    density: Density = in_role(Density, loaded, "impute", model)
    source = open_for(density, data)
    typed = out is not None and is_parquet(out)
    blocks = _filled_blocks(density, source, how, seed, typed=typed)
    write_rows(out, data, blocks)


def _filled_blocks(
    model: "Density", source: "Source", how: str, seed: int | None, *, typed: bool
) -> Generator["Columns", None, None]:
    """Yield the filled rows of a file; texts of numbers become numbers if `typed`."""
    import numpy as np

    from bayescascade.cli.rows import read_blocks
    from bayescascade.data.cell_policy import UnknownCells

    rng, unknown = np.random.default_rng(seed), UnknownCells()
    stored = {} if source.is_text else _stored_types(source)
    kinds = {c.name: c for c in model.schema_.columns if c.name in source.names}
    spellings: dict[str, dict[str, str]] = {name: {} for name in kinds}
    for first_row, cells, _ in read_blocks(source, source.names, None):
        filled = model.impute(cells, how, rng, first_row=first_row, unknown=unknown)
        for name, spelled in spellings.items() if source.is_text and not typed else ():
            _spell(kinds[name], cells[name], filled, spelled)
        yield {
            name: _column(name, filled[name], kinds.get(name), source.is_text, typed, stored)
            for name in source.names
        }
    unknown.warn()


def _spell(column: Any, cells: Any, filled: Any, spelled: dict[str, str]) -> None:
    """Write filled levels as the file has written them so far, such as "true" and "007"."""
    import pandas as pd

    from bayescascade.data.levels import level_text

    if column.kind == "continuous":
        return
    texts = pd.Series(cells.dropna().unique(), dtype=object)
    codes = column.encode(texts, allow_unknown=True)
    for text, code in zip(texts, codes.tolist(), strict=True):
        if 0 <= code < len(column.levels) and code != column.other_code:
            spelled.setdefault(level_text(column.levels[code]), text)
    gaps = (cells.isna() & filled[column.name].notna()).to_numpy()
    if gaps.any():
        filled_cells = filled[column.name].astype(object)
        filled_cells[gaps] = [
            spelled.get(text, text) for text in map(level_text, filled_cells[gaps])
        ]
        filled[column.name] = filled_cells


def _stored_types(source: "Source") -> dict[str, Any]:
    """Return Arrow's types of a file's columns, by name; for dictionaries, the type of entries."""
    import pandas as pd
    import pyarrow

    with closing(source.batches(source.names)) as batches:
        first = next(batches, None)
    if isinstance(first, pd.DataFrame):
        first = pyarrow.RecordBatch.from_pandas(first, preserve_index=False)
    types = {field.name: field.type for field in (() if first is None else first.schema)}
    is_dictionary = pyarrow.types.is_dictionary
    return {name: t.value_type if is_dictionary(t) else t for name, t in types.items()}


def _column(
    name: str, cells: Any, kind: Any, is_text: bool, typed: bool, stored: Mapping[str, Any]
) -> Any:
    """Return a column to be written: text unchanged, other cells with the type of the file.

    All blocks of a column must have one type: filled numbers are integers only if all training
    cells were.
    """
    import numpy as np
    import pyarrow

    from bayescascade.base.errors import DataError
    from bayescascade.data.levels import are_numbers, level_text, plain_level, to_numbers

    is_whole = kind is not None and kind.is_whole
    is_continuous = kind is not None and kind.kind == "continuous" and not is_whole
    if is_text:
        levels = () if kind is None else kind.levels
        if typed and (is_continuous or is_whole or are_numbers(levels)):
            numbers = to_numbers(f'column "{name}"', cells)
            if is_continuous or not all(isinstance(level, int) for level in levels):
                return pyarrow.array(numbers)
            if (numbers % 1 != 0).any():  # an unknown level
                raise DataError(
                    f'column "{name}" must have whole numbers, as the model has, to be Parquet, '
                    f"got {numbers[numbers % 1 != 0][0]:g}: CSV takes all"
                )
            return pyarrow.array(numbers.astype(np.int64))
        return [
            cell if cell is None or isinstance(cell, str) else level_text(plain_level(name, cell))
            for cell in cells.astype(object).where(cells.notna(), None)
        ]
    try:
        array = pyarrow.array(cells.astype(float) if is_continuous else cells, from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f'column "{name}" must be of one type, got cells of several: {error}'
        ) from None
    if is_continuous:
        return array
    with suppress(pyarrow.ArrowException):  # for numbers beyond it, such as drawn ones
        return array.cast(stored.get(name, array.type))
    return array
