"""Acquiring the features of one row step by step, only those that its paths need.

What votes, such as each tree of a forest, walks as far as the known values allow, and then waits
for a feature. Acquired next is the feature with the most waiting per marginal cost: what it costs
now that some groups and features are paid. So free ones come first; the first column does of
equals. The order changes what is known when, never what is acquired in the end: a feature that is
waited for is on its path. How a row walks is its family's: see `Walk`. A walk may also choose each
feature by what is known (`ChoosingWalk`); then the order does change what is acquired.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.cells import set_cell_size

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import BayesCascadeError, DataError, ParameterError
from bayescascade.base.texts import printable
from bayescascade.base.validation import check_real
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.data.given import column_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.report.layout import longest
from bayescascade.report.numbers import cost_texts, probability_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, warning
from bayescascade.report.printed import Printed

Fetch: TypeAlias = Callable[[Any], object]
"""Returns the value of a feature, given its name or, if columns have none, its index."""

_WIDEST_VALUE = 14
_WIDEST_CLASS = 16

_ENDS = {
    "max_cost": "stopped: what is needed next would bring the cost above {limit}",
    "interrupted": "interrupted",
    "failed": "stopped: a value could not be fetched",
}


class Walk(Protocol):
    """One row on its way through a model, as far as the values known lead it."""

    @property
    def waiting(self) -> Mapping[int, int]:
        """How many of what votes wait for each column that one waits for, in the columns' order."""

    @property
    def probabilities(self) -> Floats:
        """Probability of each class by what is known, (n_classes,) float64."""

    def learn(self, column: int, value: object) -> None:
        """Walk on with the value of a column; DataError, and nothing known, if it is none."""


class WholeWalk:
    """A row that waits for all the columns that are needed at once, `cells` (1, n) of a matrix."""

    def __init__(self, needed: Iterable[int], encoder: MatrixEncoder) -> None:
        self._needed, self._encoder = set(needed), encoder
        self.cells = np.zeros((1, encoder.source.size))

    @property
    def waiting(self) -> dict[int, int]:
        """The columns that are not known; 1 for each."""
        return dict.fromkeys(sorted(self._needed), 1)

    def learn(self, column: int, value: object) -> None:
        """Take the value of a column."""
        self.cells[0, self._encoder.source == column] = self._encoder.read_cell(column, value)
        self._needed.discard(column)


@runtime_checkable
class ChoosingWalk(Walk, Protocol):
    """A walk that chooses the feature to acquire next, by an estimate of its own accuracy."""

    def choose(self, max_cost: float | None) -> int | None:
        """Return the column to acquire next, None if none that is worth it is within a total."""

    @property
    def accuracy(self) -> float:
        """How probably its answer is right by what is known, as it estimates."""

    @property
    def promised(self) -> float:
        """How probably it was estimated to be right, before the last feature was acquired."""

    @property
    def reason(self) -> str:
        """Why nothing more is asked for, in words; empty if something is."""


class Walkable(NamedTuple):
    """A model that a row can walk through while its features are acquired."""

    columns: Sequence[str | int]  # names of the features, or their indices
    items: CostItems
    classes: NDArray[Any]  # (n_classes,)
    walk: Callable[[], Walk]  # returns a row of which nothing is known


@dataclass(frozen=True, slots=True, eq=False)
class AcquisitionStep:
    """One feature acquired, and what is known then."""

    feature: str | int  # the column's name, or its index if it has none
    value: object  # what was fetched
    cost: float  # paid for the feature, and for its groups if they were not paid yet
    total_cost: float  # paid so far
    probabilities: Floats  # (n_classes,), by what is known
    prediction: Any  # the most probable class so far, the first of equals
    n_waiting: int  # of what votes, such as trees, that need a further feature
    promised: float | None = None  # accuracy estimated with the feature, before it was acquired
    accuracy: float | None = None  # accuracy estimated by what is known; None if nothing does


@dataclass(frozen=True, slots=True, eq=False)
class Acquisition(Printed):
    """The features acquired for one row, in order.

    `status` says why it ended: "complete", nothing more is needed; "max_cost", every feature needed
    would pass `max_cost`; "interrupted", by Ctrl-C; "failed", a value could not be fetched or read.
    """

    steps: tuple[AcquisitionStep, ...]
    status: str
    max_cost: float | None  # the most that was allowed to be paid
    needed: tuple[str | int, ...]  # features that are waited for, in the columns' order
    start_probabilities: Floats  # (n_classes,), before anything was acquired
    start_waiting: int  # of what votes that waited then
    model: Walkable = field(repr=False)  # what the row goes through
    start_accuracy: float | None = None  # estimated before; None if nothing estimates
    reason: str = ""  # why it is complete, where that is not that all is known

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is needed: the prediction is then that of `predict`."""
        return self.status == "complete"

    @property
    def total_cost(self) -> float:
        """What was paid."""
        return self.steps[-1].total_cost if self.steps else 0.0

    @property
    def probabilities(self) -> Floats:
        """Probability of each class given what was acquired, (n_classes,) float64."""
        return self.steps[-1].probabilities if self.steps else self.start_probabilities

    @property
    def prediction(self) -> Any:
        """The most probable class given what was acquired, the first of equals."""
        return self.model.classes[self.probabilities.argmax()]

    @property
    def values(self) -> dict[str | int, object]:
        """The values acquired, by feature."""
        return {step.feature: step.value for step in self.steps}

    def resume(self, fetch: Fetch, max_cost: float | None = None) -> "Acquisition":
        """Go on where this ended, with `max_cost` for all steps together; pays nothing twice.

        Parameters and errors: see `BudgetedClassifier.acquire`.
        """
        return acquire(self.model, fetch, max_cost, self.steps)

    def to_frame(self) -> pd.DataFrame:
        """Return a row per step: feature, value, cost, total_cost, prediction, n_waiting, classes.

        The last columns are the probabilities, named like the classes. Before them come promised
        and accuracy, where the model estimates its own.
        """
        names = ["feature", "value", "cost", "total_cost", "prediction", "n_waiting"]
        if self.start_accuracy is not None:
            names += ["promised", "accuracy"]
        told = {name: [getattr(step, name) for step in self.steps] for name in names}
        shares = np.array([step.probabilities for step in self.steps])
        shares = shares.reshape(len(self.steps), len(self.model.classes))
        return pd.DataFrame(told).join(pd.DataFrame(shares, columns=self.model.classes.tolist()))

    def page(self) -> Page:
        """Return the steps as a table.

        Each line has the feature, its value, what was paid for it and so far, how many trees need
        more, and the most probable class with its probability. A model that estimates how probably
        it is right has that in place of trees: as the feature promised, and as it then was.
        """
        steps, classes = self.steps, self.model.classes
        heading = Heading(
            [
                _shown(self.prediction, self.probabilities.max()),
                f"{len(steps)} of {len(self.model.columns)} features acquired",
                f"cost {cost_texts([self.total_cost])[0]}",
            ]
        )
        why: Page = (Pieces([f"stopped: {self.reason}"]),) if self.reason else ()
        if not self.is_complete:
            ended = _ENDS[self.status].format(limit=cost_texts([self.max_cost or 0.0])[0])
            why = (warning(f"{ended}; still needed: {', '.join(map(column_text, self.needed))}"),)
        start = self.start_probabilities
        columns = [
            Numbers("value", ["", *(_cut(_value_text(s.value), _WIDEST_VALUE) for s in steps)]),
            Numbers("cost", ["", *cost_texts([step.cost for step in steps])]),
            Numbers("total", ["", *cost_texts([step.total_cost for step in steps])]),
            *self._estimates,
            Numbers(
                "most probable",
                [
                    _shown(classes[start.argmax()], start.max()),
                    *(_shown(step.prediction, step.probabilities.max()) for step in steps),
                ],
            ),
        ]
        labels = ["nothing yet", *(column_text(step.feature) for step in steps)]
        return (heading, *why, BLANK, PrintedTable(labels, columns, "feature"))

    @property
    def _estimates(self) -> list[Numbers]:
        """How much is left to do: trees that wait, or the accuracy that is estimated."""
        if self.start_accuracy is None:
            waiting = (step.n_waiting for step in self.steps)
            return [Numbers("waiting", [str(n) for n in (self.start_waiting, *waiting)])]
        promised = ["", *(probability_text(step.promised or 0.0) for step in self.steps)]
        accuracy = (step.accuracy or 0.0 for step in self.steps)
        right = [probability_text(one) for one in (self.start_accuracy, *accuracy)]
        return [Numbers("expected", promised), Numbers("accuracy", right)]


class AcquisitionError(BayesCascadeError):
    """A feature could not be fetched, or its fetched value could not be read.

    Parameters
    ----------
    message : str
    acquisition : Acquisition
        The features that were acquired and paid for before the error.
    """

    def __init__(self, message: str, acquisition: Acquisition) -> None:
        super().__init__(message, acquisition)
        self.acquisition = acquisition


def acquire(
    model: Walkable, fetch: Fetch, max_cost: float | None, steps: tuple[AcquisitionStep, ...] = ()
) -> Acquisition:
    """Acquire what a model still needs after some steps; see `BudgetedClassifier.acquire`."""
    if not callable(fetch):
        raise ParameterError(f"fetch must be a function of a feature's name, got {fetch!r}")
    if max_cost is not None:
        max_cost = check_real("max_cost", max_cost, minimum=0.0)
    walk, bill = model.walk(), _Bill(model.items)
    start, start_waiting = walk.probabilities, sum(walk.waiting.values())
    chooses = walk if isinstance(walk, ChoosingWalk) else None
    start_accuracy = None if chooses is None else chooses.accuracy
    for step in steps:
        column = list(model.columns).index(step.feature)
        walk.learn(column, step.value)
        bill.pay(column)
    taken = list(steps)

    def ended(status: str) -> Acquisition:
        needed = tuple(model.columns[column] for column in walk.waiting)
        reason = chooses.reason if chooses is not None and status == "complete" else ""
        return Acquisition(
            tuple(taken), status, max_cost, needed, start, start_waiting, model, start_accuracy,
            reason,
        )  # fmt: skip

    while walk.waiting:
        if chooses is None:
            chosen = bill.next_column(walk.waiting, max_cost)
        else:
            chosen = chooses.choose(max_cost)
        if chosen is None:
            return ended("max_cost")
        feature = model.columns[chosen]
        try:
            value = fetch(feature)
        except KeyboardInterrupt:
            return ended("interrupted")
        except Exception as error:
            problem = f"fetch({feature!r}) raised {type(error).__name__}: {error}"
            raise _failure(problem, ended("failed")) from error
        try:
            walk.learn(chosen, value)
        except DataError as error:
            raise _failure(str(error), ended("failed")) from error
        cost, probabilities = bill.pay(chosen), walk.probabilities
        prediction = model.classes[probabilities.argmax()]
        waiting = sum(walk.waiting.values())
        estimated = (None, None) if chooses is None else (chooses.promised, chooses.accuracy)
        taken.append(
            AcquisitionStep(
                feature, value, cost, bill.total, probabilities, prediction, waiting, *estimated
            )
        )
    return ended("complete")


class _Bill:
    """What is paid for a row."""

    def __init__(self, items: CostItems) -> None:
        self._items = items
        self._paid = np.zeros((1, items.n_items), np.bool_)

    @property
    def total(self) -> float:
        """What is paid, to the last digit as for a whole row."""
        return float(self._items.total(self._paid)[0])

    def next_column(self, waiting: Mapping[int, int], max_cost: float | None) -> int | None:
        """Return the column to acquire next, None if all would pass `max_cost`."""
        best, best_ratio = None, -1.0
        for column, n_waiting in waiting.items():
            cost, paid = self._with(column)
            total = self._items.total(paid)[0]
            if max_cost is not None and cost > 0 and not is_within(total, max_cost):
                continue
            ratio = n_waiting / cost if cost > 0 else np.inf
            if ratio > best_ratio:
                best, best_ratio = column, ratio
        return best

    def pay(self, column: int) -> float:
        """Pay for a column, and return the marginal cost."""
        cost, self._paid = self._with(column)
        return cost

    def _with(self, column: int) -> tuple[float, Flags]:
        """Return what a column costs now, and what is paid with it."""
        incurred, paid = self._items.of_column(column), self._paid.copy()
        cost = float(self._items.costs[incurred[~paid[0, incurred]]].sum())
        paid[0, incurred] = True
        return cost, paid


def _shown(label: object, probability: float) -> str:
    """Return a class and its probability, such as "ill 0.62"."""
    return f"{_cut(_value_text(label), _WIDEST_CLASS)} {probability_text(float(probability))}"


def _value_text(value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload] # a scalar
        return "missing"
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def _cut(text: str, width: int) -> str:
    """Return a text of at most `width` columns, the end of a longer one replaced by dots."""
    return text if longest([text]) <= width else set_cell_size(text, width - 2) + ".."


def _failure(problem: str, acquisition: Acquisition) -> AcquisitionError:
    done = f"{len(acquisition.steps)} features had been acquired for {acquisition.total_cost:g}"
    return AcquisitionError(
        f"{problem}; {done}: use `resume` of the error's `acquisition` to continue", acquisition
    )
