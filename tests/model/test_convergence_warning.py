"""Chains that do not agree are told of where nobody prints the model: in pipelines and searches."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_validate

from bayescascade import LeafCascade, NeighborCompressionClassifier, explore
from tests.commands import run
from tests.contracts.listed import ESTIMATORS, gibbs, rows
from tests.people import DECLARED

BRIEF = {"n_steps": 60, "n_chains": 2, "random_state": 3, "search": "anneal+metropolis"}
TOLD = (
    "R-hat must be at most 1.01 and ESS at least 400, see summary_; "
    r"run longer chains \(n_steps\)"
)


def test_fits_warn_of_what_falls_short_and_say_what_to_do():
    """Once a fit, from the user's line."""
    with pytest.warns(ConvergenceWarning, match=TOLD) as caught:
        model = LeafCascade(**BRIEF, **DECLARED).fit(rows())
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.summary_.warnings  # with the figures
    labels = ESTIMATORS["tree"].labels()
    for case in ("tree", "labels", "neighbors"):
        with pytest.warns(ConvergenceWarning, match="run longer chains"):
            ESTIMATORS[case].make(**{**ESTIMATORS[case].parameters, "n_steps": 60}).fit(
                rows(), labels
            )
    with pytest.warns(ConvergenceWarning, match=TOLD):
        explore(gibbs(), n_steps=60, random_state=0)


def test_folds_warn_in_equal_words():
    """One a fit, as scikit-learn's own; what differs from fold to fold is in the summaries."""
    model = LeafCascade(**BRIEF, **DECLARED)
    with pytest.warns(ConvergenceWarning, match=TOLD) as caught:
        found = cross_validate(model, rows(), cv=3, return_estimator=True)
    assert len({str(one.message) for one in caught}) == 1
    texts = {tuple(one.summary_.warnings) for one in found["estimator"]}
    assert len(texts) == len(caught) == 3


@pytest.mark.slow
def test_what_is_sure_is_silent():
    """An exact search, one that draws nothing, and chains that agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LeafCascade(search="exact", partitions="levels", random_state=0, **DECLARED).fit(rows())
        LeafCascade(**{**BRIEF, "search": "anneal"}, **DECLARED).fit(rows())
        NeighborCompressionClassifier(n_prototypes=4, random_state=0).fit(
            rows(), ESTIMATORS["tree"].labels()
        )
        explore(gibbs(), n_steps=10_000, random_state=0)


def test_the_command_says_it_once(tmp_path):
    """As a part of what it prints, or on stderr, not as both."""
    rows().to_csv(tmp_path / "x.csv", index=False)
    arguments = ["fit", tmp_path / "x.csv", "--steps", 60, "--chains", 2, "--seed", 3,
                 "--search", "anneal+metropolis", "--leaf", "uniform"]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        found = run(*arguments)
    assert found.exit_code == 0
    assert found.stdout.count("run longer chains") == 1
    assert found.stderr.count("run longer chains") == 1  # where stdout is no terminal
