"""The density estimation tree of Ram and Gray (KDD 2011), for comparison and as a start for chains.

It is grown greedily by squared error and pruned at its weakest links, see `greedy`.

*Departures.* Volumes are numbers of cells times widths of bins, as elsewhere in this package, and
in Goh (2018), section 3.3. Nominal columns are split into any two sets of levels.

*Choice.* The complexity is chosen by cross-validation: for each fold, a tree is grown on the other
rows and pruned to each relevant complexity, and the rows of the fold are scored. The default score
is the log likelihood, because densities are compared by it here. The paper's score, an estimate of
the integrated squared error, is ``choose_by="squared_error"``; it chooses fewer leaves than predict
best. Goh (2018), section 3.3, tries minimum leaf sizes {0, 3, 5} and maximum sizes {10, n / 2, n},
and reports the best; here they are 0 and 10. Larger ones only end the growth early, which pruning
can do at any node. A minimum size of 3 or 5 did not predict better on any table of this package.

The paper's density of a leaf, ``n_l / (n v_l)``, is 0 on an empty leaf, and one row there makes a
log likelihood of -inf. By default, results and folds use the leaf cascade's posterior mean for the
same tree instead, ``(n_l + alpha) / (n + K alpha) / v_l``.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Saved, Within
from bayescascade.base.watch import OutOfTime, Watch, watch_in_use
from bayescascade.data.splitting import split_rows
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.counted_tree import COUNTED, CountedTree, split_shares
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.greedy import (
    GrownTree,
    grow,
    leaf_totals,
    prune,
    weakest_links,
)
from bayescascade.methods.density.trees.models import LeafModel, empirical_probabilities
from bayescascade.methods.density.trees.parameters import DetParameters
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.methods.density.trees.tree_posterior import CascadePosterior
from bayescascade.model.baseline import Baseline
from bayescascade.model.search import Seed
from bayescascade.model.view import View
from bayescascade.report.page import Pieces

_OF_GROWTH = 0.2  # share of the time for the tree; each fold takes as long
_COARSER = 4.0  # ratio of the sizes of leaves of trees that are grown one after the other
_LEAST = 1e-3  # seconds
_QUICK = 1.0  # seconds for a greedy tree if Ctrl-C came before any other tree


@dataclass(eq=False, repr=False)
class DensityEstimationTree(Baseline[LearnedDensityTree]):
    """Density tree grown greedily by squared error and pruned by cross-validation.

    Ram and Gray, *Density Estimation Trees*, KDD 2011; the module lists departures from it.

    Parameters
    ----------
    complexity
        Minimum decrease of the squared error per leaf, if the volume of the domain is 1. None:
        chosen by cross-validation.
    concentration
        Number of pseudo-rows in each leaf.
    time_limit
        Seconds after which `fit` ends. A fifth of them is for the tree: if its leaves cannot all be
        as small as `max_leaf_size`, they are larger. Then the folds that are finished choose the
        complexity, one at least. So the tree may depend on the machine.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.

    Attributes
    ----------
    tree_, learned_ : LearnedDensityTree
        The tree, with counts, volumes and probabilities. Each split has two branches; for a nominal
        column these are any two sets of levels.
    complexity_ : float
        Complexity by which the tree was pruned.
    stopped_after_ : float or None
        The `time_limit` if it ended `fit`. Otherwise None.
    schema_ : Schema
        Columns and levels.
    feature_importances_ : (n_features_in_,) float64
        Share of each column in the log likelihood that the splits gain.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import DensityEstimationTree
    >>> frame = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 10, "wind": ["yes", "no"] * 20})
    >>> model = DensityEstimationTree(random_state=0).fit(frame)
    >>> model.tree_.n_leaves
    2
    """

    model_name: ClassVar[str] = "DensityEstimationTree"
    title: ClassVar[str] = "density estimation tree"
    purpose: ClassVar[str] = (
        "Which groups of rows are common and which are rare, as a tree that divides the rows by "
        "one column after the other."
    )

    declares = DetParameters

    min_leaf_size: float = DetParameters.min_leaf_size.default
    max_leaf_size: float = DetParameters.max_leaf_size.default
    complexity: float | None = DetParameters.complexity.default
    _: KW_ONLY
    choose_by: str = DetParameters.choose_by.default
    n_folds: int = DetParameters.n_folds.default
    concentration: float = DetParameters.concentration.default
    density: str = DetParameters.density.default
    random_state: Seed = DetParameters.random_state.default
    time_limit: float | None = DetParameters.time_limit.default
    complexity_: Annotated[float, Within(0), Saved("complexity")] = field(init=False)
    stopped_after_: Annotated[float | None, Saved("stopped_after", is_optional=True)] = field(
        init=False, default=None
    )
    _counted: Annotated[CountedTree, COUNTED, Saved("tree")] = field(init=False)

    @property
    def learned_(self) -> LearnedDensityTree:
        """The tree, with counts, volumes and probabilities."""
        check_is_fitted(self, "_counted")
        DetParameters.density.check(self.density)
        tree, counts = self._counted.tree, self._counted.counts
        if self.density == "empirical":
            probabilities = empirical_probabilities(tree, counts)
        else:
            probabilities = LeafModel(concentration=self.concentration).probabilities(tree, counts)
        return LearnedDensityTree(self.schema_, tree, counts, probabilities)

    tree_ = learned_

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the gains of splits, ``(n_features_in_,)``; see `LeafCascade`."""
        volumes = self.tree_.log_volumes  # raises if nothing is fitted
        return split_shares(self.schema_, self._counted, volumes, 1.0)

    def _decided(self) -> dict[str, float | str]:
        return {"complexity": self.complexity_}

    @property
    def _total_weight(self) -> float:
        return self._counted.total

    def _learner(self) -> Callable[[Table], None]:
        watch, learn = Watch(self.time_limit), super()._learner()

        def learn_in_time(table: Table) -> None:
            with watch.watching():
                learn(table)
            self.stopped_after_ = watch.seconds if watch.is_up else None

        return learn_in_time

    def _fit_table(self, table: Table) -> None:
        (grown, links), most = _grow_in_time(table, self)
        complexity = self.complexity
        if complexity is None:
            candidates = _between(links)
            rng = np.random.default_rng(self.random_state)
            n_folds = max(1, min(self.n_folds, int(table.total_weight)))
            scores = np.zeros(candidates.size)
            for number, held_out in enumerate(split_rows(table.weights, n_folds, rng)):
                try:
                    with watch_in_use().watching() if number else Watch(None).watching():
                        scores += _scores(table, held_out, candidates, self, most)
                except OutOfTime:
                    break
            best = scores.max()
            is_best = scores >= best - 1e-9 * abs(best)
            complexity = float(candidates[is_best][-1])  # ties: the smallest tree
        tree, kept = prune(grown.tree, links, complexity)
        # sums over leaves, as in files: the weights of inner nodes may differ by rounding
        self._counted = CountedTree(tree, tree.summed(grown.counts[0, kept][tree.leaves]))
        self.complexity_ = float(complexity)

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        if (np.bincount(self._counted.tree.parent[1:]) > 2).any():
            raise ValueError("every split of a density estimation tree must have two branches")
        if self.complexity not in (None, self.complexity_):
            raise ValueError("a saved complexity must be the parameter")

    def _own_dict(self) -> dict[str, Any]:
        return {"complexity": self.complexity_, **self.tree_.to_dict()}

    def to_dot(self) -> str:
        """Return the tree as Graphviz source."""
        return self.tree_.to_dot()

    def view(self) -> View:
        """Return the tree, and whether the time limit ended its growth or pruning."""
        view = super().view()._replace(more=())
        if self.stopped_after_ is None:
            return view
        text = f"stopped at the time limit of {self.stopped_after_:g} s"
        return view._replace(shown=(*view.shown, Pieces([text], "dim")))


def _grow_in_time(
    table: Table, settings: DensityEstimationTree
) -> tuple[tuple[GrownTree, Floats], float]:
    """Return a tree and its weakest links, and the largest size of a leaf.

    With a time limit, trees of large leaves are grown first, and the last that is finished is kept.
    """
    watch, weights = watch_in_use(), table.weights[np.newaxis]
    sizes = [settings.max_leaf_size]
    while watch.seconds is not None and sizes[-1] < table.total_weight:
        sizes.append(_COARSER * max(1.0, sizes[-1]))  # the last tree is a root
    *finer, coarsest = sizes
    found = _grow(table, weights, settings, coarsest), coarsest
    with suppress(OutOfTime), watch.part(_OF_GROWTH, is_final=True):
        for most in finer[::-1]:
            found = _grow(table, weights, settings, most), most
    return found


def _grow(
    table: Table, weights: Floats, settings: DensityEstimationTree, most: float
) -> tuple[GrownTree, Floats]:
    """Return a tree grown with the first weights, and its weakest links."""
    least = settings.min_leaf_size
    grown = grow(table.schema, table.codes, weights, min_leaf_size=least, max_leaf_size=most)
    return grown, weakest_links(grown.tree, grown.errors)


def _between(links: Floats) -> Floats:
    """Return a complexity for each pruned tree, ascending: geometric means of the changes."""
    changes = np.unique(links)
    return np.append(np.sqrt(changes[:-1] * changes[1:]), changes[-1])


def _scores(
    table: Table,
    held_out: Floats,
    complexities: Floats,
    settings: DensityEstimationTree,
    most: float,
) -> Floats:
    """Return the score of held-out rows by the other rows' tree, for each complexity."""
    others = table.weights - held_out
    if not others.any():
        return np.zeros(complexities.shape)
    grown, links = _grow(table, np.stack([others, held_out]), settings, most)
    counts, scored = grown.counts

    def totals(values: Floats) -> Floats:
        return leaf_totals(grown.tree, links, values, complexities)

    if settings.choose_by == "likelihood":
        alpha = settings.concentration
        log_densities = totals(scored * (np.log(counts + alpha) - grown.log_volumes))
        n_leaves = totals(np.ones(counts.shape))
        likelihood: Floats = log_densities - scored[0] * np.log(counts[0] + n_leaves * alpha)
        return likelihood
    # The integral of the squared density minus twice its mean over the held-out rows.
    densities = counts / counts[0] * np.exp(-grown.log_volumes)
    squared = totals(counts / counts[0] * densities)
    error: Floats = scored[0] * squared - 2 * totals(scored * densities)
    return -error


def greedy_start(posterior: CascadePosterior) -> Tree:
    """Return the greedy tree; raises ParameterError if it has too many leaves."""
    left = watch_in_use().left
    limit = max(left, _LEAST) if left < inf else None
    det = DensityEstimationTree(random_state=0, time_limit=limit)
    tree = det.fit(posterior.table).tree_.tree
    if posterior.log_density(tree) == -np.inf:
        raise ParameterError(
            f'start must be "random" where the greedy tree has more leaves, {tree.n_leaves}, '
            f'than max_leaves, {posterior.parameters()["max_leaves"]}, got "greedy"'
        )
    return tree


def quick_tree(posterior: CascadePosterior) -> Tree:
    """Return the more probable of a greedy tree and the root alone."""
    trees = [Tree.from_nested(None, posterior.is_nominal)]
    with suppress(KeyboardInterrupt):
        det = DensityEstimationTree(random_state=0, time_limit=_QUICK)
        trees.append(det.fit(posterior.table).tree_.tree)
    return max(trees, key=posterior.log_density)
