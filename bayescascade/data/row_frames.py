"""Rows as people give them: a DataFrame with text for names, or a plain array of numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from bayescascade.base.errors import DataError
from bayescascade.data.file_frames import as_rows
from bayescascade.data.names import check_distinct_names
from bayescascade.data.schema import (
    check_no_records,
    check_width,
    frame_from_array,
    frame_from_mapping,
)


def rows_frame(X: Any, names: Sequence[str] | None = None, owner: str = "") -> pd.DataFrame:
    """Return rows as a DataFrame whose columns have text for names.

    A Series, or a mapping of single values, is one row; `as_rows` reads tables and files. `names`
    are those of an array's columns, by default x0, x1, ...; messages name their `owner`. Raises
    ValueError, in scikit-learn's words, if an array is sparse, complex, empty, not
    two-dimensional, or of another width than there are names.
    """
    X = as_rows(X)
    if isinstance(X, pd.Series):
        X = X.to_dict()
    if isinstance(X, Mapping) and not issparse(X):
        X = frame_from_mapping(X)
    if isinstance(X, pd.DataFrame):
        columns = [str(name) for name in X.columns]
        check_distinct_names(columns)
        if not len(X) or not columns:
            raise DataError(f"X must have at least one row and column, got shape {X.shape}")
        return X.set_axis(columns, axis=1)
    if isinstance(X, list | tuple):  # NumPy would turn all cells into text if some are
        X = np.array(X, dtype=object)
    if isinstance(X, np.ndarray):
        check_no_records(X)
    array = check_array(X, dtype=None, ensure_all_finite=False)
    if names is not None:
        check_width(array.shape[1], len(names), owner)
    return frame_from_array(array, names)


def as_numbers(X: Any) -> NDArray[Any] | None:
    """Return an array of numbers, checked by scikit-learn; None if it is none, or a frame or list.

    An array does not become a frame, because that takes longer than to predict.
    """
    if isinstance(X, pd.DataFrame | pd.Series | Mapping | Sequence):
        return None
    if isinstance(X, np.ndarray):
        check_no_records(X)
    array: NDArray[Any] = check_array(X, dtype=None, ensure_all_finite=False)
    return array if array.dtype.kind in "biuf" else None
