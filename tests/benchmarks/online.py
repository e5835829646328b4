"""What gates lose on streams of rows, beside asking always, and the best expert in hindsight.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.online [--data-sets magic letter ...]

The first 500 rows are labeled; all others come one by one, in an order by seed. Of a logistic
regression and four trees: with the thesis's rates, anytime and adaptive ones, all of models that do
not learn on. Of a logistic regression, a tree and a forest: adaptive rates, without and with
learning from what was bought. Printed are mean losses a round at each cost, over seeds.
"""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from bayescascade import OnlineGate
from tests.benchmarks.budget_data import DATA_SETS
from tests.benchmarks.figures import parser, say

COSTS = (0.1, 0.2, 0.4)
FIRST = 500


def main() -> None:
    """Print a line for each gate."""
    made = parser(__doc__, DATA_SETS, ("magic", "letter"))
    made.add_argument("--seeds", type=int, default=5)
    arguments = made.parse_args()
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
    trees = [tree.__class__(max_depth=d, min_samples_leaf=5, random_state=0) for d in (3, 5, 8, 12)]
    small, large = (
        [logistic, *trees],
        [logistic, tree, RandomForestClassifier(200, random_state=0)],
    )
    thesis = {"rates": "horizon", "exploration": "mix", "known_cost": False, "learns": False}
    gates = {
        "thesis's rates": (small, thesis),
        "anytime": (small, {"rates": "anytime", "learns": False}),
        "adaptive": (small, {"learns": False}),
        "with a forest": (large, {"learns": False}),
        "learning": (large, {}),
    }
    for name in arguments.data_sets:
        problem = DATA_SETS[name](arguments.data)
        X, y = problem.features.to_numpy(float), problem.labels.to_numpy()
        say(f"\n{name}: {len(y):,} rows; mean loss a round where asking costs {COSTS}")
        for title, (models, options) in gates.items():
            found = [
                [
                    loss_of(X, y, models, cost, seed, options)
                    for seed in range(arguments.seeds)
                ]
                for cost in COSTS
            ]  # fmt: skip
            mean, error = np.mean(found, axis=1), np.std(found, axis=1) / np.sqrt(arguments.seeds)
            texts = (f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))
            say(f"{title:<16}" + "   ".join(texts))


def loss_of(X, y, models, cost, seed, options) -> float:
    """Return the mean loss of a round of a gate, over rows in an order by `seed`."""
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    more = dict(options)
    if more.get("rates") == "horizon":
        more["horizon"] = len(y) - FIRST
    gate = OnlineGate.of_models(models, cost=cost, random_state=seed, **more)
    gate.start(X[:FIRST], y[:FIRST]).partial_fit(X[FIRST:], y[FIRST:])
    return float(gate.played_.losses(y[FIRST:]).mean())


if __name__ == "__main__":
    main()
