"""Test error of budgeted classifiers at several costs, over five seeds.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.budget_curves [--data-sets digits ...]
        [--costs unit random] [--seeds 5] [--methods BudgetPrune ...] [--within 1]
        [--out FILE.csv]
    python -m tests.benchmarks.budget_curves --tables [--against Adapt-GBRT] [--out FILE.csv]
    python -m tests.benchmarks.budget_curves --draw PICTURE.svg [--out FILE.csv]

At each budget, a share of what all columns together cost, the classifier of least validation error
is taken among those of a method (see `budget_methods`) that cost no more on the validation rows,
and judged on the test rows; so all are chosen alike, and none by the test rows. With `--within 1`
the cheapest is taken whose validation error is within a standard error of that least one: of few
validation rows, the least of many is low by chance, and dear.

Results are added to `--out`, a row for each data set, costs, seed and method, as soon as they are
known; what the file has is not measured again. So a table may be made in several runs, of
more seeds for quick methods than for slow ones.

The lines below a data set: mean error in percent, standard error of the mean over seeds, and the
mean cost as a percentage of all columns' with its standard error. "*" marks a method that is better
than BudgetPrune by more than a standard error of the paired differences. Seconds are of CPU.
`--tables` prints what a file has as Markdown: mean accuracy in percent, the largest standard error,
and in brackets seeds, where they are not the data set's; with `--against`, differences to a method
on the same splits, each with its standard error. Without `--out`, tables and picture are of the
file that the documentation shows, `docs/budget_curves.csv`.
"""

from pathlib import Path
from time import process_time

from tests.benchmarks.budget_data import DATA_SETS, REAL_COSTS
from tests.benchmarks.budget_methods import ALL_SHARES, MAIN, METHODS, set_up
from tests.benchmarks.budget_results import KEPT, TITLES, Result, Results
from tests.benchmarks.budget_validation import best_within, commonest_label
from tests.benchmarks.figures import parser, say, timed


def main():
    """Print every data set's table as soon as it is there, or show what a file has."""
    made = parser(__doc__, DATA_SETS, DATA_SETS)
    made.add_argument("--costs", nargs="+", choices=("unit", "random", "real"))
    made.add_argument("--seeds", type=int, default=5)
    made.add_argument("--within", type=float, default=0.0, metavar="STANDARD_ERRORS")
    made.add_argument("--methods", nargs="+", choices=METHODS, default=MAIN)
    made.add_argument("--out", type=Path, help="file of results, to add to")
    made.add_argument("--tables", action="store_true", help="print the results as Markdown")
    made.add_argument("--against", choices=TITLES, help="with --tables: print differences to it")
    made.add_argument("--draw", type=Path, metavar="PICTURE", help="draw the results")
    chosen = made.parse_args()
    if chosen.tables:
        say(*Results(chosen.out or KEPT).markdown(chosen.against))
        return
    if chosen.draw:
        from tests.benchmarks.budget_picture import draw

        draw(Results(chosen.out or KEPT), chosen.draw)
        return
    results = Results(chosen.out)
    for name in chosen.data_sets:
        for kind in chosen.costs or (["real"] if name in REAL_COSTS else ["unit", "random"]):
            if kind != "real" or name in REAL_COSTS:
                asked = [(name, kind, seed, chosen.within) for seed in range(chosen.seeds)]
                for setting in asked:
                    for result in measured(*setting, chosen.data, chosen.methods, results):
                        results.add(result)
                say(*results.table(asked, chosen.methods))


def measured(name, kind, seed, within, folder, methods, results):
    """Yield what each method errs and costs on one split, unless it is known."""
    setting = None
    for method in methods:
        if results.has((name, kind, seed, within), method):
            continue
        setting = setting or set_up(name, kind, folder, seed)
        judged, seconds = timed(
            lambda method=method, given=setting: [*METHODS[method](given)], clock=process_time
        )
        judged.append(commonest_label(setting.rows))
        allowed = within / len(setting.rows.validation.labels) ** 0.5
        n_rows, total = len(setting.rows.train.labels), setting.total
        taken = [best_within(judged, share * total, allowed) for share in ALL_SHARES]
        errors = tuple(round(float(one.test_error), 5) for one in taken)
        spent = tuple(round(float(one.test_cost) / total, 4) for one in taken)
        key = (name, kind, seed, within, method, n_rows, round(seconds, 1))
        yield Result(*key, errors, spent)


if __name__ == "__main__":
    main()
