"""A small data set and quick fits of it, shared by the tests of the estimators."""

from functools import cache

import numpy as np
import pandas as pd

from bayescascade import BranchCascade, LeafCascade

ESTIMATORS = (LeafCascade, BranchCascade)

QUICK = {"search": "anneal+metropolis", "n_steps": 400, "n_chains": 2, "random_state": 3}
DECLARED = {"ordinal": {"age": ["child", "adult", "old"]}, "continuous": {"fare": [0, 5, 20, 100]}}


def people(n_rows: int = 150, seed: int = 0) -> pd.DataFrame:
    """Return rows of two nominal, an ordinal and a continuous column that depend on each other."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["male", "female"], n_rows, p=[0.7, 0.3])
    crew = rng.random(n_rows) < np.where(sex == "male", 0.5, 0.05)
    age = np.where(crew, "adult", rng.choice(["child", "adult", "old"], n_rows, p=[0.2, 0.7, 0.1]))
    fare = np.where(crew, 1.0, np.minimum(rng.exponential(15.0, n_rows), 99.0))
    return pd.DataFrame({"sex": sex, "crew": crew, "age": age, "fare": fare})


@cache
def fitted(estimator: type, **parameters: object):
    """Return the estimator fitted to `people`; treat it as read-only."""
    return estimator(**{**QUICK, **DECLARED, **parameters}).fit(people())
