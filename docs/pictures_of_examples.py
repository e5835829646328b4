"""Pictures of what the examples on the pages learn: boxes, classes, effects and a gate."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from picture_schemes import Scheme, add_legend, plain_axes
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from bayescascade import (
    BoxClassifier,
    CascadeMixture,
    EffectModel,
    GatedSensorsClassifier,
    OnlineGate,
)
from tests.documents import ROOT


def boxes(scheme: Scheme) -> Figure:
    """Draw the best box around the wines of one grower, in its two columns."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    is_rare = (y == 2).to_numpy()
    model = BoxClassifier(n_boxes=1, likelihood="gibbs", side_cost=0.5, search="exact")
    union = model.fit(X, is_rare).boxes_
    figure = Figure(figsize=(7.6, 3.4))
    axes = plain_axes(figure, scheme, (0.08, 0.15, 0.89, 0.81))
    names = ["flavanoids", "color_intensity"]
    for rows, color, label in (
        (~is_rare, scheme.denser, "other growers"),
        (is_rare, scheme.rarer, "the grower"),
    ):
        axes.plot(*X.loc[rows, names].to_numpy().T, "o", ms=4.5, mew=0, color=color, alpha=0.8,
                  label=label)  # fmt: skip
    (left, right), (bottom, top) = ends = np.array([axes.get_xlim(), axes.get_ylim()])
    columns = [X.columns.get_loc(name) for name in names]
    low = np.maximum(union.lower[0, columns], ends[:, 0])
    high = np.minimum(union.upper[0, columns], ends[:, 1])
    axes.add_patch(Rectangle(tuple(low), *(high - low), fill=False, ec=scheme.text, lw=1.6))
    axes.set(xlim=(left, right), ylim=(bottom, top), xlabel=names[0], ylabel="color intensity")
    add_legend(axes, scheme)
    return figure


def mixture(scheme: Scheme) -> Figure:
    """Draw what stands out in each class of people aboard the Titanic."""
    titanic = pd.read_csv(ROOT / "data/titanic.csv")
    found = CascadeMixture(random_state=0).fit(titanic).classes_
    figure = Figure(figsize=(7.6, 3.2))
    axes = plain_axes(figure, scheme, (0.36, 0.15, 0.6, 0.82))
    places = np.arange(len(found)) + 0.6 * (found["class"].to_numpy() - 1)
    axes.barh(places, found["inside"], height=0.62, color=scheme.denser, label="in the class")
    axes.vlines(found["all_rows"], places - 0.42, places + 0.42, color=scheme.rarer, lw=2.2,
                label="in all rows")  # fmt: skip
    names = found[["class", "share", "column", "level"]].to_numpy()
    words = [f"class {k} ({share:.0%}): {column} is {level}" for k, share, column, level in names]
    axes.set_yticks(places, words)
    axes.set(xlim=(0, 1), ylim=(places[-1] + 0.6, -0.6), xlabel="share of the level")
    add_legend(axes, scheme, "lower right")
    return figure


def effects(scheme: Scheme) -> Figure:
    """Draw the effect in each rule of the trial, measured on held-out rows."""
    rules = _trial_rules()
    n_parts = rules.rules_.n_rules + 1
    measured = rules.effects_
    means, (low, high) = measured.effects[:n_parts], measured.intervals()[:n_parts].T
    figure = Figure(figsize=(7.6, 2.4))
    axes = plain_axes(figure, scheme, (0.28, 0.22, 0.69, 0.73))
    places = np.arange(n_parts)
    colors = [scheme.denser if mean > 0.0 else scheme.rarer for mean in rules.means_[:n_parts]]
    axes.hlines(places, low, high, color=colors, lw=5, alpha=0.45)
    axes.scatter(means, places, c=colors, s=36, zorder=3)
    axes.axvline(0.0, color=scheme.faint, lw=0.8)
    axes.set_yticks(places, rules.rules_.labels)
    axes.set(ylim=(n_parts - 0.5, -0.5), xlabel="effect on the probability of recovery")
    return figure


def online(scheme: Scheme) -> Figure:
    """Draw the mean loss of a gate by round, beside a model that never asks."""
    losses, of_model = _played()
    figure = Figure(figsize=(7.6, 3.0))
    axes = plain_axes(figure, scheme, (0.08, 0.17, 0.89, 0.79))
    rounds = np.arange(1, len(losses) + 1)
    axes.plot(rounds, np.cumsum(losses) / rounds, color=scheme.denser, lw=2, label="the gate")
    axes.plot(rounds, np.cumsum(of_model) / rounds, color=scheme.rarer, lw=2,
              label="logistic regression on the first 100 rows, never asks")  # fmt: skip
    axes.axhline(0.2, color=scheme.text, lw=1, ls="--", label="always asks")
    axes.set(xlabel="round", ylabel="mean loss", ylim=(0, 0.3), xlim=(1, len(losses)))
    add_legend(axes, scheme)
    return figure


def sensors(scheme: Scheme) -> Figure:
    """Draw how often each camera sends for each digit."""
    X, y = load_digits(return_X_y=True)
    corners = {
        f"{side} {end}": [8 * row + column for row in rows for column in columns]
        for side, rows in (("upper", range(4)), ("lower", range(4, 8)))
        for end, columns in (("left", range(4)), ("right", range(4, 8)))
    }
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = GatedSensorsClassifier(sensors=corners, budget=2, random_state=0).fit(X, y)
    sends = np.asarray(model.sends(X_test), dtype=float)
    figure = Figure(figsize=(7.6, 2.3))
    axes = plain_axes(figure, scheme, (0.12, 0.22, 0.85, 0.75))
    for camera in range(len(corners)):
        for digit in range(10):
            share = sends[y_test == digit, camera].mean()
            axes.add_patch(Rectangle((digit - 0.45, camera - 0.4), 0.9, 0.8, lw=0,
                                     fc=scheme.denser, alpha=0.1 + 0.75 * share))  # fmt: skip
            axes.text(digit, camera, f"{share:.0%}", ha="center", va="center", color=scheme.text)
    axes.set_yticks(range(len(corners)), corners)
    axes.set_xticks(range(10))
    axes.set(xlim=(-0.5, 9.5), ylim=(len(corners) - 0.5, -0.5), xlabel="digit")
    return figure


@cache
def _trial_rules() -> Any:
    """Return the rules that the page on effects prints."""
    rng = np.random.default_rng(0)
    n = 3000
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "sex": rng.choice(["f", "m"], n),
            "smoker": rng.choice(["yes", "no"], n),
        }
    )
    treatment = rng.choice(["drug", "placebo"], n)
    gain = np.where((X["age"] < 50) & (X["sex"] == "f"), 0.3, -0.1) * (treatment == "drug")
    recovered = rng.random(n) < 0.4 + 0.1 * (X["smoker"] == "no") + gain
    first, others = slice(0, 2000), slice(2000, n)
    model = EffectModel(treated="drug", random_state=0)
    model.fit(X[first], recovered[first], treatment[first], propensity=0.5)
    held_out = (X[others], recovered[others], treatment[others], 0.5)
    return model.explain(X[first], held_out=held_out, random_state=0)


@cache
def _played() -> tuple[np.ndarray, np.ndarray]:
    """Return the losses of the page's gate in each round, and those of a model of the start."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    models = [LogisticRegression(max_iter=1000), DecisionTreeClassifier(random_state=0)]
    gate = OnlineGate.of_models(models, cost=0.2, random_state=0).start(X[:100], y[:100])
    losses = gate.play(X[100:], ask=lambda i: y[100 + i]).losses(y[100:])
    alone = LogisticRegression(max_iter=1000).fit(X[:100], y[:100])
    return losses, (alone.predict(X[100:]) != y[100:]).astype(float)
