"""The data sets that budgeted classifiers are compared on, and what their columns cost.

All but digits, which scikit-learn brings, are read from a folder that the user names: covertype
(the class-balanced sample of 15,120 rows), magic, spambase, letter (A-M against N-Z), pima,
hepatitis and heart (the 303 patients of Cleveland, with the codes and names of columns of
`processed.cleveland.data`, and whether `num` is above 0 as `target`), all of the UCI Machine
Learning Repository; CSV files with a header, the labels in the column `target`, missing cells
empty. The real costs are Turney's (1995). Those of pima and hepatitis are read from
`test_costs.csv`: columns dataset, column, discounted, cost_discounted, cost; a discount is that of
drawing blood once, and columns without a price cost 1.00, or in hepatitis's blood what bilirubin
does. Those of heart are below: blood is drawn once, and there are two examinations of which several
columns are read.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bayescascade import FeatureCosts

REAL_COSTS = ("heart", "hepatitis", "pima")
HEART_COSTS = FeatureCosts(
    {
        **dict.fromkeys(("age", "sex", "cp", "trestbps"), 1.00),
        **{"restecg": 15.50, "ca": 100.90},
        **{"blood": 2.10, "chol": 5.17, "fbs": 3.10},
        **{"exercise": 86.30, "exang": 1.00, "oldpeak": 1.00, "slope": 1.00},
        **{"thallium": 101.90, "thalach": 1.00, "thal": 1.00},
    },
    groups={
        "blood": ["chol", "fbs"],
        "exercise": ["exang", "oldpeak", "slope"],
        "thallium": ["thalach", "thal"],
    },
)
BLOOD_WITHOUT_PRICE = {"hepatitis": ("ALK_PHOSPHATE", "SGOT"), "pima": ()}
DEAREST = 10  # random costs are whole numbers from 1 to this


class Problem(NamedTuple):
    """Rows of numbers (a missing cell is NaN) and their labels."""

    features: pd.DataFrame
    labels: pd.Series


class Split(NamedTuple):
    """Rows to learn from, to choose by, and to report on: 60, 20 and 20 percent."""

    train: Problem
    validation: Problem
    test: Problem


def _from_file(file):
    def read(folder):
        frame = pd.read_csv(folder / file)
        return Problem(_numbers(frame.drop(columns="target")), frame["target"].astype(str))

    return read


def _letter(folder):
    features, letters = _from_file("letter.csv")(folder)
    return Problem(features, (letters <= "M").map({True: "A-M", False: "N-Z"}))


def _digits(folder):
    del folder
    bunch = load_digits(as_frame=True)
    return Problem(bunch.data, bunch.target.astype(str))


DATA_SETS = {
    "digits": _digits,
    "pima": _from_file("pima.csv"),
    "hepatitis": _from_file("hepatitis.csv"),
    "heart": _from_file("heart.csv"),
    "letter": _letter,
    "magic": _from_file("magic.csv.gz"),
    "spambase": _from_file("spambase.csv"),
    "covertype": _from_file("covertype.csv.gz"),
}


def letter_rows(folder):
    """Return 12,000 rows of letter's 16 columns, and which are of A-M; made ones of no folder."""
    if folder is None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12_000, 16))
        return X, np.where(X[:, 0] > 0, X[:, 1:4].sum(axis=1), X[:, 4:9].sum(axis=1)) > 0
    frame = pd.read_csv(Path(folder) / "letter.csv").sample(12_000, random_state=0)
    return frame.drop(columns="target").to_numpy(float), (frame["target"] <= "M").to_numpy()


def costs_of(name, kind, problem, folder, seed):
    """Return "unit", "random" or "real" costs of a problem's columns."""
    columns = list(problem.features.columns)
    if kind == "unit":
        return FeatureCosts()
    if kind == "random":
        drawn = np.random.default_rng(seed).integers(1, DEAREST + 1, len(columns))
        return FeatureCosts(dict(zip(columns, drawn.astype(float), strict=True)))
    if name == "heart":
        return HEART_COSTS
    listed = pd.read_csv(folder / "test_costs.csv")
    listed = listed[listed["dataset"] == name].set_index("column")
    blood = listed[listed["discounted"] == "yes"]
    costs = listed["cost_discounted"].to_dict()
    costs["blood"] = round(float((blood["cost"] - blood["cost_discounted"]).iloc[0]), 2)
    alike = dict.fromkeys(BLOOD_WITHOUT_PRICE[name], float(blood["cost_discounted"].iloc[0]))
    members = [*blood.index, *alike]
    return FeatureCosts({**costs, **alike}, groups={"blood": members}, default=1.0)


def split(problem, seed):
    """Return the parts of a random split, stratified by label."""
    rows = np.arange(len(problem.labels))
    train, others = train_test_split(
        rows, test_size=0.4, random_state=seed, stratify=problem.labels
    )
    validation, test = train_test_split(
        others, test_size=0.5, random_state=seed, stratify=problem.labels.iloc[others]
    )
    parts = (
        Problem(problem.features.iloc[part], problem.labels.iloc[part])
        for part in (train, validation, test)
    )
    return Split(*parts)


def _numbers(features):
    """Return columns of two levels as 0 and 1, numbers as they are."""
    coded = {}
    for name, column in features.items():
        if pd.api.types.is_numeric_dtype(column):
            coded[name] = column.astype(float)
        else:
            levels = sorted(column.dropna().unique())
            assert len(levels) == 2, name
            coded[name] = column.map({levels[0]: 0.0, levels[1]: 1.0})
    return pd.DataFrame(coded)
