"""The Dirichlet parameter of each class, where none is given: 1 of two classes, else by evidence.

A parameter of 1 for each of C classes adds C rows to every part of a list: of many classes that
hides what few rows say. Of more than two classes it is ``1 / 2^k >= 1 / C`` that makes the labels
most probable, given a list that a short annealing finds; the list and it are found in turn.
"""

import math

import numpy as np

from bayescascade.methods.rules.models import label_log_likelihood
from bayescascade.methods.rules.posterior import LabelListPosterior
from bayescascade.model.search import Search

_ROUNDS = 3
_STEPS = 20_000  # of an annealing; the default search takes 50,000 or more in each of its chains


def with_chosen_concentration(posterior: LabelListPosterior) -> LabelListPosterior:
    """Return the posterior, whose concentration is 1, with the one that is chosen.

    The choice depends on the rows alone, and on no seed.
    """
    n_classes = posterior.class_weights.size
    if n_classes == 2:
        return posterior
    values = [0.5**k for k in range(int(math.log2(n_classes)) + 1)]
    search = Search("anneal", _STEPS, 1, 1, 0, None, resume=False, progress=None)
    for _ in range(_ROUNDS):
        found = search.run(posterior, default_steps=_STEPS)
        counts = posterior.counts(found.best_state)
        best = int(np.argmax([label_log_likelihood(counts, value) for value in values]))
        if values[best] == posterior.concentration:
            break
        posterior = posterior.with_concentration(values[best])
    return posterior
