"""CSTC as a Gibbs posterior: a density over all classifiers of a tree, by loss and expected cost.

With linear classifiers f_k(x) = b_k + B_k' x at the nodes, the probability p_k(x) of reaching a
node is the product of sigma(f - theta) or 1 - sigma(f - theta) at the nodes above it. For rows with
weights w of sum 1, the objective is

    J = sum_k sum_i w_i p_k(x_i) ``|y_i - f_k(x_i)|^2`` + penalty sum ``|B|``
        + tradeoff sum_(leaves l) p_l sum_a c_a ``|B_ka : k on the path to l|``,

where p_l is the mean of p_l(x_i), c_a the cost of item a (a feature or a group), and B_ka the
coefficients at node k of its columns (Kusner and others, "Feature-Cost Sensitive Learning with
Submodular Trees of Classifiers", 2014, equations 2 and 3; Kusner 2016, 2.6 and 2.7): norms replace
the number of features that a row pays for. The log density is -n J / temperature, n the number of
rows: weights by J, **not the posterior of a model of the rows**.

Departures: p_k is the product above the node, as in the errata of the documentation. All nodes move
together, along the gradient through all descendants, not block by block. Norms and absolute values
are sqrt(v^2 + e^2) - e, e the `smoothing`. Labels are -1 and 1, with one such column for each of
several classes; then a fixed combination of the f_k is compared with theta.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayescascade.base.arrays import Floats
from bayescascade.base.validation import check_choice, check_real
from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows
from bayescascade.methods.budget.classifier_trees.leaves import no_gate
from bayescascade.methods.budget.classifier_trees.scaling import Standard
from bayescascade.methods.budget.classifier_trees.tree import ClassifierNode, ClassifierTree
from bayescascade.model.continuous import ContinuousPosterior
from bayescascade.model.draws import TraceLegend

LENGTH = 0.1
"""Length scale of the numbers of a state: columns have variance 1, and labels are -1 and 1."""


class _Forward(NamedTuple):
    """Values of nodes and rows: outputs (K, c, n), weighted reach, up and errors (K, n)."""

    outputs: Floats
    reach: Floats
    up: Floats
    errors: Floats


class CostSensitiveTreePosterior(ContinuousPosterior):
    """The Gibbs posterior of the classifiers of a tree; the module has the formulas.

    Parameters
    ----------
    tree : ClassifierTree
        All states have its shape. The least-squares fits of its leaves are the `start`.
    rows : GrowingRows
    items : CostItems
        Costs of the features.
    tradeoff : float >= 0
        Squared loss that a unit of cost is worth.
    penalty : float >= 0
        Squared loss that a coefficient of 1 is worth.
    loss_at : {"all", "leaves"}
        Nodes whose loss counts.
    smoothing : float > 0
    temperature : float > 0

    Attributes
    ----------
    start : (n_numbers,) float64
        A state: for each node, the coefficients (p, c) of columns of variance 1, and c intercepts;
        then the thresholds of the nodes with children.
    """

    def __init__(
        self,
        tree: ClassifierTree,
        rows: GrowingRows,
        items: CostItems,
        *,
        tradeoff: float = 0.0,
        penalty: float = 0.0,
        loss_at: str = "all",
        smoothing: float = 1e-3,
        temperature: float = 1.0,
    ) -> None:
        self.tradeoff = check_real("tradeoff", tradeoff, minimum=0.0)
        self.penalty = check_real("penalty", penalty, minimum=0.0)
        self.loss_at = check_choice("loss_at", loss_at, ("all", "leaves"))
        self.smoothing = check_real("smoothing", smoothing, above=0.0)
        self.temperature = check_real("temperature", temperature, above=0.0)
        self.tree, self.items = tree, items
        self.n_rows = float(rows.weights.sum())
        self._weights = rows.weights / self.n_rows
        self.standard = Standard.of(rows.made, rows.weights)
        made = np.column_stack([self.standard.scaled(rows.made), np.ones(len(rows.labels))])
        self._columns = np.ascontiguousarray(made.T)  # (p + 1, n)
        self._targets = np.ascontiguousarray(2.0 * rows.targets.T - 1.0)  # (c, n)
        incurs = np.zeros((items.n_items, rows.basis.n_columns))
        for column, feature in enumerate(rows.basis.feature.tolist()):
            incurs[items.of_column(feature), column] = 1.0
        self._incurs = incurs
        self._children = np.array([node.children for node in tree.nodes], np.int64)
        self._inner = np.flatnonzero(self._children[:, 0] >= 0)
        self._parent = np.full(len(tree.nodes), -1)
        for place in self._inner:
            self._parent[self._children[place]] = place
        counts = np.ones(len(tree.nodes), np.bool_)
        if self.loss_at == "leaves":
            counts[self._inner] = False
        self._counts = counts
        self._directions = np.ones((len(tree.nodes), self._targets.shape[0]))
        self.start = self._begun()

    def with_tradeoff(self, tradeoff: float) -> "CostSensitiveTreePosterior":
        """Return the same posterior with another tradeoff."""
        other = copy.copy(self)
        other.tradeoff = check_real("tradeoff", tradeoff, minimum=0.0)
        return other

    def dearest_tradeoff(self) -> float:
        """Return a tradeoff at which the best feature is hardly worth its cost.

        At coefficients of 0, the slope of the loss is twice the covariance of a column with the
        labels. The result is the largest slope of a feature, divided by its cost.
        """
        away = self._targets - (self._targets @ self._weights)[:, np.newaxis]
        squares = ((self._columns[:-1] @ (away * self._weights).T) ** 2).sum(axis=1)
        prices = self.items.costs @ self._incurs
        paid = prices > 0
        slopes = 2.0 * np.sqrt(squares[paid]) / prices[paid]
        return float(slopes.max(initial=0.0))

    # -- states ------------------------------------------------------------------------------------

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Nodes, numbers of an output, outputs."""
        return len(self._parent), len(self._columns), len(self._targets)

    def parts(self, state: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients of nodes, (K, p + 1, c), intercepts last, and thresholds (K,)."""
        n_nodes, n_numbers, n_outputs = self._shape
        size = n_nodes * n_numbers * n_outputs
        thresholds = np.zeros(n_nodes)
        thresholds[self._inner] = state[size:]
        return state[:size].reshape(n_nodes, n_numbers, n_outputs), thresholds

    def _begun(self) -> Floats:
        """Return the least squares of the nodes, with thresholds at the median of their rows.

        Also sets the directions of scores, in which the outputs vary most.
        """
        n_nodes, n_numbers, n_outputs = self._shape
        coefficients = np.zeros((n_nodes, n_numbers, n_outputs))
        thresholds = np.zeros(n_nodes)
        reach = np.zeros((n_nodes, self._weights.size))
        reach[0] = self._weights
        scales = np.where(self.standard.scales > 0, self.standard.scales, np.inf)
        for place, node in enumerate(self.tree.nodes):
            own = coefficients[place]
            leaf = node.leaf
            own[leaf.columns] = 2 * (leaf.coefficients / scales[leaf.columns]).T
            means = self.standard.means[leaf.columns]
            own[-1] = 2 * (leaf.intercepts + leaf.coefficients @ means) - 1
            if node.is_leaf:
                continue
            outputs = own.T @ self._columns
            if n_outputs > 1:
                _, vectors = np.linalg.eigh(np.cov(outputs, aweights=reach[place]))
                largest = vectors[np.abs(vectors[:, -1]).argmax(), -1]
                self._directions[place] = vectors[:, -1] * np.sign(largest)
            scores = self._directions[place] @ outputs
            order = np.argsort(scores)
            total = np.cumsum(reach[place][order])
            middle = order[np.searchsorted(total, total[-1] / 2)]
            thresholds[place] = scores[middle]
            up = expit(scores - thresholds[place])
            above, below = node.children
            reach[above], reach[below] = reach[place] * up, reach[place] * (1 - up)
        return np.concatenate([coefficients.ravel(), thresholds[self._inner]])

    def initial_state(self, rng: np.random.Generator) -> Floats:
        """Return the start with random noise added."""
        lengths, _ = self._blocks()
        return np.asarray(self.start + lengths * rng.normal(size=lengths.size))

    # -- densities ---------------------------------------------------------------------------------

    def log_prior(self, state: Floats) -> float:
        """Return minus penalty and expected cost, in nats."""
        coefficients, thresholds = self.parts(state)
        forward = self._forward(coefficients, thresholds)
        value = self.penalty * self._smooth(coefficients[:, :-1])[0].sum()
        _, costs = self._norms(coefficients)
        value += self.tradeoff * float(forward.reach.sum(axis=1) @ costs)
        return -self.n_rows * float(value) / self.temperature

    def log_likelihood(self, state: Floats) -> float:
        """Return minus the expected loss, in nats."""
        forward = self._forward(*self.parts(state))
        losses = np.einsum("kn,kn->k", forward.reach, forward.errors)
        return -self.n_rows * float(losses @ self._counts) / self.temperature

    def log_density_and_gradient(self, state: Floats) -> tuple[float, Floats]:
        """Return the log density, nats, and its gradient, (n_numbers,) float64."""
        coefficients, thresholds = self.parts(state)
        outputs, reach, up, errors = self._forward(coefficients, thresholds)
        norms, costs = self._norms(coefficients)
        sizes, slopes = self._smooth(coefficients[:, :-1])
        ahead = errors * self._counts[:, np.newaxis]  # expected loss and cost from a node on
        ahead += self.tradeoff * costs[:, np.newaxis]
        by_output = outputs  # becomes the derivatives
        by_output -= self._targets
        by_output *= (2.0 * self._counts)[:, np.newaxis, np.newaxis] * reach[:, np.newaxis]
        by_threshold = np.zeros(len(self._parent))
        for place in self._inner[::-1]:
            above, below = self._children[place]
            difference = ahead[above] - ahead[below]
            ahead[place] += ahead[below] + up[place] * difference
            difference *= reach[place] * up[place] * (1.0 - up[place])
            by_threshold[place] = -difference.sum()
            by_output[place] += self._directions[place][:, np.newaxis] * difference
        value = float(self._weights @ ahead[0]) + self.penalty * float(sizes.sum())
        n_nodes, n_numbers, n_outputs = self._shape
        flat = by_output.reshape(n_nodes * n_outputs, -1)
        gradient = (flat @ self._columns.T).reshape(n_nodes, n_outputs, n_numbers)
        gradient = gradient.transpose(0, 2, 1).copy()
        gradient[:, :-1] += self.penalty * slopes
        gradient[:, :-1] += self._cost_slopes(norms, reach.sum(axis=1)) * coefficients[:, :-1]
        whole = np.concatenate([gradient.ravel(), by_threshold[self._inner]])
        return -self.n_rows * value / self.temperature, -self.n_rows * whole / self.temperature

    def _forward(self, coefficients: Floats, thresholds: Floats) -> _Forward:
        n_nodes, n_numbers, n_outputs = self._shape
        flat = coefficients.transpose(0, 2, 1).reshape(n_nodes * n_outputs, n_numbers)
        outputs = (flat @ self._columns).reshape(n_nodes, n_outputs, -1)
        errors = np.zeros((n_nodes, self._weights.size))
        for target, output in zip(self._targets, outputs.swapaxes(0, 1), strict=True):
            away = output - target
            errors += away * away
        reach, up = np.empty_like(errors), np.empty_like(errors)
        reach[0] = self._weights
        for place in self._inner:
            scores = self._directions[place] @ outputs[place]
            up[place] = expit(scores - thresholds[place])
            above, below = self._children[place]
            np.multiply(reach[place], up[place], out=reach[above])
            np.subtract(reach[place], reach[above], out=reach[below])
        return _Forward(outputs, reach, up, errors)

    def _smooth(self, values: Floats) -> tuple[Floats, Floats]:
        """Return smoothed absolute values and their derivatives."""
        roots = np.sqrt(values**2 + self.smoothing**2)
        return roots - self.smoothing, values / roots

    def _norms(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the smoothed norm of each item on the path to each leaf, and the costs of leaves.

        (K, n_items) and (K,); the costs of other nodes are 0.
        """
        squares = (coefficients[:, :-1] ** 2).sum(axis=2) @ self._incurs.T
        for place, parent in enumerate(self._parent):
            if parent >= 0:
                squares[place] += squares[parent]
        norms = np.sqrt(squares + self.smoothing**2)
        costs = (norms - self.smoothing) @ self.items.costs
        costs[self._inner] = 0.0
        return norms, costs

    def _cost_slopes(self, norms: Floats, reach: Floats) -> Floats:
        """Return the derivatives of the expected cost divided by the coefficients, (K, p, 1)."""
        weights = self.tradeoff * reach[:, np.newaxis] * self.items.costs / norms
        weights[self._inner] = 0.0
        for place in reversed(range(1, len(self._parent))):
            weights[self._parent[place]] += weights[place]
        return (weights @ self._incurs)[:, :, np.newaxis]

    # -- what a user sees --------------------------------------------------------------------------

    def objective(self, state: Floats) -> float:
        """Return the objective J of the module."""
        return -self.log_density(state) * self.temperature / self.n_rows

    def describe(self, state: Floats) -> Mapping[str, float]:
        """Return the expected loss and the other terms of J."""
        unit = -self.temperature / self.n_rows
        return {"loss": unit * self.log_likelihood(state), "price": unit * self.log_prior(state)}

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        return TraceLegend(words={"loss": "expected loss", "price": "penalty and expected cost"})

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters by name."""
        names = ("tradeoff", "penalty", "loss_at", "smoothing", "temperature")
        return {name: getattr(self, name) for name in names}

    def learned(self, state: Floats, cut: float = 0.0) -> ClassifierTree:
        """Return the tree of a state, without its small coefficients.

        A node does not read a feature if its coefficients have a norm of at most `cut`. Gates are
        hard. Leaves are fitted by least squares to all features read on the path.
        """
        coefficients, thresholds = self.parts(state)
        weights = self._forward(coefficients, thresholds).reach.sum(axis=1) * self.n_rows
        tree, standard, feature = self.tree, self.standard, self.tree.basis.feature
        squares = (coefficients[:, :-1] ** 2).sum(axis=2)
        norms = np.sqrt([np.bincount(feature, square, tree.n_features) for square in squares])
        reads = norms > cut
        has, bought = tree.handed_down(reads), reads.copy()
        nodes = []
        for place, node in enumerate(tree.nodes):
            gate, own = no_gate(), coefficients[place]
            if not node.is_leaf:
                bought[list(node.children)] &= ~has[place]
                along = own @ self._directions[place][:, np.newaxis]
                columns = np.flatnonzero(reads[place][feature])
                gate = standard.linear(along[:-1], along[-1], columns, "shares")
            features = np.flatnonzero(bought[place])
            features = features[np.argsort(-norms[place][features], kind="stable")]
            known = np.flatnonzero(has[place][feature])
            leaf = standard.linear(0.5 * own[:-1], 0.5 * own[-1] + 0.5, known, "shares")
            nodes.append(
                ClassifierNode(
                    features, norms[place][features], 0.0, 1.0, False, float(weights[place]), gate,
                    float(thresholds[place]), node.children, leaf,
                )
            )  # fmt: skip
        return replace(tree, nodes=tuple(nodes))

    def _blocks(self) -> tuple[Floats, ArrayLike]:
        n_nodes, n_numbers, n_outputs = self._shape
        ends = np.arange(n_nodes + 1) * n_numbers * n_outputs
        size = int(ends[-1]) + self._inner.size
        return np.full(size, LENGTH), [*ends.tolist(), *([size] if self._inner.size else [])]

    def _identity(self) -> tuple[Sequence[NDArray[Any]], object]:
        arrays = (self._columns, self._targets, self._weights, self._children, self._incurs)
        settings = dict(self.parameters()), self.items.costs.tolist()
        return (*arrays, self._directions), settings
