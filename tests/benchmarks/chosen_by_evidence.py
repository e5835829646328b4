"""Held-out log likelihood of the average over all trees, its parameters chosen by evidence.

    python -m tests.benchmarks.chosen_by_evidence [titanic tic_tac_toe]
    BAYESCASCADE_DATA=folder python -m tests.benchmarks.chosen_by_evidence nltcs

Titanic's four columns and tic-tac-toe's ten in five random folds; nltcs (16 binary columns, the
folder's nltcs_train.csv and nltcs_test.csv) as it is split in the literature, on the whole test
file. Of the branch model, splits by level, the parameters climb the log evidence of the training
rows, one at a time over the grids below, from the defaults; nothing else is tuned. Scores are nats
a row. Baselines measured elsewhere on the same data stand beside them.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.cascades.exact import ExactPosterior, solve
from bayescascade.methods.cascades.posterior import BranchPosterior
from tests.benchmarks.figures import ROOT, machine

N_FOLDS = 5
MEMORY = 8e9  # bytes

GRID: Mapping[str, tuple[float, ...]] = {
    "expected_branches": (0.25, 0.5, 1.0, 2.0, 3.0, 4.0),
    "concentration": (0.25, 0.5, 1.0, 2.0, 4.0),
    "leaf_concentration": (0.1, 0.25, 0.5, 1.0, 2.0),
}
START = {"expected_branches": 2.0, "concentration": 2.0, "leaf_concentration": 1.0}

ELSEWHERE = {
    "titanic": "hill-climbed network -2.358, Chow-Liu -2.404",
    "tic_tac_toe": "hill-climbed network -9.942, Chow-Liu -10.013",
    "nltcs": "hill-climbed network -6.032, Chow-Liu -6.759, smoothed histogram -6.277, "
    "the literature's best about -5.99",
}


def main() -> None:
    """Print what every data set gives, as soon as it is there."""
    print("\n".join(machine()), flush=True)  # noqa: T201 - a script
    for name in sys.argv[1:] or ["titanic", "tic_tac_toe"]:
        print(f"\n{name}   elsewhere: {ELSEWHERE[name]}", flush=True)  # noqa: T201
        for leaf in ("independent", "uniform"):
            for line in held_out(name, leaf):
                print(line, flush=True)  # noqa: T201


def held_out(name: str, leaf: str) -> Iterator[str]:
    """Yield the mean log density of the rows held out, and what it took."""
    scores, weights = [], []
    for seen, unseen in splits(name):
        started = perf_counter()
        exact, parameters, n_solved = climb(seen, leaf)
        chosen_at = perf_counter()
        scores.append(
            float(np.dot(unseen.weights, exact.log_predictive(unseen.codes.astype("i4"))))
        )
        weights.append(unseen.total_weight)
        scored_at = perf_counter()
        told = ", ".join(f"{key} {value:g}" for key, value in parameters.items())
        yield (
            f"  {leaf}: {scores[-1] / weights[-1]:.4f}   {told}   log evidence "
            f"{exact.log_evidence:,.1f}   {n_solved} x {(chosen_at - started) / n_solved:.1f} s, "
            f"{1e3 * (scored_at - chosen_at) / unseen.n_distinct:.1f} ms a distinct row"
        )
    yield f"  {leaf}: mean {sum(scores) / sum(weights):.4f}"


def climb(table: Table, leaf: str) -> tuple[ExactPosterior, dict[str, float], int]:
    """Return the posterior of the highest evidence, its parameters, and how many were solved."""
    known: dict[tuple[float, ...], float] = {}
    names = [name for name in GRID if leaf == "independent" or name != "leaf_concentration"]

    def evidence(parameters: Mapping[str, float]) -> float:
        key = tuple(parameters[name] for name in names)
        if key not in known:
            known[key] = solved(table, leaf, parameters).log_evidence
        return known[key]

    best = {name: START[name] for name in names}
    while True:
        before = dict(best)
        for name in names:
            best = max(({**best, name: value} for value in GRID[name]), key=evidence)
        if best == before:
            return solved(table, leaf, best), best, len(known) + 1


def solved(table: Table, leaf: str, parameters: Mapping[str, Any]) -> ExactPosterior:
    """Return the exact posterior of the branch model."""
    posterior = BranchPosterior(table, partitions="levels", leaf=leaf, **parameters)
    return solve(posterior, memory_limit=MEMORY)


def splits(name: str) -> Iterator[tuple[Table, Table]]:
    """Yield the rows to learn from and those held out, of one schema."""
    if name == "nltcs":
        folder = Path(os.environ["BAYESCASCADE_DATA"])
        seen, unseen = (pd.read_csv(folder / f"nltcs_{part}.csv") for part in ("train", "test"))
        schema = Table.from_frame(pd.concat([seen, unseen])).schema
        yield _table(seen, schema), _table(unseen, schema)
        return
    frame = pd.read_csv(ROOT / "data" / f"{name}.csv")
    schema = Table.from_frame(frame).schema
    fold = np.random.default_rng(0).permutation(len(frame)) % N_FOLDS
    for k in range(N_FOLDS):
        yield _table(frame[fold != k], schema), _table(frame[fold == k], schema)


def _table(frame: pd.DataFrame, schema: Schema) -> Table:
    return Table.from_frame(frame, schema=schema)


if __name__ == "__main__":
    main()
