"""The numbers 1 to 100, once each: is a single leaf the best tree? (Goh 2018, section 3.4.2).

One ordinal column is a case small enough to solve exactly, by dynamic programming over intervals:
what "best found" is worth can be seen beside it. Run ``python examples/extreme_uniform.py``.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade import BranchCascade, LeafCascade

DATA = Path(__file__).parents[1] / "data"
N_LEVELS = 100
ALPHA = 2.0  # the models' default concentration
N_HALVES = 20
MODELS = ("leaf", "branch")


class Best:
    """The most probable tree of an interval: its log posterior, nats, and its leaves."""

    def __init__(self, log_posterior: float, n_leaves: int) -> None:
        self.log_posterior = log_posterior
        self.n_leaves = n_leaves


def best_leaf_tree(counts: NDArray[np.int64], expected_leaves: float) -> Best:
    """Return the exact best tree of the leaf model.

    Its posterior depends on the leaves alone, so the best tree is the best partition into
    intervals, found for every number of leaves at once.
    """
    n, total, gain = _intervals(counts)
    gain = gain - n * np.log(np.maximum(_lengths(), 1))
    best = gain[0]  # of the partitions of [0, j) into as many intervals as the loop has counted
    found = Best(-np.inf, 0)
    for n_leaves in range(1, N_LEVELS + 1):
        log_prior = n_leaves * np.log(expected_leaves) - expected_leaves - gammaln(n_leaves + 1)
        norm = gammaln(n_leaves * ALPHA) - gammaln(n_leaves * ALPHA + total)
        if log_prior + norm + best[-1] > found.log_posterior:
            found = Best(float(log_prior + norm + best[-1]), n_leaves)
        best = np.max(best[:, np.newaxis] + gain, axis=0)
    return found


def best_branch_tree(counts: NDArray[np.int64], expected_branches: float) -> Best:
    """Return the exact best tree of the branch model, nodes with any number of branches."""
    n, _, gain = _intervals(counts)
    value = -expected_branches - n * np.log(np.maximum(_lengths(), 1))  # of every interval as leaf
    leaves = np.ones(value.shape, np.int64)
    branches = np.arange(N_LEVELS + 1)
    log_prior = branches * np.log(expected_branches) - expected_branches - gammaln(branches + 1)
    for i in reversed(range(N_LEVELS)):
        # Of [i, j) cut into b branches: the sum of the branches' values, and of their leaves.
        cut = np.full((N_LEVELS + 1, N_LEVELS + 1), -np.inf)
        cut_leaves = np.zeros(cut.shape, np.int64)
        for j in range(i + 1, N_LEVELS + 1):
            ways = cut[:-1, i + 1 : j] + (value + gain)[i + 1 : j, j]
            if ways.size:
                last = ways.argmax(axis=1)
                cut[1:, j] = ways.max(axis=1)
                cut_leaves[1:, j] = (
                    cut_leaves[branches[:-1], i + 1 + last] + leaves[i + 1 + last, j]
                )
                norm = gammaln(np.maximum(branches, 1) * ALPHA)
                norm = norm - gammaln(np.maximum(branches, 1) * ALPHA + n[i, j])
                split = (log_prior + norm + cut[:, j])[2:]
                if split.max() > value[i, j]:
                    value[i, j] = split.max()
                    leaves[i, j] = cut_leaves[2 + split.argmax(), j]
            cut[1, j] = value[i, j] + gain[i, j]
            cut_leaves[1, j] = leaves[i, j]
    return Best(float(value[0, -1]), int(leaves[0, -1]))


def _lengths() -> NDArray[np.int64]:
    """Return the number of levels of every interval [i, j), at [i, j]."""
    ends = np.arange(N_LEVELS + 1)
    return ends[np.newaxis, :] - ends[:, np.newaxis]


def _intervals(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], int, NDArray[np.float64]]:
    """Return the rows in every interval, in all, and an interval's Dirichlet term (-inf: empty)."""
    below = np.concatenate([[0], np.cumsum(counts)])
    n = below[np.newaxis, :] - below[:, np.newaxis]
    is_interval = _lengths() > 0
    n = np.where(is_interval, n, 0)
    return n, int(below[-1]), np.where(is_interval, gammaln(n + ALPHA) - gammaln(ALPHA), -np.inf)


EXACT: dict[str, Callable[[NDArray[np.int64], float], Best]] = {
    "leaf": best_leaf_tree,
    "branch": best_branch_tree,
}


def search(model: str, frame: pd.DataFrame, expected: float) -> Best:
    """Return the best tree that a short annealing finds."""
    options = {
        "ordinal": {"x": list(range(1, N_LEVELS + 1))},
        "search": "anneal",
        "n_steps": 20_000,
        "n_chains": 1,
        "random_state": 0,
    }
    if model == "leaf":
        fitted = LeafCascade(expected_leaves=expected, **options).fit(frame)
    else:
        fitted = BranchCascade(expected_branches=expected, **options).fit(frame)
    return Best(fitted.log_posterior_, fitted.tree_.n_leaves)


def main() -> None:
    """Print the leaves of the best trees of all values and of random halves of them."""
    frame = pd.read_csv(DATA / "extreme_uniform.csv")
    everything = np.ones(N_LEVELS, np.int64)
    print("All 100 values: leaves of the best tree, exact (and found by annealing)")
    expected = range(1, 9)
    print(f"  {'expected leaves or branches':<28}" + "".join(f"{e:>7}" for e in expected))
    for model in MODELS:
        exact = [EXACT[model](everything, e).n_leaves for e in expected]
        found = [search(model, frame, e).n_leaves for e in expected]
        cells = [f"{e} ({f})" for e, f in zip(exact, found, strict=True)]
        print(f"  {model:<28}" + "".join(f"{cell:>7}" for cell in cells))

    print(f"\n{N_HALVES} random halves of them, with the models' default parameters")
    for model, rate in zip(MODELS, (8.0, 2.0), strict=True):
        sizes, gaps = Counter[int](), []
        for seed in range(N_HALVES):
            half = np.random.default_rng(seed).permutation(N_LEVELS)[: N_LEVELS // 2]
            exact = EXACT[model](np.isin(np.arange(N_LEVELS), half).astype(np.int64), rate)
            sizes[exact.n_leaves] += 1
            found = search(model, frame.iloc[np.sort(half)], rate)
            gaps.append(exact.log_posterior - found.log_posterior)
        described = ", ".join(f"{n} ({sizes[n]})" for n in sorted(sizes))
        print(f"  {model}: a single leaf is best for {sizes[1]} of {N_HALVES}")
        print(f"    leaves of the exact best tree (halves): {described}")
        print(f"    annealing falls short by {np.mean(gaps):.2f} nats, at most {max(gaps):.2f}")


if __name__ == "__main__":
    main()
