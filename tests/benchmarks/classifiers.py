"""Rule lists and the interpretable classifiers that they are compared with, ready to be fitted.

Every one gets the columns in the form that suits it: ordered levels are intervals to rule lists,
numbers to a tree, and indicators to logistic regression and imodels; missing cells are a level to
rule lists and imodels, elsewhere the median with an indicator.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from bayescascade import RuleListClassifier
from tests.benchmarks.labeled_data import LabeledFrame

__all__ = ["Prediction", "choose_settings", "predictions", "rule_list"]

SETTINGS = (
    {"max_size": 2, "n_bins": 4},
    {"max_size": 3, "n_bins": 4},
    {"max_size": 2, "n_bins": 8},
    {"max_size": 2, "n_bins": 16},
)
"""What is chosen among; bins matter only where there are numbers."""

CHOICE_STEPS = 100_000
N_LEAVES = 8


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a classifier says of the rows held out.

    Parameters
    ----------
    name : str
    probabilities : (n_rows, n_classes) float64
        Classes sorted.
    size : float
        Rules or leaves, without the `else`; NaN where there are none.
    seconds : float
        To fit it.
    """

    name: str
    probabilities: NDArray[np.float64]
    size: float
    seconds: float


def rule_list(data: LabeledFrame, **settings: Any) -> RuleListClassifier:
    """Return a classifier for columns such as those of `data`, not fitted."""
    orders = {name: levels for name, levels in data.orders.items()}
    return RuleListClassifier(
        ordinal=orders, missing="level", unknown="none", random_state=0, **settings
    )


def choose_settings(data: LabeledFrame) -> dict[str, int]:
    """Return those of `SETTINGS` with the least log loss in three folds of `data`."""
    eligible = [chosen for chosen in SETTINGS if data.numbers or chosen["n_bins"] == 4]
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    scores = [
        cross_val_score(
            rule_list(data, predictive="average", n_steps=CHOICE_STEPS, **settings),
            data.features,
            data.labels,
            cv=folds,
            scoring="neg_log_loss",
        ).mean()
        for settings in eligible
    ]
    return eligible[int(np.argmax(scores))]


def predictions(
    seen: LabeledFrame,
    held_out: pd.DataFrame,
    settings: dict[str, int],
    n_steps: int | None,
    imodels_steps: int,
) -> Iterator[Prediction]:
    """Yield what every classifier, fitted to `seen`, says of the rows held out.

    Parameters
    ----------
    seen : LabeledFrame
    held_out : DataFrame
    settings : dict
        Of the rule list; imodels gets the same sizes and bins.
    n_steps : int or None
        Of the rule list.
    imodels_steps : int
        Of each of imodels' three chains; 0 leaves it out.
    """
    model = rule_list(seen, n_steps=n_steps, **settings)
    seconds = _seconds(lambda: model.fit(seen.features, seen.labels))
    for predictive in ("map", "average"):
        model.set_params(predictive=predictive)
        probabilities = model.predict_proba(held_out)
        yield Prediction(f"rule list, {predictive}", probabilities, model.rules_.n_rules, seconds)
    tree = make_pipeline(
        _tree_columns(seen), DecisionTreeClassifier(max_leaf_nodes=N_LEAVES, random_state=0)
    )
    seconds = _seconds(lambda: tree.fit(seen.features, seen.labels))
    n_leaves = tree[-1].get_n_leaves()
    yield Prediction(f"tree, {N_LEAVES} leaves", tree.predict_proba(held_out), n_leaves, seconds)
    logistic = make_pipeline(_indicators(seen), LogisticRegression(max_iter=5_000))
    seconds = _seconds(lambda: logistic.fit(seen.features, seen.labels))
    yield Prediction("logistic", logistic.predict_proba(held_out), np.nan, seconds)
    if imodels_steps and find_spec("imodels") and seen.labels.nunique() == 2:
        yield _imodels(seen, held_out, settings, imodels_steps)


def _imodels(
    seen: LabeledFrame, held_out: pd.DataFrame, settings: dict[str, int], n_steps: int
) -> Prediction:
    from imodels import BayesianRuleListClassifier

    features, others = _one_hot_levels(seen, held_out, settings["n_bins"])
    model = BayesianRuleListClassifier(
        maxcardinality=settings["max_size"], minsupport=0.05, max_iter=n_steps
    )
    seconds = _seconds(lambda: model.fit(features, seen.labels.to_numpy()))
    return Prediction("imodels", model.predict_proba(others), len(model.d_star) - 1, seconds)


def _one_hot_levels(
    seen: LabeledFrame, held_out: pd.DataFrame, n_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def _tree_columns(data: LabeledFrame) -> Any:
    ordered = OrdinalEncoder(categories=list(data.orders.values()))
    return make_column_transformer(
        (ordered, list(data.orders)),
        (OneHotEncoder(handle_unknown="ignore"), data.nominal),
        (_filled(), data.numbers),
    )


def _indicators(data: LabeledFrame) -> Any:
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), [*data.orders, *data.nominal]),
        (make_pipeline(_filled(), StandardScaler()), data.numbers),
    )


def _filled() -> SimpleImputer:
    return SimpleImputer(strategy="median", add_indicator=True)


def _seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
