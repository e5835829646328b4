"""Laws of releases on neighbors, by exact bounds on what was counted.

An audit chooses an event by one half of the runs, and bounds its probabilities by the other, after
Clopper and Pearson. Each is wrong with probability 1e-9, so that 10,000 of them all together find
something by chance once in 100,000 seeds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bayescascade import Rados, audit_privacy
from bayescascade.privacy import mechanisms
from bayescascade.privacy.mechanisms import NoiseSource, noise_source
from tests.fuzz.running import Found, Problem

_CONFIDENCE = 1 - 1e-9
_N_RUNS = 1500


def audited(
    run: Callable[[Any], Any], neighbors: tuple[Any, Any], epsilon: float, delta: float
) -> float:
    """Return the epsilon that is proved; raises `Found` if it is above what was promised."""
    audit = audit_privacy(run, neighbors, n_samples=_N_RUNS, confidence=_CONFIDENCE, delta=delta)
    if audit.epsilon_lower > epsilon:
        raise Found(f"epsilon must be {epsilon} at delta {delta}, got at least {audit}")
    return audit.epsilon_lower


def released_laws(problem: Problem) -> None:
    """Audit a mechanism on inputs as far apart as it was asked for."""
    rng = problem.rng
    noise = noise_source("simulated", rng)
    epsilon, delta = float(10 ** rng.uniform(-1, 0.7)), float(10 ** rng.uniform(-4, -1))
    kind = str(rng.choice(["laplace", "gaussian", "exponential", "test", "feature", "row"]))
    run, neighbors, delta = _MECHANISMS[kind](rng, noise, epsilon, delta)
    found = audited(run, neighbors, epsilon, delta)
    problem.note(law=kind, law_epsilon=epsilon, proved_of_epsilon=found / epsilon)


Law = tuple[Callable[[Any], Any], tuple[Any, Any], float]


def _laplace(rng: np.random.Generator, noise: NoiseSource, epsilon: float, _: float) -> Law:
    apart = float(10 ** rng.uniform(-3, 3))
    return lambda x: mechanisms.laplace(x, apart, epsilon, noise).values, (0.0, apart), 0.0


def _gaussian(rng: np.random.Generator, noise: NoiseSource, epsilon: float, delta: float) -> Law:
    apart = float(10 ** rng.uniform(-3, 3))
    return (
        lambda x: mechanisms.gaussian(x, apart, epsilon, delta, noise).values, (0.0, apart), delta
    )  # fmt: skip


def _exponential(rng: np.random.Generator, noise: NoiseSource, epsilon: float, _: float) -> Law:
    scores = rng.normal(size=int(rng.integers(2, 6)))
    near = scores + rng.choice([-1.0, 1.0], len(scores))
    return lambda s: mechanisms.exponential(s, 1.0, epsilon, noise).index, (scores, near), 0.0


def _test(rng: np.random.Generator, noise: NoiseSource, epsilon: float, delta: float) -> Law:
    distance = int(rng.integers(0, 4))
    proposed = float(rng.choice([1e-6, 0.1]))
    values = (0.0, proposed if distance else 5.0)

    def run(near: int) -> Any:
        left = distance if near else max(0, distance - 1)
        made = mechanisms.propose_test_release(left, values[near], proposed, epsilon, delta, noise)
        return None if made is None else made.values

    return run, (0, 1), delta


def _feature(rng: np.random.Generator, _: NoiseSource, epsilon: float, __: float) -> Law:
    n = int(rng.integers(8, 30))
    codes = rng.integers(2, size=n)
    near = codes.copy()
    near[0] ^= 1
    y = np.arange(n) % 2

    def sums(cells: Any, size: int) -> Rados:
        # a delta of one rado holds for each of many, which are independent
        return Rados.sample_feature_private(
            cells[:, np.newaxis], y, feature=0, values=(0, 1), epsilon=700.0, delta=0.9999,
            n_rados=size, noise="simulated", random_state=rng,
        )  # fmt: skip

    from bayescascade.methods.rados.protection import coordinate_delta

    draws = {one.tobytes(): iter(sums(one, _N_RUNS).values[:, 0].tolist()) for one in (codes, near)}
    delta = min(0.99, coordinate_delta(n, 0, epsilon))
    return lambda cells: next(draws[cells.tobytes()]), (codes, near), delta


def _row(rng: np.random.Generator, _: NoiseSource, epsilon: float, delta: float) -> Law:
    n = int(rng.integers(2, 6))
    X = rng.uniform(-1, 1, (n, 1))
    near = X.copy()
    X[0], near[0] = 1.0, -1.0
    options = {"classes": (0, 1), "edge_bounds": (-1, 1), "noise": "simulated", "intercept": False}

    def run(cells: Any) -> float:
        rados = Rados.sample_gaussian(
            cells, np.arange(n) % 2, epsilon=epsilon, delta=delta, n_rados=1, support=n,
            noise_on="rados", random_state=rng, **options,
        )  # fmt: skip
        return float(rados.values[0, 0])

    return run, (X, near), delta


_MECHANISMS: dict[str, Callable[..., Law]] = {
    "laplace": _laplace, "gaussian": _gaussian, "exponential": _exponential, "test": _test,
    "feature": _feature, "row": _row,
}  # fmt: skip
