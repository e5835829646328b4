"""The numbers 1 to 100, once each: is a single leaf the best tree? (Goh 2018, section 3.4.2).

One ordinal column has few boxes, so that the best tree can be told for certain: what "best found"
is worth can be seen beside it. Run ``python examples/extreme_uniform.py``.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from bayescascade import BranchCascade, BranchPosterior, LeafCascade, LeafPosterior, Table
from bayescascade.methods.density.trees.exact import ExactPosterior, solve

DATA = Path(__file__).parents[1] / "data"
LEVELS = {"x": list(range(1, 101))}
N_HALVES = 3
MOST_LEAVES = 16  # that an exact tree of the leaf model may have; the branch model needs no bound
MODELS = ("leaf", "branch")


def best_tree(model: str, frame: pd.DataFrame, expected: float) -> ExactPosterior:
    """Return the exact solution: its ``tree`` is the most probable, of ``log_density``."""
    table = Table.from_frame(frame, ordinal=LEVELS)
    if model == "leaf":
        return solve(LeafPosterior(table, expected), max_leaves=MOST_LEAVES)
    return solve(BranchPosterior(table, expected))


def best_found(model: str, frame: pd.DataFrame, expected: float) -> LeafCascade | BranchCascade:
    """Return a cascade with the best tree that a short annealing finds."""
    options = {
        "ordinal": LEVELS,
        "search": "anneal",
        "n_steps": 10_000,
        "n_chains": 1,
        "random_state": 0,
    }
    if model == "leaf":
        return LeafCascade(expected_leaves=expected, **options).fit(frame)
    return BranchCascade(expected_branches=expected, **options).fit(frame)


def main() -> None:
    """Print the leaves of the best trees of all values and of random halves of them."""
    frame = pd.read_csv(DATA / "extreme_uniform.csv")
    print("All 100 values: leaves of the best tree, exact (and found by annealing)")
    expected = (1, 8)
    print(f"  {'expected leaves or branches':<28}" + "".join(f"{e:>7}" for e in expected))
    for model in MODELS:
        exact = [best_tree(model, frame, e).tree.n_leaves for e in expected]
        found = [best_found(model, frame, e).tree_.n_leaves for e in expected]
        cells = [f"{e} ({f})" for e, f in zip(exact, found, strict=True)]
        print(f"  {model:<28}" + "".join(f"{cell:>7}" for cell in cells))

    print(f"\n{N_HALVES} random halves of them, with the models' default parameters")
    for model, rate in zip(MODELS, (8.0, 2.0), strict=True):
        sizes, gaps = Counter[int](), []
        for seed in range(N_HALVES):
            half = np.random.default_rng(seed).permutation(len(frame))[: len(frame) // 2]
            seen = frame.iloc[np.sort(half)]
            exact = best_tree(model, seen, rate)
            sizes[exact.tree.n_leaves] += 1
            gaps.append(exact.log_density - best_found(model, seen, rate).log_posterior_)
        described = ", ".join(f"{n} ({sizes[n]})" for n in sorted(sizes))
        print(f"  {model}: a single leaf is best for {sizes[1]} of {N_HALVES}")
        print(f"    leaves of the exact best tree (halves): {described}")
        print(f"    annealing falls short by {np.mean(gaps):.2f} nats, at most {max(gaps):.2f}")


if __name__ == "__main__":
    main()
