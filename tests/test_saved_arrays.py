"""Arrays in saved files: whatever a file was edited to, no other numbers become a model."""

import math

import numpy as np
import pytest

from bayescascade import ModelFileError
from bayescascade.base.saved_arrays import read_array


@pytest.mark.parametrize(
    ("given", "shape", "kind"),
    [
        ([[1, 2.5], [3, 4]], (2, 2), np.float64),
        ([[1.0, 2.0]], (None, 2), np.float64),
        ([], (None,), np.int64),
        ([], (0, 3), np.float64),
        ([[], []], (2, 0), np.float64),
        ([3, -1], (None,), np.int64),
        ([True, False], (2,), np.bool_),
    ],
)
def test_what_was_written_is_read(given, shape, kind):
    """A list without rows tells no further lengths."""
    found = read_array({"numbers": given}, "numbers", shape, kind, least=-1)
    assert (found.dtype, found.ndim, found.tolist()) == (kind, len(shape), given)


@pytest.mark.parametrize(
    ("given", "shape", "kind"),
    [
        ([], (3, 2), np.float64),
        ([[1.0], [2.0, 3.0]], (2, None), np.float64),
        ([1.0, math.nan], (2,), np.float64),
        ([1.0, math.inf], (None,), np.float64),
        ([1.0, -1.5], (2,), np.float64),
        ([0, -2], (2,), np.int64),
        ([1.0, 2.0], (2,), np.int64),
        ([True, False], (2,), np.float64),
        ([0, 1], (2,), np.bool_),
        (["1", "2"], (2,), np.float64),
        ([None, 1.0], (2,), np.float64),
        ([10**30], (1,), np.int64),
        (1.0, (1,), np.float64),
        ("12", (2,), np.float64),
    ],
)
def test_anything_else_is_refused(given, shape, kind):
    """Else a forged file would be read, or raise what no user can make sense of."""
    with pytest.raises(ModelFileError, match="a saved model's numbers must be"):
        read_array({"numbers": given}, "numbers", shape, kind, least=-1)
