"""The picture of what `budget_curves` has measured: a panel for each data set."""

from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tests.benchmarks.budget_methods import SHARES
from tests.benchmarks.budget_results import TITLES, summed

PANELS = ("letter", "magic", "spambase", "covertype", "pima", "hepatitis")


class Style(NamedTuple):
    """How a method's line looks; lightness, dashes and marker do without the color."""

    color: str
    dashes: str
    marker: str
    width: float

    @property
    def has_band(self):
        """Whether its standard errors are shown; of all lines they would hide each other."""
        return self.width > 1.5


SHOWN = {
    "Adapt-GBRT": Style("black", "-", "o", 1.8),
    "GreedyMiser": Style("black", ":", "o", 1.2),
    "BudgetPrune": Style("tab:blue", "-", "s", 1.8),
    "FMCC": Style("tab:red", "-", "^", 1.8),
    "ASTC": Style("tab:green", "-", "D", 1.2),
    "LightGBM lazy": Style("tab:orange", "-", "v", 1.8),
    "LightGBM coupled": Style("tab:orange", "--", "v", 1.2),
    "BudgetRF": Style("tab:blue", ":", "s", 1.0),
    "BudgetTree": Style("tab:blue", "-.", "x", 1.0),
    "Adapt-Lin": Style("0.55", "-", "P", 1.0),
    "Adapt-LstSq": Style("0.55", "--", "P", 1.0),
    "CSTC": Style("0.55", ":", "*", 1.0),
    "l1": Style("0.7", "-.", "+", 1.0),
}


def draw(results, picture):
    """Draw accuracy by cost, at unit costs; bands around thick lines are standard errors."""
    names = [name for name in PANELS if any(results.of(name, "unit", m) for m in SHOWN)]
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "budgets", "font.size": 8.0}):
        figure = Figure(figsize=(8.6, 0.8 + 2.7 * -(-len(names) // 2)), layout="constrained")
        panels = figure.subplots(-(-len(names) // 2), 2, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            found = {method: results.of(name, "unit", method) for method in SHOWN}
            most = max(map(len, found.values()))
            for method, style in SHOWN.items():
                if 2 * len(found[method]) > most:  # means of a few other splits would mislead
                    _line(axes, found[method], style)
            axes.set_title(name, fontsize=9)
            axes.set_xticks(SHARES, [f"{100 * share:.0f}" for share in SHARES])
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(color="0.9", linewidth=0.6)
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        figure.supxlabel("cost at most, percent of the cost of all features", fontsize=8)
        figure.supylabel("test accuracy, percent", fontsize=8)
        known = {line.get_label(): line for axes in panels for line in axes.get_lines()}
        shown = [method for method in SHOWN if method in known]
        titles = [TITLES[m].replace("`", "").replace("Classifier", "") for m in shown]
        handles = [known[method] for method in shown]
        figure.legend(handles, titles, loc="outside upper center", ncols=4, frameon=False)
        is_svg = picture.suffix == ".svg"
        figure.savefig(picture, dpi=110, metadata={"Date": None} if is_svg else None)


def _line(axes, results, style):
    mean, error = summed(100 * np.array([1 - one.at(SHARES)[0] for one in results]))
    axes.plot(
        SHARES, mean, linestyle=style.dashes, marker=style.marker, color=style.color,
        linewidth=style.width, markersize=3.2, label=results[0].method,
    )  # fmt: skip
    if len(results) > 1 and style.has_band:
        axes.fill_between(
            SHARES, mean - error, mean + error, color=style.color, alpha=0.15, linewidth=0
        )
