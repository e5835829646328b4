"""Mechanisms are as private as they say: exactly, by the laws of what they release on a grid."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from bayescascade.base.errors import ParameterError
from bayescascade.privacy import mechanisms
from bayescascade.privacy.mechanisms import (
    exponential,
    gaussian,
    laplace,
    noise_source,
    propose_test_release,
    stability_threshold,
)
from tests.privacy.noise_distributions import Told, gaussian_law, hockey_stick, laplace_law, shifted

EPSILONS = [0.1, 1.0, 5.0]


@pytest.fixture
def coarse(monkeypatch):
    """Make grids so coarse that rounding matters, and laws so short that they can be summed."""
    monkeypatch.setattr(mechanisms, "_FINE", 2.0)
    monkeypatch.setattr(mechanisms, "_FINE_TO_ROUNDING", 2.0)


def on_grid(mechanism, *arguments, **options):
    """Return the values on their grid, the noise's scale there, and the step."""
    result = Told()
    release = mechanism(*arguments, result, **options)
    scale = result.scales[0]
    step = release.scale / scale
    assert math.frexp(step)[0] == 0.5  # a power of two
    return (release.values / step).astype(int), scale, step


def most_moved(rng, mechanism, norm_order, *privacy):
    """Return the most that neighbors, the worst of many, are apart, in noise scales."""
    worst = 0.0
    for _ in range(150):
        size, sensitivity = int(rng.choice([1, 2, 20])), float(10.0 ** rng.uniform(-3, 3))
        error = float(rng.choice([0.0, 0.4 * sensitivity]))
        *_, step = on_grid(mechanism, np.zeros(size), sensitivity, *privacy, error=error)
        values = step * 0.5 * rng.integers(-50, 50, size)  # many are halfway between steps
        moves = rng.choice([-1, 1]) * (rng.random(size) + 1e-3)
        moves *= sensitivity * (1 - 1e-12) / np.linalg.norm(moves, norm_order)
        slips = error * np.sign(moves)
        first, scale, _ = on_grid(mechanism, values - slips, sensitivity, *privacy, error=error)
        second, *_ = on_grid(mechanism, values + moves + slips, sensitivity, *privacy, error=error)
        worst = max(worst, float(np.linalg.norm(first - second, norm_order)) / scale)
    return worst


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("grid", ["fine", "coarse"])
def test_laplace_covers_rounding_and_errors(rng, request, monkeypatch, epsilon, grid):
    """Neighbors are at most epsilon noise scales apart; without the steps for rounding, more."""
    if grid == "coarse":
        request.getfixturevalue("coarse")
    assert most_moved(rng, laplace, 1, epsilon) <= epsilon * (1 + 1e-15)
    if grid == "coarse":
        exact = mechanisms.grid_for

        def without_rounding(sensitivity, error, n, scales):
            grid = exact(sensitivity, error, n, scales)
            return replace(grid, moves=grid.moves - n)

        monkeypatch.setattr(mechanisms, "grid_for", without_rounding)
        assert most_moved(rng, laplace, 1, epsilon) > epsilon * 1.05


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_covers_rounding_and_errors(rng, epsilon):
    """In L2, neighbors are no farther apart than what the noise is for."""
    ratio = mechanisms._deviation(epsilon, 1e-5)
    worst = most_moved(rng, gaussian, 2, epsilon, 1e-5)
    assert 0.5 / ratio < worst <= 1.0 / ratio


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_law_is_private_and_no_noisier_than_needed(epsilon):
    """The law of the release, summed: delta is 0 at epsilon, and above 0 a little below it."""
    first, scale, step = on_grid(laplace, 0.0, 1.0, epsilon)
    second, *_ = on_grid(laplace, 1.0, 1.0, epsilon)
    most = math.ceil(40 * scale)
    law, moved = laplace_law(scale, most), int(second[0] - first[0])
    pair = shifted(law, 0, moved), shifted(law, moved, moved)
    inside = [p[moved:-moved] for p in pair]
    assert hockey_stick(*inside, epsilon) < 1e-15
    assert hockey_stick(*inside, epsilon * 0.5) > 1e-3 * epsilon
    assert scale * step < 3.0 / epsilon  # even here, where rounding is half of it


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [0.05, 1e-6])
def test_gaussian_law_is_private(epsilon, delta):
    """One value, summed: as private as it says, and not with much less noise."""
    first, scale, _ = on_grid(gaussian, 0.0, 1.0, epsilon, delta)
    apart = math.floor(scale / mechanisms._deviation(epsilon, delta))
    second, *_ = on_grid(gaussian, 1.0, 1.0, epsilon, delta)
    assert second[0] - first[0] <= apart
    most = math.ceil(12 * scale) + apart

    def summed(scale):
        law = gaussian_law(scale, most)
        return hockey_stick(shifted(law, 0, apart), shifted(law, apart, apart), epsilon)

    assert summed(scale) <= delta
    assert summed(0.5 * scale) > 1.5 * delta


@pytest.mark.usefixtures("coarse")
def test_gaussian_law_of_two_values_is_private():
    """Diagonal moves and those of one value alike, summed over the plane."""
    epsilon, delta = 1.0, 1e-3
    _, scale, _ = on_grid(gaussian, [0.0, 0.0], 1.0, epsilon, delta)
    furthest = scale / mechanisms._deviation(epsilon, delta)
    law = gaussian_law(scale, math.ceil(8 * scale))
    moves = [(i, j) for i in range(9) for j in range(9) if 0 < math.hypot(i, j) <= furthest]
    assert len(moves) > 5
    deltas = []
    for i, j in moves:
        at_rest = np.multiply.outer(shifted(law, 0, i), shifted(law, 0, j))
        moved = np.multiply.outer(shifted(law, i, i), shifted(law, j, j))
        deltas.append(hockey_stick(at_rest, moved, epsilon))
    assert 0.3 * delta < max(deltas) <= delta


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_gaussian_noise_is_that_of_balle_and_wang(epsilon, delta):
    """Their condition, solved anew; the classical formula, where it holds, asks for more."""

    def excess(sigma):
        above = norm.cdf(0.5 / sigma - epsilon * sigma)
        return above - math.exp(epsilon) * norm.cdf(-0.5 / sigma - epsilon * sigma) - delta

    sigma = brentq(excess, 1e-3, 1e6, xtol=1e-14)
    release = gaussian(3.0, 2.0, epsilon, delta, Told())
    assert sigma < release.scale / 2.0 < sigma * (1 + 2**-9)
    assert release.cost.rho == pytest.approx(0.5 / sigma**2, rel=2**-8)
    if epsilon < 1:
        assert release.scale / 2.0 < math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_exponential_law_is_private_and_concentrated(rng, epsilon):
    """Probabilities of neighbors, their ratios, and Renyi divergences of several orders."""
    losses = []
    for _ in range(100):
        result, sensitivity = Told(), float(10.0 ** rng.uniform(-3, 3))
        scores = 3 * rng.standard_normal(6) * sensitivity / epsilon
        laws = []
        for turn in (0.0, 1.0):
            moved = scores + turn * sensitivity * rng.choice([-1, 1], 6)
            choice = exponential(moved, sensitivity, epsilon, result)
            weights = np.exp((result.scores - result.scores.max()) / result.scales[-1])
            laws.append(weights / weights.sum())
        ratios = np.log(laws[0] / laws[1])
        losses.append(np.abs(ratios).max())
        for order in (1.1, 2.0, 10.0):
            divergence = np.log(np.sum(laws[0] * np.exp((order - 1) * ratios))) / (order - 1)
            assert divergence <= order * choice.cost.rho + 1e-12
    assert 0.2 * epsilon < max(losses) <= epsilon * (1 + 1e-12)


def test_opendp_agrees_about_what_noise_costs():
    """Its own maps, from how far neighbors are apart on the grid to epsilon and rho."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    vectors = dp.vector_domain(dp.atom_domain(T="i64"))
    for size, epsilon in ((1, 0.1), (3, 2.0)):
        result = Told()
        laplace(np.zeros(size), 1.0, epsilon, result)
        moves = mechanisms.grid_for(1.0, 0.0, size, 1.0 / epsilon).moves
        noise = dp.m.make_laplace(vectors, dp.l1_distance(T="i64"), scale=result.scales[0])
        assert noise.map(math.ceil(moves)) == pytest.approx(epsilon, rel=1e-2)
        assert noise.map(math.floor(moves)) <= epsilon
        rho = gaussian(np.zeros(size), 1.0, epsilon, 1e-6, result).cost.rho
        ratio = mechanisms._deviation(epsilon, 1e-6)
        moves = mechanisms.grid_for(1.0, 0.0, math.sqrt(size), ratio).moves
        noise = dp.m.make_gaussian(vectors, dp.l2_distance(T="f64"), scale=result.scales[1])
        assert noise.map(moves) == pytest.approx(rho, rel=1e-9)
        choice = exponential(np.zeros(size), 1.0, epsilon, result)
        moves = mechanisms.grid_for(1.0, 0.0, 1.0, 2.0 / epsilon).moves
        measures = dp.linf_distance(T="i64"), dp.zero_concentrated_divergence()
        noise = dp.m.make_noisy_max(vectors, *measures, scale=result.scales[2])
        assert noise.map(math.ceil(moves)) == pytest.approx(choice.cost.rho, rel=1e-2)


def law_of_test(distance, epsilon, delta, value):
    """Return the law of a propose-test-release on a grid, the last place that of no release."""

    def released(noise):
        return propose_test_release(distance, value, 1.0, epsilon, delta, noise)

    passing = next(noise for noise in range(-20, 400) if released(Told(noise)) is not None)
    result, most = Told(400), 4000
    release = released(result)
    passes = laplace_law(result.scales[-1], most)[most + passing :].sum()
    law = laplace_law(result.scales[0], most)
    place = round(release.values.item() / (release.scale / result.scales[0])) - 400
    return np.append(passes * np.roll(law, place), 1.0 - passes)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_propose_test_release_is_private(monkeypatch, epsilon):
    """Unstable neighbors far apart, stable ones close by; the printed threshold is not private."""
    delta = 0.01

    def separated(distances, values):
        pairs = zip(distances, values, strict=True)
        laws = [law_of_test(d, epsilon, delta, value) for d, value in pairs]
        return hockey_stick(*laws, epsilon)

    assert 0.5 * delta < separated((0, 0), (0.0, 100.0)) <= delta
    for distance in (0, 1, stability_threshold(epsilon / 2, delta) - 2):  # no delta is needed
        assert separated((distance, distance + 1), (0.0, 1.0)) < 1e-12
    printed = math.ceil(1 + math.log(1 / delta))
    monkeypatch.setattr(mechanisms, "stability_threshold", lambda *_: printed)
    assert separated((0, 0), (0.0, 100.0)) > 2 * delta


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 4.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-7])
def test_threshold_is_the_smallest(epsilon, delta):
    """By the noise's tail, summed."""
    threshold = stability_threshold(epsilon, delta)
    law = laplace_law(1 / epsilon, 3000)
    assert law[3000 + threshold :].sum() <= delta
    assert threshold == 1 or law[3000 + threshold - 1 :].sum() > delta


def test_releases_tell_nothing_but_their_values():
    """All fields but the values are public; extreme values are clipped, not wrapped around."""
    first, second = (laplace([x, -x], 1.0, 0.5, Told()) for x in (0.25, 1e300))
    assert first.values.tolist() == [0.25, -0.25]
    assert (first.scale, first.cost) == (second.scale, second.cost)
    assert second.values[0] == -second.values[1] > 1e6
    assert not first.is_private
    grid = [laplace(x, 1.0, 1.0, noise_source("simulated", 3)).values.item() for x in (0.0, 1.0)]
    assert all(value * 2**20 == round(value * 2**20) for value in grid)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n: laplace(1.0, 1.0, 0.0, n), "epsilon must be .* got 0.0"),
        (lambda n: laplace(1.0, 1.0, math.inf, n), "epsilon must be a finite"),
        (lambda n: laplace(1.0, 0.0, 1.0, n), "sensitivity must be .* got 0.0"),
        (lambda n: laplace([1.0, math.nan], 1.0, 1.0, n), "values must be finite, got nan at"),
        (lambda n: laplace(["private"], 1.0, 1.0, n), "values must be numbers, got list"),
        (lambda n: laplace([[1.0]], 1.0, 1.0, n), "values must be one number or a list"),
        (lambda n: laplace(1.0, 1.0, 1.0, n, error=-1.0), "error must be .* got -1"),
        (lambda n: laplace(np.zeros(10**6), 1.0, 1e-9, n), "epsilon must be larger"),
        (lambda n: gaussian(1.0, 1.0, 1.0, 0.0, n), "delta must be .* got 0.0"),
        (lambda n: gaussian(1.0, 1.0, 1.0, 1.0, n), "delta must be .* got 1.0"),
        (lambda n: exponential([], 1.0, 1.0, n), "scores must be one number or a list"),
        (lambda n: propose_test_release(-1, 1.0, 1.0, 1.0, 0.1, n), "distance must be"),
        (lambda n: propose_test_release(9, 1.0, 0.0, 1.0, 0.1, n), "proposed must be"),
    ],
)
def test_wrong_parameters_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call(Told())
