"""Posteriors of rule lists for the benchmarks."""

import numpy as np
import pandas as pd

from bayescascade import Table
from bayescascade.methods.rules.posterior import LabelListPosterior
from tests.benchmarks.figures import ROOT

__all__ = ["binary_posterior", "tic_tac_toe_posterior"]

N_COLUMNS = 20
_PLANTED = ((0, 1, 0.9), (2, 3, 0.2), (4, 5, 0.8), (6, 7, 0.1), (8, 9, 0.7))
_ELSE = 0.4


def tic_tac_toe_posterior() -> LabelListPosterior:
    """Return the posterior of all 958 ends of the game, with rules of up to three squares."""
    frame = pd.read_csv(ROOT / "data" / "tic_tac_toe.csv")
    return LabelListPosterior(Table.from_frame(frame), "outcome", max_size=3)


def binary_posterior(n_rows: int, seed: int = 0) -> LabelListPosterior:
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
