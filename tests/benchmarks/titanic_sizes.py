"""Held-out log likelihood of density lists and cascades by their number of parts, on Titanic.

    python -m tests.benchmarks.titanic_sizes

Five random halvings of class, sex and age. The expected size is varied, so that lists and trees of
the same size can be compared; parts are a tree's leaves, and a list's rules and its else. The
histogram over all 16 cells has one row added to each.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from bayescascade import BranchCascade, DensityRuleList, LeafCascade, SmoothedHistogram, Table
from bayescascade.data.schema import Schema
from tests.benchmarks.figures import ROOT

N_HALVINGS = 5
SEARCH = {"n_steps": 20_000, "n_chains": 4, "random_state": 0}

Model = DensityRuleList | LeafCascade | BranchCascade

MODELS: dict[str, Callable[[], Model]] = {
    "list, 3 rules expected": lambda: DensityRuleList(3, 1, 1, **SEARCH),
    "list, 8 rules expected": lambda: DensityRuleList(8, 1, 1, **SEARCH),
    "list, 8 of size 2, max_size 3": lambda: DensityRuleList(8, 2, 1, max_size=3, **SEARCH),
    "leaf cascade, 1 leaf expected": lambda: LeafCascade(expected_leaves=1, **SEARCH),
    "leaf cascade, 3 leaves expected": lambda: LeafCascade(expected_leaves=3, **SEARCH),
    "leaf cascade, 8 leaves expected": lambda: LeafCascade(expected_leaves=8, **SEARCH),
    "branch cascade": lambda: BranchCascade(**SEARCH),
}


def main() -> None:
    """Print a row for each model as soon as it is there."""
    frame = pd.read_csv(ROOT / "data" / "titanic.csv").drop(columns="survived")
    schema = Table.from_frame(frame).schema
    halvings = list(_halvings(frame))
    print(f"{'':<34}{'parts':>6}{'map':>10}{'average':>10}  map of each halving")  # noqa: T201
    for name, make in MODELS.items():
        parts, best, averaged = np.array([_scores(make(), *halves) for halves in halvings]).T
        line = f"{name:<34}{parts.mean():>6.1f}{best.mean():>10.4f}{averaged.mean():>10.4f}"
        print(line + "  " + " ".join(f"{score:.4f}" for score in best), flush=True)  # noqa: T201
    scores = np.array([_histogram_score(schema, *halves) for halves in halvings])
    line = f"{'histogram':<34}{16:>6}{scores.mean():>10.4f}{'':>10}"
    print(line + "  " + " ".join(f"{score:.4f}" for score in scores))  # noqa: T201


def _halvings(frame: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    middle = len(frame) // 2
    for seed in range(N_HALVINGS):
        order = np.random.default_rng(seed).permutation(len(frame))
        yield frame.iloc[order[:middle]], frame.iloc[order[middle:]]


def _scores(model: Model, seen: pd.DataFrame, held_out: pd.DataFrame) -> tuple[float, float, float]:
    """Return the parts, and the mean log likelihood of the rows held out, two ways."""
    model.fit(seen)
    is_list = isinstance(model, DensityRuleList)
    parts = model.rules_.n_rules + 1 if is_list else model.tree_.n_leaves
    best = model.score_samples(held_out).mean()
    model.set_params(predictive="average")
    return parts, best, model.score_samples(held_out).mean()


def _histogram_score(schema: Schema, seen: pd.DataFrame, held_out: pd.DataFrame) -> float:
    table = Table.from_frame(seen, schema=schema)
    return SmoothedHistogram(pseudo_count=1).fit(table).score_samples(held_out).mean()


if __name__ == "__main__":
    main()
