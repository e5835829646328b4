"""The common part of both estimators of cascades: `Cascade`.

If it is cheap, fitting sums over all trees. Otherwise it anneals for the most probable tree, and
then runs Metropolis-Hastings chains from the last states of the annealing, to measure the
uncertainty.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.store import restored, stored
from bayescascade.base.validation import check_choice
from bayescascade.data.column import MISSING, UNKNOWN
from bayescascade.data.schema import Rows
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.counted_tree import (
    CountedTree,
    density_intervals,
    log_inside_leaves,
    readable_tree,
    split_shares,
)
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.dependence import pair_counts
from bayescascade.methods.density.trees.det import greedy_start, quick_tree
from bayescascade.methods.density.trees.leaf_choice import (
    FOR_CHAINS,
    OF_SUMS,
    Known,
    LeafChoice,
    Summed,
    choose_leaf,
    sum_up,
    sum_up_in_time,
)
from bayescascade.methods.density.trees.models import BranchModel, CascadeModel, LeafModel
from bayescascade.methods.density.trees.near_best import Without, alternatives, without
from bayescascade.methods.density.trees.packed_trees import (
    MappedSequence,
    PackedTrees,
    are_large,
    keep_draws,
    read_draws,
)
from bayescascade.methods.density.trees.parameters import LEAVES, TreeParameters
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.split_space import SplitSpace
from bayescascade.methods.density.trees.tree import Tree, leaf_boxes
from bayescascade.methods.density.trees.tree_posterior import (
    OF_REDRAWS,
    CascadePosterior,
    operations_of_step,
)
from bayescascade.model.density_estimator import DENSITIES, DensityEstimator
from bayescascade.model.draws import Draws
from bayescascade.model.explore import Solver
from bayescascade.model.near_best import Alternatives, HasNearBest
from bayescascade.model.parameters import SearchParameters
from bayescascade.model.rounds import Rounds
from bayescascade.model.search import MOST_BLOCKS, Search, most_blocks
from bayescascade.model.solution import Solution
from bayescascade.model.typical import MOST_COMPARED, typical_draw
from bayescascade.model.view import View, joined
from bayescascade.report.numbers import nats_text
from bayescascade.report.page import Pieces, count_of

# Operations of all chains, and shares of the first round and of all rounds in them; how many times
# the steps of a first round annealing has, which finds better trees than chains at temperature 1.
_WORK, _OF_ROUND, _OF_ROUNDS, _ANNEALING = 1e10, 0.2, 0.5, 4.0
_LEAST_STEPS = 2_500
_TEMPERATURES, _STEPS_OF_BLOCK = 100, 50  # least temperatures of an annealing; steps at each


@dataclass(eq=False, repr=False, kw_only=True)
class Cascade(HasNearBest, DensityEstimator[Tree, CountedTree, LearnedDensityTree]):
    """The common part of both cascades; the subclasses document the parameters."""

    purpose: ClassVar[str] = (
        "Which groups of rows are common and which are rare, as a tree that divides the rows by "
        "one column after the other."
    )
    learned_name: ClassVar[str] = "tree"
    learned_word: ClassVar[str] = "tree"
    size_name: ClassVar[str] = "n_leaves"
    size_words: ClassVar[tuple[str, str]] = ("leaf", "leaves")

    _model_class: ClassVar[type[LeafModel] | type[BranchModel]]
    _posterior_class: ClassVar[type[LeafPosterior] | type[BranchPosterior]]

    partitions: str = TreeParameters.partitions.default
    leaf: str = TreeParameters.leaf.default
    leaf_concentration: float = TreeParameters.leaf_concentration.default
    prior: str = TreeParameters.prior.default
    stop: float = TreeParameters.stop.default
    search: str = TreeParameters.search.default
    memory_limit: float = TreeParameters.memory_limit.default
    start: str = TreeParameters.start.default
    tree: str = TreeParameters.tree.default

    posterior_: CascadePosterior = field(init=False)
    _most_blocks = MOST_BLOCKS  # of a chain
    _of_polishing = 1.0  # of the usual number of its steps

    @property
    def learned_(self) -> LearnedDensityTree:
        """The best or typical tree, with counts, volumes and probabilities."""
        check_is_fitted(self, "_best")
        return self._readable(self._shown_tree)

    tree_ = learned_

    @property
    def _shown_tree(self) -> CountedTree:
        """The most probable tree found, or the typical one of the draws (`model.typical`)."""
        if TreeParameters.tree.check(self.tree) == "best":
            return self._best
        if not self._draws.times and not self.summary_.is_partial:
            raise ParameterError('tree must be "best" for a model without draws, got "typical"')
        (densities, shares), kept = self._drawn(), self._readables
        if kept.typical is None:
            kept.typical = typical_draw(densities, shares)
        return self._drawn_counted()[0][kept.typical]

    def view(self) -> View:
        """Return what is shown; above a typical tree, how it compares with the best one."""
        view = super().view()
        if self.tree == "best":
            return view
        times = self._draws.times
        n_drawn = sum(times) if len(times) <= MOST_COMPARED else MOST_COMPARED
        text = (
            f"The typical tree of {count_of(max(n_drawn, 1), 'drawn one')}: the densities that it "
            "gives to rows are nearest to those of all others."
        )
        if self._shows_best:
            text += " It is the best tree, too."
        else:
            shown, best = self._shown_tree, self._best
            sizes = [count_of(tree.tree.n_leaves, *self.size_words) for tree in (shown, best)]
            less = nats_text(self._log_density(best) - self._log_density(shown))
            text += f" It has {sizes[0]}; the best tree, of {sizes[1]}, is {less} nats more "
            text += "probable."
        return view._replace(shown=joined((Pieces([text], indent=0),), view.shown))

    @property
    def _shows_best(self) -> bool:
        return self.tree == "best" or self._shown_tree.tree == self._best.tree

    @classmethod
    def _words_of(cls, name: str, parameters: Mapping[str, Any]) -> str:
        value = parameters[name]
        if name == "max_branches" and parameters.get("partitions") == "levels":
            return ""  # it has no effect, like the concentration inside uniform leaves
        if name == "max_branches" and value in (None, "none"):
            return "any number of branches"
        if name == "leaf_concentration" and parameters.get("leaf") == "uniform":
            return ""
        is_generative = parameters.get("prior") == "generative"
        if name in ("expected_leaves", "expected_branches") and is_generative:
            return ""
        if name == "stop" and not is_generative:
            return ""
        if name == "prior" and value == "generative":
            return f"{value} prior"
        usual = {"partitions": "subsets", "leaf": "uniform", "prior": "poisson"}
        is_usual = name in usual and value == usual[name]
        return "" if is_usual else super()._words_of(name, parameters)

    @property
    def leaf_(self) -> str:
        """The kind of leaves: `leaf`, or the chosen kind if it is "auto"."""
        check_is_fitted(self, "_best")
        return self._leaf

    @property
    def _leaf(self) -> str:
        if self.leaf != "auto":
            return self.leaf
        return self.leaf_choice_.leaf if "leaf_choice_" in self.__dict__ else LEAVES[0]

    def _decided(self) -> dict[str, float | str]:
        return {"leaf": self.leaf_} if self.leaf == "auto" else {}

    def _parameter_words(self) -> list[str]:
        if self.leaf != "auto" or "leaf_choice_" not in self.__dict__:
            return super()._parameter_words()
        named = {**self.get_params(), "leaf": self._leaf}
        texts = [words for words in self.parameter_words(named) if words != f"leaf {self._leaf}"]
        return [*texts, self.leaf_choice_.words()]

    def _n_blocks(self, table: Table) -> int:
        n_blocks = min(super()._n_blocks(table), self._most_blocks)
        if self.search == "anneal" and self.n_steps is not None:  # there are no draws
            n_blocks = min(n_blocks, max(_TEMPERATURES, self.n_steps // _STEPS_OF_BLOCK))
        return n_blocks

    def _default_steps(self, table: Table) -> int:
        a_step = self.n_chains * operations_of_step(table, self._leaf)
        least = 0
        if self._leaf != "dependent":
            a_step, least = OF_REDRAWS * a_step, _LEAST_STEPS
        return int(max(least, min(super()._default_steps(table), _OF_ROUND * _WORK / a_step), 1))

    def _rounds(self, table: Table) -> Rounds:
        del table
        return Rounds(most=_OF_ROUNDS * _WORK, annealing=_ANNEALING)

    def _fields(self) -> dict[str, Any]:
        own = {"leaf_choice": stored(self.leaf_choice_)} if self.leaf == "auto" else {}
        return {**super()._fields(), **own}

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        super()._read_columns(record)
        if self.leaf == "auto":
            self.leaf_choice_ = restored(LeafChoice, record["leaf_choice"], {}, "leaf_choice")
            best, sums = self.leaf_choice_.best, self.leaf_choice_.sums
            if not best or set(best) - set(LEAVES) or set(sums) - set(best):
                raise ValueError(f"leaves must be some of {', '.join(LEAVES)}, got {[*best]}")

    def _model_parameters(self) -> dict[str, Any]:
        own = {each.name: getattr(self, each.name) for each in fields(self._model_class)}
        return {**own, "leaf": self._leaf}

    def _model(self) -> CascadeModel:
        """Return the model with these parameters; raises ParameterError if they are invalid."""
        return self._model_class(**self._model_parameters())

    @property
    def _max_branches(self) -> int | None:
        """The parameter `max_branches`, which each subclass declares."""
        most: int | None = vars(self)["max_branches"]
        return most

    def _make_posterior(self, table: Table, **changed: Any) -> CascadePosterior:
        parameters = self._model_parameters()
        parameters.update(max_branches=self._max_branches, partitions=self.partitions)
        return self._posterior_class(table, **{**parameters, **changed})

    def _check_model(self) -> None:
        self._model()
        if self.tree == "typical" and not self.draws_states:
            raise ParameterError(
                f'tree must be "best" with search "{self.search}", which draws no others, '
                'got "typical"'
            )
        if self.leaf == "dependent" and self.density == "empirical":
            raise ParameterError(
                'density must be "posterior_mean" with leaf "dependent", got "empirical"'
            )
        if self.start == "greedy" and self.partitions == "levels":
            raise ParameterError(
                'start must be "random" with partitions "levels": the greedy tree groups levels, '
                'got "greedy"'
            )

    def _fit_table(self, table: Table, search: Search, solve: Solver[Tree] | None = None) -> None:
        self.__dict__.pop("leaf_choice_", None)
        known: Known = None
        if self.leaf == "auto":
            try:
                with search.watch.part(OF_SUMS, FOR_CHAINS):
                    self.leaf_choice_, known = self._choose_leaf(table, search)
            except KeyboardInterrupt:  # before a tree was found
                self.leaf_choice_, known = self._quick_choice(table), KeyboardInterrupt
                search = replace(search, search="exact")
        super()._fit_table(table, search, solve or partial(self._solve, known=known))
        self.posterior_.redraws = None  # large

    def _choose_leaf(self, table: Table, search: Search) -> tuple[LeafChoice, Known]:
        """Return the chosen kind of leaves, and the sum over all its trees if known."""
        # dependent leaves have no empirical distribution inside
        leaves = [x for x in LEAVES if x != "dependent" or self.density != "empirical"]
        posterior_of = partial(self._make_posterior, table)
        return choose_leaf(leaves, lambda leaf: posterior_of(leaf=leaf), self._sum_up, search)

    def _solve(
        self, posterior: CascadePosterior, search: Search, known: Known = None
    ) -> Solution[Tree]:
        """Return the sum over all trees, with as many independent draws as chains would keep."""
        started = perf_counter()
        n_draws = self._n_draws(search, posterior) // int(search.n_chains)
        if known is None:
            known = sum_up_in_time(self._sum_up, posterior, search)
        if not isinstance(known, Summed):
            raise known
        drawn, is_over = known.draws, known.is_interrupted and not known.timed_out
        return Solution(
            result=known.exact,
            state=known.exact.tree,
            log_density=known.exact.log_density,
            certificate=known.certificate if np.isfinite(known.certificate.gap) else None,
            seconds=perf_counter() - started,
            draws=[drawn[i : i + n_draws] for i in range(0, len(drawn), n_draws)],
            shares=known.shares,
            interrupted=is_over,
            timed_out=known.timed_out,
            chains=None if drawn or is_over else self._chains(posterior, search, known),
            log_density_of=getattr(known.exact, "log_density_of", None),
        )

    def _chains(
        self, posterior: CascadePosterior, search: Search, summed: Summed
    ) -> samplers.Run[Tree]:
        """Return chains from the most probable tree, if there are no independent draws."""
        self._prepare_chains(posterior)
        sampling = replace(search, search="metropolis", checkpoint=None, resume=False)
        return sampling.run(
            posterior,
            default_steps=self._default_steps(posterior.table),
            n_blocks=self._n_draws(search, posterior) // int(search.n_chains),
            starts=[summed.exact.tree] * int(search.n_chains),
        )

    def _prepare_chains(self, posterior: CascadePosterior) -> None:
        """Let chains redraw subtrees, unless leaves are dependent or processes have a depth."""
        is_cut = posterior.model.is_generative and posterior.splits.n_kept > 0
        if posterior.model.leaf == "dependent" or is_cut:
            return
        from bayescascade.methods.density.trees.exact import SubtreeRedraws

        n_steps = self._search().steps(self._default_steps(posterior.table))
        n_polishing = int(self._of_polishing * n_steps)
        memory_bytes = self.memory_limit * 1e9
        posterior.redraws = SubtreeRedraws(posterior, memory_bytes, self.n_jobs, n_polishing)

    def _sum_up(self, posterior: CascadePosterior, search: Search, in_use: int = 0) -> Summed:
        """Sum over all trees; some bytes are in use already. Raises TooLargeError like `_solve`."""
        n_draws = self._n_draws(search, posterior)
        return sum_up(posterior, search, self.memory_limit * 1e9 - in_use, n_draws)

    def _n_draws(self, search: Search, posterior: CascadePosterior) -> int:
        """Return as many draws as chains would keep, a multiple of their number."""
        n_chains = int(search.n_chains)
        of_chain = most_blocks(posterior.table.n_distinct) // n_chains
        return n_chains * max(1, min(of_chain, self._most_blocks))

    def _starts(self, posterior: CascadePosterior) -> Sequence[Tree] | None:
        if self.start == "random":
            return None
        return [greedy_start(posterior)] * self.n_chains

    def _keep(self, drawn: Sequence[Tree]) -> Draws[CountedTree]:
        limit = self.memory_limit * 1e9
        draws = keep_draws(drawn, self._count, self.schema_, self._leaf, limit)
        if sum(draws.times) < len(drawn):
            note = f"{sum(draws.times):,} of {len(drawn):,} draws are kept, because trees are large"
            self.summary_ = replace(self.summary_, notes=(*self.summary_.notes, note))
        return draws

    def _draws_record(self) -> Any:
        counted, times = self._draws
        if not isinstance(counted, PackedTrees):
            return super()._draws_record()
        return {"times": times, **counted.to_record()}

    def _read_draws(self, record: Any, total: float) -> Draws[CountedTree]:
        if isinstance(record, list):
            return super()._read_draws(record, total)
        return read_draws(record, total, self.schema_, self._leaf)

    def _quick_state(self, posterior: CascadePosterior) -> Tree:
        return quick_tree(posterior)

    def _quick_choice(self, table: Table) -> LeafChoice:
        """Choose between kinds of leaves by their quick states; dependent ones take longer."""
        choice = LeafChoice()
        for leaf in LEAVES[:2]:
            posterior = self._make_posterior(table, leaf=leaf)
            choice.best[leaf] = posterior.log_density(quick_tree(posterior))
        return choice

    def density_tree(self, tree: Tree) -> LearnedDensityTree:
        """Return a state, such as a draw in ``run_.draws``, as a readable tree.

        Parameters
        ----------
        tree : Tree
            A tree over the columns of the model.

        Returns
        -------
        LearnedDensityTree
            The tree with counts of the training rows, which a loaded model does not have.

        Raises
        ------
        ParameterError
            If it is not a tree over the columns of the model.
        """
        check_is_fitted(self, "_best")
        if not isinstance(tree, Tree):
            raise ParameterError(f"tree must be a Tree, got {tree!r}")
        problem = next(tree.problems(self.schema_), None)
        if problem is not None:
            raise ParameterError(f"tree must be one over the model's columns: {problem}")
        return self._readable(self._count(tree))

    def to_dot(self) -> str:
        """Return `tree_` as Graphviz source, for ``dot -Tsvg tree.dot > tree.svg``."""
        return self.learned_.to_dot()

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the gains of the splits of `tree_`, (n_features_in_,) float64.

        The gain of a split is the log likelihood of the rows with the split, minus that without it.
        Distributions inside leaves are integrated out. The sum of the shares is 1, or 0 for a tree
        without splits. Columns that matter only inside leaves have a share of 0.
        """
        learned = self.learned_  # raises the error if nothing is fitted
        concentration = self._model().leaf_concentration
        return split_shares(self.schema_, self._shown_tree, learned.log_volumes, concentration)

    def without(self, column: str) -> Without:
        """Return the best tree that does not split a column, and the nats that it loses.

        Parameters
        ----------
        column : str
            Name of a column. It stays in the data, so the rows and the prior are the same.

        Raises
        ------
        ParameterError
            If there is no such column, or the model has no exact search over all trees.
        """
        check_is_fitted(self, "_best")
        return without(self, column)

    def _alternatives(self, nats: float) -> Alternatives[Any, LearnedDensityTree]:
        return alternatives(self, nats)

    def _count(self, state: Tree) -> CountedTree:
        leaf, levels, pairs = self.posterior_.model.leaf, None, None
        if leaf == "independent":
            counts, of_nodes = self.posterior_.level_counts(state)
            levels = of_nodes[state.leaves]
        else:
            counts, _ = self.posterior_.node_statistics(state)
        if leaf == "dependent":
            boxes = leaf_boxes(self.schema_, state)
            pairs = pair_counts(self.schema_, self.posterior_.arrays, boxes)
        return CountedTree(state, counts, levels, pairs)

    def _readable_draws(self, counted: Sequence[CountedTree]) -> Sequence[LearnedDensityTree]:
        if are_large(counted, self.memory_limit * 1e9):
            return MappedSequence(self._readable, counted)
        made: dict[Any, Any] = {}
        return [self._readable(draw, made) for draw in counted]

    def _readable(
        self, counted: CountedTree, made: dict[Any, Any] | None = None
    ) -> LearnedDensityTree:
        check_choice("density", self.density, DENSITIES)
        return readable_tree(
            self.schema_, counted, self._model(), self.density == "empirical", made
        )

    def _score_known(self, codes: Codes) -> Floats:
        # with `predictive` "average", scores are over all trees if `exact_` can average and this
        # fits into `memory_limit`, otherwise over the draws; a saved model keeps up to 1,000 draws
        is_average = self.predictive == "average" and self.density == "posterior_mean"
        averages = getattr(self.__dict__.get("exact_"), "log_predictive", None)
        if is_average and averages is not None:
            with suppress(TooLargeError):
                averaged: Floats = averages(codes)
                return averaged
        return super()._score_known(codes)

    def credible_interval(self, X: Rows, level: float = 0.95) -> Floats:
        """Return credible intervals of the density at each row, (n_rows, 2) float64: low, high.

        The interval is for the density, not for its logarithm. It is computed from draws of the
        probabilities with a fixed seed, so equal calls return equal intervals.
        `bayescascade.methods.density.trees.counted_tree` describes its accuracy.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series or Table
            Rows as in `score_samples`. Missing cells are integrated out.
        level : float in (0, 1)
            Posterior probability that the interval contains the density, separately for each row.
            The posterior is over trees and probabilities if `predictive` is "average"; otherwise it
            is conditional on `tree_`. The parameter `density` has no effect.

        Raises
        ------
        ParameterError
            If `level` is out of its range, if there are no draws to average over, or if leaves are
            dependent.
        DataError
            If a column is missing or a value is outside its column's domain; the message names
            column, value and row.
        """
        return self.credible_interval_codes(self.encode(X), level)

    def credible_interval_codes(self, codes: Codes, level: float = 0.95) -> Floats:
        """Return the same as `credible_interval`, for coded rows; see `encode`."""
        check_is_fitted(self, "_best")
        if self._model().leaf == "dependent":
            raise ParameterError(
                'leaf must be "uniform" or "independent" for credible intervals, got "dependent"'
            )
        trees: Sequence[CountedTree]
        if SearchParameters.predictive.check(self.predictive) == "map":
            trees, shares = (self._shown_tree,), np.ones(1)
        else:
            trees, shares = self._drawn_counted()
        unknown = codes == UNKNOWN
        known = np.where(unknown, np.int32(MISSING), codes)
        ends = density_intervals(self.schema_, self._model(), trees, shares, known, level)
        ends *= np.exp(unknown.sum(axis=0) * self._log_other)[:, np.newaxis]
        return ends

    def _read_counted(self, record: Mapping[str, Any]) -> CountedTree:
        return CountedTree.from_record(record, self.schema_, self._model().leaf)

    def _log_density(self, counted: CountedTree) -> float:
        model, most = self._model(), self._max_branches
        space = SplitSpace(self.schema_, self.partitions, most, getattr(self, "max_depth", None))
        log_splits = space.log_splits(counted.tree) if model.is_generative else None
        log_prior = model.log_prior(counted.tree, self.schema_.n_columns, log_splits)
        log_inside = log_inside_leaves(self.schema_, counted, self._readable(counted), model)
        return log_prior + model.log_likelihood(counted.tree, counted.counts, log_inside)
