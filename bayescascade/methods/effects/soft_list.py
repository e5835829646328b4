"""The most probable rule list for where h > 0, by labels that h says softly.

The label u of each row is "better" with weight ``(1 + v) / 2`` and "not" with ``(1 - v) / 2``,
``v = h / (2 mean |h|)`` within [-1, 1]. If h is the effect, that is ``P(u = 1 | x) = (1 + p_1 -
p_0) / 2`` but for the scale of the effect. A row whose h is near 0 says next to nothing. The thesis
takes the sign of h, and CORELS (Goh 2018, 1466-1485): there a row of |h| = 0.001 says as much as
any other, and a list repeats the errors of h about small effects. Weights are multiples of 1/16.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.data.declarations import Declarations
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import LabeledRows
from bayescascade.methods.rules.antecedents import Antecedent
from bayescascade.methods.rules.classifier import RuleListClassifier
from bayescascade.methods.rules.exact import best_list

Floats = NDArray[np.float64]

_SOFTNESS = 0.5  # of a label: v of a row of mean |h|
_GRID = 16  # weights of labels are multiples of 1 / this
_STEPS = 20_000  # of annealing a list
_WORK, _MOST_VISITED = 3_000_000_000, 20_000  # of a proof: rows by candidates by prefixes; prefixes


def soft_labels(frame: pd.DataFrame, h: Floats, n_bins: int, owner: str) -> LabeledRows:
    """Return every row twice, better and not, each with its weight."""
    scale = _SOFTNESS / (np.abs(h).mean() or 1.0)
    better = np.round((1.0 + np.clip(scale * h, -1.0, 1.0)) / 2.0 * _GRID) / _GRID
    twice = pd.concat([frame, frame], ignore_index=True)
    given = GivenRows.labeled(
        twice, np.repeat([True, False], len(h)), np.concatenate([better, 1.0 - better])
    )
    return LabeledRows.of(given, n_bins=n_bins, kinds=Declarations(missing="level"), owner=owner)


def most_probable_list(
    labeled: LabeledRows, max_size: int, min_support: float, memory_limit: float, seed: int
) -> tuple[tuple[Antecedent, ...], float]:
    """Return its rules, and by how many nats another list may be more probable."""
    first = RuleListClassifier(
        max_size=max_size, min_support=min_support, search="anneal", n_chains=2, n_steps=_STEPS,
        n_jobs=1, random_state=seed, memory_limit=memory_limit,
    ).fit(labeled)  # fmt: skip
    posterior = first.posterior_
    work = len(posterior.antecedents) * labeled.table.n_distinct
    found = best_list(
        posterior, start=first.run_.best_state,
        max_visited=int(np.clip(_WORK // work, 10, _MOST_VISITED)),
        memory_limit=memory_limit * 1e9,
    )  # fmt: skip
    return tuple(posterior.antecedents[index] for index in found.state.rules), float(found.gap)
