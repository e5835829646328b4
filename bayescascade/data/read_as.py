"""Files, or a table, and how they are to be read: for whatever takes files."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice, check_real
from bayescascade.data.changed_source import ChangedSource, Changes
from bayescascade.data.date_parts import are_dates, dates_of, parts_of
from bayescascade.data.dialects import GivenDialect
from bayescascade.data.levels import (
    OTHER_LEVELS,
    Cells,
    Level,
    holds_numbers,
    level_text,
    parse_texts,
    plain_level,
    without_codes,
)
from bayescascade.data.names import check_distinct_names, check_known
from bayescascade.data.sources import Source, weighted_blocks

__all__ = ["ReadAs"]

_MOST_COUNTED = 100_000  # levels of a column: what has more is no column of levels

Codes: TypeAlias = Sequence[Any] | Mapping[str | None, Sequence[Any]] | None
"""Any stands for levels, which are checked one by one."""


@dataclass(frozen=True, eq=False)
class ReadAs:
    """Files or a table, and how to read them; may stand wherever files may.

    Fits take it in place of rows, and so do `Table.from_files` and all that scores rows. A model
    that was learned from it reads later rows alike: it knows the codes of missing cells, the levels
    that were not rare, and which parts of dates it needs.

    Parameters
    ----------
    rows : path, URL, list of them, DataFrame or other table
    sep : str, optional
        The character between cells of text files; it is found by default, as the next two are.
    encoding : str, optional
        That of text files, such as "cp1252".
    decimal : {".", ","}, optional
        What is before the decimals of numbers in text files.
    na : list, or mapping of str to list, optional
        Values that stand for missing cells: [-9, -8] in all columns, {"income": [-9]} in one;
        there, the key None is about all others.
    rare : float or mapping of str to float, optional
        Levels of text in under this share of the rows, such as 0.01, become the level
        "other levels"; by column, levels of numbers do, too. So do, later, levels that were never
        seen. A column of which all levels are rare stays as it is.
    dates : {"error", "parts"}
        Whether columns of dates become their parts: year, month, weekday and, unless it always is
        midnight, hour. Dates in text are 2024-01-31 or 31.01.2024, perhaps with a time. The parts
        of "start" are called "start.year" and so on.
    missing_labels : {"error", "drop"}
        Whether rows without a label are left out.
    labels, weights : str, optional
        Column of the labels, which is left as it is, and of how many rows each row stands for.
        `fit` says both, if it is given their names.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import ReadAs, Table
    >>> rows = pd.DataFrame({"town": ["Rome"] * 60 + ["Oslo"] * 38 + ["Bonn", "Cork"]})
    >>> Table.from_files(ReadAs(rows, rare=0.02)).schema.columns[0].levels
    ('Oslo', 'Rome', 'other levels')
    """

    rows: Any
    _: KW_ONLY
    sep: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    na: Codes = None
    rare: float | Mapping[str, float] | None = None
    dates: str = "error"
    missing_labels: str = "error"
    labels: str | None = None
    weights: str | None = None

    def __post_init__(self) -> None:
        self.dialect  # noqa: B018 # checks what it is made of
        self._codes([])
        shares = self.rare if isinstance(self.rare, Mapping) else {"": self.rare}
        for name, share in shares.items():
            if share is not None:
                check_real(f'rare["{name}"]' if name else "rare", share, above=0.0, below=1.0)
        check_choice("dates", self.dates, ("error", "parts"))
        check_choice("missing_labels", self.missing_labels, ("error", "drop"))

    def __fspath__(self) -> str:
        """Return the path, if it is one."""
        path: str = os.fspath(self.rows)
        return path

    def __str__(self) -> str:
        """Return what messages call it."""
        return str(self.rows) if isinstance(self.rows, str | os.PathLike) else "the table"

    @property
    def dialect(self) -> GivenDialect:
        """How text files are written, as far as it is given."""
        return GivenDialect(self.sep, self.encoding, self.decimal)

    @property
    def depends_on_all_rows(self) -> bool:
        """Whether one row may decide how others are read, or how many there are."""
        return self.rare is not None or self.dates == "parts" or self.missing_labels == "drop"

    def with_names(self, *, labels: object, weights: object) -> "ReadAs":
        """Return the same with the columns of labels and weights, of those that are names."""
        return replace(
            self,
            labels=labels if isinstance(labels, str) else self.labels,
            weights=weights if isinstance(weights, str) else self.weights,
        )

    def changed(self, sources: Sequence[Source], whole: Source) -> list[Source]:
        """Return sources whose cells are changed as is asked for.

        Parameters
        ----------
        sources : sequence of Source
            With the same columns.
        whole : Source
            The rows of all, which are read once or twice if what becomes of some depends on all.

        Raises
        ------
        DataError
            If a column is unknown, or a cell cannot be read.
        """
        names = whole.names
        drops = self.missing_labels == "drop"
        if self.na is None and not self.depends_on_all_rows:
            return list(sources)
        check_distinct_names(names)
        named = {"na": self.na, "rare": self.rare}
        for option, told in named.items():
            columns = told if isinstance(told, Mapping) else ()
            check_known(option, (name for name in columns if name is not None), names)
        for option, name in (("labels", self.labels), ("weights", self.weights)):
            check_known(option, () if name is None else [name], names)
        if drops and self.labels is None:
            raise ParameterError('labels must name a column for missing_labels="drop", got None')
        changes = Changes(self._codes(names), labels=self.labels if drops else None)
        notes = self._drop_notes(whole, changes) if drops else []
        if self.rare is not None or self.dates == "parts":
            seen = _Scan(self, ChangedSource(whole, names, changes))
            changes = replace(changes, parts=seen.parts, kept_levels=seen.kept_levels)
            notes += seen.notes
            of_dates = [(name, parts_of(name, seen.dates[name])) for name in seen.dates]
            split = dict(of_dates)
            names = [part for name in names for part in split.get(name, [name])]
            check_distinct_names(names)
        return [ChangedSource(source, names, changes, notes) for source in sources]

    def share(self, name: str) -> float | None:
        """Return the share of the rows under which a column's levels are rare; None of none."""
        return self.rare.get(name) if isinstance(self.rare, Mapping) else self.rare

    def _codes(self, names: Sequence[str]) -> dict[str, tuple[Level, ...]]:
        """Return the codes of missing cells of each column."""
        by_column = self.na if isinstance(self.na, Mapping) else {None: self.na or ()}
        found: dict[str | None, tuple[Level, ...]] = {}
        for name, codes in by_column.items():
            if isinstance(codes, str) or not isinstance(codes, Sequence | np.ndarray):
                raise ParameterError(f"na must be a list of values, by column too, got {codes!r}")
            found[name] = tuple(plain_level(name or "", code) for code in codes)
        by_name = {name: found.get(name, found.get(None, ())) for name in names}
        return {name: codes for name, codes in by_name.items() if codes}

    def _drop_notes(self, whole: Source, changes: Changes) -> list[str]:
        assert self.labels is not None
        codes = changes.missing_codes.get(self.labels, ())
        n_missing = sum(
            int(without_codes(block[self.labels], codes).isna().sum())
            for block in whole.blocks([self.labels])
        )
        if not n_missing:
            return []
        rows = "1 row" if n_missing == 1 else f"{n_missing:,} rows"
        return [f'{rows} without a label in column "{self.labels}" left out, and not counted']


class _Scan:
    """What becomes of columns, found in all rows: which hold dates, and which levels are kept.

    Attributes
    ----------
    dates : dict of str to bool
        Of the columns of dates, whether some cell has a time.
    kept_levels : dict of str to frozenset of str
    parts : dict of str to (str, str)
        See `Changes`.
    notes : list of str
    """

    def __init__(self, asked: ReadAs, source: Source) -> None:
        names = [name for name in source.names if name not in (asked.labels, asked.weights)]
        self._asked, self._is_text = asked, source.is_text
        self._maybe_dates = set(names if asked.dates == "parts" else ())
        self._weights: dict[str, Counter[str]] = {
            name: Counter() for name in names if asked.share(name) is not None
        }
        self.dates: dict[str, bool] = {}
        total = 0.0
        for _, cells, weights in weighted_blocks(source, names, asked.weights):
            block_weights = np.ones(len(cells)) if weights is None else weights
            total += float(block_weights.sum())
            for name in names:
                self._see_dates(name, cells[name])
                if name in self._weights:
                    self._count(name, cells[name], block_weights)
        self.dates = {name: self.dates[name] for name in names if name in self.dates}
        self.parts = {
            part: (name, part.removeprefix(f"{name}."))
            for name, has_times in self.dates.items()
            for part in parts_of(name, has_times)
        }
        self.kept_levels = dict(self._kept(total))

    @property
    def notes(self) -> list[str]:
        told = [
            f'column "{name}" holds dates: read as {", ".join(parts_of(name, has_times))}'
            for name, has_times in self.dates.items()
        ]
        if self._asked.dates == "parts" and not told:
            told.append("no column holds dates such as 2024-01-31 or 31.01.2024")
        for name, kept in self.kept_levels.items():
            n_rare = len(self._weights[name]) - len(kept)
            levels = "1 level" if n_rare == 1 else f"{n_rare:,} levels"
            share = self._asked.share(name)
            each = "" if n_rare == 1 else ", each"
            told.append(
                f'column "{name}" has {levels}{each} in under {share:g} of the rows: '
                f'read as "{OTHER_LEVELS}"'
            )
        return told

    def _see_dates(self, name: str, cells: Cells) -> None:
        if name not in self._maybe_dates or not cells.notna().any():
            return
        if not are_dates(cells):
            self._maybe_dates.discard(name)
            self.dates.pop(name, None)
            return
        dates = dates_of(name, cells).dropna()
        has_times = bool((dates != dates.dt.normalize()).any())
        self.dates[name] = has_times or self.dates.get(name, False)

    def _count(self, name: str, cells: Cells, weights: NDArray[np.float64]) -> None:
        is_named = isinstance(self._asked.rare, Mapping)
        is_ordered = isinstance(cells.dtype, pd.CategoricalDtype) and cells.cat.ordered
        is_other = pd.api.types.is_bool_dtype(cells.dtype) or holds_numbers(cells)
        if name in self.dates or is_ordered or (is_other and not is_named):
            del self._weights[name]
            return
        positions, distinct = pd.factorize(cells.astype(object))
        try:
            texts = [level_text(plain_level(name, level)) for level in distinct]
        except DataError:  # no levels: whoever reads the column says why
            del self._weights[name]
            return
        is_there = positions >= 0
        sums = np.bincount(positions[is_there], weights[is_there], len(texts))
        for text, weight in zip(texts, sums.tolist(), strict=True):
            self._weights[name][text] += weight
        if len(self._weights[name]) > _MOST_COUNTED:
            del self._weights[name]

    def _kept(self, total: float) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield columns of which some levels are rare and others not, and these others."""
        is_named = isinstance(self._asked.rare, Mapping)
        for name, weights in self._weights.items():
            share = self._asked.share(name)
            assert share is not None
            kept = frozenset(text for text, weight in weights.items() if weight >= share * total)
            if name in self.dates or not kept or len(kept) == len(weights):
                continue
            if is_named or not self._is_text or isinstance(parse_texts(weights)[0], str):
                yield name, kept
