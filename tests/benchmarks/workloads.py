"""Data for the benchmarks, most of them drawn from the density of a random tree.

The tree is grown here, without the package, so that a benchmark measures the same data whatever
becomes of the moves.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from bayescascade import Table
from bayescascade.methods.lists.posterior import LabelListPosterior
from tests.benchmarks.figures import ROOT

N_LEVELS = 4
N_LEAVES = 8
_SPARSEST = 0.05  # density of the sparsest leaf, at worst, as a share of the densest


def distinct_table(n_distinct, n_columns=10, seed=0):
    """Return a table of exactly `n_distinct` distinct rows of four-level nominal columns."""
    rng = np.random.default_rng(seed)
    leaves, densities = _random_density(rng, n_columns)
    codes = np.empty((0, n_columns), np.uint8)
    while len(codes) < n_distinct:
        drawn = _draw(rng, leaves, densities, 2 * n_distinct)
        codes = np.unique(np.concatenate([codes, drawn]), axis=0)
    names = [f"c{j}" for j in range(n_columns)]
    return Table.from_frame(
        pd.DataFrame(rng.permutation(codes)[:n_distinct], columns=names),
        nominal={name: list(range(N_LEVELS)) for name in names},
    )


def write_csv(path, n_rows, n_columns=20, seed=0):
    """Write `n_rows` rows of four-level text columns."""
    rng = np.random.default_rng(seed)
    leaves, densities = _random_density(rng, n_columns)
    codes = _draw(rng, leaves, densities, n_rows)
    levels = pa.array(["north", "east", "south", "west"])
    columns = {f"c{j}": levels.take(pa.array(codes[:, j])) for j in range(n_columns)}
    pyarrow.csv.write_csv(pa.table(columns), path)


def _random_density(rng, n_columns):
    """Return boxes, (n_columns, n_levels) bool of the levels left, and their densities."""
    leaves = [np.ones((n_columns, N_LEVELS), np.bool_)]
    while len(leaves) < N_LEAVES:
        box = leaves[rng.integers(len(leaves))]
        column = rng.integers(n_columns)
        left = np.flatnonzero(box[column])
        if left.size < 2:
            continue
        moved = rng.permutation(left)[: rng.integers(1, left.size)]
        other = box.copy()
        other[column] = False
        other[column, moved] = True
        box[column, moved] = False
        leaves.append(other)
    return leaves, rng.uniform(_SPARSEST, 1.0, N_LEAVES)


def _draw(rng, leaves, densities, n_rows):
    """Return (n_rows, n_columns) codes: a leaf by its probability, uniform within it."""
    volumes = np.array([np.prod(box.sum(axis=1, dtype=np.float64)) for box in leaves])
    shares = densities * volumes
    chosen = rng.choice(len(leaves), size=n_rows, p=shares / shares.sum())
    codes = np.empty((n_rows, leaves[0].shape[0]), np.uint8)
    for index, box in enumerate(leaves):
        inside = np.flatnonzero(chosen == index)
        for column, allowed in enumerate(box):
            codes[inside, column] = rng.choice(np.flatnonzero(allowed), size=inside.size)
    return codes


def rows_like_covertype(n_rows):
    """Return so many rows and their labels."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, 10))
    soil = rng.geometric(0.1, n_rows)[:, np.newaxis] == np.arange(1, 45)
    score = numbers[:, :5] @ rng.normal(size=(5, 7)) + soil @ rng.normal(size=(44, 7))
    labels = (2 * score + rng.normal(size=(n_rows, 7))).argmax(axis=1)
    return np.column_stack([numbers, soil]).astype(np.float32), labels


# -- rule lists --------------------------------------------------------------------------------

N_COLUMNS = 20
_PLANTED = ((0, 1, 0.9), (2, 3, 0.2), (4, 5, 0.8), (6, 7, 0.1), (8, 9, 0.7))
_ELSE = 0.4


def tic_tac_toe_posterior():
    """Return the posterior of all 958 ends of the game, with rules of up to three squares."""
    frame = pd.read_csv(ROOT / "data" / "tic_tac_toe.csv")
    return LabelListPosterior(Table.from_frame(frame), "outcome", max_size=3)


def binary_posterior(n_rows, seed=0):
    """Return the posterior of different rows of twenty binary columns, with rules of up to two.

    The labels are drawn from a list of five rules of two conditions each.
    """
    rng = np.random.default_rng(seed)
    numbers = rng.choice(1 << N_COLUMNS, n_rows, replace=False)
    codes = (numbers[:, np.newaxis] >> np.arange(N_COLUMNS)) & 1
    probability = np.full(n_rows, _ELSE)
    for first, second, share in reversed(_PLANTED):
        probability[(codes[:, first] == 1) & (codes[:, second] == 1)] = share
    frame = pd.DataFrame(codes, columns=[f"c{j}" for j in range(N_COLUMNS)])
    frame["label"] = (rng.random(n_rows) < probability).astype(np.int64)
    levels = {name: [0, 1] for name in frame.columns}
    return LabelListPosterior(Table.from_frame(frame, nominal=levels), "label")
