"""Losses, their bounds and their exact minimum, against enumeration and general solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import cho_factor
from scipy.optimize import LinearConstraint, minimize
from scipy.stats import multivariate_normal

from bayescascade import (
    DataError,
    EffectPosterior,
    ParameterError,
    conditional_difference_loss,
    effect_bound,
    explore,
)
from bayescascade.methods.effects.functions import Evidence, Kernel, KernelBasis
from bayescascade.methods.effects.hinge import _factor, best_intercept, certified, solve_hinge
from bayescascade.methods.effects.losses import SURROGATES, Arms

SMOOTH = [name for name in SURROGATES if name not in ("hinge", "zero_one")]


def test_losses_by_table():
    """All cases of the definitions, at and beside their edges."""
    h = [-1.0, -0.5, 0.0, 0.5, 1.0]
    ones = np.ones(5)
    for y_treated, y_control, theta, expected in (
        (1, 1, 0.0, [1, 0, 0, 0, 1]), (1, -1, 0.0, [1, 1, 1, 0, 0]), (-1, 1, 0.0, [0, 0, 1, 1, 1]),
        (-1, -1, 0.5, [1, 1, 0, 1, 1]), (1, -1, 0.5, [1, 1, 0, 0, 0]),
        (-1, 1, 1.0, [0, 0, 0, 0, 1]),
    ):  # fmt: skip
        found = conditional_difference_loss(h, y_treated * ones, y_control * ones, theta)
        assert found.tolist() == expected
    with pytest.raises(DataError, match="-1 or 1"):
        conditional_difference_loss([0.0], [0], [1])
    with pytest.raises(DataError, match="same length"):
        conditional_difference_loss([0.0, 1.0], [1], [1])
    with pytest.raises(ParameterError, match="theta"):
        conditional_difference_loss([0.0], [1], [1], -1.0)


@pytest.mark.parametrize("name", SURROGATES)
def test_surrogates_bound_both_losses(name):
    """On enumerated populations of three points; half of a surrogate bounds neither."""
    surrogate, rng, broken = SURROGATES[name], np.random.default_rng(3), 0
    z = np.linspace(-3.0, 3.0, 601)
    assert (surrogate.value(z) >= (z >= 0).astype(float) + (z >= 1) - 1e-12).all()
    if name in SMOOTH:
        slopes = (surrogate.value(z + 1e-6) - surrogate.value(z - 1e-6)) / 2e-6
        assert_allclose(surrogate.slope(z), slopes, rtol=1e-6, atol=1e-8)
    for _ in range(300):
        mass, p = rng.dirichlet(np.ones(3)), rng.random((2, 3))
        h = rng.choice([0.0, -1.0, 1.0, *rng.normal(size=3)], 3)
        risks, losses = np.zeros(2), np.zeros(2)
        for a in (1, -1):
            chance = np.where(np.array([a]) > 0, p, 1.0 - p)
            risks += [(mass * chance[i]) @ surrogate.value(s * h * a) for i, s in ((0, -1), (1, 1))]
            for b in (1, -1):
                both = mass * chance[0] * np.where(b > 0, p[1], 1.0 - p[1])
                for place, theta in enumerate((0.0, 1.0)):
                    given = h, a * np.ones(3), b * np.ones(3), theta
                    losses[place] += both @ conditional_difference_loss(*given)
        assert (losses <= risks.mean() + 1e-12).all()
        assert risks.mean() <= risks.max() + 1e-12
        broken += losses[0] > risks.mean() / 2.0
    assert broken > 0


def _problem(seed, n=14):
    """Return a kernel matrix, arms and a penalty; copies of rows, or one class in an arm."""
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 2)), np.arange(n) % 2 > 0
    y = rng.random(n) < 0.5
    if seed % 3 == 0:
        X[n // 2 :] = X[: n // 2]
    if seed % 3 == 1:
        y |= t
    gram = Kernel(np.ones(2)).gram(X, X)
    return gram, Arms.of(y, t, rng.random(n) + 0.2), float(10.0 ** rng.uniform(-3, 0))


@pytest.mark.parametrize("seed", range(20))
def test_hinge_is_the_optimum_of_a_general_solver(seed):
    """A quadratic program in (v, w_0, z, slacks) by SLSQP; the proof holds where it is broken."""
    gram, arms, penalty = _problem(seed)
    n = len(gram)
    found = solve_hinge(gram, arms, penalty)
    assert found.gap <= 1e-8
    half = np.linalg.cholesky(gram + 1e-12 * np.eye(n))
    rows = [np.concatenate([arms.signs[:, None] * np.column_stack([half, np.ones(n)]),
                            np.zeros((n, 1)), np.eye(n)], axis=1)]  # fmt: skip
    for of in (arms.treatment, ~arms.treatment):
        rows.append(np.concatenate([np.zeros(n + 1), [1.0], -arms.weights * of])[None])
    constraint = LinearConstraint(np.vstack(rows), np.r_[np.ones(n), 0.0, 0.0], np.inf)
    start = np.r_[np.zeros(n + 1), 1.0, np.ones(n)]
    penalized = np.r_[np.ones(n), np.zeros(n + 2)] * penalty
    solved = minimize(
        lambda s: s[n + 1] + penalized @ s**2, start, method="SLSQP", constraints=constraint,
        jac=lambda s: np.eye(len(s))[n + 1] + 2.0 * penalized * s,
        bounds=[(None, None)] * (n + 2) + [(0.0, None)] * n,
        options={"maxiter": 1000, "ftol": 1e-13},
    )  # fmt: skip
    assert solved.success
    assert_allclose(found.objective, solved.fun, rtol=1e-6, atol=1e-8)
    worse = certified(gram, arms, penalty, 0.3 * arms.weights, 0)
    assert worse.objective - worse.gap <= found.objective <= worse.objective + 1e-12
    assert worse.gap > 1e-6


def test_steps_survive_kernels_of_one_dimension(rng):
    """At a tiny penalty rounding makes them indefinite, which is no error of the user's."""
    hessian = 1e12 * np.outer(*[rng.normal(size=50)] * 2)
    with pytest.raises(np.linalg.LinAlgError):
        cho_factor(hessian + 1e-9 * np.eye(50))
    assert _factor(hessian, np.full(50, 1e-9)) is not None
    assert _factor(-hessian, np.full(50, 1e-9)) is None


@pytest.mark.parametrize("is_maximum", [True, False])
def test_intercepts_are_exact(is_maximum):
    """No w_0 of a fine grid is better, though crossings are not breaks."""
    for seed in range(8):
        gram, arms, _ = _problem(seed)
        scores = gram @ np.random.default_rng(seed).normal(size=len(gram))

        def risk(w, scores=scores, arms=arms):
            risks = arms.risks(scores + w, SURROGATES["hinge"])
            return max(risks) if is_maximum else sum(risks) / 2.0

        grid = np.linspace(-6.0, 6.0, 4001)
        least = min(map(risk, grid))
        found = risk(best_intercept(scores, arms, is_maximum))
        assert least - 0.01 <= found <= least + 1e-12


def test_scales_by_their_slopes_and_kernels_whitened():
    """The gradient of the marginal likelihood is its slope; phi . phi is the kernel."""
    rng = np.random.default_rng(0)
    rows, values, weights = rng.normal(size=(20, 2)), rng.normal(size=20), rng.random(20) + 0.5
    loss, state = Evidence(rows, values, weights, np.zeros(6)), 0.4 * rng.normal(size=6)
    slopes = [(loss(state + s)[0] - loss(state - s)[0]) / 2e-5 for s in 1e-5 * np.eye(6)]
    assert_allclose(loss(state)[1], slopes, rtol=1e-6)
    constant = 10.0 * values.var() + 1e-12
    whole = loss.kernel(state).gram(rows, rows) + np.diag(np.exp(state[0]) / weights) + constant
    expected = -multivariate_normal(np.zeros(20), whole).logpdf(values) - 10.0 * np.log(2.0 * np.pi)
    assert_allclose(loss(state)[0], expected + 0.5 * (state / 1.5) @ (state / 1.5))
    for kernel in (
        Kernel(np.ones(2)),
        Kernel(np.ones(2), 0.0, np.ones(2)),
        Kernel(np.ones(2), degree=3),
    ):
        features = KernelBasis(kernel, rows).features(rows)
        assert_allclose(features @ features.T, kernel.gram(rows, rows), atol=1e-5)


@pytest.mark.parametrize("surrogate", ["square", "logistic", "exponential"])
@pytest.mark.parametrize("scale", [1.0, 1e6], ids=["plain", "extreme"])
def test_no_function_is_lower_by_more_than_the_gap(surrogate, scale):
    """Also where the intercept is not at its minimum, and never by less than rounding."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    X, t = np.column_stack([X, X[:, 0], scale**0.5 - 1.0 + X[:, 1]]), rng.random(400) < 0.5
    signs = np.where(rng.random(400) < 0.3, -1.0, 1.0) * np.sign(X[:, 0] + 0.2)
    weights = np.where(rng.random(400) < 0.05, scale, 1.0)
    posterior = EffectPosterior(X, signs, weights, t, surrogate=surrogate, penalty=1.0)
    best, halves, is_former_wrong = posterior.mode(), np.full(2, 0.5), False
    assert 1e-16 * best.objective < best.gap < (1e-6 if scale == 1.0 else np.inf)
    for size in (0.0, 1e-9, 1e-5, 0.01, 0.3):
        for moves in (np.eye(6)[0], np.eye(6)[1], rng.normal(size=6)):
            state = best.state + size * moves
            value, gap = posterior._gap(state, halves)
            assert value - gap <= best.objective
            gradient = posterior._loss(state, halves)[1][1:]
            is_former_wrong |= gradient @ gradient / 4.0 < value - best.objective - 1e-9
    assert is_former_wrong or scale > 1.0  # by the coefficients' slopes alone


@pytest.mark.parametrize("combine", [pytest.param("mean", marks=pytest.mark.slow), "max"])
def test_chains_explore_wrong_signs(combine):
    """The best of a chain is that of a grid of lines, which a climb cannot even ask for."""
    rng = np.random.default_rng(4)
    X, t = rng.normal(size=(12, 1)), np.arange(12) % 2 > 0
    signs = np.where(rng.random(12) < 0.3, -1.0, np.sign(X[:, 0] + 0.2))
    how = {"surrogate": "zero_one", "combine": combine, "penalty": 1e-3}
    posterior = EffectPosterior(X, signs, np.ones(12), t, **how)
    assert posterior.is_gibbs
    lines = np.stack(np.meshgrid(*[np.linspace(-3, 3, 121)] * 2), axis=-1).reshape(-1, 2)
    best = max(map(posterior.log_density, lines))
    found = explore(posterior, search="anneal", n_steps=4000, n_chains=2, random_state=0)
    assert found.log_density >= best - 0.05
    with pytest.raises(ParameterError, match="surrogate must have a slope"):
        explore(posterior, search="langevin", n_steps=10, random_state=0)
    with pytest.raises(ParameterError, match="surrogate must have a slope"):
        posterior.mode()


def test_bound_takes_the_second_divergence():
    """Of Bernoulli .9 against .1 it is 8.1, which the Kullback-Leibler divergence's 5.8 is not."""
    given = {"log_growth": 5.0, "pseudo_dimension": 2.0, "delta": 0.1}
    divergence = 0.9**2 / 0.1 + 0.1**2 / 0.9
    found = effect_bound((0.1, 0.2), (10**9, 10**6), divergence=divergence, **given)
    size = (2.0 * np.log(np.e * 10**6) + np.log(80.0)) / 10**6
    assert_allclose(found, 0.2 + 2.0**1.25 * np.sqrt(8.1 + 1 / 90) * size**0.375)
    with pytest.raises(ParameterError, match="divergence"):
        effect_bound((0.1, 0.2), (10, 10), divergence=0.9, **given)
