"""Parameters of neighbor compression that commands take, and their ranges, declared once."""

from bayescascade.base.parameters import Choice, Flag, Integer, Jobs, Real
from bayescascade.model.parameters import ChainParameters, unknown_choice

AUTO = "auto"


class CompressionParameters(ChainParameters):
    """Of `StochasticNeighborCompression`."""

    compression = Real(
        0.04, "Prototypes, as a part of the rows that are learned from", above=0.0, maximum=1.0
    )
    metric = Choice(
        "scaled",
        "One scale for all columns, one for each, or a matrix",
        words=("scaled", "diagonal", "linear"),
    )
    prior_scale = Real(
        AUTO,
        "How far prototypes may be from the mean of their class, in standard deviations of its "
        "rows; rows held out choose between 2 and 16 (auto)",
        above=0.0,
        words=(AUTO,),
        none="",
    )
    start = Choice("kmeans", "Where prototypes start", words=())
    joint = Flag(False, "Whether the metric is learned with the prototypes")
    n_neighbors = Integer(3, "Prototypes that vote", minimum=1)
    batch_size = Integer(4096, "Rows of a step by minibatches", minimum=1)
    max_iter = Integer(100, "Iterations of an ascent", minimum=1)
    n_jobs = Jobs(None, "Cores used; -1: all there are", none="", in_commands=-1)
    unknown = unknown_choice(mean="counts as the mean of its column", error="is an error")
