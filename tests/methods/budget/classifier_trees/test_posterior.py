"""What nodes buy: all sets weighed exactly, chains beside them, and what an estimator says."""

from dataclasses import replace

import numpy as np
import pytest

import bayescascade
from bayescascade import SubmodularTreeClassifier, explore
from bayescascade.base.errors import ModelFileError, ParameterError, TooLargeError
from bayescascade.methods.budget.classifier_trees.posterior import solved
from tests.methods.budget.classifier_trees.problems import ROOT, TWO_LEAVES, PurchaseProblem
from tests.methods.budget.classifier_trees.test_classifier_trees import COSTS, moons

MANY = PurchaseProblem("many", 1, n_features=8, n_rows=25)
STEPS = PurchaseProblem("steps", 2, n_classes=3, basis="bins", n_rows=50, tradeoff=4.0)


def item_probabilities(problem, **changed):
    """Return how often all rows pay for each item, over all states."""
    chances = problem.log_densities(**changed)
    chances = np.exp(chances - np.logaddexp.reduce(chances))
    shares = [problem.rows.weights[there].sum() for _, there, _ in problem.leaves]
    found = 0.0
    for chance, held in zip(chances, problem.held.values(), strict=True):
        used = [np.isin(np.arange(problem.n_features), list(one)) for one in held]
        found += chance * np.average(problem.items.paid(np.array(used)), axis=0, weights=shares)
    return found


@pytest.mark.parametrize("problem", [ROOT, MANY, TWO_LEAVES, STEPS], ids=lambda one: one.name)
def test_exact_probabilities_are_those_of_all_sets(problem):
    posterior = problem.posterior()
    found = explore(posterior, "exact", solve=solved, random_state=0)
    exact = found.solution.result
    np.testing.assert_allclose(exact[0], item_probabilities(problem), atol=1e-9)
    densities = problem.log_densities()
    assert found.log_density == pytest.approx(densities.max(), abs=1e-9)
    assert problem.held[found.state] == [*problem.held.values()][int(densities.argmax())]
    drawn = [state for chain in found.run_.draws for state in chain]
    near = posterior.item_probabilities(drawn) - exact
    assert np.abs(near).max() < 5 * 0.5 / len(drawn) ** 0.5
    wrong = np.abs(item_probabilities(problem, tradeoff=0.0) - exact[0]).max()
    assert wrong > 5 * 0.5 / len(drawn) ** 0.5


def test_an_estimator_says_what_items_are_probable(tmp_path):
    X, y = moons(400, 0)
    model = SubmodularTreeClassifier(costs=COSTS, max_depth=2, random_state=0, tradeoff=0.01)
    model.fit(X, y)
    assert model.posterior_.tradeoff == pytest.approx(4.0)
    before = model.item_probabilities_
    assert before.shape == (len(model.tree_.nodes), model.items_.n_items)
    nothing = model.within(0.1)  # whose tree has no gates: all is open again
    assert nothing.item_probabilities_.shape[0] == 1
    np.testing.assert_array_equal(model.item_probabilities_, before)
    model.save(tmp_path / "m.json")
    with pytest.raises(AttributeError, match="read from a file"):
        _ = bayescascade.load(tmp_path / "m.json").posterior_


def test_what_is_no_state_or_too_large_is_refused():
    posterior = TWO_LEAVES.posterior()
    for encoded in ([[], [0], [0]], [[0], [1], [1]], [[], [], []], [[9], [], []], [[0]]):
        with pytest.raises(ModelFileError, match="a stored set of purchases"):
            posterior.decode_state(encoded)
    with pytest.raises(ParameterError, match="tradeoff must be"):
        posterior.with_tradeoff(-1.0)
    many = replace(MANY, n_features=21).posterior()
    with pytest.raises(TooLargeError, match="got 21 features"):
        explore(many, "exact", solve=solved)
