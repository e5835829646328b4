"""The exact posterior of what a tree buys: all sets of each leaf are weighed, leaf by leaf."""

from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.classifier_trees.kernels.buying import log_marginals
from bayescascade.methods.classifier_trees.posterior import Purchases, SubmodularTreePosterior
from bayescascade.methods.classifier_trees.selection import MOST_FEATURES
from bayescascade.model.search import Search
from bayescascade.model.solution import Certificate, Solution

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_WORK = {"auto": 1e9, "exact": 1e12}
"""Multiplications on the sets of a leaf."""

_N_DRAWS = 250  # of each chain that stands for independent draws


def solved(posterior: SubmodularTreePosterior, search: Search) -> Solution[Purchases]:
    """Return the most probable state, and draws, leaf by leaf; TooLargeError if it is too much."""
    started = perf_counter()
    model = posterior.model
    generator = np.random.default_rng(search.random_state)
    best = model.required.copy()
    paid = np.zeros((len(best), posterior.items.n_items))
    draws = np.repeat(best[np.newaxis], search.n_chains * _N_DRAWS, axis=0)
    n_sets = 0
    for leaf, node in enumerate(posterior.nodes):
        found = node.explained_by_sets(MOST_WORK[search.search])
        if found is None:
            n_open = int((~model.required).sum(axis=1).max())
            raise TooLargeError(
                f'search must not be "exact" where a leaf has more than {MOST_FEATURES} features '
                f"to choose from, or many columns, got {n_open} features",
                f"the sets of {n_open} features",
            )
        open_features, values = found
        pays = _weigh(posterior, leaf, open_features, values)
        bits = np.arange(open_features.size)
        best[leaf, open_features] = (int(values.argmax()) >> bits) & 1
        chances = softmax(values)
        paid[leaf] = [float(chances[each].sum()) for each in pays]
        drawn = generator.choice(values.size, len(draws), p=chances)
        draws[:, leaf, open_features] = (drawn[:, np.newaxis] >> bits) & 1
        n_sets += values.size
    states = [posterior.lifted(one) for one in draws]
    state = posterior.lifted(best)
    return Solution(
        result=posterior.by_node(paid),
        state=state,
        log_density=posterior.log_density(state),
        certificate=Certificate(0.0, f"{n_sets:,} sets", None),
        seconds=perf_counter() - started,
        draws=[states[i : i + _N_DRAWS] for i in range(0, len(states), _N_DRAWS)],
    )


def _weigh(
    posterior: SubmodularTreePosterior, leaf: int, open_features: Places, values: Numbers
) -> list[NDArray[np.bool_]]:
    """Replace what sets explain by their log densities; return which sets pay for each item."""
    model, items = posterior.model, posterior.items
    required, starts = model.required[leaf], model.starts
    varies = np.diagonal(model.squares[leaf])[: starts[-1]] > 0
    widths = np.add.reduceat(varies.astype(np.float64), starts[:-1])
    paid = items.paid(required[np.newaxis])[0]
    n_columns = np.array([widths[required].sum()])
    sets = np.arange(values.size)
    for feature in open_features.tolist():
        n_columns = np.concatenate([n_columns, n_columns + widths[feature]])
    log_marginals(values, n_columns, model.weights[leaf], model.contrasts[leaf])
    pays = []
    for item in range(items.n_items):
        asking = (
            1 << b for b, f in enumerate(open_features.tolist()) if item in items.of_column(f)
        )
        is_paid = (sets & sum(asking) != 0) | paid[item]
        values -= np.where(is_paid, model.price[leaf] * items.costs[item], 0.0)
        pays.append(is_paid)
    return pays
