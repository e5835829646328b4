"""Redraws of subtrees leave the posterior as it is."""

import warnings
from collections import defaultdict
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

import samplers
from bayescascade import LeafCascade, LeafPosterior, Table
from bayescascade.methods.density.trees.exact import SubtreeRedraws, redraws
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.model.search import SAMPLED
from tests.interrupts import interrupted
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.exact.brute_force import BruteForce, cases, cases_of
from tests.methods.density.trees.fits import people
from tests.statistical.chi_square import fits

CORRECTED = cases_of({tiny.MULTIWAY: "bounded inclusion generative"})  # where w says something
DRAWN = [
    *CORRECTED[:2],
    *cases_of({tiny.BINS: "independent", tiny.UNEVEN_LEVELS: "branch generative-branch"}),
]
N_DRAWS, THINNED = 200, 12  # of the whole tree a redraw is often rejected


def redrawing(problem, model):
    """Return a posterior with redraws of its smallest subtrees and, often, of all."""
    posterior = model.on(problem)
    own = SubtreeRedraws(posterior, 1e9)
    whole = [tuple(range(q)) for q in problem.n_levels]
    smallest = min(
        own.size([codes if i == j else (0,) for i, codes in enumerate(whole)])
        for j, q in enumerate(problem.n_levels)
        if q > 1
    )
    own.smallest, own.largest, own.share = smallest, 16 * own.size(whole), 0.1
    posterior.redraws = own
    return posterior


def log_rests(problem, model):
    """Return, of every tree, what its density counts beside what leaves or splits do."""
    given, record = model.parameters, problem.record
    if "expected_leaves" not in given:
        gamma, p = given.get("feature_inclusion", 0.5), len(problem.n_levels)
        d = np.array([tree.features_used.size for tree in problem.trees])
        log_choose = gammaln(p + 1) - gammaln(d + 1) - gammaln(p - d + 1)
        log_inclusion = log_choose + d * np.log(gamma) + (p - d) * np.log(1 - gamma)
        return log_inclusion if "feature_inclusion" in given else 0.0
    rate, alpha, total = given["expected_leaves"], given["concentration"], sum(record["weights"])
    k = np.array([tree.n_leaves for tree in problem.trees])
    log_prior = k * np.log(rate) - gammaln(k + 1) if given.get("prior") != "generative" else 0.0
    return log_prior + gammaln(k * alpha) - gammaln(total + k * alpha)


@pytest.mark.slow
def test_redraws_take_about_as_long_as_other_steps(monkeypatch):
    """Large boxes keep nobody waiting: of two million bytes one in 2,500 steps takes as long."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{q}{k}": rng.integers(q, size=600).astype(str)
                          for k, q in enumerate((4, 5, 10, 5, 5, 3))})  # fmt: skip
    posterior = LeafPosterior(Table.from_frame(frame))
    posterior.redraws = own = SubtreeRedraws(posterior, 2e9)
    sizes = []

    def replaced(_rng, tree, _node, box, *_):
        sizes.append(own.size(box))
        return tree

    monkeypatch.setattr(own, "_replaced", replaced)
    start = posterior.initial_state(rng)
    n_steps = 400_000
    posterior.advance(rng, start, n_steps, 1.0)
    assert len(sizes) > 50
    assert sum(sizes) / n_steps < 2 * 2e6 / 2500
    whole = [tuple(range(q)) for q in (4, 5, 10, 5, 5, 3)]
    assert max(sizes) < 1e8 < own.size(whole)


@cases((tiny.MULTIWAY, tiny.LEAF), (tiny.MULTIWAY, tiny.BRANCH), (tiny.BINS, tiny.INDEPENDENT),
       (tiny.BINS, tiny.INDEPENDENT_BRANCH), (tiny.MULTIWAY, tiny.GENERATIVE),
       (tiny.BINS, tiny.GENERATIVE_BRANCH))  # fmt: skip
def test_powers_of_densities_are_summed(problem, model):
    """All of it is raised to the power, widths and what is read from tables alike."""
    log_parts = model.reference(problem) - log_rests(problem, model)
    k = np.array([tree.n_leaves for tree in problem.trees])
    box = tuple(tuple(range(q)) for q in problem.n_levels)
    excess = []
    for power, tilt in ((1.0, 0.0), (1.0, 0.7), (0.4, 0.0), (2.5, -0.3)):
        trees = redraws.BoxTrees(model.on(problem), box, power)
        trees.run(tilt)
        expected = logsumexp(power * log_parts + tilt * k)
        excess.append((trees._sums.log_values()[0] - expected) / power)
    np.testing.assert_allclose(excess, excess[0], rtol=0.0, atol=1e-9)


def flows_of(problem, model, seed, power):
    """Return how much probability flows from tree to tree, in the place that a seed draws.

    Of a power of the density. And how much would if what is drawn were taken as it is, the broken
    twin.
    """
    everything, own = BruteForce(problem, model), redrawing(problem, model).redraws
    unbounded = {"max_leaves": np.inf} if model is tiny.BOUNDED else {}
    log_parts = power * (model.reference(problem, **unbounded) - log_rests(problem, model))
    probabilities = softmax(power * everything.log_densities)
    members = defaultdict(list)  # trees that differ in what is redrawn alone
    rests = []
    for i, tree in enumerate(everything.trees):
        node, box = own.place(np.random.default_rng(seed), tree)
        rests.append((node, box, tree.replaced(problem.nominal, node, None).key()))
        members[rests[i]].append(i)

    @cache
    def log_rest(tree, tilt):
        return own.log_rest(everything.trees[tree], tilt, power)

    n = len(everything.trees)
    flow, broken = np.zeros((2, n, n))
    for i in np.flatnonzero(probabilities):
        if rests[i][1] is None:
            continue
        group = members[rests[i]]
        k = np.array([everything.trees[j].n_leaves for j in group])
        tilts, log_chances = own.tilts(everything.trees[i].n_leaves, power)
        for tilt, chance in zip(tilts.tolist(), np.exp(log_chances), strict=True):
            flows = probabilities[i] * chance * softmax(log_parts[group] + tilt * k)
            after = np.array([log_rest(j, tilt) for j in group])
            broken[i, group] += flows
            flow[i, group] += flows * np.exp(np.minimum(0.0, after - log_rest(i, tilt)))
    return flow, broken


@pytest.mark.parametrize("power", [pytest.param(1.0, marks=pytest.mark.slow), 0.4])
@cases(*CORRECTED)
def test_steps_are_reversible(problem, model, power):
    """Detailed balance, of all trees of a problem, wherever a subtree is redrawn."""
    flows = [flows_of(problem, model, seed, power) for seed in (0, 2)]
    for flow, _ in flows:
        np.testing.assert_allclose(flow, flow.T, atol=1e-12)
    assert sum(flow.sum() - flow.trace() for flow, _ in flows) > 1e-3  # there is some
    assert max(np.abs(broken - broken.T).max() for _, broken in flows) > 1e-4


@pytest.mark.slow
@cases(*DRAWN)
def test_redrawn_trees_have_the_posterior_probabilities(problem, model, rng):
    """A chain of nothing but redraws, of the whole tree at times, draws from the posterior."""
    everything, posterior = BruteForce(problem, model), redrawing(problem, model)
    index = {tree: i for i, tree in enumerate(everything.trees)}
    tree, drawn = everything.trees[int(np.argmax(everything.probabilities))], []
    for _ in range(N_DRAWS):
        for _ in range(THINNED):
            tree = posterior.redraws.redrawn(rng, tree) or tree
        drawn.append(index[tree])
    assert fits(drawn, everything.probabilities)
    flat = softmax(0.5 * everything.log_densities)  # broken twins, of which one may be near
    other = softmax(model.reference(problem, concentration=0.1))
    assert not (fits(drawn, flat) and fits(drawn, other))


@cases((tiny.MULTIWAY, tiny.BRANCH), (tiny.MULTIWAY, tiny.BOUNDED))
def test_polished_trees_are_better(problem, model):
    """Where all boxes fit, the best there is without what says so of all leaves or columns."""
    everything, posterior = BruteForce(problem, model), redrawing(problem, model)
    best = everything.log_densities.max()
    whole = posterior.redraws.size([range(q) for q in problem.n_levels])
    for largest in (whole - 1, whole):
        posterior.redraws.most_polished = largest
        ends = []
        for start in everything.trees[:: len(everything.trees) // 5]:
            end = posterior.polished(start)
            assert end == start or posterior.log_density(end) > posterior.log_density(start)
            ends.append(posterior.log_density(end))
    assert max(ends) == pytest.approx(best)
    if model is tiny.BRANCH:
        assert min(ends) == pytest.approx(best)


def test_polishing_takes_no_more_work_than_the_steps(monkeypatch):
    """It took six times as long, because a tree may have many large boxes, again and again."""
    posterior, replaced, sizes = tiny.BRANCH.on(tiny.MULTIWAY), SubtreeRedraws._replaced, []

    def spied(self, rng, tree, node, box, *how):
        sizes.append(self.size(box))
        return replaced(self, rng, tree, node, box, *how)

    monkeypatch.setattr(SubtreeRedraws, "_replaced", spied)
    start = BruteForce(tiny.MULTIWAY, tiny.BRANCH).trees[-1]
    whole = SubtreeRedraws(posterior, 1e9).size([range(q) for q in tiny.MULTIWAY.n_levels])
    work = {}
    for n_steps, share in ((1, 0.1), (1, 0.5), (3, 0.5), (None, 0.5)):
        monkeypatch.setattr(redraws, "_POLISHED_OF_STEP", share * whole)
        posterior.redraws = SubtreeRedraws(posterior, 1e9, 1, n_steps)
        sizes.clear()
        posterior.polished(start)
        work[n_steps, share] = sum(sizes) / whole
        assert n_steps is None or sum(sizes) <= n_steps * share * whole
    assert work[None, 0.5] > work[3, 0.5] > work[1, 0.5] > 0.0


@pytest.mark.slow
def test_runs_depend_on_their_seed_alone(tmp_path):
    """Not on threads, on what boxes were kept before, nor on an interruption."""
    posterior = redrawing(tiny.MULTIWAY, tiny.BOUNDED)
    how = {"n_steps": 200, "n_draws": 40, "n_chains": 2, "seed": 3}
    run = samplers.metropolis(posterior, **how)
    assert run.proposed["redraw"].sum() > 20
    assert run == samplers.metropolis(posterior, n_jobs=2, **how)
    path = tmp_path / "run"
    broken = samplers.metropolis(posterior, checkpoint=path, progress=interrupted(2), **how)
    assert broken.interrupted
    fresh = redrawing(tiny.MULTIWAY, tiny.BOUNDED)
    assert run == samplers.metropolis(fresh, checkpoint=path, resume=True, **how)
    fresh.redraws.largest += 1
    with pytest.raises(samplers.CheckpointError):
        samplers.metropolis(fresh, checkpoint=path, resume=True, **how)


@pytest.mark.slow  # it alone compiles the kernel for leaves without a bound
def test_auto_searches_what_does_not_fit_as_well_as_what_does(monkeypatch):
    """And as well in two threads: nothing changes."""
    monkeypatch.setattr(redraws, "_SHARE", 0.1)
    frame = people()[["sex", "crew"]]
    exact = LeafCascade(random_state=0).fit(frame)
    half = SearchPlan.of(exact.posterior_, None).memory_bytes / 2e9
    how = {"memory_limit": half, "n_chains": 2, "random_state": 0, "n_steps": 100}
    found = LeafCascade(**how).fit(frame)
    assert found.summary_.method == "anneal+metropolis"
    assert found.run_.proposed["redraw"].sum() > 0
    assert found.log_posterior_ == pytest.approx(exact.log_posterior_)
    assert found.run_ == LeafCascade(**how, n_jobs=2).fit(frame).run_


@pytest.mark.slow
@pytest.mark.parametrize("search", SAMPLED)
def test_a_sampled_search_redraws_also_if_it_is_asked_for(search):
    """Chains under one name are the same chains; dependent leaves have no sums to redraw from."""
    how = {"search": search, "n_steps": 2000, "n_chains": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LeafCascade(**how).fit(people()[["sex", "crew"]])
        dependent = LeafCascade(**{**how, "n_steps": 50}, leaf="dependent").fit(
            people()[["sex", "crew"]]
        )
    assert "redraw" in model.run_.acceptance
    assert "redraw" not in dependent.run_.acceptance
