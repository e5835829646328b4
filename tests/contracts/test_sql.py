"""What a model says of rows, a database says, too: to the last digits, whatever names are."""

import math
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from bayescascade import (
    BoxUnion,
    BudgetTreeClassifier,
    DataError,
    DensityEstimationTree,
    DensityRuleList,
    FastBoxes,
    LeafCascade,
    ParameterError,
    RuleListClassifier,
    SmoothedHistogram,
    SubmodularTreeClassifier,
    UnknownLevelWarning,
)
from bayescascade.data.sql import sql_literal
from tests.benchmarks.pruning_baselines import TruncatedForest
from tests.contracts.listed import CHAINS, ESTIMATORS, fitted, rows
from tests.contracts.test_densities import predicted
from tests.people import DECLARED, draw_people

duckdb = pytest.importorskip("duckdb")

TOLD = [name for name, case in ESTIMATORS.items() if hasattr(case.make, "to_sql")]
CLASSIFIERS = [name for name in TOLD if ESTIMATORS[name].is_labeled]
DENSITIES = [name for name in TOLD if name not in CLASSIFIERS]
HOSTILE = ["a\"b'; drop", "order", "x -- y", "§ 1\n%s"]


def asked(frame, *expressions):
    """Return what DuckDB says of the rows of a frame, a column for each expression."""
    with duckdb.connect() as database:
        database.register("told", frame.assign(place=np.arange(len(frame))))
        listed = ", ".join(f"{one} AS answer_{i}" for i, one in enumerate(expressions))
        return database.sql(f"SELECT {listed} FROM told ORDER BY place").df()


def asked_sqlite(frame, expression):
    """Return what SQLite says of the rows of a frame, which it holds itself."""
    with closing(sqlite3.connect(":memory:")) as database:
        frame.to_sql("told", database, index_label="place")
        result = database.execute(f"SELECT {expression} FROM told ORDER BY place")
        return [answer for (answer,) in result]


def hostile(frame):
    """Return rows whose names, and some levels, would end a careless statement."""
    odd = {"male": "o'clock\"; --", "female": "'", "child": "\\'", "adult": "a\nb"}
    return frame.replace(odd).set_axis(HOSTILE, axis=1)


def test_what_is_read_by_people_is_told_to_databases():
    others = {name for name, case in ESTIMATORS.items() if case.others is not None}
    gates = {"gate", "group lasso", "boosted gate", "least squares gate", "miser"}
    without = {"margins", "neighbors", "rado", *gates}
    without |= {"sensors", "always sensors", "auto budget"}
    assert set(ESTIMATORS) - set(TOLD) - others == without


@pytest.mark.parametrize("name", DENSITIES)
def test_densities(name):
    """Scores are equal; of what would be integrated out, or refused, there is none."""
    with pytest.raises(NotFittedError):
        ESTIMATORS[name].make().to_sql()
    model = predicted(name, "map")
    if name in ("dependent", "dependent exact", "leaf auto"):
        with pytest.raises(ParameterError, match='leaf must be "uniform" or "independent"'):
            model.to_sql()
        return
    if hasattr(model, "class_probabilities"):
        with pytest.raises(ParameterError, match="SQL needs a density in parts"):
            model.to_sql()
        return
    frame, sql = draw_people(200, 7), model.to_sql()
    assert_allclose(asked(frame, sql)["answer_0"], model.score_samples(frame), atol=1e-12)
    holes = frame[:4].astype({"crew": object})
    for place, column in enumerate(holes):
        holes.iloc[place, holes.columns.get_loc(column)] = None
    assert asked(holes, model.to_sql())["answer_0"].isna().all()
    assert asked(frame[:1].assign(sex="robot"), model.to_sql())["answer_0"].isna().all()
    assert asked(frame[:1].assign(fare=100.5), model.to_sql())["answer_0"].isna().all()
    ends = frame[:3].assign(fare=[0.0, 5.0, 100.0])
    assert_allclose(asked(ends, model.to_sql())["answer_0"], model.score_samples(ends), atol=1e-12)
    given = model.condition({"sex": "male", "fare": (0, 20)})
    scores = given.score_codes(model.schema_.encode(frame))
    assert np.isneginf(scores).any()
    assert_allclose(asked(frame, given.to_sql())["answer_0"], scores, atol=1e-12)
    assert_allclose(asked_sqlite(frame, given.to_sql()), scores, atol=1e-12)
    if "predictive" in model.get_params():
        with pytest.raises(ParameterError, match='predictive must be "map"'):
            predicted(name, "average").to_sql()


def test_what_is_impossible_is_so_in_every_database():
    """SQLite reads CAST('-Infinity' AS DOUBLE PRECISION) as -0.0: the densest of all rows."""
    frame = pd.DataFrame({"a": [1, 2, 3]})
    for value in (-math.inf, math.inf):
        text = f"CASE WHEN a = 1 THEN 1e0 ELSE {sql_literal(value)} END"
        assert asked(frame, text)["answer_0"].tolist() == [1.0, value, value]
        assert asked_sqlite(frame, text) == [1.0, value, value]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    """Probabilities of each class, and the most probable one where one tree or list says it."""
    model, frame = fitted(name), draw_people(300, 8)
    if name == "labels":  # an average over lists is no SQL; that of the list says so
        assert model.to_sql().startswith("/* the best list, not the average */ CASE")
        model = ESTIMATORS[name].fit(predictive="map")
    expected = model.predict_proba(frame)
    texts = asked(frame, *(model.to_sql(label) for label in model.classes_.tolist()))
    assert_allclose(texts, expected, atol=1e-12)
    if getattr(getattr(model, "forest_", None), "n_trees", 1) == 1:
        assert asked(frame, model.to_sql())["answer_0"].tolist() == model.predict(frame).tolist()
    else:
        with pytest.raises(ParameterError, match="label must be a class where several trees vote"):
            model.to_sql()
    known = model.classes_.tolist()
    is_strict = name in ("labels", "tree", "boxes")
    strict = ESTIMATORS[name].fit(unknown="error") if is_strict else None
    for asking in filter(None, (model, strict)):
        robot = frame[:1].assign(sex="robot")
        texts = asked(robot, asking.to_sql(known[0]))["answer_0"]
        if asking is strict:
            assert texts.isna().all()
        else:
            with pytest.warns(UnknownLevelWarning):
                assert_allclose(texts, asking.predict_proba(robot)[:, 0], atol=1e-12)
    with pytest.raises(ParameterError, match=r"label must be one of .*, got 9"):
        model.to_sql(9)
    with pytest.raises(NotFittedError):
        ESTIMATORS[name].make(**ESTIMATORS[name].parameters).to_sql()


@pytest.mark.parametrize(
    "make", [LeafCascade, DensityRuleList, DensityEstimationTree, SmoothedHistogram]
)
@pytest.mark.parametrize("leaf", ["uniform", "independent"])
def test_hostile_names_and_levels(make, leaf):
    """A name is a name, and a level a level; with a level for missing cells, NULL is one, too."""
    if leaf == "independent" and make is not LeafCascade:
        pytest.skip("leaves of one kind")
    frame = hostile(rows()).astype({HOSTILE[1]: object})
    frame.loc[::9, HOSTILE[:3]] = None
    frame.loc[4::9, HOSTILE[3]] = np.nan
    options = (
        {} if make in (DensityEstimationTree, SmoothedHistogram) else {**CHAINS, "search": "anneal"}
    )
    options |= {"leaf": leaf} if make is LeafCascade else {}
    fares = {"continuous": {HOSTILE[3]: DECLARED["continuous"]["fare"]}, "missing": "level"}
    model = make(**options, **fares).fit(frame)
    result = asked(frame, model.to_sql())["answer_0"]
    assert_allclose(result, model.score_samples(frame), atol=1e-12)
    nul = pd.DataFrame({"a": ["x\0", "y"] * 20, "b": ["u", "v"] * 20})
    with pytest.raises(DataError, match="NUL"):
        make(**options).fit(nul).to_sql()


def mixed(rng, n=300):
    """Return columns of every kind, of which some cells are missing."""
    frame = pd.DataFrame({
        HOSTILE[0]: rng.normal(size=n).round(2),
        "whole": rng.normal(size=n).round(2),
        "rank": pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l"], ordered=True),
        "kind": rng.choice(list("abcd"), n),
        "flag": rng.choice(["yes", "no"], n),
    })  # fmt: skip
    labels = (frame[HOSTILE[0]] > 0.2) & (frame["rank"] != "s") | (frame["kind"] == "c")
    for name in (HOSTILE[0], "rank", "kind"):
        frame.loc[rng.random(n) < 0.15, name] = None
    return frame, labels | frame[HOSTILE[0]].isna() & (frame["whole"] < 0.0)


def with_holes(frame):
    """Return some rows, and others with a missing or a new cell in each column."""
    holes = frame[:12].astype(object).reset_index(drop=True)
    for place, name in enumerate(frame.columns):
        holes.loc[place, name] = None
        holes.loc[place + 5, name] = "new" if name not in (HOSTILE[0], "whole") else 1e9
    new = pd.concat([frame[:40].astype(object), holes], ignore_index=True)
    return new.astype({HOSTILE[0]: float, "whole": float})


def row_by_row(model, rows):
    """Return the probabilities of each row; NaN where a cell is an error."""
    expected = np.full((len(rows), len(model.classes_)), np.nan)
    for place in range(len(rows)):
        try:
            expected[place] = model.predict_proba(rows.iloc[[place]])[0]
        except DataError:
            continue
    is_strict = model.unknown == "error" or getattr(model, "missing", None) == "error"
    assert np.isnan(expected).any() == is_strict
    return expected


SEARCH = {"search": "anneal", "n_steps": 1000, "random_state": 0}
FEW_NODES = {"max_depth": 2, "node_budget": 3.0, "prune": False}
MIXED = {
    "tree": lambda **how: SubmodularTreeClassifier(leaf="logistic", **FEW_NODES, **how),
    "least squares": lambda **how: SubmodularTreeClassifier(
        leaf="least_squares", **FEW_NODES, **how
    ),
    "list": lambda **how: RuleListClassifier(missing="error", **SEARCH, **how),
    "list with gaps": lambda **how: RuleListClassifier(missing="level", **SEARCH, **how),
    "boxes": lambda **how: FastBoxes(n_clusters=1, expansion=1.0, **how),
}


@pytest.mark.filterwarnings("ignore::bayescascade.UnknownLevelWarning")
@pytest.mark.parametrize("unknown", ["error", "ignore"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "tree")) for n in MIXED]
)
def test_classifiers_take_cells_as_the_model_does(name, unknown, rng):
    """What is no error for `predict` has its answer in SQL, and what is one has none."""
    frame, labels = mixed(rng)
    model = MIXED[name](unknown=unknown)
    learned = frame.dropna() if name == "list" else frame
    model.fit(learned, labels.loc[learned.index].map({True: "it's", False: 'the "2nd"'}))
    new = with_holes(frame)
    texts = asked(new, *(model.to_sql(label) for label in model.classes_.tolist()))
    assert_allclose(texts, row_by_row(model, new), atol=1e-12)
    assert asked(learned, model.to_sql())["answer_0"].tolist() == model.predict(learned).tolist()


@pytest.mark.slow
def test_any_boxes_are_those_of_the_model(rng):
    """Of any sides, which a fit would not have; in two databases."""
    frame, labels = mixed(rng)
    model = FastBoxes(n_clusters=1, expansion=1.0, unknown="ignore").fit(frame, labels)
    for _ in range(8):
        ends = np.sort(rng.choice([-0.5, 0.3, 0.5, 0.7, 1.5], (2, 2, 11)), axis=0)
        ends[0][rng.random((2, 11)) < 0.8], ends[1][rng.random((2, 11)) < 0.8] = -np.inf, np.inf
        model._best = replace(model._best, union=BoxUnion(*ends), sides=())
        expected = model.predict_proba(frame)
        result = asked(frame, *(model.to_sql(label) for label in (False, True)))
        assert_allclose(result, expected, atol=1e-12)
        assert_allclose(np.array(asked_sqlite(frame, model.to_sql(True)), float), expected[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("make", [BudgetTreeClassifier, TruncatedForest])
def test_numbers_are_routed_as_the_model_does(make, rng):
    """They are rounded to float32 first: a row beside a threshold must not change sides."""
    frame, labels = mixed(rng)
    if make is TruncatedForest:
        model = make(forest=RandomForestClassifier(5, random_state=0)).fit(frame, labels, frame)
    else:
        model = make(n_steps=2000, n_chains=2, random_state=0).fit(frame, labels)
    thresholds = model.forest_.threshold[model.forest_.feature == 0]
    steps = [-1e-7, -1e-8, -1e-16, 0.0, 1e-16, 1e-8, 1e-7]
    beside = [threshold * (1 + step) for threshold in thresholds for step in steps]
    close = frame.iloc[np.zeros(len(beside), int)].assign(**{HOSTILE[0]: beside})
    new = pd.concat([frame, close], ignore_index=True)
    result = asked(new, *(model.to_sql(label) for label in (False, True)))
    assert_allclose(result, model.predict_proba(new), atol=1e-12)
