"""Proposals of lists of rules, with the logs of their ratios.

The moves: *add* inserts a candidate at any position, and *remove* deletes any rule; *replace*
replaces a rule by any candidate, *edit* by one that differs in one condition; *swap* exchanges two
rules, *relocate* moves one to another position. A list with a repeated candidate is invalid.
"""

from math import log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.lists.kernels import layout
from bayescascade.methods.lists.kernels.layout import COLUMN, CURRENT, TRIAL


@inner_kernel
def draw_candidate(rng, candidates, model):
    """Draw a size by its prior weight, then a candidate of that size."""
    u = rng.random()
    size = 1
    while u >= model.size_cdf[size]:
        size += 1
    start, end = candidates.starts[size], candidates.starts[size + 1]
    return start + np.int64(rng.random() * (end - start))


@inner_kernel
def is_listed(rules, n_rules, rule):
    """Whether a candidate is one of the rules."""
    position = 0
    while position < n_rules and rules[position] != rule:
        position += 1
    return position < n_rules


@inner_kernel
def draw_item(rng, candidates):
    """Draw a column, then one of its conditions; -1 if it has none."""
    n_columns = candidates.item_starts.shape[0] - 1
    column = np.int64(rng.random() * n_columns)
    start, end = candidates.item_starts[column], candidates.item_starts[column + 1]
    if start == end:
        return np.int64(-1)
    return start + np.int64(rng.random() * (end - start))


@inner_kernel
def log_item(candidates, item):
    """Log probability that `draw_item` returns this item."""
    column = candidates.items[item, COLUMN]
    n_columns = candidates.item_starts.shape[0] - 1
    n_items = candidates.item_starts[column + 1] - candidates.item_starts[column]
    return -log(n_columns) - log(n_items)


@inner_kernel
def lookup(candidates, members, size):
    """Return the candidate with the items members[:size], ascending; -1 if there is none."""
    low, high = candidates.starts[size], candidates.starts[size + 1]
    while low < high:
        middle = (low + high) // 2
        is_before = False
        for k in range(size):
            if candidates.members[middle, k] != members[k]:
                is_before = candidates.members[middle, k] < members[k]
                break
        if is_before:
            low = middle + 1
        else:
            high = middle
    if low == candidates.starts[size + 1]:
        return np.int64(-1)
    for k in range(size):
        if candidates.members[low, k] != members[k]:
            return np.int64(-1)
    return low


@inner_kernel
def edit(rng, candidates, rule, members):
    """Propose to exchange, add or drop a condition of `rule`, each with 1/3; -1 if impossible."""
    kind = np.int64(3.0 * rng.random())
    size = np.int64(candidates.sizes[rule])
    nothing = np.int64(-1)
    for k in range(size):
        members[k] = candidates.members[rule, k]
    log_ratio = 0.0
    if kind != 1:  # exchange or drop: a condition is removed
        gone = np.int64(rng.random() * size)
        if kind == 2:
            if size == 1:
                return nothing, 0.0
            log_ratio += log_item(candidates, members[gone]) + log(size)
        else:
            log_ratio += log_item(candidates, members[gone])
        for k in range(gone, size - 1):
            members[k] = members[k + 1]
        size -= 1
    if kind != 2:  # exchange or add: one is added
        if size == members.shape[0]:
            return nothing, 0.0
        item = draw_item(rng, candidates)
        if item < 0:
            return nothing, 0.0
        k = int(size)
        while k > 0 and members[k - 1] > item:
            members[k] = members[k - 1]
            k -= 1
        members[k] = item
        column = candidates.items[item, COLUMN]
        if k > 0 and candidates.items[members[k - 1], COLUMN] == column:
            return nothing, 0.0
        if k < size and candidates.items[members[k + 1], COLUMN] == column:
            return nothing, 0.0
        size += 1
        log_ratio -= log_item(candidates, item)
        if kind == 1:
            log_ratio -= log(size)
    return lookup(candidates, members, size), log_ratio


@inner_kernel
def propose(rng, candidates, model, work, move):
    """Write the proposed list; return its log ratio, NaN if there is none, and its changes.

    These are the first and the last part that can differ, and the removed and added candidates, or
    -1.
    """
    rules, trial = work.rules[CURRENT], work.rules[TRIAL]
    n_rules = work.sizes[CURRENT]
    nothing = np.int64(-1)
    impossible = (np.nan, nothing, nothing, nothing, nothing)
    if move == layout.ADD:
        if n_rules == model.max_rules:
            return impossible
        position = np.int64(rng.random() * (n_rules + 1))
        new = draw_candidate(rng, candidates, model)
        if is_listed(rules, n_rules, new):
            return impossible
        for part in range(position):
            trial[part] = rules[part]
        trial[position] = new
        for part in range(position, n_rules):
            trial[part + 1] = rules[part]
        work.sizes[TRIAL] = n_rules + 1
        log_ratio = -model.log_proposal[candidates.sizes[new]]
        return log_ratio, position, n_rules + 1, nothing, new
    if n_rules == 0 or (n_rules == 1 and move >= layout.SWAP):
        return impossible
    position = np.int64(rng.random() * n_rules)
    gone = rules[position]
    if move == layout.REMOVE:
        for part in range(position):
            trial[part] = rules[part]
        for part in range(position, n_rules - 1):
            trial[part] = rules[part + 1]
        work.sizes[TRIAL] = n_rules - 1
        log_ratio = model.log_proposal[candidates.sizes[gone]]
        return log_ratio, position, n_rules - 1, gone, nothing
    work.sizes[TRIAL] = n_rules
    for part in range(n_rules):
        trial[part] = rules[part]
    if move in (layout.REPLACE, layout.EDIT):
        if move == layout.REPLACE:
            new = draw_candidate(rng, candidates, model)
            log_ratio = model.log_proposal[candidates.sizes[gone]]
            log_ratio -= model.log_proposal[candidates.sizes[new]]
        else:
            new, log_ratio = edit(rng, candidates, gone, work.members)
        if new < 0 or is_listed(rules, n_rules, new):
            return impossible
        trial[position] = new
        return log_ratio, position, n_rules, gone, new
    other = np.int64(rng.random() * (n_rules - 1))
    if other >= position:
        other += 1
    first, last = min(position, other), max(position, other)
    if move == layout.SWAP:
        trial[first], trial[last] = rules[last], rules[first]
        return 0.0, first, last, rules[first], rules[last]
    if position < other:
        for part in range(position, other):
            trial[part] = rules[part + 1]
    else:
        for part in range(other, position):
            trial[part + 1] = rules[part]
    trial[other] = gone
    return 0.0, first, last, gone, gone
