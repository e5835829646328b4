"""Checks of user input say name, rule and value, and return plain types."""

import math
from functools import partial

import numpy as np
import pytest

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_jobs,
    check_real,
    check_weights,
)


def test_numbers_of_numpy_become_plain_ones():
    """What a grid search gives must work as well as Python's own."""
    for checked, expected in (
        (check_integer("n", np.uint8(3), 1, 3), 3),
        (check_real("alpha", np.int8(2), minimum=2, maximum=2), 2.0),
        (check_flag("flag", np.True_), True),
        (check_jobs(np.int64(-1)), -1),
    ):
        assert (checked, type(checked)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        (check_integer, ("n", 0, 1), "n must be an integer >= 1, got 0"),
        (check_integer, ("n", 9, 1, 5), "n must be an integer from 1 to 5, got 9"),
        (check_integer, ("n", 9, None, 5), "n must be an integer <= 5, got 9"),
        (check_integer, ("n", True, 0), "n must be an integer >= 0, got True"),
        (check_integer, ("n", 2.0), "n must be an integer, got 2.0"),
        (check_real, ("a", math.nan), "a must be a finite number, got nan"),
        (check_real, ("a", "1"), "a must be a finite number, got '1'"),
        (
            partial(check_real, above=0, maximum=2.5),
            ("a", 0),
            "a must be a finite number > 0 and <= 2.5, got 0",
        ),
        (partial(check_real, below=0), ("a", 0), "a must be a finite number < 0, got 0"),
        (check_flag, ("a", 1), "a must be True or False, got 1"),
        (check_jobs, (0,), "n_jobs must be an integer other than 0 or None, got 0"),
        (check_choice, ("a", "x", ("y", "z")), "a must be one of 'y', 'z', got 'x'"),
        (check_choice, ("a", ["y"], ("y", "z")), "a must be one of 'y', 'z', got ['y']"),
    ],
)
def test_what_is_wrong_is_named(check, arguments, message):
    with pytest.raises(ParameterError) as caught:
        check(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1, 2], ParameterError, "weights must have shape (3,), got (2,)"),
        ([1, -2, 3], DataError, "weights must be finite and >= 0, got -2 in row 2"),
        ([1, 2, math.nan], DataError, "weights must be finite and >= 0, got nan in row 3"),
        ([math.inf, 2, 3], DataError, "weights must be finite and >= 0, got inf in row 1"),
        ([0, 0, 0], DataError, "weights must not be all zero, got 3 zeros"),
        ([1, "two", 3], DataError, "weights must be numbers, got 'two' in row 2"),
    ],
)
def test_wrong_weights_are_named(weights, error, message):
    """A bad weight must be found before it silently changes every count."""
    array = np.array(weights, dtype=None if error is ParameterError else object)
    with pytest.raises(error) as caught:
        check_weights("weights", array, 3)
    assert str(caught.value) == message
