"""What both cascades do beside any density estimator: trees, their leaves and their columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.data.schema import Rows
from bayescascade.data.table import Table
from bayescascade.methods.cascades.counted_tree import CountedTree
from bayescascade.methods.cascades.density import DensityTree
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
    from bayescascade.methods.cascades.exact import ExactPosterior

__all__ = ["STARTS", "Cascade", "CascadeParameters"]

STARTS = ("random", "greedy")

_AUTO_TERMS = 2e8  # of the recursion up to which search "auto" is exact: some ten seconds
_MOST_TERMS = 1e12  # hours
_CHEAP_TERMS = 2e8  # up to which the shares of columns are exact, too


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
        ("leaf", "leaf_concentration", "max_leaves", "memory_limit", "partitions", "start")
    )

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
        return self._posterior_class(
            table,
            **self._model_parameters(),
            max_branches=self.max_branches,
            partitions=self.partitions,
        )

    def _check_model(self) -> None:
        self._model()
        if self.max_branches is not None:
            check_integer("max_branches", self.max_branches, minimum=2)
        check_choice("partitions", self.partitions, PARTITIONS)
        check_real("memory_limit", self.memory_limit, above=0.0)
        check_choice("start", self.start, STARTS)
        if self.start == "greedy" and self.partitions == "levels":
            raise ParameterError(
                'start must be "random" with partitions "levels": the greedy tree groups levels, '
                'got "greedy"'
            )

    def _solve(self, posterior: CascadePosterior, search: Search) -> Solution[Tree]:
        from bayescascade.methods.cascades.exact import solve

        def report(share: float) -> None:
            if search.progress is not None:
                done = round(1000 * share)
                search.progress(samplers.Progress("all trees", done, 1000, nan, nan, nan, {}))

        started = perf_counter()
        exact = solve(
            posterior,
            memory_limit=self.memory_limit * 1e9,
            work_limit=_AUTO_TERMS if search.search == "auto" else _MOST_TERMS,
            progress=report,
        )
        n_chains = int(search.n_chains)
        n_draws = max(1, most_blocks(posterior.table.n_distinct) // n_chains)
        drawn = exact.sample(n_chains * n_draws, search.rng())
        return Solution(
            result=exact,
            state=exact.tree,
            log_density=exact.log_density,
            certificate=Certificate(
                gap=0.0,
                extent=f"{exact.cost.n_boxes:,} boxes",
                log_evidence=exact.log_evidence,
            ),
            seconds=perf_counter() - started,
            draws=[drawn[i : i + n_draws] for i in range(0, len(drawn), n_draws)],
            shares=_shares(exact),
        )

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
        is_nominal = [column.kind == "nominal" for column in self.schema_.columns]
        problem = next(tree.problems(is_nominal, self.schema_.n_levels.tolist()), None)
        if problem is not None:
            raise ParameterError(f"tree must be one over the model's columns: {problem}")
        return self._readable(self._count(tree))

    def _count(self, state: Tree) -> CountedTree:
        counts, _ = self.posterior_.node_statistics(state)
        if self.posterior_.model.leaf == "uniform":
            return CountedTree(state, counts)
        return CountedTree(state, counts, self.posterior_.level_counts(state)[state.leaves])

    def _readable(self, counted: CountedTree) -> DensityTree:
        check_choice("density", self.density, DENSITIES)
        tree, counts, model = counted.tree, counted.counts, self._model()
        if self.density == "empirical":
            probabilities, a = empirical_probabilities(tree, counts), 0.0
        else:
            probabilities, a = model.probabilities(tree, counts), model.leaf_concentration
        levels = None
        if counted.level_counts is not None:
            boxes = leaf_boxes(self.schema_, tree)
            levels = independent_probabilities(self.schema_, boxes, counted.level_counts, a)
        return DensityTree(
            self.schema_, tree, counts, probabilities, {}, level_probabilities=levels
        )

    def score_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log density of (n_columns, n_rows) coded rows, nats; see `Schema.encode`.

        With ``predictive="average"`` after an exact search that is the average over all trees, else
        over the draws, of which a saved model keeps up to 1,000.
        """
        is_average = self.predictive == "average" and self.density == "posterior_mean"
        if is_average and "exact_" in self.__dict__:
            averaged: NDArray[np.float64] = self.exact_.log_predictive(codes)
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
            If `level` is out of its range, or there are no draws to average over.
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
        from bayescascade.methods.cascades.counted_tree import density_intervals

        if check_choice("predictive", self.predictive, PREDICTIVES) == "map":
            trees, shares = [self._best], np.ones(1)
        else:
            trees, shares = self._drawn_counted()
        return density_intervals(self.schema_, self._model(), trees, shares, codes, level)

    def _read_counted(self, record: Mapping[str, Any]) -> CountedTree:
        is_independent = self._model().leaf == "independent"
        return CountedTree.from_record(record, self.schema_, has_level_counts=is_independent)

    def _log_density(self, counted: CountedTree) -> float:
        tree, counts, model = counted.tree, counted.counts, self._model()
        if counted.level_counts is None:
            density = DensityTree(self.schema_, tree, counts, np.ones(tree.n_nodes), {})
            log_inside = -counts * density.log_volumes
        else:
            log_inside = np.zeros(tree.n_nodes)
            boxes = leaf_boxes(self.schema_, tree)
            log_inside[tree.leaves] = independent_log_inside(
                self.schema_, boxes, counted.level_counts, model.leaf_concentration
            )
        log_prior = model.log_prior(tree, self.schema_.n_columns)
        return log_prior + model.log_likelihood(tree, counts, log_inside)


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
