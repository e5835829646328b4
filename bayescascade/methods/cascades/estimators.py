"""The estimators: `LeafCascade`, the thesis's Model I, and `BranchCascade`, its Model II.

Goh (2018), section 3.2; `models` has the formulas. Where that is cheap, fitting goes through all
trees at once; else it anneals for the most probable tree and runs Metropolis-Hastings chains from
where the annealing chains ended, for how sure one can be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.data.dealing import deal, with_weights
from bayescascade.data.schema import Rows
from bayescascade.data.table import Table
from bayescascade.methods.cascades.counted_tree import CountedTree, density_intervals
from bayescascade.methods.cascades.density import DensityTree
from bayescascade.methods.cascades.dependence import DependentTree, pair_counts
from bayescascade.methods.cascades.dependent_trees import DependentTrees, fitting_depth
from bayescascade.methods.cascades.models import (
    PARTITIONS,
    BranchModel,
    CascadeModel,
    LeafModel,
    empirical_probabilities,
    independent_log_inside,
    independent_probabilities,
)
from bayescascade.methods.cascades.posterior import BranchPosterior, CascadePosterior, LeafPosterior
from bayescascade.methods.cascades.tree import Tree, leaf_boxes
from bayescascade.model.estimator import DENSITIES, PREDICTIVES, DensityEstimator
from bayescascade.model.search import Search, most_blocks
from bayescascade.model.solution import Certificate, Solution
from bayescascade.model.trace import COLUMNS_USED

if TYPE_CHECKING:
    from bayescascade.methods.cascades.exact import ExactPosterior, TiltedPosterior
    from bayescascade.methods.cascades.exact.tilts import BestTree

__all__ = ["STARTS", "BranchCascade", "Cascade", "LeafCascade"]

STARTS = ("random", "greedy")

_AUTO_TERMS = 5e8  # of a pass up to which search "auto" is exact: half a minute
_MOST_TERMS = 1e12  # hours
_MOST_COUNTS = 1 << 21  # of pairs of levels, in all draws that are kept
_CHEAP_TERMS = 2e8  # up to which the shares of columns are exact, too
_TOLD = 5e-3  # nats of error, up to which an evidence is told: printed, it is right


@dataclass(eq=False, repr=False, kw_only=True)
class CascadeParameters:
    """What both cascades take alike; `LeafCascade` documents it."""

    partitions: str = "subsets"
    leaf: str = "uniform"
    leaf_concentration: float = 1.0
    search: str = "auto"
    memory_limit: float = 2.0
    start: str = "random"


class Cascade(CascadeParameters, DensityEstimator[Tree, CountedTree, DensityTree]):
    """What both cascades do; the subclasses document the parameters."""

    learned_name: ClassVar[str] = "tree"
    learned_word: ClassVar[str] = "tree"
    size_name: ClassVar[str] = "n_leaves"
    size_words: ClassVar[tuple[str, str]] = ("leaf", "leaves")

    _later_parameters: ClassVar[frozenset[str]] = frozenset(
        ("leaf", "leaf_concentration", "max_depth", "max_leaves", "memory_limit", "partitions",
         "start", "temper")
    )  # fmt: skip

    _model_class: ClassVar[type[LeafModel] | type[BranchModel]]
    _posterior_class: ClassVar[type[LeafPosterior] | type[BranchPosterior]]

    max_branches: int | None
    posterior_: CascadePosterior

    @property
    def tree_(self) -> DensityTree:
        """The most probable tree found, with counts, volumes and probabilities."""
        return self.learned_

    @classmethod
    def _words_of(cls, name: str, parameters: Mapping[str, Any]) -> str:
        value = parameters[name]
        if name == "max_branches" and parameters.get("partitions") == "levels":
            return ""  # of no effect, as is the concentration inside uniform leaves
        if name == "max_branches" and value in (None, "none"):
            return "any number of branches"
        if name == "leaf_concentration" and parameters.get("leaf") == "uniform":
            return ""
        is_usual = (name, value) in (("partitions", "subsets"), ("leaf", "uniform"))
        return "" if is_usual else super()._words_of(name, parameters)

    def _model_parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self._model_class)}

    def _model(self) -> CascadeModel:
        """Return the model that the parameters describe; raises ParameterError if they are bad."""
        return self._model_class(**self._model_parameters())

    def _make_posterior(self, table: Table) -> CascadePosterior:
        parameters = self._model_parameters()
        parameters.update(max_branches=self.max_branches, partitions=self.partitions)
        return self._posterior_class(table, **parameters)

    def _check_model(self) -> None:
        self._model()
        if self.max_branches is not None:
            check_integer("max_branches", self.max_branches, minimum=2)
        check_choice("partitions", self.partitions, PARTITIONS)
        check_real("memory_limit", self.memory_limit, above=0.0)
        check_choice("start", self.start, STARTS)
        if self.leaf == "dependent" and self.density == "empirical":
            raise ParameterError(
                'density must be "posterior_mean" with leaf "dependent", got "empirical"'
            )
        if self.start == "greedy" and self.partitions == "levels":
            raise ParameterError(
                'start must be "random" with partitions "levels": the greedy tree groups levels, '
                'got "greedy"'
            )

    def _solve(self, posterior: CascadePosterior, search: Search) -> Solution[Tree]:
        from bayescascade.methods.cascades.exact import solve, solve_by_tilts

        if self.leaf == "dependent":
            needed = 'a branch cascade with partitions "levels" and no feature_inclusion'
            raise TooLargeError(f'search "exact" with leaf "dependent" takes {needed}', needed)

        def report(phase: str, share: float, described: Mapping[str, float]) -> None:
            if search.progress is not None:
                done = round(1000 * share)
                search.progress(samplers.Progress(phase, done, 1000, nan, nan, nan, described))

        def report_pass(n_passes: int, share: float, best: "BestTree | None") -> None:
            report(f"pass {n_passes + 1}", share, {} if best is None else {"gap": best.gap})

        started, rng = perf_counter(), search.rng()
        memory_limit = self.memory_limit * 1e9
        work_limit = _AUTO_TERMS if search.search == "auto" else _MOST_TERMS
        exact: ExactPosterior | TiltedPosterior
        try:
            exact = solve(
                posterior, memory_limit=memory_limit, work_limit=work_limit, n_jobs=search.n_jobs,
                progress=lambda share: report("all trees", share, {}),
            )  # fmt: skip
            gap, error, is_interrupted, shares = 0.0, 0.0, False, _shares(exact)
        except TooLargeError:
            model = posterior.model
            if not isinstance(model, LeafModel) or model.max_leaves is not None:
                raise
            exact = solve_by_tilts(
                posterior, memory_limit=memory_limit, work_limit=work_limit, n_jobs=search.n_jobs,
                rng=rng, progress=report_pass,
            )  # fmt: skip
            gap, error, is_interrupted, shares = exact.gap, exact.error, exact.is_interrupted, {}
        is_told = error < _TOLD and not np.isnan(exact.log_evidence)
        certificate = Certificate(
            gap=gap,
            extent=f"{exact.cost.n_boxes:,} boxes",
            log_evidence=exact.log_evidence if is_told else None,
        )
        return _solution(exact, certificate, shares, search, rng, started, is_interrupted)

    def _starts(self, posterior: CascadePosterior) -> Sequence[Tree] | None:
        if self.start == "random":
            return None
        from bayescascade.methods.cascades.det import DensityEstimationTree

        tree = DensityEstimationTree(random_state=0).fit(posterior.table).tree_.tree
        if posterior.log_density(tree) == -np.inf:
            raise ParameterError(
                f'start must be "random" where the greedy tree has more leaves, {tree.n_leaves}, '
                f'than max_leaves, {posterior.parameters()["max_leaves"]}, got "greedy"'
            )
        return [tree] * self.n_chains

    def _most_kept_draws(self) -> int:
        if self.leaf != "dependent":
            return super()._most_kept_draws()
        n_counts = self._best.tree.n_leaves * int(self.schema_.n_levels.sum()) ** 2
        return max(1, min(super()._most_kept_draws(), _MOST_COUNTS // n_counts))

    def density_tree(self, tree: Tree) -> DensityTree:
        """Return a state as what a user reads, such as a draw in ``run_.draws``.

        Parameters
        ----------
        tree : Tree
            Over the columns that the model was fitted to.

        Returns
        -------
        DensityTree
            With counts of the rows that the model was fitted to, which a loaded model lacks.

        Raises
        ------
        ParameterError
            If it is no tree, or not one over the model's columns.
        """
        check_is_fitted(self, "_best")
        if not isinstance(tree, Tree):
            raise ParameterError(f"tree must be a Tree, got {tree!r}")
        problem = next(tree.problems(self.schema_), None)
        if problem is not None:
            raise ParameterError(f"tree must be one over the model's columns: {problem}")
        return self._readable(self._count(tree))

    def _count(self, state: Tree) -> CountedTree:
        counts, _ = self.posterior_.node_statistics(state)
        leaf, levels, pairs = self.posterior_.model.leaf, None, None
        if leaf == "independent":
            levels = self.posterior_.level_counts(state)[state.leaves]
        elif leaf == "dependent":
            boxes = leaf_boxes(self.schema_, state)
            pairs = pair_counts(self.schema_, self.posterior_.arrays, boxes)
        return CountedTree(state, counts, levels, pairs)

    def _readable(self, counted: CountedTree) -> DensityTree:
        check_choice("density", self.density, DENSITIES)
        tree, counts, model = counted.tree, counted.counts, self._model()
        if self.density == "empirical":
            probabilities, a = empirical_probabilities(tree, counts), 0.0
        else:
            probabilities, a = model.probabilities(tree, counts), model.leaf_concentration
        if counted.pair_counts is not None:
            pairs = counted.pair_counts
            return DependentTree.of(self.schema_, tree, counts, probabilities, pairs, a)
        levels = None
        if counted.level_counts is not None:
            boxes = leaf_boxes(self.schema_, tree)
            levels = independent_probabilities(self.schema_, boxes, counted.level_counts, a)
        return DensityTree(self.schema_, tree, counts, probabilities, level_probabilities=levels)

    def score_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log density of (n_columns, n_rows) coded rows, nats; see `Schema.encode`.

        With ``predictive="average"`` that is the average over all trees if `exact_` has it, else
        over the draws, of which a saved model keeps up to 1,000.
        """
        is_average = self.predictive == "average" and self.density == "posterior_mean"
        averages = getattr(self.__dict__.get("exact_"), "log_predictive", None)
        if is_average and averages is not None:
            averaged: NDArray[np.float64] = averages(codes)
            return averaged
        return super().score_codes(codes)

    def credible_interval(self, X: Rows, level: float = 0.95) -> NDArray[np.float64]:
        """Return how sure the density at each row is: (n_rows, 2) float64, low and high.

        Of the density itself, not its logarithm. It is found from draws of the probabilities with a
        seed of its own, so that equal calls return equal intervals; see
        `bayescascade.methods.cascades.counted_tree` for how exact it is.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series or Table
            See `score_samples`; missing cells are integrated out.
        level : float in (0, 1)
            Posterior probability that the density at a row is inside, for each row by itself. With
            ``predictive="average"`` over trees as well, else given the most probable tree. That
            `density` is "empirical" is of no effect: the posterior is what says how sure one is.

        Raises
        ------
        ParameterError
            If `level` is out of its range, there are no draws to average over, or leaves are
            dependent.
        DataError
            If a column is missing or a value is outside its column's domain; the message names
            column, value and row.
        """
        check_is_fitted(self, "_best")
        return self.credible_interval_codes(self.schema_.encode(X), level)

    def credible_interval_codes(
        self, codes: NDArray[np.int32], level: float = 0.95
    ) -> NDArray[np.float64]:
        """Return what `credible_interval` does, of coded rows; see `Schema.encode`."""
        if self._model().leaf == "dependent":
            raise ParameterError(
                'leaf must be "uniform" or "independent" for credible intervals, got "dependent"'
            )
        if check_choice("predictive", self.predictive, PREDICTIVES) == "map":
            trees, shares = [self._best], np.ones(1)
        else:
            trees, shares = self._drawn_counted()
        return density_intervals(self.schema_, self._model(), trees, shares, codes, level)

    def _read_counted(self, record: Mapping[str, Any]) -> CountedTree:
        return CountedTree.from_record(record, self.schema_, self._model().leaf)

    def _log_density(self, counted: CountedTree) -> float:
        tree, counts, model = counted.tree, counted.counts, self._model()
        log_inside, a = np.zeros(tree.n_nodes), model.leaf_concentration
        readable = self._readable(counted)
        if isinstance(readable, DependentTree):
            log_inside[tree.leaves] = [leaf.log_evidence for leaf in readable.inside]
        elif counted.level_counts is not None:
            boxes, levels = leaf_boxes(self.schema_, tree), counted.level_counts
            log_inside[tree.leaves] = independent_log_inside(self.schema_, boxes, levels, a)
        else:
            log_inside = -counts * readable.log_volumes
        log_prior = model.log_prior(tree, self.schema_.n_columns)
        return log_prior + model.log_likelihood(tree, counts, log_inside)


@dataclass(eq=False, repr=False)
class LeafCascade(Cascade):
    """Density tree with a Poisson prior on its number of leaves (Goh 2018, Model I).

    Parameters
    ----------
    expected_leaves : float > 0
        Mean of the Poisson.
    concentration : float > 0
        Dirichlet parameter of every leaf: as if that many rows had been seen in each.
    max_branches : int >= 2 or None
        Most branches of a split; None for as many as there are levels.
    max_leaves : int >= 1 or None
        Most leaves of a tree. None: any number; an exact search then leaves out only trees of so
        many leaves that they are proved not to matter.
    partitions : {"subsets", "levels"}
        A split shares out a column's remaining levels in any groups (ordered columns: of
        neighbors), or sends each its own way, whatever `max_branches` says. The latter makes far
        fewer trees, so that far larger tables are searched exactly.
    leaf : {"uniform", "independent", "dependent"}
        Inside a leaf all rows are equally probable, or each column follows a distribution of its
        own, independent of the others, or depends on at most one other, in all ways that a tree can
        join them, of which it is the average. A dependent leaf needs `density` "posterior_mean",
        has no credible intervals, and keeps fewer draws; a row's missing cells may be filled in by
        up to 65,536 ways, and evidence may leave as many cells of a leaf.
    leaf_concentration : float > 0
        Dirichlet parameter of every level of a column inside an independent leaf; how many rows the
        prior of a dependent one is worth.
    density : {"posterior_mean", "empirical"}
        Probability of a leaf: ``(n_l + alpha) / (n + K alpha)``, or ``n_l / n``, which is zero on
        an empty leaf.
    predictive : {"map", "average"}
        Score and draw from the most probable tree, or from the average over the posterior: where
        `exact_` is an `ExactPosterior`, rows are scored by the average over all trees, else over
        the draws.
    search : {"auto", "exact", "anneal+metropolis", "anneal", "metropolis", "tempering"}
        "exact" goes through all trees at once, by dynamic programming over the boxes that splits
        can make: the tree is then provably the most probable, or it is said by how much another may
        be more so, and draws are independent.
        "anneal+metropolis" anneals for the best tree and samples from there; the others only
        anneal, or only sample, by plain chains or by replica exchange. "auto" is exact where that
        takes minutes at most and fits `memory_limit`, else "anneal+metropolis"; the summary says
        which.
    n_steps : int >= 1 or None
        Proposals per chain in each of annealing and sampling; a quarter of the sampling is
        discarded as warm-up. None: 1,000 per distinct row, at least 200,000 and at most 1,000,000,
        and for more than 40,000 rows fewer again, so that the work stays about the same.
    n_chains : int >= 1
        Independent chains; of an exact search's draws, as many parts.
    memory_limit : float > 0
        Gigabytes that an exact search may take.
    start : {"random", "greedy"}
        Each chain starts from a small random tree of its own, or all from the density estimation
        tree (`bayescascade.DensityEstimationTree`).
    n_jobs : int or None
        Chains run in parallel, as joblib counts workers; the result does not depend on it.
    random_state : int, SeedSequence, Generator or None
        Seed of everything random.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    checkpoint : path, optional
        File to save the run to every few seconds, so that it can go on after a crash.
    resume : bool
        Go on with the run in `checkpoint`; the result is that of a run never interrupted.
    progress : callable, optional
        Called with a `samplers.Progress` about twice a second.

    Attributes
    ----------
    tree_ : DensityTree
        The most probable tree found.
    log_posterior_ : float
        Its log posterior density, nats, unnormalized.
    posterior_ : LeafPosterior
        The posterior; not there in a model read from a file, which holds no data.
    run_ : PosteriorRun
        Draws, traces, acceptance; see `PosteriorRun.to_inference_data`. Not in a loaded model.
    exact_ : ExactPosterior or TiltedPosterior
        After an exact search: evidence, probabilities of leaf counts and splits, independent draws,
        densities averaged over all trees; of large tables evidence and draws alone. See
        `methods.cascades.exact`. Not in a loaded model.
    summary_ : FitSummary
        What is printed and saved: data, convergence, posterior of the leaf count and columns.
    schema_ : Schema
        Columns and levels.
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
        "expected_leaves", "concentration", "max_leaves", "max_branches", "partitions", "leaf",
        "leaf_concentration",
    )  # fmt: skip

    expected_leaves: float = 8.0
    concentration: float = 2.0
    max_branches: int | None = 2
    _: KW_ONLY
    max_leaves: int | None = None


@dataclass(eq=False, repr=False)
class BranchCascade(Cascade):
    """Density tree with a Poisson prior on the branches of every node (Goh 2018, Model II).

    Parameters
    ----------
    expected_branches : float > 0
        Mean of the Poisson.
    feature_inclusion : float in (0, 1) or None
        Probability that a column is used at all, the thesis's optional upper level; None for none.
    concentration : float > 0
        Dirichlet parameter of every branch.
    max_branches : int >= 2 or None
        Most branches of a split; None for as many as there are levels.
    max_depth : int >= 0 or None
        Of an exact search over dependent leaves, which takes `partitions` "levels": most columns
        that a path fixes. None: as many as take seconds. Rows are best scored by the average over
        all trees, `predictive` "average", which in a loaded model is one over the draws kept.
    temper : float > 0, "auto" or None
        In that search, boxes of more rows decide what to do as if they held so many of them. That
        is no posterior, which likelihoods of many rows make too sure of a few trees. "auto": that
        of none, 400, 200, 100 and 50 by which a fifth of the rows, dealt at random with a seed of
        its own, has the largest averaged density after learning from the others; all are then
        learned from. ``exact_.temper`` is what was chosen, ``exact_.tempered(c)`` what another one
        makes.
    partitions, leaf, leaf_concentration, density, predictive, search, n_steps, n_chains, n_jobs, \
random_state, columns, drop, nominal, ordinal, continuous, missing, memory_limit, start, \
checkpoint, resume, progress
        As in `LeafCascade`; the posterior mean of a leaf is a product along its path. With
        `feature_inclusion` only tables of few columns are searched exactly.

    Attributes
    ----------
    tree_, log_posterior_, posterior_, run_, exact_, summary_, schema_, n_features_in_, \
feature_names_in_
        As in `LeafCascade`.
    """

    model_name: ClassVar[str] = "branch"
    title: ClassVar[str] = "branch cascade"
    _model_class = BranchModel
    _posterior_class = BranchPosterior
    printed: ClassVar[tuple[str, ...]] = (
        "expected_branches", "concentration", "feature_inclusion", "max_branches", "partitions",
        "leaf", "leaf_concentration", "max_depth", "temper",
    )  # fmt: skip

    expected_branches: float = 2.0
    concentration: float = 2.0
    max_branches: int | None = None
    _: KW_ONLY
    feature_inclusion: float | None = None
    max_depth: int | None = None
    temper: float | str | None = None

    @classmethod
    def _words_of(cls, name: str, parameters: Mapping[str, Any]) -> str:
        value = parameters[name]
        if name == "temper" and value == "auto":
            return "temper chosen by rows held out, which is not Bayes"
        if name == "temper" and value not in (None, "none"):
            return f"tempered at {value:g} rows, which is no posterior"
        return super()._words_of(name, parameters)

    def _check_model(self) -> None:
        super()._check_model()
        if self.max_depth is not None:
            check_integer("max_depth", self.max_depth, minimum=0)
        if self.temper not in (None, "auto"):
            check_real("temper", self.temper, above=0.0)
        is_exact = self._sums_dependent and self.search in ("auto", "exact")
        if (self.max_depth, self.temper) != (None, None) and not is_exact:
            raise ParameterError(
                'max_depth and temper must be None but for leaf "dependent", search "auto" or '
                '"exact", partitions "levels" and no feature_inclusion, '
                f"got {self.max_depth} and {self.temper}"
            )

    @property
    def _sums_dependent(self) -> bool:
        """Whether there is an exact search over dependent leaves."""
        settings = self.leaf, self.partitions, self.feature_inclusion
        return settings == ("dependent", "levels", None)

    def _solve(self, posterior: CascadePosterior, search: Search) -> Solution[Tree]:
        if not self._sums_dependent:
            return super()._solve(posterior, search)
        started, table = perf_counter(), posterior.table
        max_depth = fitting_depth(table, self.max_depth, self.memory_limit * 1e9)
        temper = self._chosen_temper(table, max_depth)
        exact = DependentTrees(posterior, max_depth, temper)
        scope = f"of depth up to {exact.max_depth}"
        certificate = Certificate(
            gap=0.0,
            extent=f"{exact.n_boxes:,} boxes",
            log_evidence=exact.log_evidence if exact.temper is None else None,
            scope=scope if temper is None else f"{scope}, tempered at {exact.temper:g} rows,",
        )
        names = (*table.schema.names, "none")
        first = dict(zip(names, exact.first_splits.tolist(), strict=True))
        shares = {"first split": _sorted(first)}
        return _solution(exact, certificate, shares, search, search.rng(), started)

    def _chosen_temper(self, table: Table, max_depth: int) -> float | None:
        """Return `temper`, or by which of them rows held out score best."""
        if not isinstance(self.temper, str):
            return self.temper
        held = deal(table.weights, 5, np.random.default_rng(0))[0]
        learned = table.weights - held
        if not (held.any() and learned.any()):
            return None
        posterior = self._make_posterior(with_weights(table, learned))
        return DependentTrees(posterior, max_depth).best_temper(with_weights(table, held))


def _solution(
    exact: "ExactPosterior | TiltedPosterior | DependentTrees",
    certificate: Certificate,
    shares: Mapping[str, Mapping[str, float]],
    search: Search,
    rng: np.random.Generator,
    started: float,
    is_interrupted: bool = False,
) -> Solution[Tree]:
    """Return what an exact search found, with as many independent draws as chains would keep."""
    n_chains = int(search.n_chains)
    n_draws = max(1, most_blocks(exact.posterior.table.n_distinct) // n_chains)
    drawn = [] if is_interrupted else exact.sample(n_chains * n_draws, rng)
    return Solution(
        result=exact,
        state=exact.tree,
        log_density=exact.log_density,
        certificate=certificate,
        seconds=perf_counter() - started,
        draws=[drawn[i : i + n_draws] for i in range(0, len(drawn), n_draws)],
        shares=shares,
        interrupted=is_interrupted,
    )


def _shares(exact: "ExactPosterior") -> dict[str, dict[str, float]]:
    """Return exact posterior shares, largest first, as far as they cost little."""
    shares: dict[str, dict[str, float]] = {}
    if exact.max_leaves is not None:
        counts = enumerate(exact.leaf_count_probabilities.tolist(), start=1)
        shares["leaves"] = _sorted({str(k): p for k, p in counts})
    if exact.cost.n_terms * exact.posterior.schema.n_columns <= _CHEAP_TERMS:
        split = exact.split_probabilities
        shares["first split"] = _sorted({**split.first, "none": split.none})
        shares[COLUMNS_USED] = dict(sorted(split.used.items(), key=lambda item: -item[1]))
    return shares


def _sorted(shares: dict[str, float]) -> dict[str, float]:
    return dict(sorted(((k, p) for k, p in shares.items() if p > 0), key=lambda item: -item[1]))
