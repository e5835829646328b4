"""Chains along the gradient: right draws, steps that adapt and then stand still."""

import importlib
import math

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import samplers
from samplers.adaptation import Spread
from tests.samplers.targets import FullRing, Normal
from tests.statistical.chi_square import P_VALUE

engine = importlib.import_module("samplers.langevin")  # the package has a function of that name

OBLIQUE = ((1.0, 0.8), (0.8, 2.0))


class LogGamma:
    """The logarithm of a gamma variable: skewed, with a tail that is as steep as exp(exp)."""

    shape = 1.5

    def log_density(self, state):
        return float((self.shape * state - np.exp(state)).sum())

    def log_density_and_gradient(self, state):
        return self.log_density(state), self.shape - np.exp(state)


class Quadrant(Normal):
    """A normal density cut off where a component is negative, where there is no gradient."""

    def log_density(self, state):
        return super().log_density(state) if (state >= 0.0).all() else -math.inf

    def log_density_and_gradient(self, state):
        _, gradient = super().log_density_and_gradient(state)
        log_density = self.log_density(state)
        return log_density, gradient if log_density > -math.inf else np.full(state.shape, np.nan)


def is_uniform(values, n_tests):
    """Whether numbers in [0, 1] pass a Kolmogorov-Smirnov test, one of several."""
    return float(scipy.stats.kstest(values, "uniform").pvalue) > P_VALUE / n_tests


def fits(target, draws):
    """Whether independent draws, (n, d), pass Kolmogorov-Smirnov tests of their distribution."""
    if isinstance(target, LogGamma):
        return is_uniform(scipy.stats.gamma.cdf(np.exp(draws[:, 0]), target.shape), 1)
    if isinstance(target, Quadrant):
        return is_uniform(2.0 * scipy.stats.norm.cdf(draws[:, 0]) - 1.0, 1)
    white = np.linalg.solve(np.linalg.cholesky(target.covariance), draws.T)
    radius = scipy.stats.chi2.cdf((white**2).sum(axis=0), len(white))
    angle = np.arctan2(white[1], white[0]) / (2.0 * np.pi) + 0.5
    uniform = [*scipy.stats.norm.cdf(white), radius, angle]
    return all(is_uniform(values, len(uniform)) for values in uniform)


OBLIQUELY = (Normal(OBLIQUE), {"warmup": 0.0, "step_size": 1.2})
SKEWED = (LogGamma(), {"warmup": 0.0, "step_size": 0.8})


@pytest.mark.parametrize(
    ("target", "settings", "broken"),
    [
        pytest.param(*OBLIQUELY, None, marks=pytest.mark.slow),
        pytest.param(*OBLIQUELY, math.inf, marks=pytest.mark.slow),
        (*SKEWED, None),
        (*SKEWED, 0.0),
        pytest.param(Normal(OBLIQUE), {}, None, marks=pytest.mark.slow),
        pytest.param(LogGamma(), {}, None, marks=pytest.mark.slow),
        (Quadrant(), {}, None),
    ],
    ids=[
        *("oblique", "oblique, all accepted", "skewed", "skewed, without Hastings"),
        *("oblique, adapted", "skewed, adapted", "cut off, adapted"),
    ],
)
def test_visits_follow_the_density(target, settings, broken, monkeypatch):
    """Draws 20 steps apart are correlated by 0.02: they count as independent."""
    if broken is not None:
        monkeypatch.setattr(engine, "log_q_ratio", lambda *_: broken)
    d = len(getattr(target, "covariance", [0]))
    run = samplers.langevin(
        target, n_draws=300, initial_states=[[0.5] * d] * 4, seed=20,
        n_steps=6_000 if "warmup" in settings else 8_000, **settings,
    )  # fmt: skip
    assert fits(target, np.concatenate(run.draws)) == (broken is None)


def log_normal(x, mean, sd):
    """Return the log density of independent normal variables, up to a constant."""
    return -0.5 * (((x - mean) / sd) ** 2).sum()


@pytest.mark.parametrize("lengths", [np.array([0.7, 0.7]), np.array([0.3, 1.9])], ids=str)
def test_steps_are_in_detailed_balance(lengths, rng):
    """By the densities of the algorithm's definition; both ways are as probable."""
    target, outcomes = Normal(OBLIQUE), set()
    point = engine.evaluate(target, np.array([0.3, -1.0]))
    for _ in range(200):
        after, info = engine.step(rng, point, target, lengths)
        there, back = (
            log_normal(end, start + 0.5 * lengths**2 * (-target.precision @ start), lengths)
            for start, end in ((point.state, info.proposed), (info.proposed, point.state))
        )
        assert_allclose(info.log_q_ratio, back - there, rtol=1e-12, atol=1e-12)
        assert info.log_density == target.log_density(info.proposed)
        accepted = engine.acceptance_probability(point, info)
        reverse = samplers.StepInfo(point.state, point.log_density, there - back, True)
        returned = engine.acceptance_probability(engine.evaluate(target, info.proposed), reverse)
        forward = point.log_density + there + math.log(accepted)
        assert_allclose(forward, info.log_density + back + math.log(returned), rtol=1e-12)
        assert (after is point) == (not info.accepted)
        outcomes.add((info.accepted, accepted < 1.0))
        point = after
    assert outcomes == {(True, True), (True, False), (False, True)}


def test_accepted_points_carry_their_own_gradient(rng):
    """A stale one would still be accepted rightly, and go nowhere; one evaluation a step does."""
    seen = []

    class Counting(Normal):
        shared = np.empty(2)

        def log_density_and_gradient(self, state):
            seen.append(state.copy())
            self.shared[:] = super().log_density_and_gradient(state)[1]
            return self.log_density(state), self.shared  # which the next call overwrites

    target = Counting(OBLIQUE)
    point = engine.evaluate(target, np.array([0.3, -1.0]))
    for _ in range(50):
        point, _ = engine.step(rng, point, target, np.ones(2))
        assert_allclose(point.gradient, -target.precision @ point.state)
    assert len(seen) == 51
    seen.clear()
    search = {"n_steps": 60, "n_draws": 20, "warmup": 0.0, "n_chains": 1, "seed": 1}
    counted = samplers.langevin(target, **search)
    assert len(seen) == 1 + 60
    assert counted == samplers.langevin(Normal(OBLIQUE), **search)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("start", [0.0, 30.0], ids=["mode", "tail"])
def test_step_size_adapts_to_any_scale(scale, start):
    """From the default, at the mode as from far away; without warm-up it stays what it was."""
    search = {"n_steps": 4_000, "n_chains": 3, "initial_states": [[scale * start] * 3] * 3}
    target = Normal(np.eye(3) * scale**2)
    run = samplers.langevin(target, seed=2, **search)
    assert np.abs(run.traces["acceptance_rate"].mean(axis=1) - 0.574).max() < 0.1
    assert run.extras["step_sizes"].shape == (3,)
    rigid = samplers.langevin(target, seed=2, warmup=0.0, **search)
    assert abs(rigid.acceptance["langevin"] - 0.574) > 0.4
    assert_allclose(rigid.extras["step_sizes"], 1.65 * 3 ** (-1 / 6))
    given = samplers.langevin(target, seed=2, warmup=0.0, step_size=scale, **search)
    assert_allclose(given.extras["step_sizes"], scale)


def test_scales_are_units():
    """Draws of a stretched density, with its scales, are the stretched draws: to the last bit."""
    scales = np.array([2.0**-10, 2.0**10])
    search = {"n_steps": 400, "n_draws": 50, "seed": 3}
    plain = samplers.langevin(Normal(np.eye(2)), initial_states=[[1.0, 2.0]] * 4, **search)
    stretched = samplers.langevin(
        Normal(np.diag(scales**2)),
        initial_states=[scales * [1.0, 2.0]] * 4,
        scales=scales,
        **search,
    )
    np.testing.assert_array_equal(np.array(plain.draws) * scales, stretched.draws)
    assert_allclose(plain.extras["step_sizes"], stretched.extras["step_sizes"], rtol=1e-15)
    np.testing.assert_array_equal(stretched.extras["scales"], [scales] * 4)


@pytest.mark.slow
def test_scales_are_learned():
    """Without them, the narrowest component makes steps that are too short for all others."""
    deviations = np.geomspace(0.01, 10.0, 6)
    target = Normal(np.diag(deviations**2))
    search = {"n_steps": 16_000, "n_chains": 2, "initial_states": [np.zeros(6)] * 2, "seed": 4}
    run = samplers.langevin(target, **search)
    assert run.extras["scales"].shape == (2, 6)
    assert np.abs(np.log(run.extras["scales"] / deviations)).max() < 0.3
    assert_allclose(np.array(run.draws).std(axis=(0, 1)), deviations, rtol=0.1)
    rigid = samplers.langevin(target, scales=np.ones(6), **search)
    assert np.array(rigid.draws).std(axis=(0, 1))[-1] < 0.5 * deviations[-1]
    for short in ({"n_steps": 700}, {"warmup": 0.0, "n_steps": 2_000}):
        assert (samplers.langevin(target, **{**search, **short}).extras["scales"] == 1.0).all()


def test_scales_forget_the_way_from_a_far_start():
    """They are learned in windows: states on the way would make them far too wide."""
    far = [np.full(2, 300.0)] * 2
    run = samplers.langevin(
        Normal(OBLIQUE), n_steps=2000, warmup=0.5, n_chains=2, seed=1, initial_states=far
    )
    deviations = np.sqrt(np.diag(OBLIQUE))
    assert_allclose(run.extras["scales"], np.tile(deviations, (2, 1)), rtol=0.3)


def test_draws_take_the_step_size_that_is_told(monkeypatch):
    """It is a mean over the warm-up, not where the adaptation happened to be at its end."""
    step, taken = engine.step, []

    def watched(rng, point, target, lengths):
        taken.append(lengths)
        return step(rng, point, target, lengths)

    monkeypatch.setattr(engine, "step", watched)
    run = samplers.langevin(Normal(OBLIQUE), n_steps=400, n_chains=1, seed=1)
    result = run.extras["step_sizes"][0] * run.extras["scales"][0]
    assert_allclose(taken[-300:], np.tile(result, (300, 1)))


def test_spread_is_that_of_its_states(rng):
    """To the digits that a sum over states far from zero has; none if a component stood still."""
    states = 1e6 + rng.normal(size=(50, 3))
    spread = Spread.empty(3)
    for state in states:
        spread = spread.joined_by(state)
    assert_allclose(spread.deviations(otherwise=np.ones(3)), states.std(axis=0), rtol=1e-8)
    for stood in (Spread.empty(3), spread._replace(squares=np.array([1.0, 0.0, 1.0]))):
        assert stood.deviations(otherwise=np.ones(3)).tolist() == [1.0, 1.0, 1.0]


# blocks have 30 steps: within a window of the warm-up, at the end of one and of all, sampling
@pytest.mark.parametrize("stop", [100, 210, 420, 450], ids="after {} steps".format)
def test_resumed_run_ends_in_the_same_bytes(stop, tmp_path, monkeypatch):
    """Stopped within windows of the warm-up, at their ends, or sampling with what is frozen."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)

    def search(name, **more):
        settings = {"n_steps": 600, "warmup": 0.7, "n_draws": 6, "seed": 11}
        return samplers.langevin(
            Normal(OBLIQUE), checkpoint=tmp_path / name, **{**settings, **more}
        )

    def interrupt(progress):
        if progress.done >= stop:
            raise KeyboardInterrupt

    whole, part = search("whole"), search("part", progress=interrupt)
    assert (whole.interrupted, part.interrupted) == (False, True)
    n_draws = part.traces["log_density"].shape[1]
    assert n_draws == (1 if stop > 420 else 0)
    for name, trace in part.traces.items():
        np.testing.assert_array_equal(trace, whole.traces[name][:, :n_draws])
    for name in ("step_sizes", "scales"):
        is_last = stop > 210 if name == "scales" else stop >= 420
        assert (part.extras[name] == whole.extras[name]).all() == is_last
    assert search("part", resume=True) == whole
    assert (tmp_path / "part").read_bytes() == (tmp_path / "whole").read_bytes()
    for name, other in {"step_size": 0.5, "scales": [1.0, 2.0], "keep_states": False}.items():
        with pytest.raises(samplers.CheckpointError, match=f"with other settings: its {name} is"):
            search("part", resume=True, **{name: other})


class Tells:
    """Tells of every state but 0 what it was given."""

    def __init__(self, log_density, gradient):
        self.told = log_density, gradient

    def log_density(self, state):
        return self.told[0] if state.any() else 0.0

    def log_density_and_gradient(self, state):
        return self.told if state.any() else (0.0, np.zeros(1))


@pytest.mark.parametrize(
    ("log_density", "gradient", "message"),
    [
        (math.nan, np.zeros(1), "log density must be a number or -inf, got nan"),
        (math.inf, np.zeros(1), "log density must be a number or -inf, got inf"),
        (0.0, np.array([math.nan]), "gradient must be finite where its log density is, got nan"),
        (0.0, np.array([-math.inf]), "gradient must be finite .*, got -inf"),
        (0.0, np.zeros(2), r"gradient must have the state's shape, \(1,\), got \(2,\)"),
        (0.0, 0.0, r"gradient must have the state's shape, \(1,\), got \(\)"),
    ],
)
def test_broken_contracts_are_named(log_density, gradient, message):
    """A NaN that went unnoticed would reject every proposal in silence."""
    target = Tells(log_density, gradient)
    for start in ([0.0], [1.0]):
        with pytest.raises(samplers.SamplerError, match=message):
            samplers.langevin(target, n_steps=5, n_chains=1, initial_states=[start])


def test_states_off_the_support_are_never_entered():
    """Whatever is said of the gradient there; also where numbers end."""
    target = Tells(-math.inf, np.array([math.nan]))
    run = samplers.langevin(target, n_steps=50, initial_states=[[0.0]] * 4, warmup=0.0)
    assert run.acceptance == {"langevin": 0.0}
    assert not np.array(run.draws).any()
    with pytest.raises(samplers.SamplerError, match="initial state must be finite, got -inf"):
        samplers.langevin(target, n_steps=5, initial_states=[[1.0]] * 4)
    steep = engine.Point(np.array([1e308]), 0.0, np.array([1e308]))
    with np.errstate(over="ignore"):
        after, info = engine.step(np.random.default_rng(0), steep, target, np.full(1, 1e3))
    assert (after, info.accepted, info.log_density) == (steep, False, -math.inf)


def test_targets_that_cannot_be_followed_are_named():
    with pytest.raises(samplers.SamplerValueError, match="must have a log_density_and_gradient"):
        samplers.langevin(FullRing(), n_steps=5)
    with pytest.raises(samplers.SamplerValueError, match="target must have a log_density method"):
        samplers.langevin("target", n_steps=5)

    class Twofold(Normal):
        def log_density_and_gradient(self, state):
            log_density, gradient = super().log_density_and_gradient(state)
            return 2.0 * log_density, gradient

    with pytest.raises(
        samplers.SamplerError, match=r"the same log density as log_density\(\), -0.5, got"
    ):
        samplers.langevin(Twofold(), n_steps=5, n_chains=1, initial_states=[[1.0]])
