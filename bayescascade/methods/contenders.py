"""The densities that are compared, each with its defaults, and settings chosen where it is learned.

Goh (2018), section 3.3: a leaf cascade expects 5 or 8 leaves, a branch cascade 2 or 3 branches, as
nested cross-validation says, or the evidence where that is known exactly; the density list has
fixed settings. The mixture, the histogram and the density estimation tree choose their own.
"""

from collections.abc import Mapping

import numpy as np

from bayescascade.data.table import Table
from bayescascade.methods.cascade_mixtures.estimators import CascadeMixture
from bayescascade.methods.cascades.auto_cascade import AutoCascade
from bayescascade.methods.cascades.det import DensityEstimationTree
from bayescascade.methods.cascades.estimators import BranchCascade, LeafCascade
from bayescascade.methods.histogram.estimators import SmoothedHistogram
from bayescascade.methods.rules.estimators import DensityRuleList
from bayescascade.model.comparison import Learned, Learner, best_of, fit_whole
from bayescascade.model.readable_model import ReadableModel


def _auto(table: Table, seed: int, n_jobs: int | None) -> Learned:
    model = AutoCascade("quick", random_state=seed, n_jobs=n_jobs).fit(table)
    return Learned(model, model.tree_.n_leaves, {"cascade": model.candidates_.settings[0]})


def _leaf(table: Table, seed: int, n_jobs: int | None) -> Learned:
    candidates = [LeafCascade(n, leaf="auto", random_state=seed, n_jobs=n_jobs) for n in (5.0, 8.0)]
    model = best_of(candidates, table, seed)
    return Learned(
        model, model.tree_.n_leaves, {"expected_leaves": model.expected_leaves, "leaf": model.leaf_}
    )


def _branch(table: Table, seed: int, n_jobs: int | None) -> Learned:
    candidates = [
        BranchCascade(n, leaf="auto", random_state=seed, n_jobs=n_jobs) for n in (2.0, 3.0)
    ]
    model = best_of(candidates, table, seed)
    return Learned(
        model,
        model.tree_.n_leaves,
        {"expected_branches": model.expected_branches, "leaf": model.leaf_},
    )


def _rules(table: Table, seed: int, n_jobs: int | None) -> Learned:
    model = fit_whole(DensityRuleList(random_state=seed, n_jobs=n_jobs), table)
    return Learned(model, model.rules_.n_rules + 1, {})


def _histogram(table: Table, *_: object) -> Learned:
    model = SmoothedHistogram().fit(table)
    with np.errstate(over="ignore"):
        n_cells = float(np.rint(np.exp(model.log_n_cells_)))
    return Learned(model, n_cells, {"pseudo_count": model.pseudo_count_})


def _det(table: Table, seed: int, _: object) -> Learned:
    model = DensityEstimationTree(random_state=seed).fit(table)
    return Learned(model, model.tree_.n_leaves, {"complexity": model.complexity_})


def _mixture(table: Table, seed: int, n_jobs: int | None) -> Learned:
    model = CascadeMixture(n_starts=2, random_state=seed, n_jobs=n_jobs).fit(table)
    chosen: dict[str, float | str] = {"columns": model.kind_}
    if model.cascade_ is None:
        chosen["smoothing"] = model.smoothing_
    return Learned(model, model.n_components_, chosen)


_LISTED: Mapping[str, tuple[type[ReadableModel], Learner]] = {
    "auto": (AutoCascade, _auto),
    "leaf": (LeafCascade, _leaf),
    "branch": (BranchCascade, _branch),
    "rules": (DensityRuleList, _rules),
    "mixture": (CascadeMixture, _mixture),
    "histogram": (SmoothedHistogram, _histogram),
    "det": (DensityEstimationTree, _det),
}

CONTENDERS: Mapping[str, Learner] = {name: learn for name, (_, learn) in _LISTED.items()}
"""How each learns, by its name."""

TITLES: Mapping[str, str] = {name: listed.title for name, (listed, _) in _LISTED.items()}
"""What each is called."""
