"""Independent posterior draws of a leaf model from a mixture of tilts; `passes` has the words.

A tree drawn from tilt i, chosen with probability ``a_i``, is accepted with a probability in
proportion to ``w_K / sum_i a_i exp(s_i K) / G(s_i)``, which makes draws independent and exact, but
for numbers of leaves that come to less than `NEGLIGIBLE` together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import logsumexp

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.cascades.exact.passes import Passes
from bayescascade.methods.cascades.tree import Tree

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-9
"""Share of the sum over all trees that draws may leave out."""

_RATIOS = -9.0, 7.0  # logs, between which the shares of a mixture are distinguished
_GUESSED, _HOPELESS = 0.5, 1_000  # draws accepted, and trees for one that is


@dataclass(frozen=True, slots=True)
class Mixture:
    """Tilts to draw from."""

    tilts: Floats  # (m,)
    shares: Floats  # (m,) >= 0: probability of each tilt
    log_accepted: Floats  # (K,) <= 0: log probability to accept, by leaves; -inf where negligible
    rate: float  # in [0, 1]: least probability that a draw is accepted


def mix(passes: Passes, tilts: Floats, log_least: float, log_most: Floats) -> Mixture:
    """Return the mixture of tilts of which most draws are accepted, by a linear program.

    A draw of a tree of K leaves is accepted where ``sum_i a_i r_Ki`` is least over K. tilts (m,)
    float64; log_least: least log of the sum over all trees, nats; log_most (K,) float64: most log
    of the sum over trees of K leaves, but for ``w_K``, nats.
    """
    log_mass = passes.log_w + log_most - log_least  # of the posterior, at most
    order = np.argsort(log_mass)
    kept = np.sort(order[np.cumsum(np.exp(np.minimum(log_mass[order], 0.0))) > NEGLIGIBLE])
    if kept.size == 0:  # of more leaves than are listed are all that are probable
        return Mixture(tilts[:1], np.ones(1), np.full(passes.k.size, -np.inf), 0.0)
    log_of = tilts[:, None] * passes.k[kept] - np.array([[passes.sums[s]] for s in tilts])
    log_ratios = log_of - passes.log_w[kept] + log_least
    low, high = _RATIOS  # what is cut off would only add to the least
    ratios = np.where(log_ratios < low, 0.0, np.exp(np.minimum(log_ratios, high))).T
    at_most = np.column_stack([-ratios, np.ones(kept.size)]), np.zeros(kept.size)
    sums_to_one = np.append(np.ones(tilts.size), 0.0)[None], [1.0]
    least = linprog(np.append(np.zeros(tilts.size), -1.0), *at_most, *sums_to_one)
    shares = np.ones(tilts.size) if least.x is None else np.maximum(least.x[:-1], 0.0)
    shares /= shares.sum()
    log_mixed = logsumexp(log_ratios, b=shares[:, None], axis=0)
    log_accepted = np.full(passes.k.size, -np.inf)
    log_accepted[kept] = log_mixed.min() - log_mixed
    used = shares > 0
    return Mixture(tilts[used], shares[used], log_accepted, float(np.exp(log_mixed.min())))


def draw(passes: Passes, mixture: Mixture, n: int, rng: np.random.Generator) -> list[Tree]:
    """Return draws, of trees kept or by a pass a tilt; TooLargeError below one in a thousand."""
    try:
        return _drawn(passes, mixture, n, rng)
    finally:
        passes.drop_kept()


def _drawn(passes: Passes, mixture: Mixture, n: int, rng: np.random.Generator) -> list[Tree]:
    drawn: list[Tree] = []
    rate, n_tried = max(mixture.rate, _GUESSED), 0
    log_accepted_of = np.append(mixture.log_accepted, -np.inf)  # of more leaves than are listed
    while len(drawn) < n:
        wanted = int((n - len(drawn)) / rate * 1.1) + 10
        numbers = rng.multinomial(wanted, mixture.shares)
        trees: list[Tree] = []
        for tilt, number in zip(mixture.tilts.tolist(), numbers.tolist(), strict=True):
            trees += passes.draws_of(tilt, number, rng)
        sizes = np.minimum([tree.n_leaves for tree in trees], passes.k.size + 1)
        log_accepted = log_accepted_of[sizes - 1]
        accepted = np.flatnonzero(np.log(rng.random(len(trees))) < log_accepted)
        drawn += [trees[i] for i in rng.permutation(accepted)]
        n_tried += len(trees)
        if n_tried > _HOPELESS * (1 + len(drawn)):
            few = f"more than {_HOPELESS:,} trees for each draw"
            raise TooLargeError(
                f"rejection sampling accepted fewer than 1 in {_HOPELESS:,} trees; use "
                'search="anneal+metropolis"',
                few,
            )
        rate = max(accepted.size / len(trees), 0.02)
    return drawn[:n]
