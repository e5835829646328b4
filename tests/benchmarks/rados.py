"""Errors of classifiers learned from Rademacher observations: table 1, what mends it, and privacy.

    python -m tests.benchmarks.rados [--data FOLDER] [--data-sets banknote ...] [--private]
        [--only default ...]

Ten folds, n = min(1000, half of a fold's rows) rados, 1,000 rounds, as in Nock and others (2015):
errors in percent, and their standard deviations over folds; in parentheses the difference from
`RadoBoostClassifier` without options, with its standard error. Columns are standardized, with an
intercept, unless they are said to be as they come. Abalone is 10 rings or more, wine a quality of 6
or more; the other sets have two classes.

With --private: errors by budgets, delta 1e-6. DP-Feat, of a feature that is made boolean at its
median: as many rados as the budget allows, uncut and cut as in the paper (beta for epsilon over n).
Gaussian noise (simulated, of the same law): on edges and on rados, plain and of fixed support, with
either weak learner; bounds are the 1st and 99th percentiles of other rows of the set, held out for
that. diffprivlib's logistic regression has the same bounds, where that is installed.
"""

import math
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from bayescascade import PrivacyError, RadoBoostClassifier, Rados
from bayescascade.data.given import GivenRows
from bayescascade.methods.rados.protection import check_budget, cut_of
from bayescascade.methods.rados.reading import read_rows
from tests.benchmarks.figures import parser, say
from tests.methods.rados.problems import slow_adaboost

N_FOLDS, N_ROUNDS, DELTA = 10, 1000, 1e-6
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DATA_SETS = {
    "haberman": "haberman.csv",
    "transfusion": "transfusion.csv",
    "banknote": "banknote.csv",
    "ionosphere": "ionosphere.csv",
    "abalone": "abalone.csv",
    "wine-red": "wine_quality_red.csv",
    "wine-white": "wine_quality_white.csv",
    "spambase": "spambase.csv",
    "magic": "magic.csv.gz",
}
_LEAST = {"abalone": 10, "wine-red": 6, "wine-white": 6}

Labels = NDArray[np.bool_]


class Fold(NamedTuple):
    """Rows to learn from and rows that test."""

    X: pd.DataFrame
    y: Labels
    X_test: pd.DataFrame
    seed: int

    def rows(self, **how):
        return read_rows(self.X, self.y, like=None, **how)

    def tested(self, rows):
        """Return the rows that test, as others were read."""
        return rows.reading.scaled(
            rows.reading.encoder.transform(GivenRows.of(self.X_test), "benchmark")
        )

    @property
    def n(self):
        return min(1000, len(self.y) // 2)


def main():
    """Print a line for each set and contender as soon as it is known."""
    made = parser(__doc__, DATA_SETS, DATA_SETS)
    made.add_argument("--private", action="store_true")
    made.add_argument("--only", nargs="+", help="contenders to compare, by name")
    arguments = made.parse_args()
    for name in arguments.data_sets:
        X, y = read(name, arguments.data)
        say(f"{name}: {len(X):,} rows, {X.shape[1]} features")
        default = np.nan
        for title, contender in private_contenders() if arguments.private else contenders():
            if arguments.only and title not in arguments.only:
                continue
            text, began = "     - no promise", process_time()
            guesses = [(contender(fold), truth) for fold, truth in folds(X, y)]
            seconds = (process_time() - began) / N_FOLDS
            if all(guess is not None for guess, _ in guesses):
                errors = np.array([100 * np.mean(guess != truth) for guess, truth in guesses])
                default = errors if title == "default" else default
                by, spread = np.mean(errors - default), np.std(errors - default, ddof=1)
                text = f"{np.mean(errors):6.2f} ± {np.std(errors, ddof=1):.2f}"
                text += f" ({by:+.2f} ± {spread / np.sqrt(N_FOLDS):.2f}), {seconds:.2f} s"
            say(f"    {title:44s} {text}")


def read(name, folder):
    """Return a set's features and labels."""
    frame = pd.read_csv(folder / DATA_SETS[name])
    target = frame.pop("target")
    if name in _LEAST:
        return frame, (target >= _LEAST[name]).to_numpy()
    return frame, (target == sorted(set(target))[-1]).to_numpy()


def folds(X, y):
    """Yield what is learned from, and the labels of the rows that test."""
    split = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y)
    for seed, (chosen, tested) in enumerate(split):
        yield Fold(X.iloc[chosen], y[chosen], X.iloc[tested], seed), y[tested]


def contenders():
    """Yield what is compared in table 1 and beside it."""
    plain = {"standardize": False, "intercept": False}
    yield "default", partial(by_rados, {})
    yield "AdaBoost, as they come", partial(adaboost, plain)
    yield "AdaBoost(n)", partial(adaboost, {}, only_n=True)
    yield "AdaBoost", partial(adaboost, {})
    yield "logistic regression", logistic
    yield "boost, plain rados, as they come", partial(by_rados, plain)
    for learner in ("boost", "map", "moments"):
        for title, given in (
            ("plain rados", {}),
            ("4 n rados", {"times": 4}),
            ("support 10", {"support": 10}),
            ("support m / 10", {"part": 10}),
            ("support 10, 4 n rados", {"support": 10, "times": 4}),
        ):
            yield f"{learner}, {title}", partial(by_rados, {"learner": learner, **given})
    yield "boost, prudential", partial(by_rados, {"weak_learner": "prudential"})


def adaboost(how, fold, *, only_n=False):
    rows = fold.rows(**{"standardize": True, "intercept": True, **how})
    edges = rows.edges()(0, len(rows))
    if only_n:
        edges = edges[np.random.default_rng(fold.seed).choice(len(edges), fold.n, replace=False)]
    decisions = fold.tested(rows) @ slow_adaboost(edges, N_ROUNDS)
    return decisions > 0.0


def logistic(fold):
    rows = fold.rows(standardize=True, intercept=False)
    model = LogisticRegression(max_iter=2000).fit(rows.reading.scaled(rows.matrix), fold.y)
    return model.predict(fold.tested(rows))


def by_rados(given, fold):
    options = {"support": None, **given}
    n_rados = fold.n * options.pop("times", 1)
    if "part" in options:
        options["support"] = max(1, len(fold.y) // options.pop("part"))
    model = RadoBoostClassifier(
        n_rados=n_rados, n_rounds=N_ROUNDS, random_state=fold.seed, **options
    )
    return model.fit(fold.X, fold.y).predict(fold.X_test)


# -- privacy ---------------------------------------------------------------------------------------


def private_contenders():
    """Yield what is compared by budgets."""
    learners = (("boost", "best"), ("boost", "prudential"), ("moments", "best"))
    for epsilon in EPSILONS:
        for learner in ("boost", "moments"):
            for cut in (False, True):
                title = f"epsilon {epsilon:g}: DP-Feat{', cut' if cut else ''}, {learner}"
                yield title, partial(dp_feat, epsilon, cut, learner)
        for noise_on in ("edges", "rados"):
            for support in (None, 10):
                for learner, weak in learners:
                    size = "support m / 10" if support else "plain"
                    how = weak if learner == "boost" else learner
                    title = f"epsilon {epsilon:g}: {noise_on}, {size}, {how}"
                    yield title, partial(gaussian, epsilon, noise_on, support, learner, weak)
        if find_spec("diffprivlib"):
            yield f"epsilon {epsilon:g}: diffprivlib", partial(diffprivlib, epsilon)


def dp_feat(epsilon, is_cut, learner, fold):
    """Learn from as many rados as the budget allows, at most n; None where that is none."""
    feature = fold.X.select_dtypes("number").nunique().idxmax()
    middle = fold.X[feature].median()
    X, X_test = (
        frame.assign(**{feature: (frame[feature] > middle).astype(float)})
        for frame in (fold.X, fold.X_test)
    )

    def truncation(n):
        return 1.0 / (1.0 + math.exp(epsilon / (2.0 * n))) if is_cut else 0.0

    low, high = 0, fold.n + 1
    while high - low > 1:
        n = (low + high) // 2
        try:
            check_budget(len(X), cut_of(len(X), truncation(n)), epsilon, DELTA, n)
            low = n
        except PrivacyError:
            high = n
    if not low:
        return None
    rados = Rados.sample_feature_private(
        X, fold.y, feature=feature, values=(0, 1), epsilon=epsilon, delta=DELTA * 1.001,
        n_rados=low, truncation=truncation(low), noise="simulated", random_state=fold.seed,
    )  # fmt: skip
    return RadoBoostClassifier(learner=learner).fit_rados(rados).predict(X_test)


def split_for_bounds(fold):
    """Return rows and labels without those that bounds are told by, and the bounds."""
    rng = np.random.default_rng(fold.seed)
    aside = rng.random(len(fold.X)) < 0.1
    X = pd.get_dummies(fold.X, dtype=float)
    ends = X[aside].quantile([0.01, 0.99])
    bounds = {
        name: (
            float(ends[name].iloc[0]),
            float(max(ends[name].iloc[1], ends[name].iloc[0] + 1e-3)),
        )
        for name in X.columns
    }
    return X[~aside], fold.y[~aside], bounds


def gaussian(epsilon, noise_on, support, learner, weak, fold):
    X, y, bounds = split_for_bounds(fold)
    n_rados = fold.n if noise_on == "edges" else 100
    rados = Rados.sample_gaussian(
        X, y, epsilon=epsilon, delta=DELTA, edge_bounds=bounds, classes=np.unique(y).tolist(),
        n_rados=n_rados, noise_on=noise_on,
        support=None if support is None else len(y) // support, noise="simulated",
        random_state=fold.seed,
    )  # fmt: skip
    model = RadoBoostClassifier(learner=learner, weak_learner=weak, n_rounds=N_ROUNDS)
    return model.fit_rados(rados).predict(pd.get_dummies(fold.X_test, dtype=float))


def diffprivlib(epsilon, fold):
    from diffprivlib.models import LogisticRegression as Private

    X, y, bounds = split_for_bounds(fold)
    low, high = np.array([bounds[name] for name in X.columns]).T

    def scaled(rows):
        return np.clip((2 * rows - low - high) / (high - low), -1, 1).to_numpy()

    norm = math.sqrt(len(low))
    model = Private(epsilon=epsilon, data_norm=norm, random_state=fold.seed).fit(scaled(X), y)
    return model.predict(scaled(pd.get_dummies(fold.X_test, dtype=float)))


if __name__ == "__main__":
    main()
