"""Rows in any form that users have them, as a DataFrame."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils import check_array

from bayescascade.base.errors import DataError
from bayescascade.data.schema import check_distinct_names, frame_from_array, frame_from_mapping
from bayescascade.data.sources import as_frame

__all__ = ["rows_frame"]


def rows_frame(X: Any, names: Sequence[str] | None = None, owner: str = "") -> pd.DataFrame:
    """Return rows as a DataFrame whose columns have text for names.

    Parameters
    ----------
    X : DataFrame or other table, mapping, Series, (n_rows, n_columns) array or list of rows
        A Series, or a mapping of single values, is one row. For tables see `as_frame`.
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
    X = as_frame(X)
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
    array = check_array(X, dtype=None, ensure_all_finite=False)
    if names is not None and array.shape[1] != len(names):
        raise DataError(
            f"X has {array.shape[1]} features, but {owner} is expecting {len(names)} features as "
            "input"
        )
    return frame_from_array(array, names)
