"""Hill climbing against proved bounds: how far one row moves each statistic that noise hides."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bayescascade.methods.causal import protection as directions
from bayescascade.methods.causal.regression import GaussianFeatures
from bayescascade.methods.causal.scores import log_iqr, score_of
from bayescascade.methods.rados import protection
from bayescascade.privacy.mechanisms import MOST_STEPS, grid_for
from tests.fuzz.running import Found, Problem
from tests.methods.rados.problems import agreement_laws, smallest_delta

Floats = np.ndarray[Any, np.dtype[np.float64]]

_ROUNDING = 1e-7  # what scores may be off by in floating point


def climbed(
    change: Callable[[Floats], float], start: Floats, rng: np.random.Generator, n_steps: int
) -> float:
    """Return the largest change that is found from a start by local moves within [-1, 1]."""
    state, best = start, change(start)
    for _ in range(n_steps):
        tried = state.copy()
        places = rng.integers(state.size, size=int(rng.integers(1, 4)))
        how = rng.integers(3)
        if how == 0:
            tried.flat[places] = rng.uniform(-1, 1, len(places))
        elif how == 1:
            tried.flat[places] = tried.flat[rng.integers(state.size, size=len(places))]
        else:
            tried.flat[places] += rng.normal(size=len(places)) * 10.0 ** rng.uniform(-4, 0)
        tried = tried.clip(-1, 1)
        found = change(tried)
        if found >= best:
            state, best = tried, found
    return best


@cache
def _kernels(bandwidth: float) -> tuple[GaussianFeatures, GaussianFeatures]:
    return GaussianFeatures(bandwidth, -1, 1), GaussianFeatures(bandwidth, -2, 2)


def _check(what: str, found: float, bound: float, slack: float = _ROUNDING) -> None:
    if not found <= bound + slack:
        raise Found(f"{what} must be at most {bound!r}, got {found!r}")


def changes_by_test_row(problem: Problem) -> None:
    """`by_test_row`: one of m rows replaced."""
    rng, m = problem.rng, int(problem.rng.choice([3, 4, 5, 8, 15, 40]))
    score = str(rng.choice(["kendall", "spearman", "hsic"]))
    bandwidth = float(rng.choice([0.02, 0.1, 1.0]))
    kernels = _kernels(bandwidth)

    def change(state: Floats) -> float:
        a, b = state[0], 2 * state[1]
        near = [np.concatenate([one[-1:], one[1:-1]]) for one in (a, b)]
        scores = [score_of(score, *each, kernels) for each in ((a[:-1], b[:-1]), near)]
        return abs(scores[0] - scores[1])

    start = rng.uniform(-1, 1, (2, m + 1))
    if rng.random() < 0.6:  # near the worst: monotone rows and a stranger, or few distinct ones
        start = np.sort(start, axis=1)
        start[:, -1] = start[:, 0] * [1, -1]
    if rng.random() < 0.3:
        start = np.round(start)
    best = climbed(change, start, rng, 80)
    bound = directions.by_test_row(score, m)
    problem.note(score=score, test_rows=m, bandwidth=bandwidth)
    problem.note(**{f"{score}_of_bound": best / bound})
    _check(f"the change of {score} by one of {m} rows", best, bound)


def stability_distances(problem: Problem) -> None:
    """Distances differ by at most 1 between neighbors, and above 0 bound what a row changes."""
    rng, m = problem.rng, int(problem.rng.choice([5, 12, 40, 120]))
    proposed = float(rng.choice([0.01, 0.1, 0.5, 0.9]))
    rows = rng.normal(size=m) * rng.choice([0.2, 1.0])
    if rng.random() < 0.3:
        rows = np.round(rows, 1)
    near = rows.copy()
    near[int(rng.integers(m))] = rng.choice([-2.0, 2.0, *rng.choice(rows, 2)])
    distances = [directions.iqr_distance([one], proposed) for one in (rows, near)]
    problem.note(rows=m, proposed=proposed, distance=distances[0])
    if abs(distances[0] - distances[1]) > 1:
        raise Found(f"distances of neighbors must differ by at most 1, got {distances}")
    if max(distances) > 0:
        moved = abs(log_iqr(rows) - log_iqr(near))
        _check("the change of stable log IQRs", moved, proposed, 1e-12)


def grids(problem: Problem) -> None:
    """Round and clip neighbors: they are no farther apart than the noise is made for."""
    rng, k = problem.rng, int(problem.rng.choice([1, 2, 7, 100]))
    apart, error = float(10 ** rng.uniform(-12, 12)), float(rng.choice([0.0, 1e-9, 1e-3, 10.0]))
    epsilon, norm = float(10 ** rng.uniform(-6, 3)), int(rng.integers(1, 3))
    roundings = k if norm == 1 else math.sqrt(k) * (1 + 1e-12)
    grid = grid_for(apart, error, roundings, 1.0 / epsilon)
    center = rng.normal(size=k) * 10.0 ** rng.uniform(-12, 30)
    moved = rng.normal(size=k)
    moved *= apart / np.linalg.norm(moved, norm) * rng.choice([1.0, 1 - 1e-9, rng.random()])
    offs = error * rng.choice([-1.0, 1.0, 0.0], (2, k))
    one, other = center + offs[0], center + moved + offs[1]
    true = float(np.linalg.norm((other - one).astype(np.longdouble), norm))
    steps = grid.rounded(one).astype(object) - grid.rounded(other).astype(object)
    found = float(np.linalg.norm(steps.astype(np.float64), norm))
    problem.note(sensitivity=apart, error=error, values=k, steps_of_bound=found / grid.moves)
    allowed = grid.moves * max(1.0, true / (apart + 2 * roundings * error))  # of huge centers
    if found > allowed * (1 + 1e-12):
        raise Found(f"rounded neighbors must be within {grid.moves} steps, got {found}")
    if grid.moves / epsilon > 2.0**46 or np.abs(grid.rounded(one)).max() > MOST_STEPS:
        raise Found(f"noise must have room in int64, got {grid}")


def rado_laws(problem: Problem) -> None:
    """`coordinate_delta` against all signatures of few rows."""
    rng, n_rows = problem.rng, int(problem.rng.integers(1, 11))
    beta, epsilon = float(rng.choice([0.0, rng.uniform(0, 0.45)])), float(10 ** rng.uniform(-2, 1))
    signs = rng.choice([-1, 1], n_rows)
    near = signs.copy()
    near[rng.integers(n_rows)] *= -1
    n_rados = int(rng.integers(1, 3))
    exact = smallest_delta(
        agreement_laws(signs, beta), agreement_laws(near, beta), epsilon, n_rados
    )
    cut = protection.cut_of(n_rows, beta)
    promised = protection.coordinate_delta(n_rows, cut, epsilon, n_rados)
    problem.note(coordinate_rows=n_rows, coordinate_epsilon=epsilon, truncation=beta)
    _check("the delta of a coordinate", exact, promised, 1e-12)
