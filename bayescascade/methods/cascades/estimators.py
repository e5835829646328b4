"""The estimators: `LeafCascade`, the thesis's Model I, and `BranchCascade`, its Model II.

Goh (2018), section 3.2; `models` has the formulas, and `cascade` what both have in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.data.table import Table
from bayescascade.methods.cascades.cascade import Cascade
from bayescascade.methods.cascades.leaf_choice import Summed, n_draws_of, shares_of
from bayescascade.methods.cascades.models import BranchModel, LeafModel
from bayescascade.methods.cascades.parameters import BranchParameters, LeafParameters
from bayescascade.methods.cascades.posterior import BranchPosterior, CascadePosterior, LeafPosterior
from bayescascade.methods.cascades.shallow_extent import fitting_trees
from bayescascade.methods.cascades.shallow_trees import TEMPERS, ShallowTrees
from bayescascade.model.guard import shown_gap
from bayescascade.model.search import Search
from bayescascade.model.solution import Certificate
from bayescascade.report.page import count_of

_N_FOLDS = 5  # in which rows are held out, to choose a temper
_LONG = 1e10  # steps of scoring a fold, minutes, from which on it is the only one


@dataclass(eq=False, repr=False)
class LeafCascade(Cascade):
    """Density tree with a Poisson prior on its number of leaves (Goh 2018, Model I).

    Parameters
    ----------
    expected_leaves
        Mean of the Poisson; of no effect with another prior.
    concentration
        Dirichlet parameter of every leaf: as if that many rows had been seen in each.
    max_branches
        Most branches of a split; None for as many as there are levels.
    max_leaves
        Most leaves of a tree. None: any number; an exact search then leaves out only trees
        with a number of leaves that is proved not to matter.
    partitions
        A split shares out a column's remaining levels in any groups (ordered columns: of
        neighbors), or sends each its own way, whatever `max_branches` says. The latter makes far
        fewer trees, so that far larger tables are searched exactly.
    leaf
        Inside a leaf all rows are equally probable, or each column follows a distribution of its
        own, independent of the others, or depends on at most one other, in all ways that a tree can
        join them, of which it is the average. A dependent leaf needs `density` "posterior_mean",
        has no credible intervals, and keeps fewer draws; a row's missing cells may be filled in by
        up to 65,536 ways, and evidence may leave as many cells of a leaf. "auto": which of them has
        the largest evidence, or, where not all trees of each can be summed over, the best tree; it
        takes as long as all of their exact searches, and short annealings for the others.
    leaf_concentration
        Dirichlet parameter of every level of a column inside an independent leaf; how many rows the
        prior of a dependent one is worth.
    prior
        What weighs the trees before any row is seen: the thesis's Poisson, of every tree by its
        number of leaves; or a process that sums to one by itself: a node is a leaf with probability
        `stop`, else split, by any of the splits that its box still allows with the same
        probability, and where there are none it is a leaf; or, by "size", a Poisson of the number
        of leaves itself, shared by all trees that have as many, so that `expected_leaves` are
        expected indeed. For that, trees are counted; where they are too many, fit raises
        TooLargeError, which says up to how many leaves they can be.
    stop
        Probability of a leaf under the generative prior; of no effect with another.
    predictive
        Score and draw from the most probable tree, or from the average over the posterior: where
        `exact_` is an `ExactPosterior`, and 16 bytes more for every box fit `memory_limit`, or is
        of all trees up to `max_depth`, rows are scored by the average over all trees, else over the
        draws. A loaded model has no `exact_`, as files hold no rows: it averages over its draws,
        up to 1,000, and scores differ by their Monte Carlo error, up to hundredths of a nat.
    search
        "exact" goes through all trees at once, by dynamic programming over the boxes that splits
        can make: the tree is then provably the most probable, or it is said by how much another may
        be more so, and draws are independent.
        "anneal+metropolis" anneals for the best tree and samples from there; the others only
        anneal, or only sample, by plain chains or by replica exchange. "auto" is exact where that
        takes minutes at most and fits `memory_limit`, else "anneal+metropolis"; the summary says
        which. Unless leaves are dependent, some steps of every sampled search redraw a whole
        subtree exactly (`methods.cascades.exact.redraws`). Each chain anneals, is polished and
        samples by itself: R-hat near 1 says that chains from different best trees of their own came
        to agree; a larger one, that splits near the root, which are seldom redrawn, still differ.
    n_steps
        Proposals per chain in each of annealing and sampling; a quarter of the sampling is
        discarded as warm-up. None: 1,000 per distinct row, at least 200,000 and at most 1,000,000,
        and for more than 40,000 rows fewer again, so that the work stays about the same. Sampling
        goes on after it, as `until` says.
    memory_limit
        Gigabytes that an exact search may take, or redraws of all chains together. Draws that are
        kept for averages and files take an eighth of it at most: of 1,000 large trees every second
        one is left out until the others fit.
    scratch
        Directory for the boxes of an exact search that do not fit `memory_limit`, on a quick disk.
        It finds the same, somewhat slower. The files have no names, are gone with `exact_`, and the
        system keeps what it can of them in memory that is free.
    start
        Each chain starts from a small random tree of its own, or all from the density estimation
        tree (`bayescascade.DensityEstimationTree`).
    tree
        What `tree_` is, which is printed, and which rows are scored by if `predictive` is "map":
        the most probable tree found, or, of the draws, the one whose densities of rows are nearest
        to those of all others (`bayescascade.model.typical`). The best tree has only what each of
        its splits wins; drawn ones have more leaves, some of which differ from draw to draw.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    progress : callable, optional
        Called with a `samplers.Progress` about twice a second.

    Attributes
    ----------
    tree_ : LearnedDensityTree
        The most probable tree found, or what `tree` asks for.
    log_posterior_ : float
        The log posterior density of the most probable one, nats, unnormalized.
    leaf_ : str
        What leaves are: `leaf`, or which was chosen if that is "auto".
    leaf_choice_ : LeafChoice
        By what, if it is; `methods.cascades.leaf_choice`.
    posterior_ : LeafPosterior
        The posterior; not there in a model read from a file, which holds no data.
    run_ : PosteriorRun
        Draws, traces, acceptance; see `PosteriorRun.to_inference_data`. Not in a loaded model.
    exact_ : ExactPosterior, SummedPosterior, StoppedPosterior, TiltedPosterior or ShallowTrees
        After an exact search: evidence, probabilities of leaf counts and splits, independent draws,
        densities averaged over all trees; of large tables evidence and draws alone. See
        `methods.cascades.exact`. Not in a loaded model.
    summary_ : FitSummary
        What is printed and saved: data, convergence, posterior of the leaf count and columns.
    schema_ : Schema
        Columns and levels.
    feature_importances_ : (n_features_in_,) float64
        Share of each column in what the splits of `tree_` win, in log likelihood.
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

    model_name: ClassVar[str] = "leaf"
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
        Mean of the Poisson; of no effect with another prior.
    feature_inclusion
        Probability that a column is used at all, the thesis's optional upper level; None for none,
        as the generative prior needs.
    concentration
        Dirichlet parameter of every branch.
    max_branches
        Most branches of a split; None for as many as there are levels.
    max_depth
        Of an exact search with `partitions` "levels": most columns that a path fixes. None: any
        number; of dependent leaves as many as take seconds, and in wide tables three, of the
        columns that tell most of others. The generative prior ends there: a node at that depth is a
        leaf. Rows are best scored by the average over all trees,
        `predictive` "average", which in a loaded model is one over the draws kept.
    temper
        In such a search, caps the number of rows that count when a split is chosen. That is no
        posterior, which likelihoods of many rows make too sure of a few trees. "auto": the cap
        of none, 400, 200, 100 and 50 that gives held-out rows the largest averaged density.
        Rows are split at random, with a seed of its own, in five parts; each, or where that takes
        minutes a part the first, is scored by what is learned from the others. All rows are then
        learned from. ``exact_.temper`` is what was chosen, ``exact_.tempered(c)`` what another one
        makes.
    partitions, leaf, leaf_concentration, prior, stop, predictive, search, n_steps, columns, drop, \
nominal, ordinal, continuous, missing, memory_limit, scratch, start, tree, progress
        As in `LeafCascade`, but for prior "size", which is the leaf model's alone; the posterior
        mean of a leaf is a product along its path. With
        `feature_inclusion` only tables of few columns are searched exactly.

    Attributes
    ----------
    tree_, log_posterior_, leaf_, leaf_choice_, posterior_, run_, exact_, summary_, schema_, \
n_features_in_, feature_names_in_
        As in `LeafCascade`.
    """

    model_name: ClassVar[str] = "branch"
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
            return "temper chosen by held-out rows, which is not Bayes"
        if name == "temper" and value not in (None, "none"):
            return f"tempered at {value:g} rows, which is no posterior"
        return super()._words_of(name, parameters)

    def _check_model(self) -> None:
        super()._check_model()
        if (self.max_depth, self.temper) == (None, None):
            return
        if self.search not in ("auto", "exact") or not self._is_shallow(self.leaf):
            raise ParameterError(
                'max_depth and temper must be None but for search "auto" or "exact", partitions '
                '"levels" and no feature_inclusion, and temper without max_depth but for leaf '
                f'"dependent" or "auto", got {self.max_depth} and {self.temper}'
            )

    def _make_posterior(self, table: Table, **changed: Any) -> CascadePosterior:
        return super()._make_posterior(table, **{"max_depth": self.max_depth, **changed})

    def _is_shallow(self, leaf: str) -> bool:
        """Whether an exact search over such leaves is one of trees of a largest depth."""
        if (self.partitions, self.feature_inclusion) != ("levels", None):
            return False
        return leaf in ("dependent", "auto") or self.max_depth is not None

    def _sum_up(self, posterior: CascadePosterior, search: Search, in_use: int = 0) -> Summed:
        if not self._is_shallow(posterior.model.leaf):
            return super()._sum_up(posterior, search, in_use)
        from bayescascade.methods.cascades.exact import check_magnitudes

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
            scope=scope if temper is None else f"{scope}, tempered at {exact.temper:g} rows,",
            is_rounding=gap > 0.0,
        )
        names = (*table.schema.names, "none")
        first = dict(zip(names, exact.first_splits.tolist(), strict=True))
        log_sum = exact.tempered(None).log_normalizer if exact.is_complete else None
        search.report("drawing trees")
        drawn = exact.sample(n_draws_of(search, posterior), search.rng())
        return Summed(exact, certificate, {"first split": shares_of(first)}, log_sum, drawn)

    def _chosen_temper(
        self, posterior: CascadePosterior, search: Search, max_depth: int, columns: Sequence[int]
    ) -> float | None:
        """Return `temper`, or by which of them held-out rows score best."""
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
