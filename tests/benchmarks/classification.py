"""Accuracy of rule lists beside other interpretable classifiers, and whether their chains converge.

    BAYESCASCADE_DATA=folder python -m tests.benchmarks.classification [--data-sets car ...]

Five stratified folds with a fixed seed. The largest rules and the bins of a list are chosen on each
fold's own training rows, by the log loss of what predicts, in folds within them: the held-out rows
are seen by no choice, and the rule is the same for all data sets; all else is as the estimator has
it. With --convergence it is R-hat instead, of the log posterior and the length of the list on all
rows, with the settings chosen for the average.

Means over the folds, with the standard error of the mean; "behind" is how much less accurate than
the best of the others a list is, with the standard error of that difference in the same folds.
"""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from tests.benchmarks.classifiers import (
    DATA_SETS,
    PREDICTIVES,
    choose_settings,
    predictions,
    rule_list,
)
from tests.benchmarks.figures import parser, say, timed

N_FOLDS = 5
OURS = "rule list"


def main():
    """Print a table for each data set as soon as it is there."""
    made = parser(__doc__, DATA_SETS, DATA_SETS)
    made.add_argument("--steps", type=int, help="steps of a chain, per phase; default: ours")
    made.add_argument(
        "--imodels-steps", type=int, default=10_000, help="steps of imodels' chains; 0: without it"
    )
    made.add_argument("--convergence", action="store_true", help="R-hat instead of accuracy")
    made.add_argument(
        "--searches", nargs="+", default=["anneal+metropolis"], help="with --convergence"
    )
    arguments = made.parse_args()
    for name in arguments.data_sets:
        data = DATA_SETS[name].read(arguments.data)
        described = f"\n{name}: {len(data.labels):,} rows, {data.features.shape[1]} columns, "
        say(f"{described}{data.labels.nunique()} classes")
        lines = (
            convergence(data, arguments.searches, arguments.steps)
            if arguments.convergence
            else comparison(data, arguments.steps, arguments.imodels_steps)
        )
        for line in lines:
            say(line)


def comparison(data, n_steps, imodels_steps):
    """Yield the lines of a table of accuracy and area under the ROC curve."""
    figures = {}
    chosen = {name: [] for name in PREDICTIVES}
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    for seen, held_out in folds.split(data.features, data.labels):
        training, test = data.take(seen), data.take(held_out)
        settings = choose_settings(training)
        for name, values in settings.items():
            chosen[name].append(f"{values['max_size']}/{values['n_bins']}")
        for said in predictions(training, test.features, settings, n_steps, imodels_steps):
            figures.setdefault(said.name, []).append(
                (*_scores(said, test), said.size, said.seconds)
            )
    for name, pairs in chosen.items():
        yield f"  max_size/n_bins chosen for {name}: {', '.join(pairs)}"
    yield f"  {'':<20}{'accuracy':>18}{'AUC':>18}{'size':>7}{'seconds':>9}{'behind':>18}"
    arrays = {name: np.array(values) for name, values in figures.items()}
    others = [values[:, 0] for name, values in arrays.items() if not name.startswith(OURS)]
    best = max(others, key=np.mean)
    for name, values in arrays.items():
        accuracy, area, size, seconds = values.T
        line = f"  {name:<20}{_mean(accuracy):>18}{_mean(area):>18}"
        line += f"{size.mean():>7.1f}{seconds.mean():>9.1f}"
        yield line + (f"{_mean(best - accuracy):>18}" if name.startswith(OURS) else "")


def convergence(data, searches, n_steps):
    """Yield R-hat and effective sample size of four chains on all rows."""
    settings = choose_settings(data)["average"]
    yield f"  max_size {settings['max_size']}, n_bins {settings['n_bins']}"
    for search in searches:
        model = rule_list(data, search=search, n_steps=n_steps, **settings)
        _, seconds = timed(lambda model=model: model.fit(data.features, data.labels))
        texts = [
            f"{name} R-hat {d.r_hat:.3f} ESS {d.ess:,.0f}"
            for name, d in model.summary_.diagnostics.items()
        ]
        yield (
            f"  {search:<18} {model.rules_.n_rules:>3} rules, "
            f"{model.n_candidates_.sum():,} candidates, {seconds:.0f} s: {', '.join(texts)}"
        )


def _scores(said, test):
    classes = np.unique(test.labels)
    labels = test.labels.to_numpy()
    accuracy = np.mean(classes[said.probabilities.argmax(axis=1)] == labels)
    if len(classes) == 2:
        return float(accuracy), float(roc_auc_score(labels, said.probabilities[:, 1]))
    area = roc_auc_score(labels, said.probabilities, multi_class="ovr", labels=classes)
    return float(accuracy), float(area)


def _mean(values):
    return f"{values.mean():.4f} +- {values.std(ddof=1) / np.sqrt(values.size):.4f}"


if __name__ == "__main__":
    main()
