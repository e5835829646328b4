"""Rows and their labels as the table that a classifier learns from.

What `Table` would ask to be declared is decided here: numbers with many values are cut at
quantiles, those with few are ordinal levels. Everything else is as in `Table`. Labels become a last
column, whose levels are the positions of the classes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_weights
from bayescascade.data.declarations import ColumnKinds, Declarations, by_name, declared
from bayescascade.data.labels import check_labels, find_classes
from bayescascade.data.levels import Cells, check_numbers, holds_numbers, to_numbers
from bayescascade.data.matrix import rows_frame
from bayescascade.data.table import Table

__all__ = ["LabeledRows"]


@dataclass(frozen=True, slots=True)
class LabeledRows:
    """A table with a column of labels.

    Parameters
    ----------
    table : Table
    target : str
        Its column of labels.
    classes : (n_classes,) array
        The label that each code of that column stands for.
    """

    table: Table
    target: str
    classes: NDArray[Any]

    @classmethod
    def of_table(cls, table: Table, target: object) -> "LabeledRows":
        """Return a table that has labels among its columns; `target` names that column."""
        names = table.schema.names
        if not isinstance(target, str) or target not in names:
            raise ParameterError(
                f"y must be the name of the label column with a Table, got {target!r}; "
                f"columns: {', '.join(names)}"
            )
        column = table.schema.columns[names.index(target)]
        return cls(table, target, np.array(column.levels))

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        *,
        n_bins: int,
        kinds: ColumnKinds,
        labels_name: str = "y",
        source: str = "",
    ) -> "LabeledRows":
        """Return a DataFrame or array and its labels as a table; see `RuleListClassifier.fit`.

        Rows of weight zero are counted, but nothing is learned from them. Messages call the labels
        `labels_name`; `source` is the name of the file that the rows are from.
        """
        Declarations(**declared(kinds))  # checks their types
        frame = rows_frame(X)
        labels = check_labels(y, labels_name, owner="RuleListClassifier")
        check_consistent_length(frame, labels)
        weights = None
        if sample_weight is not None:
            weights = check_weights("sample_weight", sample_weight, len(frame))
            # A row that does not count is replaced by one that does: row numbers stay right.
            stand_in = np.where(weights > 0, np.arange(len(frame)), int(np.argmax(weights > 0)))
            frame, labels = frame.take(stand_in), labels[stand_in]
        classes, codes = find_classes(labels, labels_name)
        names = list(frame.columns)
        continuous = by_name("continuous", kinds.continuous, names)
        ordinal = by_name("ordinal", kinds.ordinal, names)
        nominal = by_name("nominal", kinds.nominal, names)
        n_values = _numbers_of_values(frame, {*continuous, *ordinal, *nominal}, kinds.missing)
        few = [name for name, n in n_values.items() if n <= n_bins]
        continuous |= {name: n_bins for name, n in n_values.items() if n > n_bins}
        columns: dict[str, Any] = {name: frame[name] for name in names}
        for name, spec in continuous.items():
            if not isinstance(spec, int | np.integer):
                columns[name] = _within(name, frame[name], spec)
        target = getattr(y, "name", None)
        target = target if isinstance(target, str) else "label"
        while target in names:
            target += "_"
        columns[target] = codes
        table = Table.from_arrays(
            pd.DataFrame(columns, copy=False),  # at once: one by one, many would warn
            sample_weight=weights,
            nominal=nominal,
            ordinal={**ordinal, **dict.fromkeys(few), target: list(range(len(classes)))},
            continuous=continuous,
            missing=kinds.missing,
            source=source,
        )
        return cls(table, target, classes)


def _numbers_of_values(
    frame: pd.DataFrame, declared: Collection[str], missing: str
) -> dict[str, int]:
    """Return how many values each column has that holds numbers only and is not declared."""
    found = {}
    for name, cells in frame.items():
        is_missing = cells.isna().to_numpy(dtype=np.bool_)
        if missing == "error" and is_missing.any():
            raise DataError(
                f'column "{name}" has a missing cell (NaN) in row {1 + int(np.argmax(is_missing))}'
                ': fill it, drop the column, or make missing cells a level with missing="level" '
                "(--missing level)"
            )
        if name not in declared and holds_numbers(cells):
            numbers = to_numbers(f'column "{name}"', cells)
            check_numbers(f'column "{name}"', numbers)
            found[str(name)] = len(np.unique(numbers[~np.isnan(numbers)]))
    return found


def _within(name: str, cells: Cells, edges: Any) -> Cells:
    """Return numbers with those beyond the outer edges moved there: the outer bins are open."""
    try:
        ends = np.array([min(edges), max(edges)], np.float64)
    except (TypeError, ValueError):  # no edges: `Table` will say so
        return cells
    numbers = to_numbers(f'continuous column "{name}"', cells)
    check_numbers(f'column "{name}"', numbers)
    return pd.Series(np.clip(numbers, *ends), cells.index)
