"""The sum over all rule lists: against enumeration, against chains, and in the estimators."""

import numpy as np
import pytest

from bayescascade.methods.rules.exact import states
from bayescascade.methods.rules.kernels.states import IDLE
from tests.methods.rules import large

N_PROBLEMS = 24


def flaws(seed):
    rng = np.random.default_rng([66, seed])
    posterior, words = large.draw_posterior(rng, seed % 4 == 3, 5)
    found = large.sum_flaws(posterior, dict(large.lists_of(posterior)), rng)
    return [f"{words}: {flaw}" for flaw in found]


@pytest.mark.parametrize("seed", range(N_PROBLEMS))
def test_sums_averages_and_masses_are_those_of_all_lists(seed):
    assert flaws(seed) == []


def test_idle_rules_counted_once_are_noticed(monkeypatch):
    def counting_once(*args):
        n_states, n_edges = expand(*args)
        edges = args[9]
        edges.times[:n_edges][edges.rules[:n_edges] <= IDLE] = 1.0
        return n_states, n_edges

    expand = states.expand
    monkeypatch.setattr(states, "expand", counting_once)
    assert any("the sum is" in flaw for seed in range(N_PROBLEMS) for flaw in flaws(seed))
