"""Parameters of the choice among all classifiers within budgets."""

from bayescascade.base.parameters import Integer, Jobs, Other
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import EffortParameters, unknown_choice


class AutoBudgetParameters(BudgetedParameters, EffortParameters):
    """Parameters of `AutoBudgetClassifier`."""

    methods = Other(None, "Names of the methods to try, in this order", none="those of the effort")
    n_trees = Integer(
        40, "Number of trees of a forest to prune, or maximum number of trees to grow", minimum=1
    )
    n_jobs = Jobs(-1, "Number of trees to learn at the same time; -1: one per core", none="")
    unknown = unknown_choice(
        ignore="counts as missing or as the mean of its column, depending on the chosen method"
    )


AUTO = ListedBudgetLearner(
    "auto",
    "AutoBudgetClassifier",
    AutoBudgetParameters,
    "choose among l1, cstc, miser, prune and fmcc for each budget",
    of_trees=lambda n: {"n_trees": n},
)
