"""A density list: rules with the statistics of their parts, and all methods for users.

It needs no data. The rules as conditions, the counts, the probabilities and the schema are enough
to print it, score rows (missing cells integrated out), draw rows, condition and save it. Part ``l``
has the cells that satisfy rule ``l`` and no rule before it; the last part, `else`, has those that
satisfy no rule. Within a part the density is uniform, so a part of probability ``p`` and volume
``v`` has density ``p / v``: per cell of nominal and ordinal columns, per unit of continuous ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import rel_entr, xlogy

from bayescascade.base.arrays import Codes, Floats
from bayescascade.data.schema import Conditions, Schema, agrees
from bayescascade.data.sql import sql_literal
from bayescascade.methods.lists.antecedents import Antecedent, Condition, candidate_arrays
from bayescascade.methods.lists.parts import draw_from_part, log_first_volumes, parts_of_codes
from bayescascade.methods.lists.rule_list import ListedRules
from bayescascade.model.density_parts import DensityParts
from bayescascade.report.axes import Bar, plot_bars, ratio_color
from bayescascade.report.layout import wrap
from bayescascade.report.numbers import density_text, ratio_text
from bayescascade.report.page import Numbers, Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EXACT = 1e12  # below it, logarithms still distinguish whole numbers

_GIVEN_WIDTH = 60  # characters per line below a picture


@dataclass(frozen=True, eq=False)
class LearnedDensityList(ListedRules, DensityParts):
    """A density that is constant on each part of a rule list.

    Parameters
    ----------
    schema : Schema
        The columns.
    rules : tuple of Antecedent
        The conditions of each rule, in the order in which rules are tried. Each part must contain a
        cell.
    counts : (n_rules + 1,) float64
        Weight of the rows in each part, with the `else` part last. For a conditional density, the
        expected weight.
    probabilities : (n_rules + 1,) float64
        Probability of each part; they sum up to 1.
    conditions : mapping of int to tuple of int
        Codes on which the density is conditioned, by column. The domain has only cells with these
        codes.
    conditions_probability : float in (0, 1]
        Probability of the conditions; 1 if there are none.
    condition_numbers : mapping of int to str
        Numbers that were given for continuous columns and that stand for their bins, by column.
    """

    schema: Schema
    rules: tuple[Antecedent, ...]
    counts: Floats
    probabilities: Floats
    conditions: Conditions = field(default_factory=dict)
    conditions_probability: float = 1.0
    condition_numbers: Mapping[int, str] = field(default_factory=dict, kw_only=True)

    # -- volumes -----------------------------------------------------------------------------------

    @cached_property
    def log_volumes(self) -> Floats:
        """Log volume of the cells of each part, nats, (n_rules + 1,) float64."""
        return log_first_volumes(self.schema, self.rules, self.conditions)

    @property
    def log_domain(self) -> float:
        """Log volume of all cells that satisfy the conditions, nats."""
        return float(self._log_widths.sum())

    def _log_likelihoods(self) -> tuple[Floats, Floats]:
        counts, log_volumes = self.counts, self.log_volumes
        rows = counts[::-1].cumsum()[::-1]
        volumes = np.logaddexp.accumulate(log_volumes[::-1])[::-1]
        apart, together = xlogy(counts, counts), xlogy(rows, rows)
        return apart - counts * log_volumes, together - rows * volumes

    @cached_property
    def _widths(self) -> list[Floats]:
        """Width of each column's codes, 0 where the conditions exclude them."""
        widths = [column.widths for column in self.schema.columns]
        for j, allowed in self.conditions.items():
            widths[j][np.setdiff1d(np.arange(widths[j].size), allowed)] = 0.0
        return widths

    @cached_property
    def _log_widths(self) -> Floats:
        """Log of the total width of each column's codes within the conditions, (p,) float64."""
        return np.log([widths.sum() for widths in self._widths])

    # -- words -------------------------------------------------------------------------------------

    def _table(self, columns: list[Numbers]) -> Page:
        won = "the gain in log likelihood"
        return (self._listed(columns, weights=self.gains, measure=won),)

    @property
    def how_to_read(self) -> list[tuple[str, str]]:
        """An explanation of the list."""
        read = (
            "Read it from the top. The group of a row is the first line whose conditions it "
            "satisfies, and all lines below are ignored. Rows that satisfy no line are in the "
            "last group, else."
        )
        return [("", read), ("", "Inside a group all combinations are equally probable.")]

    def parts_in_words(self) -> list[tuple[str, str]]:
        """Return the rule of each part, in order, with its statistics."""
        return [(label, self._part_in_words(part)) for part, label in enumerate(self.labels)]

    @property
    def gains(self) -> Floats:
        """Gain of each part over the uniform density, (n_rules + 1,) float64 >= 0 nats.

        If there are ``n`` rows, a part with probability ``q`` and share ``u`` of the volume gains
        ``n (q ln(q / u) - q + u)``. The sum over the parts is the gain of the list.
        """
        q, u = self.probabilities, np.exp(self.log_volumes - self.log_domain)
        gains: Floats = self.total * (rel_entr(q, u) - q + u)
        return gains.clip(min=0.0)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a bar for the probability of each part, and return the axes.

        Blue parts have a density above the uniform density, orange parts below it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        """
        ratios = (self.log_densities + self.log_domain).tolist()
        parts = zip(self.labels, self.probabilities.tolist(), ratios, strict=True)
        bars = [
            Bar(label, (share,), f"{ratio_text(ratio)} x uniform", (ratio_color(ratio),))
            for label, share, ratio in parts
        ]
        x_label = "share; blue: denser than uniform, orange: rarer"
        if self.conditions:
            x_label = "\n".join([x_label, *wrap(self.given_text, _GIVEN_WIDTH)])
        return plot_bars(bars, ax, x_label=x_label)

    def _explanations(self, codes: Codes) -> Iterator[str]:
        seen = {j: (int(code),) for j, code in enumerate(codes) if code >= 0}
        log_volumes = log_first_volumes(self.schema, self.rules, {**self.conditions, **seen})
        for part in np.flatnonzero(log_volumes > -np.inf).tolist():
            n, p, relative = (
                of[part] for of in (self.counts, self.probabilities, self.relative_densities)
            )
            text = density_text(n, self.counts.sum(), p, self.log_densities[part], relative)
            yield f"{self.part_words(part)}: {text}"

    # -- densities and draws -----------------------------------------------------------------------

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; see `Schema.encode`.

        Cells coded -1 are missing. They are integrated out, so the result is the marginal density
        of the observed cells: the sum over parts of the part's density times the volume that its
        cells have in the missing columns. Rows outside the domain get -inf.
        """
        scores: Floats = self.log_densities[parts_of_codes(codes, self.rules)]
        columns = self._rule_columns
        is_open = (codes[columns] < 0).any(axis=0)
        if is_open.any():
            seen, position = np.unique(codes[columns][:, is_open], axis=1, return_inverse=True)
            scores[is_open] = self._score_open(seen)[position.reshape(-1)]
        for j in np.setdiff1d(np.arange(self.schema.n_columns), columns):
            scores[codes[j] < 0] += self._log_widths[j]
        scores[~agrees(self.conditions, codes)] = -np.inf
        return scores

    @cached_property
    def _rule_columns(self) -> list[int]:
        return sorted({condition.column for rule in self.rules for condition in rule})

    def _score_open(self, cells: Codes) -> Floats:
        """Return log densities of rows with missing cells, -1, given the rules' columns only."""
        from bayescascade.methods.lists.kernels.layout import new_space
        from bayescascade.methods.lists.kernels.volumes import score_open_rows

        widths = np.concatenate(self._widths)
        arrays = candidate_arrays(self.schema, self.rules)
        scores = np.empty(cells.shape[1])
        score_open_rows(
            arrays, np.arange(self.n_rules), new_space(arrays), widths,
            np.array(self._rule_columns, np.int64), np.ascontiguousarray(cells),
            self.log_densities, np.empty(self.n_rules + 1), scores,
        )  # fmt: skip
        return scores

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (p, n) codes: a part by its probability, then uniformly within the part."""
        shares = self.probabilities / self.probabilities.sum()
        chosen = rng.choice(self.n_rules + 1, size=n, p=shares)
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for part in np.unique(chosen):
            inside = np.flatnonzero(chosen == part)
            codes[:, inside] = draw_from_part(
                self.schema, self.rules, int(part), inside.size, rng, self.conditions
            )
        return codes

    def _given(self, known: Conditions) -> tuple[dict[str, Any], float]:
        log_volumes = log_first_volumes(self.schema, self.rules, known)
        shares = np.exp(log_volumes - self.log_volumes)
        kept = np.flatnonzero(log_volumes > -np.inf)
        changes = {
            "rules": tuple(_restricted(self.rules[part], known) for part in kept[:-1]),
            "counts": (self.counts * shares)[kept],
            "probabilities": (self.probabilities * shares)[kept],
        }
        return changes, float(np.dot(self.probabilities, shares))

    # -- as plain data -----------------------------------------------------------------------------

    def _sql(self) -> list[str]:
        return self._sql_of([sql_literal(value) for value in self.log_densities.tolist()])

    def _own_dict(self) -> dict[str, Any]:
        """Return the list as plain data.

        ``{"n_rules": k, "rules": [{"if": {name: levels, ...}, "count": n, "volume": v,
        "probability": p, "density": p / v}, ...], "else": {the same without "if"}}``; the levels
        are those of `antecedent_dict`. A volume beyond the largest float, 1.8e308, is infinite.
        """
        with np.errstate(over="ignore"):  # for over a thousand binary columns
            volumes = np.exp(self.log_volumes)
        if self.schema.n_cells is not None:
            volumes = np.where(volumes < _EXACT, volumes.round(), volumes)  # whole numbers of cells
        names = ("count", "volume", "probability", "density")
        each = (self.counts, volumes, self.probabilities, np.exp(self.log_densities))
        parts = [dict(zip(names, own, strict=True)) for own in np.transpose(each).tolist()]
        return {"n_rules": self.n_rules, **self._part_dicts(parts)}


def _restricted(rule: Antecedent, known: Conditions) -> Antecedent:
    """Return a rule restricted to the known codes, without conditions that these always satisfy."""
    conditions = []
    for condition in rule:
        codes = known.get(condition.column, ())
        left = [code for code in codes if condition.low <= code < condition.high]
        if not codes:
            conditions.append(condition)
        elif len(left) < len(codes):
            conditions.append(Condition(condition.column, left[0], left[-1] + 1))
    return tuple(conditions)
