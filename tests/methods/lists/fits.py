"""A small labeled data set and quick fits of it, shared by the tests of the estimators."""

from functools import cache

import numpy as np
import pandas as pd

from bayescascade import DensityRuleList, RuleListClassifier
from tests.people import DECLARED, draw_people

QUICK = {
    "search": "anneal+metropolis", "n_steps": 240, "n_chains": 2, "n_jobs": 1, "random_state": 3,
}  # fmt: skip


def people(n_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """Return rows of two nominal, an ordinal and a continuous column that depend on each other."""
    return draw_people(n_rows, seed)


def fates(frame: pd.DataFrame, seed: int = 1) -> pd.Series:
    """Return labels "lived" and "died" that depend on sex, and for the others on the fare."""
    rng = np.random.default_rng(seed)
    chance = np.where(frame["sex"] == "female", 0.9, np.where(frame["fare"] > 20, 0.6, 0.1))
    lived = rng.random(len(frame)) < chance
    return pd.Series(np.where(lived, "lived", "died"), index=frame.index, name="fate")


def boats(frame: pd.DataFrame, seed: int = 2) -> pd.Series:
    """Return labels 1, 2 and 3 that depend on sex and crew."""
    rng = np.random.default_rng(seed)
    usual = np.where(frame["sex"] == "female", 1, np.where(frame["crew"], 3, 2))
    boat = np.where(rng.random(len(frame)) < 0.8, usual, rng.integers(1, 4, len(frame)))
    return pd.Series(boat, index=frame.index, name="boat")


@cache
def fitted(**parameters: object) -> DensityRuleList:
    """Return a density rule list of `people`; treat it as read-only."""
    return DensityRuleList(**{**QUICK, **DECLARED, **parameters}).fit(people())


@cache
def classifier(labels=fates, **parameters: object) -> RuleListClassifier:
    """Return a classifier of `people` by their fates; treat it as read-only."""
    return RuleListClassifier(**{**QUICK, **parameters}).fit(people(), labels(people()))
