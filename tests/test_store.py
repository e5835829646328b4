"""Typed records: they come back, and whatever is damaged is named with its key, rule and value."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import pytest

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ModelFileError
from bayescascade.base.store import (
    GIVEN,
    INLINE,
    SKIPPED,
    As,
    Of,
    Saved,
    Within,
    Words,
    restored,
    stored,
)
from bayescascade.model.packing import Packed


class Net(NamedTuple):
    weights: Annotated[Floats, Of("p", "M", least=0)]
    constants: Annotated[Floats, Of("M+1")]
    owner: Annotated[Integers, Of("p", kind=np.int64, below="M")]


@dataclass(frozen=True, eq=False)
class Constant:
    value: float
    kind: ClassVar[str] = "constant"


@dataclass(frozen=True, eq=False)
class Mean:
    of: tuple[float, ...]
    kind: ClassVar[str] = "mean"

    def __post_init__(self):
        if not self.of:
            raise ValueError("a mean must be of numbers, got none")


@dataclass(frozen=True, eq=False)
class Fit:
    net: Annotated[Net, INLINE]
    outcome: Constant | Mean | None
    method: Annotated[str, Words("exact", "quick")]
    gap: Annotated[float, Within(0, null=math.nan)]
    n_rows: Annotated[int | float, Within(above=0)]
    shares: Mapping[str, Annotated[float, Within(0, 1)]]
    bounds: tuple[float, float]
    pieces: tuple[Annotated[Floats, Of("own")], ...]
    date: Annotated[complex, As(lambda z: [z.real, z.imag], lambda data: complex(*data))]
    names: Annotated[tuple[str, ...], Saved("columns")]
    is_late: bool
    chosen: Annotated[int | None, Saved("chosen", True)]
    rows: Annotated[int, GIVEN]
    loss: Annotated[float, SKIPPED] = math.nan


NET = Net(np.array([[1.0, 2.0]]), np.arange(3.0), np.array([1]))
FIT = Fit(
    NET, Mean((1.0, 2.0)), "exact", math.nan, 112, {"a": 0.5}, (0.0, 1.0),
    (np.arange(2.0), np.arange(3.0)), 1 + 2j, ("x", "y"), False, None, 7, 3.0,
)  # fmt: skip


def read(**changed):
    record = {**json.loads(json.dumps(stored(FIT))), **changed}
    return restored(Fit, {k: v for k, v in record.items() if v != "gone"}, {"rows": 7})


def test_values_come_back():
    """Integers stay integers, NaN is null, and what is not saved is the default or given."""
    record = stored(FIT)
    assert (record["n_rows"], record["gap"], record["columns"]) == (112, None, ["x", "y"])
    assert not {"net", "rows", "loss", "chosen"} & record.keys()
    again = read()
    assert stored(again) == record
    assert type(again.n_rows) is int
    assert (again.rows, again.chosen, again.date) == (7, None, 1 + 2j)
    assert math.isnan(again.loss)
    assert math.isnan(again.gap)
    assert read(outcome=None).outcome is None
    assert read(outcome={"kind": "constant", "value": 1}).outcome.value == 1.0
    assert read(chosen=3).chosen == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weights": [[1.0, -2.0]]}, r"weights must be finite numbers >= 0 of shape \(any, any\)"),
        ({"constants": [0.0]}, "constants must be 3 finite numbers"),
        ({"owner": [2]}, "owner must be 1 integers from 0 to 1"),
        ({"owner": "gone"}, "must have the field 'owner'"),
        ({"method": "slow"}, "method must be one of 'exact', 'quick', got 'slow'"),
        ({"gap": -1}, "gap must be a finite number >= 0, got -1"),
        ({"gap": True}, "gap must be a finite number >= 0, got True"),
        ({"n_rows": None}, "n_rows must be a finite number > 0, got None"),
        ({"shares": {"a": 2}}, "shares 'a' must be a finite number >= 0 and <= 1, got 2"),
        ({"shares": [0.5]}, r"shares must be a mapping, got \[0.5\]"),
        ({"bounds": [1]}, r"bounds must be a list of 2, got \[1\]"),
        ({"is_late": 1}, "is_late must be true or false, got 1"),
        ({"columns": ["x", 3]}, "columns must be text, got 3"),
        ({"outcome": {"kind": "sum"}}, "outcome must be a mapping of kind 'constant' or a mapping"),
        ({"chosen": "x"}, "chosen must be an integer, got 'x'"),
        ({"pieces": 3}, "pieces must be a list, got 3"),
    ],
)
def test_damage_is_named(changed, message):
    with pytest.raises(ModelFileError, match=f"a saved model('s)? {message}"):
        read(**changed)


def test_invariants_are_those_of_the_value():
    with pytest.raises(ValueError, match="a mean must be of numbers"):
        read(outcome={"kind": "mean", "of": []})


def test_arrays_of_any_shape_come_back():
    kind = Annotated[Floats, Of(...)]
    for data in ([1.0], [], [[1.0, 2.0]], [[[1.0]]]):
        assert restored(kind, data, {}).tolist() == data
    for data in (1.0, "x", [[1.0], [1.0, 2.0]], [1.0, [1.0]], [math.inf]):
        with pytest.raises(ModelFileError, match="must be finite numbers"):
            restored(kind, data, {}, "sums")


class Rows(NamedTuple):
    cells: Annotated[Floats, Packed("n", "columns", least=-3)]
    labels: Annotated[Integers, Of("n", kind=np.int64)]


def test_packed_arrays_come_back_to_the_last_bit():
    """And their shapes and limits are checked as those of lists."""
    cells = np.array([[1.0, -0.0, np.nextafter(2.0, 3.0)], [1e-310, -2.5, 1e300]])
    rows = Rows(cells[:, ::-1], np.array([0, 1]))
    record = json.loads(json.dumps(stored(rows)))
    found = restored(Rows, record, {"columns": 3})
    assert found.cells.tobytes() == np.ascontiguousarray(rows.cells).tobytes()
    for sizes, changed, message in (
        ({"columns": 2}, {}, "cells must be"),
        ({"columns": 3}, {"labels": [0]}, "labels must be"),
        ({"columns": 3}, {"cells": record["cells"] | {"size": 5}}, "as many numbers"),
        ({"columns": 3}, stored(Rows(cells - 3, rows.labels)), "cells must be"),
        ({"columns": 3}, stored(Rows(np.full((2, 3), np.inf), rows.labels)), "cells must be"),
    ):
        with pytest.raises(ModelFileError, match=message):
            restored(Rows, {**record, **changed}, sizes)
