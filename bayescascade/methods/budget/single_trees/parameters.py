"""Parameters of single trees with costs of features."""

from bayescascade.base.parameters import Choice, Integer, Parameters, Real
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import SAMPLED, SearchParameters


class CostTreeParameters(Parameters):
    """Parameters of the posterior."""

    concentration = Real(1.0, "Dirichlet parameter of a class", above=0.0)
    split_probability = Real(0.5, "Probability of a split", above=0.0, below=1.0)
    max_leaves = Integer(32, "Maximum number of leaves", minimum=1)
    min_leaf_weight = Real(1.0, "Minimum weight of a leaf", above=0.0)
    n_thresholds = Integer(32, "Thresholds of a column of numbers", minimum=1, maximum=65_536)


class BudgetTreeParameters(CostTreeParameters, BudgetedParameters, SearchParameters):
    """Parameters of `BudgetTreeClassifier`."""

    tradeoff = Real(None, "Nats that a unit of cost is worth", minimum=0.0, none="1")
    search = Choice(SAMPLED[0], "How to search by chains", words=SAMPLED)


SINGLE = ListedBudgetLearner(
    "tree",
    "BudgetTreeClassifier",
    BudgetTreeParameters,
    "learn a single Bayesian tree",
    of_trees=lambda _: {},
    in_trials={"search": "anneal", "n_chains": 1, "n_steps": 300},
)
