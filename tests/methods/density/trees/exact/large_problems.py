"""Random problems of few cells and any weights, and what must hold of whatever is proved of them.

From 10 to 1e7 rows, real weights, weights of 1e-6 to 1e9 side by side, copied columns, priors and
concentrations of a thousandth to a thousand: where sums of log gamma functions lose their digits.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
from scipy.special import logsumexp

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.shallow_trees import ShallowTrees
from bayescascade.methods.density.trees.tree import Tree
from tests import reference
from tests.methods.density.trees.exact.decimal_twin import AllTrees
from tests.methods.density.trees.problems import cell_of, record_of

LEVELS = ((2, 2), (3, 2), (2, 2, 2), (3, 3), (4, 2), (4, 3), (3, 2, 2), (2, 3), (5,), (2, 2, 2, 2))
MOST_LISTED = 3_000  # trees
WEIGHTS = ("few", "whole", "real", "wide")


@dataclass(frozen=True, eq=False)
class LargeProblem:
    """A posterior, and all of its trees in 45 digits."""

    table: Table
    settings: dict
    parameters: dict
    style: str

    @cached_property
    def posterior(self):
        kind = LeafPosterior if "expected_leaves" in self.parameters else BranchPosterior
        return kind(self.table, **self.parameters, **self.settings)

    @cached_property
    def everything(self):
        record = record_of(self.table)
        most = self.posterior.max_branches
        return AllTrees(record, self.parameters, self.settings["partitions"], most)

    def precise(self, tree):
        """Return the log density of a tree in 45 digits."""
        return self.everything.log_density(tree.to_nested(self.posterior.is_nominal))

    def __str__(self):
        levels = self.table.schema.n_levels.tolist()
        kinds = "".join(column.kind[0] for column in self.table.schema.columns)
        return (
            f"{levels} {kinds}, {self.settings}, {self.parameters}, {self.style} weights "
            f"{self.table.weights.tolist()} of {self.table.codes.T.tolist()}"
        )


def draw_problem(rng, style=None, leaves=("uniform", "independent")):
    """Return a random problem; `style` of weights one of WEIGHTS."""
    n_levels = LEVELS[rng.integers(len(LEVELS))]
    schema = Schema(tuple(_column(rng, f"c{j}", q) for j, q in enumerate(n_levels)))
    style = style or WEIGHTS[rng.integers(len(WEIGHTS))]
    n_cells = prod(n_levels)
    cells = rng.choice(n_cells, int(rng.integers(1, n_cells + 1)), replace=False)
    codes = np.array(np.unravel_index(np.sort(cells), n_levels))
    if len(n_levels) > 1 and rng.random() < 0.3:  # the last column copies the first, mostly
        copied = np.minimum(codes[0], n_levels[-1] - 1)
        codes[-1] = np.where(rng.random(copied.size) < 0.9, copied, codes[-1])
    codes = np.unique(codes, axis=1)
    values = [
        [cell_of(column, code) for column, code in zip(schema.columns, row, strict=True)]
        for row in codes.T.tolist()
    ]
    table = Table.from_arrays(
        values, sample_weight=_weights(rng, style, len(values)), schema=schema
    )
    by_levels = bool(rng.random() < 0.4)
    settings = {
        "partitions": "levels" if by_levels else "subsets",
        "max_branches": int(rng.integers(2, 5)),
    }
    parameters = {
        "concentration": float(10 ** rng.uniform(-3, 3)),
        "leaf": str(rng.choice(leaves)),
        "leaf_concentration": float(10 ** rng.uniform(-2, 2)),
    }
    rate = float(10 ** rng.uniform(-2, 2))
    if rng.random() < 0.5:
        parameters["expected_leaves"] = rate
        parameters["max_leaves"] = int(rng.integers(1, 7)) if rng.random() < 0.2 else None
    else:
        parameters["expected_branches"] = rate
        inclusion = float(rng.uniform(0.01, 0.99)) if rng.random() < 0.3 else None
        parameters["feature_inclusion"] = inclusion
    if rng.random() < 0.3:
        parameters |= {"prior": "generative", "stop": float(rng.uniform(0.02, 0.98))}
        parameters.pop("feature_inclusion", None)
    return LargeProblem(table, settings, parameters, style)


def _column(rng, name, n_levels):
    kind = rng.choice(["nominal", "ordinal", "continuous"], p=[0.5, 0.2, 0.3])
    if kind == "continuous":
        edges = np.cumsum(10 ** rng.uniform(-3, 3, n_levels + 1))
        return Column(name, "continuous", (), tuple(edges.tolist()))
    return Column(name, str(kind), tuple(chr(97 + code) for code in range(n_levels)))


def _weights(rng, style, n):
    if style == "wide":
        return 10 ** rng.uniform(-6, 9, n)
    if style == "few":
        return rng.integers(1, 10, n).astype(float)
    weights = rng.dirichlet(np.full(n, 0.7)) * 10 ** rng.uniform(2, 7)
    return np.maximum(np.rint(weights), 1.0) if style == "whole" else weights + 1e-9


def problems_of_sums(problem, exact):
    """Yield what is wrong with what an exact posterior says, tilted or not: nothing if all holds.

    The twin knows the most probable tree and the sum, so that neither the best tree's density, nor
    the claim that none is more probable, nor the evidence is taken from the solver's own words.
    """
    everything, posterior = problem.everything, problem.posterior
    true = problem.precise(exact.tree)
    if abs(float(true) - exact.log_density) > posterior.rounding(exact.tree):
        yield f"tree of {float(true)!r} is said to have {exact.log_density!r}"
    missed = float(everything.log_best - true)
    if missed > exact.gap + exact.rounding:
        yield f"{missed:.3g} nats are missed, gap {exact.gap:.3g}, rounding {exact.rounding:.3g}"
    if exact.gap > 0 and missed < -exact.rounding:
        yield f"a tree is {-missed:.3g} nats better than the best"
    for name, value, error in (
        ("normalizer", everything.log_normalizer, exact.error),
        ("evidence", everything.log_evidence, 2 * exact.error),
    ):
        said = getattr(exact, f"log_{name}")
        if np.isfinite(error) and not abs(float(value) - said) <= error + 1e-12:
            wrong = abs(float(value) - said)
            yield f"log {name} {said!r} is off by {wrong:.3g}, more than {error:.3g}"


def problems_of_draws(problem, exact, trees):
    """Yield what is wrong with draws, or other trees: none may be better than the best."""
    for tree in set(trees):
        above = float(problem.precise(tree) - problem.precise(exact.tree))
        if above > exact.gap + exact.rounding:
            yield f"a tree is {above:.3g} nats above the best, gap {exact.gap:.3g}"


def problems_of_order(problem, exact, k=30):
    """Yield what is wrong with the most probable trees: their densities, their order, repeats."""
    found = exact.k_best(k)
    if len({one.tree for one in found}) < len(found):
        yield "a tree is listed twice"
    true = [float(problem.precise(one.tree)) for one in found]
    for one, own in zip(found, true, strict=True):
        if abs(own - one.log_density) > 2 * exact.rounding + 1e-9:
            yield f"a tree of {own!r} is listed with {one.log_density!r}"
    if any(after > before + 2 * exact.rounding for before, after in pairwise(true)):
        yield "a tree is more probable than one before"
    if abs(float(problem.everything.log_best) - true[0]) > exact.rounding + 1e-12:
        yield "the first tree is not the best"


def problems_of_dependent(problem, depth, rng):
    """Yield what is wrong with sums over dependent leaves of a problem's table, to some depth.

    Each tree is weighed by the posterior's own log density, which knows nothing of the sums.
    """
    posterior = BranchPosterior(
        problem.table,
        problem.parameters.get("expected_branches", 2.0),
        problem.parameters["concentration"],
        leaf="dependent",
        leaf_concentration=problem.parameters["leaf_concentration"],
        partitions="levels",
        prior="generative" if "stop" in problem.parameters else "poisson",
        stop=problem.parameters.get("stop", 0.5),
    )
    n_levels = tuple(posterior.schema.n_levels.tolist())
    nested = reference.all_trees(n_levels, posterior.is_nominal, max(n_levels), "levels")
    trees = [Tree.from_nested(tree, posterior.is_nominal) for tree in nested[:MOST_LISTED]]
    trees = [tree for tree in trees if tree.depth <= depth]
    logs = np.array([posterior.log_density(tree) for tree in trees])
    found = ShallowTrees(posterior, depth)
    tree, log_density = found.tree, found.log_density
    if logs.max() > log_density + found.rounding:
        yield f"a tree is {logs.max() - log_density:.3g} nats better"
    off = abs(found.log_normalizer - logsumexp(logs))
    if len(nested) <= MOST_LISTED and off > found.rounding + 1e-9:
        yield f"sum {logsumexp(logs)!r}, said is {found.log_normalizer!r}"
    for temper in (None, 50.0):
        again = found.tempered(temper)
        if any(each.depth > depth for each in (again.tree, *again.sample(20, rng))):
            yield f"a tree is deeper than {depth}"
    if found.tempered(50.0).tempered(None).tree != tree:
        yield "untempered again, the tree is another"
