"""What `budget_curves` has measured, kept in a file, and tables of it.

The file is CSV: a row for each data set, costs, seed and method, with errors on the test rows and
costs of a row (a share of what all columns cost) within each of `ALL_SHARES`.
"""

import csv
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from tests.benchmarks.budget_data import DATA_SETS
from tests.benchmarks.budget_methods import ALL_SHARES, OURS, SHARES
from tests.benchmarks.figures import ROOT

KEPT = ROOT / "docs" / "budget_curves.csv"
"""The results that the documentation shows."""
TABLE_SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)
TITLES = {
    "l1": "`CostWeightedLogisticClassifier`",
    "CSTC": "`CostSensitiveTreeClassifier`",
    "ASTC": "`SubmodularTreeClassifier`",
    "FMCC": "`MarginNeighborsClassifier`",
    "BudgetTree": "`BudgetTreeClassifier`",
    "BudgetRF": "`BudgetedForestClassifier`",
    "BudgetPrune": "`BudgetPruneClassifier`",
    "GreedyMiser": "`GreedyMiserClassifier`",
    "Adapt-LstSq": '`AdaptiveClassifier`, linear, `distance="log_odds"`',
    "Adapt-Lin": "`AdaptiveClassifier`, linear",
    "Adapt-GBRT": "`AdaptiveClassifier`",
    "LightGBM lazy": "LightGBM, lazy penalties",
    "LightGBM coupled": "LightGBM, coupled penalties",
}
"""Of the methods, for readers."""

Asked = tuple[str, str, int, float]
"""Data set, kind of costs, seed, and `--within`."""


class Result(NamedTuple):
    """What a method errs and costs on one split, within each of `ALL_SHARES`."""

    data: str
    costs: str
    seed: int
    within: float
    method: str
    n_rows: int
    seconds: float
    errors: tuple[float, ...]
    spent: tuple[float, ...]

    def at(self, shares):
        """Return errors and costs at some of the shares, (2, n_shares)."""
        places = [ALL_SHARES.index(share) for share in shares]
        return np.array([self.errors, self.spent])[:, places]


COLUMNS = (
    *Result._fields[:-2],
    *(f"{what}_{share:.2f}" for what in ("error", "cost") for share in ALL_SHARES),
)
"""Of the file."""


class Results:
    """Results by what was asked and method; those of a file, if there is one."""

    def __init__(self, file):
        self._file = file
        self._known = {}
        self._read()

    def _read(self):
        if self._file is not None and self._file.exists():
            for row in pd.read_csv(self._file).itertuples(index=False, name=None):
                n_before = len(row) - len(ALL_SHARES)
                self._remember(Result(*row[:7], row[7:n_before], row[n_before:]))

    def _remember(self, result):
        self._known[result[:4], result.method] = result

    def has(self, asked, method):
        """Whether it is known, or another process has added it to the file."""
        if (asked, method) not in self._known:
            self._read()
        return (asked, method) in self._known

    def add(self, result):
        """Keep a result, in the file, too."""
        self._remember(result)
        if self._file is not None:
            is_new = not self._file.exists()
            with self._file.open("a", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                if is_new:
                    rows.writerow(COLUMNS)
                rows.writerow([*result[:-2], *result.errors, *result.spent])

    def of(self, name, costs, method, within=0.0):
        """Return the results of all seeds."""
        found = (r for r in self._known.values() if r.method == method and r.within == within)
        chosen = [r for r in found if (r.data, r.costs) == (name, costs)]
        return sorted(chosen, key=lambda result: result.seed)

    def table(self, asked, methods):
        """Yield the table of one data set, over the seeds that were asked."""
        found = {method: [self._known[one, method] for one in asked] for method in methods}
        first = found[methods[0]][0]
        kind = f"{first.data}, {first.costs} costs, {first.n_rows:,} rows to learn from"
        yield f"\n{kind}, {len(asked)} seeds"
        yield f"{'cost at most':22}" + "".join(f"{share:>14.0%}" for share in SHARES) + "   seconds"
        ours = np.array([one.at(SHARES)[0] for one in found[OURS]]) if OURS in found else None
        for method, results in found.items():
            errors, spent = np.array([one.at(SHARES) for one in results]).swapaxes(0, 1)
            marks = [""] * len(SHARES) if ours is None else beats(errors, ours)
            cells = (
                f"{100 * m:8.2f}{mark or ' '}({100 * e:.2f})"
                for m, e, mark in zip(*summed(errors), marks, strict=True)
            )
            seconds = np.mean([one.seconds for one in results])
            yield f"{method:22}" + "".join(cells) + f"{seconds:10.1f}"
            parts = (
                f"{100 * m:6.1f} ({100 * e:.1f}) %" for m, e in zip(*summed(spent), strict=True)
            )
            yield f"{'':22}" + "".join(parts)

    def markdown(self, against=None):
        """Yield Markdown tables of accuracy in percent, one a kind of costs, one row a method.

        Or, of the splits that both have, tables of differences to the accuracy of a method.
        """
        for costs in ("unit", "random", "real"):
            names = [name for name in DATA_SETS if any(self.of(name, costs, m) for m in TITLES)]
            for part in (names[:3], names[3:]):
                columns = [self._column(name, costs, against) for name in part]
                columns = [each for each in columns if len(each) > 1]
                methods = [method for method in TITLES if any(method in each for each in columns)]
                if methods:
                    yield f"\n| {costs} costs | {' | '.join(each['title'] for each in columns)} |"
                    yield "|---" * (len(columns) + 1) + "|"
                for method in methods:
                    cells = (each.get(method, "") for each in columns)
                    yield f"| {TITLES[method]} | {' | '.join(cells)} |"

    def _column(self, name, costs, against):
        """Return the cell of each method on a data set, and the column's title."""
        tables = {method: self._table(name, costs, method, against) for method in TITLES}
        tables = {m: table for m, table in tables.items() if len(table) and m != against}
        numbers = Counter(len(table) for table in tables.values())
        usual = numbers.most_common(1)[0][0] if numbers else 0
        column = {"title": f"{name} ({usual})"}
        for method, table in tables.items():
            means, errors = summed(table)
            words = [f"{mean:+.1f}" if against else f"{mean:.1f}" for mean in means]
            if against and len(table) > 1:
                words = [f"{m} ± {e:.1f}," for m, e in zip(words, errors, strict=True)]
                words[-1] = words[-1].rstrip(",")
            elif len(table) > 1:
                words.append(f"± {errors.max():.1f}")
            if len(table) != usual:
                words.append(f"({len(table)})")
            column[method] = " ".join(words)
        return column

    def _table(self, name, costs, method, against):
        """Return accuracy in percent, or what it is above another's; a row a split."""
        theirs = {one.seed: one for one in self.of(name, costs, against or method)}
        pairs = [
            (one.at(TABLE_SHARES)[0], theirs[one.seed].at(TABLE_SHARES)[0])
            for one in self.of(name, costs, method)
            if one.seed in theirs
        ]
        return 100 * np.array([(other if against else 1.0) - errors for errors, other in pairs])


def summed(table):
    """Return the mean over the rows, one a seed, and its standard error."""
    return table.mean(axis=0), standard_error(table)


def standard_error(table):
    """Return the standard error of the mean over the rows, one a seed."""
    if len(table) < 2:
        return np.zeros(table.shape[1])
    return table.std(axis=0, ddof=1) / np.sqrt(len(table))


def beats(table, ours):
    """Return "*" where a method errs less than ours by more than a standard error."""
    differences = ours - table
    return ["*" if d > 0 else "" for d in differences.mean(axis=0) - standard_error(differences)]
