"""Short names for types of arrays; docstrings give shapes."""

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
"""Codes of levels, -1 where a cell is missing."""

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Reals = NDArray[np.floating]
"""float32 or float64."""
