"""What the sweeps share: lists that are drawn from, and whether a proposal is accepted.

A work space has several lists of the same things. lists (n_lists, n): the members, in any order;
places (n_lists, n): where each thing is listed, -1 if it is not; sizes (n_lists,): their lengths.
"""

from math import exp

import numpy as np

from bayescascade.base.jit import inner_kernel


@inner_kernel
def enlist(work, which, thing):
    """Put a thing at the end of a list."""
    work.places[which, thing] = work.sizes[which]
    work.lists[which, work.sizes[which]] = thing
    work.sizes[which] += 1


@inner_kernel
def strike(work, which, thing):
    """Take a thing off a list; the last one takes its place."""
    work.sizes[which] -= 1
    place = work.places[which, thing]
    last = work.lists[which, work.sizes[which]]
    work.lists[which, place] = last
    work.places[which, last] = place
    work.places[which, thing] = -1


@inner_kernel
def draw(rng, work, which):
    """Draw a thing from a list, which must not be empty."""
    return work.lists[which, np.int64(rng.random() * work.sizes[which])]


@inner_kernel
def accept(rng, log_ratio):
    """Whether a proposal with this log acceptance ratio is accepted.

    A number is drawn in any case: whether rounding leaves a ratio of 1 just below 1 must not shift
    what is drawn afterwards.
    """
    u = rng.random()
    return log_ratio >= 0.0 or u < exp(log_ratio)
