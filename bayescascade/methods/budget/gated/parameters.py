"""Parameters of classifiers with a gate, and of boosted trees alone."""

from typing import Any

from bayescascade.base.parameters import Choice, Integer, Other, Real
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import missing_choice, unknown_choice


class BoostedParameters(BudgetedParameters):
    """Parameters of boosted trees that pay for features."""

    penalty: Choice[Any] = Choice(
        None,
        "Who pays for a feature that trees read: the model (once), or each row that has not paid "
        "for it yet",
        words=("once", "per_row"),
        none="both are tried",
    )
    tradeoff: Real[Any] = Real(
        None, "Nats per row that a unit of cost is worth", minimum=0.0, none="several are tried"
    )
    n_boosted = Integer(
        150,
        "Number of boosted trees, for gate and local model each; without a gate, twice as many",
        minimum=1,
    )
    max_depth = Integer(4, "Depth of a boosted tree", minimum=1, maximum=8)
    learning_rate = Real(
        0.3, "Learning rate: share of each boosted tree that is added", above=0.0, maximum=1.0
    )
    leaf = Choice(
        "newton",
        "How boosted trees are fitted to the slope of the loss: by Newton's method, or by least "
        "squares",
        words=("newton", "least_squares"),
    )
    ridge = Real(
        1.0, "Weight of the squared coefficients, relative to the loss of all rows", minimum=0.0
    )
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


class AdaptiveParameters(BoostedParameters):
    """Parameters of `AdaptiveClassifier`."""

    estimator = Other(None, "The full model, a classifier", none="a forest")
    n_trees = Integer(100, "Number of trees of this forest", minimum=1)
    learner = Choice("boosted", "Kind of gate and local model", words=("boosted", "linear"))
    n_rounds = Integer(
        2, "Rounds in which boosted trees update the shares of the full model", minimum=1
    )
    distance = Choice(
        "kl",
        "Distance by which the gate is fitted to the shares of the full model: Kullback-Leibler "
        "divergence, or squared difference of log odds",
        words=("kl", "log_odds"),
    )
    selection = Choice(
        "search",
        "How the features of gate and local model are selected: by backward elimination and all "
        "small sets (search), or by the group norm",
        words=("search", "group_lasso"),
    )
    full_share = Real(
        None,
        "Maximum mean share of rows for the full model, in training",
        minimum=0.0,
        maximum=1.0,
        none="several are tried",
    )
    cut = Real(None, "Score of the gate above which a row is sent to the full model", none="chosen")
    start = Choice(
        "auto",
        "Start of the alternating optimization: the local model of all rows, with and without a "
        "gate for its errors (auto), or coefficients of 0",
        words=("auto", "zero"),
    )
    losses = Choice(
        "fair",
        "Losses of the full model: on rows to which it was not fitted, or in sample",
        words=("fair", "in_sample"),
    )
    temperature = Real(1.0, "Divisor of the objective of all rows, in the posterior", above=0)


class GreedyMiserParameters(BoostedParameters):
    """Parameters of `GreedyMiserClassifier`."""

    penalty: Choice[Any] = Choice(
        None,
        "Who pays for a feature that trees read: the model (once), each row that has not paid for "
        "it yet, or nobody: features are chosen first (set)",
        words=("once", "per_row", "set"),
        none="all are tried",
    )
    n_boosted = Integer(200, "Number of boosted trees per output; half as many for sets", minimum=1)


_LINEAR = {"learner": "linear"}

ADAPT_GBRT = ListedBudgetLearner(
    "adapt-gbrt",
    "AdaptiveClassifier",
    AdaptiveParameters,
    "send hard rows to a forest, and keep the others for boosted trees",
    of_trees=lambda n: {"n_trees": n},
    price=300.0,
)
ADAPT_LIN = ListedBudgetLearner(
    "adapt-lin",
    "AdaptiveClassifier",
    AdaptiveParameters,
    "send hard rows to a forest, and keep the others for a linear classifier",
    of_trees=lambda n: {"n_trees": n},
    given=_LINEAR,
)
ADAPT_LSTSQ = ListedBudgetLearner(
    "adapt-lstsq",
    "AdaptiveClassifier",
    AdaptiveParameters,
    "as adapt-lin, but with a gate that is fitted by least squares",
    of_trees=lambda n: {"n_trees": n},
    given={**_LINEAR, "distance": "log_odds"},
)
MISER = ListedBudgetLearner(
    "miser",
    "GreedyMiserClassifier",
    GreedyMiserParameters,
    "boost trees that pay for features",
    of_trees=lambda _: {},
    in_folds={"n_boosted": 100},
    price=60.0,
)
