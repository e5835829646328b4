"""A small data set and quick fits of it, shared by the tests of the estimators."""

from functools import cache

import pandas as pd

from bayescascade import BranchCascade, LeafCascade
from tests.people import DECLARED, draw_people

ESTIMATORS = (LeafCascade, BranchCascade)

QUICK = {
    "search": "anneal+metropolis", "n_steps": 160, "n_chains": 2, "n_jobs": 1, "random_state": 3,
}  # fmt: skip


def people(n_rows: int = 150, seed: int = 0) -> pd.DataFrame:
    """Return rows of two nominal, an ordinal and a continuous column that depend on each other."""
    return draw_people(n_rows, seed)


@cache
def fitted(estimator: type, **parameters: object):
    """Return the estimator fitted to `people`; treat it as read-only."""
    return estimator(**{**QUICK, **DECLARED, **parameters}).fit(people())
