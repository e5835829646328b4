"""Every density fills missing cells and predicts any column, as its own scores have it."""

import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from bayescascade import DensityEstimationTree, SmoothedHistogram, Table
from bayescascade.base.errors import DataError, ParameterError
from tests.contracts.listed import ESTIMATORS, SHOWN, fitted, rows
from tests.contracts.test_densities import predicted
from tests.people import DECLARED, draw_people

DENSITIES = [name for name in SHOWN if hasattr(ESTIMATORS[name].make, "score_codes")]
LEVELS = {
    "sex": ["female", "male"],
    "crew": [False, True],
    "age": ["child", "adult", "old"],
    "fare": [2.5, 12.5, 60.0],
}
BINS = ["[0, 5)", "[5, 20)", "[20, 100]"]
densities = pytest.mark.parametrize("name", DENSITIES)
ways = pytest.mark.parametrize("predictive", ["map", "average"])


def cells(model):
    """Return the probability of every cell of the domain, (2, 2, 3, 3)."""
    grid = pd.MultiIndex.from_product(LEVELS.values(), names=LEVELS).to_frame(index=False)
    widths = grid["fare"].map({2.5: 5.0, 12.5: 15.0, 60.0: 80.0})
    return (np.exp(model.score_samples(grid)) * widths).to_numpy().reshape(2, 2, 3, 3)


def holes(n_rows, seed, share=0.4):
    """Return rows with missing cells, some wholly missing."""
    frame = draw_people(n_rows, seed)
    gone = np.random.default_rng(seed).random(frame.shape) < share
    return frame.astype({"crew": object}).mask(gone)


def place(row):
    """Return where a row stands in `cells`: a slice over what it lacks."""
    return tuple(
        slice(None)
        if pd.isna(row[name])
        else (
            int(np.searchsorted([0, 5, 20], row[name], side="right")) - 1
            if name == "fare"
            else levels.index(row[name])
        )
        for name, levels in LEVELS.items()
    )


@densities
@ways
def test_probabilities_are_those_of_all_cells_summed_up(name, predictive):
    """Enumerated: what is predicted of a column is what the density says, to the last digits."""
    model, frame = predicted(name, predictive), holes(9, 1)
    every = cells(model)
    for target in LEVELS:
        shares = model.predict_proba(frame, target)
        assert shares.index.equals(frame.index)
        assert shares.columns.tolist() == (BINS if target == "fare" else LEVELS[target])
        pd.testing.assert_frame_equal(
            shares, model.predict_proba(frame.drop(columns=target), target)
        )
        for row, given in zip(frame.to_dict("records"), shares.to_numpy(), strict=True):
            asked = row | {target: None}
            block = every[place(asked)]  # over the target and whatever else is missing
            missing = [n for n in LEVELS if pd.isna(asked[n])]
            others = tuple(i for i, n in enumerate(missing) if n != target)
            assert_allclose(given, block.sum(axis=others) / block.sum(), rtol=1e-9)
        best = shares.to_numpy().argmax(axis=1)
        assert model.predict(frame, target).tolist() == [LEVELS[target][k] for k in best]
        if target == "fare":
            means = shares.to_numpy() @ np.array(LEVELS["fare"])
            assert_allclose(model.predict(frame, target, how="mean"), means)


@pytest.mark.parametrize("name", [n for n in DENSITIES if hasattr(ESTIMATORS[n].make, "condition")])
def test_probabilities_are_those_given_evidence(name):
    """`condition` and `predict_proba` are two ways to ask one thing."""
    model = predicted(name, "map")
    given = model.condition({"sex": "male", "age": ["adult", "old"], "crew": False})
    codes = np.array([[1], [0], [-1], [-1]], np.int32).repeat(3, axis=1)
    codes[3] = [0, 1, 2]
    by_evidence = np.exp(given.score_codes(codes)) * [5.0, 15.0, 80.0]
    two = model.predict_proba({"sex": ["male"] * 2, "age": ["adult", "old"], "crew": False}, "fare")
    known = {"sex": ["male"] * 2, "crew": [False] * 2, "fare": [None] * 2, "age": [None] * 2}
    ages = model.predict_proba(known, "age").iloc[0, 1:].to_numpy()
    assert_allclose(by_evidence, (ages / ages.sum()) @ two.to_numpy(), rtol=1e-9)


@densities
@ways
def test_filled_cells_are_the_most_probable_together(name, predictive):
    """All else stays: types, index, order and columns of the frame, and the cells that it has."""
    model, frame = predicted(name, predictive), holes(40, 2).assign(note="kept")
    frame = frame.astype({"sex": "category"})[["note", "fare", "age", "sex", "crew"]]
    frame.index = range(100, 140)
    before, filled = frame.copy(), model.impute(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert filled.notna().all(axis=None)
    assert (filled.dtypes == frame.dtypes).all()
    assert filled.index.equals(frame.index)
    assert filled.columns.equals(frame.columns)
    assert ((filled == frame) | frame.isna()).all(axis=None)
    every = cells(model)
    for (_, row), (_, done) in zip(frame.iterrows(), filled.iterrows(), strict=True):
        assert every[place(done)] == pytest.approx(every[place(row)].max(), rel=1e-9)
    pd.testing.assert_frame_equal(model.impute(filled), filled)


@densities
def test_drawn_cells_are_drawn_together(name):
    """Several draws show how sure one can be: shares of whole rows, within 5 standard errors."""
    model, every = fitted(name), cells(fitted(name))
    asked = pd.DataFrame({"sex": ["male"] * 20_000, "crew": None, "age": None, "fare": 10.0})
    drawn = model.impute(asked, how="draw", random_state=0)
    assert drawn["crew"].dtype == bool
    assert drawn["fare"].eq(10.0).all()
    expected = every[1, :, :, 1] / every[1, :, :, 1].sum()
    for i, crew in enumerate(LEVELS["crew"]):
        for k, age in enumerate(LEVELS["age"]):
            share, p = ((drawn["crew"] == crew) & (drawn["age"] == age)).mean(), expected[i, k]
            assert abs(share - p) < 5 * np.sqrt(p / 20_000)
    fares = model.impute(asked.assign(fare=np.nan), how="draw", random_state=0)["fare"]
    assert fares.between(0, 100).all()
    assert fares.nunique() > 1000
    again = model.impute(asked, how="draw", random_state=0)
    pd.testing.assert_frame_equal(again, drawn)
    assert not again.equals(model.impute(asked, how="draw", random_state=1))


def test_the_level_for_missing_cells_is_told_and_never_filled_in():
    """That a cell is missing may be likely, but it is no value."""
    frame = rows().assign(age=rows()["age"].mask(np.arange(150) % 3 > 0))
    model = SmoothedHistogram(continuous=DECLARED["continuous"], missing="level").fit(frame)
    shares = model.predict_proba(frame, "age")
    assert shares.columns.tolist() == ["adult", "child", "old", None]
    assert shares.iloc[:, 3].mean() == pytest.approx(2 / 3, abs=0.05)
    assert model.predict_proba(frame[:3], "fare").columns.tolist() == BINS
    assert set(model.predict(frame, "age")) <= {"adult", "child", "old"}
    assert model.impute(frame).notna().all(axis=None)
    assert model.impute(frame, how="draw", random_state=0)["age"].notna().all()


def test_rows_of_any_form_are_filled():
    """Arrays, rows by name, text as it stands in a file, and columns with nothing in them."""
    model = fitted("histogram")
    array = holes(20, 3).to_numpy(dtype=object)
    assert model.impute(array).columns.tolist() == list(LEVELS)
    one = model.impute({"sex": "male", "crew": None, "age": "child", "fare": 3})
    assert one["crew"].tolist() == [False]
    texts = pd.DataFrame({"sex": ["male", None], "crew": ["False", None], "age": "adult"})
    texts = texts.assign(fare=["3", None])
    filled = model.impute(texts)
    assert set(filled["crew"]) <= {"True", "False"}
    assert float(filled["fare"][1]) in LEVELS["fare"]
    empty = pd.DataFrame({"sex": pd.Categorical([None, None]), "crew": None, "age": np.nan})
    assert model.impute(empty.assign(fare=np.nan)).notna().all(axis=None)
    counts = pd.DataFrame({"n": pd.array([1, None, 3], "Int64"), "m": [1.0, 2.0, np.nan]})
    filled = SmoothedHistogram().fit(counts.fillna(1)).impute(counts)
    assert filled.dtypes.astype(str).tolist() == ["Int64", "float64"]
    assert SmoothedHistogram().fit(rows()[["sex"]]).predict({"sex": None}, "sex") == ["male"]


@pytest.mark.parametrize("name", ["leaf", "rules", "det", "histogram", "mixture"])
def test_bad_questions_are_answered_in_one_line(name):
    case, model = ESTIMATORS[name], fitted(name)
    for ask in (lambda m: m.impute(rows()), lambda m: m.predict(rows(), "sex")):
        with pytest.raises(NotFittedError):
            ask(case.make())
    with pytest.raises(DataError, match=r'"sexx" \(did you mean "sex"\?\); columns: sex'):
        model.predict(rows(), "sexx")
    with pytest.raises(DataError, match='"fare" is missing'):
        model.predict_proba(rows().drop(columns="fare"), "sex")
    with pytest.raises(ParameterError, match='how must be "mode" for column "age"'):
        model.predict(rows(), "age", how="mean")
    with pytest.raises(ParameterError, match="how must be one of 'mode', 'draw'"):
        model.impute(rows(), how="best")
    with pytest.raises(ParameterError, match="got a Table"):
        model.impute(Table.from_frame(rows(), **DECLARED))


def test_nothing_follows_from_what_is_impossible():
    """Shares of the rows are 0 where there were none."""
    frame = pd.DataFrame({"a": ["x"] * 90 + ["y"] * 30, "b": ["u"] * 90 + ["v"] * 30})
    frame["c"] = ["w", "z"] * 60
    model = DensityEstimationTree(complexity=0.0, density="empirical").fit(frame)
    with pytest.raises(DataError, match="row 2 must have a positive probability"):
        model.predict(pd.DataFrame({"a": ["x", "x"], "b": ["u", "v"]}), "c")


@pytest.mark.slow
@ways
def test_many_rows_take_a_second_or_so(predictive):
    """Rows that are alike are asked about once."""
    model, frame = predicted("leaf", predictive), holes(50_000, 5)
    for ask in (model.impute, lambda f: model.predict_proba(f, "age")):
        ask(frame[:100])
        started = time.perf_counter()
        ask(frame)
        assert time.perf_counter() - started < 5.0


@densities
def test_of_no_rows_there_are_no_answers(name):
    """A filter that leaves no row is no error, and answers are of the form that others have."""
    model, none = fitted(name), draw_people(3, 0)[:0]
    for target, levels in LEVELS.items():
        result, some = model.predict(none, target), model.predict(draw_people(3, 0), target)
        assert (result.shape, result.dtype) == ((0,), some.dtype)
        shares = model.predict_proba(none, target)
        assert shares.shape == (0, len(levels))
        assert shares.columns.equals(model.predict_proba(draw_people(3, 0), target).columns)
    assert model.predict(none, "fare", how="mean").shape == (0,)
    for how in ("mode", "draw"):
        pd.testing.assert_frame_equal(model.impute(none, how, 0), none)


def test_files_are_rows(tmp_path):
    """Cells may be left out in a file, as in a frame that is read from it."""
    model, path = fitted("leaf"), tmp_path / "rows.csv"
    frame = holes(30, 2).dropna(how="all")
    frame.to_csv(path, index=False)
    read = pd.read_csv(path)
    for target in LEVELS:
        assert model.predict(path, target).tolist() == model.predict(read, target).tolist()
        pd.testing.assert_frame_equal(
            model.predict_proba(str(path), target=target), model.predict_proba(read, target)
        )
    pd.testing.assert_frame_equal(model.impute([path]), model.impute(read), check_dtype=False)
