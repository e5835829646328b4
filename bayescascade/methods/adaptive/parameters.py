"""Parameters of a gate between a local and a full model, declared once."""

from bayescascade.base.parameters import Choice, Integer, Other, Real
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import missing_choice, unknown_choice


class AdaptiveParameters(BudgetedParameters):
    """Of `AdaptiveClassifier`."""

    estimator = Other(None, "The full model, a classifier", none="a forest")
    n_trees = Integer(100, "Trees of that forest", minimum=1)
    learner = Choice("linear", "What gate and local model are", words=("linear",))
    distance = Choice(
        "kl",
        "How the gate is fitted to the shares of the full model: by Kullback-Leibler divergence, "
        "or by least squares to their log odds",
        words=("kl", "log_odds"),
    )
    selection = Choice(
        "search",
        "Which features gate and local model share: by dropping one after the other, and every set "
        "of few items, or by the group norm",
        words=("search", "group_lasso"),
    )
    tradeoff = Real(
        None,
        "Nats a row that a unit of cost is worth",
        minimum=0.0,
        none="several are tried",
    )
    full_share = Real(
        None,
        "Most of the mean share of the full model, in training",
        minimum=0.0,
        maximum=1.0,
        none="several are tried",
    )
    cut = Real(None, "Score of the gate above which a row is sent", none="chosen")
    ridge = Real(1.0, "Weight of the squares of coefficients, of all rows together", minimum=0.0)
    start = Choice(
        "auto",
        "Where the alternation begins: at the local model of all rows, with and without a gate for "
        "its errors, or at coefficients of 0",
        words=("auto", "zero"),
    )
    losses = Choice(
        "fair",
        "Losses of the full model: of rows that it was not fitted on, or in sample",
        words=("fair", "in_sample"),
    )
    temperature = Real(
        1.0, "Of the posterior: what the objective of all rows is divided by", above=0
    )
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


ADAPT_LIN = ListedBudgetLearner(
    "adapt-lin",
    "AdaptiveClassifier",
    AdaptiveParameters,
    "send hard rows to a forest, and keep the others for a linear classifier",
    of_trees=lambda n: {"n_trees": n},
)
