"""The densities that are compared, each with its defaults, and settings chosen where it is learned.

Goh (2018), section 3.3: a leaf cascade expects 5 or 8 leaves, a branch cascade 2 or 3 branches, as
nested cross-validation says, or the evidence where that is known exactly; the density list has
fixed settings. The histogram and the density estimation tree choose their own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

from bayescascade.data.dealing import deal, with_weights
from bayescascade.data.table import Table
from bayescascade.methods.cascades.det import DensityEstimationTree
from bayescascade.methods.cascades.estimators import BranchCascade, LeafCascade
from bayescascade.methods.histogram import SmoothedHistogram
from bayescascade.methods.rules.estimators import DensityRuleList
from bayescascade.model.estimator import DensityEstimator
from bayescascade.model.row_densities import RowDensities

__all__ = ["CONTENDERS", "Learned", "best_of"]

N_FOLDS = 2

Estimator = TypeVar("Estimator", bound=DensityEstimator[Any, Any, Any])


class Learned(NamedTuple):
    """A density that was learned.

    Parameters
    ----------
    model : RowDensities
    n_parts : float
        Leaves of a tree, rules of a list and its else, cells of a histogram; infinite if there
        are more than 1.8e308.
    settings : mapping of str to float
        What the rows decided.
    """

    model: RowDensities
    n_parts: float
    settings: Mapping[str, float]


def best_of(candidates: Sequence[Estimator], table: Table, seed: int) -> Estimator:
    """Return the candidate whose settings suit the table best, fitted to it.

    By the evidence where the exact search tells that of every candidate; else by the log likelihood
    in folds, as in the thesis.

    Parameters
    ----------
    candidates : sequence of estimators
        All are fitted. The first of equally good ones is chosen.
    table : Table
    seed : int >= 0
        Of the folds, which are the same for all candidates.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C ended the search of one: it would not be the candidate's best.
    """
    fitted = [_fitted(candidate, table) for candidate in candidates]
    evidences = [_log_evidence(model) for model in fitted]
    scores = [evidence for evidence in evidences if evidence is not None]
    if len(scores) < len(fitted):
        scores = _scores_in_folds(candidates, table, seed)
    return fitted[int(np.argmax(scores))]


def _log_evidence(model: Estimator) -> float | None:
    certificate = model.summary_.certificate
    return None if certificate is None else certificate.log_evidence


def _scores_in_folds(candidates: Sequence[Estimator], table: Table, seed: int) -> list[float]:
    """Return the log likelihood of the rows in folds that each candidate has not seen, nats."""
    scores = [0.0] * len(candidates)
    for held_out in deal(table.weights, N_FOLDS, np.random.default_rng(seed)):
        others = table.weights - held_out
        if held_out.any() and others.any():
            learned_from, scored = with_weights(table, others), with_weights(table, held_out)
            for number, candidate in enumerate(candidates):
                scores[number] += _fitted(clone(candidate), learned_from).score(scored)
    return scores


def _fitted(model: Estimator, table: Table) -> Estimator:
    """Fit a model; Ctrl-C, of which a search makes the best, is passed on."""
    model.fit(table)
    if model.summary_.interrupted:
        raise KeyboardInterrupt
    return model


def _leaf(table: Table, seed: int, n_jobs: int | None) -> Learned:
    candidates = [LeafCascade(n, random_state=seed, n_jobs=n_jobs) for n in (5.0, 8.0)]
    model = best_of(candidates, table, seed)
    return Learned(model, model.tree_.n_leaves, {"expected_leaves": model.expected_leaves})


def _branch(table: Table, seed: int, n_jobs: int | None) -> Learned:
    candidates = [BranchCascade(n, random_state=seed, n_jobs=n_jobs) for n in (2.0, 3.0)]
    model = best_of(candidates, table, seed)
    return Learned(model, model.tree_.n_leaves, {"expected_branches": model.expected_branches})


def _rules(table: Table, seed: int, n_jobs: int | None) -> Learned:
    model = _fitted(DensityRuleList(random_state=seed, n_jobs=n_jobs), table)
    return Learned(model, model.rules_.n_rules + 1, {})


def _histogram(table: Table, *_: object) -> Learned:
    model = SmoothedHistogram().fit(table)
    with np.errstate(over="ignore"):
        n_cells = float(np.rint(np.exp(model.log_n_cells_)))
    return Learned(model, n_cells, {"pseudo_count": model.pseudo_count_})


def _det(table: Table, seed: int, _: object) -> Learned:
    model = DensityEstimationTree(random_state=seed).fit(table)
    return Learned(model, model.tree_.n_leaves, {"complexity": model.complexity_})


CONTENDERS: Mapping[str, Callable[[Table, int, int | None], Learned]] = {
    "leaf": _leaf,
    "branch": _branch,
    "rules": _rules,
    "histogram": _histogram,
    "det": _det,
}
"""How each learns from a table, given a seed and how many chains run at the same time."""
