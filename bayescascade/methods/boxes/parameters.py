"""Parameters of unions of boxes."""

from bayescascade.base.parameters import Choice, Flag, Integer, Jobs, Label, Parameters, Real
from bayescascade.model.listed import ListedCommand, ListedLearner
from bayescascade.model.parameters import (
    SAMPLED,
    MemoryParameters,
    RunParameters,
    SearchParameters,
    missing_choice,
    unknown_choice,
)

BALANCED = "balanced"
MOST_BOXES = 64
LIKELIHOODS = ("gibbs", "beta")


class ObjectiveParameters(Parameters):
    """Parameters of the objective."""

    negative_weight = Real(
        BALANCED, "Cost of a negative inside, if a positive outside costs 1", minimum=0.0,
        words=(BALANCED,),
    )  # fmt: skip
    box_cost = Real(0.0, "Cost of a box, in positives", minimum=0.0)
    side_cost = Real(
        4.0, "Cost of a limit of a box, in positives (gibbs) or nats (beta)", minimum=0.0
    )


class PosteriorParameters(ObjectiveParameters):
    """Parameters of the posterior over unions."""

    n_boxes = Integer(6, "Maximum number of boxes", minimum=1, maximum=MOST_BOXES)
    temperature = Real(1.0, "Number of positives that one nat is worth (gibbs)", above=0.0)
    max_cuts = Integer(128, "Maximum number of cuts of a column", minimum=1, maximum=32_767)
    prior_weight = Real(1.0, "Pseudo-rows of each class in a rate", above=0.0)


class ClassParameters(Parameters):
    """Parameters of classifiers by boxes."""

    positive = Label(None, "Label of the rare class", none="the rarer", metavar="LABEL")
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


class BoxParameters(ClassParameters, PosteriorParameters, MemoryParameters, SearchParameters):
    """Parameters of `BoxClassifier`."""

    likelihood = Choice(
        "pooled", "Score unions by weighted accuracy (gibbs), by rates inside and outside (beta), "
        "or half of the chains by each (pooled)",
        words=("pooled", *LIKELIHOODS),
    )  # fmt: skip
    predictive = Choice(
        "average",
        "Predict with the printed union (map), or with the average over draws (average)",
        words=("map", "average"),
    )
    search = Choice(
        SAMPLED[0], "How to search: with a proof, or by chains", words=("exact", *SAMPLED)
    )
    solver = Choice(
        "branch", "Exact search by branch and bound (branch), or by an integer program in HiGHS "
        "(program)",
        words=("branch", "program"),
    )  # fmt: skip
    n_jobs = Jobs(None, SearchParameters.n_jobs.about, none="", in_commands=-1)


class FastBoxParameters(ClassParameters):
    """Parameters of `FastBoxes`."""

    random_state = RunParameters.random_state
    n_clusters = Integer(
        "cv", "Number of clusters of positives; cv: chosen by cross-validation", minimum=1,
        words=("cv",),
    )  # fmt: skip
    expansion = Real(
        "cv", "How far boxes expand; cv: chosen by cross-validation",
        minimum=0.0, words=("cv",),
    )  # fmt: skip
    negative_weight = Real(0.3, "Cost of a negative inside", above=0.0)
    grow = Flag(True, "Whether boxes finally grow to the next negative")


_CERTIFIED = {"likelihood": "gibbs", "search": "exact"}

BOXES = ListedCommand(
    name="boxes",
    short="Describe a rare class by a few boxes.",
    about="""Learn a few axis-parallel boxes that hold most rows of a rare class, and few others.

    DATA has the labels, of two classes, in the column --target. --method path prints the best union
    of boxes for each of ten weights of the other class, and what is proved about it. Ctrl-C or
    --time-limit ends the search early; the best result so far is printed and saved. Brackets after
    an option name the methods that have it, and its default.
    """,
    learners=(
        ListedLearner("average", "BoxClassifier", BoxParameters, "the average over a posterior"),
        ListedLearner("exact", "BoxClassifier", BoxParameters, "the best union with a proof",
                      given=_CERTIFIED),
        ListedLearner("fast", "FastBoxes", FastBoxParameters, "boxes around clusters"),
        ListedLearner("path", "BoxClassifier", BoxParameters, "the best unions by weight",
                      given=_CERTIFIED, call="path"),
    ),
    options=(
        "positive", "n_boxes", "likelihood", "negative_weight", "box_cost", "side_cost", "search",
        "solver", "n_clusters", "expansion", "predictive", "missing", "unknown", "n_steps",
        "n_chains", "n_jobs", "random_state", "effort", "time_limit", "memory_limit",
    ),
    picture="Draw the boxes, or the ROC curve of --method path",
    words="the boxes are",
)  # fmt: skip
