"""A gate that predicts easy rows, and buys the labels of hard ones."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.files import read_json, write_json
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_choice, check_flag, check_real
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import (
    TrainingRows,
    check_labels,
    classes_record,
    label_codes,
    read_classes,
)
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.online.experts import (
    ASKS,
    ConfidentModels,
    Expert,
    GivenExperts,
    Pool,
    check_classes,
    posterior_of,
)
from bayescascade.methods.online.rates import RATES, game_of, regret_bound
from bayescascade.methods.online.stream import (
    GateDecision,
    Played,
    RoundOutcomes,
    Stream,
    gate_page,
    part_of,
)
from bayescascade.model.posterior import GibbsPosterior
from bayescascade.model.record import contradictions_refused
from bayescascade.report.page import Page
from bayescascade.report.printed import Printed

_FORMAT, _VERSION = "bayescascade gate", 1
_OPTIONS = ("cost", "rates", "horizon", "exploration", "known_cost")
_POLICY = CellPolicy("level", "mean")


class OnlineGate(Printed):
    """Follow experts that, for each row, predict a class or buy the label.

    The loss of a round is `cost` if the gate asks for the label, 1 if its prediction is wrong, and
    otherwise 0. The gate sees only the labels for which it asks; each reveals the loss of all
    experts. Experts are weighted by their estimated losses. This keeps the regret small: the loss
    of the gate minus the loss of the expert that is best in hindsight.

    Parameters
    ----------
    experts : sequence
        Objects with a method ``decide(X)``. It returns, for each row, the index of a class in
        `classes`, or -1 to ask. In each round at least one expert must ask. `OnlineGate.of_models`
        makes experts from classifiers.
    cost : float in (0, 1]
        Cost of a label, if an error costs 1.
    classes : sequence of labels
    rates : {"adaptive", "anytime", "horizon"}
        Learning and exploration rates. "horizon": the rates of the thesis, for a known number of
        rounds. "anytime": for any number of rounds, also with a proved bound. "adaptive": learns
        faster if experts differ less. It is the best choice that we know, but has no proved bound.
    horizon : int, optional
        Number of rounds, for rates "horizon".
    exploration : {"floor", "mix"}
        "floor": the probability of asking is at least the exploration rate. "mix": it is a mixture
        with the exploration rate, as in the thesis.
    known_cost : bool
        Whether experts that ask are charged the cost in each round. False: only in rounds with a
        label, divided by its probability, as in the thesis.
    learns : bool
        Whether experts learn from bought labels, each time that their number has grown by half.
        Then regret is relative to the best sequence of their decisions.
    random_state : int, optional

    Attributes
    ----------
    n_rounds_, n_asked_ : int
    probabilities_ : (n_experts,) float64
        The weights of the experts. With exploration, they are the probabilities of the next round.
    estimated_losses_ : (n_experts,) float64
        Unbiased estimates of the total losses of the experts.

    Notes
    -----
    Nan (2018), chapter 6, equation 6.1 and algorithm 6; see the errata of the documentation.
    `posterior_` is the Gibbs posterior of the experts. Its probabilities are their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import OnlineGate
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = X[:, 0] > 0
    >>> gate = OnlineGate.of_models([LogisticRegression()], cost=0.3, random_state=0)
    >>> played = gate.start(X[:100], y[:100]).play(X[100:], ask=lambda i: y[100 + i])
    >>> bool(played.losses(y[100:]).mean() < 0.1), bool(played.asked.mean() < 0.2)
    (True, True)
    """

    def __init__(
        self,
        experts: Sequence[Expert],
        *,
        cost: float = 0.2,
        classes: Sequence[Any],
        rates: str = "adaptive",
        horizon: int | None = None,
        exploration: str = "floor",
        known_cost: bool = True,
        random_state: Any = None,
    ) -> None:
        if not len(experts):
            raise ParameterError("experts must be at least one, got none")
        self.classes_ = check_classes(classes)
        self._pool: Pool = GivenExperts(list(experts), len(self.classes_))
        self._encoder: MatrixEncoder | None = None
        self._learns = False
        self._set(cost, rates, horizon, exploration, known_cost, random_state)
        self._begin()

    @classmethod
    def of_models(
        cls,
        models: Sequence[Any],
        *,
        thresholds: int = 20,
        cost: float = 0.2,
        rates: str = "adaptive",
        horizon: int | None = None,
        exploration: str = "floor",
        known_cost: bool = True,
        learns: bool = True,
        random_state: Any = None,
    ) -> Self:
        """Return a gate for classifiers, each with several thresholds on its confidence.

        An expert predicts if the probability of the most probable class of its model reaches the
        threshold, and otherwise asks. One additional expert always asks. `start` fits the models.

        Parameters
        ----------
        models : sequence of scikit-learn classifiers with predict_proba
        thresholds : int >= 1
            Number of thresholds per model.
        learns : bool
            Whether models are fitted again, to the rows of `start` and those with bought labels,
            each time that the number of labels has grown by half.
        cost, rates, horizon, exploration, known_cost, random_state
            As in `OnlineGate`.
        """
        gate = cls.__new__(cls)
        gate._pool = ConfidentModels.of(models, thresholds, 2)
        gate._encoder = None
        gate._learns = check_flag("learns", learns)
        gate._set(cost, rates, horizon, exploration, known_cost, random_state)
        return gate

    def _set(
        self,
        cost: float,
        rates: str,
        horizon: int | None,
        exploration: str,
        known_cost: bool,
        random_state: Any,
    ) -> None:
        self.cost = check_real("cost", cost, above=0.0, maximum=1.0)
        self.rates = check_choice("rates", rates, RATES)
        self.exploration = check_choice("exploration", exploration, ("floor", "mix"))
        self.known_cost = check_flag("known_cost", known_cost)
        if (horizon is None) == (rates == "horizon"):
            raise ParameterError(
                f'horizon must be given exactly if rates is "horizon", got {horizon!r}'
            )
        self.horizon = horizon
        self._rng = np.random.default_rng(random_state)

    def _begin(self) -> None:
        constants = game_of(
            self.rates, self.horizon, len(self._pool.names), self.cost,
            is_mixed=self.exploration == "mix", is_known=self.known_cost,
        )  # fmt: skip
        self._stream = Stream(self._pool, constants, self._learns, self._rng)

    # -- rounds ------------------------------------------------------------------------------------

    def start(self, X: Any, y: Any) -> Self:
        """Fit the models to rows with free labels, and forget all rounds.

        X, y : as in the `fit` of classifiers: tables, arrays or paths, and labels of at least two
        classes. Text and missing cells are also read as there.
        """
        if not isinstance(self._pool, ConfidentModels):
            raise ParameterError(
                "start needs a gate from OnlineGate.of_models: other experts do not learn"
            )
        given = GivenRows.labeled(X, y, None)
        self._encoder = MatrixEncoder.learn(given, _POLICY)
        training = TrainingRows.read(self._encoder, given, owner="OnlineGate")
        self.classes_ = check_classes(training.classes)
        self._means = training.rows.mean(axis=0)
        self._pool.n_classes = len(self.classes_)
        self._begin()
        self._stream.begin(training.rows, training.labels)
        return self

    def play(
        self, X: Any, ask: Callable[[int], Any] | None = None, *, expensive_model: Any = None
    ) -> Played:
        """Play rows in order, and ask for labels that are worth their cost.

        Parameters
        ----------
        X : table or array of rows
        ask : callable
            ``ask(i)`` returns the label of row i, counted from 0. It is called only if the gate
            asks.
        expensive_model : fitted classifier, optional
            Its predictions are the labels, in place of `ask`.

        Returns
        -------
        Played
            The decisions. After Ctrl-C, only those of the rounds that were played.
        """
        if (ask is None) == (expensive_model is None):
            raise ParameterError("ask or expensive_model must be given, and not both")
        rows = self._rows(X)
        if expensive_model is not None:
            ask = lambda i: expensive_model.predict(_part(X, i))[0]  # noqa: E731
        assert ask is not None
        code = lambda i: self._code(ask(i))  # noqa: E731
        return self._outcome(self._stream.play(rows, np.full(len(rows), ASKS, np.int64), code))

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Play rows with known labels. The gate uses only the labels for which it asks.

        The rounds are the same as those of `play` with these labels. `played_` has them.
        """
        rows = self._rows(X)
        checked = check_labels(y, "y", "OnlineGate")
        if len(checked) != len(rows):
            raise DataError(f"y must have a label for each of {len(rows)} rows, got {len(checked)}")
        labels = label_codes(checked, self.classes_, "y")
        self.played_ = self._outcome(self._stream.play(rows, labels, labels.__getitem__))
        return self

    def decide(self, row: Any) -> GateDecision:
        """Decide for one row (a table of one row, or a sequence of cells); then call `learn`."""
        rows = self._rows(_one(row))
        if len(rows) != 1:
            raise DataError(f"row must be one row, got {len(rows)}")
        made = self._stream.prepare(rows, np.full(1, ASKS, np.int64))
        asks, chance = self._stream.looked_ahead(made)
        answer = None if asks else self.classes_[made.answers[0]]
        self._pending = (made, rows)
        return GateDecision(self.n_rounds_, asks, answer, chance)

    def learn(self, decision: GateDecision, label: Any = None) -> Self:
        """End the round of a decision, with the label if the gate asked for it.

        Raises DataError if the round has already ended, if the label is missing, or if the gate did
        not ask for it.
        """
        if decision.round != self.n_rounds_:
            raise DataError(
                f"decision must be from round {self.n_rounds_}, got one of round {decision.round}"
            )
        if decision.asks == (label is None):
            raise DataError(f"label must be given exactly if the gate asks, got {label!r}")
        made, rows = self._pending
        if decision.asks:
            made.labels[0] = self._code(label)
        self._stream.end(made, rows)
        return self

    def _outcome(self, found: RoundOutcomes) -> Played:
        answers = self.classes_[found.answers]
        return Played(found.asked, answers, found.chances, self.cost, found.is_interrupted)

    def _rows(self, X: Any) -> Any:
        """Return rows for the experts: as a matrix, or unchanged."""
        if self._encoder is not None:
            rows = GivenRows.of(X, self._encoder.known)
            return self._encoder.transform(rows, "OnlineGate", self._means)
        if isinstance(self._pool, ConfidentModels):
            raise DataError("the gate has no models yet: start must come first")
        return X if hasattr(X, "iloc") else np.asarray(X)

    def _code(self, label: Any) -> int:
        return int(label_codes(np.asarray([label]), self.classes_, "label")[0])

    # -- what was learned --------------------------------------------------------------------------

    @property
    def n_rounds_(self) -> int:
        """Rounds played."""
        return self._stream.n_rounds

    @property
    def n_asked_(self) -> int:
        """Labels asked for."""
        return int(self._stream.totals.sums[1])

    @property
    def estimated_losses_(self) -> Floats:
        """Sums of estimated losses of the experts, (n_experts,)."""
        return self._stream.totals.losses.copy()

    @property
    def probabilities_(self) -> Floats:
        """The weights of the experts at the last rate, (n_experts,); their sum is 1."""
        losses = self._stream.totals.losses
        weights = np.exp(-self._stream.totals.sums[4] * (losses - losses.min()))
        return np.asarray(weights / weights.sum())

    @property
    def posterior_(self) -> GibbsPosterior[int]:
        """The Gibbs posterior over the indices of the experts."""
        return posterior_of(self.estimated_losses_, float(self._stream.totals.sums[4]))

    def regret_bound(self, n_rounds: int, *, vc_dimension: int | None = None) -> float | None:
        """Return the bound on the expected regret after some rounds; None if none is proved.

        There is no bound for rates "adaptive". If models learn on, the bound of other rates is for
        the regret relative to the best sequence of decisions of one expert. `vc_dimension` gives
        the bound for a class of infinitely many experts (Nan 2018, 1418).
        """
        return regret_bound(n_rounds, len(self._pool.names), self.cost, self.rates, vc_dimension)

    def to_dict(self) -> Mapping[str, Any]:
        """Return the experts, their weights and their estimated losses as plain data."""
        return {
            "cost": self.cost,
            "rates": self.rates,
            "n_rounds": self.n_rounds_,
            "n_asked": self.n_asked_,
            "experts": self._pool.names,
            "probabilities": self.probabilities_.tolist(),
            "estimated_losses": self.estimated_losses_.tolist(),
        }

    def page(self) -> Page:
        """Return how often the gate asked, and the experts with the largest weights."""
        return gate_page(self, self._pool, self._stream.n_learned)

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the gate as JSON. `OnlineGate.load` reads it, and then the gate can continue.

        The file contains the rows from which models learned, with their labels, but no models. A
        decision without `learn` is not saved. Writing is atomic.
        """
        options = {name: getattr(self, name) for name in _OPTIONS}
        if isinstance(self._pool, ConfidentModels):
            options["thresholds"] = self._pool.n_thresholds
        reading: dict[str, Any] = {}
        if self._encoder is not None:
            reading = {"encoding": self._encoder.to_dict(), "means": self._means}
        write_json(path, {
            "format": _FORMAT, "version": _VERSION, "options": options, "learns": self._learns,
            "experts": self._pool.names, "classes": classes_record(self.classes_), **reading,
            **self._stream.to_record(),
        })  # fmt: skip

    @classmethod
    def load(cls, path: str | Path, experts: Sequence[Any]) -> Self:
        """Return a saved gate. Its next rounds are the same as without saving.

        Parameters
        ----------
        path : str or Path
        experts : sequence
            The models of `of_models`, which are fitted again to the rows in the file, or your own
            experts.

        Raises
        ------
        ModelFileError
            If the file cannot be read or contradicts itself, or if the experts are different.
        """
        record = read_json(path, _FORMAT, _VERSION)
        with contradictions_refused():
            options = dict(record["options"])
            classes = read_classes(record["classes"])
            thresholds = options.pop("thresholds", None)
            if thresholds is None:
                gate = cls(experts, classes=classes.tolist(), **options)
            else:
                gate = cls.of_models(
                    experts, thresholds=thresholds, learns=record["learns"], **options
                )
            gate._restore(record, classes)
        return gate

    def _restore(self, record: Mapping[str, Any], classes: NDArray[Any]) -> None:
        width = 0
        self.classes_ = classes
        if isinstance(self._pool, ConfidentModels):
            self._encoder = MatrixEncoder.from_dict(record["encoding"], _POLICY)
            width = len(self._encoder.source)
            self._means = read_array(record, "means", (width,))
            self._pool.n_classes = len(classes)
        if self._pool.names != record["experts"]:
            raise ModelFileError("experts must be those of the gate that was saved, got others")
        self._begin()
        self._stream.restore(record, len(classes), width)


def _part(X: Any, row: int) -> Any:
    return part_of(X if hasattr(X, "iloc") else np.asarray(X), slice(row, row + 1))


def _one(row: Any) -> Any:
    """Return a row as a table of one row, if it is a sequence of cells."""
    if hasattr(row, "iloc") or isinstance(row, Mapping):
        return row
    cells = np.asarray(row)
    return cells[None, :] if cells.ndim == 1 else cells
