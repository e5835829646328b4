"""The models near the best: sums, order, comparisons, and what ends a listing early."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator

from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.model.near_best import Alternative, Alternatives, HasNearBest
from bayescascade.report.page import render

# name: log density, key, gains of two columns, prediction for two rows
STATES = {
    "a": (0.0, "A", (1.0, 0.0), (0.9, 0.2)),
    "b": (-0.5, "B", (0.0, 1.0), (0.4, 0.3)),
    "c": (-0.5, "B", (0.0, 1.0), (0.4, 0.3)),
    "d": (-1.0, "A", (1.0, 0.0), (0.9, 0.2)),
    "e": (-2.0, "C", (0.5, 0.5), (0.8, 0.1)),
}
TOTAL = 2.72  # of all states, listed or not


class Listing(HasNearBest, BaseEstimator):
    """A made-up family of five states and three models."""

    def __init__(self, end=None, is_proved=True, time_limit=None, total=TOTAL):
        self.end, self.is_proved, self.time_limit = end, is_proved, time_limit
        self.total = total
        self.feature_names_in_ = np.array(["age", "sex"], object)

    def fit(self): ...

    def _alternatives(self, nats):  # noqa: ARG002 - it has few states
        def states():
            for name, (log_density, key, *_) in STATES.items():
                yield Alternative(name, log_density, key)
                if self.end is not None and name == "b":
                    raise self.end

        def predictions(models, X):
            of_one = np.array([STATES[name][3] for name in models])
            return np.stack([1 - of_one, of_one], axis=-1)[:, X]

        return Alternatives(
            states=states(),
            is_proved=self.is_proved,
            log_sum=(np.log(self.total), np.log(self.total)) if self.is_proved else None,
            found="among 9 drawn ones",
            nouns=("state", "states"),
            same="states of one key",
            readable=lambda name: name,
            importances=lambda name: np.array(STATES[name][2]),
            parts=lambda name: {"everyone": "100.0 %", name: "1.0 %"},
            predictions=predictions,
        )


def test_states_of_one_model_are_added_up():
    """The best state need not be of the most probable model."""
    near = Listing().near_best(2.5)
    assert near.models == ["a", "b", "e"]
    worth = np.array([1 + np.exp(-1), 2 * np.exp(-0.5), np.exp(-2)])
    order = np.argsort(-worth)
    assert_allclose(near.probabilities, worth[order] / TOTAL, rtol=1e-12)
    assert_allclose(near.share, worth.sum() / TOTAL, rtol=1e-12)
    assert near.n_states.tolist() == [2, 2, 1]
    assert near.is_complete
    assert near.n_first == 3


def test_models_of_many_improbable_states_may_be_missing():
    """If the rest is large, it may be one model more probable than all that are listed."""
    near = Listing(total=3.5).near_best(2.5)
    assert not near.is_complete
    assert "may be missing" in near.ended
    assert near.n_first == 2  # the rest, .22, exceeds the third
    assert "proved to be the most probable: the first 2" in render(near.page())


def test_models_that_are_not_proved_have_no_probability():
    """A share of draws must not be called a share of the posterior."""
    near = Listing(is_proved=False).near_best(2.5)
    assert near.probabilities is None
    assert near.share is None
    assert not near.is_complete
    assert near.n_first == 0
    text = render(near.page())
    assert "not proved" in text
    assert "not known" in text


@pytest.mark.parametrize(
    ("end", "words"),
    [(KeyboardInterrupt(), "interrupted"), (TooLargeError("memory_limit", ""), "memory limit")],
)
def test_what_was_found_before_an_end_is_kept(end, words):
    """A listing may take long, and its first models are the ones that matter."""
    near = Listing(end).near_best(2.5)
    assert near.models == ["a", "b"]
    assert not near.is_complete
    assert words in near.ended
    assert words in render(near.page())


def test_the_time_limit_ends_a_listing():
    """The limit of the fit also holds here."""
    with pytest.raises(KeyboardInterrupt):  # no model was found in no time
        Listing(time_limit=1e-9).near_best(2.5)


def test_further_models_are_left_out_but_no_state_of_those_listed():
    """Of equally probable states, some come after the first of a model too many."""
    near = Listing().near_best(2.5, most=1)
    assert near.models == ["a"]
    assert not near.is_complete
    assert near.n_states.tolist() == [1]  # its second state is less probable than "b"
    assert "more than 1" in near.ended


def test_columns_and_rows_on_which_models_differ():
    """A reader asks which columns are needed, and which rows are in doubt."""
    near = Listing().near_best(2.5)
    weights = near.weights
    table = near.importances.loc[["age", "sex"]]
    assert table["least"].tolist() == [0, 0]
    assert table["most"].tolist() == [1, 1]
    assert_allclose(table["mean"], weights @ near.gains)
    assert_allclose(table["inclusion"], [weights[0] + weights[2], weights[1] + weights[2]])
    (pair,) = near.exchanges.to_dict("records")
    assert (pair["one"], pair["other"]) == ("age", "sex")
    assert_allclose([pair["either"], pair["both"]], [1.0, weights[2]])
    found = near.disagreements([0, 1])
    assert isinstance(found, pd.DataFrame)
    assert found.index.tolist() == [0, 1]
    assert_allclose(found.loc[0, ["low", "high"]].astype(float), [0.4, 0.9])
    assert found["differs"].tolist() == [True, False]


@pytest.mark.parametrize("given", [{"nats": -1.0}, {"most": 0}, {"nats": None}])
def test_impossible_requests_are_refused(given):
    """A message must name the parameter."""
    with pytest.raises(ParameterError, match=next(iter(given))):
        Listing().near_best(**given)


def test_prints_fit_80_columns():
    """They are read in terminals."""
    text = render(Listing().near_best(2.5).page())
    assert max(map(len, text.splitlines())) <= 80
    assert "3 models within 2.5 nats of the best (proved: no others are)" in text
    assert "states of one key are one model: 5 states" in text
