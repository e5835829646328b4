"""Parameters of the nearest neighbor policy."""

from bayescascade.base.parameters import Choice, Integer, Other, Real
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import unknown_choice


class MarginNeighborsParameters(BudgetedParameters):
    """Parameters of `MarginNeighborsClassifier`."""

    estimator = Other(None, "A classifier with a sum over columns", none="boosted stumps")
    n_neighbors = Integer(None, "Weight of the neighbors", minimum=1, none="10 or 50 is chosen")
    tradeoff = Real(
        None,
        "Additional share of right neighbors that a unit of cost is worth",
        minimum=0.0,
        none="chosen",
    )
    stop = Choice(
        "auto",
        "When a row stops: at an estimated accuracy (threshold), if no feature is expected to be "
        "worth its cost (gain), or after a number of features; auto: the best of these is chosen",
        words=("auto", "threshold", "gain", "number"),
    )
    threshold = Real(
        None,
        "A row stops if the share of right neighbors is above this",
        minimum=0.0,
        maximum=1.0,
        none="chosen",
    )
    max_features = Integer(
        None, 'Number of features per row if stop is "number"', minimum=0, none="chosen"
    )
    predict_by = Choice(
        "auto",
        "How to predict: by the classifier's sum over the measured features, or by the labels of "
        "the neighbors",
        words=("auto", "margin", "vote"),
    )
    margins = Choice(
        "auto",
        "Whether the classifier that judges neighbors is fitted without them (out_of_fold) or with "
        "them (in_sample); auto: the better one is chosen",
        words=("auto", "out_of_fold", "in_sample"),
    )
    rest = Choice(
        "zero",
        "A feature that is not measured is replaced by its mean over all rows, or over the "
        "neighbors",
        words=("zero", "neighbors"),
    )
    ties = Choice(
        "all",
        "Which rows at the distance of the last neighbor are neighbors: all, or the first ones",
        words=("all", "first"),
    )
    unknown = unknown_choice(ignore="counts as not measured")


FMCC = ListedBudgetLearner(
    "fmcc",
    "MarginNeighborsClassifier",
    MarginNeighborsParameters,
    "ask for the features that a row's neighbors need",
    of_trees=lambda _: {},
    in_trials={"margins": "in_sample"},
    price=100.0,
)
