"""Common parameters of rule lists."""

from typing import Any

from bayescascade.base.parameters import Choice, Integer, Label, Parameters, Real
from bayescascade.model.listed import ListedDensity
from bayescascade.model.parameters import (
    SEARCHES,
    LearnedDensityParameters,
    MemoryParameters,
    SearchParameters,
    unknown_choice,
)

_MOST_EXPECTED = 10_000.0


class PriorParameters(Parameters):
    """Parameters of the prior on lists."""

    expected_rules = Real(
        3.0, "Expected number of rules (prior mean)", above=0.0, maximum=_MOST_EXPECTED
    )
    expected_size = Real(
        1.0,
        "Expected number of conditions per rule (prior mean)",
        above=0.0,
        maximum=_MOST_EXPECTED,
    )


class ListParameters(PriorParameters, MemoryParameters, SearchParameters):
    """Parameters of both kinds of lists."""

    concentration: Real[Any] = Real(
        1.0, "Dirichlet parameter of each leaf, branch or rule", above=0.0
    )
    memory_limit = Real(
        2.0, "Memory limit in gigabytes, for the candidate rules and an exact search", above=0.0
    )
    max_size: Integer[Any] = Integer(2, "Maximum number of conditions per rule", minimum=1)
    search = Choice(
        "auto",
        "How to search: exact sums over all lists, or only proves that none is more probable; the "
        "others use chains, but auto is exact if all lists can be summed quickly",
        words=SEARCHES,
    )


class DensityListParameters(ListParameters, LearnedDensityParameters):
    """Parameters of density lists."""


class LabelListParameters(ListParameters):
    """Parameters of label lists."""

    max_size: Integer[Any] = Integer(
        "auto",
        "Maximum number of conditions per rule; auto: 3, or 2 for many candidate rules or an exact "
        "search",
        words=("auto",),
        minimum=1,
    )
    concentration = Real(
        "auto",
        "Dirichlet parameter per class; auto: 1 for two classes, otherwise the value with the "
        "largest evidence",
        words=("auto",),
        above=0.0,
    )
    min_support = Real(
        0.05, "Minimum share of the rows that satisfy a rule", minimum=0.0, below=1.0
    )
    predictive = Choice(
        "auto",
        "Predict with the best list (map), with the average over posterior draws (average), or "
        "with the average where the search draws lists (auto)",
        words=("auto", "map", "average"),
    )
    n_bins = Integer(
        4, "Number of quantile bins for numbers that are not declared", minimum=2, maximum=65_535
    )
    unknown = unknown_choice(ignore="meets no condition")
    positive = Label(
        None, "Label whose probability is shown", none="the second of two labels", metavar="LABEL"
    )


RULES = ListedDensity("rules", "DensityRuleList", DensityListParameters, "a list of rules")
