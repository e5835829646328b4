"""Parameters of neighbor compression."""

from bayescascade.base.parameters import Choice, Flag, Integer, Jobs, LooseInteger, Other, Real
from bayescascade.model.parameters import ChainParameters, missing_choice, unknown_choice

AUTO = "auto"
"""The prior scale is chosen on held-out rows."""

METRICS = ("scaled", "diagonal", "linear")


class CompressionParameters(ChainParameters):
    """Parameters of `NeighborCompressionClassifier`."""

    compression = Real(
        0.04, "Number of prototypes, as a share of the training rows", above=0.0, maximum=1.0
    )
    n_prototypes = LooseInteger(
        None, "Number of prototypes, in place of --compression", minimum=2, none=""
    )
    metric = Choice(
        "scaled",
        "Distances have one scale (scaled), a scale per column (diagonal), or a matrix (linear)",
        words=METRICS,
    )
    rank = Other(None, "Number of rows of the matrix", none="all")
    start = Choice("kmeans", "Prototypes start as centers or rows", words=("kmeans", "sample"))
    standardize = Choice(
        "auto", "Divide columns by their standard deviations", words=("auto", "yes", "no")
    )
    joint = Flag(False, "Learn the metric together with the prototypes")
    prior_scale = Real(
        AUTO,
        "Prior scale of prototypes around their class mean, in standard deviations; auto: 2 or "
        "16, chosen on held-out rows",
        words=(AUTO,),
        none="any",
        above=0.0,
    )
    rule = Choice(
        "stochastic",
        "Predict by the nearest prototype, by a vote of the nearest ones, or by a vote of all, in "
        "which nearer ones count more (stochastic)",
        words=("nearest", "neighbors", "stochastic"),
    )
    n_neighbors = Integer(3, "Prototypes that vote", minimum=1)
    optimizer = Choice("lbfgs", "Optimizer", words=("lbfgs", "cg", "minibatch"))
    max_iter = Integer(
        None, "Maximum number of iterations of a gradient ascent", minimum=1, none="by effort"
    )
    batch_size = Integer(4096, "Rows of a minibatch", minimum=1)
    dtype = Choice("float64", "Precision of the computations", words=("float64", "float32"))
    search = Choice("ascent", "How to search", words=("ascent", "ascent+langevin"))
    n_chains = Integer(1, ChainParameters.n_chains.about, minimum=1)
    n_jobs = Jobs(-1, "Cores to use; -1: all", none="")
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")
