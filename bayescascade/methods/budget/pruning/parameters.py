"""Parameters of prunings of forests."""

from collections.abc import Mapping
from typing import Any

from bayescascade.base.parameters import Choice, Other, Real
from bayescascade.methods.budget.forests.parameters import ForestParameters
from bayescascade.model.listed import ListedBudgetLearner

ERRORS = ("in_bag", "out_of_bag", "validation")


class BudgetPruneParameters(ForestParameters):
    """Parameters of `BudgetPruneClassifier`."""

    forest = Other(None, "The forest to prune", none="of 40 trees")
    tradeoff = Real(None, "Error rate that a unit of cost is worth", minimum=0.0, none="by rows")
    errors = Choice("in_bag", "Rows on which errors are measured", words=ERRORS)
    split_cost = Real(0.0, "Cost of a row passing a split", minimum=0.0)


def _random_forest(n_trees: int) -> Mapping[str, Any]:
    """Return the forest to prune, as in the thesis."""
    from sklearn.ensemble import RandomForestClassifier

    return {"forest": RandomForestClassifier(n_trees, criterion="entropy", max_features=None)}


PRUNED = ListedBudgetLearner(
    "prune",
    "BudgetPruneClassifier",
    BudgetPruneParameters,
    "prune a random forest",
    of_trees=_random_forest,
    price=50.0,
    is_by_class=False,
)
