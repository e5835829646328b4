"""Step by step acquisition of the features of one row, only of those that its paths need.

Each voter, such as a tree of a forest, goes as far as the known values allow, and then waits for a
feature. The next feature is the one with the most waiting voters per marginal cost: its cost after
the groups and features that are already paid. So free features come first; the first column among
ties. The order never changes which features are acquired in the end, because a feature with waiting
voters is on their path. Each family has its own `Walk`. A walk may also choose each feature by the
known values (`ChoosingWalk`); then the order does change which features are acquired.
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
    """The path of one row through a model, as far as its known values lead."""

    @property
    def waiting(self) -> Mapping[int, int]:
        """Number of voters that wait for each column, if any, in the columns' order."""

    @property
    def probabilities(self) -> Floats:
        """Probability of each class given the known values, (n_classes,) float64."""

    def learn(self, column: int, value: object) -> None:
        """Go on with the value of a column; DataError, and no change, if it is not valid."""


class WholeWalk:
    """A walk that waits for all needed columns at once; `cells` (1, n) are those of a matrix."""

    def __init__(self, needed: Iterable[int], encoder: MatrixEncoder) -> None:
        self._needed, self._encoder = set(needed), encoder
        self.cells = np.zeros((1, encoder.source.size))

    @property
    def waiting(self) -> dict[int, int]:
        """1 for each needed column that is not known."""
        return dict.fromkeys(sorted(self._needed), 1)

    def learn(self, column: int, value: object) -> None:
        """Take the value of a column."""
        self.cells[0, self._encoder.source == column] = self._encoder.read_cell(column, value)
        self._needed.discard(column)


@runtime_checkable
class ChoosingWalk(Walk, Protocol):
    """A walk that chooses the feature to acquire next, by an estimate of its own accuracy."""

    def choose(self, max_cost: float | None) -> int | None:
        """Return the column to acquire next, None if no worthwhile one is within `max_cost`."""

    @property
    def accuracy(self) -> float:
        """Estimated probability that its answer is right, given the known values."""

    @property
    def promised(self) -> float:
        """The same probability as it was expected before the last feature was acquired."""

    @property
    def reason(self) -> str:
        """Why no further feature is needed, in words; otherwise empty."""


class Walkable(NamedTuple):
    """A model whose features can be acquired step by step for a row."""

    columns: Sequence[str | int]  # names of the features, or their indices
    items: CostItems
    classes: NDArray[Any]  # (n_classes,)
    walk: Callable[[], Walk]  # returns the walk of a row without known values


@dataclass(frozen=True, slots=True, eq=False)
class AcquisitionStep:
    """One acquired feature, and the state after it."""

    feature: str | int  # the column's name, or its index if it has none
    value: object  # the fetched value
    cost: float  # cost of the feature, and of its groups if not paid before
    total_cost: float  # total so far
    probabilities: Floats  # (n_classes,), given the known values
    prediction: Any  # the most probable class so far, the first among ties
    n_waiting: int  # number of voters, such as trees, that need a further feature
    promised: float | None = None  # accuracy expected before the feature was acquired
    accuracy: float | None = None  # estimated accuracy; None if the model has no estimate


@dataclass(frozen=True, slots=True, eq=False)
class Acquisition(Printed):
    """The features acquired for one row, in order.

    `status` says why it ended: "complete", no further feature is needed; "max_cost", every needed
    feature would exceed `max_cost`; "interrupted", by Ctrl-C; "failed", a value could not be
    fetched or read.
    """

    steps: tuple[AcquisitionStep, ...]
    status: str
    max_cost: float | None  # limit of the total cost
    needed: tuple[str | int, ...]  # features that are still needed, in the columns' order
    start_probabilities: Floats  # (n_classes,), before anything was acquired
    start_waiting: int  # number of waiting voters at the start
    model: Walkable = field(repr=False)  # the model of the walk
    start_accuracy: float | None = None  # estimate at the start; None if there is none
    reason: str = ""  # why it is complete although features are unknown

    @property
    def is_complete(self) -> bool:
        """Whether no further feature is needed: the prediction is then that of `predict`."""
        return self.status == "complete"

    @property
    def total_cost(self) -> float:
        """Total cost of the acquired features."""
        return self.steps[-1].total_cost if self.steps else 0.0

    @property
    def probabilities(self) -> Floats:
        """Probability of each class given the acquired features, (n_classes,) float64."""
        return self.steps[-1].probabilities if self.steps else self.start_probabilities

    @property
    def prediction(self) -> Any:
        """The most probable class given the acquired features, the first among ties."""
        return self.model.classes[self.probabilities.argmax()]

    @property
    def values(self) -> dict[str | int, object]:
        """The acquired values, by feature."""
        return {step.feature: step.value for step in self.steps}

    def resume(self, fetch: Fetch, max_cost: float | None = None) -> "Acquisition":
        """Continue after these steps; `max_cost` is for all steps; nothing is paid twice.

        Parameters and errors: see `BudgetedClassifier.acquire`.
        """
        return acquire(self.model, fetch, max_cost, self.steps)

    def to_frame(self) -> pd.DataFrame:
        """Return a row per step: feature, value, cost, total_cost, prediction, n_waiting, classes.

        The last columns are the probabilities, named after the classes. Before them are promised
        and accuracy, if the model estimates its accuracy.
        """
        names = ["feature", "value", "cost", "total_cost", "prediction", "n_waiting"]
        if self.start_accuracy is not None:
            names += ["promised", "accuracy"]
        columns = {name: [getattr(step, name) for step in self.steps] for name in names}
        shares = np.array([step.probabilities for step in self.steps])
        shares = shares.reshape(len(self.steps), len(self.model.classes))
        return pd.DataFrame(columns).join(pd.DataFrame(shares, columns=self.model.classes.tolist()))

    def page(self) -> Page:
        """Return the steps as a table.

        Each line has the feature, its value, its cost and the total so far, the number of trees
        that need more features, and the most probable class with its probability. If the model
        estimates its accuracy, there are the accuracy expected before the step and that after it,
        instead of trees.
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
        """The number of waiting trees, or the estimated accuracy, after each step."""
        if self.start_accuracy is None:
            waiting = (step.n_waiting for step in self.steps)
            return [Numbers("waiting", [str(n) for n in (self.start_waiting, *waiting)])]
        promised = ["", *(probability_text(step.promised or 0.0) for step in self.steps)]
        accuracy = (step.accuracy or 0.0 for step in self.steps)
        right = [probability_text(share) for share in (self.start_accuracy, *accuracy)]
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
    """Acquire the features needed after some steps; see `BudgetedClassifier.acquire`."""
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
    """The items paid for a row."""

    def __init__(self, items: CostItems) -> None:
        self._items = items
        self._paid = np.zeros((1, items.n_items), np.bool_)

    @property
    def total(self) -> float:
        """The total cost, identical to that of a whole row to the last digit."""
        return float(self._items.total(self._paid)[0])

    def next_column(self, waiting: Mapping[int, int], max_cost: float | None) -> int | None:
        """Return the column to acquire next, or None if all would exceed `max_cost`."""
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
        """Return the marginal cost of a column, and the paid items including its own."""
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
    """Return a text of at most `width` columns; the end of a longer text is replaced by dots."""
    return text if longest([text]) <= width else set_cell_size(text, width - 2) + ".."


def _failure(problem: str, acquisition: Acquisition) -> AcquisitionError:
    done = f"{len(acquisition.steps)} features had been acquired for {acquisition.total_cost:g}"
    return AcquisitionError(
        f"{problem}; {done}: use `resume` of the error's `acquisition` to continue", acquisition
    )
