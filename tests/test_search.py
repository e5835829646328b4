"""A search runs the engines that it names on any posterior, and no more blocks than pay."""

from typing import Any

import pytest

import samplers
from bayescascade.model.search import SAMPLED, Search, default_steps, most_blocks
from tests.contracts.listed import gibbs


def search(**changed: Any) -> Search:
    parameters = {
        "search": "anneal+metropolis", "n_steps": None, "n_chains": 2, "n_jobs": 1,
        "random_state": 0, "checkpoint": None, "resume": False, "progress": None,
    }  # fmt: skip
    return Search(**(parameters | changed))


@pytest.mark.parametrize("name", SAMPLED)
def test_blocks_are_as_many_as_asked_for(name):
    """A block too many costs a pass over all rows."""
    run = search(search=name).run(gibbs(), default_steps=600, n_blocks=20)
    assert run.traces["log_density"].shape == (2, 20)


def test_chains_start_from_their_own_ends_made_better(monkeypatch):
    """If all started from the best, R-hat could not see that others ended elsewhere."""
    few, starts, plain = {"n_steps": 3, "n_chains": 4}, [], samplers.metropolis

    def seen(target, **how):
        starts.extend(how["initial_states"])
        return plain(target, **how)

    monkeypatch.setattr(samplers, "metropolis", seen)
    annealed = search(search="anneal", **few).run(gibbs(), default_steps=600)
    posterior = gibbs()
    best = max(range(-20, 20), key=posterior.log_density)

    def polished(state):
        return state + (state < best) - (state > best)

    monkeypatch.setattr(type(posterior), "polished", staticmethod(polished), raising=False)
    run = search(**few).run(posterior, default_steps=600)
    assert len(set(annealed.final_states)) > 1
    assert starts == [polished(state) for state in annealed.final_states]
    assert run.best_log_density >= max(map(posterior.log_density, starts))


def test_small_tables_have_a_thousand_blocks_and_large_ones_enough():
    """Up to 40,000 rows nothing changes; four chains still have the 400 draws that ESS asks for."""
    assert {most_blocks(n) for n in (0, 1, 14, 2_000, 40_000)} == {1000}
    assert [most_blocks(n, 5_000) for n in (0, 14, 1_000, 2_000, 40_000)] == [1000] * 3 + [625, 125]
    blocks = [most_blocks(n) for n in (40_001, 80_000, 200_000, 10**6, 10**9)]
    assert blocks == [999, 500, 200, 125, 125]
    assert 4 * min(blocks) >= 400


def test_steps_grow_with_the_rows_until_they_are_dear():
    assert [default_steps(n) for n in (0, 14, 500, 40_000, 200_000, 10**6)] == [
        200_000, 200_000, 500_000, 1_000_000, 200_000, 50_000,
    ]  # fmt: skip
