"""The compiled steps of both solvers (numba, nothing else).

A maximum flow in whole numbers by Dinic's method: each arc lies beside others of its tail, and
knows its reverse. The source and the sink are not nodes: `supply` is what may still enter at a
node, `room` what may still leave there. A round measures the distance of every node from the sink,
through arcs that can take more flow, and then sends flow along shortest paths until none is left.

The primal-dual method: edges are ordered by use here: those of use u are use_starts[u]:use_starts[u
+ 1], and edge e is of split[e]. An edge's dual variable is what its split pays for its use.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

__all__ = [
    "FlowNetwork",
    "FlowWork",
    "advance_flow",
    "measure_direction",
    "measure_distances",
    "move_duals",
    "new_flow_work",
    "prune_trees",
]


class FlowNetwork(NamedTuple):
    """A network and the flow in it, of which `residual`, `supply` and `room` are written."""

    starts: NDArray[np.int64]  # (n_nodes + 1,): the arcs of node x are starts[x]:starts[x + 1]
    head: NDArray[np.int32]  # (n_arcs,)
    reverse: NDArray[np.int32]  # (n_arcs,) the arc back
    residual: NDArray[np.int64]  # (n_arcs,) >= 0: flow that each can still take
    supply: NDArray[np.int64]  # (n_nodes,) >= 0
    room: NDArray[np.int64]  # (n_nodes,) >= 0


class FlowWork(NamedTuple):
    """What a round works in."""

    distance: NDArray[np.int32]  # (n_nodes,) from the sink; n_nodes + 1 where no path leads there
    queue: NDArray[np.int32]  # (n_nodes,)
    current: NDArray[np.int64]  # (n_nodes,) the first arc not yet found useless in this round
    path: NDArray[np.int64]  # (n_nodes,) arcs


def new_flow_work(n_nodes: int) -> FlowWork:
    """Return work space for a network of so many nodes."""
    return FlowWork(
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
    )


@kernel
def measure_distances(network: FlowNetwork, work: FlowWork) -> bool:
    """Write the distances from the sink; return whether any supply can still get there."""
    n_nodes = network.supply.shape[0]
    tail = 0
    for node in range(n_nodes):
        if network.room[node] > 0:
            work.distance[node] = 1
            work.queue[tail] = node
            tail += 1
        else:
            work.distance[node] = n_nodes + 1
    place, is_open = 0, False
    while place < tail:
        node = work.queue[place]
        place += 1
        is_open |= network.supply[node] > 0
        for arc in range(network.starts[node], network.starts[node + 1]):
            before = network.head[arc]
            if work.distance[before] > n_nodes and network.residual[network.reverse[arc]] > 0:
                work.distance[before] = work.distance[node] + 1
                work.queue[tail] = before
                tail += 1
    return is_open


@kernel
def advance_flow(network: FlowNetwork, work: FlowWork) -> None:
    """Send flow along paths that get nearer to the sink by each arc, until there is none left.

    Distances are those of `measure_distances`; those of nodes found useless are overwritten.
    """
    n_nodes = network.supply.shape[0]
    for node in range(n_nodes):
        work.current[node] = network.starts[node]
    for source in range(n_nodes):
        node, length = source, 0
        while network.supply[source] > 0 and work.distance[source] <= n_nodes:
            if work.distance[node] == 1 and network.room[node] > 0:
                length = _send(network, work, source, node, length)
                node = source if length == 0 else network.head[work.path[length - 1]]
                continue
            arc = _next_arc(network, work, node)
            if arc >= 0:
                work.path[length] = arc
                length += 1
                node = network.head[arc]
            else:
                work.distance[node] = n_nodes + 1
                if length > 0:
                    length -= 1
                    node = network.head[network.reverse[work.path[length]]]


@inner_kernel
def _next_arc(network, work, node):
    """Return the next arc of a node that can take flow and leads nearer to the sink, or -1."""
    for arc in range(work.current[node], network.starts[node + 1]):
        is_nearer = work.distance[network.head[arc]] == work.distance[node] - 1
        if is_nearer and network.residual[arc] > 0:
            work.current[node] = arc
            return arc
    work.current[node] = network.starts[node + 1]
    return -1


@inner_kernel
def _send(network, work, source, last, length):
    """Send what a path of some length takes; return up to where it can still take more."""
    amount = min(network.supply[source], network.room[last])
    for place in range(length):
        amount = min(amount, network.residual[work.path[place]])
    network.supply[source] -= amount
    network.room[last] -= amount
    left = length
    for place in range(length - 1, -1, -1):
        arc = work.path[place]
        network.residual[arc] -= amount
        network.residual[network.reverse[arc]] += amount
        if network.residual[arc] == 0:
            left = place
    return left


@kernel
def prune_trees(
    parent: NDArray[np.int32],
    loss: NDArray[np.float64],
    split: NDArray[np.int32],
    dual: NDArray[np.float64],
    value: NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> float:
    """Prune each tree by itself, given what splits pay; return by how much that lessens losses.

    From the leaves up, `value` (n_splits,) becomes what the best pruning of a subtree gains if its
    top split is kept: less than its loss and duals, plus those of the splits below worth keeping.
    `kept` (n_splits,) is written.
    """
    for v in range(parent.shape[0]):
        value[v] = -loss[v]
    for edge in range(split.shape[0]):
        value[split[edge]] -= dual[edge]
    total = 0.0
    for v in range(parent.shape[0] - 1, -1, -1):
        if value[v] > 0.0:
            if parent[v] >= 0:
                value[parent[v]] += value[v]
            else:
                total += value[v]
    for v in range(parent.shape[0]):
        kept[v] = value[v] > 0.0 and (parent[v] < 0 or kept[parent[v]])
    return total


@kernel
def measure_direction(
    use_starts: NDArray[np.int64],
    split: NDArray[np.int32],
    price: NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> tuple[float, float]:
    """Return the squared length of the subgradient and the price of the uses of kept splits.

    The subgradient is whether each edge's split is kept, less the mean of that over its use's
    edges, along which their sum does not change.
    """
    squared, paid = 0.0, 0.0
    for use in range(price.shape[0]):
        first, last = use_starts[use], use_starts[use + 1]
        n_kept = 0
        for edge in range(first, last):
            if kept[split[edge]]:
                n_kept += 1
        squared += n_kept - n_kept * n_kept / (last - first)
        if n_kept > 0:
            paid += price[use]
    return squared, paid


@kernel
def move_duals(
    use_starts: NDArray[np.int64],
    split: NDArray[np.int32],
    price: NDArray[np.float64],
    kept: NDArray[np.bool_],
    step: float,
    dual: NDArray[np.float64],
) -> None:
    """Let kept splits pay a step more, and go to the nearest duals >= 0 that add up to prices."""
    for use in range(price.shape[0]):
        first, last = use_starts[use], use_starts[use + 1]
        for edge in range(first, last):
            if kept[split[edge]]:
                dual[edge] += step
        surplus = _surplus(dual, first, last, price[use])
        for edge in range(first, last):
            dual[edge] = max(dual[edge] - surplus, 0.0)


@inner_kernel
def _surplus(dual, first, last, price):
    """Return what to take from each of some duals, those at 0 excepted, to add up to a price.

    Duals that would become negative are left out until none would (Michelot 1986).
    """
    surplus, n_before = -np.inf, last - first + 1
    while True:
        total, n_larger = 0.0, 0
        for edge in range(first, last):
            if dual[edge] > surplus:
                total += dual[edge]
                n_larger += 1
        if n_larger == 0 or n_larger >= n_before:  # the latter by rounding, or when it is found
            return surplus
        surplus, n_before = (total - price) / n_larger, n_larger
