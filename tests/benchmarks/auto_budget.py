"""Test accuracy of the method chosen for each budget, beside that of each method alone.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.auto_budget [--data-sets hepatitis ...]
        [--seeds 5] [--methods prune ...] [--time-limit SECONDS]

Each method is fitted to each split, and chosen from as `bayescascade budget` does: by
validation rows, a fifth of all, or if fewer than 1,000 rows are not for the test, by
cross-validation. The lines of a table: mean accuracy in percent and its standard error over splits,
within 10, 20, 30, 50 and 100 % of what all columns cost, which is Turney's price or 1. The last
lines are by how much the choice is above the method whose mean is the best there, with the standard
error of that difference between the same splits: of all splits, which favors this method, as some
method is lucky, and of the splits but the one that is compared.
"""

import numpy as np
import pandas as pd
from sklearn.base import clone

from bayescascade import AutoBudgetClassifier
from bayescascade.costs.choice import FEW_ROWS
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.methods.budget.listed import IN_TURN
from tests.benchmarks.budget_data import DATA_SETS, REAL_COSTS, costs_of, split
from tests.benchmarks.budget_results import summed
from tests.benchmarks.figures import parser, say

SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)


def main():
    """Print the table of each data set."""
    made = parser(__doc__, DATA_SETS, ("hepatitis", "pima"))
    made.add_argument("--seeds", type=int, default=5)
    made.add_argument("--methods", nargs="+", choices=IN_TURN, default=IN_TURN)
    made.add_argument("--time-limit", type=float)
    asked = made.parse_args()
    for name in asked.data_sets:
        tables = {}
        for seed in range(asked.seeds):
            found = accuracies(name, asked.data, seed, asked.methods, asked.time_limit)
            for method, row in found.items():
                tables.setdefault(method, []).append(row)
        say(f"\n{name}, {asked.seeds} splits")
        found = {method: 100 * np.array(rows) for method, rows in tables.items()}
        for method, table in found.items():
            say(f"{method:12}" + _cells(table))
        single = np.array([table for method, table in found.items() if method != "auto"])
        splits, shares = np.indices(found["auto"].shape)
        means = np.broadcast_to(single.mean(axis=1, keepdims=True), single.shape)
        others = means * asked.seeds - single  # sums over the other splits
        for title, of in (("above best", means), ("of others", others)):
            say(f"{title:12}" + _cells(found["auto"] - single[of.argmax(axis=0), splits, shares]))


def _cells(table):
    """Return means over splits, (n_splits, n_budgets), with their standard errors."""
    means, errors = summed(table)
    return "".join(f"{mean:8.1f} ± {e:3.1f}" for mean, e in zip(means, errors, strict=True))


def accuracies(name, folder, seed, methods, limit):
    """Return test accuracies by budget, of each method and of what is chosen."""
    problem = DATA_SETS[name](folder)
    costs = costs_of(name, "real" if name in REAL_COSTS else "unit", problem, folder, seed)
    total = float(costs.resolve(list(problem.features.columns)).costs.sum())
    train, validation, test = split(problem, seed)
    rows = [train.features, train.labels, validation.features, validation.labels]
    if len(train.labels) + len(validation.labels) < FEW_ROWS:
        rows = [pd.concat(rows[::2], ignore_index=True), pd.concat(rows[1::2], ignore_index=True)]
    auto = AutoBudgetClassifier(
        costs=costs, methods=methods, time_limit=limit, n_jobs=1, random_state=seed
    )
    budgets = [share * total for share in SHARES]
    chosen = [model for _, model in auto.fit_budgets(budgets, *rows)]
    commonest = train.labels.mode()[0]

    def right(model):
        is_one = isinstance(model, BudgetedClassifier)
        said = model.predict(test.features) if is_one else commonest
        return float((said == test.labels.to_numpy()).mean())

    found = {}
    tried = list(chosen[0]._trial.tried)
    for method in chosen[0].behind_:
        alone = clone(auto).set_params(methods=(method,)).fit_budgets(budgets, *rows)
        tried += next(alone)[1]._trial.tried
    for one in tried:
        found[one.method] = np.array([right(model) for model in one.found])
    return {**found, "auto": np.array([right(model) for model in chosen])}


if __name__ == "__main__":
    main()
