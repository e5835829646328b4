"""Rows and their labels as the table that a classifier learns from.

What `Table` would ask to be declared is decided here: numbers with many values are cut at
quantiles, those with few are ordinal levels. Everything else is as in `Table`. Labels become a last
column, whose levels are the positions of the classes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from bayescascade.declarations import Declarations
from bayescascade.errors import DataError, ParameterError
from bayescascade.levels import Cells, level_text, to_numbers
from bayescascade.rules.encoding import check_numbers
from bayescascade.schema import check_distinct_names, frame_from_array
from bayescascade.table import Table
from bayescascade.validation import check_integer, check_weights

__all__ = ["KINDS_OF_LABELS", "LabeledRows", "rows_frame"]

KINDS_OF_LABELS = "biufUO"
"""NumPy's letters for the truth values, numbers and text that labels may be."""

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")  # of columns of objects


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
        nominal: Any,
        ordinal: Any,
        continuous: Any,
        missing: str,
        labels_name: str = "y",
        source: str = "",
    ) -> "LabeledRows":
        """Return a DataFrame or array and its labels as a table; see `RuleListClassifier.fit`.

        Rows of weight zero are counted, but nothing is learned from them. Messages call the labels
        `labels_name`; `source` is the name of the file that the rows are from.
        """
        Declarations(None, None, nominal, ordinal, continuous, missing)  # checks their types
        frame = rows_frame(X)
        labels = _check_labels(y, labels_name)
        check_consistent_length(frame, labels)
        weights = None
        if sample_weight is not None:
            weights = check_weights("sample_weight", sample_weight, len(frame))
            # A row that does not count is replaced by one that does: row numbers stay right.
            stand_in = np.where(weights > 0, np.arange(len(frame)), int(np.argmax(weights > 0)))
            frame, labels = frame.take(stand_in), labels[stand_in]
        classes, codes = np.unique(labels, return_inverse=True)
        if classes.dtype.kind == "U":
            classes = np.array(classes.tolist())  # no wider than the longest
        if len(classes) < 2:
            only = level_text(classes.tolist()[0])
            raise DataError(
                f'{labels_name} must have at least two classes, got one class, "{only}"'
            )
        names = list(frame.columns)
        continuous = _by_name("continuous", continuous, names)
        ordinal = _by_name("ordinal", ordinal, names)
        nominal = _by_name("nominal", nominal, names)
        n_values = _numbers_of_values(frame, {*continuous, *ordinal, *nominal}, missing)
        few = [name for name, n in n_values.items() if n <= n_bins]
        continuous |= {name: n_bins for name, n in n_values.items() if n > n_bins}
        frame = frame.copy(deep=False)
        for name, spec in continuous.items():
            if not isinstance(spec, int | np.integer):
                frame[name] = _within(name, frame[name], spec)
        target = getattr(y, "name", None)
        target = target if isinstance(target, str) else "label"
        while target in names:
            target += "_"
        frame[target] = codes
        table = Table.from_arrays(
            frame,
            sample_weight=weights,
            nominal=nominal,
            ordinal={**ordinal, **dict.fromkeys(few), target: list(range(len(classes)))},
            continuous=continuous,
            missing=missing,
            source=source,
        )
        return cls(table, target, classes)


def rows_frame(X: Any, names: Sequence[str] | None = None, owner: str = "") -> pd.DataFrame:
    """Return rows as a DataFrame whose columns have text for names.

    Parameters
    ----------
    X : DataFrame, mapping, Series, (n_rows, n_columns) array or list of rows
        A Series, or a mapping of single values, is one row.
    names : sequence of str, optional
        Of an array's columns; x0, x1, ... by default.
    owner : str
        The estimator that has these names, for messages.

    Raises
    ------
    ValueError
        In scikit-learn's words if an array is sparse, complex, empty, not two-dimensional, or of
        another width than there are names.
    """
    if isinstance(X, pd.Series):
        X = X.to_dict()
    if isinstance(X, Mapping) and not issparse(X):
        is_row = all(pd.api.types.is_scalar(value) for value in X.values())
        X = pd.DataFrame([X], dtype=object) if is_row else pd.DataFrame(dict(X))
    if isinstance(X, pd.DataFrame):
        columns = [str(name) for name in X.columns]
        check_distinct_names(columns)
        if not len(X) or not columns:
            raise DataError(f"X must have at least one row and column, got shape {X.shape}")
        return X.set_axis(columns, axis=1)
    if isinstance(X, list | tuple):  # NumPy would turn all cells into text if some are
        X = np.array(X, dtype=object)
    array = check_array(X, dtype=None, ensure_all_finite=False)
    if names is not None and array.shape[1] != len(names):
        raise DataError(
            f"X has {array.shape[1]} features, but {owner} is expecting {len(names)} features as "
            "input"
        )
    return frame_from_array(array, names)


def _check_labels(y: Any, name: str) -> NDArray[Any]:
    if y is None:
        raise ParameterError("RuleListClassifier requires y to be passed, but the target y is None")
    # scikit-learn would turn nullable integers and truth values into floats
    y = y.to_numpy() if isinstance(y, pd.Series) else y
    if isinstance(y, np.ndarray) and y.dtype.kind == "T":  # text of any length
        y = y.astype(object)
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    is_missing = pd.isna(labels)
    if is_missing.any():
        row = 1 + int(np.argmax(is_missing))
        raise DataError(f"{name} must not have missing labels, got NaN in row {row}")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        row = 1 + int(np.argmax(np.isinf(labels)))
        raise DataError(f"{name} must hold labels, got {labels[row - 1]} in row {row}")
    if labels.dtype == object:
        labels = pd.Series(labels).infer_objects().to_numpy()
    if labels.dtype == object and len({type(label) for label in labels}) > 1:
        kinds = sorted({type(label).__name__ for label in labels})
        raise DataError(f"{name} must hold labels of one type, got {', '.join(kinds)}")
    if labels.dtype.kind not in KINDS_OF_LABELS:
        raise DataError(
            f"{name} must hold text, whole numbers or truth values: Unknown label type: "
            f"{labels.dtype}"
        )
    if labels.dtype == np.longdouble:  # which no file of ours holds
        labels = labels.astype(np.float64)
    try:
        check_classification_targets(labels)
    except ValueError:
        raise DataError(
            f"{name} must hold text, whole numbers or truth values: Unknown label type: "
            f"{type_of_target(labels)}"
        ) from None
    return labels


def _by_name(option: str, declared: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a declaration by column name; None for what is only listed."""
    listed = () if declared is None else declared
    items = declared if isinstance(declared, Mapping) else dict.fromkeys(listed)
    by_name = {
        key
        if isinstance(key, str)
        else names[check_integer(f"a column number in {option}", key, 0, len(names) - 1)]: value
        for key, value in items.items()
    }
    for name in by_name:
        if name not in names:  # said here, for later the labels are a column as well
            raise DataError(
                f'{option} names the unknown column "{name}"; columns: {", ".join(names)}'
            )
    return by_name


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
        if name not in declared and _is_numeric(cells):
            numbers = to_numbers(f'column "{name}"', cells)
            check_numbers(str(name), numbers)
            found[str(name)] = len(np.unique(numbers[~np.isnan(numbers)]))
    return found


def _is_numeric(cells: Cells) -> bool:
    if cells.dtype == object:
        return pd.api.types.infer_dtype(cells, skipna=True) in _NUMBERS
    types = pd.api.types
    return types.is_numeric_dtype(cells.dtype) and not (
        types.is_bool_dtype(cells.dtype) or types.is_complex_dtype(cells.dtype)
    )


def _within(name: str, cells: Cells, edges: Any) -> Cells:
    """Return numbers with those beyond the outer edges moved there: the outer bins are open."""
    try:
        ends = np.array([min(edges), max(edges)], np.float64)
    except (TypeError, ValueError):  # no edges: `Table` will say so
        return cells
    numbers = to_numbers(f'continuous column "{name}"', cells)
    check_numbers(name, numbers)
    return pd.Series(np.clip(numbers, *ends), cells.index)
