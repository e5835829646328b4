"""Two experiments of the thesis (Goh 2018, sections 3.3.1 and 3.4.1), with what they show here.

Run it from anywhere: ``python examples/experiments.py``. Every seed is fixed.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from bayescascade import BranchCascade, DensityRuleList, LeafCascade

DATA = Path(__file__).parents[1] / "data"
TREES = {"leaf": LeafCascade, "branch": BranchCascade}
SEARCH = {"search": "anneal", "n_steps": 10_000, "n_chains": 2, "random_state": 0}  # is enough here
N_HALVINGS = 5


def halves(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a random half of the rows, and the other half."""
    order = np.random.default_rng(seed).permutation(len(frame))
    middle = len(frame) // 2
    return frame.iloc[order[:middle]], frame.iloc[order[middle:]]


def sparse_tree() -> Iterator[str]:
    """Five of eight cells are occupied: is their density found? (section 3.4.1)."""
    frame = pd.read_csv(DATA / "sparse_tree.csv")
    cells = frame.drop_duplicates().sort_values(list(frame.columns))
    truth = [float((frame == row).all(axis=1).mean()) for row in cells.to_numpy()]
    yield "Sparse tree: density of the five occupied cells"
    names = [", ".join(str(value) for value in row) for row in cells.to_numpy()]
    yield f"  {'x1, x2, x3':<18}" + "".join(f"{name:>9}" for name in names) + f"{'leaves':>9}"
    yield f"  {'share of the rows':<18}" + "".join(f"{share:>9.3f}" for share in truth)
    for density in ("posterior_mean", "empirical"):
        for name, tree in TREES.items():
            model = tree(density=density, max_branches=2, **SEARCH).fit(frame)
            found = np.exp(model.score_samples(cells))
            label = f"{name}, {density.split('_')[-1]}"
            yield (
                f"  {label:<18}"
                + "".join(f"{value:>9.3f}" for value in found)
                + f"{model.tree_.n_leaves:>9}"
            )


def titanic() -> Iterator[str]:
    """Held-out log likelihood a row after five random halvings (section 3.3.1)."""
    frame = pd.read_csv(DATA / "titanic.csv").drop(columns="survived")
    yield "Titanic: held-out mean log likelihood, nats a row (and parts), five random halvings"
    yield "  histogram: all 16 cells, each with one row added: (n_cell + 1) / (n + 16)"
    yield "  parts: leaves of a tree, rules of a list and its else, cells of the histogram"
    yield f"  {'seed':<6}" + "".join(f"{name:>15}" for name in (*TREES, "rules", "histogram"))
    rows = []
    for seed in range(N_HALVINGS):
        seen, held_out = halves(frame, seed)
        row = []
        for tree in TREES.values():
            model = tree(**SEARCH).fit(seen)
            row += [model.score_samples(held_out).mean(), model.tree_.n_leaves]
        rules = DensityRuleList(expected_rules=3, expected_size=1, concentration=1, **SEARCH).fit(
            seen
        )
        row += [rules.score_samples(held_out).mean(), rules.rules_.n_rules + 1]
        row += [_histogram_score(frame, seen, held_out), 16]
        rows.append(row)
        yield _titanic_row(str(seed), row)
    yield _titanic_row("mean", np.mean(rows, axis=0))


def _titanic_row(label: str, row: "list[float] | np.ndarray") -> str:
    cells = [f"{row[i]:.4f} ({row[i + 1]:.3g})" for i in range(0, len(row), 2)]
    return f"  {label:<6}" + "".join(f"{cell:>15}" for cell in cells)


def _histogram_score(domain: pd.DataFrame, seen: pd.DataFrame, held_out: pd.DataFrame) -> float:
    """Return the mean log likelihood of a smoothed histogram over every combination of levels."""
    cells = pd.MultiIndex.from_product([sorted(domain[c].unique()) for c in domain.columns])
    counts = seen.value_counts().reindex(cells, fill_value=0)
    log_density = np.log((counts + 1) / (len(seen) + len(cells)))
    return float(log_density.loc[pd.MultiIndex.from_frame(held_out)].mean())


def main() -> None:
    """Print what every experiment shows."""
    for experiment in (sparse_tree, titanic):
        print("\n".join(experiment()), end="\n\n")


if __name__ == "__main__":
    main()
