"""Parameters of trees of classifiers."""

from bayescascade.base.parameters import Choice, Flag, Integer, Other, Real
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import missing_choice, unknown_choice


class SubmodularTreeParameters(BudgetedParameters):
    """Parameters of `SubmodularTreeClassifier`."""

    tradeoff = Real(0.0, "Errors per row that a unit of cost is worth", minimum=0.0)
    node_budget = Other(None, "Budget of each node, or one number per node, breadth first")
    max_depth = Integer(5, "Maximum number of nodes on a path", minimum=1, maximum=10)
    basis = Choice(
        "bins", "Columns as they are, or also steps at their quantiles", words=("bins", "linear")
    )
    selection = Choice(
        "auto",
        "How a node chooses features: the best set (exact), by gain (greedy), or by gain per cost "
        "up to the first that exceeds the budget (paper); auto: exact if all sets can be searched, "
        "otherwise greedy",
        words=("auto", "exact", "greedy", "paper"),
    )
    leaf = Choice("logistic", "How leaves predict", words=("logistic", "least_squares"))
    weights = Choice("hard", "Rows that a node learns from", words=("hard", "soft"))
    prune = Flag(True, "Prune nodes that are not worth their cost on held-out rows")
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


class CostWeightedParameters(BudgetedParameters):
    """Parameters of `CostWeightedLogisticClassifier`."""

    penalty = Real(
        None,
        "Nats per row that a unit of cost is worth, for a coefficient of 1",
        minimum=0.0,
        none="several are tried",
    )
    penalties = Other(None, "Penalties to try in place of a path of 30")
    refit = Flag(True, "Fit the chosen features again, without the penalty")
    basis = Choice(
        "linear", "Columns as they are, or also steps at their quantiles", words=("linear", "bins")
    )
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


class CostSensitiveTreeParameters(BudgetedParameters):
    """Parameters of `CostSensitiveTreeClassifier`."""

    tradeoff = Real(
        None, "Squared loss that a unit of cost is worth", minimum=0.0, none="several are tried"
    )
    max_depth = Integer(3, "Maximum number of nodes on a path", minimum=1, maximum=8)
    loss_at = Choice("all", "Nodes whose loss counts", words=("all", "leaves"))
    penalty = Real(1e-3, "Squared loss that a coefficient of 1 is worth", minimum=0.0)
    smoothing = Real(1e-3, "Size of coefficients below which norms are smoothed", above=0.0)
    temperature = Real(1.0, "Divisor of the objective of all rows, in the posterior", above=0.0)
    max_iter = Integer(200, "Maximum number of iterations of a gradient ascent", minimum=1)
    basis = Choice(
        "linear", "Columns as they are, or also steps at their quantiles", words=("linear", "bins")
    )
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


ASTC = ListedBudgetLearner(
    "astc",
    "SubmodularTreeClassifier",
    SubmodularTreeParameters,
    "grow a tree of linear classifiers",
    of_trees=lambda _: {},
    price=100.0,
)

L1 = ListedBudgetLearner(
    "l1",
    "CostWeightedLogisticClassifier",
    CostWeightedParameters,
    "fit a logistic regression that pays for its features",
    of_trees=lambda _: {},
    price=10.0,
)

CSTC = ListedBudgetLearner(
    "cstc",
    "CostSensitiveTreeClassifier",
    CostSensitiveTreeParameters,
    "learn a tree of linear classifiers whose nodes are learned jointly",
    of_trees=lambda _: {},
    in_trials={"max_iter": 100},
    price=40.0,
)
