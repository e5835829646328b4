"""Parameters of all families that fit, search or read rows, declared once."""

from typing import Any

from bayescascade.base.parameters import (
    Choice,
    Flag,
    Integer,
    Jobs,
    LooseInteger,
    Other,
    Parameters,
    Real,
)

SAMPLED = ("anneal+metropolis", "anneal", "metropolis", "tempering")
"""Searches of any posterior by the engines of `samplers`."""

SEARCHES = ("auto", "exact", *SAMPLED)
""" "exact" is the family's own; "auto" is "exact" if that is cheap, otherwise the first sampler."""


def unknown_choice(more: str = "", **meanings: str) -> Choice[str]:
    """Return the parameter `unknown`, given the meaning of each choice, the default first."""
    meanings["error"] = "is an error"
    text = ", or ".join(f"{about} ({choice})" for choice, about in meanings.items())
    about = f"A level that the model does not know {text}"
    return Choice(next(iter(meanings)), about, words=tuple(meanings), more=more)


def missing_choice() -> Choice[str]:
    """Return the parameter `missing` of models that take numbers."""
    about = (
        "Missing cells are a level (numbers: imputed by the median, plus an indicator column), or "
        "an error"
    )
    return Choice("level", about, words=("level", "error"))


class TimeParameters(Parameters):
    """Parameters of work that can be ended early."""

    time_limit = Real(
        None,
        "Stop this long after the rows are read, with the best result so far",
        above=0.0,
        none="no limit",
        metavar="SECONDS",
        more="In seconds from the beginning of fit; the result may then depend on the machine. "
        "Compiling (at the first fit after installation) is included, but is not stopped.",
    )


EFFORTS = ("quick", "normal", "thorough")
"""Words for the work of a search."""


class EffortParameters(Parameters):
    """The work of a search that ends by itself."""

    effort = Choice(
        "normal",
        "Work of the search: about 3 s (quick), 10 s (normal), or minutes (thorough) of one core "
        "for 1,000 rows of 20 columns",
        words=EFFORTS,
        more="The work is counted, so the result does not depend on the machine.",
    )


class RunParameters(TimeParameters):
    """Parameters of a fit."""

    random_state = LooseInteger(
        None,
        "Same seed, same result",
        minimum=0,
        none="",
        option="seed",
        typed="int, SeedSequence, Generator or None",
    )


class ChainParameters(RunParameters, EffortParameters):
    """Parameters of chains and predictions; see `bayescascade.explore`."""

    n_jobs: Jobs[Any] = Jobs(
        -1,
        "Number of chains to run at the same time; -1: one per core",
        none="",
        more="The result does not depend on it.",
    )

    predictive = Choice(
        "map",
        "Predict with the best result (map), or with the average over posterior draws (average)",
        words=("map", "average"),
    )
    n_steps = Integer(
        None,
        "Proposals per chain and phase",
        minimum=1,
        none="",
        more="The phases are annealing and sampling; a quarter of the sampling is discarded as "
        "warm-up. None: chosen by `effort` and the number of rows.",
    )
    n_chains = Integer(4, "Independent chains", minimum=1)
    checkpoint = Other(
        None,
        "Save the chains here every few seconds",
        none="",
        metavar="FILE",
        typed="str, Path or None",
    )
    resume = Flag(
        False,
        "Continue the chains in --checkpoint",
        more="The result is the same as that of an uninterrupted run.",
    )


class SearchParameters(ChainParameters):
    """Parameters of chains that may run until they agree."""

    until = Choice(
        "agreed",
        "Without --steps, run chains until they agree (agreed), or for a default number of steps "
        "(steps)",
        words=("agreed", "steps"),
        more='If `n_steps` is None, "agreed" means: until R-hat is at most 1.01 and the effective '
        "sample size at least 400, in up to four rounds; see `bayescascade.explore`. There is no "
        "further round if even the last one would give too few effective draws.",
    )


class ComparisonParameters(Parameters):
    """Parameters of comparisons of densities by held-out rows."""

    n_halvings = Integer(5, "Number of random splits into halves", minimum=1, option="repeats")
    n_jobs: Jobs[Any] = Jobs(
        -1, "Number of densities to learn at the same time; -1: one per core", none=""
    )
    random_state = RunParameters.random_state


class MemoryParameters(Parameters):
    """Parameters of work that may take much memory."""

    memory_limit = Real(2.0, "Memory limit in gigabytes, for an exact search", above=0.0)


class DensityParameters(Parameters):
    """Parameters of a density, and of the rows that it scores."""

    unknown = unknown_choice(
        rare="gives its row a very low density",
        ignore="counts as missing",
        more="A number beyond the outer edges is treated in the same way. The first two "
        "choices raise an "
        "`UnknownLevelWarning`; `bayescascade.model.readable_density` explains the density of "
        "such a row.",
    )


class LearnedDensityParameters(DensityParameters):
    """Parameters of a density with a posterior."""

    density = Choice(
        "posterior_mean",
        "Probability of a leaf or rule: posterior mean, or its share of the rows",
        words=("posterior_mean", "empirical"),
        more="The mean is ``(n_l + alpha) / (n + K alpha)``, the share ``n_l / n``, which is zero "
        "without rows.",
    )
