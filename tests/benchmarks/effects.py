"""Effects of a treatment on each row: how often their sign is right, and that of intervals.

    python -m tests.benchmarks.effects worlds [--seeds N]
    python -m tests.benchmarks.effects differ [--seeds N]
    python -m tests.benchmarks.effects thesis [--seeds N] [--tables T ...] [--methods M ...]
    python -m tests.benchmarks.effects acic --data FOLDER [--seeds N]
    python -m tests.benchmarks.effects lalonde --data FOLDER

`worlds` learns from 2,000 rows of four made worlds and asks about 5,000 others: the share of right
signs where the effect is above .02 either way, and the signs of two logistic regressions and of two
forests, one an arm. `differ` counts sets of rows whose effects are said to differ, and has the mean
square errors of effects and of the average effect. `thesis` repeats tables 4.1 and 4.3 to 4.6 of
Goh (2018): the loss l_.01 and l_.1, whose truth is drawn, and the share of wrong signs of expected
effects, which the tables do not have; "rbf tuned" is the machine whose scales are chosen by its own
loss, and "all alike" says of each row what helps most of them. `acic` reads acic2016_x.csv and
acic2016_outcomes.csv: the root mean square error, and what treating where h > 0 loses to treating
where it works. `lalonde` reads lalonde_nsw.csv, and prints for whom a job training made it likelier
to earn anything in 1978.
"""

import warnings
from argparse import ArgumentParser
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from bayescascade import CausalSVM, EffectModel
from tests.benchmarks.effect_data import DESIGNS, acic, world
from tests.benchmarks.figures import say

LEAST = 0.02  # effects whose sign counts
SVM_LENGTHS = {"0.05": 10.0**0.5, "0.1": 5.0**0.5}  # exp(-width d^2) is exp(-d^2 / (2 length^2))


def main():
    """Print the tables that are asked for."""
    made = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("what", choices=list(TABLES))
    made.add_argument("--seeds", type=int, default=4)
    made.add_argument("--tables", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    made.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    made.add_argument("--data", type=Path, default=Path())
    given = made.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    TABLES[given.what](given)


class Two:
    """The difference of two models' probabilities, one of each arm; or of their scores."""

    def __init__(self, make):
        self.models = [make(), make()]

    def fit(self, X, y, treatment, _=None):
        """Fit each to the rows of its arm."""
        for arm, model in enumerate(self.models):
            model.fit(X[treatment == bool(arm)], y[treatment == bool(arm)])
        return self

    def decision_function(self, X):
        """Return the difference of what they say, (n,)."""
        said = [
            model.predict_proba(X)[:, 1]
            if hasattr(model, "predict_proba")
            else model.decision_function(X)
            for model in self.models
        ]
        return np.asarray(said[1] - said[0])


def two_forests():
    """Return two forests."""
    return Two(lambda: RandomForestClassifier(200, min_samples_leaf=5, random_state=0))


def learned(model, rows):
    """Return a model fitted to rows, and the seconds of one core that it took."""
    began = process_time()
    model.fit(rows.X, rows.y, rows.treatment, rows.propensity)
    return model, process_time() - began


def worlds(n_seeds):
    """Print the table of made worlds."""
    say("world               default  two logistic  two forests  tree told  seconds")
    for truth in ("linear", "rules"):
        for is_confounded in (False, True):
            found = np.mean(
                [_of_world(world(truth, is_confounded, s)) for s in range(n_seeds)], axis=0
            )
            name = f"{truth}, {'confounded' if is_confounded else 'randomized'}"
            widths = (9, 14, 13, 11)
            texts = [f"{one:{width}.3f}" for one, width in zip(found, widths, strict=False)]
            say(f"{name:<18}{''.join(texts)}{found[-1]:9.1f}")


def _of_world(known):
    rows, asked = known.part(slice(0, 2000)), known.part(slice(2000, None))
    model, seconds = learned(EffectModel(random_state=0), rows)
    result = model.explain(rows.X, kind="tree", random_state=0)
    others = [learned(each, rows)[0] for each in (Two(LogisticRegression), two_forests())]
    signs = [_right(one.decision_function(asked.X), asked) for one in (model, *others)]
    return [*signs, _right(result.predict(asked.X) - 0.5, asked), seconds]


def _right(h, asked):
    counts = np.abs(asked.effect) > LEAST
    return float(np.mean(np.sign(h) == np.sign(asked.effect), where=counts))


def differing(n_sets):
    """Print how often effects are said to differ, and square errors of them and a constant."""
    say("world      rows  differ  error  average's  difference  seconds")
    for truth in ("none", "linear", "rules"):
        for n in (300, 1000):
            found = []
            for seed in range(n_sets):
                known = world(truth, seed % 2 == 1, seed, n + 2000)
                rows, asked = known.part(slice(0, n)), known.part(slice(n, None))
                model, seconds = learned(EffectModel(random_state=seed), rows)
                constant = np.diff(model.average_effect_.means)[0, 0]
                both = np.subtract([model.effect(asked.X), np.full(2000, constant)], asked.effect)
                found.append([model.slope_.least > 0.0, *np.mean(both**2, axis=1), seconds])
            means, less = np.mean(found, axis=0), np.diff(np.array(found)[:, 1:3])
            error = less.std() / np.sqrt(max(n_sets - 1, 1))
            say(
                f"{truth:<8}{n:>7}{means[0]:8.3f}{means[1]:7.4f}{means[2]:11.4f}"
                f"  {less.mean():.4f} +- {error:.4f}{means[3]:6.1f}"
            )


def semi_real(folder, n_seeds):
    """Print root mean square errors and value lost of ACIC 2016's settings."""
    say("setting   error   lost  seconds")
    whole = []
    for setting in (1, 2, 3, 4):
        known, found = acic(folder, setting), []
        for seed in range(n_seeds):
            order = np.random.default_rng(seed).permutation(len(known.y))
            rows, asked = known.part(order[:2000]), known.part(order[2000:])
            model, seconds = learned(EffectModel(random_state=0), rows)
            h = model.effect(asked.X)
            error = np.sqrt(np.mean((h - asked.effect) ** 2))
            lost = np.mean(np.maximum(asked.effect, 0.0) - asked.effect * (h > 0.0))
            found.append((error, lost, seconds))
        whole.append(np.mean(found, axis=0))
        say(f"{setting:>7}  {whole[-1][0]:6.3f} {whole[-1][1]:6.4f} {whole[-1][2]:8.1f}")
    say(f"   mean  {np.mean(whole, axis=0)[0]:6.3f} {np.mean(whole, axis=0)[1]:6.4f}")


def lalonde(folder):
    """Print a model of half of Lalonde's trial, and its rules, whose effects the others show."""
    table = pd.read_csv(folder / "lalonde_nsw.csv")
    X, earns = table.drop(columns=["treat", "re78"]), table["re78"] > 0
    trained = table["treat"].map({1: "trained", 0: "not"})
    half, share = np.random.default_rng(0).random(len(X)) < 0.5, table["treat"].mean()
    model = EffectModel(treated="trained", random_state=0)
    model.fit(X[half], earns[half], trained[half], propensity=share)
    held_out = X[~half], earns[~half], trained[~half], share
    say(f"{model}\n\n{model.explain(X[half], held_out=held_out, random_state=0)}")


def _machine(kernel, length, penalty):
    return lambda: CausalSVM(kernel=kernel, length_scale=length, penalty=penalty, random_state=0)


class Alike:
    """The sign that an outcome has more often as a label of the effect, for every row."""

    def fit(self, X, y, treatment, _=None):
        """Count labels, each arm as a half."""
        del X
        shares = [np.mean(y[treatment == arm]) for arm in (False, True)]
        self.sign = 1.0 if shares[1] > shares[0] else -1.0
        return self

    def decision_function(self, X):
        """Return the sign of all rows, (n,)."""
        return np.full(len(X), self.sign)


def _methods():
    """Return those of the tables, by name."""
    made = {}
    for penalty in (1e-8, 1e-6, 1e-4):
        for kernel in ("linear", "quadratic", "cubic"):
            made[f"{kernel} {penalty:.0e}"] = _machine(kernel, 1.0, penalty)
        for width, length in SVM_LENGTHS.items():
            made[f"rbf {width} {penalty:.0e}"] = _machine("rbf", length, penalty)
    tried = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0]}
    made["two SVMs"] = lambda: Two(lambda: GridSearchCV(SVC(), tried, cv=3))
    made["two forests"] = two_forests
    made["default"] = lambda: EffectModel(random_state=0)
    made["rbf tuned"] = lambda: CausalSVM(random_state=0)
    made["all alike"] = Alike
    return made


METHODS = _methods()
TABLES = {
    "worlds": lambda given: worlds(given.seeds),
    "differ": lambda given: differing(given.seeds),
    "thesis": lambda given: thesis(given.tables, given.methods, given.seeds),
    "acic": lambda given: semi_real(given.data, given.seeds),
    "lalonde": lambda given: lalonde(given.data),
}


def thesis(tables, methods, n_seeds):
    """Print the tables of the thesis, in percent, by means over seeds."""
    for table in tables:
        say(f"table {table:<16} l_.01   l_.1  wrong  (sd) seconds")
        for name in methods:
            found, seconds = [], 0.0
            for seed in range(n_seeds):
                losses, needed = _of_design(METHODS[name](), DESIGNS[table](seed))
                found.append(losses)
                seconds += needed / n_seeds
            means, spread = np.mean(found, axis=0), np.std(found, axis=0)[-1]
            texts = "".join(f"{one:7.1f}" for one in means)
            say(f"{name:<20}{texts} {spread:6.1f} {seconds:7.1f}")


def _of_design(model, known):
    half = len(known.y) // 2
    rows, asked = known.part(slice(0, half)), known.part(slice(half, None))
    fitted, seconds = learned(model, rows)
    h, found = fitted.decision_function(asked.X), []
    for neutral in (0.01, 0.1):
        signs = np.sign(h)
        signs[np.argsort(np.abs(h), kind="stable")[: round(neutral * len(h))]] = 0
        is_wrong = np.where(asked.drawn == 0, signs != 0, signs * asked.drawn < 0)
        found.append(100.0 * float(is_wrong.mean()))
    has_effect = (np.abs(asked.effect) > LEAST).any()
    return [*found, 100.0 * (1.0 - _right(h, asked)) if has_effect else np.nan], seconds


if __name__ == "__main__":
    main()
