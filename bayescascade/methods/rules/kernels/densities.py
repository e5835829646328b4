"""The log densities of `bayescascade.methods.rules.models`, term by term, in nats."""

from math import lgamma, log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.rules.kernels.layout import DENSITY

__all__ = ["log_prior", "part_value", "shape_value"]


@inner_kernel
def _log_gamma(table, count, alpha):
    """lnG(count + alpha), from a table where weights are whole."""
    index = np.int64(count)
    if index < table.shape[0]:
        return table[index]
    return lgamma(count + alpha)


@inner_kernel
def log_prior(candidates, model, rules, n_rules, used):
    """Log prior of a list but for its volumes; used (H + 1,) int64 is scratch."""
    used[:] = 0
    value = model.log_length[n_rules]
    log_norm = _log_norm(candidates, model, used)
    for position in range(n_rules):
        size = candidates.sizes[rules[position]]
        n_of_size = candidates.starts[size + 1] - candidates.starts[size]
        value += model.log_size[size] - log_norm - log(n_of_size - used[size])
        used[size] += 1
        if used[size] == n_of_size:
            log_norm = _log_norm(candidates, model, used)
    return value


@inner_kernel
def _log_norm(candidates, model, used):
    """Log of the summed weights of the sizes of which candidates are left."""
    log_norm = -np.inf
    for size in range(1, model.log_size.shape[0]):
        if candidates.starts[size + 1] - candidates.starts[size] > used[size]:
            log_norm = np.logaddexp(log_norm, model.log_size[size])
    return log_norm


@inner_kernel
def part_value(model, counts, log_volume):
    """Contribution of a part to the log likelihood, but for `shape_value`."""
    value = 0.0
    for label in range(counts.shape[0]):
        value += _log_gamma(model.log_gamma, counts[label], model.alpha)
        value -= _log_gamma(model.log_gamma, 0.0, model.alpha)
    if model.kind == DENSITY:
        return value - counts[0] * log_volume
    total = 0.0
    for label in range(counts.shape[0]):
        total += counts[label]
    all_alpha = counts.shape[0] * model.alpha
    value += _log_gamma(model.log_gamma_all, 0.0, all_alpha)
    return value - _log_gamma(model.log_gamma_all, total, all_alpha)


@inner_kernel
def shape_value(model, n_rules):
    """Contribution of the number of parts to the log likelihood."""
    if model.kind != DENSITY:
        return 0.0
    all_alpha = (n_rules + 1) * model.alpha
    return lgamma(all_alpha) - lgamma(model.total + all_alpha)
