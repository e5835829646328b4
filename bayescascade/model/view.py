"""What is shown of a fitted model: one value, from which come its print and its report.

An estimator has a method `view`, which changes the view of its base by `View._replace`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bayescascade.report.page import BLANK, Heading, Page, Pieces, warning

AS_COMMON = "Groups are compared with rows that are spread evenly over all possible combinations."
"""The sentence before the groups of a density."""

OF_ROWS = (
    "It describes the rows that it was learned from. Rows from another place or time, or "
    "collected in another way, may be different.",
    "It describes associations, not causes. The cause of a pattern may be in no column.",
)
"""Limits of all models that are learned from rows."""

OF_DENSITIES = (
    "Groups of few rows are uncertain, and may be due to chance. A group of one row may reveal "
    "one person. Consider who may read this report.",
    "Combinations that never occurred are still possible. The model gives them a small "
    "probability.",
)
"""Limits of all densities."""


def no_words() -> Sequence[tuple[str, str]]:
    """Return the rules of a model without rules."""
    return ()


class View(NamedTuple):
    """The parts of the print and of the report of a fitted model."""

    heading: Sequence[str] = ()  # title or file, and sizes, in the first line of the print
    made: Page = ()  # results on held-out rows, and parameters
    notes: Sequence[str] = ()  # on the columns
    opens: bool = False  # whether the print has the lead below its heading
    found: Page = ()  # the search, its convergence, warnings
    columns: Sequence[str] = ()  # each column with its domain, such as "sex: f, m"
    are_listed: bool = False  # whether the print has the columns, too
    shown: Page = ()  # the learned object
    key: Page = ()  # what is printed below it: explanations of its numbers
    draws: Page = ()  # the shares of posterior draws
    beside: Page = ()  # printed below these, and in a report below the learned object
    last: Page = ()  # what else is printed, such as other candidates
    more: Page | None = None  # what a report has for analysts, if not all of the above

    facts: Sequence[str] = ()  # sizes of data and model, below the title of a report
    lead: Sequence[str] = ()  # sentences before the rules
    words: Callable[[], Sequence[tuple[str, str]]] = no_words  # rules with their statistics
    terms: Sequence[tuple[str, str]] = ()  # how to read what is shown
    doubts: Sequence[str] = ()  # how sure it is
    limits: Sequence[str] = OF_ROWS  # what it cannot tell
    source: Sequence[str] = ()  # notes on the rows
    names: Sequence[str] = ()  # of columns, for a report that has no `columns`

    @property
    def head(self) -> Page:
        """Everything above the columns and the learned object."""
        heading: Page = (Heading(self.heading),) if self.heading else ()
        return (*heading, *self.made, *(Pieces([text]) for text in self.notes), *self.found)

    @property
    def page(self) -> Page:
        """The print."""
        columns: Page = (Pieces(self.columns, noun="column"),) if self.are_listed else ()
        if self.opens:
            heading, *rest = self.head
            return (heading, *(Pieces([text]) for text in self.lead), BLANK, *rest, *self.shown)
        end = (*self.key, *self.draws, *self.beside)
        return joined((*self.head, *columns), self.shown, end, self.last)

    @property
    def details(self) -> Page:
        """The part of a report for analysts."""
        return joined(self.head, self.draws, self.last) if self.more is None else self.more


def joined(*pages: Page) -> Page:
    """Return the pages that are not empty, with a blank line between each two."""
    full = [page for page in pages if page]
    return tuple(block for page in full for block in (*page, BLANK))[:-1]


def warnings_page(texts: Iterable[str]) -> Page:
    """Return warnings about a result."""
    return tuple(warning(f"warning: {text}") for text in texts)
