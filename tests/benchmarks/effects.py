"""Effects of a treatment on each row: how often their sign is right, and how wide intervals are.

    python -m tests.benchmarks.effects worlds [--seeds N]
    python -m tests.benchmarks.effects thesis [--seeds N] [--tuned]
    python -m tests.benchmarks.effects acic --data FOLDER [--seeds N]

`worlds` learns from 2,000 rows of four made worlds and asks about 5,000 others: the share of right
signs where the effect is above .02 either way, the share of intervals of 95 % that hold it, and the
signs of two logistic regressions and of two forests, one an arm. `thesis` repeats tables 4.1 and
4.3 to 4.6 of Goh (2018): the loss l_.01 and l_.1, whose truth is drawn, and the share of wrong
signs of expected effects, which the tables do not have; `--tuned` adds machines whose scales are
chosen by their own loss. `acic` reads acic2016_x.csv and acic2016_outcomes.csv: the root mean
square error, and what treating where h > 0 loses to treating where it works.
"""

import warnings
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from bayescascade import CausalSVM, EffectModel
from tests.benchmarks.effect_data import DESIGNS, Known, acic, world
from tests.benchmarks.figures import say

Floats = NDArray[np.float64]

LEAST = 0.02  # effects whose sign counts
SVM_LENGTHS = {"0.05": 10.0**0.5, "0.1": 5.0**0.5}  # exp(-width d^2) is exp(-d^2 / (2 length^2))


def main() -> None:
    """Print the tables that are asked for."""
    made = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("what", choices=["worlds", "thesis", "acic"])
    made.add_argument("--seeds", type=int, default=4)
    made.add_argument("--tuned", action="store_true")
    made.add_argument("--tables", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    made.add_argument("--data", type=Path, default=Path())
    given = made.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.what == "worlds":
        worlds(given.seeds)
    elif given.what == "acic":
        semi_real(given.data, given.seeds)
    else:
        thesis(given.tables, given.seeds, given.tuned)


class Two:
    """The difference of two models' probabilities, one of each arm; or of their scores."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.models = [make(), make()]

    def fit(self, X: Floats, y: Floats, treatment: Floats, _: object = None) -> "Two":
        """Fit each to the rows of its arm."""
        for arm, model in enumerate(self.models):
            model.fit(X[treatment == bool(arm)], y[treatment == bool(arm)])
        return self

    def decision_function(self, X: Floats) -> Floats:
        """Return the difference of what they say, (n,)."""
        said = [
            model.predict_proba(X)[:, 1]
            if hasattr(model, "predict_proba")
            else model.decision_function(X)
            for model in self.models
        ]
        return np.asarray(said[1] - said[0])


def two_forests() -> Two:
    """Return two forests."""
    return Two(lambda: RandomForestClassifier(200, min_samples_leaf=5, random_state=0))


def learned(model: Any, rows: Known) -> tuple[Any, float]:
    """Return a model fitted to rows, and the seconds of one core that it took."""
    began = process_time()
    model.fit(rows.X, rows.y, rows.treatment, rows.propensity)
    return model, process_time() - began


def worlds(n_seeds: int) -> None:
    """Print the table of made worlds."""
    say("world               default  interval  two logistic  two forests  tree told  seconds")
    for truth in ("linear", "rules"):
        for is_confounded in (False, True):
            found = np.mean(
                [_of_world(world(truth, is_confounded, s)) for s in range(n_seeds)], axis=0
            )
            name = f"{truth}, {'confounded' if is_confounded else 'randomized'}"
            widths = (9, 10, 14, 13, 11)
            texts = [f"{one:{width}.3f}" for one, width in zip(found, widths, strict=False)]
            say(f"{name:<18}{''.join(texts)}{found[-1]:9.1f}")


def _of_world(known: Known) -> list[float]:
    rows, asked = known.part(slice(0, 2000)), known.part(slice(2000, None))
    model, seconds = learned(EffectModel(random_state=0), rows)
    holds = np.nan
    if model.learner_ != "forest":
        low, high = model.effect_interval(asked.X).T
        holds = float(np.mean((low <= asked.effect) & (asked.effect <= high)))
    told = model.explain(rows.X, kind="tree", random_state=0)
    others = [learned(each, rows)[0] for each in (Two(LogisticRegression), two_forests())]
    signs = [_right(one.decision_function(asked.X), asked) for one in (model, *others)]
    return [signs[0], holds, *signs[1:], _right(told.predict(asked.X) - 0.5, asked), seconds]


def _right(h: Floats, asked: Known) -> float:
    counts = np.abs(asked.effect) > LEAST
    return float(np.mean(np.sign(h) == np.sign(asked.effect), where=counts))


def semi_real(folder: Path, n_seeds: int) -> None:
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


def thesis(tables: list[str], n_seeds: int, is_tuned: bool) -> None:
    """Print the tables of the thesis, in percent, by means over seeds."""
    makers: dict[str, Callable[[], Any]] = {}
    for penalty in (1e-8, 1e-6, 1e-4):
        for kernel in ("linear", "quadratic", "cubic"):
            makers[f"{kernel} {penalty:.0e}"] = _machine(kernel, 1.0, penalty)
        for width, length in SVM_LENGTHS.items():
            makers[f"rbf {width} {penalty:.0e}"] = _machine("rbf", length, penalty)
    tried = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0]}
    makers["two SVMs"] = lambda: Two(lambda: GridSearchCV(SVC(), tried, cv=3))
    makers["two forests"] = two_forests
    makers["default"] = lambda: EffectModel(random_state=0)
    if is_tuned:
        makers["rbf tuned"] = lambda: CausalSVM(random_state=0)
    for table in tables:
        say(f"table {table:<16} l_.01   l_.1  wrong")
        for name, make in makers.items():
            found = [_of_design(make(), DESIGNS[table](seed)) for seed in range(n_seeds)]
            say("{:<20}{:7.1f}{:7.1f}{:7.1f}".format(name, *np.mean(found, axis=0)))


def _machine(kernel: str, length: float, penalty: float) -> Callable[[], CausalSVM]:
    return lambda: CausalSVM(kernel=kernel, length_scale=length, penalty=penalty, random_state=0)


def _of_design(model: Any, known: Known) -> list[float]:
    half = len(known.y) // 2
    rows, asked = known.part(slice(0, half)), known.part(slice(half, None))
    h = learned(model, rows)[0].decision_function(asked.X)
    found = []
    for neutral in (0.01, 0.1):
        signs = np.sign(h)
        signs[np.argsort(np.abs(h), kind="stable")[: round(neutral * len(h))]] = 0
        is_wrong = np.where(asked.drawn == 0, signs != 0, signs * asked.drawn < 0)
        found.append(100.0 * float(is_wrong.mean()))
    has_effect = (np.abs(asked.effect) > LEAST).any()
    return [*found, 100.0 * (1.0 - _right(h, asked)) if has_effect else np.nan]


if __name__ == "__main__":
    main()
