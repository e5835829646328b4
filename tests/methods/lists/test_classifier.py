"""What a user calls to classify: scikit-learn's conventions, and what rule lists add to them."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayescascade
from bayescascade import LabelList, RuleListClassifier, Table
from bayescascade.base.errors import DataError, ParameterError, UnknownLevelWarning
from bayescascade.data.declarations import Declarations
from bayescascade.data.given import GivenRows
from bayescascade.data.inference import BinCollector
from bayescascade.data.labels import LabeledRows
from tests.methods.lists.fits import QUICK, classifier, fates, people

# -- what is learned -------------------------------------------------------------------------------


def test_fitted_attributes():
    """They are documented, and each must hold what is said of it."""
    model = classifier()
    assert isinstance(model.rules_, LabelList)
    assert model.classes_.tolist() == ["died", "lived"]
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["sex", "crew", "age", "fare"]
    assert model.schema_.names == ("sex", "crew", "age", "fare")
    assert model.schema_.columns[3].kind == "continuous"
    assert model.rules_.counts.sum() == 200
    assert model.log_posterior_ == pytest.approx(model.run_.best_log_density, abs=1e-9)
    state = model.run_.best_state
    assert model.log_posterior_ == pytest.approx(model.posterior_.log_density(state), abs=1e-9)
    assert_array_equal(model.posterior_.counts(state), model.rules_.counts)
    assert "sex" in model.rules_.to_dict()["rules"][0]["if"]
    assert model.score(people(), fates(people())) > 0.75


def test_probabilities_are_those_of_the_rule_that_fires():
    """What is printed is what the list predicts."""
    model, frame = classifier(predictive="map"), people(60, seed=5)
    found = model.predict_proba(frame)
    assert found.shape == (60, 2)
    for (_, row), probabilities in zip(frame.iterrows(), found, strict=True):
        result = float(model.explain(row).split("P(lived) = ")[1].split(" ")[0])
        assert probabilities[1] == pytest.approx(result, abs=0.0051)
    assert_array_equal(model.predict(frame), model.classes_[found.argmax(axis=1)])


def test_ties_go_to_the_first_class():
    """As NumPy's argmax and scikit-learn have it, so that predictions do not depend on chance."""
    frame = pd.DataFrame({"a": ["x", "y"] * 10})
    labels = ["no", "no", "yes", "yes"] * 5
    model = RuleListClassifier(**QUICK, max_size=1).fit(frame, labels)
    assert_allclose(model.predict_proba(frame), 0.5)
    assert set(model.predict(frame)) == {"no"}


def test_average_is_the_mean_over_draws():
    """Each draw's probabilities, the more often drawn counting more; the list without draws."""
    model, frame = classifier(), people(40, seed=6)
    codes = model.schema_.encode(frame)
    states = [state for chain in model.run_.draws for state in chain]
    chosen = np.linspace(0, len(states) - 1, min(200, len(states))).round().astype(int)
    total = np.zeros((40, 2))
    for state, times in Counter(states[i] for i in chosen).items():
        rules = tuple(model.posterior_.antecedents[index] for index in state.rules)
        labels = LabelList(
            model.schema_, model.classes_, rules, model.posterior_.counts(state), 1.0
        )
        total += times * labels.probabilities[labels.part_of_codes(codes)]
    assert_allclose(model.predict_proba(frame), total / len(chosen), atol=1e-12)
    assert_allclose(classifier(predictive="average").predict_proba(frame), total / len(chosen))
    assert "predictive average" in str(model)
    result = re.search(r"; average over draws: P\(lived\) = (\S+)", model.explain(frame.iloc[0]))
    assert float(result[1]) == pytest.approx(model.predict_proba(frame)[0, 1], abs=0.0051)
    for quick in (classifier(predictive="map"), classifier(search="anneal")):
        best = quick.rules_.probabilities[quick.rules_.part_of_codes(quick.encode(frame))]
        assert_array_equal(quick.predict_proba(frame), best)
        assert not np.allclose(model.predict_proba(frame), best)
        assert quick.predict_block(frame, 1, intervals=True).intervals is None
        with pytest.raises(ParameterError, match='predictive must be "average", with a search'):
            quick.credible_interval(frame)
        assert "predictive average" not in str(quick)


def test_credible_intervals_of_rows():
    """A pair of ends for each class; wider for a larger level."""
    model, frame = classifier(), people(30, seed=7)
    found = model.credible_interval(frame)
    assert found.shape == (30, 2, 2)
    wider = model.credible_interval(frame, level=0.99)
    assert (wider[..., 0] < found[..., 0]).all()
    with pytest.raises(ParameterError, match="level must be a finite number > 0 and < 1, got 95"):
        model.credible_interval(frame, 95)


def test_nothing_is_learned_from_rows_of_weight_zero():
    """Not their levels, nor their classes, nor where bins end."""
    frame, labels = people(80), fates(people(80))
    extra = pd.DataFrame({"sex": "robot", "crew": False, "age": "old", "fare": 1e9}, index=[80, 81])
    longer = pd.concat([extra, frame])
    of_longer = pd.concat([pd.Series(["melted", "lived"], index=[80, 81]), labels])
    weights = np.append([0.0, 0.0], np.ones(80))
    model = RuleListClassifier(**QUICK).fit(longer, of_longer, sample_weight=weights)
    plain = RuleListClassifier(**QUICK).fit(frame, labels)
    assert model.classes_.tolist() == ["died", "lived"]
    assert model.schema_ == plain.schema_
    assert model.rules_.to_dict() == plain.rules_.to_dict()


@pytest.mark.parametrize(
    "labels",
    [
        np.array([True, False] * 40),
        np.array([3, -1] * 40),
        np.array([0.0, 1.0] * 40),
        pd.Series(["b", "a"] * 40, dtype="category"),
        pd.Series([2, 5] * 40, dtype="Int64"),
        pd.Series(["b", "a"] * 40, dtype="string"),
        (1, 2) * 40,
    ],
    ids=lambda labels: f"{type(labels).__name__}-{getattr(labels, 'dtype', '')}",
)
def test_labels_of_any_type(labels):
    """Predictions are of the labels' own type."""
    frame = people(80)[["sex"]].assign(known=np.asarray(labels).astype(str))
    model = RuleListClassifier(**QUICK).fit(frame, labels)
    assert_array_equal(model.predict(frame), np.asarray(labels))
    assert model.classes_.tolist() == sorted(set(np.asarray(labels).tolist()))
    assert f": P({model.rules_.class_texts[1]}) = 0." in model.explain(frame.iloc[0])


def test_rows_of_any_form_are_classified_alike():
    """Arrays, lists, texts, and a row by itself."""
    model, frame = classifier(), people(40, seed=8)
    expected = model.predict_proba(frame)
    assert_array_equal(model.predict_proba(frame.to_numpy(dtype=object)), expected)
    assert_array_equal(model.predict_proba(frame.to_numpy(dtype=object).tolist()), expected)
    assert_array_equal(model.predict_proba(frame.astype(str)), expected)
    assert_array_equal(model.predict_proba(frame.iloc[3]), expected[3:4])
    assert_array_equal(model.predict_proba(dict(frame.iloc[3])), expected[3:4])
    with pytest.raises(ValueError, match="X has 2 features, but RuleListClassifier is expecting 4"):
        model.predict(frame.to_numpy(dtype=object)[:, :2])


@pytest.mark.parametrize(("n_columns", "most"), [(2, 2), (4, 3), (140, 2)])
def test_rules_have_three_conditions_where_they_are_few_enough(n_columns, most, tmp_path):
    """Else a table of games is told by many rules; with many columns, chains would be lost."""
    frame = pd.DataFrame(np.random.default_rng(0).random((300, n_columns)) < 0.5)
    frame = frame.rename(columns=str)
    model = RuleListClassifier(**QUICK).fit(frame, frame.iloc[:, :3].all(axis=1))
    assert len(model.n_candidates_) == most + 1
    assert f"max_size {most}," in str(model)
    model.save(tmp_path / "m.json")
    assert str(bayescascade.load(tmp_path / "m.json")) == str(model)


def test_numbers_are_cut_at_quantiles():
    """Of many values, and no few ones; the words tell intervals."""
    frame = people().assign(children=np.arange(200) % 3, flags=np.arange(200) % 2 == 0)
    model = RuleListClassifier(**QUICK, max_size=2, n_bins=5).fit(frame, fates(people()))
    kinds = [column.kind for column in model.schema_.columns[3:]]
    assert kinds == ["continuous", "ordinal", "nominal"]
    edges = model.schema_.columns[3].edges
    assert (edges[0], edges[-1]) == (frame["fare"].min(), frame["fare"].max())
    shares = np.histogram(frame["fare"], edges)[0] / 200
    assert_allclose(shares[[3, 4]], 0.2, atol=0.01)  # below, many fares are equal
    assert any("fare" in model.rules_.part_words(part) for part in range(model.rules_.n_rules))


@pytest.mark.slow
def test_whole_numbers_are_cut_where_real_ones_would_be(monkeypatch, tmp_path):
    """Words in whole numbers must not move a row: gaps of two have an edge at a whole number."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"even": 2 * rng.integers(0, 30, 300), "any": rng.integers(-20, 20, 300)})
    labels = np.where(frame["even"] + frame["any"] > 30, "yes", "no")
    fit = {"n_steps": 2000, "n_chains": 2, "random_state": 0}
    model = RuleListClassifier(**fit).fit(frame, labels)
    assert all(column.is_whole for column in model.schema_.columns)
    with monkeypatch.context() as patched:
        patched.setattr(BinCollector, "is_whole", False)
        real = RuleListClassifier(**fit).fit(frame, labels)
    assert not any(column.is_whole for column in real.schema_.columns)
    assert_array_equal(model.predict_proba(frame), real.predict_proba(frame))
    words = str(model)
    assert re.search(r"is (at most|at least) -?\d+ ", words)
    assert re.search("probability that label is yes", words)
    model.save(tmp_path / "m.json")
    assert str(bayescascade.load(tmp_path / "m.json")) == words


def test_values_beyond_the_training_range():
    """They belong to the outer bins, as the words say: "below", or "more"."""
    model, frame = classifier(), people(20)
    for beyond, end in ((1e9, people()["fare"].max()), (-1e9, people()["fare"].min())):
        found = model.predict_proba(frame.assign(fare=beyond))
        assert_array_equal(found, model.predict_proba(frame.assign(fare=end)))


@pytest.mark.slow
def test_declared_columns():
    """Edges, numbers of bins and levels, by name or by number; outer bins are open there, too."""
    frame, labels = people(), fates(people())
    model = RuleListClassifier(
        **QUICK, continuous={"fare": [2, 10, 20, 30]}, ordinal={"age": ["child", "adult", "old"]}
    ).fit(frame, labels)
    fare, age = model.schema_.columns[3], model.schema_.columns[2]
    assert fare.edges == (2.0, 10.0, 20.0, 30.0)
    assert age.kind == "ordinal"
    assert age.levels == ("child", "adult", "old")
    array = frame.to_numpy(dtype=object)
    of_array = RuleListClassifier(
        **QUICK, continuous={3: [2, 10, 20, 30]}, ordinal={2: ["child", "adult", "old"]}
    ).fit(array, labels)
    assert_array_equal(of_array.predict_proba(array), model.predict_proba(frame))
    binned = RuleListClassifier(**QUICK, continuous={"fare": 7}, nominal=["crew", "rank"])
    binned.fit(frame.assign(rank=np.arange(200) % 9), labels)
    assert len(binned.schema_.columns[3].edges) > 5
    assert binned.schema_.columns[4].kind == "nominal"


def test_missing_cells():
    """An error, or a level of their own; a column that had none may let them pass."""
    frame, labels = people(), fates(people())
    gaps = frame.assign(fare=frame["fare"].where(frame["sex"] == "male"))
    with pytest.raises(DataError, match=r'column "fare" has a missing cell \(NaN\) in row'):
        RuleListClassifier(**QUICK, missing="error").fit(gaps, labels)
    with pytest.raises(DataError, match=r'in row .*: fill it, or fit with missing="level"'):
        classifier(missing="error").predict(gaps)
    model = RuleListClassifier(**QUICK).fit(gaps, labels)
    assert model.schema_.columns[3].has_missing_level
    assert model.score(gaps, labels) > 0.75
    unseen = frame.assign(age=frame["age"].where(frame["crew"]))
    with pytest.warns(UnknownLevelWarning, match="a missing cell of age"):
        assert model.predict(unseen).shape == (200,)
    with pytest.raises(DataError, match='unknown="ignore"'):
        model.set_params(unknown="error").predict(unseen)


def test_tables():
    """A table that was read in chunks has its labels in a column; so has what is classified."""
    frame, labels = people(), fates(people())
    declared = {"continuous": {"fare": [0, 5, 20, 100]}}
    table = Table.from_frame(frame.assign(fate=labels), **declared)
    of_table = RuleListClassifier(**QUICK).fit(table, "fate")
    of_frame = RuleListClassifier(**QUICK, **declared).fit(frame, labels)
    assert of_table.classes_.tolist() == ["died", "lived"]
    assert of_table.rules_.to_dict() == of_frame.rules_.to_dict()
    assert_array_equal(of_table.predict_proba(frame), of_frame.predict_proba(frame))
    assert of_table.predict(table).shape == (table.n_distinct,)
    with pytest.raises(ParameterError, match="y must be the name of the label column"):
        RuleListClassifier(**QUICK).fit(table, labels)
    with pytest.raises(ParameterError, match="y must be the name of the label column"):
        RuleListClassifier(**QUICK).fit(table, "destiny")
    with pytest.raises(ParameterError, match="sample_weight must be None with a Table"):
        RuleListClassifier(**QUICK).fit(table, "fate", sample_weight=np.ones(200))
    with pytest.raises(DataError, match="columns and levels"):
        of_table.predict(Table.from_frame(frame[["sex", "crew"]]))


def test_labeled_rows():
    """Rows with their labels are what is learned from, whoever puts them together."""
    frame, labels = people(), fates(people())
    how = {"owner": "test", "n_bins": 4, "kinds": Declarations()}
    rows = LabeledRows.of(GivenRows(frame, labels), **how, source="people.csv")
    model = RuleListClassifier(**QUICK).fit(rows)
    assert model.rules_.to_dict() == classifier().rules_.to_dict()
    assert (model.target_, model.summary_.source) == ("fate", "people.csv")
    with pytest.raises(DataError, match=r'^column "fate" must have at least two classes'):
        LabeledRows.of(GivenRows(frame, ["a"] * 200), **how, labels_name='column "fate"')


@pytest.mark.parametrize(
    ("parameters", "cells", "words"),
    [
        ({}, {"fare": np.inf}, "got inf in row 42"),
        ({"missing": "error"}, {"fare": None}, "has a missing cell (NaN) in row 42"),
        ({"unknown": "error"}, {"sex": "alien"}, '"alien" in row 42'),
        ({"unknown": "error"}, {"sex": None}, "a missing cell (NaN) in row 42, and had none"),
        ({"continuous": {"fare": [0, 9]}}, {"fare": "x"}, "must hold numbers, got 'x' in row 42"),
    ],
    ids=str,
)
def test_rows_of_blocks_are_numbered(parameters, cells, words):
    """In the second block of a file, the row that is named is the file's."""
    model = RuleListClassifier(**QUICK, **parameters).fit(people(60), fates(people(60)))
    block = people(3).astype(object)
    block.loc[1, list(cells)] = list(cells.values())
    with pytest.raises(DataError, match=re.escape(words)):
        model.encode(block, first_row=41)


def test_rows_may_be_encoded_beforehand():
    """Commands encode blocks of a file once, and ask what is predicted of the codes."""
    model, good = classifier(), people(50)
    assert_array_equal(model.predict_proba_codes(model.encode(good)), model.predict_proba(good))
    assert_array_equal(
        model.credible_interval_codes(model.encode(good), 0.5), model.credible_interval(good, 0.5)
    )


def test_a_column_may_be_called_like_the_labels():
    """Names are the user's; the column of labels is ours."""
    frame = people().rename(columns={"sex": "fate", "crew": "self", "age": "label"})
    model = RuleListClassifier(**QUICK).fit(frame, fates(people()))
    assert model.schema_.names == ("fate", "self", "label", "fare")
    assert_array_equal(model.predict(frame), classifier().predict(people()))


def test_columns_may_be_declared_by_any_list():
    """`nominal=frame.columns[[0, 2]]` is how one writes it."""
    usual = classifier(nominal=("sex", "age"), ordinal=("crew",))
    declared = {"nominal": pd.Index(["sex", "age"]), "ordinal": np.array(["crew"])}
    model = RuleListClassifier(**QUICK, **declared).fit(people(), fates(people()))
    assert model.schema_ == usual.schema_
    assert model.schema_.columns[1].kind == "ordinal"
