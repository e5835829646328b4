"""Trees found without a search: where chains start, and what there is at an early Ctrl-C."""

from contextlib import suppress

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.methods.cascades.det import DensityEstimationTree
from bayescascade.methods.cascades.posterior import CascadePosterior
from bayescascade.methods.cascades.tree import Tree

_QUICK = 1.0  # seconds that a greedy tree may take where Ctrl-C came before any other


def greedy_start(posterior: CascadePosterior) -> Tree:
    """Return the greedy tree; raises ParameterError if it has more leaves than are allowed."""
    tree = DensityEstimationTree(random_state=0).fit(posterior.table).tree_.tree
    if posterior.log_density(tree) == -np.inf:
        raise ParameterError(
            f'start must be "random" where the greedy tree has more leaves, {tree.n_leaves}, '
            f'than max_leaves, {posterior.parameters()["max_leaves"]}, got "greedy"'
        )
    return tree


def quick_tree(posterior: CascadePosterior) -> Tree:
    """Return a greedy tree or the root alone, whichever is more probable."""
    trees = [Tree.from_nested(None, posterior.is_nominal)]
    with suppress(KeyboardInterrupt):
        det = DensityEstimationTree(random_state=0, time_limit=_QUICK)
        trees.append(det.fit(posterior.table).tree_.tree)
    return max(trees, key=posterior.log_density)
