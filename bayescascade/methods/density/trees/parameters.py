"""Parameters of cascades, declared once."""

from bayescascade.base.parameters import Choice, Integer, Parameters, Real
from bayescascade.model.listed import ListedDensity
from bayescascade.model.parameters import (
    SEARCHES,
    ChainParameters,
    DensityParameters,
    LearnedDensityParameters,
    MemoryParameters,
    RunParameters,
    SearchParameters,
)

LEAVES = ("uniform", "independent", "dependent")
"""Kinds of densities inside a leaf."""

PARTITIONS = ("subsets", "levels")
"""Ways for a split to partition a column's remaining levels."""

PRIORS = ("poisson", "generative")
"""Priors on trees."""

_BRANCHES = "Maximum number of branches per split"


class ShownParameters(Parameters):
    """The choice of the shown tree."""

    tree = Choice(
        "best",
        "Show the most probable tree (best; with auto another one if it has one leaf or over 30), "
        "or the posterior draw that is nearest to all others (typical)",
        words=("best", "typical"),
    )


class TreeParameters(ShownParameters, LearnedDensityParameters, MemoryParameters, SearchParameters):
    """Parameters of both cascades."""

    concentration = Real(2.0, "Dirichlet parameter of each leaf, branch or rule", above=0.0)
    prior = Choice(
        "poisson",
        "Prior on trees: Poisson numbers of leaves or branches (poisson), or a process that stops "
        "at each node with probability --stop (generative)",
        words=PRIORS,
    )
    stop = Real(0.5, "Probability of a leaf under the generative prior", above=0.0, below=1.0)
    partitions = Choice(
        "subsets",
        "A split groups levels in any way (subsets), or makes a branch for each level (levels)",
        words=PARTITIONS,
    )
    leaf = Choice(
        "uniform",
        "Distribution inside a leaf: uniform, independent columns, dependent columns, or the one "
        "with the largest evidence (auto)",
        words=(*LEAVES, "auto"),
        in_commands="auto",
    )
    leaf_concentration = Real(
        1.0, "Dirichlet parameter of a level inside an independent leaf", above=0.0
    )
    search = Choice(
        "auto",
        "How to search: exact proves that nothing is more probable, the others use chains; auto: "
        "exact if that is quick",
        words=SEARCHES,
    )
    start = Choice(
        "random", "Chains start from random trees, or from a greedy one", words=("random", "greedy")
    )


class LeafParameters(TreeParameters):
    """Parameters of the leaf model."""

    expected_leaves = Real(8.0, "Expected number of leaves (prior mean)", above=0.0)
    max_branches = Integer(2, _BRANCHES, minimum=2, none="all")
    max_leaves = Integer(None, "Maximum number of leaves", minimum=1, none="all")


class BranchParameters(TreeParameters):
    """Parameters of the branch model."""

    expected_branches = Real(2.0, "Expected number of branches per node (prior mean)", above=0.0)
    max_branches = Integer(None, _BRANCHES, minimum=2, none="all")
    feature_inclusion = Real(
        None,
        "Prior probability that a column is in the tree",
        above=0.0,
        below=1.0,
        none="no such prior",
    )
    max_depth = Integer(
        None,
        "Maximum number of splits above a dependent leaf, in an exact search",
        minimum=0,
        none="as deep as can be searched in seconds",
    )
    temper = Real(
        None,
        "Cap on the number of rows that count when a split above dependent leaves is chosen; auto: "
        "chosen on held-out rows",
        words=("auto",),
        above=0.0,
        none="all",
    )


class AutoParameters(ShownParameters, DensityParameters, MemoryParameters, ChainParameters):
    """Parameters of `AutoCascade`."""

    predictive = Choice("average", ChainParameters.predictive.about, words=("map", "average"))


class DetParameters(LearnedDensityParameters):
    """Parameters of `DensityEstimationTree`."""

    min_leaf_size = Real(0.0, "Minimum weight of a leaf", minimum=0.0)
    max_leaf_size = Real(10.0, "Nodes with at most this weight are not split", minimum=0.0)
    complexity = Real(
        None, "Minimum gain in squared error to keep a leaf", minimum=0.0, none="by folds"
    )
    choose_by = Choice(
        "likelihood",
        "Score by which cross-validation chooses the complexity",
        words=("likelihood", "squared_error"),
    )
    n_folds = Integer(10, "Folds of the cross-validation", minimum=2)
    concentration = Real(2.0, "Dirichlet parameter of a leaf", above=0.0)
    random_state = RunParameters.random_state
    time_limit = RunParameters.time_limit


# Goh (2018), section 3.3: 5 or 8 leaves, 2 or 3 branches, by evidence or folds

AUTO = ListedDensity(
    "auto",
    "AutoCascade",
    AutoParameters,
    "the kind that suits the table best",
    among=[{"effort": "quick"}],
    is_quick=True,
)
LEAF = ListedDensity(
    "leaf",
    "LeafCascade",
    LeafParameters,
    "a tree with a prior on the number of leaves",
    among=[{"expected_leaves": n, "leaf": "auto"} for n in (5.0, 8.0)],
)
BRANCH = ListedDensity(
    "branch",
    "BranchCascade",
    BranchParameters,
    "a tree with a prior on the branches of every node",
    among=[{"expected_branches": n, "leaf": "auto"} for n in (2.0, 3.0)],
)
DET = ListedDensity(
    "det",
    "DensityEstimationTree",
    DetParameters,
    "a tree grown greedily",
    is_quick=True,
    is_fitted=False,
)

_COMMON = ("concentration", "max_branches", "partitions", "leaf", "leaf_concentration", "prior",
           "stop")  # fmt: skip

GRID_PARAMETERS = {
    "leaf": ("expected_leaves", *_COMMON, "max_leaves"),
    "branch": ("expected_branches", *_COMMON, "feature_inclusion"),
}
"""Parameters of each model for evidence grids."""

EVIDENCE_MODELS = tuple(GRID_PARAMETERS)
