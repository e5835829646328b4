"""Pairs without a direction that get one, in percent: by randomization, and by one constant.

    python -m tests.benchmarks.undecided [--rows 20 50 200 1000] [--pairs 1000] [--scores hsic ...]

A percent is allowed. A line is a kind of pairs at a number of rows; its cells are "now (before)".
"""

import argparse

from bayescascade.methods.causal.scores import SCORES
from tests.benchmarks.figures import say
from tests.methods.causal.undirected import KINDS, decided


def main():
    """Print a line of a table as it is known."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--rows", type=int, nargs="+", default=[20, 50, 200, 1000])
    made.add_argument("--pairs", type=int, default=1000)
    made.add_argument("--scores", nargs="+", default=list(SCORES), choices=SCORES)
    made.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    given = made.parse_args()
    say(f"| rows | kind | {' | '.join(given.scores)} |", "|--:|---|" + "--:|" * len(given.scores))
    for n in given.rows:
        for kind in given.kinds:
            found = [decided(kind, score, n, given.pairs) for score in given.scores]
            cells = [
                f"{100 * now / given.pairs:.1f} ({100 * before / given.pairs:.1f})"
                for now, before in found
            ]
            say(f"| {n:,} | {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
