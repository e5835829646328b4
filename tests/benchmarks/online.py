"""What gates lose on streams of rows, beside asking always, and the best expert in hindsight.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.online [--data-sets magic letter ...]
    python -m tests.benchmarks.online --regrets

The first 500 rows are labeled; all others come one by one, in an order by seed. Of a logistic
regression and four trees: with the thesis's rates, anytime and adaptive ones, all of models that do
not learn on. Of a logistic regression, a tree and a forest: adaptive rates, without and with
learning from what was bought. Beside them are the same experts where the one of least estimated
loss decides, and a round in fifty asks ("leader"), and a logistic regression that asks near its
margin ("margin"), by the best of five widths in hindsight. Printed are mean losses a round at each
cost, over seeds. `--regrets` prints regrets, and their bounds, on streams of experts that hardly
differ.
"""

from itertools import product

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from bayescascade import OnlineGate
from bayescascade.methods.online.rates import regret_bound
from tests.benchmarks.budget_data import DATA_SETS
from tests.benchmarks.figures import parser, say
from tests.methods.online.similar_experts import hardly_differing

COSTS = (0.1, 0.2, 0.4)
FIRST = 500


def main():
    """Print a line for each gate."""
    made = parser(__doc__, DATA_SETS, ("magic", "letter"))
    made.add_argument("--seeds", type=int, default=5)
    made.add_argument("--gates", nargs="+", help="titles; all by default")
    made.add_argument("--regrets", action="store_true")
    arguments = made.parse_args()
    if arguments.regrets:
        say_regrets()
        return
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
        "leader": (large, leader_loss),
        "margin": (small, margin_loss),
    }
    for name in arguments.data_sets:
        problem = DATA_SETS[name](arguments.data)
        X, y = problem.features.to_numpy(float), problem.labels.to_numpy()
        say(f"\n{name}: {len(y):,} rows; mean loss a round where asking costs {COSTS}")
        for title in arguments.gates or gates:
            models, options = gates[title]
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


def say_regrets():
    """Print the mean regret of three streams for each rate, horizon, number of experts and cost."""
    rng = np.random.default_rng(0)
    for n, k, cost in product((2_000, 20_000, 100_000), (10, 100), (0.1, 0.3, 1.0)):
        texts = []
        for rates in ("horizon", "anytime", "adaptive"):
            regret = np.mean([hardly_differing(rng, rates, n, k, cost) for _ in range(3)])
            bound = regret_bound(n, k, cost, rates)
            texts.append(f"{rates} {regret:,.0f}" + ("" if bound is None else f" of {bound:,.0f}"))
        say(f"{n:>7,} rounds, {k:>3} experts, asking costs {cost}: " + "   ".join(texts))


def leader_loss(X, y, models, cost, seed):
    """Return the loss of the expert of least estimated loss, where one round in fifty asks."""
    gate = OnlineGate.of_models(models, cost=cost).start(X[:FIRST], y[:FIRST])
    pool, classes = gate._pool, gate.classes_
    asks_anyway = np.random.default_rng(seed).random(len(y)) < 0.02
    losses, n_learned, lost = np.zeros(len(pool.names)), FIRST, 0.0
    bought = list(range(FIRST))
    codes = np.searchsorted(classes, y)
    decisions = pool.decide(X)
    for t in range(FIRST, len(y)):
        decided = decisions[t, losses.argmin()]
        if decided >= 0 and not asks_anyway[t]:
            lost += decided != codes[t]
            continue
        lost += cost
        bought.append(t)
        chance = 1.0 if decided < 0 else 0.02  # of asking, given who leads
        losses += np.where(decisions[t] < 0, cost, decisions[t] != codes[t]) / chance
        if len(bought) >= 1.5 * n_learned:
            n_learned = len(bought)
            pool.learn(X[bought], codes[bought])
            decisions = pool.decide(X)
    return lost / (len(y) - FIRST)


def margin_loss(X, y, models, cost, seed):
    """Return the loss of a model that asks with probability b / (b + margin), by the best b."""
    lost = []
    for width in (0.01, 0.03, 0.1, 0.3, 1.0):
        rng, total, bought, n_learned = np.random.default_rng(seed), 0.0, list(range(FIRST)), FIRST
        model = clone(models[0]).fit(X[:FIRST], y[:FIRST])
        margins, answers = np.abs(model.decision_function(X)), model.predict(X)
        for t in range(FIRST, len(y)):
            if rng.random() >= width / (width + margins[t]):
                total += answers[t] != y[t]
                continue
            total += cost
            bought.append(t)
            if len(bought) >= 1.1 * n_learned:
                n_learned = len(bought)
                model.fit(X[bought], y[bought])
                margins, answers = np.abs(model.decision_function(X)), model.predict(X)
        lost.append(total / (len(y) - FIRST))
    return min(lost)


def loss_of(X, y, models, cost, seed, options):
    """Return the mean loss of a round of a gate, over rows in an order by `seed`."""
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    if callable(options):
        return float(options(X, y, models, cost, seed))
    more = dict(options)
    if more.get("rates") == "horizon":
        more["horizon"] = len(y) - FIRST
    gate = OnlineGate.of_models(models, cost=cost, random_state=seed, **more)
    gate.start(X[:FIRST], y[:FIRST]).partial_fit(X[FIRST:], y[FIRST:])
    return float(gate.played_.losses(y[FIRST:]).mean())


if __name__ == "__main__":
    main()
