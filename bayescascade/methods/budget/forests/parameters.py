"""Parameters of budgeted forests."""

from bayescascade.base.parameters import Choice, Flag, Integer, Jobs, Other
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.model.listed import ListedBudgetLearner

THRESHOLDS = ("exact", "histogram", "random")
"""Candidate thresholds for numbers."""


class ForestParameters(BudgetedParameters):
    """Common parameters of forests."""

    n_jobs = Jobs(
        -1,
        "Number of trees to learn at the same time; -1: one per core",
        none="",
        more="They are learned in threads. The result does not depend on it.",
    )


class BudgetedForestParameters(ForestParameters):
    """Parameters of `BudgetedForestClassifier`."""

    impurity = Other("threshold_pairs", "Impurity that splits reduce")
    alpha = Other("auto", "Slack of the impurity; the best of several values is chosen")
    order = Integer(2, "Order of a polynomial impurity", minimum=2, maximum=30)
    cost_exponent = Other("auto", "Exponent of costs; the best of several values is chosen")
    max_trees = Integer(100, "Maximum number of trees to grow", minimum=1)
    thresholds = Choice("exact", "Candidate thresholds for numbers", words=THRESHOLDS)
    reuse_is_free = Flag(True, "A feature is free after a row has paid for it")
    max_features = Other("auto", "Number of features that a split chooses among")
    max_depth = Integer(None, "Maximum number of splits on a path", minimum=1, none="any")
    bootstrap = Flag(True, "Trees are grown on rows drawn with replacement")


GROWN = ListedBudgetLearner(
    "forest",
    "BudgetedForestClassifier",
    BudgetedForestParameters,
    "grow a forest of cheap trees",
    of_trees=lambda n: {"max_trees": n},
    given={"alpha": (0.0, 4.0, 16.0, 64.0), "cost_exponent": (0.0, 0.5, 1.0)},  # chosen by rows
    in_trials={"alpha": (0.0, 16.0), "cost_exponent": (0.0, 1.0)},
)
