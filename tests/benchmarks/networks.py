"""Bayesian networks as densities: a Chow-Liu tree, or pgmpy finds the graph; tables are smoothed.

The probability of a level given its parents' is ``(n + e / (q r)) / (m + e / q)`` for ``n`` rows of
the ``m`` that have those parents' levels, ``r`` levels, ``q`` combinations of the parents' levels
and an equivalent sample size ``e``: the posterior mean under the BDeu prior.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import rel_entr

EQUIVALENT_SAMPLE_SIZE = 10.0


class BayesianNetwork:
    """The density of a graph with smoothed conditional tables; a graph is parents by column."""

    def __init__(self, table, graph):
        names, sizes = table.schema.names, table.schema.n_levels
        self._tables = []
        for name in names:
            columns = [names.index(parent) for parent in graph[name]] + [names.index(name)]
            counts = np.zeros(sizes[columns])
            np.add.at(counts, tuple(table.codes[columns]), table.weights)
            counts += EQUIVALENT_SAMPLE_SIZE / counts.size
            log_tables = np.log(counts / counts.sum(axis=-1, keepdims=True))
            self._tables.append((columns, log_tables))

    def score_rows(self, table):
        """Return the log density of each distinct row, nats."""
        parts = [values[tuple(table.codes[columns])] for columns, values in self._tables]
        return np.sum(parts, axis=0)


def hill_climbed(table):
    """Return the network that pgmpy's hill climbing finds by BIC."""
    from pgmpy.causal_discovery import HillClimbSearch

    frame = _frame(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = HillClimbSearch(scoring_method="bic-d", return_type="dag", show_progress=False).fit(
            frame
        )
    return BayesianNetwork(table, _graph(table, found.causal_graph_.edges()))


def chow_liu(table):
    """Return the Chow-Liu tree: the spanning tree of the largest mutual information."""
    sizes, names = table.schema.n_levels, table.schema.names
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows = np.concatenate(
        [np.eye(n)[codes] for n, codes in zip(sizes, table.codes, strict=True)], axis=1
    )
    shares = (rows.T * table.weights) @ rows / table.weights.sum()
    single = shares.diagonal()
    worth = rel_entr(shares, np.outer(single, single))
    information = np.add.reduceat(np.add.reduceat(worth, starts, axis=0), starts, axis=1)
    tree = minimum_spanning_tree(-np.triu(np.maximum(information, 0.0) + 1.0, 1))  # 0 is no edge
    order, above = breadth_first_order(tree, 0, directed=False)
    edges = [(names[above[j]], names[j]) for j in order[1:].tolist()]
    return BayesianNetwork(table, _graph(table, edges))


NETWORKS = {
    "hill-climbed network": hill_climbed,
    "Chow-Liu tree": chow_liu,
}


def _frame(table):
    """Return the rows, each as often as it stands for, as categories of the whole domain."""
    rows = np.repeat(table.codes, table.weights.astype(np.int64), axis=1)
    columns = zip(table.schema.names, rows, table.schema.n_levels, strict=True)
    return pd.DataFrame(
        {name: pd.Categorical(codes, categories=range(n)) for name, codes, n in columns}
    )


def _graph(table, edges):
    parents = {name: [] for name in table.schema.names}
    for parent, child in edges:
        parents[child].append(parent)
    return {name: tuple(above) for name, above in parents.items()}
