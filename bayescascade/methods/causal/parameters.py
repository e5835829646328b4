"""Parameters of additive noise models, declared once."""

from typing import Any

from bayescascade.base.parameters import (
    Choice,
    Integer,
    Interval,
    LooseInteger,
    Other,
    Parameters,
    Real,
)

SCORE_NAMES = ("hsic", "spearman", "kendall", "iqr", "variance")
PRIVATE_SCORES = SCORE_NAMES[:-1]

PROTECTED = ("both", "test", "train")
"""Whose rows are protected: all, those that test, or those that regressions are learned from."""


class DirectionParameters(Parameters):
    """Of both models."""

    score = Choice("hsic", "Measure of how residuals depend on the cause", words=SCORE_NAMES)
    random_state = LooseInteger(
        None, "Seed for splitting the rows; the noise has none", minimum=0, none="", option="seed"
    )


class AdditiveNoiseParameters(DirectionParameters):
    """Of `AdditiveNoiseModel`."""

    regression = Other("kernel_ridge", "Of the effect on the cause")
    bandwidth = Real("half median", "Of the kernels of hsic", words=("half median",), minimum=0.01)
    n_folds = Integer(5, "Parts that rows are split into, for a regressor", minimum=2)
    temperature = Real(None, "Of the posterior", above=0.0, none="as for independent rows")


class PrivateNoiseParameters(DirectionParameters):
    """Of `PrivateAdditiveNoiseModel`."""

    score = Choice("hsic", DirectionParameters.score.about, words=PRIVATE_SCORES)
    epsilon: Real[Any] = Real(
        1.0,
        "Publish with differential privacy, with this budget",
        minimum=1e-8,
        maximum=1e6,
        in_commands=None,
    )
    delta = Real(
        0.0, "Delta of the privacy budget, for the test of stability", minimum=0.0, below=1.0
    )
    protect = Choice(
        "both",
        "Rows to protect: all (both), those that test, or those that are learned from (train)",
        words=PROTECTED,
    )
    publish = Choice(
        "scores",
        "Publish both scores with noise, or only the direction",
        words=("scores", "direction"),
    )
    x_bounds = Interval(None, "Bounds of column x; they must not be taken from the rows", none="")
    y_bounds = Interval(None, "Bounds of column y", none="")
    regularization = Real(
        None, "Lambda of kernel ridge regression", minimum=1e-6, maximum=1e6, none="chosen"
    )
    bandwidth = Real(0.1, "Of the kernels of hsic", minimum=0.02, maximum=1e3)
    proposed = Real(
        None,
        "By how much a row is proposed to change a score, where stability is tested",
        minimum=1e-9,
        maximum=1e3,
        none="as for normal rows",
    )
    test_share = Real(0.5, "Share of the rows for the test", above=0.0, below=1.0)
    noise = Choice("opendp", "Where noise comes from", words=("opendp", "simulated"))
    ledger = Other(None, "Whose budget is spent", none="its own")
