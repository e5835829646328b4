"""A tree of linear classifiers that buy features: ASTC, with cost-sensitive pruning."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.costs.limits import check_amounts, is_within
from bayescascade.methods.budget.classifier_trees.fitting import ChosenTreeClassifier
from bayescascade.methods.budget.classifier_trees.growing import (
    GrowingRows,
    NodeGrowth,
    grow,
    refitted,
)
from bayescascade.methods.budget.classifier_trees.parameters import SubmodularTreeParameters
from bayescascade.methods.budget.classifier_trees.posterior import (
    Purchases,
    SubmodularTreePosterior,
    solved,
)
from bayescascade.methods.budget.classifier_trees.tree import ClassifierTree
from bayescascade.methods.budget.classifier_trees.validation import (
    HOW_TO_READ,
    ScoredTree,
    TreeValidation,
    node_table,
    prunings,
)
from bayescascade.model.explore import explore_by
from bayescascade.model.sampled import no_rows
from bayescascade.model.search import Search
from bayescascade.model.view import View, joined
from bayescascade.report.page import count_of

_SHARES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
"""Budgets of a node in the trees to try, as shares of the budget of a row."""


class NodeCertificate(NamedTuple):
    """The share that a node's features explain, and a bound for all sets within its budget."""

    explained: float
    bound: float
    is_exact: bool


@dataclass(eq=False, repr=False, kw_only=True)
class SubmodularTreeClassifier(ChosenTreeClassifier):
    """A tree of linear classifiers that each buy the features that explain most.

    Parameters
    ----------
    node_budget : float, sequence of float or None
        Budget of each node, or one number per node, breadth first. None: several are tried, and the
        tree with the smallest held-out error is taken.
    weights : {"hard", "soft"}
        "soft": in training, a row counts at both children, with weights by a sigmoid of its score
        minus the threshold.
    progress : callable, optional
        Called with a `samplers.Progress` before each tree that is grown.

    Attributes
    ----------
    certificate_ : tuple of NodeCertificate
    posterior_ : SubmodularTreePosterior
        Not in saved models.

    All other attributes are those of `ChosenTreeClassifier`.

    Notes
    -----
    Kusner and others (2014), as the errata of the documentation correct it; `selection` has the
    formulas. Pruning, steps as columns and logistic leaves are not in the paper. Use
    `basis="linear"`, `selection="paper"`, `leaf="least_squares"` and `prune=False` for the tree of
    the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import SubmodularTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> model = SubmodularTreeClassifier(budget=1.0, random_state=0).fit(X, X[:, 2] > 0.5)
    >>> np.flatnonzero(model.feature_shares_).tolist()
    [2]
    """

    model_name: ClassVar[str] = "SubmodularTreeClassifier"
    title: ClassVar[str] = "tree of classifiers"
    purpose: ClassVar[str] = (
        "The class of a row, by a tree of linear classifiers that buys more features only if "
        "they are worth their cost."
    )
    declares = SubmodularTreeParameters

    tradeoff: float = SubmodularTreeParameters.tradeoff.default
    node_budget: float | Sequence[float] | None = SubmodularTreeParameters.node_budget.default
    max_depth: int = SubmodularTreeParameters.max_depth.default
    basis: str = SubmodularTreeParameters.basis.default
    selection: str = SubmodularTreeParameters.selection.default
    leaf: str = SubmodularTreeParameters.leaf.default
    weights: str = SubmodularTreeParameters.weights.default
    prune: bool = SubmodularTreeParameters.prune.default
    progress: Callable[[samplers.Progress], object] | None = None

    # a tree with its item probabilities
    _known: tuple[ClassifierTree, Floats] | None = field(init=False, default=None)

    # -- fitting -----------------------------------------------------------------------------------

    def _candidates(
        self, rows: GrowingRows, validation: TreeValidation, budgets: Sequence[float | None]
    ) -> Iterator[Sequence[ScoredTree]]:
        tried = self._node_budgets(budgets)
        for n_done, node_budgets in enumerate(tried):
            if self.progress is not None:
                self.progress(samplers.Progress("trees", n_done, len(tried), nan, nan, nan, {}))
            how = NodeGrowth(node_budgets, self.selection, self.max_depth, self.weights, self.leaf)
            tree = grow(rows, self.items_, how)
            if self.prune:
                yield prunings(tree, self.items_, validation.rows, validation.labels)
            else:
                yield [ScoredTree(**validation.scored(tree, self.items_))]

    def _refitted(self, candidate: ScoredTree, rows: GrowingRows) -> ClassifierTree:
        return refitted(candidate.tree, rows, self.leaf)

    @property
    def _price(self) -> float:
        return self.tradeoff

    def _node_budgets(self, budgets: Sequence[float | None]) -> list[tuple[float, ...]]:
        """Return the node budgets of each tree to grow."""
        items = self.items_
        prices = [float(items.costs[items.of_column(f)].sum()) for f in range(items.n_columns)]
        least = min(prices)
        if self.node_budget is not None:
            one = isinstance(self.node_budget, int | float | np.number)
            given = check_amounts("node_budget", [self.node_budget] if one else self.node_budget)
            if len(given) not in (1, 2**self.max_depth - 1):
                raise ParameterError(
                    f"node_budget must have one number or {2**self.max_depth - 1}, one for each "
                    f"node of depth {self.max_depth}, got {len(given)}"
                )
            if not is_within(least, max(given)):
                raise ParameterError(
                    f"node_budget must be at least {least:.12g}, the cost of the cheapest feature, "
                    f"got {max(given):.12g}"
                )
            return [tuple(given)]
        total = float(items.costs.sum())
        limits = {total if each is None else min(each, total) for each in budgets}
        amounts = {max(share * limit, least) for limit in limits for share in _SHARES}
        steps = items.costs / least if least > 0 else np.array([0.5])
        if (steps == np.round(steps)).all():  # only multiples of the least price matter
            amounts = {np.floor(amount / least + 1e-9) * least for amount in amounts}
        return [(amount,) for amount in sorted(amounts)]

    # -- classifying -------------------------------------------------------------------------------

    @property
    def certificate_(self) -> tuple[NodeCertificate, ...]:
        """For each node, what its features explain, and a bound for all sets within its budget."""
        check_is_fitted(self)
        return tuple(NodeCertificate(n.explained, n.bound, n.is_exact) for n in self.tree_.nodes)

    @property
    def posterior_(self) -> SubmodularTreePosterior:
        """The posterior of the features that the nodes buy, given the gates of the tree.

        Its likelihood is a working model; see `SubmodularTreePosterior`. Its tradeoff is `tradeoff`
        times the weight of the rows, as if an error were one nat. Not in saved models.
        """
        check_is_fitted(self)
        if "_trial" not in self.__dict__:
            raise no_rows("posterior_")
        rows = self._trial.everything
        tradeoff = self.tradeoff * float(rows.weights.sum())
        return SubmodularTreePosterior(self.tree_, rows, self.items_, tradeoff, self.feature_texts)

    @property
    def item_probabilities_(self) -> Floats:
        """Probability that a row pays for an item at each node, (n_nodes, n_items) float64.

        It is the probability under `posterior_`. It is exact if all sets of features of each leaf
        can be summed over. Otherwise it is estimated by chains of at least 50,000 steps with the
        seed `random_state`; ``explore(posterior_)`` runs longer chains. The first line is for all
        rows. Not in saved models.
        """
        if self._known is None or self._known[0] is not self.tree_:
            self._known = self.tree_, self._item_probabilities(self.posterior_)
        return self._known[1]

    def _item_probabilities(self, posterior: SubmodularTreePosterior) -> Floats:
        search = Search("auto", None, 4, 1, self.random_state, None, False, None, self.time_limit)

        def starts(_: SubmodularTreePosterior) -> list[Purchases]:
            generator = np.random.default_rng(0)
            drawn = [posterior.initial_state(generator) for _ in range(search.n_chains - 1)]
            return [posterior.greedy_state, *drawn]

        found = explore_by(search, posterior, solve=solved, starts=starts)
        if found.solution is not None:
            return np.asarray(found.solution.result)
        return posterior.item_probabilities([s for chain in found.run_.draws for s in chain])

    # -- what a user sees --------------------------------------------------------------------------

    def _size_facts(self) -> list[str]:
        return [count_of(len(self.tree_.nodes), "node")]

    def view(self) -> View:
        """Return what is shown: the nodes with their costs, and the features."""
        view = super().view()
        n_leaves = count_of(sum(node.is_leaf for node in self.tree_.nodes), "leaf", "leaves")
        n_classes = count_of(len(self.classes_), "class", "classes")
        table = node_table(self.tree_, self.feature_texts, self.items_)
        return view._replace(
            heading=[self.title, n_leaves, n_classes],
            shown=joined((table,), view.shown),
            terms=(*HOW_TO_READ, *view.terms),
        )
