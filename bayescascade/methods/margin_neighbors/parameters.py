"""Parameters of the nearest neighbor policy, declared once."""

from bayescascade.base.parameters import Choice, Integer, Other, Real
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.parameters import unknown_choice


class MarginNeighborsParameters(BudgetedParameters):
    """Of `MarginNeighborsClassifier`."""

    estimator = Other(None, "A classifier that adds up over columns", none="boosted stumps")
    n_neighbors = Integer(None, "Neighbors, by weight", minimum=1, none="chosen of 8, 25 and 75")
    tradeoff = Real(
        None,
        "Additional share of right neighbors that a unit of cost is worth",
        minimum=0.0,
        none="chosen of several",
    )
    stop = Choice(
        "auto",
        "A row stops at an estimated accuracy, if no feature is expected to be worth its price, or "
        "after a number of features; auto: the best of these is chosen",
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
        "Whether neighbors are right is judged by a classifier that was fitted without them, or "
        "with them; auto: the better one is chosen",
        words=("auto", "out_of_fold", "in_sample"),
    )
    rest = Choice(
        "zero",
        "A feature that is not measured counts as its mean in all rows, or among the neighbors",
        words=("zero", "neighbors"),
    )
    ties = Choice(
        "all",
        "All rows at the distance of the last neighbor are neighbors, or the first of them",
        words=("all", "first"),
    )
    neighborhood = Choice(
        "nearest",
        "Neighbors are the nearest rows, or those in the same bins: the best policy is then known",
        words=("nearest", "boxes"),
    )
    n_bins = Integer(3, "Bins of a column of numbers, of boxes", minimum=2, maximum=20)
    temperature = Real(
        1.0,
        "Of the posterior over policies of boxes: one that is wrong in as many more rows is e "
        "times less probable",
        above=0.0,
    )
    unknown = unknown_choice(ignore="counts as not measured")


FMCC = ListedBudgetLearner(
    "fmcc",
    "MarginNeighborsClassifier",
    MarginNeighborsParameters,
    "ask for the features that a row's neighbors need",
    of_trees=lambda _: {},
)
