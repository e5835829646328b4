"""Whatever scikit-learn's tools rely on, they may rely on of the budgeted classifiers."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayescascade.budget import (
    BudgetedForestClassifier,
    BudgetPrune,
    BudgetTreeClassifier,
    CostComplexityPrune,
    GreedyPrune,
    TruncatedForest,
)
from tests.methods.budget.fits import PlainForest

ESTIMATORS = [
    PlainForest(n_estimators=3, random_state=0),
    BudgetedForestClassifier(max_trees=3, random_state=0),
    BudgetPrune(DecisionTreeClassifier(), random_state=0),
    BudgetTreeClassifier(n_steps=200, n_chains=1, random_state=0),
    CostComplexityPrune(RandomForestClassifier(2), random_state=0),
    GreedyPrune(DecisionTreeClassifier(), random_state=0),
    TruncatedForest(DecisionTreeClassifier(), random_state=0),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator, check):
    """Pipelines, searches and clones rely on each of them."""
    check(estimator)
