"""The density estimation tree of Ram and Gray (KDD 2011), to compare with and to start chains from.

`det_tree` has the greedy growth and the weakest links. Here the pruned tree is chosen: it is
the one whose complexity predicts best in folds. On each fold's other rows a tree is grown and
pruned to every complexity of interest, and the rows of the fold are scored.

*Departures.* Log likelihood decides, as it is what densities are compared by here; the paper's own
criterion, an estimate of the integrated squared error, is ``choose_by="squared_error"`` and takes
fewer leaves than predict best. Goh (2018), section 3.3, tries least sizes {0, 3, 5} of a leaf and
largest {10, n / 2, n}, and reports the best; here they are 0 and 10. Larger ones end the growth
early, but the pruning can end it anywhere, and on none of this package's tables did a least size of
3 or 5 predict better.

The paper's density of a leaf, ``n_l / (n v_l)``, is 0 on an empty leaf, and one row there makes a
log likelihood of -inf. What is reported, and scored in the folds, is the leaf cascade's posterior
mean for the same tree, ``(n_l + alpha) / (n + K alpha) / v_l``, unless the paper's is asked for.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.data.dealing import deal
from bayescascade.data.table import Table
from bayescascade.methods.cascades.density import DensityTree
from bayescascade.methods.cascades.det_tree import (
    GrownTree,
    grow,
    leaf_totals,
    prune,
    weakest_links,
)
from bayescascade.methods.cascades.models import LeafModel, empirical_probabilities
from bayescascade.methods.cascades.tree import Tree
from bayescascade.model.estimator import DENSITIES
from bayescascade.model.row_densities import Baseline
from bayescascade.model.search import Seed
from bayescascade.report.page import Page

__all__ = ["DensityEstimationTree"]

Floats = NDArray[np.float64]

CRITERIA = ("likelihood", "squared_error")


@dataclass(eq=False, repr=False)
class DensityEstimationTree(Baseline):
    """Density tree grown greedily by squared error and pruned by cross-validation.

    Ram and Gray, *Density Estimation Trees*, KDD 2011; the module says what departs from it.

    Parameters
    ----------
    min_leaf_size : float >= 0
        Least weight of a leaf.
    max_leaf_size : float >= 0
        Nodes of at most this weight are not split.
    complexity : float >= 0 or None
        What a leaf must lessen the squared error by, the domain's volume being 1; None for what
        predicts best in folds.
    choose_by : {"likelihood", "squared_error"}
        What tells how a complexity predicts.
    n_folds : int >= 2
        Folds, of which there are no more than rows.
    concentration : float > 0
        As if that many rows had been seen in each leaf.
    density : {"posterior_mean", "empirical"}
        Probability of a leaf: ``(n_l + alpha) / (n + K alpha)``, or ``n_l / n``, which is zero on
        an empty leaf.
    random_state : int, SeedSequence, Generator or None
        Seed of the folds.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.

    Attributes
    ----------
    tree_ : DensityTree
        The tree, with counts, volumes and probabilities. Every split has two branches, which are
        any two sets of the levels of a nominal column.
    complexity_ : float
        What it was pruned to.
    schema_ : Schema
        Columns and levels.
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

    model_name: ClassVar[str] = "det"
    title: ClassVar[str] = "density estimation tree"

    min_leaf_size: float = 0.0
    max_leaf_size: float = 10.0
    complexity: float | None = None
    _: KW_ONLY
    choose_by: str = "likelihood"
    n_folds: int = 10
    concentration: float = 2.0
    density: str = "posterior_mean"
    random_state: Seed = None
    _learned: tuple[Tree, Floats] = field(init=False)  # with the counts of its nodes

    @property
    def tree_(self) -> DensityTree:
        """The tree, with counts, volumes and probabilities."""
        check_is_fitted(self, "_learned")
        check_choice("density", self.density, DENSITIES)
        tree, counts = self._learned
        if self.density == "empirical":
            probabilities = empirical_probabilities(tree, counts)
        else:
            probabilities = LeafModel(concentration=self.concentration).probabilities(tree, counts)
        return DensityTree(self.schema_, tree, counts, probabilities, {})

    def score_codes(self, codes: NDArray[np.int32]) -> Floats:
        """Return the log density of (n_columns, n_rows) coded rows, nats; see `Schema.encode`."""
        return self.tree_.score_codes(codes)

    def _check_parameters(self) -> None:
        check_real("min_leaf_size", self.min_leaf_size, minimum=0.0)
        check_real("max_leaf_size", self.max_leaf_size, minimum=0.0)
        if self.complexity is not None:
            check_real("complexity", self.complexity, minimum=0.0)
        check_choice("choose_by", self.choose_by, CRITERIA)
        check_integer("n_folds", self.n_folds, minimum=2)
        check_real("concentration", self.concentration, above=0.0)
        check_choice("density", self.density, DENSITIES)

    def _fit_table(self, table: Table) -> None:
        grown, links = _grow(table, table.weights[np.newaxis], self)
        complexity = self.complexity
        if complexity is None:
            candidates = _between(links)
            rng = np.random.default_rng(self.random_state)
            n_folds = max(1, min(self.n_folds, int(table.total_weight)))
            scores = np.zeros(candidates.size)
            for held_out in deal(table.weights, n_folds, rng):
                scores += _scores(table, held_out, candidates, self)
            best = scores.max()
            is_best = scores >= best - 1e-9 * abs(best)
            complexity = float(candidates[is_best][-1])  # of equal ones the smallest tree
        tree, kept = prune(grown.tree, links, complexity)
        self._learned = tree, grown.counts[0, kept]
        self.complexity_ = complexity

    def page(self) -> Page:
        """Return the tree."""
        return self.tree_.page()


def _grow(
    table: Table, weights: Floats, settings: DensityEstimationTree
) -> tuple[GrownTree, Floats]:
    """Return a tree grown by the first of the weights, and its weakest links."""
    grown = grow(
        table.schema,
        table.codes,
        weights,
        min_leaf_size=settings.min_leaf_size,
        max_leaf_size=settings.max_leaf_size,
    )
    return grown, weakest_links(grown.tree, grown.errors)


def _between(links: Floats) -> Floats:
    """Return a complexity for each pruned tree, ascending: the geometric mean of where it is so.

    Trees of other rows change at other complexities, so none is taken where this one changes.
    """
    changes = np.unique(links)
    return np.append(np.sqrt(changes[:-1] * changes[1:]), changes[-1])


def _scores(
    table: Table, held_out: Floats, complexities: Floats, settings: DensityEstimationTree
) -> Floats:
    """Return how well rows held out are predicted by the others' tree, for each complexity."""
    others = table.weights - held_out
    if not others.any():
        return np.zeros(complexities.shape)
    grown, links = _grow(table, np.stack([others, held_out]), settings)
    counts, scored = grown.counts

    def totals(values: Floats) -> Floats:
        return leaf_totals(grown.tree, links, values, complexities)

    if settings.choose_by == "likelihood":
        alpha = settings.concentration
        log_densities = totals(scored * (np.log(counts + alpha) - grown.log_volumes))
        n_leaves = totals(np.ones(counts.shape))
        likelihood: Floats = log_densities - scored[0] * np.log(counts[0] + n_leaves * alpha)
        return likelihood
    # The integral of the squared density less twice its mean over the rows held out.
    densities = counts / counts[0] * np.exp(-grown.log_volumes)
    squared = totals(counts / counts[0] * densities)
    error: Floats = scored[0] * squared - 2 * totals(scored * densities)
    return -error
