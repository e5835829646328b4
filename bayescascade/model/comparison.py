"""The result of comparing densities, as text, tables and a picture; see `halvings`."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError
from bayescascade.data.table import Table
from bayescascade.model.halvings import Outcome
from bayescascade.model.page import data_pieces
from bayescascade.model.standard_errors import best_error, splits_error
from bayescascade.report.axes import axes_or_new
from bayescascade.report.numbers import cells_text, significant_text, with_error
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of
from bayescascade.report.printed import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "o^sDvP*X"
_SPAN_OF_LOG = 8.0  # ratio of numbers of parts from which the axis is logarithmic
_MOST_PLAIN = 1e5  # parts printed in full
_LEAST_SPAN = 0.005  # nats
_SIZE = 7.5, 3.6  # of a picture, inches
_NO_ERROR = "no standard errors: less than 1,000 rows"


@dataclass(frozen=True)
class Comparison(Printed):
    """The result of `compare`; it prints a line for each density.

    Parameters
    ----------
    data : Table
        The rows.
    models : tuple of str
        Names of the densities.
    outcomes : tuple of Outcome
        The outcome of each model for each halving: `halving`, `model`, `log_likelihood` (mean over
        the rows of the test half, nats), `n_parts`, `seconds` to learn, and `settings` that were
        chosen on the training half. After Ctrl-C, only the finished ones.
    titles : mapping of str to str
        Titles of models, if they differ from the names.
    seed : int
        The seed of the halves.
    interrupted : bool
        Whether Ctrl-C ended the comparison.
    """

    data: Table
    models: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    interrupted: bool = False

    @property
    def table(self) -> pd.DataFrame:
        """The printed table, with a row for each density, by name.

        Columns are ``title``; ``held_out``, the mean log likelihood of held-out rows in nats per
        row; ``behind``, the difference from the best; ``parts``; ``seconds``; and
        ``held_out_error`` and ``behind_error``, their standard errors for other rows. These allow
        for rows that several halvings learn from, and are missing if there is only one halving, or
        less than 1,000 rows.
        """
        whole = self.whole
        models = [model for model in self.models if whole.of(model)]
        scores = {model: whole.log_likelihoods(model) for model in models}
        behind = {model: scores[self.best_] - scores[model] for model in models}
        n_rows = self.data.total_weight
        return pd.DataFrame(
            {
                "title": [self.titles.get(model, model) for model in models],
                "held_out": [scores[model].mean() for model in models],
                "held_out_error": [splits_error(scores[model], n_rows) for model in models],
                "behind": [behind[model].mean() for model in models],
                "behind_error": [
                    best_error(splits_error(behind[model], n_rows), len(models)) for model in models
                ],
                "parts": [np.mean([outcome.n_parts for outcome in whole.of(m)]) for m in models],
                "seconds": [np.mean([outcome.seconds for outcome in whole.of(m)]) for m in models],
            },
            index=pd.Index(models),
        )

    @property
    def best_(self) -> str:
        """The name of the density with the best score. DataError if no fit was finished."""
        whole = self.whole
        models = [model for model in self.models if whole.of(model)]
        if not models:
            raise DataError("best_ needs at least one finished fit, got none")
        return max(models, key=lambda model: whole.log_likelihoods(model).mean())

    @property
    def whole(self) -> "Comparison":
        """Outcomes of the halvings that all models finished; if there are none, all outcomes."""
        n_whole = len(self.outcomes) // len(self.models)
        if n_whole == 0:
            return self
        return replace(self, outcomes=self.outcomes[: n_whole * len(self.models)])

    def of(self, model: str) -> tuple[Outcome, ...]:
        """Return the outcomes of a model, one per halving."""
        return tuple(outcome for outcome in self.outcomes if outcome.model == model)

    def log_likelihoods(self, model: str) -> Floats:
        """Return the held-out means of a model, (n_halvings,) float64, nats per row."""
        return np.array([outcome.log_likelihood for outcome in self.of(model)])

    def plot(self, ax: "Axes | None" = None, *, legend: bool = True) -> "Axes":
        """Draw the held-out score of each density and halving by its parts, and return the axes.

        A density with a higher score and fewer parts is better. Densities with more than 1.8e308
        parts are left out. The legend says which density each marker is.
        """
        ax = axes_or_new(ax, *_SIZE)
        drawn = [outcome for outcome in self.outcomes if outcome.n_parts < math.inf]
        scores = []
        for model in self.models:
            of_model = [outcome for outcome in drawn if outcome.model == model]
            label = self.titles.get(model, model)
            parts, measured = [o.n_parts for o in of_model], [o.log_likelihood for o in of_model]
            scores.append(Scores(label, parts, measured))
        draw_scores(ax, self.data.source, scores)
        if legend:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
        return ax

    def page(self) -> Page:
        """Return a table with a line for each density, over the halvings that all have finished.

        ``held out`` is the mean log likelihood of held-out rows, and ``behind`` the difference from
        the best. Both have standard errors; see `table`.
        """
        whole = self.whole
        heading = Heading(data_pieces(self.data, self.data.schema))
        if not self.outcomes:
            return (heading, Pieces(["nothing has been learned yet"]))
        found, best = self.table, self.best_
        models = found.index.tolist()
        n_halvings = len(whole.of(best))
        held_out = map(_with_error, found["held_out"], found["held_out_error"])
        behind = map(_with_error, found["behind"], found["behind_error"])
        table = PrintedTable(
            found["title"].tolist(),
            [
                Numbers("held out", list(held_out), least_width=18),
                Numbers(
                    "behind best",
                    ["" if m == best else text for m, text in zip(models, behind, strict=True)],
                    least_width=18,
                ),
                Numbers("parts", [_parts_text(mean) for mean in found["parts"]], least_width=9),
                Numbers("seconds", [f"{mean:,.1f}" for mean in found["seconds"]], least_width=9),
            ],
            styles=["bold" if model == best else "" for model in models],
            least_label=24,
            gaps=(0, 0),
        )
        texts = ["parts: leaves, rules (with else), cells or classes"]
        halvings = "1 random split into halves"
        if n_halvings > 1:
            halvings = f"{n_halvings} random splits into halves"
            has_error = found["held_out_error"].notna().any()
            texts.insert(0, "±: standard error, for other rows" if has_error else _NO_ERROR)
        how = f"{halvings}: learned on one, scored on the other, nats a row"
        chosen = [words for model in models for words in whole._chosen_words(model)]
        legend = Pieces(texts, "dim")
        return (heading, Pieces([how]), BLANK, table, BLANK, legend, *map(_line, chosen))

    def _chosen_words(self, model: str) -> list[str]:
        """Return the chosen words, such as "leaf cascade in 4 of 5 splits: leaf dependent"."""
        outcomes = self.of(model)
        chosen = Counter(
            f"{name} {value}"
            for outcome in outcomes
            for name, value in outcome.settings.items()
            if isinstance(value, str)
        )
        title = self.titles.get(model, model)
        of_all = count_of(len(outcomes), "split")
        return [f"{title} in {n} of {of_all}: {words}" for words, n in chosen.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return all finished outcomes as plain data."""
        data = self.data
        return {
            "source": data.source,
            "n_rows": data.n_rows,
            "n_distinct": data.n_distinct,
            "total_weight": data.total_weight,
            **data.schema.to_dict(),
            "models": list(self.models),
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }


def _with_error(mean: float, error: float) -> str:
    return with_error(f"{mean:.4f}", error, 4)


def _line(words: str) -> Pieces:
    return Pieces([words])


def _parts_text(mean: float) -> str:
    if mean == math.inf:
        return "> 1e308"
    if mean.is_integer():
        return cells_text(math.log(mean))
    return f"{mean:,.1f}" if mean < 1e6 else significant_text(math.log(mean), 2)


class Scores(NamedTuple):
    """The scores of a density in each halving."""

    label: str
    n_parts: Sequence[float]
    log_likelihoods: Sequence[float]  # nats a row


def draw_scores(panel: "Axes", title: str, scores: Sequence[Scores]) -> None:
    """Draw the points of each density into axes."""
    for number, scores_of in enumerate(scores):
        panel.plot(
            scores_of.n_parts,
            scores_of.log_likelihoods,
            linestyle="none",
            marker=_MARKERS[number % len(_MARKERS)],
            fillstyle="none",  # translucent, because markers overlap
            markersize=8,
            markeredgewidth=1.6,
            color=f"C{number % 10}",
            label=scores_of.label,
        )
    n_parts = [n for score in scores for n in score.n_parts]
    _set_limits(panel, n_parts, [s for score in scores for s in score.log_likelihoods])
    panel.set_ylabel("held out, nats a row")
    panel.set_title(title, fontsize=10, parse_math=False)
    panel.spines[["top", "right"]].set_visible(False)


def _set_limits(panel: "Axes", n_parts: Sequence[float], scores: Sequence[float]) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    if n_parts and max(n_parts) > _SPAN_OF_LOG * min(n_parts):
        panel.set_xscale("log")
        if max(n_parts) < _MOST_PLAIN:
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        panel.set_xlabel("parts: leaves, rules, cells (log scale)")
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlabel("parts: leaves, rules, cells")
    if scores and max(scores) - min(scores) < _LEAST_SPAN:  # not rounding alone
        middle = (max(scores) + min(scores)) / 2
        panel.set_ylim(middle - _LEAST_SPAN, middle + _LEAST_SPAN)
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:.3f}"))
