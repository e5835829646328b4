"""What rule lists cost apart from chains: volumes of parts, candidates for rules, intervals."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bayescascade import RuleListClassifier
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import Condition, candidate_arrays
from bayescascade.methods.lists.kernels.layout import new_space
from bayescascade.methods.lists.kernels.volumes import first_log_volumes
from bayescascade.methods.lists.parts import log_first_volumes
from tests.benchmarks.figures import ROOT, Figure, timed

N_LISTS = 20


@pytest.mark.parametrize(
    ("n_columns", "n_rules", "most"),
    [(200, 15, 1_000.0), (15, 15, None), (30, 62, None)],
    ids=["200-columns", "15-columns", "longest"],
)
def test_volumes(n_columns, n_rules, most, benchmark, report):
    """Of all parts of random lists; the fewer the columns, the more rules share some."""
    schema = Schema(tuple(Column(f"c{j}", "nominal", (0, 1)) for j in range(n_columns)))
    rng = np.random.default_rng(n_columns)
    lists = [[_rule(rng, n_columns) for _ in range(n_rules)] for _ in range(N_LISTS)]
    arrays = [candidate_arrays(schema, rules) for rules in lists]
    spaces = [new_space(each) for each in arrays]
    order, out = np.arange(n_rules), np.empty(n_rules + 1)

    def evaluate():
        for each, space in zip(arrays, spaces, strict=True):
            first_log_volumes(each, order, space, out)

    benchmark.pedantic(evaluate, rounds=5, warmup_rounds=1)
    seconds = benchmark.stats.stats.min / N_LISTS
    where = f"volumes, {n_columns} binary columns, {n_rules} rules of 3"
    report(Figure(where, 1e6 * seconds, "us", at_most=most))
    _, seconds = timed(lambda: [log_first_volumes(schema, rules) for rules in lists])
    report(Figure("  called from Python, arrays made anew", 1e6 * seconds / N_LISTS, "us"))


def test_candidates(report):
    """All conjunctions of up to three levels that a thousandth of the rows satisfies."""
    command = [sys.executable, "-m", "tests.benchmarks.many_candidates"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    record = json.loads(run.stdout)
    assert record["n_rows"] == 100_000
    assert record["n_candidates"] >= 100_000
    report(Figure("candidates over 100,000 rows", record["n_candidates"], ""))
    report(Figure("  seconds to mine", record["seconds"], "s"))
    report(Figure("  peak memory, data and chain included", record["gigabytes"], "GB", at_most=2.0))
    report(Figure("  of it before mining", record["gigabytes_before"], "GB"))
    report(Figure(f"  steps ({record['n_rules']} rules)", record["steps_per_second"], "/s"))


def test_averaged_intervals(report):
    """Credible intervals over a thousand draws, for every row of tic-tac-toe."""
    frame = pd.read_csv(ROOT / "data" / "tic_tac_toe.csv")
    labels = frame.pop("outcome")
    model = RuleListClassifier(predictive="average", n_steps=100_000, random_state=0)
    model.fit(frame, labels).credible_interval(frame[:1])
    _, seconds = timed(lambda: model.credible_interval(frame))
    report(Figure("averaged intervals of a row", 1e3 * seconds / len(frame), "ms", at_most=1.0))


def _rule(rng, n_columns):
    columns = np.sort(rng.choice(n_columns, 3, replace=False)).tolist()
    levels = rng.integers(0, 2, 3).tolist()
    return tuple(Condition(c, v, v + 1) for c, v in zip(columns, levels, strict=True))
