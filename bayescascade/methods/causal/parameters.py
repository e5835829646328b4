"""Parameters of additive noise models."""

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

PRIVATE_SCORES = ("hsic", "spearman", "kendall", "iqr")
SCORE_NAMES = ("shapes", *PRIVATE_SCORES, "variance")

PROTECTED = ("both", "test", "train")
"""The protected rows: all, the test rows, or the training rows of regressions."""


class DirectionParameters(Parameters):
    """Parameters of both models."""

    score = Choice("shapes", "How dependence on the cause is measured", words=SCORE_NAMES)
    random_state = LooseInteger(
        None,
        "Seed for splitting the rows; the noise has no seed",
        minimum=0,
        none="",
        option="seed",
    )


class AdditiveNoiseParameters(DirectionParameters):
    """Parameters of `AdditiveNoiseModel`."""

    decide = Choice(
        "tested",
        "Name a direction if pairs without one rarely have such scores (tested), or always",
        words=("tested", "always"),
    )
    regression = Other("kernel_ridge", "Regression of the effect on the cause")
    bandwidth = Real(
        "half median", "Bandwidth of the kernels of hsic", words=("half median",), minimum=0.01
    )
    n_folds = Integer(5, "Number of folds, for a regressor", minimum=2)
    temperature = Real(
        None, "Temperature of the posterior", above=0.0, none=("the score of independent rows")
    )


class PrivateNoiseParameters(DirectionParameters):
    """Parameters of `PrivateAdditiveNoiseModel`."""

    score = Choice("hsic", DirectionParameters.score.about, words=PRIVATE_SCORES)
    epsilon: Real[Any] = Real(
        1.0,
        "Publish with differential privacy, with this privacy budget",
        minimum=1e-8,
        maximum=1e6,
        in_commands=None,
    )
    delta = Real(
        0.0,
        "Delta of the privacy budget, which some scores need: how probable it is that the "
        "guarantee fails",
        minimum=0.0,
        below=1.0,
    )
    protect = Choice(
        "both",
        "Rows to protect: all (both), the test rows (test), or the training rows (train)",
        words=PROTECTED,
    )
    publish = Choice(
        "scores",
        "Publish both scores with noise, or only the direction",
        words=("scores", "direction"),
    )
    x_bounds = Interval(None, "Bounds of column x; they must not come from the rows", none="")
    y_bounds = Interval(None, "Bounds of column y", none="")
    regularization = Real(
        None, "Lambda of kernel ridge regression", minimum=1e-6, maximum=1e6, none="chosen"
    )
    bandwidth = Real(0.1, "Bandwidth of the kernels of hsic", minimum=0.02, maximum=1e3)
    proposed = Real(
        None,
        "Proposed bound on the change of a score by one row, for the stability test",
        minimum=1e-9,
        maximum=1e3,
        none="as for normal rows",
    )
    test_share = Real(0.5, "Share of the rows for the test", above=0.0, below=1.0)
    noise = Choice("opendp", "Source of the noise", words=("opendp", "simulated"))
    ledger = Other(None, "Ledger whose budget is spent", none="its own")
