"""The uses that splits of a forest ask for, and the steps of the solver (only numba).

Trees are those of `methods.budget.forests.forest`: the nodes of all trees in preorder, so that a
subtree is a range of nodes, and its splits are a range of splits.

The solver is Dinic's method for maximum flow, in whole numbers. The arcs are sorted by tail, and
each has the index of its reverse. The source and the sink are not nodes: `supply` is the flow that
can still enter at a node, `room` the flow that can still leave there. A round measures the distance
of every node from the sink, through arcs with residual capacity, and then sends flow along shortest
paths until none is left.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel


@kernel
def find_first_items(
    parent: NDArray[np.int32],
    column: NDArray[np.int32],
    item_starts: NDArray[np.int64],
    items: NDArray[np.int64],
    slot_starts: NDArray[np.int64],
    is_first: NDArray[np.bool_],
) -> None:
    """Write for each item of a split whether no split above it has the same item.

    `parent` (n_splits,) int32, -1 at roots; `column` (n_splits,) int32: the column of each split;
    the items of a column are items[item_starts[column]:item_starts[column + 1]]; `slot_starts`
    (n_splits + 1,) int64 numbers a split's items among all, and `is_first` (slot_starts[-1],) bool
    is written.
    """
    for split in range(parent.shape[0]):
        first = item_starts[column[split]]
        for place in range(first, item_starts[column[split] + 1]):
            is_new, above = True, parent[split]
            while is_new and above >= 0:
                for other in range(item_starts[column[above]], item_starts[column[above] + 1]):
                    if items[other] == items[place]:
                        is_new = False
                above = parent[above]
            is_first[slot_starts[split] + place - first] = is_new


@kernel
def mark_uses(
    kept: NDArray[np.bool_],
    edge_starts: NDArray[np.int64],
    edge_use: NDArray[np.int32],
    used: NDArray[np.bool_],
) -> None:
    """Mark in `used`, (n_uses,) bool, the uses of kept splits; edges as in `PruningProgram`."""
    for split in range(kept.shape[0]):
        if kept[split]:
            for edge in range(edge_starts[split], edge_starts[split + 1]):
                used[edge_use[edge]] = True


class FlowNetwork(NamedTuple):
    """A network and its flow; `residual`, `supply` and `room` are changed."""

    starts: NDArray[np.int64]  # (n_nodes + 1,): the arcs of node x are starts[x]:starts[x + 1]
    head: NDArray[np.int32]  # (n_arcs,)
    reverse: NDArray[np.int32]  # (n_arcs,) the reverse arc
    residual: NDArray[np.int64]  # (n_arcs,) >= 0: residual capacities
    supply: NDArray[np.int64]  # (n_nodes,) >= 0
    room: NDArray[np.int64]  # (n_nodes,) >= 0


class FlowWorkspace(NamedTuple):
    """The work space of a round."""

    distance: NDArray[np.int32]  # (n_nodes,) from the sink; n_nodes + 1 if there is no path
    queue: NDArray[np.int32]  # (n_nodes,)
    current: NDArray[np.int64]  # (n_nodes,) the first arc not yet exhausted in this round
    path: NDArray[np.int64]  # (n_nodes,) arcs


@kernel
def measure_distances(network: FlowNetwork, work: FlowWorkspace) -> bool:
    """Write the distances from the sink; return whether any supply can still reach it."""
    n_nodes, tail = network.supply.shape[0], 0
    for node in range(n_nodes):
        if network.room[node] > 0:
            work.distance[node], work.queue[tail] = 1, node
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
def advance_flow(network: FlowNetwork, work: FlowWorkspace) -> None:
    """Send flow along shortest paths to the sink until there are none left."""
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
    """Return the next arc of a node with residual capacity towards the sink, or -1."""
    for arc in range(work.current[node], network.starts[node + 1]):
        is_nearer = work.distance[network.head[arc]] == work.distance[node] - 1
        if is_nearer and network.residual[arc] > 0:
            work.current[node] = arc
            return arc
    work.current[node] = network.starts[node + 1]
    return -1


@inner_kernel
def _send(network, work, source, last, length):
    """Send the maximum flow along a path; return the length of its part with residual capacity."""
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
