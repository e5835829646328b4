"""Parameters of classifiers that learn from rados, declared once."""

from bayescascade.base.parameters import Choice, Flag, Integer, Real
from bayescascade.model.parameters import (
    RunParameters,
    TimeParameters,
    missing_choice,
    unknown_choice,
)

LEARNERS = ("auto", "boost", "map", "moments")
WEAK_LEARNERS = ("best", "prudential")


class LearnerParameters(TimeParameters):
    """Of learning from rados that were made."""

    learner = Choice(
        "auto",
        "Boosting, the posterior's maximum, or least squares by mean and covariance; auto: the "
        "last where sums are of over 50 rows, else boosting",
        words=LEARNERS,
    )
    n_rounds = Integer(1000, "Rounds of boosting", minimum=1)
    weak_learner = Choice(
        "best",
        "A round's feature: the best, or the median one, as in the paper for noise",
        words=WEAK_LEARNERS,
    )
    unknown = unknown_choice(ignore="counts as the mean of its column")


class RadoParameters(LearnerParameters, RunParameters):
    """Of `RadoBoostClassifier`."""

    kappa = Real(1.0, "Divides the coefficients that boosting finds", minimum=1.0)
    prior_scale = Real(1.0, "Prior standard deviation of coefficients", above=0.0)
    n_rados = Integer(1000, "Rados that fit makes", minimum=1)
    support = Integer("auto", "Rows in each", words=("auto",), minimum=1, none="by a fair coin")
    standardize = Flag(True, "Columns in standard deviations")
    intercept = Flag(True, "A column of ones")
    missing = missing_choice()
