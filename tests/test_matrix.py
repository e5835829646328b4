"""Columns become a matrix: nothing is guessed, every part knows its column."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from bayescascade.base.errors import DataError, ModelFileError, ParameterError, UnknownLevelWarning
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from tests.methods.budget.forests.fits import patients

LENIENT = CellPolicy(missing="nan", dtype=np.float32)


def learned(X, policy=LENIENT):
    return MatrixEncoder.learn(GivenRows.of(X), policy)


def matrix_of(encoder, X, means=None):
    return encoder.transform(GivenRows.of(X), "Model", means)


def mixed():
    return pd.DataFrame(
        {
            "age": [20, 30, None, 41.5],
            "sex": ["male", "female", "male", None],
            "ward": ["west", "east", None, "north"],
            "pain": pd.Categorical(["b", "c", "a", None], ["c", "b", "a"], ordered=True),
            "smokes": [True, False, True, False],
        }
    )


NAN = np.nan
MATRIX = np.array(
    [
        # age, sex, ward is east, north, west, pain, smokes
        [20, 1, 0, 0, 1, 1, 1],
        [30, 0, 1, 0, 0, 0, 0],
        [NAN, 1, NAN, NAN, NAN, 2, 1],
        [41.5, NAN, 0, 1, 0, NAN, 0],
    ],
    np.float32,
)


def test_each_kind_of_column():
    encoder = learned(mixed())
    matrix = matrix_of(encoder, mixed())
    np.testing.assert_array_equal(matrix, MATRIX, strict=True)
    assert matrix.flags.c_contiguous
    assert encoder.source.tolist() == [0, 1, 2, 2, 2, 3, 4]
    assert encoder.columns == ("age", "sex", "ward", "pain", "smokes")
    assert encoder.is_named
    assert not encoder.is_numeric


@pytest.mark.parametrize("dtype", [np.float64, np.bool_])
def test_arrays_of_numbers(dtype):
    """Of any type and memory order: kernels read float32 row by row."""
    X = np.array([[0, 1, 0], [1, 0, 1]], dtype)
    encoder = learned(X)
    assert encoder.columns == (0, 1, 2)
    assert not encoder.is_named
    matrix = matrix_of(encoder, np.asfortranarray(X))
    np.testing.assert_array_equal(matrix, X.astype(np.float32), strict=True)
    assert matrix.flags.c_contiguous


def test_frames_without_names_are_matched_by_position():
    """Numbers are no names, as in scikit-learn."""
    encoder = learned(pd.DataFrame([[1.0, 2.0]], columns=[7, 8]))
    assert encoder.columns == (0, 1)
    np.testing.assert_array_equal(matrix_of(encoder, [[3.0, 4.0]]), np.float32([[3, 4]]))
    with pytest.raises(DataError, match="names of columns must be all text or none, got 0"):
        learned(pd.DataFrame([[1, 2]], columns=["a", 0]))


def test_categories_are_levels_even_if_unused():
    """Cross-validation must not fail for a level that is in one fold only."""
    cells = pd.Series(pd.Categorical(["a", "b"], ["a", "b", "c"])).to_frame("x")
    encoder = learned(cells)
    np.testing.assert_array_equal(
        matrix_of(encoder, pd.DataFrame({"x": ["c"]})), np.float32([[0, 0, 1]])
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ward": ["south"] * 4}, 'column "ward" has the unknown level "south" in row 1; .*Categ'),
        ({"age": [1, 2, np.inf, 3]}, 'column "age" must hold finite numbers, got inf in row 3'),
        ({"age": [1, "x", 2, 3]}, "column \"age\" must hold numbers, got 'x' in row 2"),
    ],
)
def test_cells_outside_their_column_are_named(change, message):
    with pytest.raises(DataError, match=message):
        matrix_of(learned(mixed()), mixed().assign(**change))


def test_columns_that_are_none():
    """Dates, identifiers and twins would be learned as noise."""
    with pytest.raises(DataError, match='column "day" holds dates'):
        learned(pd.DataFrame({"day": pd.to_datetime(["2026-01-01"])}))
    with pytest.raises(DataError, match='nominal column "id" must have 1 to 64 levels, got 65'):
        learned(pd.DataFrame({"id": [f"p{i}" for i in range(65)]}))
    with pytest.raises(DataError, match="column names must be different"):
        learned(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert learned(pd.DataFrame({"a": [None, None]})).is_numeric


def test_arrays_that_are_none():
    """In the words that scikit-learn's users know."""
    encoder = learned(np.ones((2, 3)))
    with pytest.raises(DataError, match="X has 2 features, but Model is expecting 3 features"):
        matrix_of(encoder, np.ones((2, 2)))
    with pytest.raises(DataError, match="X has 2 features, but Model is expecting 3 features"):
        matrix_of(encoder, pd.DataFrame(np.ones((2, 2))))
    with pytest.raises(ValueError, match="infinity or a value too large"):
        matrix_of(encoder, np.full((1, 3), 1e300))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        learned(csr_array(np.ones((2, 2))))


def test_a_record_comes_back_the_same(rng):
    for X in (patients(rng, missing=0.1), np.ones((2, 3))):
        encoder = learned(X)
        read = MatrixEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
        assert (read.columns, read.levels) == (encoder.columns, encoder.levels)


LEVELS = {"name": "b", "kind": "nominal", "levels": ["x", "y"], "edges": [],
          "has_missing_level": False}  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"columns": "ab", "levels": [None, None]},
        {"columns": ["a", "a"], "levels": [None, None]},
        {"columns": ["a", 1], "levels": [None, None]},
        {"columns": [1, 0], "levels": [None, None]},
        {"columns": [0, True], "levels": [None, None]},
        {"columns": ["a", "c"], "levels": [None, LEVELS]},
        {"columns": ["a", "b"], "levels": [None, {**LEVELS, "kind": "continuous"}]},
        {"columns": ["a", "b"], "levels": [None, {**LEVELS, "levels": ["x", "x"]}]},
    ],
)
def test_forged_records_are_refused(record):
    """Kernels read as many columns as the record says."""
    with pytest.raises(ModelFileError):
        MatrixEncoder.from_dict(record)
    if record:
        MatrixEncoder.from_dict({"columns": ["a", "b"], "levels": [None, LEVELS]})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_policy_says_what_missing_and_unknown_cells_are(dtype):
    """A family that cannot use NaN must hear of it by row, one that can must get it."""
    strict, filled = CellPolicy(dtype=dtype), mixed()[["age", "ward", "pain"]].iloc[:2]
    encoder = learned(filled, strict)
    assert matrix_of(encoder, filled).dtype == dtype
    for name, row in [("age", 2), ("ward", 1), ("pain", 2)]:
        gap = filled.astype(object)
        gap.loc[row - 1, name] = None
        with pytest.raises(DataError, match=rf'"{name}" has a missing cell \(NaN\) in row {row}: '):
            matrix_of(encoder, gap)
    with pytest.raises(DataError, match=r'"x1" has a missing cell .* row 2'):
        matrix_of(learned(np.ones((2, 2)), strict), [[1, 1], [1, NAN]])
    with pytest.raises(DataError, match='column "ward" must have a value, got None'):
        encoder.read_cell(1, None)
    lenient = learned(mixed(), CellPolicy("nan", "missing", dtype))
    strange = mixed().assign(ward="south", pain="b")
    expected = MATRIX.astype(dtype)
    expected[:, 2:5], expected[:, 5] = NAN, 1
    with pytest.warns(UnknownLevelWarning, match='ward "south"'):
        found = matrix_of(lenient, strange)
    np.testing.assert_array_equal(found, expected, strict=True)
    with pytest.warns(UnknownLevelWarning, match="counts as missing"):
        part = lenient.read_cell(2, "south")
    np.testing.assert_array_equal(part, expected[0, 2:5], strict=True)
    average = learned(filled, strict).treating("mean")
    means = np.arange(average.source.size, dtype=dtype)
    with pytest.warns(UnknownLevelWarning, match="counts as the mean"):
        found = matrix_of(average, filled.assign(ward="south"), means)
    np.testing.assert_array_equal(found[0, average.source == 1], means[average.source == 1])
    assert lenient.read_cell(0, 1e300) == min(1e300, float(np.finfo(dtype).max))
    with pytest.raises(ParameterError, match='unknown must be "error" or "mean" where missing'):
        CellPolicy("error", "missing")
    partly = learned(filled, CellPolicy("level", "missing", dtype))
    with pytest.warns(UnknownLevelWarning, match="counts as missing"):
        found = matrix_of(partly, filled.assign(ward="south", age=NAN))
    np.testing.assert_array_equal(np.isnan(found[0]), partly.source < 2)


def test_weights_come_with_rows_and_labels():
    """Whoever learns from a matrix gets all that belongs to it, checked once."""
    frame, y = mixed(), pd.Series(["b", "a", "b", "c"], dtype="category")
    encoder = learned(frame)
    read = TrainingRows.read(
        encoder, GivenRows(frame, y), GivenRows(frame[1:3], ["a", "b"]), owner="M"
    )
    np.testing.assert_array_equal(read.rows, MATRIX)
    assert (read.classes.tolist(), read.labels.tolist()) == (["a", "b", "c"], [1, 0, 1, 2])
    assert read.weights.tolist() == [1, 1, 1, 1]
    np.testing.assert_array_equal(read.validation_rows, MATRIX[1:3])
    assert read.validation_labels.tolist() == [0, 1]
    weighted = TrainingRows.read(encoder, GivenRows(frame, y, [0, 2, 0.5, 1]), owner="M")
    assert weighted.weights.tolist() == [0, 2, 0.5, 1]
    assert weighted.validation_rows is weighted.rows
    for weights, message in [([1, 2], r"shape \(4,\)"), ([1, 1, -1, 1], "got -1 in row 3")]:
        with pytest.raises(ValueError, match=f"sample_weight must .*{message}"):
            TrainingRows.read(encoder, GivenRows(frame, y, weights), owner="M")


def gaps():
    """Return rows of which some cells are missing, and all of one column."""
    return pd.DataFrame(
        {
            "age": [20.0, NAN, 30.0, 70.0],
            "ward": ["east", None, "north", "west"],
            "sex": ["f", "m", None, "f"],
            "pain": pd.Categorical(["low", None, "high", "low"], ["low", "high"], ordered=True),
            "seen": [True, False, True, True],
            "empty": [None] * 4,
        }
    )


def test_missing_cells_are_levels_and_medians():
    """What a missing cell was is kept, so that new rows and rows read back mean the same."""
    encoder = learned(gaps(), CellPolicy("level"))
    assert encoder.column_texts == [
        "age", "age is missing", "ward=east", "ward=north", "ward=west", "ward is missing",
        "sex=f", "sex=m", "sex is missing", "pain", "pain is missing", "seen", "empty",
        "empty is missing",
    ]  # fmt: skip
    expected = [
        [20, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1],
        [30, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1],
        [30, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1],
        [70, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1],
    ]
    np.testing.assert_array_equal(matrix_of(encoder, gaps()), expected)
    again = MatrixEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(matrix_of(again, gaps().iloc[::-1]), expected[::-1])
    assert again.column_texts == encoder.column_texts
    assert encoder.missing_texts == [
        "missing ward, sex: a level of its own",
        "missing age, pain, empty: imputed by the median, plus an indicator column",
    ]
    array = np.array([[1.0, NAN], [2.0, 5.0], [6.0, 9.0]])
    of_array = learned(array, CellPolicy("level"))
    assert matrix_of(of_array, array).tolist() == [[1, 5, 1], [2, 5, 0], [6, 9, 0]]


def test_a_missing_cell_where_there_was_none_is_unknown():
    """There is no level for it: it is told, or refused, as whatever else fit has not seen."""
    encoder = learned(gaps(), CellPolicy("level")).treating("mean")
    means = np.arange(14.0)
    new = gaps().astype({"seen": object})
    new.loc[1, "seen"] = None
    with pytest.warns(UnknownLevelWarning, match="a missing cell of seen.*counts as the mean"):
        found = matrix_of(encoder, new, means)
    assert found[1, 11] == 11
    with pytest.raises(
        DataError, match=r'"seen" has a missing cell .* row 2, of which fit had none'
    ):
        encoder.treating("error").transform(GivenRows.of(new), "M")
    complete = learned(np.ones((2, 2)), CellPolicy("level"))
    with pytest.raises(DataError, match=r'"x1" has a missing cell .* row 2, of which fit had none'):
        matrix_of(complete, [[1, 1], [1, NAN]])


@pytest.mark.parametrize("medians", [None, [0.0], ["1"] * 6, [0.0] * 6, [NAN] * 6])
def test_forged_medians_are_refused(medians):
    record = {**learned(gaps(), CellPolicy("level")).to_dict(), "medians": medians}
    with pytest.raises(ModelFileError, match="medians"):
        MatrixEncoder.from_dict(record)


def test_cells_read_one_by_one_are_those_of_a_whole_row():
    """Who acquires features one by one must get the answer of `predict`, missing cells included."""
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["x", None, "y"], "c": [0.5, 0.25, 1.0]})
    encoder = learned(frame, CellPolicy(missing="level"))
    for row, whole in zip(range(3), matrix_of(encoder, frame), strict=True):
        cells = [encoder.read_cell(place, frame.iloc[row, place]) for place in range(3)]
        np.testing.assert_array_equal(np.concatenate(cells), whole)


def test_a_part_of_the_rows_keeps_their_weights():
    """Folds of weighted rows would else be learned from by the weights of others."""
    X, labels = np.arange(6.0)[:, np.newaxis], np.array([0, 1, 2, 0, 1, 2])
    whole = TrainingRows(X, np.array(["a", "b", "c"]), labels, np.arange(6.0), X, None)
    part = whole.part(labels != 0)
    assert part.rows.ravel().tolist() == part.weights.tolist() == [1.0, 2.0, 4.0, 5.0]
    assert part.classes[part.labels].tolist() == ["b", "c", "b", "c"]


@pytest.mark.parametrize("made", [np.asarray, pd.DataFrame])
def test_no_rows_of_numbers_are_an_empty_matrix(made, rng):
    """A batch without rows was an error in tables of numbers alone."""
    rows = made(rng.normal(size=(9, 3)))
    encoder = MatrixEncoder.learn(GivenRows.of(rows))
    assert encoder.transform(GivenRows.of(rows[:0]), "a test").shape == (0, 3)
    with pytest.raises(ValueError, match=r"at least one row|0 sample"):
        MatrixEncoder.learn(GivenRows.of(rows[:0]))
