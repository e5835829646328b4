"""Checks of user input say name, rule and value, and return plain types."""

import math

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


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_become_ints(value: object) -> None:
    """A NumPy integer from a grid search must work as well as a Python one."""
    checked = check_integer("n", value, 1, 3)
    assert checked == 3
    assert type(checked) is int


@pytest.mark.parametrize(
    ("value", "minimum", "maximum", "message"),
    [
        (0, 1, None, "max_leaves must be an integer >= 1, got 0"),
        (9, 1, 5, "max_leaves must be an integer from 1 to 5, got 9"),
        (9, None, 5, "max_leaves must be an integer <= 5, got 9"),
        (True, 0, None, "max_leaves must be an integer >= 0, got True"),
        ("3", 0, None, "max_leaves must be an integer >= 0, got '3'"),
    ],
)
def test_wrong_integers_are_named(
    value: object, minimum: int | None, maximum: int | None, message: str
) -> None:
    """A user must see which parameter, what rule and what value."""
    with pytest.raises(ParameterError) as caught:
        check_integer("max_leaves", value, minimum, maximum)
    assert str(caught.value) == message


def test_reals_become_floats() -> None:
    """Integers and NumPy numbers are real numbers, and closed bounds are included."""
    for value in (2, 2.0, np.float32(2), np.int8(2)):
        checked = check_real("alpha", value, minimum=2, maximum=2)
        assert checked == 2.0
        assert type(checked) is float


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (0, {"above": 0}, "alpha must be a finite number > 0, got 0"),
        (3, {"above": 0, "maximum": 2.5}, "alpha must be a finite number > 0 and <= 2.5, got 3"),
        (-1, {"minimum": 0}, "alpha must be a finite number >= 0, got -1"),
        (1, {"below": 1}, "alpha must be a finite number < 1, got 1"),
        (math.nan, {}, "alpha must be a finite number, got nan"),
        (math.inf, {"minimum": 0}, "alpha must be a finite number >= 0, got inf"),
        ("1", {}, "alpha must be a finite number, got '1'"),
    ],
)
def test_wrong_reals_are_named(value: object, bounds: dict[str, float], message: str) -> None:
    """NaN must not slip through a comparison, nor an open bound be included."""
    with pytest.raises(ParameterError) as caught:
        check_real("alpha", value, **bounds)
    assert str(caught.value) == message


def test_choices_are_listed() -> None:
    """A typo in a choice must be answered with the choices."""
    assert check_choice("search", "anneal", ("anneal", "metropolis")) == "anneal"
    with pytest.raises(ParameterError) as caught:
        check_choice("search", "aneal", ("anneal", "metropolis"))
    assert str(caught.value) == "search must be one of 'anneal', 'metropolis', got 'aneal'"
    with pytest.raises(ParameterError):
        check_choice("search", ["anneal"], ("anneal",))


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
def test_wrong_weights_are_named(weights: list[object], error: type, message: str) -> None:
    """A bad weight must be found before it silently changes every count."""
    array = np.array(weights, dtype=None if error is ParameterError else object)
    with pytest.raises(error) as caught:
        check_weights("weights", array, 3)
    assert str(caught.value) == message


def test_flags_become_bools() -> None:
    """A NumPy truth value from a grid search must work as well as a Python one."""
    assert check_flag("flag", np.True_) is True
    for value in (1, "yes", None):
        with pytest.raises(ParameterError, match=f"flag must be True or False, got {value!r}"):
            check_flag("flag", value)


def test_jobs() -> None:
    """Joblib takes None and negative numbers, and fails with 0 only when it runs."""
    assert check_jobs(None) is None
    assert check_jobs(np.int64(-1)) == -1
    for value in (0, 1.5):
        with pytest.raises(ParameterError, match=f"n_jobs must be an integer.*, got {value!r}"):
            check_jobs(value)
