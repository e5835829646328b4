"""Every estimator and every posterior: a new method is tested by being listed here."""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import samplers
from bayescascade import (
    AdaptiveClassifier,
    AdaptivePosterior,
    AutoBudgetClassifier,
    AutoCascade,
    BoxClassifier,
    BranchCascade,
    BranchPosterior,
    BudgetedForestClassifier,
    BudgetPruneClassifier,
    BudgetTreeClassifier,
    CascadeMixture,
    CausalSVM,
    CostSensitiveTreeClassifier,
    CostWeightedLogisticClassifier,
    DensityEstimationTree,
    DensityRuleList,
    DirectionPosterior,
    EffectModel,
    EffectPosterior,
    EffectRules,
    FastBoxes,
    GatedSensorsClassifier,
    GatedSensorsRegressor,
    GatePosterior,
    GibbsPosterior,
    GreedyMiserClassifier,
    LeafCascade,
    LeafPosterior,
    LogisticPosterior,
    MarginNeighborsClassifier,
    NeighborCompressionClassifier,
    RadoBoostClassifier,
    RadoPosterior,
    RuleListClassifier,
    SmoothedHistogram,
    SubmodularTreeClassifier,
)
from bayescascade.model.continuous import ContinuousPosterior
from tests.methods.boxes import slow_moves as boxes
from tests.methods.budget.classifier_trees import problems as classifiers, soft_trees
from tests.methods.budget.pruning import problems as prunings
from tests.methods.budget.single_trees import problems as trees
from tests.methods.compress import problems as neighbors
from tests.methods.density.trees.problems import MULTIWAY
from tests.methods.lists.fits import boats
from tests.methods.lists.problems import PAIR, SUPPORTED
from tests.methods.rados.problems import all_rados, blobs
from tests.people import DECLARED, draw_people

CHAINS = {
    "search": "anneal+metropolis",
    "n_steps": 120,
    "n_chains": 2,
    "n_jobs": 1,
    "random_state": 3,
}
DEPENDENT = {"leaf": "dependent", "leaf_concentration": 100.0}  # else one leaf would do
COSTS = {"sex": 1.0, "crew": 2.0, "age": 5.0, "fare": 0.5}
PRICED = {"costs": COSTS, "random_state": 0}
LIMITED = {**PRICED, "budget": 6.0}
GATED = {**PRICED, "full_share": 0.3}


class Case(NamedTuple):
    """How an estimator is listed: what makes it, with quick parameters, and what it learns from.

    That is a frame, and labels, maybe of two classes alone; or others of a frame, such as arms.
    """

    make: Callable[..., Any]
    parameters: Mapping[str, Any]
    is_labeled: bool = False
    is_binary: bool = False
    others: Callable[[pd.DataFrame], list[Any]] | None = None

    def beside(self, n_rows: int | None = None) -> list[Any]:
        """Return what `fit` takes beside the first of `rows`."""
        if self.others is not None:
            return [one[:n_rows] for one in self.others(rows())]
        return [self.labels()[:n_rows]] if self.is_labeled else []

    def labels(self) -> pd.Series:
        """Return the labels of `rows`."""
        labels = boats(rows())
        return labels > 1 if self.is_binary else labels

    def fit(self, **changed: Any) -> Any:
        """Return the estimator fitted to `rows`, some parameters changed."""
        return self.fit_to(rows(), **changed)

    def fit_to(self, frame: pd.DataFrame, weights: Any = None, **changed: Any) -> Any:
        """Return the estimator fitted to rows, the weights left out if there are none."""
        given = {} if weights is None else {"sample_weight": weights}
        made = self.make(**{**self.parameters, **changed})
        return made.fit(frame, *self.beside(len(frame)), **given)


@cache
def rows() -> pd.DataFrame:
    """Return rows of two nominal, an ordinal and a continuous column that depend on each other."""
    return draw_people(150, 0)


def answers(model: Any, frame: Any) -> Any:
    """Return what a model says of rows: log densities, probabilities, an h, or what it predicts."""
    names = ("score_samples", "predict_proba", "decision_function", "predict")
    return getattr(model, next(name for name in names if hasattr(model, name)))(frame)


def _trial(frame: pd.DataFrame) -> list[Any]:
    """Return outcomes and arms: the treatment helps whoever paid little."""
    rng = np.random.default_rng(7)  # another than that of the rows
    treated = rng.random(len(frame)) < 0.5
    gain = np.where(frame["fare"] < frame["fare"].median(), 0.4, -0.4)
    return [rng.random(len(frame)) < 0.5 + gain * (treated - 0.5), treated]


def _gains(frame: pd.DataFrame) -> list[Any]:
    """Return an h of rows."""
    return [np.where(frame["sex"] == "male", 0.2, -0.1) + 0.01 * frame["fare"].rank().to_numpy()]


def _fares(frame: pd.DataFrame) -> list[Any]:
    """Return numbers of rows."""
    return [np.where(frame["sex"] == "male", 2.0, -1.0) + 0.01 * frame["fare"].to_numpy()]


def _forest() -> RandomForestClassifier:
    return RandomForestClassifier(5, max_depth=3, random_state=0)


ESTIMATORS = {
    "leaf": Case(LeafCascade, CHAINS | DECLARED),
    "leaf exact": Case(
        LeafCascade, CHAINS | DECLARED | {"search": "exact", "partitions": "levels"}
    ),
    "branch": Case(BranchCascade, CHAINS | DECLARED | {"predictive": "average"}),
    "dependent": Case(LeafCascade, CHAINS | DECLARED | DEPENDENT),
    "dependent exact": Case(
        BranchCascade, CHAINS | DECLARED | DEPENDENT | {"search": "exact", "partitions": "levels"}
    ),
    "leaf auto": Case(LeafCascade, CHAINS | DECLARED | {**DEPENDENT, "leaf": "auto"}),
    "auto": Case(AutoCascade, {"effort": "quick", "random_state": 3} | DECLARED),
    "rules": Case(DensityRuleList, CHAINS | DECLARED),
    "labels": Case(RuleListClassifier, CHAINS, True),
    "det": Case(DensityEstimationTree, {"random_state": 0} | DECLARED),
    "histogram": Case(SmoothedHistogram, DECLARED),
    "mixture": Case(
        CascadeMixture, {"n_components": 3, "kind": "dependent", "random_state": 0} | DECLARED
    ),
    "hidden": Case(CascadeMixture, {"kind": "hidden", "random_state": 0} | DECLARED),
    "continuous": Case(
        CascadeMixture,
        {"n_components": 16, "kind": "continuous", "effort": "quick", "random_state": 0} | DECLARED,
    ),
    "mixture auto": Case(CascadeMixture, {"kind": "cascade", "random_state": 0} | DECLARED),
    "forest": Case(BudgetedForestClassifier, LIMITED | {"max_trees": 4, "n_jobs": 1}, True),
    "prune": Case(BudgetPruneClassifier, LIMITED | {"forest": _forest(), "budget": 5.0}, True),
    "tree": Case(BudgetTreeClassifier, {"costs": COSTS, **CHAINS}, True),
    "classifiers": Case(SubmodularTreeClassifier, LIMITED, True),
    "cstc": Case(CostSensitiveTreeClassifier, PRICED | {"tradeoff": 0.05}, True),
    "l1": Case(CostWeightedLogisticClassifier, {"costs": COSTS, "penalty": 0.02}, True),
    "margins": Case(
        MarginNeighborsClassifier,
        LIMITED | {"estimator": LogisticRegression(), "n_neighbors": 9},
        True,
    ),
    "gate": Case(
        AdaptiveClassifier, GATED | {"n_trees": 5, "learner": "linear", "budget": 6.0}, True
    ),
    "boosted gate": Case(
        AdaptiveClassifier,
        GATED | {"n_trees": 5, "n_boosted": 6, "tradeoff": 0.005, "budget": 5.0},
        True,
    ),
    "least squares gate": Case(
        AdaptiveClassifier,
        GATED | {"estimator": _forest(), "learner": "linear", "distance": "log_odds"},
        True,
    ),
    "miser": Case(GreedyMiserClassifier, LIMITED | {"n_boosted": 6}, True),
    "auto budget": Case(
        AutoBudgetClassifier, LIMITED | {"methods": ("l1",), "time_limit": None}, True
    ),
    "group lasso": Case(
        AdaptiveClassifier,
        GATED
        | {"estimator": _forest(), "learner": "linear", "selection": "group_lasso"}
        | {"tradeoff": 0.005, "cut": -1.0},
        True,
        True,
    ),
    "neighbors": Case(
        NeighborCompressionClassifier,
        {**CHAINS, "search": "ascent+langevin", "n_prototypes": 6, "max_iter": 60},
        True,
    ),
    "rado": Case(RadoBoostClassifier, {"n_rounds": 50, "random_state": 0}, True, True),
    "boxes, pooled": Case(BoxClassifier, {**CHAINS, "n_boxes": 2}, True, True),
    "boxes": Case(BoxClassifier, {**CHAINS, "n_boxes": 2, "likelihood": "beta"}, True, True),
    "fast boxes": Case(
        FastBoxes, {"n_clusters": 2, "expansion": 1.0, "random_state": 0}, True, True
    ),
    "effects": Case(EffectModel, {"learner": "kernel", "random_state": 0}, others=_trial),
    "causal svm": Case(
        CausalSVM, {"length_scale": 2.0, "penalty": 1e-2, "random_state": 0}, others=_trial
    ),
    "sensors": Case(GatedSensorsClassifier, LIMITED | {"n_steps": 60}, True),
    "always sensors": Case(
        GatedSensorsClassifier,
        {
            "method": "direct",
            "features": "fourier",
            "n_fourier": 5,
            "n_steps": 30,
            "random_state": 0,
            "tradeoff": 0.01,
            "missing": "error",
        },
        True,
        True,
    ),
    "sensors of numbers": Case(
        GatedSensorsRegressor,
        {"method": "alternating", "features": "squared", "random_state": 0},
        others=_fares,
    ),
    "told effects": Case(EffectRules, {"kind": "tree", "random_state": 0}, others=_gains),
}


REPEATED = {
    "dependent exact",  # "dependent" as "leaf exact" finds it
    "leaf auto",  # one of the other leaves
    "mixture auto",  # "mixture" of another number
    "least squares gate",
    "group lasso",
    "boxes, pooled",
    "always sensors",
}
"""Those that another of the same class prints and answers like, though it learns otherwise."""

SHOWN = [name for name in ESTIMATORS if name not in REPEATED]
"""One of each kind of page, file and answer."""


@cache
def fitted(name: str) -> Any:
    """Return a listed estimator fitted to `rows`; treat it as read-only."""
    return ESTIMATORS[name].fit()


class Step:
    """One up or one down on 0 .. 9."""

    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        return samplers.Proposal(state + int(rng.choice([-1, 1])), 0.0)


def _distance(state: int) -> float:
    return abs(state - 3.0) if 0 <= state <= 9 else math.inf


def _any_digit(rng: np.random.Generator) -> int:
    return int(rng.integers(10))


def _value(state: int) -> dict[str, float]:
    return {"state": float(state)}


def gibbs() -> GibbsPosterior[int]:
    """Return a user's own objective, in pure Python."""
    return GibbsPosterior(
        objective=_distance,
        start=_any_digit,
        proposals={"step": Step()},
        temperature=0.5,
        summary=_value,
    )


class Shift:
    """A random step in the plane."""

    def propose(self, rng: np.random.Generator, state: Any) -> samplers.Proposal[Any]:
        return samplers.Proposal(state + rng.normal(size=2), 0.0)


class Plane:
    """A normal density over the plane: a continuous state, and nothing that may be left out."""

    def log_density(self, state: Any) -> float:
        return -0.5 * float(state @ state)

    def initial_state(self, rng: np.random.Generator) -> Any:
        return rng.normal(size=2)

    def moves(self) -> Mapping[str, Shift]:
        return {"shift": Shift()}


class Slope:
    """A normal density over the plane by its gradient, as a posterior of weights has one."""

    def log_density(self, state: Any) -> float:
        return -0.5 * float(state @ state)

    def log_density_and_gradient(self, state: Any) -> tuple[float, Any]:
        return self.log_density(state), -state

    def initial_state(self, rng: np.random.Generator) -> Any:
        return rng.normal(size=2)

    def describe(self, state: Any) -> Mapping[str, float]:
        return {"first": float(state[0])}


def _rados(kind: str, seed: int) -> RadoPosterior:
    rados = all_rados(*blobs(6, seed=seed)) * [1.0, 100.0, 0.01]
    return RadoPosterior(rados, 6, prior_scale=[1.0, 0.1, 5.0], approximation=kind)


def _effects(surrogate: str, combine: str, seed: int = 0) -> EffectPosterior:
    rows, signs = blobs(40, seed=seed)[:2]
    arms = np.arange(40) % 2 > 0
    how = {"surrogate": surrogate, "combine": combine, "penalty": 0.1}
    return EffectPosterior(
        rows, np.where(np.asarray(signs) > 0, 1.0, -1.0), np.ones(40), arms, **how
    )


def _gate(seed: int = 0, n_classes: int = 2, **how: Any) -> AdaptivePosterior:
    rows, rng = blobs(40, seed=seed)[0], np.random.default_rng(seed)
    labels, losses = rng.integers(0, n_classes, 40), rng.exponential(0.4, 40)
    return AdaptivePosterior(rows, labels, losses, n_classes, **{"full_share": 0.2, **how})


def _sensors(seed: int = 0, n_classes: int | None = 3, **how: Any) -> GatePosterior:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(40, 5))
    targets = rng.normal(size=40) if n_classes is None else rng.integers(0, n_classes, 40)
    given = {"costs": [1.0, 2.0], "tradeoff": 0.2, **how}
    return GatePosterior(features, [0, 0, 1, 1, 1], targets, n_classes, **given)


CONTINUOUS: Mapping[str, Callable[..., ContinuousPosterior]] = {
    **{f"prototypes {how}": partial(neighbors.posterior, **how) for how in neighbors.KINDS},
    "rado": partial(_rados, "none"),
    "rado moments": partial(_rados, "moments"),
    "logistic": lambda seed: LogisticPosterior(*blobs(40, seed=seed)),
    "effect": lambda seed: _effects("logistic", "mean", seed),
    "soft tree": lambda seed: soft_trees.posterior(3, seed),
    "soft leaves": lambda seed: soft_trees.posterior(2, seed, loss_at="leaves"),
    "effect max": lambda seed: _effects("square", "max", seed),
    "gate": lambda seed: _gate(seed),
    "gate by log odds": lambda seed: _gate(seed, distance="log_odds"),
    "gate of three": lambda seed: _gate(seed, n_classes=3, full_share=1.0),
    "sensors": lambda seed: _sensors(seed, sharpness=2.0),
    "sensors of numbers": lambda seed: _sensors(seed, None, noise=0.5),
}
"""Those over numbers, each of rows drawn by a `seed`."""


def slopes(posterior: Any, state: Any, steps: Any) -> Any:
    """Return the derivatives of a log density by central differences of these steps."""
    both = [[posterior.log_density(state + s * h) for s in (1, -1)] for h in np.diag(steps)]
    return -np.diff(both)[:, 0] / (2 * steps)


POSTERIORS: Mapping[str, Callable[[], Any]] = {
    "leaf": lambda: LeafPosterior(MULTIWAY.table, max_branches=3),
    "branch": lambda: BranchPosterior(MULTIWAY.table),
    "inclusion": lambda: BranchPosterior(MULTIWAY.table, feature_inclusion=0.4),
    "density-list": PAIR.posterior,
    "label-list": SUPPORTED.posterior,
    "pruning": prunings.THREE.posterior,
    "budget-tree": trees.TWO.posterior,
    "purchases": classifiers.TWO_LEAVES.posterior,
    "prototypes": lambda: neighbors.posterior(metric="linear"),
    "direction": lambda: DirectionPosterior({"x->y": 0.02, "y->x": 0.05}, temperature=0.03),
    "rado": lambda: RadoPosterior(all_rados(*blobs(6)), 6),
    "logistic": lambda: LogisticPosterior(*blobs(40)),
    "effect": lambda: _effects("logistic", "mean"),
    "soft tree": soft_trees.posterior,
    "gate": _gate,
    "sensors": _sensors,
    "boxes": boxes.Problem("listed", (5, 5), 2, n_rows=30).posterior,
    "gibbs": gibbs,
    "plane": Plane,
    "slope": Slope,
}
