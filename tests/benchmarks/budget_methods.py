"""The methods that `budget_curves` compares: each yields what its classifiers cost and err.

Every method gives many classifiers (a path of trade-offs, of levels, of numbers of trees), judged
on validation and on test rows. All prunings start from the same three forests of 40 trees, which
are among what is chosen from: random forests (entropy) that look at a random subset of the columns
at each split, or at all of them, and a forest grown to be cheap. BudgetPrune measures errors in bag
and, of the random forests, out of bag, and also prunes their first few trees alone.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayescascade import (
    AdaptiveClassifier,
    BudgetedForestClassifier,
    BudgetPruneClassifier,
    BudgetTreeClassifier,
    CostSensitiveTreeClassifier,
    CostWeightedLogisticClassifier,
    FeatureCosts,
    GreedyMiserClassifier,
    MarginNeighborsClassifier,
    SubmodularTreeClassifier,
)
from tests.benchmarks.budget_data import DATA_SETS, Split, costs_of, split
from tests.benchmarks.budget_validation import Judged
from tests.benchmarks.greedy_gate import greedy_gates
from tests.benchmarks.margin_rules import rules_within
from tests.benchmarks.pruning_baselines import CostComplexityPrune, GreedyPrune, TruncatedForest

SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
ALL_SHARES = tuple(sorted((*SHARES, 0.05, 0.15, 0.25, 0.35, 0.4, 0.45, 0.6, 0.65, 0.85)))
N_TREES = 40
FEW_TREES = (1, 3, 10)  # that BudgetPruneClassifier starts from, too
NUMBERS_OF_TREES = (1, 2, 3, 5, 8, 13, 20, N_TREES)
TRADEOFFS = tuple(np.geomspace(1e-3, 1.0, 10))  # error rate by cost of all columns
ALPHAS = (0.0, 16.0)
EXPONENTS = (0.0, 0.5, 1.0)  # of costs in growing, where they are not all alike
OURS = "BudgetPrune"


@dataclass(frozen=True, eq=False)
class Setting:
    """What every method is given."""

    rows: Split
    costs: FeatureCosts
    total: float
    has_prices: bool
    seed: int

    @property
    def budgets(self):
        """What a row may cost on average."""
        return [share * self.total for share in SHARES]

    @cached_property
    def forests(self):
        """What prunings start from."""
        train = self.rows.train
        random_forests = (
            RandomForestClassifier(
                N_TREES, criterion="entropy", max_features=subset, random_state=self.seed, n_jobs=2
            ).fit(train.features, train.labels)
            for subset in ("sqrt", None)
        )
        cheap = BudgetedForestClassifier(
            costs=self.costs, cost_exponent=0.5, max_trees=N_TREES, n_jobs=2, random_state=self.seed
        ).fit(train.features, train.labels)
        return (*random_forests, cheap)


def set_up(name, kind, folder, seed):
    """Return the rows and the costs of a seed."""
    problem = DATA_SETS[name](folder)
    costs = costs_of(name, kind, problem, folder, seed)
    total = float(costs.resolve(list(problem.features.columns)).costs.sum())
    return Setting(split(problem, seed), costs, total, kind != "unit", seed)


def judge(model: Any, setting: Setting) -> Judged:  # Any: whatever predicts at a cost
    """Return what a classifier costs and errs."""
    figures = []
    for part in (setting.rows.validation, setting.rows.test):
        figures.append(float(model.acquisition_cost(part.features).mean()))
        figures.append(float((model.predict(part.features) != part.labels.to_numpy()).mean()))
    return Judged(*figures)


# -- methods: each yields what its classifiers cost and err -------------------------------------


def _fitted(model: Any, setting: Setting) -> Any:  # Any: any estimator of the family
    train, validation, _ = setting.rows
    return model.fit(train.features, train.labels, validation.features, validation.labels)


def _whole(setting, forest):
    return _fitted(TruncatedForest(forest, costs=setting.costs, n_trees=N_TREES), setting)


def _prune(setting):
    for forest in setting.forests:
        whole = _whole(setting, forest)
        yield judge(whole, setting)
        for few in whole.path(FEW_TREES):
            pruner = BudgetPruneClassifier(few, costs=setting.costs, tradeoff=0.0)
            yield from _pruned_at_tradeoffs(pruner, setting)
        has_bags = isinstance(forest, RandomForestClassifier)
        for rows in ("in_bag", "out_of_bag") if has_bags else ("in_bag",):
            pruner = BudgetPruneClassifier(forest, costs=setting.costs, tradeoff=0.0, errors=rows)
            yield from _pruned_at_tradeoffs(pruner, setting)
            for model in pruner.path(budgets=setting.budgets):
                yield judge(model, setting)


def _pruned_at_tradeoffs(pruner, setting):
    for model in _fitted(pruner, setting).path([each / setting.total for each in TRADEOFFS]):
        yield judge(model, setting)


def _pruner_path(make, setting):
    for forest in setting.forests:
        yield judge(_whole(setting, forest), setting)
        for model in _fitted(make(forest, costs=setting.costs), setting).path():
            yield judge(model, setting)


def _fewer_trees(setting):
    for forest in setting.forests:
        whole = _fitted(TruncatedForest(forest, costs=setting.costs), setting)
        for model in whole.path(NUMBERS_OF_TREES):
            yield judge(model, setting)


def _budget_forest(setting):
    for alpha, exponent in product(ALPHAS, EXPONENTS if setting.has_prices else (1.0,)):
        grown = _fitted(
            BudgetedForestClassifier(
                costs=setting.costs, alpha=alpha, cost_exponent=exponent, max_trees=N_TREES,
                n_jobs=2, random_state=setting.seed,
            ),
            setting,
        )  # fmt: skip
        cut = _fitted(TruncatedForest(grown, costs=setting.costs), setting)
        for model in cut.path([n for n in NUMBERS_OF_TREES if n <= grown.forest_.n_trees]):
            yield judge(model, setting)


PRINTED = {"basis": "linear", "selection": "paper", "leaf": "least_squares", "prune": False}


def _within_budgets(setting, make=SubmodularTreeClassifier, **how):
    train, validation, _ = setting.rows
    model = make(costs=setting.costs, random_state=setting.seed, **how)
    shares = ALL_SHARES if hasattr(model, "within") else SHARES  # no further fit
    seen = set()
    for _, found in model.fit_budgets(
        [share * setting.total for share in shares],
        train.features, train.labels, validation.features, validation.labels,
    ):  # fmt: skip
        if found.validation_cost_ not in seen:
            seen.add(found.validation_cost_)
            yield judge(found, setting)


def _printed_trees(setting):
    for depth in range(1, 6):  # nothing is pruned
        yield from _within_budgets(setting, max_depth=depth, **PRINTED)


class _WithCosts(NamedTuple):
    """A boosted ensemble that tells what its predictions cost."""

    model: Any
    costs: Any

    def predict(self, features):
        return self.model.predict(features.to_numpy())

    def acquisition_cost(self, features):
        used = self.model.features_used(features.to_numpy())
        return self.costs.total(self.costs.paid(used))


def _boosting(mode, setting):
    from tests.benchmarks.cost_effective_boosting import boosted

    train = setting.rows.train
    items = setting.costs.resolve(list(train.features.columns))
    alone = items.total(items.paid(np.eye(train.features.shape[1], dtype=bool)))
    for model in boosted(train, alone, mode, setting.seed):
        yield judge(_WithCosts(model, items), setting)


def _by_neighbors(setting, **how):
    model = MarginNeighborsClassifier(costs=setting.costs, random_state=setting.seed, **how)
    yield from rules_within(_fitted(model, setting), setting.rows, setting.budgets)


def _full_model(setting: Setting) -> Any:  # of scikit-learn
    """Return whichever errs less on the validation rows: an SVM, or a forest; fitted."""
    train, validation, _ = setting.rows
    svm = make_pipeline(StandardScaler(), SVC(C=10.0, gamma=4.0 / train.features.shape[1]))
    forest = RandomForestClassifier(100, random_state=setting.seed, n_jobs=2)
    contenders = (forest,) if train.features.isna().to_numpy().any() else (svm, forest)
    fitted = [each.fit(train.features, train.labels) for each in contenders]
    scores = [each.score(validation.features, validation.labels) for each in fitted]
    return fitted[int(np.argmax(scores))]


def _gate(setting, **how):
    full = clone(_full_model(setting))
    yield from _within_budgets(setting, partial(AdaptiveClassifier, full), **how)


def _greedy_gate(setting):
    items = setting.costs.resolve(list(setting.rows.train.features.columns))
    yield from greedy_gates(setting.rows, _full_model(setting), items)


METHODS = {
    OURS: _prune,
    "BudgetRF": _budget_forest,
    "GreedyPrune": partial(_pruner_path, GreedyPrune),
    "CCP": partial(_pruner_path, partial(CostComplexityPrune, level=0.0)),
    "fewer trees": _fewer_trees,
    "ASTC": _within_budgets,
    "ASTC, soft": partial(_within_budgets, weights="soft"),
    "ASTC, linear": partial(_within_budgets, basis="linear"),
    "ASTC, printed": _printed_trees,
    "CSTC": partial(_within_budgets, make=CostSensitiveTreeClassifier),
    "CSTC, leaves": partial(_within_budgets, make=CostSensitiveTreeClassifier, loss_at="leaves"),
    "l1": partial(_within_budgets, make=CostWeightedLogisticClassifier),
    "FMCC": _by_neighbors,
    "BudgetTree": partial(_within_budgets, make=BudgetTreeClassifier),
    "Adapt-GBRT": _gate,
    "Adapt-Lin": partial(_gate, learner="linear"),
    "Adapt-LstSq": partial(_gate, learner="linear", distance="log_odds"),
    "L1 gate": _greedy_gate,
    "GreedyMiser": partial(_within_budgets, make=GreedyMiserClassifier),
    "GreedyMiser, once": partial(_within_budgets, make=GreedyMiserClassifier, penalty="once"),
}
if find_spec("lightgbm"):
    METHODS = {
        **METHODS,
        "LightGBM coupled": partial(_boosting, "coupled"),
        "LightGBM lazy": partial(_boosting, "lazy"),
    }
MAIN = tuple(
    name
    for name in (
        "l1", "CSTC", "ASTC", "FMCC", "BudgetTree", "BudgetRF", "BudgetPrune",
        "GreedyMiser", "Adapt-LstSq", "Adapt-Lin", "Adapt-GBRT", "LightGBM lazy",
        "LightGBM coupled",
    )
    if name in METHODS
)  # fmt: skip
"""Those that a user can choose, with their defaults, and LightGBM's."""
