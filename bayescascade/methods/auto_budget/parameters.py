"""Parameters of the choice among all classifiers within budgets."""

from typing import Any

from bayescascade.base.parameters import Integer, Jobs, Other, Real
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import unknown_choice


class AutoBudgetParameters(BudgetedParameters):
    """Parameters of `AutoBudgetClassifier`."""

    methods = Other(None, "Names of the methods to try, in this order", none="all")
    n_trees = Integer(
        40, "Number of trees of a forest to prune, or maximum number of trees to grow", minimum=1
    )
    n_jobs = Jobs(-1, "Number of trees to learn at the same time; -1: one per core", none="")
    time_limit: Real[Any] = Real(
        "auto",
        "Stop after this time, with the best result so far; auto: 120 to 600 seconds, by the size "
        "of the table",
        above=0.0,
        words=("auto",),
        none="no limit",
        metavar="SECONDS",
        more="In seconds from the beginning of fit. The choice may then depend on the machine.",
    )
    unknown = unknown_choice(
        ignore="counts as missing or as the mean of its column, depending on the chosen method"
    )


AUTO = ListedBudgetLearner(
    "auto",
    "AutoBudgetClassifier",
    AutoBudgetParameters,
    "choose among all of these methods for each budget",
    of_trees=lambda n: {"n_trees": n},
)
