"""Shared by all sweeps: lists with uniform draws, and the acceptance of proposals.

A work space has several lists of the same items. lists (n_lists, n): the members, in any order;
places (n_lists, n): the place of each item, -1 if it is not in the list; sizes (n_lists,): their
lengths.
"""

from math import exp

import numpy as np

from bayescascade.base.jit import inner_kernel


@inner_kernel
def enlist(work, which, thing):
    """Append an item to a list."""
    work.places[which, thing] = work.sizes[which]
    work.lists[which, work.sizes[which]] = thing
    work.sizes[which] += 1


@inner_kernel
def strike(work, which, thing):
    """Remove an item from a list; the last item takes its place."""
    work.sizes[which] -= 1
    place = work.places[which, thing]
    last = work.lists[which, work.sizes[which]]
    work.lists[which, place] = last
    work.places[which, last] = place
    work.places[which, thing] = -1


@inner_kernel
def draw(rng, work, which):
    """Draw an item from a list, which must not be empty."""
    return work.lists[which, np.int64(rng.random() * work.sizes[which])]


@inner_kernel
def accept(rng, log_ratio):
    """Return whether a proposal with this log acceptance ratio is accepted.

    A number is always drawn: rounding may leave a ratio of 1 just below 1, and later draws must not
    depend on that.
    """
    u = rng.random()
    return log_ratio >= 0.0 or u < exp(log_ratio)
