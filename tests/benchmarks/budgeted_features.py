"""Features that budgeted and plain forests use at so many trees: table 3.1 of Nan's thesis (2018).

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.budgeted_features [--data-sets magic ...]

Each cell is the share of the features that a test row acquires, in percent, and the error, means
over random divisions of the rows in two thirds and one. Every feature costs 1. The last lines have,
for each error of a plain forest, the features that the budgeted ones need to err no more.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from bayescascade.budget import BudgetedForestClassifier, Forest
from tests.benchmarks.figures import parser, say

N_TREES = (1, 10, 20, 40)
MORE_TREES = (*N_TREES, 80, 160)

Grow = Callable[[NDArray[np.float32], NDArray[np.int64], int, int], Forest]


def main() -> None:
    """Print a table for each data set as soon as it is there."""
    made = parser(__doc__, ("covertype", "magic"), ("covertype", "magic"))
    made.add_argument("--runs", type=int, default=5)
    arguments = made.parse_args()
    for name in arguments.data_sets:
        (path,) = arguments.data.glob(f"{name}.csv*")
        frame = pd.read_csv(path)
        labels = np.unique(frame.pop("target"), return_inverse=True)[1]
        X = frame.to_numpy(np.float32)
        say(f"\n{name}: {len(X):,} rows, {X.shape[1]} features")
        for line in comparison(X, labels, arguments.runs):
            say(line)


def comparison(X: NDArray[np.float32], y: NDArray[np.int64], n_runs: int) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"{'trees':<28}" + "".join(f"{n:>16}" for n in MORE_TREES)
    measured = {}
    for name, grow in _FORESTS.items():
        sizes = N_TREES if name.startswith("plain") else MORE_TREES
        measured[name] = _measure(grow, sizes, X, y, n_runs)
        cells = [f"{100 * used:5.1f} ({error:.4f})" for used, error in measured[name]]
        yield f"{name:<28}" + "".join(f"{cell:>16}" for cell in cells)
    yield "features needed to err no more than"
    ours = [name for name in _FORESTS if not name.startswith("plain")]
    for plain in (name for name in _FORESTS if name.startswith("plain")):
        for n_trees, (used, error) in zip(N_TREES, measured[plain], strict=True):
            needed = ", ".join(f"{_least_used(measured[name], error)} {name}" for name in ours)
            yield f"  {plain}, {n_trees} trees, {error:.4f}: {100 * used:.1f} % {plain}, {needed}"


def _measure(
    grow: Grow,
    sizes: tuple[int, ...],
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    n_runs: int,
) -> list[tuple[float, float]]:
    """Return the mean share of features used and the mean error at each number of trees."""
    figures = np.empty((n_runs, len(sizes), 2))
    for run in range(n_runs):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=1 / 3, random_state=run, stratify=y
        )
        for i, n_trees in enumerate(sizes):
            forest = grow(X_train, y_train, n_trees, run)
            said = forest.predict_proba(X_test).argmax(axis=1)
            figures[run, i] = forest.features_used(X_test).mean(), np.mean(said != y_test)
    return [(float(used), float(error)) for used, error in figures.mean(axis=0)]


def _least_used(measured: list[tuple[float, float]], error: float) -> str:
    enough = [used for used, own in measured if own <= error]
    return f"{100 * min(enough):.1f} %" if enough else "never"


def _plain(criterion: str) -> Grow:
    def grow(X: NDArray[np.float32], y: NDArray[np.int64], n_trees: int, seed: int) -> Forest:
        model = RandomForestClassifier(n_trees, criterion=criterion, random_state=seed, n_jobs=2)
        return Forest.from_sklearn(model.fit(X, y))

    return grow


def _budgeted(**settings: object) -> Grow:
    def grow(X: NDArray[np.float32], y: NDArray[np.int64], n_trees: int, seed: int) -> Forest:
        model = BudgetedForestClassifier(max_trees=n_trees, random_state=seed, n_jobs=2, **settings)
        return model.fit(X, y).forest_

    return grow


_FORESTS = {
    "plain, Gini index": _plain("gini"),
    "plain, entropy": _plain("entropy"),
    "budgeted": _budgeted(),
    "budgeted, a third drawn": _budgeted(max_features=1 / 3),
    "budgeted, all columns": _budgeted(max_features=None),
    "budgeted, as in the thesis": _budgeted(
        max_features=None, thresholds="random", reuse_is_free=False
    ),
}


if __name__ == "__main__":
    main()
