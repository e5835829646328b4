"""Parameters of unions of boxes, declared once."""

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
    """Of what a union is worth."""

    negative_weight = Real(
        BALANCED, "What a negative inside costs, a positive outside being 1", minimum=0.0,
        words=(BALANCED,),
    )  # fmt: skip
    box_cost = Real(0.0, "What a box costs, in positives", minimum=0.0)
    side_cost = Real(4.0, "What a closed side costs: positives (gibbs), nats (beta)", minimum=0.0)


class PosteriorParameters(ObjectiveParameters):
    """Of the posterior over unions."""

    n_boxes = Integer(6, "Most boxes", minimum=1, maximum=MOST_BOXES)
    temperature = Real(1.0, "Positives that a nat is worth (gibbs)", above=0.0)
    max_cuts = Integer(128, "Most cuts of a column", minimum=1, maximum=32_767)
    prior_weight = Real(1.0, "Rows of each class that a rate begins with", above=0.0)


class ClassParameters(Parameters):
    """Of classifiers by boxes."""

    positive = Label(None, "Label of the rare class", none="the rarer", metavar="LABEL")
    missing = missing_choice()
    unknown = unknown_choice(ignore="counts as the mean of its column")


class BoxParameters(ClassParameters, PosteriorParameters, MemoryParameters, SearchParameters):
    """Of `BoxClassifier`."""

    likelihood = Choice(
        "pooled", "Weighted accuracy, rates inside and outside, or half of the chains on each",
        words=("pooled", *LIKELIHOODS),
    )  # fmt: skip
    predictive = Choice(
        "average", "Rates of the union shown, or the average over draws", words=("map", "average")
    )
    search = Choice(
        SAMPLED[0], "How to search: with a proof, or by chains", words=("exact", *SAMPLED)
    )
    solver = Choice(
        "branch", "Of an exact search: branch and bound, or a program for HiGHS",
        words=("branch", "program"),
    )  # fmt: skip
    n_jobs = Jobs(None, SearchParameters.n_jobs.about, none="", in_commands=-1)


class FastBoxParameters(ClassParameters):
    """Of `FastBoxes`."""

    random_state = RunParameters.random_state
    n_clusters = Integer("cv", "Clusters of positives, or chosen by cross-validation", minimum=1,
                         words=("cv",))  # fmt: skip
    expansion = Real("cv", "How far boxes expand (beta), or chosen by cross-validation",
                     minimum=0.0, words=("cv",))  # fmt: skip
    negative_weight = Real(0.3, "What a negative inside costs", above=0.0)
    grow = Flag(True, "Boxes grow to the next negative in the end")


_CERTIFIED = {"likelihood": "gibbs", "search": "exact"}

BOXES = ListedCommand(
    name="boxes",
    short="Find a rare class as a few boxes.",
    about="""Learn a few axis-parallel boxes that hold most rows of a rare class, and few others.

    The file (.csv, .csv.gz, .parquet) holds the labels, of two classes, in the column --target.
    --method path prints the best union for each of ten weights of the others, with what was proved
    of it. Ctrl-C or --time-limit ends the search early: what was found is printed and written.
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
        "n_chains", "n_jobs", "random_state", "time_limit", "memory_limit",
    ),
    picture="Draw the boxes, or a path's curve on the rows learned from",
    words="the boxes are",
)  # fmt: skip
