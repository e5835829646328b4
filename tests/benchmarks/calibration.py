"""What `AutoCascade` expects its candidates to take, beside what they take.

    python -m tests.benchmarks.calibration [--data FOLDER] [--data-sets titanic ...] [--most 10]

Of each table, all trees of every kind of leaf are summed over to depth 0, 1, 2, ..., and those of
every kind of split, where that is expected to take at most so many seconds of one core; dependent
leaves also score held-out rows. Each is done twice, and the second time counts, when all is
compiled.
"""

from functools import partial
from pathlib import Path
from time import perf_counter

from bayescascade.base.errors import TooLargeError
from bayescascade.data.table import Table, without_unusable
from bayescascade.methods.cascades.held_out import Candidate, HeldOut, weighed
from bayescascade.methods.cascades.shallow_extent import fitting_trees
from bayescascade.methods.cascades.shallow_trees import ShallowTrees
from tests.benchmarks.figures import ROOT, parser, say

NAMES = (
    "titanic", "car_evaluation", "nursery", "tic_tac_toe", "german_credit", "mushroom",
    "hepatitis", "nltcs_train", "plants_train", "adult", "chicago_crime", "hypothyroid", "spambase",
)  # fmt: skip
MEMORY = 2e9


def main():
    """Print a line for each candidate of each table."""
    made = parser(__doc__, NAMES, ["titanic", "tic_tac_toe"])
    made.add_argument("--most", type=float, default=10.0, help="seconds expected of a candidate")
    arguments = made.parse_args()
    for name in arguments.data_sets:
        path = next(
            found
            for folder in (ROOT / "data", arguments.data)
            for found in sorted(Path(folder).glob(f"{name}.csv*"))
        )
        table = without_unusable(partial(Table.from_files, path), say)
        schema = table.schema
        say(f"\n{name}: {table.n_distinct:,} rows, {schema.n_columns} columns")
        for candidate in _candidates(schema.n_columns):
            expected = candidate.nanoseconds(table, MEMORY) * 1e-9
            if expected > arguments.most:
                continue
            try:
                weighed(candidate, table, MEMORY, 1)
                began = perf_counter()
                weighed(candidate, table, MEMORY, 1)
                seconds = perf_counter() - began
            except TooLargeError:
                say(f"  {candidate.words:<62}{'too large':>26}")
                continue
            ratio = seconds / expected
            say(f"  {candidate.words:<62}{seconds:>9.3f} s{ratio:>8.2f} x expected")
            if candidate.row_nanoseconds(table) > 0.0:
                seconds, expected = _scoring(candidate, table)
                ratio = seconds / expected
                say(f"  {'  held-out rows':<62}{seconds:>9.3f} s{ratio:>8.2f} x expected")


def _scoring(candidate, table):
    """Return seconds that scoring held-out rows takes, and that it is expected to."""
    learned, held = HeldOut.of(table, 0, 1, MEMORY).folds[0]
    posterior = candidate.cascade()._make_posterior(learned)
    depth, columns = fitting_trees(posterior, candidate.settings["max_depth"], MEMORY)
    trees = ShallowTrees(posterior, depth, columns=columns)
    trees.score_tempers(held)
    began = perf_counter()
    trees.score_tempers(held)
    return perf_counter() - began, candidate.row_nanoseconds(learned) * held.n_distinct * 1e-9


def _candidates(n_columns):
    for leaf in ("independent", "dependent", "uniform"):
        for depth in (0, 1, 2, 3, 4, 6, 9):
            if depth <= n_columns:
                settings = {"partitions": "levels", "leaf": leaf, "max_depth": depth}
                yield Candidate("branch", settings)
    for model in ("branch", "leaf"):
        for partitions in ("subsets", "levels"):
            for leaf in ("independent", "uniform"):
                yield Candidate(model, {"leaf": leaf, "partitions": partitions})


if __name__ == "__main__":
    main()
