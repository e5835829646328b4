"""Held-out log likelihood of density trees and lists beside Bayesian networks, in five folds.

    python -m tests.benchmarks.network_comparison [--data-sets titanic ...] [--only levels ...]

Titanic with its four columns, tic-tac-toe with its ten, and with --data (or the variable
BAYESCASCADE_DATA) nltcs, learned on its training file and scored on its test file. A cascade is
scored by its most probable tree and by the average over all trees, or over draws where there are
too many for the exact search. "by evidence" chooses its settings from a grid by the evidence on the
rows to learn from. Networks need the packages in `requirements-networks.txt`: a graph by hill
climbing on BIC, and a Chow-Liu tree, both with BDeu-smoothed tables.

Parts are leaves, rules with the else, cells, or a network's free probabilities; seconds are those
of a fold.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayescascade import (
    BranchCascade,
    DensityEstimationTree,
    DensityRuleList,
    LeafCascade,
    SmoothedHistogram,
    Table,
)
from bayescascade.data.dealing import deal, with_weights
from bayescascade.methods.cascades.evidence_grid import evidence_grid
from tests.benchmarks.figures import ROOT, parser, say, timed
from tests.benchmarks.networks import NETWORKS

N_FOLDS = 5
CASCADES = {"leaf": LeafCascade, "branch": BranchCascade}
EXPECTED = {"leaf": "expected_leaves", "branch": "expected_branches"}
GRID = {
    "expected_leaves": [3.0, 8.0, 30.0],
    "expected_branches": [0.5, 1.0, 2.0],
    "concentration": [0.5, 1.0, 2.0],
}
INDEPENDENT_GRID = {"leaf_concentration": [0.5, 1.0]}


class Scored(NamedTuple):
    """Sums over the rows held out, nats; the second is that of an average, if there is one."""

    best: float
    average: float | None
    n_parts: float


Contender = Callable[[Table, Table], Scored]


def main() -> None:
    """Print a table for each data set, a line as soon as it is known."""
    made = parser(__doc__, ["titanic", "tic_tac_toe", "nltcs"], ["titanic", "tic_tac_toe"])
    made.add_argument("--only", nargs="+", help="contenders whose names contain one of these")
    arguments = made.parse_args()
    contenders = {
        name: contender
        for name, contender in _contenders().items()
        if not arguments.only or any(word in name for word in arguments.only)
    }
    for name in arguments.data_sets:
        folds = list(_nltcs(arguments.data) if name == "nltcs" else _folds(name))
        say(f"\n{name}: {folds[0][0].schema.n_columns} columns, {len(folds)} fold(s)")
        say(f"{'':<48}{'best':>9}{'average':>9}{'parts':>9}{'seconds':>9}")
        for title, contender in contenders.items():
            say(_line(title, contender, folds))


def _line(title: str, contender: Contender, folds: list[tuple[Table, Table]]) -> str:
    scores, seconds = timed(lambda: [contender(seen, held_out) for seen, held_out in folds])
    n_rows = sum(held_out.total_weight for _, held_out in folds)
    best = sum(scored.best for scored in scores) / n_rows
    averages = [scored.average for scored in scores if scored.average is not None]
    average = f"{sum(averages) / n_rows:.4f}" if averages else ""
    parts = np.mean([scored.n_parts for scored in scores])
    return f"{title:<48}{best:>9.4f}{average:>9}{parts:>9,.1f}{seconds / len(folds):>9.1f}"


def _folds(name: str) -> Iterator[tuple[Table, Table]]:
    table = Table.from_csv(ROOT / "data" / f"{name}.csv")
    for held_out in deal(table.weights, N_FOLDS, np.random.default_rng(0)):
        yield with_weights(table, table.weights - held_out), with_weights(table, held_out)


def _nltcs(folder: Path) -> Iterator[tuple[Table, Table]]:
    seen = Table.from_csv(folder / "nltcs_train.csv")
    yield seen, Table.from_csv(folder / "nltcs_test.csv", schema=seen.schema)


def _contenders() -> Mapping[str, Contender]:
    contenders: dict[str, Contender] = {}
    if find_spec("pgmpy") is not None:
        contenders |= {name: _network(name) for name in NETWORKS}
    contenders |= {
        "smoothed histogram": _histogram,
        "density estimation tree, likelihood": _det("likelihood"),
        "density estimation tree, squared error": _det("squared_error"),
        "density rule list": _rules,
    }
    for model, partitions, leaf in product(CASCADES, ("levels", "subsets"), _LEAVES):
        title = f"{model} cascade, {partitions}, {leaf}"
        contenders[title] = _cascade(model, partitions, leaf)
    for model, leaf in product(CASCADES, _LEAVES):
        contenders[f"{model} cascade, levels, {leaf}, by evidence"] = _by_evidence(model, leaf)
    return contenders


_LEAVES = ("uniform", "independent")


def _network(name: str) -> Contender:
    def score(seen: Table, held_out: Table) -> Scored:
        network = NETWORKS[name](seen)
        return Scored(network.score(held_out), None, network.n_parameters)

    return score


def _histogram(seen: Table, held_out: Table) -> Scored:
    model = SmoothedHistogram().fit(seen)
    return Scored(model.score(held_out), None, float(np.exp(model.log_n_cells_)))


def _det(choose_by: str) -> Contender:
    def score(seen: Table, held_out: Table) -> Scored:
        model = DensityEstimationTree(choose_by=choose_by, random_state=0).fit(seen)
        return Scored(model.score(held_out), None, model.tree_.n_leaves)

    return score


def _rules(seen: Table, held_out: Table) -> Scored:
    model = DensityRuleList(random_state=0).fit(seen)
    best, n_parts = model.score(held_out), model.rules_.n_rules + 1
    return Scored(best, model.set_params(predictive="average").score(held_out), n_parts)


def _cascade(model: str, partitions: str, leaf: str, **settings: float) -> Contender:
    def score(seen: Table, held_out: Table) -> Scored:
        options = {"partitions": partitions, "leaf": leaf, "random_state": 0, **settings}
        cascade = CASCADES[model](**options).fit(seen)
        best, n_leaves = cascade.score(held_out), cascade.tree_.n_leaves
        return Scored(best, cascade.set_params(predictive="average").score(held_out), n_leaves)

    return score


def _by_evidence(model: str, leaf: str) -> Contender:
    def score(seen: Table, held_out: Table) -> Scored:
        grid = {name: GRID[name] for name in (EXPECTED[model], "concentration")}
        if leaf == "independent":
            grid |= INDEPENDENT_GRID
        fixed = {"partitions": ["levels"], "leaf": [leaf]}
        best = evidence_grid(seen, [model], {**grid, **fixed})[0]
        chosen = {name: best.parameters[name] for name in grid}
        print(f"  {best.log_evidence:.2f} {chosen}", file=sys.stderr, flush=True)  # noqa: T201
        return _cascade(model, "levels", leaf, **chosen)(seen, held_out)

    return score


if __name__ == "__main__":
    main()
