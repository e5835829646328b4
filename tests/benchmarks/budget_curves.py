"""Test error of budgeted classifiers at several costs, over five seeds.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.budget_curves [--data-sets digits ...]
        [--costs unit random] [--seeds 5] [--methods BudgetPruneClassifier ...] [--within 1]

Every method gives many classifiers (a path of trade-offs, of levels, of numbers of trees). At each
budget, a share of what all columns together cost, the one of least validation error among those
that cost no more on the validation rows is taken, and judged on the test rows; so all are chosen
alike, and none by the test rows. With `--within 1` the cheapest is taken whose validation error is
within a standard error of that least one: of few validation rows, the least of many is low by
chance, and dear. All prunings start from the same three forests of 40 trees, which are among what
is chosen from: random forests (entropy) that look at a random subset of the columns at each split,
or at all of them, and a forest grown to be cheap. BudgetPrune measures errors in bag and, of the
random forests, out of bag, and also prunes their first few trees alone.

The lines below a data set: mean error in percent, standard error of the mean over seeds, and the
mean cost as a percentage of all columns' with its standard error. "*" marks a method that is better
than BudgetPruneClassifier by more than a standard error of the paired differences.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayescascade import (
    AdaptiveClassifier,
    BudgetedForestClassifier,
    BudgetPruneClassifier,
    CostSensitiveTreeClassifier,
    CostWeightedLogisticClassifier,
    FeatureCosts,
    GreedyMiserClassifier,
    SelectedForestClassifier,
    SubmodularTreeClassifier,
)
from bayescascade.costs.limits import BudgetError
from tests.benchmarks.budget_data import DATA_SETS, REAL_COSTS, Split, costs_of, split
from tests.benchmarks.figures import parser, say, timed
from tests.benchmarks.pruning_baselines import CostComplexityPrune, GreedyPrune, TruncatedForest

SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
N_TREES = 40
FEW_TREES = (1, 3, 10)  # that BudgetPruneClassifier starts from, too
NUMBERS_OF_TREES = (1, 2, 3, 5, 8, 13, 20, N_TREES)
TRADEOFFS = tuple(np.geomspace(1e-3, 1.0, 10))  # error rate by cost of all columns
ALPHAS = (0.0, 16.0)
EXPONENTS = (0.0, 0.5, 1.0)  # of costs in growing, where they are not all alike
OURS = "BudgetPrune"


class Judged(NamedTuple):
    """What one classifier costs and errs, on the validation and on the test rows."""

    validation_cost: float
    validation_error: float
    test_cost: float
    test_error: float


@dataclass(frozen=True, eq=False)
class Setting:
    """What every method is given."""

    rows: Split
    costs: FeatureCosts
    total: float
    has_prices: bool
    seed: int

    @cached_property
    def forests(self) -> tuple[RandomForestClassifier | BudgetedForestClassifier, ...]:
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


def main() -> None:
    """Print every data set's table as soon as it is there."""
    made = parser(__doc__, DATA_SETS, DATA_SETS)
    made.add_argument("--costs", nargs="+", choices=("unit", "random", "real"))
    made.add_argument("--seeds", type=int, default=5)
    made.add_argument("--within", type=float, default=0.0, metavar="STANDARD_ERRORS")
    made.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    chosen = made.parse_args()
    for name in chosen.data_sets:
        for kind in chosen.costs or (["real"] if name in REAL_COSTS else ["unit", "random"]):
            if kind != "real" or name in REAL_COSTS:
                for line in compared(
                    name, kind, chosen.data, chosen.seeds, chosen.methods, chosen.within
                ):
                    say(line)


def compared(
    name: str,
    kind: str,
    folder: Path,
    n_seeds: int,
    methods: Iterable[str],
    standard_errors: float = 0.0,
) -> Iterator[str]:
    """Yield the table of one data set."""
    errors: dict[str, list[NDArray[np.float64]]] = {method: [] for method in methods}
    costs: dict[str, list[NDArray[np.float64]]] = {method: [] for method in methods}
    seconds = dict.fromkeys(methods, 0.0)
    for seed in range(n_seeds):
        setting = set_up(name, kind, folder, seed)
        for method in errors:
            judged, took = timed(lambda method=method, given=setting: [*METHODS[method](given)])
            seconds[method] += took
            judged.append(commonest_label(setting.rows))
            allowed = standard_errors / len(setting.rows.validation.labels) ** 0.5
            taken = [best_within(judged, share * setting.total, allowed) for share in SHARES]
            errors[method].append(np.array([one.test_error for one in taken]))
            costs[method].append(np.array([one.test_cost / setting.total for one in taken]))
    n_rows = len(setting.rows.train.labels)
    yield f"\n{name}, {kind} costs, {n_rows:,} rows to learn from, {n_seeds} seeds"
    yield f"{'cost at most':22}" + "".join(f"{share:>14.0%}" for share in SHARES) + "   seconds"
    for method, rows in errors.items():
        table = np.array(rows)
        mean, error = table.mean(axis=0), standard_error(table)
        marks = beats(table, np.array(errors[OURS])) if OURS in errors else [""] * len(SHARES)
        cells = (
            f"{100 * m:8.2f}{mark or ' '}({100 * e:.2f})"
            for m, e, mark in zip(mean, error, marks, strict=True)
        )
        yield f"{method:22}" + "".join(cells) + f"{seconds[method] / n_seeds:10.1f}"
        spent = 100 * np.array(costs[method])
        shares = zip(spent.mean(axis=0), standard_error(spent), strict=True)
        yield f"{'':22}" + "".join(f"{mean:6.1f} ({error:.1f}) %" for mean, error in shares)


def set_up(name: str, kind: str, folder: Path, seed: int) -> Setting:
    """Return the rows and the costs of a seed."""
    problem = DATA_SETS[name](folder)
    costs = costs_of(name, kind, problem, folder, seed)
    total = float(costs.resolve(list(problem.features.columns)).costs.sum())
    return Setting(split(problem, seed), costs, total, kind != "unit", seed)


def best_within(judged: Iterable[Judged], budget: float, allowed: float = 0.0) -> Judged:
    """Return the cheapest within a budget whose validation error is near the least.

    It may be `allowed` times the deviation of a row's error above it.
    """
    within = [one for one in judged if one.validation_cost <= budget * (1 + 1e-9)]
    least = min(one.validation_error for one in within)
    most = least + allowed * (least * (1.0 - least)) ** 0.5
    near = [one for one in within if one.validation_error <= most]
    return min(near, key=lambda one: (one.validation_cost, one.validation_error))


def judge(model: Any, setting: Setting) -> Judged:  # Any: whatever predicts at a cost
    """Return what a classifier costs and errs."""
    figures: list[float] = []
    for part in (setting.rows.validation, setting.rows.test):
        figures.append(float(model.acquisition_cost(part.features).mean()))
        figures.append(float((model.predict(part.features) != part.labels.to_numpy()).mean()))
    return Judged(*figures)


def commonest_label(rows: Split) -> Judged:
    """Return what costs nothing, and is always there to choose."""
    commonest = rows.train.labels.mode()[0]
    return Judged(
        0.0,
        (rows.validation.labels != commonest).mean(),
        0.0,
        (rows.test.labels != commonest).mean(),
    )


# -- methods: each yields what its classifiers cost and err -------------------------------------


def _fitted(model: Any, setting: Setting) -> Any:  # Any: any estimator of the family
    train, validation, _ = setting.rows
    return model.fit(train.features, train.labels, validation.features, validation.labels)


def _whole(setting: Setting, forest: Any) -> Any:
    return _fitted(TruncatedForest(forest, costs=setting.costs, n_trees=N_TREES), setting)


def _prune(setting: Setting) -> Iterator[Judged]:
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
            for model in pruner.path(budgets=[share * setting.total for share in SHARES]):
                yield judge(model, setting)


def _pruned_at_tradeoffs(pruner: BudgetPruneClassifier, setting: Setting) -> Iterator[Judged]:
    for model in _fitted(pruner, setting).path([each / setting.total for each in TRADEOFFS]):
        yield judge(model, setting)


def _pruner_path(make: Callable[..., Any], setting: Setting) -> Iterator[Judged]:
    for forest in setting.forests:
        yield judge(_whole(setting, forest), setting)
        for model in _fitted(make(forest, costs=setting.costs), setting).path():
            yield judge(model, setting)


def _fewer_trees(setting: Setting) -> Iterator[Judged]:
    for forest in setting.forests:
        whole = _fitted(TruncatedForest(forest, costs=setting.costs), setting)
        for model in whole.path(NUMBERS_OF_TREES):
            yield judge(model, setting)


def _budget_forest(setting: Setting) -> Iterator[Judged]:
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


def _selected(setting: Setting) -> Iterator[Judged]:
    for share in SHARES:
        try:
            selected = SelectedForestClassifier(
                costs=setting.costs, budget=share * setting.total, n_trees=N_TREES, n_jobs=2,
                random_state=setting.seed,
            )  # fmt: skip
            yield judge(_fitted(selected, setting), setting)
        except BudgetError:
            continue


PRINTED = {"basis": "linear", "selection": "paper", "leaf": "least_squares", "prune": False}


def _classifier_trees(
    setting: Setting, make: Callable[..., Any] = SubmodularTreeClassifier, **how: Any
) -> Iterator[Judged]:
    train, validation, _ = setting.rows
    tree = make(costs=setting.costs, random_state=setting.seed, **how)
    budgets = [share * setting.total for share in SHARES]
    for _, model in tree.fit_budgets(
        budgets, train.features, train.labels, validation.features, validation.labels
    ):
        yield judge(model, setting)


def _printed_trees(setting: Setting) -> Iterator[Judged]:
    for depth in range(1, 6):  # nothing is pruned
        yield from _classifier_trees(setting, max_depth=depth, **PRINTED)


class _WithCosts(NamedTuple):
    """A boosted ensemble that tells what its predictions cost."""

    model: Any
    costs: Any

    def predict(self, features: pd.DataFrame) -> NDArray[Any]:
        labels: NDArray[Any] = self.model.predict(features.to_numpy())
        return labels

    def acquisition_cost(self, features: pd.DataFrame) -> NDArray[np.float64]:
        used = self.model.features_used(features.to_numpy())
        total: NDArray[np.float64] = self.costs.total(self.costs.paid(used))
        return total


def _boosting(mode: str, setting: Setting) -> Iterator[Judged]:
    from tests.benchmarks.cost_effective_boosting import boosted

    train = setting.rows.train
    items = setting.costs.resolve(list(train.features.columns))
    alone = items.total(items.paid(np.eye(train.features.shape[1], dtype=bool)))
    for model in boosted(train, alone, mode, setting.seed):
        yield judge(_WithCosts(model, items), setting)


def _gate(setting: Setting, **how: Any) -> Iterator[Judged]:
    """Yield gates before whichever errs less on the validation rows: an SVM, or a forest."""
    train, validation, _ = setting.rows
    svm = make_pipeline(StandardScaler(), SVC(C=10.0, gamma=4.0 / train.features.shape[1]))
    forest = RandomForestClassifier(100, random_state=setting.seed, n_jobs=2)
    if train.features.isna().to_numpy().any():
        full: Any = forest
    else:
        fitted = (each.fit(train.features, train.labels) for each in (svm, forest))
        scores = [each.score(validation.features, validation.labels) for each in fitted]
        full = clone((svm, forest)[int(np.argmax(scores))])
    yield from _classifier_trees(setting, partial(AdaptiveClassifier, full), **how)


METHODS: Mapping[str, Callable[[Setting], Iterator[Judged]]] = {
    OURS: _prune,
    "BudgetRF": _budget_forest,
    "selected": _selected,
    "GreedyPrune": partial(_pruner_path, GreedyPrune),
    "CCP": partial(_pruner_path, partial(CostComplexityPrune, level=0.0)),
    "fewer trees": _fewer_trees,
    "ASTC": _classifier_trees,
    "ASTC, soft": partial(_classifier_trees, weights="soft"),
    "ASTC, linear": partial(_classifier_trees, basis="linear"),
    "ASTC, printed": _printed_trees,
    "CSTC": partial(_classifier_trees, make=CostSensitiveTreeClassifier),
    "CSTC, leaves": partial(_classifier_trees, make=CostSensitiveTreeClassifier, loss_at="leaves"),
    "l1": partial(_classifier_trees, make=CostWeightedLogisticClassifier),
    "Adapt-GBRT": _gate,
    "Adapt-Lin": partial(_gate, learner="linear"),
    "GreedyMiser": partial(_classifier_trees, make=GreedyMiserClassifier),
    "GreedyMiser, once": partial(_classifier_trees, make=GreedyMiserClassifier, penalty="once"),
}
if find_spec("lightgbm"):
    METHODS = {
        **METHODS,
        "LightGBM coupled": partial(_boosting, "coupled"),
        "LightGBM lazy": partial(_boosting, "lazy"),
    }


def standard_error(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of the mean over the rows, one a seed."""
    if len(table) < 2:
        return np.zeros(table.shape[1])
    errors: NDArray[np.float64] = table.std(axis=0, ddof=1) / np.sqrt(len(table))
    return errors


def beats(table: NDArray[np.float64], ours: NDArray[np.float64]) -> list[str]:
    """Return "*" where a method errs less than ours by more than a standard error."""
    differences = ours - table
    return ["*" if d > 0 else "" for d in differences.mean(axis=0) - standard_error(differences)]


if __name__ == "__main__":
    main()
