"""Directions found between two columns: how often they are right, and the seconds they take.

    python -m tests.benchmarks.causal [--data FOLDER] [--data-sets made real] [--out FILE.jsonl]
    python -m tests.benchmarks.causal --table FILE.jsonl

The folder is that of the Tuebingen cause-effect pairs, with `pairmeta.txt`; made pairs need none.
Accuracies are weighted as the pairs are, and a tie is half right; causal-learn ties where it gives
both directions a p-value of zero. Its time and memory grow with the cube and the square of the
rows, so it gets at most 500, drawn at random; ``--interpreter`` names a Python that has it.
IGCI is the slope estimator on columns scaled to [0, 1] (Janzing et al., Information-geometric
approach to inferring causal directions, Artificial Intelligence 182-183, 2012).
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bayescascade import AdditiveNoiseModel
from bayescascade.base.errors import DataError
from bayescascade.methods.causal.posterior import DIRECTIONS
from bayescascade.methods.causal.scores import SCORES
from tests.benchmarks.causal_data import cause_effect_pairs, drawn, made_pairs
from tests.benchmarks.figures import parser, say, timed

MOST_ROWS = 500  # of causal-learn
SERVER = """
import json, sys, warnings
import numpy as np
from causallearn.search.FCMBased.ANM.ANM import ANM
warnings.simplefilter("ignore")
for line in sys.stdin:
    x, y = (np.array(column)[:, None] for column in json.loads(line))
    print(json.dumps([float(p) for p in ANM().cause_or_effect(x, y)]), flush=True)
"""


def main():
    """Print a line of JSON for each pair and contender as it is known, then a table of them."""
    made = parser(__doc__, ["made", "real"], ["made"])
    made.add_argument("--interpreter", default=sys.executable, help="Python with causal-learn")
    made.add_argument("--only", nargs="+", help="contenders to compare, by name")
    made.add_argument("--out", type=Path, help="file to add lines of JSON to")
    made.add_argument("--table", type=Path, help="file of such lines to print as a table")
    arguments = made.parse_args()
    if arguments.table:
        print_table(pd.read_json(arguments.table, lines=True, dtype={"pair": str}))
        return
    rival = CausalLearn(arguments.interpreter)
    contenders = {
        **{score: additive_noise(score=score) for score in SCORES},
        "IGCI": igci,
        "causal-learn": rival.gap,
    }
    lines = []
    for data in arguments.data_sets:
        pairs = made_pairs() if data == "made" else cause_effect_pairs(arguments.data)
        chosen = {k: v for k, v in contenders.items() if k in (arguments.only or contenders)}
        for line in compared(chosen, pairs):
            lines.append({"data": data, **line})
            say(json.dumps(lines[-1]))
            if arguments.out:
                with arguments.out.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    rival.close()
    print_table(pd.DataFrame(lines))


def compared(contenders, pairs):
    """Yield what each contender found of each pair."""
    for pair in pairs:
        for title, contender in contenders.items():
            found, seconds = timed(lambda contender=contender, pair=pair: contender(pair))
            gap, is_decided = found if isinstance(found, tuple) else (found, found != 0.0)
            right = 0.5 + 0.5 * np.sign(gap) * (1.0 if pair.is_forward else -1.0)
            line = {"pair": pair.name, "contender": title, "weight": pair.weight}
            found = {"right": right, "gap": gap, "decided": bool(is_decided)}
            yield line | found | {"seconds": round(seconds, 4)}


def additive_noise(**options):
    """Return what fits an `AdditiveNoiseModel`; what it refuses is a tie.

    It returns the gap of the scores, and whether it is decided.
    """

    def gap(pair):
        try:
            model = AdditiveNoiseModel(random_state=0, **options).fit(pair.x, pair.y)
        except DataError:  # a column has many ties, or half of the residuals are one number
            return 0.0, False
        forward, backward = (model.scores_[direction] for direction in DIRECTIONS)
        return backward - forward, model.is_decided_

    return gap


def igci(pair):
    """Return the mean log slope of x over y less that of y over x."""

    def mean_log_slope(cause, effect):
        order = np.lexsort((effect, cause))
        runs, rises = (np.abs(np.diff(c[order])) / np.ptp(c) for c in (cause, effect))
        proper = (runs > 0.0) & (rises > 0.0)
        return float(np.log(rises[proper] / runs[proper]).mean()) if proper.any() else 0.0

    return mean_log_slope(pair.y, pair.x) - mean_log_slope(pair.x, pair.y)


class CausalLearn:
    """causal-learn's additive noise model, in a process of its own that starts when first asked."""

    def __init__(self, interpreter):
        self._command = [interpreter, "-c", SERVER]
        self._process = None

    def gap(self, pair):
        """Return the p-value of x as the cause less that of y, for standardized columns."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        few = drawn(pair, MOST_ROWS)
        columns = [((c - c.mean()) / c.std()).tolist() for c in (few.x, few.y)]
        print(json.dumps(columns), file=self._process.stdin, flush=True)
        forward, backward = json.loads(self._process.stdout.readline())
        return float(forward - backward)

    def close(self):
        """End the process, if there is one."""
        if self._process is not None:
            self._process.communicate()


def print_table(lines):
    """Print weighted accuracies with standard errors, pairs answered rightly, and mean seconds.

    Of the pairs that are answered, some are decided.
    """
    titles = ("", "contender", "pairs", "right", "answered", "decided", "s a pair")
    say("", f"| {' | '.join(titles)} |", "|---|---|--:|--:|--:|--:|--:|")
    for (data, title), found in lines.groupby(["data", "contender"], sort=False):
        weights, right = found["weight"].to_numpy(), found["right"].to_numpy()
        mean = np.average(right, weights=weights)
        error = np.sqrt(np.sum((weights * (right - mean)) ** 2)) / weights.sum()
        answered = f"{(right == 1.0).sum()} of {(right != 0.5).sum()}"
        is_decided = found["decided"].to_numpy()
        decided = f"{(right[is_decided] == 1.0).sum()} of {is_decided.sum()}"
        cells = (data, title, len(found), f"{mean:.3f} +- {error:.3f}", answered, decided)
        say("| " + " | ".join(map(str, cells)) + f" | {found['seconds'].mean():.2f} |")


if __name__ == "__main__":
    main()
