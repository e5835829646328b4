"""Every posterior keeps one contract, so that every sampler and report works with it."""

import inspect
import json
import math
from functools import cache

import numpy as np
import pytest
from rich.cells import cell_len

import samplers
from bayescascade import (
    DensityRuleList,
    GibbsPosterior,
    LeafCascade,
    ParameterError,
    Posterior,
    explore,
)
from bayescascade.methods.lists.posterior import RuleListPosterior
from bayescascade.model.trace import read_trace
from samplers.types import (
    ProvidesAdvance,
    ProvidesDescription,
    ProvidesFingerprint,
    ProvidesGradient,
    ProvidesInitialState,
    ProvidesMoves,
    ProvidesMoveWeights,
    ProvidesStateCodec,
)
from tests.commands import invoke
from tests.contracts.listed import POSTERIORS, gibbs
from tests.interrupts import interrupted
from tests.methods.density.trees import slow_moves as tree_moves
from tests.methods.lists import slow_moves as list_moves

HOUSE = [name for name in POSTERIORS if name not in ("plane", "slope")]  # which offer no more


@pytest.fixture(params=HOUSE)
def posterior(request):
    return POSTERIORS[request.param]()


def plain_moves(posterior):
    """Return the moves that a posterior offers, or those that its compiled steps are held to."""
    if isinstance(posterior, ProvidesMoves):
        return posterior.moves()
    slow = list_moves if isinstance(posterior, RuleListPosterior) else tree_moves
    return slow.moves(posterior)


OF_ORACLES = ("pruning", "budget-tree", "boxes", "purchases")  # which list everything
PLAIN = [name for name in HOUSE if name not in OF_ORACLES]
plainly = pytest.mark.parametrize("name", PLAIN)


def some_states(posterior, n=25):
    rng = np.random.default_rng(0)
    return [posterior.initial_state(rng) for _ in range(n)]


def test_methods_are_those_of_the_protocol(posterior):
    members = [name for name, _ in inspect.getmembers(Posterior, inspect.isfunction)]
    wanted = [name for name in members if not name.startswith("_")]
    assert {"log_prior", "log_likelihood", "log_density", "describe"} <= set(wanted)
    for name in wanted:
        expected = list(inspect.signature(getattr(Posterior, name)).parameters)[1:]
        assert list(inspect.signature(getattr(posterior, name)).parameters) == expected
    for hook in (ProvidesInitialState, ProvidesDescription):
        assert isinstance(posterior, hook)
    assert isinstance(posterior, ProvidesMoves | ProvidesAdvance)


def test_densities_are_sums_of_finite_parts(posterior):
    for state in some_states(posterior):
        total = posterior.log_density(state)
        assert isinstance(total, float)
        assert math.isfinite(total)
        parts = posterior.log_prior(state) + posterior.log_likelihood(state)
        assert total == pytest.approx(parts, rel=1e-12, abs=1e-9)


def test_descriptions_always_have_the_same_keys(posterior):
    described = [posterior.describe(state) for state in some_states(posterior)]
    assert len({tuple(one) for one in described}) == 1
    assert all(isinstance(value, float) for one in described for value in one.values())


@plainly
def test_moves_propose_states_of_the_posterior(name):
    """Whatever a move proposes must have a density, -inf included, and leave its argument alone."""
    posterior = POSTERIORS[name]()
    rng = np.random.default_rng(1)
    for move in plain_moves(posterior).values():
        for state in some_states(posterior, 5):
            before = posterior.describe(state)
            proposal = move.propose(rng, state)
            assert proposal.log_q_ratio < math.inf
            assert not math.isnan(posterior.log_density(proposal.state))
            assert posterior.describe(state) == before


@plainly
def test_generic_engines_run_on_the_moves(name):
    posterior = POSTERIORS[name]()
    run = samplers.metropolis(
        posterior, moves=plain_moves(posterior), n_steps=60, n_draws=10, n_chains=2, seed=1
    )
    assert set(run.proposed) == set(plain_moves(posterior))
    assert set(posterior.describe(run.best_state)) <= set(run.traces)
    assert run.best_log_density == pytest.approx(posterior.log_density(run.best_state), abs=1e-9)


COMPILED = (
    "leaf", "branch", "inclusion", "density-list", "label-list", "pruning", "budget-tree",
    "purchases", "boxes",
)  # fmt: skip


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_posteriors_offer_every_hook(name):
    posterior = POSTERIORS[name]()
    for hook in (ProvidesAdvance, ProvidesMoveWeights, ProvidesStateCodec, ProvidesFingerprint):
        assert isinstance(posterior, hook)
    run = samplers.metropolis(posterior, n_steps=10, n_chains=1, seed=0)
    assert set(posterior.move_weights()) == set(run.proposed)
    assert sum(counts.sum() for counts in run.proposed.values()) > 0
    starts = some_states(posterior)
    assert len(set(map(repr, starts))) > 3  # R-hat compares chains from different places
    for state in starts:
        assert (
            posterior.decode_state(json.loads(json.dumps(posterior.encode_state(state)))) == state
        )
    # steps add up small changes: what they add up to must stay what it is called
    state, counts = posterior.advance(np.random.default_rng(2), starts[0], 5000, 0.5)
    assert counts.log_density == pytest.approx(posterior.log_density(state), abs=1e-9)
    assert sum(counts.proposed.values()) == 5000
    best = posterior.log_density(counts.best_state)
    assert counts.best_log_density == pytest.approx(best, abs=1e-9)
    assert best >= counts.log_density - 1e-9
    assert posterior.fingerprint() == POSTERIORS[name]().fingerprint()


SHORT = {"n_steps": 200, "n_chains": 2, "n_draws": 50, "random_state": 0}


def search_of(posterior):
    """Return a search that can do with what a posterior offers."""
    return "langevin" if isinstance(posterior, ProvidesGradient) else "anneal+metropolis"


@cache
def explored(name):
    """Return what a short run over a listed posterior finds; treat it as read-only."""
    posterior = POSTERIORS[name]()
    return explore(posterior, search_of(posterior), **SHORT)


@pytest.mark.parametrize("name", POSTERIORS)
def test_any_posterior_is_explored(name):
    found = explored(name)
    assert found.log_density == found.posterior.log_density(found.state)
    assert found.log_density >= found.run_.best_log_density - 1e-9
    assert found.certificate is None
    described = found.run_.traces.keys() - {"log_density", "acceptance_rate", "log_prior"}
    for diagnostic in found.summary_.diagnostics.values():
        assert diagnostic.ess > 0
    assert "log_posterior" in found.summary_.diagnostics
    assert max(map(cell_len, str(found).splitlines())) <= 80
    assert "R-hat" in str(found)
    data = found.to_inference_data()
    assert set(described) <= set(data["posterior"])
    np.testing.assert_array_equal(data["sample_stats"]["lp"], found.run_.traces["log_density"])


# of columns and leaves, of named first rules, without a summary, and of numbers
@pytest.mark.parametrize("name", ["leaf", "label-list", "plane", "sensors"])
def test_traces_come_back_from_files_and_are_diagnosed(name, tmp_path):
    found = explored(name)
    found.save_trace(tmp_path / "t.nc")
    trace = read_trace(tmp_path / "t.nc")
    assert list(trace.quantities) == list(found.run_.trace.quantities)
    np.testing.assert_array_equal(trace.feature_used, found.run_.trace.feature_used)
    assert (trace.columns, trace.settings) == (found.run_.trace.columns, found.run_.trace.settings)
    assert trace.diagnostics() == found.run_.trace.diagnostics()
    assert trace.shares() == found.run_.trace.shares()
    assert trace.acceptance == pytest.approx(found.run_.acceptance, nan_ok=True)
    done = invoke("diagnose", tmp_path / "t.nc")
    assert done.exit_code == 0, done.output
    assert "log posterior" in done.output
    if name in ("leaf", "plane"):  # pictures take a second
        done = invoke("diagnose", tmp_path / "t.nc", "--json", "--plots", tmp_path / "p" / "q")
        assert done.exit_code == 0, done.output
        names = sorted(path.name for path in (tmp_path / "p" / "q").iterdir())
        assert names == ["ranks.png", *["sizes.png"] * (name == "leaf"), "traces.png"]


@pytest.mark.parametrize("name", POSTERIORS)
def test_exploring_goes_on_where_it_ended(name, tmp_path, monkeypatch):
    """A run that was interrupted ends in the same draws, whatever its states are."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.001)
    file, search = tmp_path / "run.json", search_of(POSTERIORS[name]())
    stopped = explore(POSTERIORS[name](), search, **SHORT, checkpoint=file, progress=interrupted(1))
    assert stopped.summary_.interrupted
    assert stopped.state is not None
    again = explore(POSTERIORS[name](), search, **SHORT, checkpoint=file, resume=True)
    assert again.run_ == explored(name).run_


@pytest.mark.parametrize("search", ["anneal", "metropolis", "tempering", "auto"])
def test_every_search_finds_the_best_state_of_an_objective(search):
    found = explore(gibbs(), search, n_steps=2000, n_chains=2, random_state=1)
    assert found.state == 3
    assert bool(found.summary_.n_draws) == (search != "anneal")


def test_densities_with_a_gradient_are_explored_along_it():
    """And are not told to try other searches, which need moves that they may not have."""
    found = explore(POSTERIORS["slope"](), "langevin", **{**SHORT, "n_draws": 4, "n_steps": 20})
    assert "best found by 2 chains along the gradient" in str(found)
    assert "langevin" in found.run_.acceptance
    assert not any("tempering" in text for text in found.summary_.warnings)
    starts = [np.full(2, 3.0)] * 4
    found = explore(POSTERIORS["slope"](), "langevin", n_steps=4000, starts=starts, random_state=0)
    assert not found.summary_.warnings
    assert found.log_density == pytest.approx(0.0, abs=0.02)


def test_what_explore_cannot_do_is_an_error():
    without = "without log_density_and_gradient, GibbsPosterior, got 'langevin'"
    with pytest.raises(ParameterError, match=without):
        explore(gibbs(), "langevin")
    for make in (LeafCascade, DensityRuleList):
        for wrong in ("langevin", "guess"):
            with pytest.raises(ParameterError, match="search must be one of") as caught:
                make(search=wrong).check_parameters()
            assert "'langevin'" not in str(caught.value).removesuffix(f"got '{wrong}'")
    with pytest.raises(ParameterError, match='solve must be given for search "exact"'):
        explore(gibbs(), "exact")
    with pytest.raises(ParameterError, match="search must be one of"):
        explore(gibbs(), "guess")
    with pytest.raises(samplers.SamplerError, match="log density must be a number"):
        explore(GibbsPosterior(lambda _: math.nan, lambda rng: 0, gibbs().proposals))  # noqa: ARG005


def test_gibbs_posterior_is_the_objective_over_the_temperature():
    posterior = gibbs()
    assert posterior.log_density(5) == -4.0
    assert posterior.log_prior(5) == 0.0
    assert posterior.log_density(12) == -math.inf
    assert posterior.describe(5) == {"objective": 2.0, "state": 5.0}
    run = samplers.anneal(posterior, n_steps=2000, n_chains=2, seed=0)
    assert run.best_state == 3
    assert GibbsPosterior(abs, lambda rng: 0, {}).describe(-4) == {"objective": 4.0}  # noqa: ARG005


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan, math.inf, "1", None])
def test_gibbs_posterior_refuses_bad_temperatures(temperature):
    with pytest.raises(ParameterError, match="temperature must be a finite number > 0"):
        GibbsPosterior(abs, lambda rng: 0, {}, temperature)  # noqa: ARG005
