"""Notes on labels of single rows, and on columns that say nothing, all, or the same.

A column determines the label if rows with equal values have equal labels. A column with many values
does so by chance: if m values each get any of K labels, there are K^m ways to label the rows, and
for numbers whose order has r runs of equal labels only C(m - 1, r - 1) K (K - 1)^(r - 1). Such a
column is noted only if this is a negligible share of the ways to distribute the labels over the n
rows, n! / (n_1! .. n_K!). Runs count only if they are few, because each value of a related column
may be unique.

A column with only missing cells is noted. Labels are noted if there are more classes than half of
the rows, because most rows then have a label of their own.

Two columns say the same if each determines the other, and for numbers, if one rises or falls with
the other: then every condition on one has an equal one on the other.
"""

from math import log
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaln

from bayescascade.base.arrays import Floats, Integers
from bayescascade.data.levels import Cells, holds_numbers, to_numbers
from bayescascade.data.names import listed_names

_SAMPLE = 2_000  # rows that are looked at first
_CHANCE = 1e-6  # share of the ways to label the rows that counts as chance
_MOST_CUTS = 2  # for each class but one: more runs are those of a column that is related
_MOST_GROUPS = 3
_FEW = 20  # rows that may all have labels of their own


def label_notes(
    frame: pd.DataFrame, labels: Integers, weights: Floats | None = None
) -> tuple[str, ...]:
    """Return notes on the columns of rows with positive weights, by the module's rules.

    labels (n_rows,): positions of classes.
    """
    n_rows = len(labels) if weights is None else int(weights.sum())
    if weights is not None and not (weights > 0).all():
        frame, labels = frame[weights > 0], labels[weights > 0]
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    step = max(1, len(labels) // _SAMPLE)
    found = _Found.of([cells.iloc[::step] for cells in columns], labels[::step])
    empty = [str(cells.name) for cells in columns if cells.isna().all()]
    if step > 1:  # only these can be such columns in all rows
        places = sorted({*found.leaks, *(place for group in found.ties for place in group)})
        found = _Found.of([columns[place] for place in places], labels)
        columns = [columns[place] for place in places]
    return (
        *own_label_notes(len(np.unique(labels)), n_rows),
        *_empty_notes(empty),
        *_leak_notes([columns[place] for place in found.leaks], len(labels)),
        *_tie_notes([[columns[place] for place in group] for group in found.ties]),
    )


def own_label_notes(n_classes: int, n_rows: int) -> list[str]:
    """Return a note if most rows have a label of their own, in a list."""
    if n_rows <= _FEW or 2 * n_classes <= n_rows:
        return []
    text = f"{n_classes:,} classes in {n_rows:,} rows"
    return [f"labels must be classes of several rows to be predicted, got {text}"]


class _Coded(NamedTuple):
    """The cells of a column as codes."""

    codes: Integers  # (n_rows,), -1 for missing cells
    is_ordered: bool  # then codes are ranks; otherwise they are numbered as they occur
    is_falling: bool  # whether the second value that occurs is below the first

    @classmethod
    def of(cls, cells: Cells) -> "_Coded":
        is_ordered = holds_numbers(cells)
        values = to_numbers(f'column "{cells.name}"', cells) if is_ordered else cells
        if isinstance(cells.dtype, pd.CategoricalDtype) and cells.cat.ordered:
            is_ordered, values = True, np.where(cells.isna(), np.nan, cells.cat.codes)
        codes, _ = pd.factorize(values, sort=is_ordered)
        known = codes[codes >= 0]
        others = known[known != known[0]] if len(known) else known
        is_falling = bool(len(others)) and int(others[0]) < int(known[0])
        return cls(codes.astype(np.int64), is_ordered, is_falling)

    @property
    def n_values(self) -> int:
        """Number of different values; missing cells are one."""
        return int(self.codes.max()) + 1 + bool(self.codes.min() < 0)

    @property
    def key(self) -> tuple[bool, bytes]:
        """Equal for columns that say the same."""
        codes, most = self.codes, int(self.codes.max())
        if self.is_falling:
            codes = np.where(codes < 0, codes, most - codes)
        return self.is_ordered and most > 1, codes.astype(np.int32).tobytes()

    def tells(self, labels: Integers) -> bool:
        """Whether the column determines the labels, and not by chance."""
        sizes = np.bincount(labels)
        n_classes = max(int((sizes > 0).sum()), 2)
        values = self.codes + 1  # missing cells first
        times = np.bincount(values * len(sizes) + labels, minlength=int(values.max() + 1))
        seen = np.flatnonzero(times)  # value and label, by value
        if len(seen) != self.n_values:
            return False
        m, of_values = len(seen), seen % len(sizes)
        log_ways = m * log(n_classes)
        log_all = float(gammaln(len(labels) + 1) - gammaln(sizes + 1).sum())
        cuts = int((np.diff(of_values) != 0).sum())
        if self.is_ordered and cuts <= _MOST_CUTS * (n_classes - 1):
            log_chosen = float(gammaln(m) - gammaln(cuts + 1) - gammaln(m - cuts))
            by_runs = log_chosen + log(n_classes) + cuts * log(n_classes - 1)
            log_ways = min(log_ways, by_runs)
        return log_ways - log_all < log(_CHANCE)


class _Found(NamedTuple):
    leaks: list[int]  # places of columns that determine the labels
    ties: list[list[int]]  # places of columns that say the same

    @classmethod
    def of(cls, columns: list[Cells], labels: Integers) -> "_Found":
        leaks, groups = list[int](), dict[tuple[bool, bytes], list[int]]()
        for place, cells in enumerate(columns):
            coded = _Coded.of(cells)
            if coded.n_values < 2:
                continue
            if coded.tells(labels):
                leaks.append(place)
            if coded.is_ordered or coded.n_values <= len(labels) / 2:  # else names of the rows
                groups.setdefault(coded.key, []).append(place)
        return cls(leaks, [group for group in groups.values() if len(group) > 1])


def _empty_notes(names: list[str]) -> list[str]:
    if not names:
        return []
    listed = listed_names([f'"{name}"' for name in names])
    return [f"column{'s' * (len(names) > 1)} {listed}: only missing cells"]


def _leak_notes(leaks: list[Cells], n_rows: int) -> list[str]:
    names = [f'"{cells.name}"' for cells in leaks]
    if not names:
        return []
    one, then = f"column {names[0]}", "leave it out if it is not known before the label"
    if len(names) > 1:
        one = f"each of the columns {listed_names(names)}"
        then = "leave those out that are not known before the label"
    return [f"{one} alone determines the label in all {n_rows:,} rows: {then}"]


def _tie_notes(groups: list[list[Cells]]) -> list[str]:
    texts = [_tie_note(group) for group in groups[:_MOST_GROUPS]]
    n_more = len(groups) - len(texts)
    if n_more > 0:
        texts.append(f"{n_more:,} more group{'s' * (n_more > 1)} of columns say the same")
    return texts


def _tie_note(group: list[Cells]) -> str:
    first, *others = group
    how = "say the same in every row"
    if all(first.reset_index(drop=True).equals(other.reset_index(drop=True)) for other in others):
        how = "are copies of each other"
    elif len(group) == 2 and all(holds_numbers(cells) for cells in group):
        is_mirrored = _Coded.of(group[0]).is_falling != _Coded.of(group[1]).is_falling
        how = "mirror each other" if is_mirrored else how
    names = [f'"{cells.name}"' for cells in group]
    if len(names) == 2:
        return f"{names[0]} and {names[1]} {how}: either could stand in a rule"
    return f"{listed_names(names)} {how}: any of them could stand in a rule"
