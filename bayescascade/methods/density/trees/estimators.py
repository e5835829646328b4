"""The estimators: `LeafCascade`, the thesis's Model I, and `BranchCascade`, its Model II.

Goh (2018), section 3.2. `models` has the formulas, and `cascade` the common part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.cascade import Cascade
from bayescascade.methods.density.trees.leaf_choice import Summed, shares_of
from bayescascade.methods.density.trees.models import BranchModel, LeafModel
from bayescascade.methods.density.trees.parameters import BranchParameters, LeafParameters
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.shallow_extent import fitting_trees
from bayescascade.methods.density.trees.shallow_trees import TEMPERS, ShallowTrees
from bayescascade.methods.density.trees.tree_posterior import CascadePosterior
from bayescascade.model.guard import shown_gap
from bayescascade.model.search import Search
from bayescascade.model.solution import NO_POSTERIOR, TEMPERED, Certificate
from bayescascade.report.page import count_of

_N_FOLDS = 5  # for the choice of a temper
_LONG = 1e10  # steps to score a fold, minutes; beyond, only one fold is scored


@dataclass(eq=False, repr=False)
class LeafCascade(Cascade):
    """Density tree with a Poisson prior on its number of leaves (Goh 2018, Model I).

    Parameters
    ----------
    expected_leaves
        Mean of the Poisson; no effect with another prior.
    concentration
        Dirichlet parameter of each leaf: the number of pseudo-rows in each leaf.
    max_branches
        Maximum number of branches per split. None: the number of levels.
    max_leaves
        Maximum number of leaves. None: any number. An exact search then leaves out only numbers of
        leaves that are proved to be negligible.
    partitions
        "subsets": a split divides the remaining levels of a column into any groups (of adjacent
        levels if they have an order). "levels": each level has its own branch, for any
        `max_branches`. There are far fewer such trees, so far larger tables can be searched
        exactly.
    leaf
        Distribution inside a leaf. "uniform": all rows are equally probable. "independent": each
        column has its own distribution, independent of the others. "dependent": each column depends
        on at most one other, averaged over all trees that can join the columns. A dependent leaf
        needs `density` "posterior_mean", has no credible intervals, and keeps fewer draws. There
        may be at most 65,536 ways to fill a row's missing cells, and as many cells of a leaf that
        conditions leave. "auto": the kind with the largest evidence or, if not all trees of each
        kind can be summed over, the kind with the best tree. It takes the time of all exact
        searches, and of short annealings for the other kinds.
    leaf_concentration
        Dirichlet parameter of each level of a column inside an independent leaf; for a dependent
        leaf, the number of rows that its prior counts as.
    prior
        Prior on trees. "poisson": the Poisson prior of the thesis, which weights each tree by its
        number of leaves. "generative": a process. A node is a leaf with probability `stop`.
        Otherwise it is split, and all splits that its box still allows are equally probable. A node
        whose box allows no split is a leaf.
    stop
        Probability of a leaf under the generative prior. It has no effect with other priors.
    predictive
        Score and draw from the most probable tree ("map"), or from the average over the posterior
        ("average"). The average is over all trees if `exact_` is an `ExactPosterior` and 16 more
        bytes per box fit into `memory_limit`, or if `exact_` has all trees up to `max_depth`.
        Otherwise it is over the draws. A loaded model has no `exact_`, because files contain no
        rows. It averages over its draws, up to 1,000, and scores differ by their Monte Carlo error,
        up to hundredths of a nat.
    search
        "exact" evaluates all trees at once, by dynamic programming over the boxes that splits can
        make. The tree is then proved to be the most probable, or there is a bound on how much more
        probable another one may be. Its draws are independent. "anneal+metropolis" looks for the
        best tree by annealing and samples from there. The others only anneal, or only sample, by
        plain chains or by replica exchange. "auto" is "exact" if that takes minutes at most and
        fits into `memory_limit`, otherwise "anneal+metropolis"; the summary says which. Unless
        leaves are dependent, some steps of each sampled search redraw a whole subtree exactly
        (the module `exact.redraws`). Each chain has its own annealing, local improvement and
        sampling. R-hat near 1 means that chains from different starts agree. A larger R-hat means
        that splits near the root, which are rarely redrawn, still differ.
    n_steps
        Proposals per chain, both in annealing and in sampling; a quarter of the sampling is
        discarded as warm-up. None: the number that `effort` allows, most of them for annealing.
        Sampling may continue after these steps, see `until`.
    memory_limit
        Gigabytes for an exact search, or for the redraws of all chains together. Draws that are
        kept for averages and files take at most an eighth of it. If 1,000 large trees take more,
        every second one is dropped until the others fit.
    start
        "random": each chain starts from its own small random tree. "greedy": all chains start from
        the density estimation tree (`bayescascade.DensityEstimationTree`).
    tree
        The tree in `tree_`, which is printed, and which scores rows if `predictive` is "map".
        "best": the most probable tree that was found. "typical": the draw whose densities are
        nearest to those of all other draws (`bayescascade.model.typical`). The best tree has only
        splits that gain something; drawn trees have more leaves, and some leaves differ from draw
        to draw.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    progress : callable, optional
        Called with a `samplers.Progress` about twice a second.

    Attributes
    ----------
    tree_ : LearnedDensityTree
        The most probable tree that was found, or the typical one, see `tree`.
    log_posterior_ : float
        Log posterior density of the most probable tree, nats, unnormalized.
    leaf_ : str
        The kind of leaves: `leaf`, or the chosen kind if it is "auto".
    leaf_choice_ : LeafChoice
        How the kind of leaves was chosen, if it was; see `methods.density.trees.leaf_choice`.
    posterior_ : LeafPosterior
        The posterior. A model read from a file does not have it, because files contain no rows.
    run_ : PosteriorRun
        Draws, traces, acceptance; see `PosteriorRun.to_inference_data`. Not in a loaded model.
    exact_ : ExactPosterior, SummedPosterior, StoppedPosterior, TiltedPosterior or ShallowTrees
        Result of an exact search: evidence, probabilities of numbers of leaves and of splits,
        independent draws, and densities averaged over all trees. For large tables only evidence and
        draws. See `methods.density.trees.exact`. Not in a loaded model.
    summary_ : FitSummary
        The summary that is printed and saved: data, convergence, posterior of the number of leaves
        and of columns.
    schema_ : Schema
        Columns and levels.
    feature_importances_ : (n_features_in_,) float64
        Share of each column in the log likelihood that the splits of `tree_` gain.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import LeafCascade
    >>> frame = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 10, "wind": ["yes", "no"] * 20})
    >>> model = LeafCascade(expected_leaves=2, n_steps=2000, random_state=0).fit(frame)
    >>> model.tree_.n_leaves
    2
    >>> model.explain({"sky": "grey", "wind": "no"})
    'sky is grey: 30 of 40 rows, probability 0.7273, density 0.3636, 1.45 x uniform'
    """

    model_name: ClassVar[str] = "LeafCascade"
    title: ClassVar[str] = "leaf cascade"
    _model_class = LeafModel
    _posterior_class = LeafPosterior
    printed: ClassVar[tuple[str, ...]] = (
        "expected_leaves", "prior", "stop", "concentration", "max_leaves", "max_branches",
        "partitions", "leaf", "leaf_concentration",
    )  # fmt: skip

    declares = LeafParameters

    expected_leaves: float = LeafParameters.expected_leaves.default
    concentration: float = LeafParameters.concentration.default
    max_branches: int | None = LeafParameters.max_branches.default
    _: KW_ONLY
    max_leaves: int | None = LeafParameters.max_leaves.default


@dataclass(eq=False, repr=False)
class BranchCascade(Cascade):
    """Density tree with a Poisson prior on the branches of every node (Goh 2018, Model II).

    Parameters
    ----------
    expected_branches
        Mean of the Poisson; no effect with another prior.
    feature_inclusion
        Prior probability that a column is in the tree (the optional upper level of the thesis).
        None: no such level, as the generative prior requires.
    concentration
        Dirichlet parameter of every branch.
    max_branches
        Maximum number of branches per split. None: the number of levels.
    max_depth
        Maximum depth for an exact search with `partitions` "levels". None: any depth. For dependent
        leaves, the depth that takes seconds, and in wide tables 3, with only the columns that are
        most informative about others. With the generative prior, nodes at this depth are leaves.
        Score rows by the average over all trees (`predictive` "average"); a loaded model averages
        over its draws.
    temper
        In such a search, caps the number of rows that count when a split is chosen. With many rows,
        the posterior is too certain about a few trees; the tempered distribution is not, but it is
        not a posterior. "auto": the cap (none, 400, 200, 100 or 50) with the largest averaged
        density of held-out rows. Rows are split into five random folds with a fixed seed. Each fold
        is scored, or only the first if a fold takes minutes. Then all rows are learned.
        ``exact_.temper`` is the chosen cap, and ``exact_.tempered(c)`` the result with another one.
    partitions, leaf, leaf_concentration, prior, stop, predictive, search, n_steps, columns, drop, \
nominal, ordinal, continuous, missing, memory_limit, start, tree, progress
        As in `LeafCascade`. The posterior mean of a leaf is a product along its path. With
        `feature_inclusion`, only tables with few columns can be searched exactly.

    Attributes
    ----------
    tree_, log_posterior_, leaf_, leaf_choice_, posterior_, run_, exact_, summary_, schema_, \
n_features_in_, feature_names_in_
        As in `LeafCascade`.
    """

    model_name: ClassVar[str] = "BranchCascade"
    title: ClassVar[str] = "branch cascade"
    _model_class = BranchModel
    _posterior_class = BranchPosterior
    printed: ClassVar[tuple[str, ...]] = (
        "expected_branches", "prior", "stop", "concentration", "feature_inclusion",
        "max_branches", "partitions", "leaf", "leaf_concentration", "max_depth", "temper",
    )  # fmt: skip

    declares = BranchParameters

    expected_branches: float = BranchParameters.expected_branches.default
    concentration: float = BranchParameters.concentration.default
    max_branches: int | None = BranchParameters.max_branches.default
    _: KW_ONLY
    feature_inclusion: float | None = BranchParameters.feature_inclusion.default
    max_depth: int | None = BranchParameters.max_depth.default
    temper: float | str | None = BranchParameters.temper.default

    @classmethod
    def _words_of(cls, name: str, parameters: Mapping[str, Any]) -> str:
        value = parameters[name]
        if name == "temper" and value == "auto":
            return "temper chosen on held-out rows, which is not Bayes"
        if name == "temper" and value not in (None, "none"):
            return f"{TEMPERED} {value:g} rows, {NO_POSTERIOR}"
        return super()._words_of(name, parameters)

    def _check_model(self) -> None:
        super()._check_model()
        if (self.max_depth, self.temper) == (None, None):
            return
        if self.search not in ("auto", "exact") or not self._is_shallow(self.leaf):
            raise ParameterError(
                'max_depth and temper must be None unless search is "auto" or "exact", partitions '
                '"levels" and feature_inclusion None; temper needs max_depth unless leaf is '
                f'"dependent" or "auto", got {self.max_depth} and {self.temper}'
            )

    def _make_posterior(self, table: Table, **changed: Any) -> CascadePosterior:
        return super()._make_posterior(table, **{"max_depth": self.max_depth, **changed})

    def _is_shallow(self, leaf: str) -> bool:
        """Whether an exact search over such leaves is over trees of limited depth."""
        if (self.partitions, self.feature_inclusion) != ("levels", None):
            return False
        return leaf in ("dependent", "auto") or self.max_depth is not None

    def _sum_up(self, posterior: CascadePosterior, search: Search, in_use: int = 0) -> Summed:
        if not self._is_shallow(posterior.model.leaf):
            return super()._sum_up(posterior, search, in_use)
        from bayescascade.methods.density.trees.exact import check_magnitudes

        check_magnitudes(posterior)
        table = posterior.table
        search.report("summing over trees")
        extent = fitting_trees(posterior, self.max_depth, self.memory_limit * 1e9 - in_use)
        temper = self._chosen_temper(posterior, search, *extent)
        search.report("summing over trees")
        exact = ShallowTrees(posterior, extent[0], temper, extent[1])
        scope = f"of depth up to {exact.max_depth}"
        if exact.n_columns < (table.schema.n_levels > 1).sum():
            scope += f" over {exact.n_columns} columns"
        gap = shown_gap(0.0, exact.rounding)
        certificate = Certificate(
            gap=gap,
            extent=count_of(exact.n_boxes, "box", "boxes"),
            log_evidence=exact.log_evidence if exact.temper is None else None,
            scope=scope if temper is None else f"{scope}, {TEMPERED} {exact.temper:g} rows,",
            is_rounding=gap > 0.0,
        )
        names = (*table.schema.names, "none")
        first = dict(zip(names, exact.first_splits.tolist(), strict=True))
        log_sum = exact.tempered(None).log_normalizer if exact.is_complete else None
        search.report("drawing trees")
        drawn = exact.sample(self._n_draws(search, posterior), search.rng())
        return Summed(exact, certificate, {"first split": shares_of(first)}, log_sum, drawn)

    def _chosen_temper(
        self, posterior: CascadePosterior, search: Search, max_depth: int, columns: Sequence[int]
    ) -> float | None:
        """Return `temper`, or the one with the best score of held-out rows."""
        if not isinstance(self.temper, str):
            return self.temper
        table, leaf, scores = posterior.table, posterior.model.leaf, np.zeros(len(TEMPERS))
        for fold, held in enumerate(split_rows(table.weights, _N_FOLDS, np.random.default_rng(0))):
            search.report("choosing temper", fold / _N_FOLDS)
            learned = table.weights - held
            if not (held.any() and learned.any()):
                return None
            others = self._make_posterior(with_weights(table, learned), leaf=leaf)
            trees = ShallowTrees(others, max_depth, columns=columns)
            rows = with_weights(table, held)
            scores += trees.score_tempers(rows) @ rows.weights
            if trees.steps_a_row * rows.n_distinct > _LONG:
                break
        return TEMPERS[int(scores.argmax())]
