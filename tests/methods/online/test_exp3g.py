"""Exponential weights under feedback graphs: by hand, unbiased, and what cannot be used."""

import numpy as np
import pytest

from bayescascade import Exp3G
from bayescascade.base.errors import DataError, ParameterError


def graph_of(rng, k):
    """Return a random graph in which each action is shown by some action."""
    graph = rng.random((k, k)) < 0.4
    graph[rng.integers(k, size=k), np.arange(k)] = True
    return graph


def expected_estimates(p, graph, losses, seen_by):
    """Return the expectation of estimated losses over the action drawn, by enumeration."""
    found = np.zeros(len(p))
    for action, chance in enumerate(p):
        constants = Exp3G(len(p), eta=0.3, gamma=0.1)
        constants.learn(np.where(graph[action], losses, np.nan), graph, seen_by)
        found += chance * constants.estimated_losses
    return found


def test_estimates_are_unbiased(rng):
    """Else the gate would prefer experts for being seen, not for being right."""
    bias = 0.0
    for _ in range(20):
        k = int(rng.integers(2, 7))
        graph, losses, p = graph_of(rng, k), rng.random(k), rng.dirichlet(np.ones(k))
        np.testing.assert_allclose(expected_estimates(p, graph, losses, p), losses, atol=1e-12)
        # the broken twin divides by what it would be seen by under equal probabilities
        wrong = np.full(k, 1 / k)
        bias = max(bias, np.abs(expected_estimates(p, graph, losses, wrong) - losses).max())
    assert bias > 0.1


def test_rounds_are_those_of_the_slow_twin(rng):
    """Weights are the exponentials of what was estimated, over rounds with other graphs."""
    constants = Exp3G(5, eta=0.2, gamma=0.3)
    q = np.full(5, 0.2)
    for _ in range(50):
        graph, losses = graph_of(rng, 5), rng.random(5)
        explores = np.array([True, False, True, False, False])
        p = constants.probabilities(explores)
        np.testing.assert_allclose(p, 0.7 * q + 0.3 * explores / 2, atol=1e-12)
        action = rng.choice(5, p=p)
        constants.learn(np.where(graph[action], losses, np.nan), graph, p)
        for i in range(5):
            if graph[action, i]:
                seen = sum(p[j] for j in range(5) if graph[j, i])
                q[i] *= np.exp(-0.2 * losses[i] / seen)
        q /= q.sum()
        np.testing.assert_allclose(constants.weights, q, atol=1e-9)


@pytest.mark.parametrize(
    ("losses", "graph", "p", "message"),
    [
        ([0.0, np.inf], np.ones((2, 2), bool), [0.5, 0.5], "losses must be 2 finite"),
        ([0.0, 1.0], np.ones((2, 3), bool), [0.5, 0.5], "graph must be 2 x 2"),
        ([0.0, 1.0], np.ones((2, 2), bool), [0.9, 0.5], "probabilities must be 2 numbers"),
        ([0.0, 1.0], np.eye(2, dtype=bool), [1.0, 0.0], "got none for action 1"),
    ],
)
def test_what_cannot_be_learned_is_named(losses, graph, p, message):
    with pytest.raises(DataError, match=message):
        Exp3G(2, eta=0.1, gamma=0.1).learn(losses, graph, p)


def test_somebody_must_explore():
    with pytest.raises(ParameterError, match="explorers must be 2 truth values"):
        Exp3G(2, eta=0.1, gamma=0.1).probabilities([False, False])
    with pytest.raises(ParameterError, match="gamma must be"):
        Exp3G(2, eta=0.1, gamma=1.5)
