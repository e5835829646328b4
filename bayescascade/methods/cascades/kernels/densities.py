"""The log densities of `bayescascade.methods.cascades.posterior`, term by term, in nats."""

from math import lgamma, log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.kernels.layout import LEAF_MODEL

__all__ = ["branch_value", "leaf_value", "log_gamma", "shape_value"]


@inner_kernel
def log_gamma(model, count):
    """lnG(count + alpha), from the table where weights are whole."""
    index = np.int64(count)
    if index < model.log_gamma.shape[0]:
        return model.log_gamma[index]
    return lgamma(count + model.alpha)


@inner_kernel
def leaf_value(model, count, log_volume):
    """Contribution of a leaf to the log density, but for `shape_value` and `inside`."""
    value = -model.rate
    if model.kind == LEAF_MODEL:
        value = log_gamma(model, count) - log_gamma(model, 0.0)
    return value if model.independent else value - count * log_volume


@inner_kernel
def branch_value(model, counts, b, total):
    """Contribution of an inner node with branches of weights counts[:b]."""
    if model.kind == LEAF_MODEL:
        return 0.0
    value = -model.rate + b * log(model.rate) - lgamma(b + 1.0)
    value += lgamma(b * model.alpha) - lgamma(b * model.alpha + total)
    for branch in range(b):
        value += log_gamma(model, counts[branch]) - log_gamma(model, 0.0)
    return value


@inner_kernel
def shape_value(model, n_leaves, n_used, total):
    """Contribution of the numbers of leaves and of columns used."""
    if n_leaves > model.max_leaves:
        return -np.inf
    value = model.inclusion[n_used]
    if model.kind == LEAF_MODEL:
        value += -model.rate + n_leaves * log(model.rate) - lgamma(n_leaves + 1.0)
        value += lgamma(n_leaves * model.alpha) - lgamma(total + n_leaves * model.alpha)
    return value
