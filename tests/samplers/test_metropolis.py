"""The Metropolis-Hastings step, and the engine that repeats it."""

import math

import numpy as np
import pytest

import samplers
from samplers.blocks import MoveChoice
from samplers.metropolis import advance_block
from tests.samplers.exhaustive import normalize, transition_matrix
from tests.samplers.targets import (
    BROKEN,
    MOVES,
    FastRing,
    FullRing,
    Jump,
    Ring,
    Turn,
    WithoutHastings,
    all_draws,
)
from tests.statistical.chi_square import fits

STATES = list(range(6))


def test_step_follows_the_exact_kernel(rng):
    """The step that runs must be the kernel that the exact tests speak about."""
    chain = samplers.init(2, Ring())
    exact = transition_matrix(Turn(), Ring(), STATES)[2]
    broken = WithoutHastings(Turn())

    def ends(move):
        return [samplers.step(rng, chain, Ring(), move)[0].state for _ in range(3000)]

    reached = np.flatnonzero(exact)
    assert set(ends(Turn())) <= set(reached)
    assert fits(np.searchsorted(reached, ends(Turn())), exact[reached])
    assert not fits(np.searchsorted(reached, ends(broken)), exact[reached])


def test_step_info_means_what_it_says(rng):
    """A user who reads `proposed` must not be given the accepted state, nor a stale density."""
    seen = set()
    chain = samplers.init(4, Ring())
    for _ in range(300):
        move = (Turn(), Jump())[int(rng.integers(2))]
        after, info = samplers.step(rng, chain, Ring(), move, 0.5)
        claims = {one.state: one.log_q_ratio for one, _ in move.proposals(chain.state)}
        assert info.log_q_ratio == claims[info.proposed]
        if info.log_q_ratio == -math.inf:
            assert info.log_density == -math.inf
            assert not info.accepted
        else:
            assert info.log_density == Ring().log_density(info.proposed)
        assert after == (
            samplers.ChainState(info.proposed, info.log_density) if info.accepted else chain
        )
        seen.add((info.accepted, info.log_q_ratio == -math.inf))
        chain = after
    assert seen == {(True, False), (False, False), (False, True)}


def test_step_counts_mean_what_they_say(rng):
    """The best state of a block is the first of the best, its start included; moves are counted."""
    target = Ring()
    for n_steps in (1, 2, 200):
        chain, counts = advance_block(
            rng, samplers.init(4, target), target, MoveChoice(MOVES, None, ()), n_steps, 1.0
        )
        assert sum(counts.proposed.values()) == n_steps
        assert set(counts.proposed) == set(counts.accepted) == set(MOVES)
        assert counts.log_density == chain.log_density == target.log_density(chain.state)
        assert (counts.best_state, counts.best_log_density) == (4, math.log(6.0))
    flat = Ring([1.0] * 6)
    chain, counts = advance_block(
        rng, samplers.init(2, flat), flat, MoveChoice(MOVES, None, ()), 200, 1.0
    )
    assert counts.best_state == 2
    assert counts.accepted["turn"] > 0


def test_selection_follows_the_weights(rng):
    choice = MoveChoice(MOVES, {"turn": 3.0, "jump": 1.0}, ())
    _, counts = advance_block(rng, samplers.init(1, Ring()), Ring(), choice, 10_000, 1.0)
    assert abs(counts.proposed["turn"] - 7500) < 5 * math.sqrt(10_000 * 0.75 * 0.25)


class _Constant:
    def __init__(self, value):
        self.value = value

    def log_density(self, state):
        return 0.0 if state == 0 else self.value


class _To:
    def __init__(self, state, log_q_ratio=0.0):
        self.proposal = samplers.Proposal(state, log_q_ratio)

    def propose(self, _rng, _state):
        return self.proposal


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_broken_contracts_are_named(rng, value):
    """A NaN that went unnoticed would reject every proposal in silence."""
    chain = samplers.init(0, _Constant(value))
    with pytest.raises(samplers.SamplerError, match=f"log density must be .*, got {value}"):
        samplers.step(rng, chain, _Constant(value), _To(1))
    with pytest.raises(samplers.SamplerError, match=f"log density must be .*, got {value}"):
        samplers.init(1, _Constant(value))
    with pytest.raises(samplers.SamplerError, match=f"log_q_ratio must be .*, got {value}"):
        samplers.step(rng, chain, _Constant(0.0), _To(1, value))


def test_states_off_the_support_are_never_entered(rng):
    """Also at inverse temperature 0, where minus infinity times zero would be NaN."""
    target = _Constant(-math.inf)
    chain = samplers.init(0, target)
    for inverse_temperature in (0.0, 1e-3, 1.0):
        after, info = samplers.step(rng, chain, target, _To(1), inverse_temperature)
        assert after == chain
        assert not info.accepted
    with pytest.raises(samplers.SamplerError, match="initial state must be finite, got -inf"):
        samplers.init(1, target)


@pytest.mark.parametrize(
    ("target", "moves", "is_right"),
    [
        pytest.param(FullRing(), None, True, marks=pytest.mark.slow),
        (FastRing(), None, True),
        (FullRing(), {"turn": Turn()}, True),
        (FullRing(), BROKEN, False),
        pytest.param(FullRing(), {"turn": BROKEN["turn"]}, False, marks=pytest.mark.slow),
    ],
    ids=["moves", "advance", "turn", "broken", "broken turn"],
)
def test_visits_follow_the_posterior(target, moves, is_right):
    """Draws 80 steps apart are correlated by less than 0.01: they count as independent."""
    kernel = transition_matrix(moves or MOVES, target, STATES)
    assert np.sort(np.abs(np.linalg.eigvals(kernel)))[-2] ** 80 < 0.01
    run = samplers.metropolis(target, n_steps=16_000, n_draws=150, moves=moves, seed=20)
    assert len(all_draws(run)) == 600
    exact = normalize(target, STATES)
    assert fits(all_draws(run), exact) == is_right


@pytest.mark.parametrize(
    ("n_steps", "warmup", "n_draws", "n_kept", "thin"),
    [(1, 0.25, 1000, 1, 1), (10, 0.5, 1000, 5, 1), (1000, 0.25, 100, 100, 7), (40, 0.0, 10, 10, 4)],
)
def test_steps_are_all_spent(n_steps, warmup, n_draws, n_kept, thin):
    """What does not divide evenly is warm-up: the draws are evenly spaced, and no step is lost."""
    reports = []
    run = samplers.metropolis(
        FullRing(), n_steps=n_steps, warmup=warmup, n_draws=n_draws, progress=reports.append, seed=1
    )
    assert run.traces["log_density"].shape == (4, n_kept)
    assert (sum(run.proposed.values()) == thin).all()
    assert reports[-1].done == reports[-1].total == n_steps


def test_best_state_is_found_inside_a_block():
    """A state need not be kept to be the best: it may be left again before the block ends."""
    run = samplers.metropolis(
        FullRing(), n_steps=200, warmup=0.0, n_draws=1, initial_states=[1], n_chains=1, seed=3
    )
    assert run.final_states != (4,)
    assert (run.best_state, run.best_log_density) == (4, math.log(6.0))


def test_best_state_of_the_warmup_counts():
    """The best state ever seen must not be lost because it was seen early."""
    target = Ring([1.0, 1e9, 1e9, 1e9, 1e9, 1e12])
    run = samplers.metropolis(
        target, n_steps=10, warmup=0.9, n_draws=1, initial_states=[5], n_chains=1,
        moves={"turn": Turn()}, keep_states=False, seed=1,
    )  # fmt: skip
    assert (run.best_state, run.best_log_density) == (5, math.log(1e12))
    assert run.draws == ((),)
