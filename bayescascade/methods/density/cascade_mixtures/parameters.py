"""Parameters of mixtures, declared once."""

from bayescascade.base.parameters import Choice, Integer, Real
from bayescascade.model.listed import ListedDensity
from bayescascade.model.parameters import (
    ChainParameters,
    DensityParameters,
    EffortParameters,
    RunParameters,
)


class MixtureParameters(DensityParameters, RunParameters, EffortParameters):
    """Parameters of `CascadeMixture`."""

    n_components = Integer(
        "auto",
        "Number of classes, of hidden states, or of points; auto: chosen on held-out rows",
        minimum=1,
        words=("auto",),
    )
    kind = Choice(
        "auto",
        "Columns inside a class are independent (independent) or joined by a tree (dependent); "
        "each column has a class of its own (hidden); classes are points in four dimensions "
        "(continuous); or one cascade replaces the classes (cascade)",
        words=("auto", "independent", "dependent", "hidden", "continuous", "cascade"),
    )
    smoothing = Real("auto", "Pseudo-rows added to each class", above=0.0, words=("auto",))
    n_starts = Integer(
        None, "Number of EM starts; the best is kept", minimum=1, none="by effort: 2, 6 or 30"
    )
    max_iter = Integer(100, "Maximum number of EM steps per start", minimum=1)
    tol = Real(1e-4, "EM stops when a step gains fewer nats per row than this", above=0.0)
    n_jobs = ChainParameters.n_jobs


MIXTURE = ListedDensity(
    "mixture",
    "CascadeMixture",
    MixtureParameters,
    "a mixture of classes of rows",
    among=[{"n_starts": 2}],
    is_quick=True,
)

HIDDEN, CONTINUOUS = (
    ListedDensity(
        kind, "CascadeMixture", MixtureParameters, about, among=[{"kind": kind}], is_fitted=False
    )
    for kind, about in (
        ("hidden", "a tree of hidden states, one for each column"),
        ("continuous", "a continuous mixture of trees of columns"),
    )
)
