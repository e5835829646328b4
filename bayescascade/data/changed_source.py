"""A source with changed cells: codes become missing, dates parts, and rare levels one level."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from bayescascade.data.date_parts import needed_dates, with_date_parts
from bayescascade.data.levels import (
    OTHER_LEVELS,
    Cells,
    Level,
    level_text,
    plain_level,
    without_codes,
)
from bayescascade.data.sources import Batch, Source


@dataclass(frozen=True)
class Changes:
    """The changes of a `ChangedSource`."""

    # by column, values that stand for missing cells
    missing_codes: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    # by the part's name, a column of dates and the part of its dates
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # by column, the texts of the levels that do not become `OTHER_LEVELS`
    kept_levels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    labels: str | None = None  # rows with a missing cell in this column are left out

    def needed(self, names: Iterable[str]) -> list[str]:
        """Return the columns that must be read for the requested ones."""
        columns = [self.parts[name][0] if name in self.parts else name for name in names]
        return list(dict.fromkeys([*columns, *([] if self.labels is None else [self.labels])]))

    def concern(self, name: str) -> bool:
        """Return whether a column is changed."""
        return bool(self.missing_codes.get(name) or name in self.parts or name in self.kept_levels)

    def of(self, block: pd.DataFrame, names: Sequence[str], first_row: int) -> pd.DataFrame:
        """Return the columns `names`, changed, of a block with the needed columns."""
        cells = {
            name: without_codes(block[name], self.missing_codes.get(name, ()))
            for name in block.columns
        }
        read = with_date_parts(pd.DataFrame(cells, copy=False), names, first_row)
        kept = self.kept_levels
        changed = pd.DataFrame(
            {
                name: _grouped(name, read[name], kept[name]) if name in kept else read[name]
                for name in names
            },
            copy=False,
        )
        if self.labels is None:
            return changed
        return changed[read[self.labels].notna()].reset_index(drop=True)


class ChangedSource:
    """The rows of a source, changed; `names` are its columns, `notes` describe the changes."""

    def __init__(
        self, source: Source, names: list[str], changes: Changes, notes: Sequence[str] = ()
    ) -> None:
        self.label, self.is_text = source.label, source.is_text
        self.names = names
        self.missing_codes, self.units = changes.missing_codes, source.units
        self.categorical = frozenset(
            name for name in source.categorical if not changes.concern(name)
        )
        self._source, self._changes, self._notes = source, changes, notes

    @property
    def notes(self) -> Sequence[str]:
        """Notes on how the rows are read, and on the changes."""
        return [*self._source.notes, *self._notes]

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""
        first_row = 1
        for block in self._source.blocks(self._changes.needed(names)):
            yield self._changes.of(block, names, first_row)
            first_row += len(block)

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`; unchanged columns in the form of the source."""
        if self._changes.labels is None and not any(map(self._changes.concern, names)):
            yield from self._source.batches(names)
        else:
            yield from self.blocks(names)


def with_parts(source: Source, needed: Iterable[str]) -> Source:
    """Return a source that also has all needed parts of dates."""
    parts = needed_dates(needed, source.names)
    if not parts:
        return source
    return ChangedSource(source, [*source.names, *parts], Changes(parts=parts))


def _grouped(name: str, cells: Cells, kept: frozenset[str]) -> Cells:
    positions, distinct = pd.factorize(cells.astype(object))
    texts = [level_text(plain_level(name, level)) for level in distinct]
    pieces = [text if text in kept else OTHER_LEVELS for text in texts]
    values = np.array([*pieces, None], dtype=object)
    return pd.Series(values[positions], cells.index, dtype=object)
