"""A level that fit has not seen breaks neither a prediction nor a cross-validation."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayescascade
from bayescascade import (
    BranchCascade,
    DataError,
    DensityEstimationTree,
    DensityRuleList,
    LeafCascade,
    ParameterError,
    SmoothedHistogram,
    UnknownLevelError,
    UnknownLevelWarning,
)
from bayescascade.data.cell_policy import UnknownCells
from tests.contracts.listed import ESTIMATORS, answers, fitted, rows

NEW = rows().assign(age=rows()["age"].where(np.arange(len(rows())) % 50 > 0, "ancient"))
"""Three rows, 1, 51 and 101, are of an age that nobody had."""


TREATING = [n for n, c in ESTIMATORS.items() if "unknown" in c.make.declares.declared()]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_with_unknown_levels_are_answered_and_told_of(name):
    """Other rows are answered as before; one warning says which rows, levels and what of them."""
    model = fitted(name)
    text = r'^3 rows have values that fit did not see \(such as age "ancient"\): such a cell \w+'
    with pytest.warns(UnknownLevelWarning, match=text) as caught:
        found = answers(model, NEW)
    assert len(caught) == 1
    assert caught[0].filename == answers.__code__.co_filename
    assert np.isfinite(found).all()
    if hasattr(model, "score"):  # of a fold in cross-validation, which may lack levels
        with pytest.warns(UnknownLevelWarning):
            assert np.isfinite(model.score(NEW, *ESTIMATORS[name].beside()[:1]))
    is_known = (NEW["age"] == rows()["age"]).to_numpy()
    np.testing.assert_array_equal(found[is_known], answers(model, rows())[is_known])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_with_unknown_levels_are_counted_over_blocks(name):
    """Commands say once how many there are of a file; a warning of each block would not add up."""
    model, found = fitted(name), UnknownCells()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownLevelWarning)
        for first_row in (1, 101):
            block = NEW[first_row - 1 : first_row + 99]
            if hasattr(model, "score_samples"):
                model.encode(block, first_row=first_row, unknown=found)
            else:
                model.predict_block(block, first_row, unknown=found)
    assert (found.n_rows, found.levels) == (3, {"age": "ancient"})
    with pytest.warns(UnknownLevelWarning, match="^3 rows have values that fit did not see"):
        found.warn()


@pytest.mark.parametrize("name", TREATING)
def test_unknown_levels_may_be_errors(name):
    """Column, level and row are named, and what would let them pass."""
    model = clone(ESTIMATORS[name].make(**ESTIMATORS[name].parameters))
    vars(model).update(vars(fitted(name)), unknown="error")
    with pytest.raises(UnknownLevelError, match=r'"age" has the unknown level "ancient".*unknown='):
        answers(model, NEW)
    with pytest.raises(UnknownLevelError) as refused:
        answers(model, NEW[30:])
    assert (refused.value.column, refused.value.level, refused.value.row) == ("age", "ancient", 21)
    with pytest.raises(ParameterError, match="unknown must be one of"):
        ESTIMATORS[name].fit(unknown="guess")


def tiny_densities():
    """Yield a fitted density of each kind over three small columns."""
    frame = pd.DataFrame(
        itertools.product(["a", "b"], ["x", "y", "z"], [0, 1]), columns=list("uvw")
    )
    frame = frame.loc[np.repeat(frame.index, np.arange(12) ** 2 % 5)]
    chains = {"n_steps": 200, "n_chains": 2, "random_state": 0}
    for model in (
        LeafCascade(random_state=0),
        LeafCascade(random_state=0, predictive="average"),
        BranchCascade(random_state=0, leaf="independent"),
        BranchCascade(random_state=0, leaf="dependent", partitions="levels"),
        DensityRuleList(**chains),
        DensityRuleList(**chains, predictive="average"),
        DensityEstimationTree(random_state=0),
        SmoothedHistogram(),
    ):
        yield model.fit(frame), len(frame)


@pytest.mark.slow
def test_the_rows_outside_the_domain_are_worth_what_the_rule_of_succession_says():
    """Enumerated: one more level in every column, and the proof's sum to the last digit."""
    levels = (["a", "b", "?"], ["x", "y", "z", "?"], [0, 1, 9])
    cells = pd.DataFrame(itertools.product(*levels), columns=list("uvw"))
    n_unknown = (cells == np.array(["?", "?", 9], dtype=object)).sum(axis=1).to_numpy()
    for model, n in tiny_densities():
        with pytest.warns(UnknownLevelWarning):
            densities = np.exp(model.score_samples(cells))
        each = 1 / (3 * (n + 1))
        assert densities[n_unknown == 0].sum() == pytest.approx(1.0)
        outside = densities[n_unknown > 0].sum()
        assert outside == pytest.approx((1 + each) ** 3 - 1, rel=1e-9)
        assert outside <= math.expm1(1 / (n + 1))
        assert densities[n_unknown == 3] == pytest.approx(each**3)
        ignored = model.set_params(unknown="ignore")
        with pytest.warns(UnknownLevelWarning, match="counts as missing"):
            marginals = np.exp(ignored.score_samples(cells))
        np.testing.assert_allclose(densities, marginals * each**n_unknown, rtol=1e-9)


def test_a_loaded_density_scores_the_unknown_alike(tmp_path):
    model = fitted("leaf")
    model.save(tmp_path / "model.json")
    with pytest.warns(UnknownLevelWarning):
        loaded, own = (
            bayescascade.load(tmp_path / "model.json").score_samples(NEW),
            answers(model, NEW),
        )
    np.testing.assert_array_equal(loaded, own)


def test_numbers_beyond_the_edges_are_unknown_but_no_numbers_are_errors():
    """A density claims no volume beyond its bins; an infinite fare is nobody's."""
    model = fitted("leaf")
    rich = rows()[:2].assign(fare=[1e6, 3.0])
    with pytest.warns(UnknownLevelWarning, match=r'1 row has .* \(fare "1000000"\)'):
        found = model.score_samples(rich)
    known = model.score_samples(rich.assign(fare=np.nan))
    assert found[0] == pytest.approx(known[0] - math.log(4 * 151))
    assert found[1] == model.score_samples(rows()[:2].assign(fare=3.0))[1]
    with pytest.raises(DataError, match=r"fare.*must hold finite numbers, got inf in row 1"):
        model.score_samples(rich.assign(fare=np.inf))
    with pytest.raises(DataError, match="outside"):
        ESTIMATORS["histogram"].fit(unknown="error").score_samples(rich)


def test_cells_of_a_file_do_not_act_on_the_terminal_that_a_warning_is_shown_on():
    """A level may hold line breaks and escape codes; the warning is one line, and advises."""
    model = fitted("leaf")
    row = NEW[:1].assign(age="x\ny\x1b[2J")
    with pytest.warns(UnknownLevelWarning) as caught:
        model.score_samples(row)
    (text,) = (str(each.message) for each in caught)
    assert text.isprintable()
    assert r'age "x\ny\x1b[2J"' in text
    assert text.endswith(
        "; declare all levels when fitting, or declare whole numbers as continuous"
    )
    assert (
        model.explain(row.iloc[0])
        .splitlines()[0]
        .startswith(r"age is x\ny\x1b[2J, which no training")
    )


@pytest.mark.filterwarnings("ignore::bayescascade.UnknownLevelWarning")
@pytest.mark.parametrize("unknown", ["rare", "ignore"])
def test_rows_that_are_alike_but_for_what_is_unknown_are_told_apart(unknown):
    """Explained together, each row must be told its own odd value, not that of a row before."""
    frame = NEW[48:54].astype(object).reset_index(drop=True)
    frame.loc[[0, 3], "age"], frame.loc[1, "age"] = "medieval", None
    model = clone(fitted("leaf")).set_params(unknown=unknown).fit(rows())
    texts = model.explain_rows(frame)["because"].tolist()
    assert texts == [model.explain(frame.iloc[row]) for row in range(len(frame))]
    assert len({*texts}) > 3


def test_explanations_and_intervals_of_unknown_rows():
    """Why a row is rare must be said, and that it is rare holds for all of the posterior."""
    model, row = fitted("leaf"), NEW.iloc[0]
    first, *others = model.explain(row).splitlines()
    assert first == "age is ancient, which no training row has"
    assert others == model.explain({**row, "age": None}).splitlines()
    rich = model.explain({**row, "age": "adult", "fare": 1e6}).splitlines()[0]
    assert rich == "fare is 1000000, which is outside the range of the training rows"
    with pytest.warns(UnknownLevelWarning):
        low, high = model.credible_interval(NEW[:1])[0]
    with pytest.warns(UnknownLevelWarning):
        density = np.exp(model.score_samples(NEW[:1])[0])
    assert low < density < high
    with pytest.raises(DataError, match="contradicts"):
        model.condition({"age": "adult"}).explain(row)
