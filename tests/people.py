"""A small data set whose columns depend on each other, shared by the tests of the estimators."""

import numpy as np
import pandas as pd

DECLARED = {"ordinal": {"age": ["child", "adult", "old"]}, "continuous": {"fare": [0, 5, 20, 100]}}


def draw_people(n_rows: int, seed: int) -> pd.DataFrame:
    """Return rows of two nominal, an ordinal and a continuous column."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["male", "female"], n_rows, p=[0.7, 0.3])
    crew = rng.random(n_rows) < np.where(sex == "male", 0.5, 0.05)
    age = np.where(crew, "adult", rng.choice(["child", "adult", "old"], n_rows, p=[0.2, 0.7, 0.1]))
    fare = np.where(crew, 1.0, np.minimum(rng.exponential(15.0, n_rows), 99.0))
    return pd.DataFrame({"sex": sex, "crew": crew, "age": age, "fare": fare})
