"""A label list: rules with the weight of each class in their parts.

`LabelList` needs no data. Part ``l`` has the rows that satisfy rule ``l`` and no rule before it;
the last part, `else`, has those that satisfy no rule. With ``n_lc`` rows of class ``c`` out of
``n_l``, ``C`` classes and ``alpha`` = `concentration`, the probabilities of a part have a Dirichlet
posterior. Shown are their means ``(n_lc + alpha) / (n_l + C alpha)``, and intervals of the
marginals, ``Beta(n_lc + alpha, n_l - n_lc + (C - 1) alpha)``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import rel_entr, xlogy

from bayescascade.base.arrays import Codes, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.texts import printable
from bayescascade.base.typed_words import typed
from bayescascade.base.validation import check_probability
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import class_number
from bayescascade.data.levels import level_text, plain_level
from bayescascade.data.schema import Schema
from bayescascade.data.sql import sql_case, sql_literal
from bayescascade.methods.lists.antecedents import Antecedent
from bayescascade.methods.lists.models import (
    label_beta_parameters,
    label_intervals,
    part_probabilities,
)
from bayescascade.methods.lists.parts import encode_for_labels, parts_of_codes, readable_sql
from bayescascade.methods.lists.rule_list import ListedRules
from bayescascade.report.axes import Bar, class_color, plot_bars
from bayescascade.report.layout import longest
from bayescascade.report.numbers import (
    count_texts,
    estimate_text,
    interval_text,
    interval_texts,
    probability_text,
    share_text,
)
from bayescascade.report.page import Fitting, Numbers, Page, Pieces, PrintedTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_LABEL = 24  # least width of a part's conditions next to classes
_MOST_BARS = 4  # maximum number of classes with bars
_OTHERS = 0.1  # maximum probability of the classes that are not named
_LONGEST_CLASS = 16  # maximum width of a class's name in a header


@dataclass(frozen=True, eq=False)
class LabelList(ListedRules):
    """Class probabilities that are constant on each part of a rule list.

    Parameters
    ----------
    schema : Schema
        The columns. The outer bins of continuous columns are open: a value outside the range of the
        training rows belongs to the outer bin on its side.
    classes : (n_classes,) array
        The labels.
    rules : tuple of Antecedent
        The conditions of each rule, in the order in which rules are tried.
    counts : (n_rules + 1, n_classes) float64
        Weight of the rows of each class in each part, with the `else` part last.
    concentration : float > 0
        Dirichlet parameter of each class: the number of pseudo-rows of each class in each part.
    positive : int, optional
        Position of the class whose probability is shown. None: the second of two classes, all of
        more.
    """

    is_open: ClassVar[bool] = True

    schema: Schema
    classes: NDArray[Any]
    rules: tuple[Antecedent, ...]
    counts: Floats
    concentration: float
    positive: int | None = None

    @property
    def shown_class(self) -> int | None:
        """Position of the class whose probability is shown; None if all are."""
        return 1 if self.positive is None and self.n_classes == 2 else self.positive

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def probabilities(self) -> Floats:
        """Posterior mean probability of each class in each part, (n_rules + 1, n_classes)."""
        return part_probabilities(self.counts, self.concentration)

    def _log_likelihoods(self) -> tuple[Floats, Floats]:
        rows = self.counts[::-1].cumsum(axis=0)[::-1]
        apart, together = (
            xlogy(n, n).sum(axis=1) - xlogy(n.sum(axis=1), n.sum(axis=1))
            for n in (self.counts, rows)
        )
        return apart, together

    def intervals(self, level: float = 0.95) -> Floats:
        """Return equal-tailed credible intervals, (n_rules + 1, n_classes, 2) float64.

        Parameters
        ----------
        level : float in (0, 1)
            Posterior probability that the interval contains the probability of the class,
            separately for each class.
        """
        level = check_probability("level", level, strict=True)
        return label_intervals(self.counts, self.concentration, level)

    @cached_property
    def beta_parameters(self) -> tuple[Floats, Floats]:
        """Both parameters of the beta posterior of each probability, (n_rules + 1, n_classes)."""
        return label_beta_parameters(self.counts, self.concentration)

    # -- words -------------------------------------------------------------------------------------

    @cached_property
    def class_texts(self) -> list[str]:
        """The classes as text."""
        return [level_text(label) for label in self.classes.tolist()]

    def to_sql(
        self, label: object = None, *, missing: str = "error", unknown: str = "error"
    ) -> str:
        """Return the most probable class of a row, or the probability of a class, as standard SQL.

        Use it as in ``f"SELECT *, {rules.to_sql('yes')} AS yes FROM passengers"``. It reads columns
        by their names. The result is NULL for rows with a cell that is an error.

        Parameters
        ----------
        label : object, optional
            The class whose probability is returned.
        missing, unknown
            How missing cells and unknown levels are treated; see `encode_for_labels`.

        Raises
        ------
        ParameterError
            If the label is not one of the classes.
        DataError
            If a name, level or class contains a NUL character.
        """
        if label is None:
            best = self.probabilities.argmax(axis=1)
            values = [sql_literal(plain_level("label", self.classes[c])) for c in best]
        else:
            number = class_number(self.classes, label)
            values = [sql_literal(float(p)) for p in self.probabilities[:, number]]
        conditions = (readable_sql(column, missing, unknown) for column in self.schema.columns)
        readable = list(filter(None, conditions))
        of_part = self._sql_of(values)
        if readable:
            of_part = sql_case([(" AND ".join(readable), of_part)])
        return "\n".join(of_part)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the class probabilities of each rule, and return the axes.

        For one shown class, this is its probability, with a 95 % interval.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        """
        rows = count_texts(self.counts.sum(axis=1).tolist())
        texts = (self.probabilities.tolist(), self.intervals().tolist(), rows)
        parts = zip(self.labels, *texts, strict=True)
        c = self.shown_class
        if c is not None:
            bars = [
                Bar(label, (shares[c],), f"n = {n}", (class_color(1, 0.5),), tuple(ends[c]))
                for label, shares, ends, n in parts
            ]
            x_label = f"P({self.class_texts[c]})   lines: 95 % intervals"
            return plot_bars(bars, ax, x_label=x_label, most=1.0)
        colors = tuple(map(class_color, range(self.n_classes)))
        bars = [Bar(label, tuple(shares), f"n = {n}", colors) for label, shares, _, n in parts]
        return plot_bars(bars, ax, x_label="probability", most=1.0, legend=self.class_texts)

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule that applies to a row, and its class probabilities.

        The text has the probability of the shown class, or all probabilities in decreasing order. A
        missing cell satisfies no condition unless missing
        cells are a level of their column. A DataFrame must have one row.

        Raises
        ------
        ParameterError
            If there are several rows.
        DataError
            If a column is missing, or a value is not a level of its column.
        """
        frame = GivenRows.of(row).frame(self.schema.names, type(self).__name__)
        if len(frame) != 1:
            raise ParameterError(f"row must be a single row, got {len(frame)}")
        codes = encode_for_labels(self.schema, frame, missing="none")
        return self.explain_codes(codes[:, 0])

    def explain_codes(self, codes: Codes) -> str:
        """Return the same as `explain`, for the codes of a row (n_columns,)."""
        part = int(self.part_of_codes(codes[:, np.newaxis])[0])
        text = self.estimates(self.probabilities[part], self.intervals()[part])
        return f"{self.part_words(part)}: {text}, n = {self.counts[part].sum():,.10g}"

    def estimates(self, shares: Floats, intervals: Floats) -> str:
        """Return probabilities (n_classes,) in words, given intervals (n_classes, 2)."""
        c = self.shown_class
        chosen = np.argsort(-shares, kind="stable").tolist() if c is None else [c]
        return ", ".join(
            f"P({self.class_texts[c]}) = {estimate_text(shares[c], *intervals[c])}" for c in chosen
        )

    def page(self) -> Page:
        """Return the table: rows in each part, posterior means, 95 % intervals.

        If one class is shown, there is a column for its probability, and one for its interval.
        Otherwise each class has a column. If they do not fit, the classes of each
        part are listed below it with intervals, the most probable first, and improbable classes are
        summed as "others".
        """
        intervals = self.intervals()
        c = self.shown_class
        if c is not None:
            head = f"P({printable(self.class_texts[c])})"
            is_short = longest([head]) <= _LONGEST_CLASS
            probabilities = self._probabilities(c, head if is_short else "P")
            ends = Numbers("95 % interval", list(map(interval_text, intervals[:, c].tolist())))
            columns = [self._rows, probabilities, ends]
            key = Pieces([f"P: probability of {self.class_texts[c]}"], "dim", indent=3)
            return (*(() if is_short else (key,)), self._parts_table(columns))
        below = []
        for of_part, ends in zip(self.probabilities, intervals, strict=True):
            order = np.argsort(-of_part, kind="stable")
            likely = int(np.searchsorted(of_part[order].cumsum(), 1 - _OTHERS)) + 1
            if likely >= self.n_classes - 1:  # a single other class is named
                likely = self.n_classes
            pieces = [
                "{} {} ({})".format(self.class_texts[c], *interval_texts(of_part[c], ends[c]))
                for c in order[:likely].tolist()
            ]
            if likely < self.n_classes:
                rest = probability_text(of_part[order[likely:]].sum())
                pieces.append(f"{self.n_classes - likely} others {rest}")
            below.append(Pieces(pieces, indent=0))
        narrow = self._parts_table([self._rows], below)
        return self._fitting((self._class_table,), (narrow,))

    @property
    def key(self) -> Page:
        """An explanation of the numbers in the table."""
        wide = [
            "probabilities of the classes: posterior means",
            f"intervals: see {typed('to_dict()', '--json')}",
        ]
        narrow = [
            "probabilities: posterior means",
            "intervals: 95 % of the posterior, given the rules",
        ]
        return self._fitting((Pieces(wide, "dim"),), (Pieces(narrow, "dim"),))

    def _fitting(self, wide: Page, narrow: Page) -> Page:
        """Return the wide page if each of several classes has a column, otherwise the narrow."""
        if self.shown_class is not None or longest(self._headers) > _LONGEST_CLASS:
            return narrow
        return (Fitting(self._class_table, _LEAST_LABEL, wide, narrow),)

    @property
    def _class_table(self) -> PrintedTable:
        classes = map(self._probabilities, range(self.n_classes), self._headers)
        return self._parts_table([self._rows, *classes])

    def _parts_table(
        self, columns: Sequence[Numbers], below: Sequence[Pieces] = ()
    ) -> PrintedTable:
        text = "the information about the classes"
        return self._listed(columns, below, weights=self.information, measure=text)

    def parts_in_words(self) -> list[tuple[str, str]]:
        """Return the rule of each part, in order, with its most probable class and its rows."""
        texts = []
        for part, label in enumerate(self.labels):
            best = int(self.probabilities[part].argmax())
            share = share_text(self.probabilities[part, best])
            (rows,) = count_texts([float(self.counts[part].sum())])
            words = f"{self.class_texts[best]}: {share}"
            texts.append((label, f"{words}\n{rows} {'row' if rows == '1' else 'rows'}"))
        return texts

    @cached_property
    def information(self) -> Floats:
        """Information of each part about the class, nats, (n_rules + 1,) float64 >= 0.

        It is the weight of the part times the Kullback-Leibler divergence of its class
        probabilities from those of all rows.
        """
        of_parts = self.counts.sum(axis=1)
        everyone = of_parts @ self.probabilities / self.total
        information: Floats = of_parts * rel_entr(self.probabilities, everyone).sum(axis=1)
        return information.clip(min=0.0)

    @property
    def _headers(self) -> list[str]:
        return [printable(text) for text in self.class_texts]

    @property
    def _rows(self) -> Numbers:
        return Numbers("rows", count_texts(self.counts.sum(axis=1).tolist()))

    def _probabilities(self, label: int, header: str) -> Numbers:
        """Return a class's probability in each part."""
        of_class = self.probabilities[:, label].tolist()
        bars = of_class if self.n_classes <= _MOST_BARS else []
        return Numbers(header, [probability_text(p) for p in of_class], bars=bars)

    # -- rows --------------------------------------------------------------------------------------

    def part_of_codes(self, codes: Codes) -> Integers:
        """Return the part of each row, (n_rows,) int64, from 0 to `n_rules` (the `else` part).

        Parameters
        ----------
        codes : (n_columns, n_rows) int32
            A cell coded -1 (missing, or of an unknown level) satisfies no condition.
        """
        return parts_of_codes(codes, self.rules)

    # -- as plain data -----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the list as plain data.

        ``{"rules": [{"if": {name: levels, ...}, "counts": {class: n}, "probabilities": {class: p},
        "intervals": {class: [low, high]}}, ...], "else": {the same without "if"}}``, classes as
        text, intervals of 95 %. The levels of a condition are a list (of adjacent levels if the
        column is ordinal). For a continuous column they are ``{"interval": [low, high]}``, with
        None for an open end. The missing level of any column is ``[None]``.
        """
        names = ("counts", "probabilities", "intervals")
        each = (self.counts, self.probabilities, self.intervals())
        parts = [
            {
                k: dict(zip(self.class_texts, v, strict=True))
                for k, v in zip(names, own, strict=True)
            }
            for own in zip(*(interval.tolist() for interval in each), strict=True)
        ]
        record = {"classes": self.classes.tolist(), "n_rules": self.n_rules}
        return {**record, **self._part_dicts(parts)}
