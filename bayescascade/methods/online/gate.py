"""A gate that answers easy rows itself and asks for the labels of hard ones, for a price."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

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
)
from bayescascade.methods.online.played import Decision, Played
from bayescascade.methods.online.posterior import posterior_of
from bayescascade.methods.online.rates import RATES, game_of, regret_bound
from bayescascade.methods.online.reports import (
    expert_table,
    heading_of,
    legend_of,
    notes_of,
)
from bayescascade.methods.online.saved import (
    FORMAT,
    VERSION,
    restore_stream,
    stream_record,
)
from bayescascade.methods.online.stream import Outcome, Stream, part_of
from bayescascade.model.posterior import GibbsPosterior
from bayescascade.model.record import contradictions_refused
from bayescascade.report.page import Page
from bayescascade.report.printed import Printed

_OPTIONS = ("cost", "rates", "horizon", "exploration", "known_cost")
_POLICY = CellPolicy("level", "mean")


class OnlineGate(Printed):
    """Choose round by round among experts that answer a row, or pay for its label.

    A round costs `cost` if the gate asks, 1 if its answer is wrong, and else nothing. The gate sees
    only the labels that it asks for; each shows the loss of every expert. It weighs experts by
    their estimated losses, and keeps its regret small: its loss minus that of the expert that is
    best in hindsight.

    Parameters
    ----------
    experts : sequence
        Of objects with ``decide(X)``, which returns for each row the position of a class in
        `classes`, or -1, which asks. At least one must ask in every round. `OnlineGate.of_models`
        makes some of classifiers.
    cost : float in (0, 1]
        Of asking, where an error costs 1.
    classes : sequence of labels
    rates : {"adaptive", "anytime", "horizon"}
        How fast to learn, and how much to explore. "horizon" is the thesis's for a number of rounds
        that is known beforehand, "anytime" needs none and has a proved bound, too. "adaptive"
        learns the faster the less experts differ, and is the best that we know; nothing is proved.
    horizon : int, optional
        Rounds to come, for rates "horizon".
    exploration : {"floor", "mix"}
        The probability of asking is at least the exploration rate, or has it mixed in (thesis).
    known_cost : bool
        Whether experts that ask are charged the cost in every round. False: only where a label is
        seen, divided by its probability (thesis).
    learns : bool
        Whether experts learn from labels that were bought, whenever these have grown by half.
        Regret is then against the best sequence of their decisions.
    random_state : int, optional

    Attributes
    ----------
    n_rounds_, n_asked_ : int
    probabilities_ : (n_experts,) float64
        The weights of the experts; with exploration, what the next round is drawn by.
    estimated_losses_ : (n_experts,) float64
        Sums over all rounds, unbiased.

    Notes
    -----
    Nan (2018), chapter 6, equation 6.1 and algorithm 6; see the errata of the documentation.
    `posterior_` is the Gibbs posterior of experts whose weights these are.

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
        """Return a gate of classifiers, each with several thresholds on its confidence.

        An expert answers where its model's most probable class reaches the threshold; one more
        always asks. `start` fits the models.

        Parameters
        ----------
        models : sequence of scikit-learn classifiers with predict_proba
        thresholds : int >= 1
            For each model.
        learns : bool
            Whether models learn again, from the rows of `start` and those whose labels were bought,
            whenever the labels have grown by half.
        cost, rates, horizon, exploration, known_cost, random_state
            As for `OnlineGate`.
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
        """Forget all rounds."""
        game = game_of(
            self.rates, self.horizon, len(self._pool.names), self.cost,
            is_mixed=self.exploration == "mix", is_known=self.known_cost,
        )  # fmt: skip
        self._stream = Stream(self._pool, game, self._learns, self._rng)

    # -- rounds ------------------------------------------------------------------------------------

    def start(self, X: Any, y: Any) -> Self:
        """Fit the models to rows with labels, which cost nothing, and forget all rounds.

        X, y : as for the `fit` of classifiers: tables, arrays or paths, and labels of at least two
        classes; text and missing cells are read as there.
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

    def play(self, X: Any, ask: Callable[[int], Any] | None = None, *, dear: Any = None) -> Played:
        """Play rows in their order, and ask for labels where it pays.

        Parameters
        ----------
        X : table or array of rows
        ask : callable
            ``ask(i)`` returns the label of row i, from 0; it is called only where the gate asks.
        dear : fitted classifier, optional
            Whose predictions are the labels, in place of `ask`.

        Returns
        -------
        Played
            Ctrl-C ends it with the rounds that were played.
        """
        if (ask is None) == (dear is None):
            raise ParameterError("ask or dear must be given, and not both")
        rows = self._rows(X)
        if dear is not None:
            ask = lambda i: dear.predict(_part(X, i))[0]  # noqa: E731
        assert ask is not None
        code = lambda i: self._code(ask(i))  # noqa: E731
        return self._outcome(self._stream.play(rows, np.full(len(rows), ASKS, np.int64), code))

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Play rows with known labels. The gate uses only the labels that it asks for.

        The rounds are those of `play` with the same labels. `played_` has them.
        """
        rows = self._rows(X)
        checked = check_labels(y, "y", "OnlineGate")
        if len(checked) != len(rows):
            raise DataError(f"y must have a label for each of {len(rows)} rows, got {len(checked)}")
        labels = label_codes(checked, self.classes_, "y")
        self.played_ = self._outcome(self._stream.play(rows, labels, labels.__getitem__))
        return self

    def decide(self, row: Any) -> Decision:
        """Decide about one row, a table of one row or a sequence of its cells; then `learn`."""
        rows = self._rows(_one(row))
        if len(rows) != 1:
            raise DataError(f"row must be one row, got {len(rows)}")
        made = self._stream.prepare(rows, np.full(1, ASKS, np.int64))
        asks, chance = self._stream.looked_ahead(made)
        answer = None if asks else self.classes_[made.answers[0]]
        self._pending = (made, rows)
        return Decision(self.n_rounds_, asks, answer, chance)

    def learn(self, decision: Decision, label: Any = None) -> Self:
        """End the round of a decision, with the label if it was asked for.

        Raises DataError if the round has ended before, or a label is missing or was not asked for.
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

    def _outcome(self, found: Outcome) -> Played:
        answers = self.classes_[found.answers]
        return Played(found.asked, answers, found.chances, self.cost, found.is_interrupted)

    def _rows(self, X: Any) -> Any:
        """Return rows as experts take them: a matrix, or as they are."""
        if self._encoder is not None:
            return self._encoder.transform(GivenRows.of(X), "OnlineGate", self._means)
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
        return int(self._stream.standing.sums[1])

    @property
    def estimated_losses_(self) -> NDArray[np.float64]:
        """Sums of the experts' estimated losses, (n_experts,)."""
        return self._stream.standing.losses.copy()

    @property
    def probabilities_(self) -> NDArray[np.float64]:
        """The weights of the experts by the last round's rate, (n_experts,); their sum is 1."""
        losses = self._stream.standing.losses
        weights = np.exp(-self._stream.standing.sums[4] * (losses - losses.min()))
        found: NDArray[np.float64] = weights / weights.sum()
        return found

    @property
    def posterior_(self) -> GibbsPosterior[int]:
        """The Gibbs posterior over experts, by their numbers, whose probabilities these are."""
        return posterior_of(self.estimated_losses_, float(self._stream.standing.sums[4]))

    def regret_bound(self, n_rounds: int, *, vc_dimension: int | None = None) -> float | None:
        """Return the bound on the expected regret after some rounds; None: none is proved.

        Nothing is proved for rates "adaptive", nor for models that learn on, where the bound of
        other rates is on the regret against the best sequence of decisions of one expert.
        `vc_dimension` bounds it for a class of infinitely many experts (Nan 2018, 1418).
        """
        return regret_bound(n_rounds, len(self._pool.names), self.cost, self.rates, vc_dimension)

    def to_dict(self) -> Mapping[str, Any]:
        """Return the experts with their weights and estimated losses, as plain data."""
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
        """Return how often it asked, and the experts that weigh most."""
        names, n = self._pool.names, self.n_rounds_
        return (
            heading_of(len(names), self.cost, n, self.n_asked_),
            notes_of(self.rates, n, self.regret_bound(max(n, 1)), self._stream.n_learned),
            *expert_table(names, self.probabilities_, self.estimated_losses_ / max(n, 1)),
            *legend_of(self._pool.legend),
        )

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the gate as JSON; `OnlineGate.load` reads it, and the gate learns on.

        The file holds the rows that were learned from, with their labels, and no model. A decision
        that `learn` has not ended is not part of it. Writing is atomic.
        """
        options = {name: getattr(self, name) for name in _OPTIONS}
        if isinstance(self._pool, ConfidentModels):
            options["thresholds"] = self._pool.n_thresholds
        reading: dict[str, Any] = {}
        if self._encoder is not None:
            reading = {"encoding": self._encoder.to_dict(), "means": self._means}
        write_json(path, {
            "format": FORMAT, "version": VERSION, "options": options, "learns": self._learns,
            "experts": self._pool.names, "classes": classes_record(self.classes_), **reading,
            **stream_record(self._stream),
        })  # fmt: skip

    @classmethod
    def load(cls, path: str | Path, experts: Sequence[Any]) -> Self:
        """Return the gate that was saved, whose next rounds are those that it would have played.

        Parameters
        ----------
        path : str or Path
        experts : sequence
            What the gate was made of: the models of `of_models`, which are fitted again to the
            rows in the file, or your own experts.

        Raises
        ------
        ModelFileError
            If the file cannot be read or contradicts itself, or the experts are others.
        """
        record = read_json(path, FORMAT, VERSION)
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
        restore_stream(self._stream, record, len(classes), width)


def _part(X: Any, row: int) -> Any:
    return part_of(X if hasattr(X, "iloc") else np.asarray(X), slice(row, row + 1))


def _one(row: Any) -> Any:
    """Return a row as a table of one row, if it is a sequence of cells."""
    if hasattr(row, "iloc") or isinstance(row, Mapping):
        return row
    cells = np.asarray(row)
    return cells[None, :] if cells.ndim == 1 else cells
