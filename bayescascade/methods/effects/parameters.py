"""Parameters of models of effects and of rules that explain them."""

from typing import Any, NamedTuple

from bayescascade.base.errors import ParameterError
from bayescascade.base.parameters import Choice, Flag, Integer, Jobs, Label, Other, Parameters, Real
from bayescascade.model.parameters import (
    EFFORTS,
    EffortParameters,
    MemoryParameters,
    RunParameters,
    missing_choice,
    unknown_choice,
)

AUTO = "auto"
TARGETS = ("overlap", "treated", "population")
COMBINATIONS = ("mean", "max")
ADJUSTMENTS = ("doubly_robust", "residuals", "none")


class Extent(NamedTuple):
    """How much a fit computes, at most."""

    n_trees: int  # of forests for propensities and outcomes, >= 30; of those for effects, twice
    n_rows: int  # from which scales of kernels are chosen
    n_landmarks: int  # of kernels


EXTENTS = dict(
    zip(
        EFFORTS,
        (Extent(30, 250, 200), Extent(100, 1_000, 400), Extent(500, 2_000, 1_000)),
        strict=True,
    )
)
"""By `effort`."""


class EffectParameters(Parameters):
    """Parameters of `EffectModel`."""

    good = Label(None, "The good outcome", none="the second in order", metavar="LABEL")
    treated = Label(None, "The arm of the treated", none="the second in order", metavar="LABEL")

    surrogate = Choice(
        "square", "Loss used in place of wrong signs",
        words=("square", "logistic", "exponential", "hinge"),
    )  # fmt: skip
    combine = Choice(
        "mean", "Combination of the risks of both arms: their mean, or the larger one, "
        "which may miss effects",
        words=COMBINATIONS,
    )  # fmt: skip
    adjust = Other(
        AUTO, "Labels: doubly robust or residual pseudo-outcomes, or observed outcomes",
        typed='{"auto", "doubly_robust", "residuals", "none"} or False',
        more='"auto": doubly robust for the square and the mean, otherwise "none". '
        'False means "none".',
    )  # fmt: skip
    learner = Other(
        AUTO, "A kernel, a forest, or a mixture (auto), with weights from held-out rows",
        typed='{"auto", "kernel", "forest"} or scikit-learn estimator',
        more='"auto" mixes both and, if adjusted, a T-learner: the difference of the expected '
        "outcomes of both arms. Any scikit-learn estimator that accepts `sample_weight`: a "
        'classifier with `adjust` "none", otherwise a regressor.',
    )  # fmt: skip
    kernel = Choice(
        AUTO, "Kernel of the function; auto: by the marginal likelihood, or rbf if there is none",
        words=(AUTO, "linear", "quadratic", "cubic", "rbf"),
    )  # fmt: skip
    length_scale = Real(
        AUTO,
        "Length scale of rbf: exp(-distance^2 / (2 length^2)); auto: chosen",
        above=0.0,
        words=(AUTO,),
    )
    penalty = Real(AUTO, "Weight of the squared norm; auto: chosen", above=0.0, words=(AUTO,))
    target = Other(
        "overlap", "Population of the risks", typed='{"overlap", "treated", "population"} '
        "or (n_rows,) array of float > 0",
        more='"treated": as in the thesis. "overlap": weights e (1 - e) with propensity e, largest '
        "where arms are similar. An array has weights of the rows within each arm.",
    )  # fmt: skip
    effort = Choice(
        "normal", "Number of trees, of rows to choose the scales of a kernel, and of its "
        "landmarks: few (quick), or many (thorough)",
        words=EFFORTS, more=EffortParameters.effort.more,
    )  # fmt: skip
    standardize = Flag(True, "Columns are divided by their standard deviations")
    random_state = RunParameters.random_state
    n_jobs = Jobs(None, "Cores used by forests; the result does not depend on it", none="one")
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


class CausalSVMParameters(EffectParameters):
    """Parameters of `CausalSVM`: the thesis's choices."""

    surrogate = EffectParameters.surrogate.with_default("hinge")
    combine = EffectParameters.combine.with_default("max")
    adjust = EffectParameters.adjust.with_default(False)
    kernel = EffectParameters.kernel.with_default("rbf")
    target = EffectParameters.target.with_default("treated")
    standardize = EffectParameters.standardize.with_default(False)


class EffectRulesParameters(MemoryParameters):
    """Parameters of `EffectRules`."""

    kind = Choice("list", "A rule list, or a tree of depth 2", words=("list", "tree"))
    max_size = Integer(2, "Maximum number of conditions per rule", minimum=1)
    min_support = Real(0.1, "Minimum share of the rows that satisfy a rule", above=0.0, below=1.0)
    n_bins = Integer(4, "Number of quantile bins for numbers", minimum=2, maximum=65_535)
    n_associations = Integer(5, "Maximum number of associations for each sign of h", minimum=0)
    random_state = RunParameters.random_state


def resolved_adjustment(model: Any) -> str:
    """Return the adjustment of labels, with "auto" resolved; ParameterError if it is impossible."""
    adjust = "none" if model.adjust is False else model.adjust
    if not isinstance(adjust, str) or adjust not in (AUTO, *ADJUSTMENTS):
        raise ParameterError(
            f"adjust must be {', '.join(map(repr, (AUTO, *ADJUSTMENTS)))} or False, "
            f"got {model.adjust!r}"
        )
    is_able = model.surrogate == "square" and model.combine == "mean"
    if adjust == AUTO:
        is_classifier = hasattr(model.learner, "predict_proba")
        adjust = "doubly_robust" if is_able and not is_classifier else "none"
    if adjust != "none" and not is_able:
        raise ParameterError(
            f'adjust must be "none" unless surrogate is "square" and combine "mean", got {adjust!r}'
        )
    if isinstance(model.learner, str) and model.learner not in (AUTO, "kernel", "forest"):
        raise ParameterError(
            f'learner must be "auto", "kernel", "forest" or an estimator, got {model.learner!r}'
        )
    if model.learner == "forest" and not is_able:
        raise ParameterError(
            'learner must be "kernel" or an estimator unless surrogate is "square" and '
            f'combine "mean", got {model.learner!r}'
        )
    if isinstance(model.target, str) and model.target not in TARGETS:
        raise ParameterError(
            f"target must be {', '.join(map(repr, TARGETS))} or an array, got {model.target!r}"
        )
    return adjust
