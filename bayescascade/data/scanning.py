"""The changes of cells by `ReadAs`, which may depend on all rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.changed_source import ChangedSource, Changes
from bayescascade.data.date_parts import Held, are_dates, dates_of, held_by, parts_of
from bayescascade.data.levels import (
    OTHER_LEVELS,
    Cells,
    holds_numbers,
    level_text,
    parse_texts,
    plain_level,
    without_codes,
)
from bayescascade.data.names import check_distinct_names, check_known, listed_names
from bayescascade.data.read_as import ReadAs, codes_by_column
from bayescascade.data.sources import Source, weighted_blocks

_MOST_NAMED = 3  # columns that have a note each
_MOST_COUNTED = 100_000  # a column with more values has no levels


def changed_sources(options: ReadAs, sources: Sequence[Source], whole: Source) -> list[Source]:
    """Return the sources of a `whole`, with cells changed as in `options`."""
    names = whole.names
    check_known("keep_na", options.keep_na, names)
    drops = options.missing_labels == "drop"
    if options.na is None and not options.depends_on_all_rows:
        return list(sources)
    check_distinct_names(names)
    named = {"na": options.na, "rare": options.rare}
    for option, each in named.items():
        columns = each if isinstance(each, Mapping) else ()
        check_known(option, (name for name in columns if name is not None), names)
    for option, name in (("labels", options.labels), ("weights", options.weights)):
        check_known(option, () if name is None else [name], names)
    if drops and options.labels is None:
        raise ParameterError('missing_labels="drop" needs the name of a column of labels, got none')
    changes = Changes(codes_by_column(options.na, names), labels=options.labels if drops else None)
    notes = _drop_notes(options.labels, whole, changes) if drops else []
    if options.rare is not None or options.dates == "parts":
        seen = _Scan(options, ChangedSource(whole, names, changes))
        changes = replace(changes, parts=seen.parts, kept_levels=seen.kept_levels)
        notes += seen.notes
        of_dates = [(name, parts_of(name, seen.dates[name])) for name in seen.dates]
        split = dict(of_dates)
        names = [part for name in names for part in split.get(name, [name])]
        check_distinct_names(names)
    return [ChangedSource(source, names, changes, notes) for source in sources]


class _Scan:
    """A scan of all rows: which columns hold dates, and which levels are kept."""

    def __init__(self, options: ReadAs, source: Source) -> None:
        left = (options.labels, options.weights, *options.whole)
        names = [name for name in source.names if name not in left]
        self._how, self._is_text = options, source.is_text
        self._maybe_dates = set(names if options.dates == "parts" else ())
        self._weights: dict[str, Counter[str]] = {
            name: Counter() for name in names if _share(options, name) is not None
        }
        self.dates: dict[str, Held] = {}
        total = 0.0
        for _, cells, weights in weighted_blocks(source, names, options.weights):
            block_weights = np.ones(len(cells)) if weights is None else weights
            total += float(block_weights.sum())
            for name in names:
                self._see_dates(name, cells[name])
                if name in self._weights:
                    self._count(name, cells[name], block_weights)
        self.dates = {name: self.dates[name] for name in names if name in self.dates}
        self.parts = {
            part: (name, part.removeprefix(f"{name}."))
            for name, held in self.dates.items()
            for part in parts_of(name, held)
        }
        self.kept_levels = dict(self._kept(total))

    @property
    def notes(self) -> list[str]:
        texts = [
            f'column "{name}" holds {"dates" if held.days else "times"}: '
            f"read as {', '.join(parts_of(name, held))}"
            for name, held in self.dates.items()
        ]
        if self._how.dates == "parts" and not texts:
            texts.append("no column holds dates such as 2024-01-31 or 31.01.2024")
        rare = {name: self._weights[name].keys() - kept for name, kept in self.kept_levels.items()}
        if len(rare) > _MOST_NAMED:
            names = listed_names([f'"{name}"' for name in rare])
            texts.append(f'columns {names} have rare levels, which are read as "{OTHER_LEVELS}"')
            return texts
        texts += (
            f'column "{name}" has {len(levels):,} levels in under {_share(self._how, name):g} of '
            f'the rows each: read as "{OTHER_LEVELS}"'
            for name, levels in rare.items()
        )
        return texts

    def _see_dates(self, name: str, cells: Cells) -> None:
        if name not in self._maybe_dates or not cells.notna().any():
            return
        if not are_dates(cells):
            self._maybe_dates.discard(name)
            self.dates.pop(name, None)
            return
        dates = dates_of(name, cells).dropna()
        held, before = held_by(dates), self.dates.get(name)
        if before is not None and held.days != before.days:  # other blocks are times without days
            self._maybe_dates.discard(name)
            del self.dates[name]
            return
        self.dates[name] = held._replace(times=held.times or (before is not None and before.times))

    def _count(self, name: str, cells: Cells, weights: Floats) -> None:
        is_named = isinstance(self._how.rare, Mapping)
        is_ordered = isinstance(cells.dtype, pd.CategoricalDtype) and cells.cat.ordered
        is_other = pd.api.types.is_bool_dtype(cells.dtype) or holds_numbers(cells)
        if name in self.dates or is_ordered or (is_other and not is_named):
            del self._weights[name]
            return
        positions, distinct = pd.factorize(cells.astype(object))
        try:
            texts = [level_text(plain_level(name, level)) for level in distinct]
        except DataError:  # no levels: reading the column raises the error
            del self._weights[name]
            return
        is_there = positions >= 0
        sums = np.bincount(positions[is_there], weights[is_there], len(texts))
        for text, weight in zip(texts, sums.tolist(), strict=True):
            self._weights[name][text] += weight
        if len(self._weights[name]) > _MOST_COUNTED:
            del self._weights[name]

    def _kept(self, total: float) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield columns with several rare levels and some others, and these others."""
        is_named = isinstance(self._how.rare, Mapping)
        for name, weights in self._weights.items():
            share = _share(self._how, name)
            assert share is not None
            kept = frozenset(text for text, weight in weights.items() if weight >= share * total)
            if name in self.dates or not kept or len(weights) - len(kept) < 2:
                continue  # grouping a single level would only hide its name
            if is_named or not self._is_text or isinstance(parse_texts(weights)[0], str):
                yield name, kept


def _share(options: ReadAs, name: str) -> float | None:
    """Return the share of rows below which a column's levels are rare; None for no such limit."""
    return options.rare.get(name) if isinstance(options.rare, Mapping) else options.rare


def _drop_notes(labels: str | None, whole: Source, changes: Changes) -> list[str]:
    assert labels is not None
    codes = changes.missing_codes.get(labels, ())
    n_missing = sum(
        int(without_codes(block[labels], codes).isna().sum()) for block in whole.blocks([labels])
    )
    if not n_missing:
        return []
    rows = "1 row" if n_missing == 1 else f"{n_missing:,} rows"
    are = "is" if n_missing == 1 else "are"
    return [f'{rows} without a label in column "{labels}" {are} left out of all figures']
