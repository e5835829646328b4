"""Common parameters of classifiers within a budget."""

from bayescascade.base.parameters import Other, Real
from bayescascade.model.parameters import RunParameters, unknown_choice


class BudgetedParameters(RunParameters):
    """Parameters of all classifiers within a budget."""

    costs = Other(
        None,
        "What features cost",
        none="1 each",
        typed="FeatureCosts, mapping, sequence of float or None",
        more="See `FeatureCosts`.",
    )
    budget = Real(None, "Limit on the mean cost of a row", minimum=0.0, none="")
    unknown = unknown_choice(ignore="counts as missing")
