"""A block of Metropolis-Hastings steps on a tree in the work space."""

import numpy as np

from bayescascade._jit import kernel
from bayescascade.cascades.kernels.layout import (
    CHANGE,
    FEATURE,
    GROW,
    INNER,
    N_FREE,
    PARENT,
    POSITION,
    PRUNE,
    SWAP,
    TWIGS,
)
from bayescascade.cascades.kernels.moves import (
    change_above,
    change_twig,
    exchange,
    grow,
    prune,
    rotate,
    same_splits_below,
    transpose,
)
from bayescascade.cascades.kernels.subtrees import export, log_density

__all__ = ["sweep"]


@kernel
def sweep(rng, table, model, work, n_steps, beta, move_cdf, proposed, accepted, summary):
    """Run steps on ``exp(beta * log density)`` from the tree in the work space.

    move_cdf (4,) float64: cumulative selection probabilities of MOVES; proposed, accepted (4,)
    int64: counts, added to. The best tree visited, the first one included, is left in
    ``work.best_*``, and `summary` (3,) float64 is written: the log density reached, that of the
    best tree, and its number of nodes.

    Returns the steps done: fewer than `n_steps` only when the work space is nearly full.
    """
    nodes, sizes = work.nodes, work.sizes
    best_size = export(work, work.best_feature, work.best_parent, work.best_block)
    best = log_density(model, work)
    current = best
    done = 0
    room = 2 * min(work.order.shape[0], model.max_branches)
    while done < n_steps and sizes[N_FREE] > room:
        u = rng.random()
        gain = np.nan
        if u < move_cdf[GROW]:
            move = GROW
            gain = grow(rng, table, model, work, beta)
        elif u < move_cdf[PRUNE]:
            move = PRUNE
            gain = prune(rng, table, model, work, beta)
        elif u < move_cdf[CHANGE]:
            move = CHANGE
            if sizes[INNER] > 0:
                node = work.lists[INNER, np.int64(rng.random() * sizes[INNER])]
                if nodes[node, POSITION + TWIGS] >= 0:
                    gain = change_twig(rng, table, model, work, beta, node)
                else:
                    gain = change_above(rng, table, model, work, beta, node)
        else:
            move = SWAP
            if sizes[INNER] > 1:
                index = np.int64(rng.random() * (sizes[INNER] - 1))
                if index >= nodes[0, POSITION + INNER]:  # any inner node but the root
                    index += 1
                child = work.lists[INNER, index]
                parent = nodes[child, PARENT]
                if nodes[child, FEATURE] == nodes[parent, FEATURE]:
                    gain = rotate(rng, table, model, work, beta, parent, child)
                elif same_splits_below(work, parent):
                    gain = transpose(rng, table, model, work, beta, parent)
                else:
                    gain = exchange(rng, table, model, work, beta, parent, child)
        proposed[move] += 1
        done += 1
        if not np.isnan(gain):
            accepted[move] += 1
            current += gain
            if current > best + 1e-8:  # more than rounding, which is then removed
                current = log_density(model, work)
                if current > best:
                    best = current
                    best_size = export(work, work.best_feature, work.best_parent, work.best_block)
    summary[0] = log_density(model, work)
    summary[1] = best
    summary[2] = best_size
    return done
