"""A tree of linear classifiers whose features are learned together: CSTC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.store import Saved, Within
from bayescascade.base.watch import watch_in_use
from bayescascade.costs.within_budgets import coarse_first
from bayescascade.methods.budget.classifier_trees.cost_sensitive_posterior import (
    CostSensitiveTreePosterior,
)
from bayescascade.methods.budget.classifier_trees.fitting import ChosenTreeClassifier
from bayescascade.methods.budget.classifier_trees.growing import (
    GrowingRows,
    NodeGrowth,
    grow,
    refitted,
)
from bayescascade.methods.budget.classifier_trees.parameters import CostSensitiveTreeParameters
from bayescascade.methods.budget.classifier_trees.tree import ClassifierTree
from bayescascade.methods.budget.classifier_trees.validation import (
    ScoredTree,
    TreeCandidates,
    TreeValidation,
    node_table,
)
from bayescascade.model.ascent import ascend
from bayescascade.model.view import View, joined
from bayescascade.report.page import count_of

_TRADEOFFS = np.geomspace(1.0, 0.002, 8)
"""Tradeoffs to try, as multiples of one at which a feature is hardly worth its cost."""

CUTS = (0.003, 0.01, 0.03, 0.1, 0.2)
"""Norms of coefficients below which a feature is not read; labels are -1 and 1."""

_OF_START = 0.5
"""Share of the time for the starting tree."""

_START = 0.3  # share of all costs that nodes of the starting tree may spend

_Amount = Annotated[float, Within(0)]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CutTree(ScoredTree):
    """A tree for a tradeoff, without small coefficients."""

    cut: float
    posterior: CostSensitiveTreePosterior
    log_density: float


@dataclass(eq=False, repr=False, kw_only=True)
class CostSensitiveTreeClassifier(ChosenTreeClassifier):
    """A tree of linear classifiers, all learned together by loss and expected cost.

    `SubmodularTreeClassifier` buys features node by node from the root. Here, gradient ascent
    changes the classifiers of all nodes at once. Then gates are made hard, small coefficients are
    set to 0, and leaves are fitted again.

    Parameters
    ----------
    tradeoff : float >= 0 or None
        Squared loss (for labels -1 and 1) that a unit of cost is worth. None: 14 values are tried,
        and the one with the smallest held-out error is taken.
    loss_at : {"all", "leaves"}
        Nodes whose loss counts: all, as in the paper, or only leaves, which predict.

    Attributes
    ----------
    posterior_ : CostSensitiveTreePosterior
        The posterior with the chosen tradeoff. Its `start` is the most probable state that was
        found, so `explore(model.posterior_, "langevin")` draws around it. Not in saved models.
    log_posterior_ : float
        Log density of this state; not in saved models.
    tradeoff_, cut_ : float or None
        The chosen tradeoff, and the norm below which coefficients are set to 0. None if nothing is
        bought.

    All other attributes are those of `ChosenTreeClassifier`.

    Notes
    -----
    Kusner and others (2014), equations 2 and 3; `cost_sensitive_posterior` has the formula and the
    departures. The result is a local maximum. It depends on the start, which is a soft tree of
    `SubmodularTreeClassifier` with least squares at its nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import CostSensitiveTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> model = CostSensitiveTreeClassifier(tradeoff=0.3, max_depth=2, random_state=0)
    >>> np.flatnonzero(model.fit(X, X[:, 2] > 0.5).feature_shares_).tolist()
    [2]
    """

    model_name: ClassVar[str] = "CostSensitiveTreeClassifier"
    title: ClassVar[str] = "cost-sensitive tree"
    purpose: ClassVar[str] = (
        "The class of a row, by a tree of linear classifiers that were learned together from "
        "loss and cost."
    )
    declares = CostSensitiveTreeParameters

    tradeoff: float | None = CostSensitiveTreeParameters.tradeoff.default
    max_depth: int = CostSensitiveTreeParameters.max_depth.default
    loss_at: str = CostSensitiveTreeParameters.loss_at.default
    penalty: float = CostSensitiveTreeParameters.penalty.default
    smoothing: float = CostSensitiveTreeParameters.smoothing.default
    temperature: float = CostSensitiveTreeParameters.temperature.default
    max_iter: int = CostSensitiveTreeParameters.max_iter.default

    tradeoff_: Annotated[_Amount | None, Saved("chosen_tradeoff")] = field(init=False)
    cut_: Annotated[_Amount | None, Saved("cut")] = field(init=False)

    _found: CutTree | None = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def _candidates(
        self, rows: GrowingRows, validation: TreeValidation, budgets: Sequence[float | None]
    ) -> Iterator[Sequence[CutTree]]:
        del budgets  # each tradeoff may lead to any cost
        items = self.items_
        least = min(float(items.costs[items.of_column(f)].sum()) for f in range(items.n_columns))
        amount = max(_START * float(items.costs.sum()), least)
        how = NodeGrowth((amount,), "greedy", self.max_depth, "soft", "least_squares")
        names = ("penalty", "loss_at", "smoothing", "temperature")
        given = {name: getattr(self, name) for name in names}
        with watch_in_use().part(_OF_START, is_final=True):
            tree = grow(rows, items, how)
        begun = CostSensitiveTreePosterior(tree, rows, items, **given)
        # the largest is the last to be tried: with it, hardly anything is bought
        every = begun.dearest_tradeoff() * _TRADEOFFS
        tradeoffs = list(dict.fromkeys(every[[*coarse_first(every.size)[1:], 0]].tolist()))
        if self.tradeoff is not None:
            tradeoffs = [float(self.tradeoff)]
        for tradeoff in tradeoffs:
            posterior = begun.with_tradeoff(tradeoff)
            run = ascend(posterior, [begun.start], max_iter=self.max_iter)
            posterior.start = run.best_state
            yield self._cut(posterior, run.best_log_density, rows, validation)
            if run.interrupted:
                raise KeyboardInterrupt

    def _try(self, *given: Any, **more: Any) -> TreeCandidates:
        trial = super()._try(*given, **more)  # in an order that does not depend on the limit
        in_order = sorted(trial.candidates, key=attrgetter("posterior.tradeoff"))
        return trial._replace(candidates=tuple(in_order))

    def _cut(
        self,
        posterior: CostSensitiveTreePosterior,
        log_density: float,
        rows: GrowingRows,
        validation: TreeValidation,
    ) -> list[CutTree]:
        """Return the trees for several cuts, with refitted leaves."""
        found: list[CutTree] = []
        seen = None
        for cut in CUTS:
            if found and watch_in_use().is_over():
                break
            tree = posterior.learned(posterior.start, cut)
            reads = [node.gate.columns.tolist() for node in tree.nodes], tree.has.tolist()
            if reads == seen:
                continue
            seen = reads
            tree = refitted(tree, rows, "logistic")
            how = validation.scored(tree, self.items_)
            found.append(CutTree(**how, cut=cut, posterior=posterior, log_density=log_density))
        return found

    def _refitted(self, candidate: ScoredTree, rows: GrowingRows) -> ClassifierTree:
        return refitted(candidate.tree, rows, "logistic")

    def _become(self, candidate: ScoredTree | None) -> None:
        if candidate is None:
            self._found = self.tradeoff_ = self.cut_ = None
            return
        assert isinstance(candidate, CutTree)
        self._found, self.cut_ = candidate, candidate.cut
        self.tradeoff_ = candidate.posterior.tradeoff

    # -- what was learned --------------------------------------------------------------------------

    @property
    def posterior_(self) -> CostSensitiveTreePosterior:
        """The Gibbs posterior with the chosen tradeoff, given the training rows."""
        return self._best_found("posterior_").posterior

    @property
    def log_posterior_(self) -> float:
        """Log density of the most probable state that was found, nats, unnormalized."""
        return self._best_found("log_posterior_").log_density

    def _best_found(self, name: str) -> CutTree:
        check_is_fitted(self)
        found: CutTree | None = vars(self).get("_found")  # not in files
        if found is None:
            raise AttributeError(
                f"{name} needs a fit (a model that was read from a file has none) and a result "
                "within the budget"
            )
        return found

    # -- what a user sees --------------------------------------------------------------------------

    def _size_facts(self) -> list[str]:
        return [count_of(len(self.tree_.nodes), "node")]

    def view(self) -> View:
        """Return what is shown: the nodes with their costs, and the features."""
        view, nodes = super().view(), self.tree_.nodes
        n_leaves = sum(node.is_leaf for node in nodes)
        tradeoff = [] if self.tradeoff_ is None else [f"tradeoff {self.tradeoff_:.3g}"]
        classes = count_of(len(self.classes_), "class", "classes")
        table = node_table(self.tree_, self.feature_texts, self.items_, explains=False)
        words = (
            "The first table has a line for each node, with the features that it reads in "
            "addition to those above it. A node computes a score from its features, and sends "
            "the row to its high or low child."
        )
        adds = ("adds", "the additional cost of a row at this node")
        return view._replace(
            heading=[self.title, *tradeoff, count_of(n_leaves, "leaf", "leaves"), classes],
            shown=joined((table,), view.shown),
            terms=(("", words), adds, *view.terms),
        )
