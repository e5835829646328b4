"""Rule lists and the interpretable classifiers that they are compared with, ready to be fitted.

Every one gets the columns in the form that suits it: ordered levels are intervals to rule lists,
numbers to a tree, and indicators to logistic regression and imodels; missing cells are a level to
rule lists and imodels, elsewhere the median with an indicator.

The data sets are public: the UCI Machine Learning Repository's tic-tac-toe, car evaluation,
mushroom and breast cancer (Wisconsin, original), and ProPublica's COMPAS scores of two years. Each
is a CSV file with a header, the labels in the column `target`, missing cells empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from bayescascade import RuleListClassifier
from tests.benchmarks.figures import timed


@dataclass(frozen=True, slots=True)
class LabeledFrame:
    """Features, labels, and the order of levels where they have one."""

    features: pd.DataFrame
    labels: pd.Series
    orders: Mapping[str, list[str]]

    @property
    def numbers(self):
        """The columns of numbers."""
        return list(self.features.select_dtypes("number").columns)

    @property
    def nominal(self):
        """The columns of levels without an order."""
        known = {*self.numbers, *self.orders}
        return [name for name in self.features.columns if name not in known]

    def take(self, rows):
        """Return some of the rows."""
        return type(self)(self.features.iloc[rows], self.labels.iloc[rows], self.orders)


@dataclass(frozen=True, slots=True)
class DataSet:
    """A file, levels of text in their order, ascending, and columns that are no features."""

    file: str
    orders: Mapping[str, list[str]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def read(self, folder):
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


SETTINGS = (
    {"max_size": 2, "n_bins": 4},
    {"max_size": 3, "n_bins": 4},
    {"max_size": 2, "n_bins": 8},
    {"max_size": 2, "n_bins": 16},
)
"""What is chosen among; bins matter only where there are numbers."""

PREDICTIVES = ("map", "average")

CHOICE_STEPS = 100_000
N_LEAVES = 8


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a classifier says of the held-out rows, classes sorted, and the seconds to fit it.

    Its size is rules or leaves, without the `else`; NaN where there are none.
    """

    name: str
    probabilities: NDArray[np.float64]
    size: float
    seconds: float


def rule_list(data, **settings):
    """Return a classifier for columns such as those of `data`, not fitted."""
    return RuleListClassifier(
        ordinal=data.orders, missing="level", unknown="ignore", random_state=0, **settings
    )


def choose_settings(data):
    """Return, by `PREDICTIVES`, the settings with the least log loss in folds of `data`."""
    eligible = [settings for settings in SETTINGS if data.numbers or settings["n_bins"] == 4]
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    losses = np.zeros((len(PREDICTIVES), len(eligible)))
    for seen, held_out in folds.split(data.features, data.labels):
        training, test = data.take(seen), data.take(held_out)
        for k, settings in enumerate(eligible):
            model = rule_list(data, n_steps=CHOICE_STEPS, **settings)
            model.fit(training.features, training.labels)
            for i, predictive in enumerate(PREDICTIVES):
                model.set_params(predictive=predictive)
                probabilities = model.predict_proba(test.features)
                losses[i, k] += log_loss(test.labels, probabilities, labels=model.classes_)
    return {
        predictive: eligible[best]
        for predictive, best in zip(PREDICTIVES, losses.argmin(axis=1), strict=True)
    }


def predictions(seen, held_out, settings, n_steps, imodels_steps):
    """Yield what every classifier, fitted to `seen`, says of the held-out rows.

    Settings are of the rule list, by `PREDICTIVES`; imodels gets those of the most probable list,
    for each of its three chains; without steps it is left out.
    """
    for predictive, chosen in settings.items():
        model = rule_list(seen, predictive=predictive, n_steps=n_steps, **chosen)
        seconds = _seconds(model, seen.features, seen.labels)
        probabilities = model.predict_proba(held_out)
        yield Prediction(f"rule list, {predictive}", probabilities, model.rules_.n_rules, seconds)
    tree = make_pipeline(
        _tree_columns(seen), DecisionTreeClassifier(max_leaf_nodes=N_LEAVES, random_state=0)
    )
    seconds = _seconds(tree, seen.features, seen.labels)
    n_leaves = tree[-1].get_n_leaves()
    yield Prediction(f"tree, {N_LEAVES} leaves", tree.predict_proba(held_out), n_leaves, seconds)
    logistic = make_pipeline(_indicators(seen), LogisticRegression(max_iter=5_000))
    seconds = _seconds(logistic, seen.features, seen.labels)
    yield Prediction("logistic", logistic.predict_proba(held_out), np.nan, seconds)
    if imodels_steps and find_spec("imodels") and seen.labels.nunique() == 2:
        yield _imodels(seen, held_out, settings["map"], imodels_steps)


def _imodels(seen, held_out, settings, n_steps):
    from imodels import BayesianRuleListClassifier

    features, others = _one_hot_levels(seen, held_out, settings["n_bins"])
    model = BayesianRuleListClassifier(
        maxcardinality=settings["max_size"], minsupport=0.05, max_iter=n_steps
    )
    seconds = _seconds(model, features, seen.labels.to_numpy())
    return Prediction("imodels", model.predict_proba(others), len(model.d_star) - 1, seconds)


def _one_hot_levels(seen, held_out, n_bins):
    """Return a column of 0 and 1 for each level, missing ones included, and each quantile bin."""
    seen_levels, other_levels = seen.features.copy(), held_out.copy()
    for name in seen.numbers:
        cuts = np.unique(seen.features[name].quantile(np.arange(1, n_bins) / n_bins))
        for frame, levels in ((seen.features, seen_levels), (held_out, other_levels)):
            levels[name] = pd.Series(np.searchsorted(cuts, frame[name]), frame.index).where(
                frame[name].notna()
            )
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return encoder.fit_transform(seen_levels), encoder.transform(other_levels)


def _tree_columns(data):
    ordered = OrdinalEncoder(categories=list(data.orders.values()))
    return make_column_transformer(
        (ordered, list(data.orders)),
        (OneHotEncoder(handle_unknown="ignore"), data.nominal),
        (_filled(), data.numbers),
    )


def _indicators(data):
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), [*data.orders, *data.nominal]),
        (make_pipeline(_filled(), StandardScaler()), data.numbers),
    )


def _filled():
    return SimpleImputer(strategy="median", add_indicator=True)


def _seconds(model, features, labels):
    """Fit a model, and return the seconds that it took."""
    return timed(lambda: model.fit(features, labels))[1]
