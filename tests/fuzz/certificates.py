"""Attacks whatever is called exact, optimal or proved, on problems whose every tree is known.

``python -m tests.fuzz.certificates --minutes 5 --seed 0``

Trees of both models, by all boxes, by those that hold data, in files, by tilts and by estimators'
defaults, and trees of dependent leaves, against sums over all trees in 45 digits; rule lists and
prunings against enumeration; purchases of up to 1,000,000 rows against fractions.
"""

import tempfile
import warnings
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayescascade import BranchCascade, LeafCascade, explore
from bayescascade.base.errors import TooLargeError
from bayescascade.methods.budget.classifier_trees.posterior import solved
from bayescascade.methods.budget.classifier_trees.rounding import (
    rounding_of_leaf,
    rounding_of_share,
)
from bayescascade.methods.density.trees.exact import (
    ExactCost,
    SummedPosterior,
    cost,
    solve,
    solve_by_tilts,
)
from bayescascade.methods.density.trees.exact.passes import Passes
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.redraws import SubtreeRedraws
from bayescascade.methods.density.trees.exact.shared import SharedBoxes
from bayescascade.methods.density.trees.tree import block_codes
from tests.fuzz import lists
from tests.fuzz.running import Found, Problem, main
from tests.methods.budget.classifier_trees.test_purchase_proofs import alike, errors
from tests.methods.density.trees.exact.decimal_twin import AllTrees
from tests.methods.density.trees.exact.large_problems import (
    LargeProblem,
    draw_problem,
    problems_of_dependent,
    problems_of_draws,
    problems_of_order,
    problems_of_sums,
)

_OF_PURCHASES = (1, 6), (-7, 0), (-2, 6)
"""Powers of 10: numbers of rows, how far columns are apart, and weights."""


def noted(problem: Problem, drawn: LargeProblem) -> LargeProblem:
    """Note the ranges of what was drawn."""
    parameters, weights = drawn.parameters, drawn.table.weights
    is_leaf = "expected_leaves" in parameters
    problem.note(
        rows=float(weights.sum()),
        least_weight=float(weights.min()),
        concentration=parameters["concentration"],
        rate=parameters["expected_leaves" if is_leaf else "expected_branches"],
        model="leaf" if is_leaf else "branch",
        leaf=parameters["leaf"],
        prior=parameters.get("prior", "poisson"),
        partitions=drawn.settings["partitions"],
        weights=drawn.style,
    )
    return drawn


def hold(problem: object, complaints: list[str]) -> None:
    """Raise what was found, with the problem."""
    if complaints:
        raise Found(f"{'; '.join(complaints)}\n  {problem}")


def all_boxes(problem: Problem) -> None:
    """Hold sums over all boxes to the twin: trees in order, evidence, draws, averages, leaves."""
    drawn = noted(problem, draw_problem(problem.rng))
    exact, everything = solve(drawn.posterior), drawn.everything
    complaints = list(problems_of_sums(drawn, exact))
    complaints += problems_of_draws(drawn, exact, exact.sample(20, problem.rng))
    if "feature_inclusion" not in drawn.parameters:
        complaints += problems_of_order(drawn, exact)
    if exact.max_leaves is not None:
        found = everything.below(everything.whole, sum)
        logs = {k: (everything.log_weight(k) + w.ln()) for k, w in found.items()}
        for k, share in enumerate(exact.leaf_count_probabilities.tolist(), start=1):
            true = float((logs[k] - everything.log_normalizer).exp()) if k in logs else 0.0
            if abs(share - true) > 1e-9 + 4 * exact.error:
                complaints.append(f"{k} leaves have probability {true!r}, said is {share!r}")
    row = tuple(int(problem.rng.integers(q)) for q in drawn.table.schema.n_levels)
    rows, weights = everything.record["rows"], everything.record["weights"]
    record = {**everything.record, "rows": [*rows, row], "weights": [*weights, 1.0]}
    more = AllTrees(record, drawn.parameters, everything.partitions, everything.max_branches)
    true = float(more.log_normalizer - everything.log_normalizer)
    said = float(exact.log_predictive(np.array([row], np.int32).T)[0])
    if abs(said - true) > 1e-9 + 4 * exact.error:
        complaints.append(f"row {row} has average log density {true!r}, said is {said!r}")
    hold(drawn, complaints)


def other_boxes(problem: Problem) -> None:
    """Expect of boxes that hold data what all boxes say."""
    drawn = noted(problem, draw_problem(problem.rng))
    posterior = drawn.posterior
    plan = SearchPlan.of(posterior, None)
    if plan.partitions == "levels" and plan.shift == 0 and "expected_branches" in drawn.parameters:
        held = SharedBoxes.of(posterior, plan, np.inf, np.inf)
        if held is not None:
            exact = SummedPosterior(posterior, plan, ExactCost.of_shared(held), boxes=held)
            hold(drawn, [*problems_of_sums(drawn, exact), *problems_of_order(drawn, exact)])


def tilts(problem: Problem) -> None:
    """Hold tilted passes to the twin: tree, gap, evidence, draws; and after an interruption."""
    drawn = draw_problem(problem.rng)
    while drawn.parameters.get("expected_leaves") is None or drawn.parameters["max_leaves"]:
        drawn = draw_problem(problem.rng)
    noted(problem, drawn)
    if problem.rng.random() < 0.5:  # those that hold data, if there may be
        with patch.object(cost, "_SHORT", 0.0), patch.object(cost, "_DEARER", 1e-9):
            _hold_tilts(problem, drawn)
    else:
        _hold_tilts(problem, drawn)


def _hold_tilts(problem: Problem, drawn: LargeProblem) -> None:
    posterior = drawn.posterior
    found = solve_by_tilts(posterior, rng=0, n_draws=20)
    is_held = isinstance(found._passes.boxes, SharedBoxes)
    problem.note(boxes="held" if is_held else "all")
    problem.note(proved=bool(np.isfinite(found.error)), draws=bool(found.draws))
    complaints = list(problems_of_sums(drawn, found))
    complaints += problems_of_draws(drawn, found, found.draws)
    last, run, made = int(problem.rng.integers(1, found.n_passes + 1)), Passes.run, [0]

    def interrupted(passes: Passes, tilt: float, maximize: bool) -> float:
        made[0] += 1
        if made[0] > last:
            raise KeyboardInterrupt
        return run(passes, tilt, maximize)

    with tempfile.TemporaryDirectory() as folder:
        kept = {"rng": 0, "n_draws": 20, "checkpoint": Path(folder) / "passes"}
        Passes.run = interrupted  # type: ignore[method-assign]
        try:
            part = solve_by_tilts(posterior, **kept)
        finally:
            Passes.run = run  # type: ignore[method-assign]
        missed = float(drawn.everything.log_best - drawn.precise(part.tree))
        if missed > part.gap + part.rounding:
            complaints.append(f"after {last} passes {missed:.3g} nats are missed, {part.gap:.3g}")
        if part.is_interrupted:
            again = solve_by_tilts(posterior, **kept, resume=True)
            for name in ("tree", "gap", "log_normalizer", "error", "draws"):
                if getattr(again, name) != getattr(found, name):
                    complaints.append(f"resumed after {last} passes, {name} differs")
    hold(drawn, complaints)


def estimators(problem: Problem) -> None:
    """Hold what estimators find by default to the twin, and annealing and polishing to that."""
    drawn = draw_problem(problem.rng, leaves=("uniform",))
    while drawn.table.n_distinct < 2:
        drawn = draw_problem(problem.rng, leaves=("uniform",))
    noted(problem, drawn)
    names = drawn.table.schema.names
    frame = pd.DataFrame(drawn.table.codes.T, columns=list(names)).astype(str)
    kind = LeafCascade if "expected_leaves" in drawn.parameters else BranchCascade
    given = {k: v for k, v in drawn.parameters.items() if v is not None and k != "leaf"}
    model = kind(**given, **drawn.settings, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, sample_weight=drawn.table.weights)
        own = LargeProblem(model.posterior_.table, drawn.settings, drawn.parameters, drawn.style)
        best = float(own.everything.log_best)
        searched = model.set_params(search="anneal", n_steps=2_000, n_chains=1).fit(
            frame, sample_weight=drawn.table.weights
        )
    exact = solve(own.posterior)
    complaints = list(problems_of_sums(own, exact))
    found = searched.log_posterior_ - exact.rounding
    if found > best + 1e-9:
        complaints.append(f"annealing finds {found!r}, the best is {best!r}")
    redraws = SubtreeRedraws(own.posterior, 1e8)
    tree = own.posterior.initial_state(problem.rng)
    polished = redraws.polished(tree)
    if float(own.precise(polished) - own.precise(tree)) < -1e-9 - exact.rounding:
        complaints.append("polishing made a tree less probable")
    hold(own, complaints)


def intervals(problem: Problem) -> None:
    """Hold credible intervals of densities, averaged over trees, to draws of everything anew."""
    drawn = draw_problem(problem.rng, leaves=("uniform",))
    while drawn.table.n_distinct < 2 or "expected_branches" not in drawn.parameters:
        drawn = draw_problem(problem.rng, leaves=("uniform",))
    noted(problem, drawn)
    given = {k: v for k, v in drawn.parameters.items() if v is not None and k != "leaf"}
    model = BranchCascade(**given, **drawn.settings, random_state=0, predictive="average")
    model.fit(drawn.table)
    codes = drawn.table.codes[:, :1].astype(np.int32)
    low, high = model.credible_interval_codes(codes, 0.9)[0]
    alpha, anew = drawn.parameters["concentration"], np.empty(2_000)
    for i, tree in enumerate(model.exact_.sample(anew.size, problem.rng)):
        counts, log_volumes = drawn.posterior.node_statistics(tree)
        node, log_share = 0, 0.0
        while tree.feature[node] >= 0:
            children = tree.children(node)
            # logs of gamma variates of small shapes, which floats do not hold themselves
            logs = np.log(problem.rng.standard_gamma(counts[children] + alpha + 1.0))
            logs -= problem.rng.standard_exponential(len(children)) / (counts[children] + alpha)
            code, column = codes[tree.feature[node], 0], int(tree.feature[node])
            nominal = drawn.posterior.is_nominal[column]
            inside = [code in block_codes(nominal, int(tree.block[child])) for child in children]
            at = inside.index(True)
            node, log_share = children[at], log_share + logs[at] - logsumexp(logs)
        anew[i] = np.exp(log_share - log_volumes[node])
    below, above = np.mean(anew < low * (1 - 1e-9)), np.mean(anew > high * (1 + 1e-9))
    if max(below, above) > 0.05 + 0.06:  # of 1,000 draws of trees, and 2,000 here
        raise Found(f"{below:.3f} are below a 90 % interval and {above:.3f} above: {drawn}")


def dependent_leaves(problem: Problem) -> None:
    """Hold sums over dependent leaves to a list of all trees by `posterior.log_density`."""
    drawn = draw_problem(problem.rng)
    while drawn.table.schema.n_columns < 2:
        drawn = draw_problem(problem.rng)
    noted(problem, replace(drawn, parameters={**drawn.parameters, "leaf": "dependent"}))
    depth = int(problem.rng.integers(0, drawn.table.schema.n_columns + 1))
    hold(drawn, list(problems_of_dependent(drawn, depth, problem.rng)))


def purchases(problem: Problem) -> None:
    """Hold each set of purchases at a root to fractions, and the one called best to all sets."""
    n_rows, apart, times = (float(10 ** problem.rng.uniform(*ends)) for ends in _OF_PURCHASES)
    seed = int(problem.rng.integers(1 << 30))
    problem.note(purchase_rows=int(n_rows), apart=apart, times=times)
    posterior = alike(seed, apart, int(n_rows), times)
    of_share, of_density, explained = errors(posterior)
    bound = rounding_of_leaf(posterior.model, 0, explained)
    found = explore(posterior, "exact", solve=solved, random_state=0)
    gap = inf if found.certificate is None else found.certificate.gap
    problem.note(share_of_bound=of_density / bound, proved=gap < inf)
    sets = np.array(list(product((False, True), repeat=len(posterior.model.required[0]))))
    best = max(posterior.log_density(posterior.lifted(one[np.newaxis])) for one in sets)
    complaints = [
        f"{what}: {value!r} is above {most!r}"
        for what, value, most in (
            ("share", of_share, rounding_of_share(posterior.model, 0)),
            ("density", of_density, bound),
            ("gap", best - found.log_density, max(gap, 2.0 * bound)),
        )
        if not value <= most
    ]
    hold((seed, apart, int(n_rows), times), complaints)


def too_large(problem: Problem) -> None:
    """Expect that what does not fit is refused, and never answered in part."""
    drawn = noted(problem, draw_problem(problem.rng))
    memory = float(10 ** problem.rng.uniform(2, 5))
    try:
        exact = solve(drawn.posterior, memory_limit=memory)
    except TooLargeError:
        return
    hold(drawn, list(problems_of_sums(drawn, exact)))


CHECKS = {
    "all boxes": all_boxes,
    "other boxes": other_boxes,
    "tilts": tilts,
    "estimators": estimators,
    "intervals": intervals,
    "dependent leaves": dependent_leaves,
    "too large": too_large,
    "purchases": purchases,
    **lists.CHECKS,
}

if __name__ == "__main__":
    main(CHECKS, "Attack whatever is called exact, optimal or proved.")
