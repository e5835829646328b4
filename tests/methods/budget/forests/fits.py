"""A budgeted classifier that is scikit-learn's forest as it is, and rows to fit it to."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from bayescascade import FeatureCosts
from bayescascade.methods.budget.forests.base import ForestClassifier
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.forests.parameters import BudgetedParameters

COSTS = FeatureCosts(
    {"blood": 2.1, "glucose": 15.5, "scan": 22.75, "age": 0.0},
    groups={"blood": ["glucose", "iron"]},
)


@dataclass(eq=False, repr=False, kw_only=True)
class PlainForest(ForestClassifier):
    model_name: ClassVar[str] = "plain forest"
    title: ClassVar[str] = "plain forest"
    declares = BudgetedParameters

    n_estimators: int = 10
    max_depth: int | None = None
    max_features: str = "sqrt"
    random_state: int = 0

    def fit(self, X, y, X_val=None, y_val=None):
        training = self._read_training(X, y, X_val=X_val, y_val=y_val)
        forest = RandomForestClassifier(
            self.n_estimators,
            max_depth=self.max_depth,
            max_features=self.max_features,
            random_state=self.random_state,
        ).fit(training.rows, training.labels)
        self._become(Forest.from_sklearn(forest), training.validation_rows)
        return self


def patients(rng, n_rows=200, missing=0.0):
    """Return rows of numbers, truth values, text, and ordered categories."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n_rows),
            "glucose": rng.normal(90, 15, n_rows).round(1),
            "iron": rng.normal(size=n_rows),
            "sex": rng.choice(["female", "male"], n_rows),
            "ward": rng.choice(["east", "north", "west"], n_rows),
            "pain": pd.Categorical(
                rng.choice(["none", "some", "much"], n_rows), ["none", "some", "much"], ordered=True
            ),
            "smokes": rng.random(n_rows) < 0.3,
            "scan": rng.normal(size=n_rows),
        }
    )
    if missing:
        frame = frame.mask(rng.random(frame.shape) < missing)
        frame["pain"] = pd.Categorical(frame["pain"], ["none", "some", "much"], ordered=True)
    return frame


def diagnoses(frame, rng):
    """Return labels that all columns of `patients` have a part in."""
    score = frame["age"].fillna(50) / 30 + frame["glucose"].fillna(90) / 30
    score += frame["scan"].fillna(0) + 2 * (frame["ward"] == "west") + 2 * (frame["pain"] == "much")
    score += frame["iron"].fillna(0) + (frame["sex"] == "male") + (frame["smokes"] == True)  # noqa: E712
    noisy = score + rng.normal(size=len(frame))
    return np.array(["ill", "sick", "well"])[np.digitize(noisy, np.quantile(noisy, [0.3, 0.6]))]
