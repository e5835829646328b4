"""The pictures of the documentation, each for light and for dark pages.

``python docs/pictures.py`` draws all of them into ``docs/pictures``; names choose some. Like what
the pages print they come from the package as it is: each function learns what it draws.
"""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from picture_schemes import DARK, LIGHT, Scheme, add_legend, plain_axes
from pictures_of_examples import boxes, effects, mixture, online, sensors
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayescascade import (
    BudgetPruneClassifier,
    FeatureCosts,
    LeafCascade,
    NeighborCompressionClassifier,
    RadoBoostClassifier,
    Rados,
    RuleListClassifier,
)
from tests.benchmarks.pruning_baselines import CostComplexityPrune, TruncatedForest

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "pictures"


_N_RADOS = (25, 50, 100, 200, 400, 800, 1600, 3200)
_N_DEALS = 10  # of rows to those that are learned from, measured on and tested with


def titanic(scheme: Scheme) -> Figure:
    """Draw the most probable tree of who was aboard, divided from left to right."""
    people = pd.read_csv(ROOT / "data/titanic.csv").drop(columns="survived")
    density = LeafCascade(random_state=0).fit(people).tree_
    tree, shares = density.tree, density.probabilities
    n_levels = int(tree.depths.max()) + 1
    top = np.zeros(tree.n_nodes)
    used = np.zeros(tree.n_nodes)
    for node in range(1, tree.n_nodes):  # every node after its parent, branches in order
        parent = tree.parent[node]
        top[node] = top[parent] + used[parent]
        used[parent] += shares[node]
    figure = Figure(figsize=(7.6, 4.6))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, n_levels), ylim=(1.0, 0.0))
    axes.set_axis_off()
    leaves = set(tree.leaves.tolist())
    for node in range(tree.n_nodes):
        depth, share = int(tree.depths[node]), shares[node]
        width = n_levels - depth if node in leaves else 1.0
        ratio = density.relative_densities[node]
        color = _blend(scheme, np.log(ratio) / np.log(8.0)) if node in leaves else scheme.page
        place = (depth, top[node])
        axes.add_patch(Rectangle(place, width, share, fc=color, ec=scheme.faint, lw=0.8))
        if share < 0.035:
            continue
        label = density.branch_words(node)
        if node in leaves:
            label += (": " if share < 0.07 or width > 1 else "\n") + f"{ratio:.2f} x uniform"
        size = 8.5 if len(label) < 24 or width > 1 or "\n" in label else 6.5
        axes.text(
            depth + width / 2, top[node] + share / 2, label,
            ha="center", va="center", color=scheme.text, fontsize=size, linespacing=1.4,
        )  # fmt: skip
    return figure


def survival(scheme: Scheme) -> Figure:
    """Draw the rules of the Titanic classifier with their intervals."""
    frame = pd.read_csv(ROOT / "data/titanic.csv")
    model = RuleListClassifier(search="exact", random_state=0)
    rules = model.fit(frame.drop(columns="survived"), frame["survived"]).rules_
    means = rules.probabilities[:, 1]
    low, high = rules.intervals()[:, 1].T
    words = [line.split("  ")[0] for line in str(rules).splitlines()[1:]]
    figure = Figure(figsize=(7.6, 2.9))
    axes = plain_axes(figure, scheme, (0.4, 0.19, 0.57, 0.77))
    places = np.arange(len(means))
    axes.hlines(places, low, high, color=scheme.denser, lw=5, alpha=0.45)
    axes.plot(means, places, "o", color=scheme.denser, ms=6)
    axes.set_yticks(places, words)
    axes.set(xlim=(0, 1), ylim=(len(means) - 0.5, -0.5), xlabel="probability of having survived")
    axes.grid(axis="x", color=scheme.faint, alpha=0.3, lw=0.6)
    axes.tick_params(axis="y", length=0)
    return figure


def budget(scheme: Scheme) -> Figure:
    """Draw test errors of prunings of a forest by what they cost, mean of ten splits."""
    figure = Figure(figsize=(7.6, 3.3))
    axes = plain_axes(figure, scheme, (0.09, 0.16, 0.88, 0.81))
    styles = ((scheme.denser, "o-", 2.2), (scheme.rarer, "s--", 1.2), (scheme.other, "v:", 1.2))
    for (name, (spent, errors)), style in zip(_pruned().items(), styles, strict=True):
        color, line, width = style
        axes.plot(spent, errors, line, color=color, lw=width, ms=4.5, label=name)
    axes.set(xlabel="mean cost a patient, dollars", ylabel="test error, %", xlim=(0, None))
    add_legend(axes, scheme)
    return figure


@cache
def _pruned() -> dict[str, NDArray[np.float64]]:
    """Return mean cost and error in percent at each budget, (2, n_budgets), by kind."""
    patients = pd.read_csv(ROOT / "data/liver_clinic.csv")
    costs = FeatureCosts.read_csv(ROOT / "data/liver_clinic_costs.csv")
    kinds = {
        "BudgetPrune": (BudgetPruneClassifier, [9, 10, 12, 14, 16, 18, 20, 23, 26, 30, 34]),
        "cost complexity": (CostComplexityPrune, [12, 14, 16, 18, 20, 23, 26, 30, 34]),
        "the first trees": (TruncatedForest, [25, 27, 30, 34]),
    }
    found = {name: np.zeros((2, len(budgets))) for name, (_, budgets) in kinds.items()}
    for seed in range(_N_DEALS):
        rows = patients.sample(frac=1.0, random_state=seed, ignore_index=True)
        X, y = rows.drop(columns="outcome"), rows["outcome"]
        forest = RandomForestClassifier(40, max_features=None, min_samples_leaf=5, random_state=0)
        for name, (kind, budgets) in kinds.items():
            model = kind(forest, costs=costs, budget=30.0).fit(X[:800], y[:800], X[800:1100])
            for place, each in enumerate(model.path(budgets=budgets)):
                wrong = each.predict(X[1100:]) != y[1100:]
                told = each.acquisition_cost(X[1100:]).mean(), 100 * wrong.mean()
                found[name][:, place] += np.array(told) / _N_DEALS
    return found


def prototypes(scheme: Scheme) -> Figure:
    """Draw rows of two classes, their prototypes, and where the nearest one changes its class."""
    X, y = make_moons(600, noise=0.2, random_state=0)
    model = NeighborCompressionClassifier(n_prototypes=8, random_state=0).fit(X, y)
    places, labels = np.asarray(model.prototypes_), np.asarray(model.prototype_labels_)
    figure = Figure(figsize=(7.6, 3.8))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    low, high = X.min(axis=0) - 0.15, X.max(axis=0) + 0.15
    across, up = (np.linspace(a, b, 240) for a, b in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    sides = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    axes.contour(across, up, sides, levels=[0.5], colors=[scheme.text], linewidths=1.2)
    for label, color in enumerate((scheme.denser, scheme.rarer)):
        axes.plot(*X[y == label].T, "o", ms=3, color=color, alpha=0.5, mew=0, rasterized=True)
        axes.plot(*places[labels == label].T, "o", ms=11, color=color, mec=scheme.text, mew=1.5)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return figure


def residuals(scheme: Scheme) -> Figure:
    """Draw what regressions leave over, in the right direction and in the wrong one."""
    rng = np.random.default_rng(0)
    dose = rng.uniform(0, 10, 600)
    response = 20 * np.tanh(dose / 4) + rng.uniform(-4, 4, 600)
    figure = Figure(figsize=(7.6, 3.0))
    pairs = (("dose", dose, "response", response), ("response", response, "dose", dose))
    for place, (cause_name, cause, effect_name, effect) in enumerate(pairs):
        axes = plain_axes(figure, scheme, (0.075 + 0.5 * place, 0.18, 0.41, 0.68))
        x = ((cause - cause.mean()) / cause.std())[:, None]
        left = effect - KernelRidge(alpha=0.1, kernel="rbf", gamma=2.0).fit(x, effect).predict(x)
        color = (scheme.denser, scheme.rarer)[place]
        axes.plot(
            cause[:400], left[:400], "o", ms=2.6, color=color, alpha=0.75, mew=0, rasterized=True
        )
        axes.axhline(0.0, color=scheme.faint, lw=0.8)
        axes.set(xlabel=cause_name, ylabel=f"{effect_name}, what is left over")
        title = "independent of the cause" if place == 0 else "depends on the supposed cause"
        axes.set_title(title, color=scheme.text, fontsize=9.5)
    return figure


def rados(scheme: Scheme) -> Figure:
    """Draw errors of classifiers from sums of rows, by the number of sums, over ten seeds."""
    errors, error = _summed()
    figure = Figure(figsize=(7.6, 3.2))
    axes = plain_axes(figure, scheme, (0.09, 0.17, 0.88, 0.79))
    labels = ("mean and covariance of the sums", "boosting over the sums")
    for found, color, label in zip(errors, (scheme.denser, scheme.rarer), labels, strict=True):
        low, middle, high = 100 * np.quantile(found, (0.1, 0.5, 0.9), axis=1)
        axes.fill_between(_N_RADOS, low, high, color=color, alpha=0.2, lw=0)
        axes.plot(_N_RADOS, middle, "o-", color=color, ms=4.5, label=label)
    axes.axhline(100 * error, color=scheme.text, lw=1, ls="--", label="logistic regression on rows")
    axes.set_xscale("log")
    axes.set_xticks(_N_RADOS, [f"{n:,}" for n in _N_RADOS])
    axes.minorticks_off()
    axes.set(xlabel="sums that are handed over, of 426 rows", ylabel="test error, %")
    axes.set_ylim(bottom=0)
    add_legend(axes, scheme)
    return figure


@cache
def _summed() -> tuple[NDArray[np.float64], float]:
    """Return errors from sums, (2 learners, n_numbers, 10 seeds), and the error from the rows."""
    X, y = load_breast_cancer(return_X_y=True)
    X, train = X[:, :10], np.arange(len(X)) % 4 != 0
    errors = np.zeros((2, len(_N_RADOS), 10))
    for seed in range(10):
        for place, n_rados in enumerate(_N_RADOS):
            sums = Rados.sample(X[train], y[train], n_rados, random_state=seed)
            for learner, name in enumerate(("moments", "boost")):
                model = RadoBoostClassifier(learner=name, random_state=0).fit_rados(sums)
                errors[learner, place, seed] = (model.predict(X[~train]) != y[~train]).mean()
    by_rows = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train], y[train])
    return errors, float((by_rows.predict(X[~train]) != y[~train]).mean())


PICTURES: dict[str, Callable[[Scheme], Figure]] = {
    each.__name__: each
    for each in (
        titanic,
        survival,
        budget,
        prototypes,
        residuals,
        rados,
        boxes,
        mixture,
        effects,
        online,
        sensors,
    )
}


def draw(name: str) -> None:
    """Draw a picture into its two files, the same bytes each time."""
    FOLDER.mkdir(exist_ok=True)
    settings = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9.0}
    for scheme in (LIGHT, DARK):
        with mpl.rc_context(settings):
            figure = PICTURES[name](scheme)
            path = FOLDER / f"{name}_{scheme.name}.svg"
            figure.savefig(
                path, transparent=True, dpi=200, metadata={"Date": None, "Creator": None}
            )


def _blend(scheme: Scheme, strength: float) -> tuple[float, ...]:
    """Return a color between the page's and that of denser (strength > 0) or rarer boxes."""
    strong = scheme.denser if strength > 0 else scheme.rarer
    weight = 0.12 + 0.68 * min(1.0, abs(strength))
    page, strong_rgb = (np.array(mpl.colors.to_rgb(c)) for c in (scheme.page, strong))
    return tuple(page + weight * (strong_rgb - page))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PICTURES:
        draw(chosen)
