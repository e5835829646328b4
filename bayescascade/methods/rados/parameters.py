"""Parameters of rados and of classifiers that learn from them."""

from typing import Any

from bayescascade.base.parameters import (
    Choice,
    Flag,
    Integer,
    LooseInteger,
    Other,
    Parameters,
    Real,
    TwoLevels,
)
from bayescascade.model.parameters import (
    RunParameters,
    TimeParameters,
    missing_choice,
    unknown_choice,
)

LEARNERS = ("auto", "boost", "map", "moments")
_FAIR_COIN = "a random half"


class LearnerParameters(TimeParameters):
    """Parameters of learning from rados."""

    learner = Choice(
        "auto",
        "Boosting (boost), the posterior maximum (map), or least squares by mean and covariance "
        "(moments); auto: moments if there are two rados for each column, otherwise map",
        words=LEARNERS,
    )
    n_rounds = Integer(1000, "Rounds of boosting", minimum=1)
    weak_learner = Choice(
        "best",
        "Feature of each round: the best one, or the median one (as in the paper for noisy rados)",
        words=("best", "prudential"),
    )
    unknown = unknown_choice(ignore="counts as the mean of its column")


class MadeParameters(Parameters):
    """Parameters of making all rados."""

    n_rados = Integer(1000, "Number of rados", minimum=1, option="n")
    intercept = Flag(True, "A column of ones")


class PlainParameters(MadeParameters):
    """Parameters of rados without a guarantee."""

    support: Integer[Any] = Integer(
        None, "Number of rows in each rado", words=("auto",), minimum=1, none=_FAIR_COIN
    )
    standardize = Flag(True, "Divide columns by their standard deviations")
    missing = missing_choice()


class SampleParameters(PlainParameters):
    """Parameters of `Rados.sample`."""

    time_limit = Real(
        None,
        "Stop this long after the rows are read",
        above=0.0,
        none="no limit",
        metavar="SECONDS",
    )
    random_state = LooseInteger(
        None,
        "Same seed, same sums; random signs and noise that protect privacy have no seed",
        minimum=0,
        none="",
        option="seed",
    )


class PrivateParameters(MadeParameters):
    """Parameters of rados with a guarantee."""

    epsilon = Real(None, "Privacy budget of all rados together", above=0.0)
    delta = Real(1e-6, "Delta of the privacy budget", above=0.0, below=1.0)


class FeatureParameters(PrivateParameters):
    """Parameters of `Rados.sample_feature_private`."""

    n_rados = Integer(100, MadeParameters.n_rados.about, minimum=1, option="n")
    feature = Other(
        None,
        "Protect the coordinate of this boolean feature",
        option="private-feature",
        metavar="NAME",
    )
    standardize = PlainParameters.standardize
    values = TwoLevels(
        None, "The two values of that feature, such as no,yes, even if only one occurs", none=""
    )
    truncation = Real(
        0.0, "Truncation of that feature's tails (beta of Nock et al. 2015)", minimum=0.0, below=0.5
    )
    noise = Choice("system", "Source of the signatures", words=("system", "simulated"))


class GaussianParameters(PrivateParameters):
    """Parameters of `Rados.sample_gaussian`."""

    support = Integer(None, PlainParameters.support.about, minimum=1, none=_FAIR_COIN)
    classes = TwoLevels(None, "The two labels, even if only one occurs", none="")
    noise_on = Choice(
        "edges",
        "Add noise to each row times its label (edges), or to the sums (rados)",
        words=("edges", "rados"),
    )
    noise = Choice("opendp", "Source of the noise", words=("opendp", "simulated"))
    random_state = SampleParameters.random_state


class RadoParameters(LearnerParameters, PlainParameters, RunParameters):
    """Parameters of `RadoBoostClassifier`."""

    kappa = Real(1.0, "Divisor of the coefficients of boosting", minimum=1.0)
    prior_scale = Real(1.0, "Prior standard deviation of coefficients", above=0.0)
    support = Integer(
        "auto", PlainParameters.support.about, words=("auto",), minimum=1, none=_FAIR_COIN
    )
