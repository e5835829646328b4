"""Parameters of classifiers that pay for what they read, declared once."""

from bayescascade.base.parameters import Other, Real
from bayescascade.model.parameters import RunParameters, unknown_choice


class BudgetedParameters(RunParameters):
    """Of all of them."""

    costs = Other(
        None,
        "What features cost",
        none="1 each",
        typed="FeatureCosts, mapping, sequence of float or None",
        more="See `FeatureCosts`.",
    )
    budget = Real(None, "Limit on the mean cost of a row", minimum=0.0, none="")
    unknown = unknown_choice(ignore="counts as missing")
