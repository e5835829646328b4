"""What gated sensors get right at each mean cost, beside sets that always send.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.sensors [--data-sets pendigits ...]

A third of the rows tests; splits are by seed. Sensors are the 8 points of a pen (pendigits), 16
tiles of 7 x 7 pixels (mnist_10k), or 8 spans of 77 columns (isolet, whose last one has one more);
each costs 1. For each budget: accuracy and mean cost of the test rows of the best within it, of
sensors that always send alone, and of gates alone. With `--by-name`, OPT-Direct soft and with the
hard gates that count, and the relaxation. Then the nearest neighbor by each sensor, and their vote.
"""

import time

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from bayescascade import GatedSensorsClassifier
from bayescascade.base.threads import single_threaded
from bayescascade.methods.sensors.models import SOFTMAX, GatedNet
from bayescascade.methods.sensors.signals import Sensors, SensorScaling
from bayescascade.methods.sensors.training import SensorProblem, opened, trained
from tests.benchmarks.figures import parser, say

FILES = {"pendigits": "pendigits.csv", "mnist_10k": "mnist_10k.csv.gz", "isolet": "isolet.csv.gz"}
BUDGETS = {
    "pendigits": (2.5, 2.8, 3.2, 3.9, 5.0, 5.5),
    "mnist_10k": (2.5, 3.2, 4.3, 5.5, 8.0),
    "isolet": (2.5, 3.0, 4.0, 5.4),
}


def main():
    """Print a table for each data set."""
    made = parser(__doc__, FILES, tuple(FILES))
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--features", default="linear")
    made.add_argument("--by-name", action="store_true")
    made.add_argument("--neighbors", action="store_true")
    arguments = made.parse_args()
    for name in arguments.data_sets:
        X, y, sensors = problem(arguments.data, name)
        say(f"\n{name}: {len(y):,} rows, {len(sensors)} sensors, {arguments.features} features")
        splits = [
            train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
            for seed in range(arguments.seeds)
        ]
        curve(name, splits, sensors, arguments.features)
        if arguments.by_name:
            by_name(splits[0], sensors, BUDGETS[name])
        if arguments.neighbors:
            neighbors(splits, sensors)


def problem(folder, name):
    """Return rows, labels and the columns of each sensor."""
    frame = pd.read_csv(f"{folder}/{FILES[name]}")
    y, X = frame.pop("target").to_numpy(), frame.to_numpy(float)
    places = np.arange(X.shape[1])
    if name == "mnist_10k":
        of = places // 28 // 7 * 4 + places % 28 // 7
    else:
        of = np.minimum(places // (2 if name == "pendigits" else 77), 7)
    return X, y, {f"sensor {k + 1}": np.flatnonzero(of == k).tolist() for k in range(of.max() + 1)}


def curve(name, splits, sensors, features):
    """Print what is best within each budget, means over splits."""
    began, result = time.process_time(), []
    for seed, (X, X_test, y, y_test) in enumerate(splits):
        made = GatedSensorsClassifier(sensors=sensors, features=features, random_state=seed)
        model = made.set_params(budget=min(BUDGETS[name]))
        model._trial = model._try(BUDGETS[name], X, y)
        rows = []
        for budget in BUDGETS[name]:
            row = []
            for kind in ("", "always", "gates"):
                best = only(model, kind)._chosen(budget)
                row += [best.score(X_test, y_test), best.activation_cost(X_test).mean()]
            rows.append(row)
        result.append(rows)
    seconds = (time.process_time() - began) / len(splits)
    say("budget   best within: right, cost   always send: right, cost   gates: right, cost")
    for budget, row in zip(BUDGETS[name], np.mean(result, axis=0), strict=True):
        cells = (f"{row[k]:.4f}  {row[k + 1]:5.2f}" for k in (0, 2, 4))
        say(f"{budget:6.1f}   " + "        ".join(cells))
    say(f"{seconds:.0f} s of one core a split")


def only(model, kind):
    """Return a model that has tried only one kind of candidates."""
    if not kind:
        return model
    made = GatedSensorsClassifier.__new__(GatedSensorsClassifier)
    made.__dict__.update(model.__dict__)
    kept = [one for one in model._trial.candidates if one.kind.startswith(kind)]
    made._trial = model._trial._replace(candidates=kept)
    return made


def by_name(split, sensors, budgets):
    """Print OPT-Direct, soft and hard, and what the other trainings come to."""
    X, X_test, y, y_test = split
    direct(split, sensors)
    for how in ({"method": "direct"}, {"method": "direct", "activation": "relu"},
                {"method": "relaxed"}):  # fmt: skip
        model = GatedSensorsClassifier(sensors=sensors, budget=min(budgets), random_state=0, **how)
        model.fit(X, y)
        found = [only(model, "gates").within(budget) for budget in budgets]
        texts = [
            f"{one.score(X_test, y_test):.3f} at {one.activation_cost(X_test).mean():.2f}"
            for one in found
        ]
        say(f"{' '.join(how.values())}, gates: " + "   ".join(texts))


def direct(split, sensors):
    """Print OPT-Direct at lambda = 0.3 of the mean gate, by its soft gates and by hard ones."""
    X, X_test, y, y_test = split
    places = tuple(np.array(columns) for columns in sensors.values())
    given = Sensors(tuple(sensors), places, np.ones(len(sensors)))
    columns = given.in_matrix(np.arange(X.shape[1]))
    scaling = SensorScaling.of(X, columns, 0, 0)
    classes, rng = np.unique(y), np.random.default_rng(0)
    targets = (y[:, np.newaxis] == classes).astype(float)
    problem = SensorProblem(
        scaling.signals(X, "linear", columns), targets, SOFTMAX, given.costs, 1.0
    )
    with single_threaded():
        weights = trained(problem, 0.3 / len(sensors), opened(problem, rng), 8000, "sigmoid", rng)
    tests = scaling.signals(X_test, "linear", columns)
    for gates in ("sigmoid", "step"):
        net = GatedNet(weights, gates)
        right = (classes[net.outputs(tests).argmax(axis=1)] == y_test).mean()
        say(f"direct, lambda 0.3, gates {gates}: {right:.4f}, mean {net.gates(tests).mean():.2f}")


def neighbors(splits, sensors):
    """Print the nearest neighbor by each sensor, and by their vote."""
    alone, votes = [], []
    for X, X_test, y, y_test in splits:
        said = [
            KNeighborsClassifier(1).fit(X[:, columns], y).predict(X_test[:, columns])
            for columns in sensors.values()
        ]
        alone.append([(one == y_test).mean() for one in said])
        classes = np.unique(y)
        counts = sum((one[:, np.newaxis] == classes).astype(int) for one in said)
        votes.append((classes[counts.argmax(axis=1)] == y_test).mean())
    texts = " ".join(f"{one:.3f}" for one in np.mean(alone, axis=0))
    say(f"nearest neighbor by sensor: {texts}; by vote {np.mean(votes):.4f}")


if __name__ == "__main__":
    main()
