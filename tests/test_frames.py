"""Whatever a table comes as, every family keeps its names, its levels and their order."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bayescascade
from bayescascade.base.errors import DataError, UnknownLevelError
from bayescascade.data.arrow_frames import as_frame
from bayescascade.data.table import Table

AGES = ("(0, 5]", "(5, 10]", "(10, 100]")  # in another order as text

chains = {
    "n_steps": 200,
    "n_chains": 1,
    "search": "metropolis",
    "random_state": 1,
    "missing": "level",
}
families = pytest.mark.parametrize(
    "model",
    [
        bayescascade.LeafCascade(**chains),
        bayescascade.RuleListClassifier(**chains),
        bayescascade.BudgetedForestClassifier(max_trees=3, random_state=1),
    ],
    ids=lambda model: type(model).__name__,
)


class Stream:
    """Another library's data, of which nothing is known but Arrow's interface."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.data.__arrow_c_stream__(requested_schema)


class Interchange:
    """Another library's table, of which nothing is known but the interchange protocol."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        return self.data.__dataframe__(nan_as_null, allow_copy)


class Unreadable:
    """A table with names that nothing tells, such as one that is not computed yet."""

    columns = ("a", "b")

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.eye(2)


def patients(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    years = rng.choice([3, 7, 50, 200], 200)  # 200 is in no interval
    pain = pd.Categorical(rng.choice(["no", "some"], 200), ["no", "some", "much"], ordered=True)
    frame = pd.DataFrame({"age": pd.cut(years, [0, 5, 10, 100]), "pain": pain})
    return frame.assign(sick=(years > 5) ^ (rng.random(200) < 0.1)), np.where(years > 5, "b", "a")


def answers(model: Any, rows: Any) -> np.ndarray:
    return getattr(model, "score_samples", getattr(model, "predict_proba", None))(rows)


def learned_columns(model: Any) -> list[Any]:
    columns = model.schema_.columns if hasattr(model, "schema_") else model._encoder.levels
    return [column and (column.name, column.kind, column.levels) for column in columns]


@families
def test_intervals_are_levels_in_their_order(model, tmp_path, rng):
    """What pandas.cut makes of a column is ordered, however the column then holds it."""
    frame, y = patients(rng)
    ages = frame["age"]
    forms = {
        "ordered": ages,
        "unordered": ages.cat.as_unordered(),
        "array": pd.Series(pd.arrays.IntervalArray(list(ages))),  # of floats, for some are missing
        "objects": ages.astype(object),
    }
    expected = answers(model.fit(frame, y), frame)
    assert learned_columns(model)[0] == ("age", "ordinal", AGES)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert str(loaded) == str(model)
    assert hasattr(model, "forest_") or '"(10, 100]"' in str(model)
    texts = ages.astype(object).map(str, na_action="ignore")
    for cells in (*forms.values(), texts):
        np.testing.assert_array_equal(answers(loaded, frame.assign(age=cells)), expected)
    row = dict(frame.iloc[0], age=pd.Interval(5, 10))
    alike = frame[:1].assign(age="(5, 10]")
    np.testing.assert_array_equal(answers(loaded, row), answers(model, alike))
    for cells in forms.values():
        again = model.fit(frame.assign(age=cells), y)
        np.testing.assert_array_equal(answers(again, frame), expected)
    loaded.set_params(unknown="error")
    with pytest.raises(UnknownLevelError, match="unknown level") as met:
        answers(loaded, frame.assign(age=pd.cut([1] * 200, [0, 99])))
    assert (met.value.column, met.value.level, met.value.row) == ("age", "(0, 99]", 1)
    assert str(pickle.loads(pickle.dumps(met.value))) == str(met.value)


@families
def test_tables_of_other_libraries_keep_names_and_levels(model, rng):
    """As an array, a polars or Arrow table would lose its names and its levels' order."""
    frame, y = patients(rng)
    expected = answers(model.fit(frame, y), frame)
    columns = learned_columns(model)
    assert columns[1] == ("pain", "ordinal", ("no", "some", "much"))
    table = pa.Table.from_pandas(frame)
    (batch,) = table.to_batches()
    shuffled = Stream(table.select(["sick", "pain", "age"]))
    labels = pa.chunked_array([y[:50], y[50:]]).dictionary_encode()
    for rows in (table, batch, Stream(table), table.to_reader(), dict(frame.items())):
        again = model.fit(rows, Stream(labels))
        assert learned_columns(again) == columns
        np.testing.assert_array_equal(answers(again, shuffled), expected)
        mapping = dict(frame[["sick", "pain", "age"]].items())
        np.testing.assert_array_equal(answers(again, mapping), expected)
    plain = frame[["pain", "sick"]]  # the protocol has no intervals
    expected = answers(model.fit(plain, y), plain)
    again = model.fit(Interchange(pa.table(plain)), y)
    assert learned_columns(again) == columns[1:]
    np.testing.assert_array_equal(answers(again, Interchange(pa.table(plain))), expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (Unreadable(), "rows must be .* a table that Arrow can read, got Unreadable: convert it"),
        (Stream(None), "cannot read the Stream as Arrow data: 'NoneType' object has no attribute"),
        (pa.array([1, 2]), "cannot read the Int64Array as Arrow data: .* non-struct type int64"),
        (iter([1, 2]), "rows must be a DataFrame, .*, got list_iterator: convert it"),
        (object(), "rows must be a DataFrame, .*, got object: convert it"),
        ({1, 2}, "rows must be a DataFrame, .*, got set: convert it"),
    ],
    ids=["names", "broken", "column", "iterator", "object", "set"],
)
def test_what_cannot_be_read_is_refused(rows, message):
    for model in (bayescascade.LeafCascade(), bayescascade.BudgetedForestClassifier()):
        with pytest.raises(DataError, match=message):
            model.fit(rows, ["a", "b"])
    with pytest.raises(DataError, match=message):
        Table.from_arrays(rows)


def test_a_reader_is_read_once():
    """Else what was read to fit would be scored as no rows."""
    frame = pd.DataFrame({"a": ["x", "y"] * 20, "b": [1, 2, 3, 4] * 10})
    model = bayescascade.DensityEstimationTree(random_state=0)
    reader = pa.Table.from_pandas(frame).to_reader()
    model.fit(reader)
    assert model.score_samples(pa.Table.from_pandas(frame).to_reader()).shape == (40,)
    for ask in (model.score_samples, model.fit):
        with pytest.raises(DataError, match=r"RecordBatchReader .* can be read only once"):
            ask(reader)


def test_whole_numbers_beside_missing_cells_stay_exact():
    """As floats, identifiers beyond 2**53 would be one level."""
    large = (2**60 + 1, 2**60 + 2)
    frame = as_frame(pa.table({"x": [*large, None], "y": [True, None, False]}))
    assert Table.from_arrays(frame, missing="level").schema.columns[0].levels == large
    assert frame["y"].tolist() == [True, None, False]
