"""The data sets that classifiers are compared on, read from a folder that the user names.

They are public: the UCI Machine Learning Repository's tic-tac-toe, car evaluation, mushroom and
breast cancer (Wisconsin, original), and ProPublica's COMPAS scores of two years. Each is a CSV file
with a header, the labels in the column `target`, missing cells empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pandas as pd
from numpy.typing import ArrayLike

__all__ = ["DATA_SETS", "DataSet", "LabeledFrame"]


@dataclass(frozen=True, slots=True)
class LabeledFrame:
    """Features, labels, and the order of levels where they have one."""

    features: pd.DataFrame
    labels: pd.Series
    orders: Mapping[str, list[str]]

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return list(self.features.select_dtypes("number").columns)

    @property
    def nominal(self) -> list[str]:
        """The columns of levels without an order."""
        known = {*self.numbers, *self.orders}
        return [name for name in self.features.columns if name not in known]

    def take(self, rows: ArrayLike) -> Self:
        """Return some of the rows."""
        return type(self)(self.features.iloc[rows], self.labels.iloc[rows], self.orders)


@dataclass(frozen=True, slots=True)
class DataSet:
    """How to read a data set.

    Parameters
    ----------
    file : str
    orders : mapping of str to list of str
        Levels of columns of text that have an order, ascending.
    dropped : tuple of str
        Columns that are no features.
    """

    file: str
    orders: Mapping[str, list[str]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def read(self, folder: Path) -> LabeledFrame:
        """Return the data in a folder."""
        frame = pd.read_csv(folder / self.file).drop(columns=list(self.dropped))
        return LabeledFrame(frame.drop(columns="target"), frame["target"], self.orders)


_PRICES = ["low", "med", "high", "vhigh"]

DATA_SETS = {
    "tic-tac-toe": DataSet("tic_tac_toe.csv"),
    "car": DataSet(
        "car_evaluation.csv",
        orders={
            "buying": _PRICES,
            "maint": _PRICES,
            "doors": ["2", "3", "4", "5more"],
            "persons": ["2", "4", "more"],
            "lug_boot": ["small", "med", "big"],
            "safety": ["low", "med", "high"],
        },
    ),
    "mushroom": DataSet("mushroom.csv"),
    "breast": DataSet("breast_cancer_wisconsin.csv"),
    # not features: COMPAS's own scores; the days from arrest to screening, which tell of its use;
    # and the charge in words, of which there are 437
    "compas": DataSet(
        "compas_two_years.csv",
        orders={"age_cat": ["Less than 25", "25 - 45", "Greater than 45"]},
        dropped=("decile_score", "score_text", "days_b_screening_arrest", "c_charge_desc"),
    ),
}
