"""The certified best list on Titanic, and the gap over time on tic-tac-toe, beside annealing.

    python -m tests.benchmarks.certified_lists [--seconds 300] [--seeds 5] [PROBLEM ...]

Each problem is annealed as the estimators do it by default, once for each seed; the search then
starts from the best of the first seed's run. Log densities in nats; "gap" is how much more probable
any list can be at most.
"""

import argparse
from functools import partial

import pandas as pd

import samplers
from bayescascade import DensityRuleList, RuleListClassifier
from bayescascade.data.table import Table
from bayescascade.methods.lists.exact import best_list
from bayescascade.methods.lists.posterior import (
    DensityListPosterior,
    LabelListPosterior,
)
from bayescascade.model.search import SCHEDULE
from tests.benchmarks.figures import ROOT, say, timed

AT = (1.0, 10.0, 60.0, 300.0)


def _table(name, *drop):
    return Table.from_frame(pd.read_csv(ROOT / "data" / f"{name}.csv").drop(columns=list(drop)))


def _games(max_size):
    return LabelListPosterior(_table("tic_tac_toe"), "outcome", max_size=max_size)


PROBLEMS = {
    "titanic-density": lambda: DensityListPosterior(_table("titanic", "survived")),
    "titanic-density-4": lambda: DensityListPosterior(_table("titanic")),
    "titanic-classifier": lambda: LabelListPosterior(_table("titanic"), "survived"),
    "tic-tac-toe-classifier-2": lambda: _games(2),
    "tic-tac-toe-classifier-3": lambda: _games(3),
    "tic-tac-toe-density": lambda: DensityListPosterior(_table("tic_tac_toe")),
}


def main():
    """Print what both find as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--seconds", type=float, default=300.0, help="of each search")
    parser.add_argument("--seeds", type=int, default=5, help="annealing runs of each problem")
    parser.add_argument("--steps", type=int, help="of each chain, instead of the default")
    arguments = parser.parse_args()
    # compiled before anything is timed
    for name in ("titanic-density", "titanic-classifier"):
        best_list(PROBLEMS[name](), max_visited=10)
    for name in arguments.problems or PROBLEMS:
        posterior = PROBLEMS[name]()
        n_steps = arguments.steps or _default_steps(posterior)
        say(f"\n{name}: {len(posterior.antecedents):,} candidates, {n_steps:,} steps a chain")
        start = None
        for seed in range(arguments.seeds):
            run, seconds = timed(
                partial(samplers.anneal, posterior, schedule=SCHEDULE, n_steps=n_steps, seed=seed)
            )
            start = start or run.best_state
            say(f"  annealed, seed {seed}: {run.best_log_density:.6f} in {seconds:.1f} s")
        found = best_list(posterior, start=start, time_limit=arguments.seconds)
        for point in _points_at(found.trace):
            say(f"  {_words(point)}")
        said = "certain" if found.is_optimal else "not certain"
        say(f"  {said}: {found.state.n_rules} rules {found.state.rules}")


def _default_steps(posterior):
    """Return how many steps the estimators take."""
    is_density = isinstance(posterior, DensityListPosterior)
    return (DensityRuleList() if is_density else RuleListClassifier())._default_steps(
        posterior.table
    )


def _points_at(trace):
    """Return the points from which on the times of interest had passed, and the last."""
    points = [next((p for p in trace if p.seconds >= seconds), trace[-1]) for seconds in AT]
    return sorted({*points, trace[-1]})


def _words(point):
    gap = point.upper_bound - point.log_density
    return (
        f"{point.seconds:7.1f} s, {point.n_visited:>9,} prefixes: {point.log_density:.6f}, "
        f"gap {gap:.4f}"
    )


if __name__ == "__main__":
    main()
