"""Splits of forests in the words of the data."""

import json

import numpy as np
import pandas as pd
import pytest

from bayescascade.base.errors import ModelFileError
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.given import GivenRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.forests.base import CELLS
from bayescascade.methods.budget.forests.reports import split_words

FRAME = pd.DataFrame(
    {
        "legs": [0, 2, 4, 4, 6, 8],
        "dose": [0.5, 1, 2, 3, 4, 5],
        "visits": [1, 2, None, 3, 4, 5],
        "flag": [True, False] * 3,
        "place": pd.Categorical(list("abcabc"), categories=list("abcdefghijkl")),
    }
)
GREATEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("column", "threshold", "left", "right"),
    [
        (0, 3.0, "legs is at most 3", "legs is at least 4"),  # a row of 3 legs goes left
        (0, 0.5, "legs is 0", "legs is at least 1"),
        (0, 7.0, "legs is at most 7", "legs is 8"),
        (0, 9.0, "legs is at most 9", "legs is above 9"),
        (1, 2.5, "dose is at most 2.5", "dose is above 2.5"),
        (2, 2.5, "visits is at most 2", "visits is at least 3"),
        (2, GREATEST, "visits is not missing", "visits is missing"),
        (3, 0.5, "flag is False", "flag is True"),
        (4, 0.5, "place is not a", "place is a"),
        (4, GREATEST, "place is not missing", "place is missing"),
    ],
)
def test_splits_are_in_words_of_the_data(column, threshold, left, right):
    """The data has no 2.5 visits and no flag of 0.5; the words hold of a loaded model, too."""
    encoder = MatrixEncoder.learn(GivenRows(FRAME), CELLS)
    loaded = MatrixEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())), CELLS)
    for one in (encoder, loaded):
        words = [split_words(one, column, threshold, is_left) for is_left in (True, False)]
        assert words == [left, right]


def test_only_a_policy_that_says_so_keeps_ranges():
    """The least and the greatest number are data: a private release must not save them."""
    private = MatrixEncoder.learn(GivenRows(FRAME), CellPolicy("nan"))
    assert "numbers" not in private.to_dict()
    assert split_words(private, 0, 3.0, is_left=False) == "legs is above 3"
    of_array = MatrixEncoder.learn(GivenRows(np.arange(6).reshape(3, 2)), CELLS)
    assert split_words(of_array, 1, 3.5, is_left=False) == "x1 is at least 4"
    record = of_array.to_dict()
    first, second = record["numbers"]
    for numbers in ([None], [first, first], [first, {**second, "edges": [0.5, 1.5, 5.5]}], "x"):
        with pytest.raises(ModelFileError):
            MatrixEncoder.from_dict({**record, "numbers": numbers}, CELLS)
