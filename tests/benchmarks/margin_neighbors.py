"""What asking row by row buys: curves, whether it knows how right it is, and how long it takes.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.margin_neighbors curves \
        [--data-sets letter magic ...] [--costs unit random] [--seeds 5] [--peers BudgetPrune ...]
    BAYESCASCADE_DATA=folder python -m tests.benchmarks.margin_neighbors estimates
    BAYESCASCADE_DATA=folder python -m tests.benchmarks.margin_neighbors parts [--seeds 5]
    BAYESCASCADE_DATA=folder python -m tests.benchmarks.margin_neighbors speed

Splits, costs and peers are those of `budget_curves`: 60 % of the rows are learned from, 20 % choose
within each budget, a share of what all columns cost, and at most 2,000 of the others test. Curves
are of test accuracy in percent, with standard errors of the mean over seeds. "fixed number" stops
after a number of features and predicts by the margin, "as printed" is the thesis's rule with 65
neighbors, whose threshold the validation rows choose; in a fixed or random order, margins predict
after a number of features.
"""

from dataclasses import replace
from functools import partial
from itertools import product
from time import process_time

import numpy as np
from sklearn.linear_model import LogisticRegression

from bayescascade import MarginNeighborsClassifier
from bayescascade.methods.budget.neighbors.margins import probabilities_of
from bayescascade.methods.budget.neighbors.nearest_fitting import ValidationRoutes
from bayescascade.methods.budget.neighbors.rule import NEVER, Rule
from tests.benchmarks import budget_methods as peers
from tests.benchmarks.budget_data import DATA_SETS, REAL_COSTS, Split, costs_of, split
from tests.benchmarks.budget_results import standard_error
from tests.benchmarks.budget_validation import Judged, best_within, commonest_label
from tests.benchmarks.figures import Figure, figures_table, parser, say, timed
from tests.benchmarks.margin_rules import rules_within

SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)
MOST_TESTS = 2000

PRINTED = {
    "n_neighbors": 65,
    "tradeoff": 0.0,
    "stop": "threshold",
    "margins": "in_sample",
    "ties": "first",
    "predict_by": "margin",
}
NUMBERS = (65, 125, 185)  # of neighbors, in the thesis's table 2.1
STEPS = (1, 2, 5, 8)


def main():
    """Print what is asked for as soon as it is there."""
    made = parser(__doc__, DATA_SETS, ("letter", "magic", "covertype"))
    made.add_argument("what", choices=("curves", "estimates", "parts", "speed"))
    made.add_argument("--costs", nargs="+", choices=("unit", "random", "real"), default=["unit"])
    made.add_argument("--seeds", type=int, default=5)
    made.add_argument("--peers", nargs="*", choices=peers.METHODS, default=[])
    chosen = made.parse_args()
    if chosen.what == "speed":
        say(*figures_table([*speed(chosen.data)]))
        return
    if chosen.what == "parts":
        say(*parts(chosen.data, chosen.seeds))
        return
    for name in chosen.data_sets:
        if chosen.what == "estimates":
            say(*estimates(name, chosen.data))
            continue
        for kind in chosen.costs:
            if kind != "real" or name in REAL_COSTS:
                say(*curves(name, kind, chosen.data, chosen.seeds, chosen.peers))


def _parts(name, folder, seed):
    train, validation, test = split(DATA_SETS[name](folder), seed)
    return Split(train, validation, type(test)(*(each[:MOST_TESTS] for each in test)))


def curves(name, kind, folder, n_seeds, others):
    """Yield the table of one data set."""
    right = {}
    spent = {}
    seconds = {}
    for seed in range(n_seeds):
        rows = _parts(name, folder, seed)
        costs = costs_of(name, kind, DATA_SETS[name](folder), folder, seed)
        total = float(costs.resolve(list(rows.train.features.columns)).costs.sum())
        budgets = [share * total for share in SHARES]
        found = {}
        started = process_time()
        model = _fitted(rows, costs, seed, {})
        seconds["FMCC"] = seconds.get("FMCC", 0.0) + process_time() - started
        printed = _fitted(rows, costs, seed, PRINTED)
        found["FMCC"] = rules_within(model, rows, budgets)
        for margins in ("out_of_fold", "in_sample"):
            found[margins] = rules_within(model, rows, budgets, margins=margins)
        found["fixed number"] = rules_within(
            model, rows, budgets, stop="number", predict_by="margin"
        )
        found["as printed"] = rules_within(printed, rows, budgets)
        for order in ("fixed order", "random order"):
            found[order] = _by_number(model, rows, order, seed, total)
        if others:
            setting = replace(peers.set_up(name, kind, folder, seed), rows=rows)
            for other in others:
                started = process_time()
                judged = [*peers.METHODS[other](setting), commonest_label(rows)]
                found[other] = [best_within(judged, share * total) for share in SHARES]
                seconds[other] = seconds.get(other, 0.0) + process_time() - started
        for variant, text in found.items():
            right.setdefault(variant, []).append([100 * (1 - one.test_error) for one in text])
            spent.setdefault(variant, []).append([100 * one.test_cost / total for one in text])
    yield f"\n{name}, {kind} costs, {len(rows.train.labels):,} rows, {n_seeds} seeds"
    yield f"{'cost at most':16}" + "".join(f"{share:>14.0%}" for share in SHARES) + "   CPU s"
    for variant, table in right.items():
        means, errors = np.mean(table, axis=0), standard_error(np.array(table))
        cells = "".join(f"{m:8.1f} ({e:.1f})" for m, e in zip(means, errors, strict=True))
        took = f"{seconds[variant] / n_seeds:8.1f}" if variant in seconds else ""
        yield f"{variant:16}{cells}{took}"
        yield f"{'  spent, %':16}" + "".join(f"{m:8.1f}      " for m in np.mean(spent[variant], 0))


def _fitted(rows, costs, seed, how):
    model = MarginNeighborsClassifier(costs=costs, random_state=seed, **how)
    train, validation, _ = rows
    return model.fit(train.features, train.labels, validation.features, validation.labels)


def _by_number(model, rows, order, seed, total):
    """Return the best numbers of features in an order that no row changes."""
    around = model._asks.around
    rule = Rule(8, 0.0, "number", 0.0, "margin")
    rng = np.random.default_rng(seed)
    curves = []
    for part in (rows.validation, rows.test):
        cells = model._matrix(part.features[:MOST_TESTS])
        labels = np.searchsorted(model.classes_, part.labels.to_numpy()[:MOST_TESTS])
        d = around.items.n_columns
        first = np.tile(np.argsort(-around.start.with_each, kind="stable"), (len(cells), 1))
        if order == "random order":
            first = rng.permuted(np.tile(np.arange(d), (len(cells), 1)), axis=1)
        found = around.routes(cells, rule, NEVER, first=first)
        wrong = probabilities_of(found.scores).argmax(axis=2) != labels[:, np.newaxis]
        curves.append((found.costs.mean(axis=0), wrong.mean(axis=0)))
    (cost, error), (test_cost, test_error) = curves
    judged = [Judged(*each) for each in zip(cost, error, test_cost, test_error, strict=True)]
    judged.append(commonest_label(rows))
    return [best_within(judged, share * total) for share in SHARES]


def estimates(name, folder):
    """Yield, by step, shares of neighbors right, estimated and actual accuracy (table 2.1)."""
    rows = _parts(name, folder, 0)
    yield f"\n{name}: neighbors right, accuracy estimated, and actual, after as many features"
    yield f"{'neighbors':20}" + "".join(f"{step:>18}" for step in STEPS)
    for margins in ("in_sample", "out_of_fold"):
        model = MarginNeighborsClassifier(
            margins=margins, n_neighbors=65, stop="number", max_features=1, predict_by="margin",
            random_state=0,
        ).fit(rows.train.features, rows.train.labels, rows.validation.features,
              rows.validation.labels)  # fmt: skip
        for number in NUMBERS:
            rule = model.rule_._replace(n_neighbors=number)
            judged, tested = (_followed(model, rule, part) for part in (rows.validation, rows.test))
            shares = tested.accuracy
            estimated = rule.calibrated(shares, judged.offsets()).mean(axis=0)
            right = 1 - tested.wrong["margin"].mean(axis=0)
            cells = [
                f"   {shares[:, step].mean():.3f} {estimated[step]:.3f} {right[step]:.3f}"
                for step in STEPS
            ]
            yield f"{margins:16}{number:4}" + "".join(cells)


def parts(folder, n_seeds):
    """Yield test accuracy after a fixed number of features, with and without two of the parts."""
    logistic = LogisticRegression(max_iter=1000)  # of standardized columns
    compared = (
        *(("spambase", n, logistic, "rest", ("zero", "neighbors")) for n in (2, 5, 10)),
        ("letter", 2, None, "ties", ("first", "all")),
    )
    for name, n_features, estimator, option, values in compared:
        right = {value: [] for value in values}
        for seed, value in product(range(n_seeds), values):
            rows = _parts(name, folder, seed)
            number = {"stop": "number", "max_features": n_features, "predict_by": "margin"}
            how = {"estimator": estimator, "n_neighbors": 65, **number, option: value}
            model = _fitted(rows, None, seed, how)
            right[value].append(100 * model.score(rows.test.features, rows.test.labels))
        said = ", ".join(
            f"{value} {np.mean(each):.1f} ({standard_error(np.array(each)[:, None])[0]:.1f})"
            for value, each in right.items()
        )
        yield f"{name}, {n_features} features, {option}: {said}"


def _followed(model, rule, part):
    """Return the ways of rows to their ends, of 2,000 at most."""
    cells = part.features.to_numpy(np.float64)[:MOST_TESTS]
    labels = np.searchsorted(model.classes_, part.labels.to_numpy()[:MOST_TESTS])
    return ValidationRoutes.of(rule, model._asks.around.routes(cells, rule, NEVER), labels)


def speed(folder):
    """Yield CPU seconds of one thread; compiling is not among them."""
    rows = _parts("letter", folder, 0)
    fit = partial(_fitted, rows, None, 0, {})
    model, seconds = timed(fit, 2, process_time)
    yield Figure("fit, letter, 12,000 rows", seconds, "s", at_most=60.0)
    cells = rows.test.features.to_numpy(np.float64)[:500]
    rule = Rule(65, 0.0, "number", 16.0, "margin")
    _, seconds = timed(partial(model._asks.around.routes, cells, rule, NEVER), 2, process_time)
    yield Figure("a row, all 16 features", 1e3 * seconds / len(cells), "ms", at_most=3.0)


if __name__ == "__main__":
    main()
