"""scikit-learn's own checks of every classifier, without those that fail by its own fault."""

from importlib.metadata import version
from typing import Any

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayescascade import (
    AdaptiveClassifier,
    AutoBudgetClassifier,
    BoxClassifier,
    BudgetedForestClassifier,
    BudgetPruneClassifier,
    BudgetTreeClassifier,
    FastBoxes,
    GatedSensorsClassifier,
    GatedSensorsRegressor,
    GreedyMiserClassifier,
    NeighborCompressionClassifier,
    RadoBoostClassifier,
    RuleListClassifier,
)

RELEASE = tuple(map(int, version("scikit-learn").split(".")[:2]))
OF_WEIGHTS = [name for name in dir(estimator_checks) if name.startswith("check_sample_weights_")]
CHAIN = {"n_chains": 1, "n_jobs": 1, "random_state": 0}
ESTIMATORS = [
    BudgetedForestClassifier(max_trees=3, n_jobs=1, random_state=0),
    GatedSensorsRegressor(n_steps=5, tradeoff=0.1, random_state=0),
    NeighborCompressionClassifier(max_iter=2, prior_scale=1.0, n_jobs=1),
    RadoBoostClassifier(random_state=0),
    RuleListClassifier(search="anneal+metropolis", n_steps=100, n_chains=1, n_jobs=1, max_size=2),
]
OF_RARE_CLASSES = [
    BoxClassifier(search="exact", likelihood="gibbs", n_boxes=1, side_cost=0.5),
    BoxClassifier(likelihood="beta", n_steps=200, **CHAIN),
    FastBoxes(n_clusters=1, expansion=1.0, random_state=0),
]
# which read, check and answer by the bases of those above
OTHER_CLASSES = [
    AdaptiveClassifier(n_trees=3, n_boosted=3, tradeoff=0.01, full_share=0.3, random_state=0),
    BudgetPruneClassifier(RandomForestClassifier(3), random_state=0),
    BudgetTreeClassifier(n_steps=50, **CHAIN),
    GatedSensorsClassifier(n_steps=5, tradeoff=0.1, random_state=0),
    AutoBudgetClassifier(methods=("prune",), n_trees=2, time_limit=None, random_state=0),
    GreedyMiserClassifier(n_boosted=3, tradeoff=0.01, random_state=0),
]


def _own_faults(estimator: Any) -> dict[str, str]:
    tags, found = get_tags(estimator), {}
    cells, classes = tags.input_tags, tags.classifier_tags
    if RELEASE < (1, 8) and cells.categorical and not cells.allow_nan:
        found["check_positive_only_tag_during_fit"] = "takes a fraction from whole numbers"
    if RELEASE < (1, 7) and classes is not None and not classes.multi_class:
        # the first label against the others, which shuffling makes another one
        found["check_sample_weight_equivalence_on_dense_data"] = "compares other labels"
    if isinstance(estimator, AdaptiveClassifier | AutoBudgetClassifier | GreedyMiserClassifier):
        # a row twice may be in both parts, one of weight 2 is in one
        found["check_sample_weight_equivalence_on_dense_data"] = "rows that judge are drawn"
    if isinstance(estimator, NeighborCompressionClassifier):
        found["check_sample_weight_equivalence_on_dense_data"] = "rows are drawn to begin with"
    if isinstance(estimator, AutoBudgetClassifier) and estimator.methods == ("prune",):
        found |= dict.fromkeys(OF_WEIGHTS, "prunings do not support weights: see the test below")
    return found


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_own_faults)
def test_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(OF_RARE_CLASSES, expected_failed_checks=_own_faults)
def test_conventions_of_rare_classes(estimator, check):
    """Of two classes; a box that is worse than none warns."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHER_CLASSES, expected_failed_checks=_own_faults)
def test_conventions_of_others(estimator, check):
    """Of classes on the bases of those above."""
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("check", OF_WEIGHTS)
def test_a_choice_among_methods_supports_weights(check):
    """Fits of weighted rows take longer, so that only these checks make them."""
    estimator = AutoBudgetClassifier(methods=("l1",), time_limit=None, random_state=0)
    getattr(estimator_checks, check)("AutoBudgetClassifier", estimator)
