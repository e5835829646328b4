"""The built-in encoding of states: exact, and clear about what it refuses."""

import collections
import enum
import json
import math

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import samplers
from samplers.archive import decode, encode

# trees of at most a dozen leaves: larger ones only make Hypothesis slow
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
hashable = st.recursive(
    scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=4
)
values = st.recursive(
    hashable,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=6,
)


OF_EACH_KIND = [
    None, True, 2**70, -0.0, math.nan, "\x00", (1, frozenset({(2, "")})), {3: {"3": []}},
]  # fmt: skip


@settings(max_examples=20, deadline=None)
@example(OF_EACH_KIND)
@given(values)
def test_round_trip_is_exact(value):
    """A resumed chain that starts a digit beside where it was is another chain."""
    back = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert repr(encode(back)) == repr(encode(value))
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.uint8).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([np.nan, -0.0, np.inf, 5e-324]),
        np.array(["tree", "leaf"]),
        np.array([True, False]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros((0, 3), dtype=np.int16),
        np.array(1.5),
        np.arange(10)[::3],
    ],
    ids=str,
)
def test_arrays_come_back_as_they_were(array):
    back = decode(json.loads(json.dumps(encode(array))))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert back.flags.f_contiguous == array.flags.f_contiguous or not array.flags.c_contiguous


@pytest.mark.parametrize("scalar", [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("x")])
def test_numpy_scalars_keep_their_type(scalar):
    back = decode(json.loads(json.dumps(encode(scalar))))
    assert type(back) is type(scalar)
    assert back == scalar


Point = collections.namedtuple("Point", "x y")  # a subclass of tuple is the point


class Color(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Point(1, 2), "test_codec.Point"),
        ([Color.RED], "test_codec.Color"),
        (object(), "builtins.object"),
        (np.array([None]), "numpy.ndarray"),
        ((1j,), "builtins.complex"),
    ],
    ids=["namedtuple", "enum", "object", "array of objects", "complex"],
)
def test_other_types_are_refused_by_name(value, name):
    """A subclass written as its base would come back as something else."""
    with pytest.raises(samplers.CheckpointError, match=rf"states holding a .*{name} cannot be"):
        encode(value)


@pytest.mark.parametrize(
    "forged",
    [
        {"array": {"dtype": "<f8", "shape": [9], "order": "C", "base64": "AAAA"}},
        {"array": {"dtype": "|O", "shape": [1], "order": "C", "base64": "AAAAAAAAAAA="}},
        {"array": {"dtype": "<f8", "shape": [-1, -1], "order": "C", "base64": "AAAAAAAAAAA="}},
        {"tuple": [], "list": []},
        {"float": "one"},
    ],
    ids=str,
)
def test_forged_values_raise(forged):
    """Nothing in a file may run, read beyond its data, or crash with something unexpected."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode(forged)
