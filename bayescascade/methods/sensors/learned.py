"""What gated sensors are once they are learned: who speaks, what is printed, and the file."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_real
from bayescascade.costs.pages import cost_bars
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.methods.sensors.devices import Places, Sensors
from bayescascade.methods.sensors.models import Bools, GatedNet
from bayescascade.methods.sensors.parameters import SILENT, SensorParameters
from bayescascade.methods.sensors.reports import HOW_TO_READ, found_texts, sensor_table
from bayescascade.methods.sensors.signals import Floats, SignalMaker
from bayescascade.methods.sensors.trying import Candidate
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.reporting import OF_ROWS
from bayescascade.report.axes import plot_bars
from bayescascade.report.page import Page, Pieces, count_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POLICIES = {SILENT: CellPolicy("nan", "missing"), "error": CellPolicy("error", "error")}


@dataclass(eq=False, repr=False, kw_only=True)
class LearnedSensors(MatrixEstimator):
    """Sensors with gates that were learned, or read from a file."""

    cells: ClassVar[CellPolicy] = _POLICIES[SILENT]
    ignored: ClassVar[str] = "missing"
    learned_word: ClassVar[str] = "gates"
    declares = SensorParameters
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "sensors", "costs")

    sensors: Any = SensorParameters.sensors.default
    costs: Any = SensorParameters.costs.default
    budget: float | None = SensorParameters.budget.default
    features: str = SensorParameters.features.default
    n_fourier: int = SensorParameters.n_fourier.default
    tradeoff: float | None = SensorParameters.tradeoff.default
    ridge: float | None = SensorParameters.ridge.default
    n_steps: int = SensorParameters.n_steps.default
    missing: str = SensorParameters.missing.default
    unknown: str = SensorParameters.unknown.default
    time_limit: float | None = SensorParameters.time_limit.default
    random_state: Any = SensorParameters.random_state.default

    validation_cost_: float = field(init=False)
    sensor_shares_: Floats = field(init=False)
    is_interrupted_: bool = field(init=False)
    stopped_after_: float | None = field(init=False)

    _sensors: Sensors = field(init=False)
    _maker: SignalMaker = field(init=False)
    _net: GatedNet = field(init=False)
    _found: Candidate = field(init=False)

    # -- rows --------------------------------------------------------------------------------------

    def _policy(self) -> CellPolicy:
        return _POLICIES[self.missing]

    def _unknown_policy(self) -> str:
        how = self.declares.declared()["unknown"].check(self.unknown)
        if how == "error":
            return "error"
        return "missing" if self.missing == SILENT else "mean"

    @property
    def _means(self) -> Floats | None:
        return self._maker.means if "_maker" in self.__dict__ else None

    def _measure(self, speaks: Bools) -> None:
        self.sensor_shares_ = speaks.mean(axis=0)
        self.validation_cost_ = float(self.sensor_shares_ @ self._sensors.costs)

    # -- who speaks --------------------------------------------------------------------------------

    def _spoken(self, rows: Matrix) -> Bools:
        return self._net.speaks(self._maker.made(rows))

    def speaks(self, X: Any) -> pd.DataFrame | Bools:
        """Return which sensors speak of each row, (n_rows, n_sensors) bool.

        It is a DataFrame, whose columns are the sensors, if the columns of `X` have names.

        Parameters
        ----------
        X : as `predict` takes it

        Raises
        ------
        DataError
            If a column is missing or a cell cannot be read; names column, value and row.
        """
        rows = GivenRows.of(X)
        speaks = self._spoken(self._matrix(rows))
        if not self._encoder.is_named:
            return speaks
        return pd.DataFrame(speaks, index=rows.index, columns=list(self._sensors.names))

    def activation_cost(self, X: Any) -> Floats:
        """Return what the sensors that speak cost for each row, (n_rows,) float64.

        Parameters and errors: see `speaks`.
        """
        return self._row_costs(self._matrix(X))

    def acquisition_cost(self, X: Any) -> Floats:
        """Return `activation_cost`, by the name that `cost_accuracy_curve` asks for."""
        return self.activation_cost(X)

    def _row_costs(self, rows: Matrix) -> Floats:
        costs: Floats = self._spoken(rows) @ self._sensors.costs
        return costs

    def _speaking_words(self, rows: Matrix) -> list[str]:
        """Return who speaks of each row, in words."""
        names = self._sensors.names
        told = (list(compress(names, row)) for row in self._spoken(rows).tolist())
        return [f"{', '.join(one)} {'speak' if one[1:] else 'speaks'}" if one else "all are silent"
                for one in told]  # fmt: skip

    # -- what was learned --------------------------------------------------------------------------

    @property
    def sensor_names_(self) -> list[str]:
        """What the sensors are called."""
        check_is_fitted(self)
        return list(self._sensors.names)

    @property
    def sensor_costs_(self) -> Floats:
        """What it costs that each sensor speaks, (n_sensors,)."""
        check_is_fitted(self)
        return self._sensors.costs

    @property
    def always_speaks_(self) -> bool:
        """Whether sensors that always speak were better than gates within the budget."""
        check_is_fitted(self)
        return self._found.kind == "always"

    @property
    def tradeoff_(self) -> float | None:
        """The tradeoff that was chosen, or the share of all costs; None if it has none."""
        check_is_fitted(self)
        return None if math.isnan(self._found.thrift) else self._found.thrift

    @property
    def gap_(self) -> float | None:
        """How far the predictors may be from the best of these gates, nats a row.

        None where they are as they were trained together with the gates.
        """
        check_is_fitted(self)
        return None if math.isnan(self._found.gap) else self._found.gap

    @property
    def held_out_error_(self) -> float:
        """Error of what was chosen on the rows that choose: a rate, or a share of the variance."""
        check_is_fitted(self)
        return self._found.error

    @property
    def held_out_cost_(self) -> float:
        """Mean cost of what was chosen on the rows that choose."""
        check_is_fitted(self)
        return self._found.cost

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_net")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == SILENT
        return tags

    # -- what a user sees --------------------------------------------------------------------------

    def _heading(self) -> list[str]:
        return [count_of(len(self._sensors), "sensor"), *self._facts()]

    def _how_made(self) -> Page:
        return (*(Pieces(texts) for texts in found_texts(self)),)

    def _page(self) -> Page:
        return sensor_table(self._sensors, self.sensor_shares_)

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        return HOW_TO_READ

    def _cannot_tell(self) -> Sequence[str]:
        return OF_ROWS

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a bar for each sensor, what rows spend on it; return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure that is large enough.
        """
        check_is_fitted(self)
        told = zip(
            self._sensors.names, self._sensors.costs.tolist(), self.sensor_shares_.tolist(),
            strict=True,
        )  # fmt: skip
        return plot_bars(
            cost_bars(told), ax, x_label="spent on a row on average   in brackets: cost"
        )

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        found = self._found
        return {
            **self._encoding_fields(),
            "sensors": self._sensors.to_record(),
            "signals": self._maker.to_record(),
            "net": self._net.to_record(),
            "sensor_shares": self.sensor_shares_.tolist(),
            "chosen": {
                "kind": found.kind, "error": found.error, "cost": found.cost,
                "thrift": self.tradeoff_, "gap": self.gap_,
            },
            "is_interrupted": self.is_interrupted_,
            "stopped_after": self.stopped_after_,
            **self._own_record(),
        }  # fmt: skip

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        columns, told = record["encoding"]["columns"], record["sensors"]
        sensors = {
            name: [columns[place] for place in places]
            for name, places in zip(told["names"], told["columns"], strict=True)
        }
        costs = dict(zip(told["names"], told["costs"], strict=True))
        return {**super()._read_parameters(record), "sensors": sensors, "costs": costs}

    def _restore(self, record: Mapping[str, Any]) -> None:
        self.declares.check(self)
        self._read_encoding(record)
        encoder = self._encoder
        source: Places = np.asarray(encoder.source, np.int64)
        self._sensors = Sensors.from_record(record["sensors"], len(encoder.columns))
        self._maker = SignalMaker.from_record(
            record["signals"], self.features, self._sensors, source
        )
        self._read_own(record)
        sensor_of = self._maker.made(np.zeros((1, source.size))).sensor_of
        self._net = GatedNet.from_record(record["net"], sensor_of, self._n_outputs)
        n_sensors = len(self._sensors)
        self.sensor_shares_ = read_array(record, "sensor_shares", (n_sensors,), least=0, most=1)
        self.validation_cost_ = float(self.sensor_shares_ @ self._sensors.costs)
        chosen, after = record["chosen"], record["stopped_after"]
        thrift, gap = (
            math.nan if chosen[name] is None else check_real(name, chosen[name])
            for name in ("thrift", "gap")
        )
        error, cost = (check_real(name, chosen[name], minimum=0.0) for name in ("error", "cost"))
        if not isinstance(chosen["kind"], str) or not isinstance(record["is_interrupted"], bool):
            raise ModelFileError("saved sensors must say what was chosen")
        self._found = Candidate(chosen["kind"], self._net, thrift, error, cost, gap)
        self.is_interrupted_ = record["is_interrupted"]
        self.stopped_after_ = None if after is None else check_real("stopped_after", after)

    @property
    @abstractmethod
    def _n_outputs(self) -> int:
        """Numbers that a sensor sends."""
