"""Draws of added rounds, and of replicas that join, against the enumerated posterior of lists."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bayescascade.model import rounds as rounds_module
from bayescascade.model.rounds import Rounds
from bayescascade.model.search import Search
from tests.methods.lists.problems import SUPPORTED
from tests.statistical.spaces import lists

SPACE = lists(SUPPORTED)
PROBABILITIES = SPACE.probabilities()
LIKELY = np.flatnonzero(PROBABILITIES > 0.01)
SEARCH = Search("metropolis", None, 4, 1, 0, None, resume=False, progress=None, until="agreed")
STEPS, DRAWS = 1_000, 200
PLAIN = Rounds(plain=4)
REPLICAS = Rounds(plain=1, exchange=2, share=1.0)


class TillItPleases(Rounds):
    """Chains that go on until they have seen the most probable list more often than it is."""

    def of_chains(self, posterior, n_steps, n_replicas, n_draws):
        del posterior, n_steps, n_replicas, n_draws
        best = SPACE.log_density(SPACE.states[PROBABILITIES.argmax()])

        def is_pleased(_, traces):
            seen = np.isclose(traces["log_density"], best).mean()
            return bool(seen > PROBABILITIES.max())

        return {"n_rounds": self.plain, "enough": is_pleased}


def deviations(rounds, n_repetitions):
    """Return how far mean shares are from probabilities, in standard errors, and rounds taken."""
    posterior, shares, taken = SPACE.posterior(), [], Counter()
    for seed in range(n_repetitions):
        run = replace(SEARCH, random_state=seed).run(
            posterior, default_steps=STEPS, n_blocks=DRAWS, n_replicas=4, rounds=rounds
        )
        drawn = np.array([SPACE.index[state] for chain in run.draws for state in chain])
        shares.append(np.bincount(drawn, minlength=len(SPACE.states))[LIKELY] / drawn.size)
        taken[run.method, run.extras.get("n_rounds", 1)] += 1
    errors = np.std(shares, axis=0, ddof=1) / np.sqrt(n_repetitions)
    return (np.mean(shares, axis=0) - PROBABILITIES[LIKELY]) / errors, taken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rounds", "n_repetitions"), [(PLAIN, 60), (REPLICAS, 20)], ids=["plain", "replicas"]
)
def test_draws_have_the_enumerated_posterior_wherever_chains_stop(
    rounds, n_repetitions, monkeypatch
):
    """What a page quotes as a posterior share would be off by when the search stopped."""
    monkeypatch.setattr(rounds_module, "_APART", 1.01)  # chains of so few lists are never far apart
    found, taken = deviations(rounds, n_repetitions)
    assert len(taken) > 1, f"all stop at the same time: {taken}"
    assert np.abs(found).max() < 4.0, (found.round(2), taken)


@pytest.mark.slow
def test_the_comparison_sees_chains_that_stop_when_they_please():
    """The test above must be able to fail."""
    found, _ = deviations(TillItPleases(plain=4), 60)
    assert np.abs(found).max() > 4.0
