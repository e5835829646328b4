"""Rounds of the gate in blocks: experts decide, labels are bought, and models are refitted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.methods.online.experts import ASKS, Decisions, Pool
from bayescascade.methods.online.kernels import GateRounds, RoundConstants, RoundSums, play
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of

_SHOWN = 8  # experts


@dataclass(frozen=True, slots=True, eq=False)
class GateDecision:
    """The decision of the gate about one row, for `OnlineGate.learn`.

    Parameters
    ----------
    round : int
        Number of the round, from 0.
    asks : bool
    prediction : label or None
        The prediction; None if the gate asks.
    ask_probability : float
        Probability of asking.
    """

    round: int
    asks: bool
    prediction: Any
    ask_probability: float


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """The rounds in order.

    Parameters
    ----------
    asked : (n_rounds,) array of bool
    predictions : (n_rounds,) array
        Predictions, or the labels that were asked for.
    ask_probabilities : (n_rounds,) float64
    cost : float
        Cost of a label.
    is_interrupted : bool
        Whether Ctrl-C ended the rounds before the last row.
    """

    asked: Flags
    predictions: NDArray[Any]
    ask_probabilities: Floats
    cost: float
    is_interrupted: bool = False

    def losses(self, y: ArrayLike) -> Floats:
        """Return the loss of each round, given all labels: the cost of a label, or 1 for an error.

        y : (n_rounds,) array of labels. Raises DataError if it has another length.
        """
        labels = np.asarray(y)[: len(self.asked)] if self.is_interrupted else np.asarray(y)
        if labels.shape != self.asked.shape:
            raise DataError(f"y must have {len(self.asked)} labels, got shape {labels.shape}")
        wrong = (labels != self.predictions).astype(np.float64)
        return np.where(self.asked, self.cost, wrong)


def gate_page(gate: Any, pool: Pool, n_learned: int) -> Page:
    """Return how often a gate asked, its bound, and the experts with the largest weights."""
    names, weights, n = pool.names, gate.probabilities_, max(gate.n_rounds_, 1)
    heading = [f"online gate   {len(names):,} experts   asking costs {gate.cost:g}",
               f"{gate.n_rounds_:,} rounds", f"asked in {gate.n_asked_ / n:.1%}"]  # fmt: skip
    bound = gate.regret_bound(n)
    proved = "no bound on the regret is proved"
    if bound is not None:
        proved = f"expected regret at most {bound / n:.3f} a round"
    learned = [f"models learned from {n_learned:,} labels"] if n_learned else []
    order, losses = np.argsort(-weights, kind="stable")[:_SHOWN], gate.estimated_losses_ / n
    columns = [
        Numbers("weight", [f"{weights[i]:.3f}" for i in order]),
        Numbers("loss a round", [f"{losses[i]:.3f}" for i in order]),
    ]
    table = PrintedTable([names[i] for i in order], columns, header="expert")
    page: Page = (Heading(heading), Pieces([f"rates {gate.rates}", proved, *learned]), BLANK, table)
    if n_more := len(weights) - len(order):
        page += (Pieces([f"and {count_of(n_more, 'expert')} of smaller weight"]),)
    return (*page, BLANK, Pieces([pool.legend], "dim")) if pool.legend else page


_BLOCK = 4096  # rows to decide about at a time
_GROWTH = 1.5  # models are refitted after this growth of the number of labels
_GENERATORS = {"PCG64": np.random.PCG64, "PCG64DXSM": np.random.PCG64DXSM}  # kinds in files
_KINDS = {"b": np.bool_, "i": np.int64, "f": np.float64}  # kinds of rows


class RoundOutcomes(NamedTuple):
    """Results of rows; see `GateRounds`."""

    asked: Flags
    answers: Integers
    chances: Floats
    is_interrupted: bool


@dataclass(eq=False)
class Stream:
    """The rounds of a gate.

    They do not depend on the division of rows into calls: uniforms are drawn row by row, and models
    are refitted after the round with the last label needed.
    """

    pool: Pool
    constants: RoundConstants
    learns: bool
    rng: np.random.Generator
    totals: RoundSums = field(init=False)
    n_learned: int = 0  # number of labels in the models
    _rows: list[Any] = field(default_factory=list)
    _labels: list[Integers] = field(default_factory=list)
    uniforms: Floats = field(default_factory=lambda: np.empty((0, 2)))

    def __post_init__(self) -> None:
        k = len(self.pool.names)
        # the variance begins as if one round had had the largest possible one
        sums = np.array([0.0, 0.0, 0.0, 1.0, self.constants.eta])
        self.totals = RoundSums(np.zeros(k), sums, np.zeros(k))

    @property
    def n_rounds(self) -> int:
        """Rounds played."""
        return int(self.totals.sums[0])

    def begin(self, rows: Any, labels: Integers) -> None:
        """Learn from rows with free labels."""
        self._rows, self._labels = [rows], [labels]
        self._learn()

    def prepare(self, rows: Any, labels: Integers) -> GateRounds:
        """Return the rows of the next rounds with decisions; labels -1 are not known yet."""
        n = len(labels)
        more = n - len(self.uniforms)
        if more > 0:
            self.uniforms = np.concatenate([self.uniforms, self.rng.random((more, 2))])
        return GateRounds(
            self._decided(rows), labels, self.uniforms[:n], np.zeros(n, np.int64),
            np.zeros(n, np.bool_), np.zeros(n),
        )  # fmt: skip

    def looked_ahead(self, made: GateRounds) -> tuple[bool, float]:
        """Return whether the gate asks for the first row, and its probability, without playing."""
        trial = RoundSums(*(part.copy() for part in self.totals))
        is_asking = play(self.constants, trial, made, 0, np.inf) == 0
        if is_asking:  # any label ends the trial, and does not affect the probability
            play(self.constants, trial, made._replace(labels=np.zeros(1, np.int64)), 0, np.inf)
        return is_asking, float(made.chances[0])

    def end(self, made: GateRounds, rows: Any) -> None:
        """Play a row after `looked_ahead`, with its label if the gate asks."""
        play(self.constants, self.totals, made, 0, np.inf)
        self.uniforms = self.uniforms[1:]
        self._buy(made, rows)

    def play(self, rows: Any, labels: Integers, ask: Callable[[int], int]) -> RoundOutcomes:
        """Play all rows until Ctrl-C. ask(i) is the class of row i if labels[i] is -1."""
        blocks: list[GateRounds] = []
        is_interrupted = False
        try:
            for first in range(0, len(labels), _BLOCK):
                part = slice(first, first + _BLOCK)
                self._play_block(part_of(rows, part), labels[part].copy(), ask, first, blocks)
        except KeyboardInterrupt:
            is_interrupted = True
        empty = _cut(GateRounds(*(np.empty(0, t) for t in _TYPES)), slice(0, 0))
        parts = [empty, *blocks]
        return RoundOutcomes(
            np.concatenate([each.asked for each in parts]),
            np.concatenate([each.answers for each in parts]),
            np.concatenate([each.chances for each in parts]),
            is_interrupted,
        )

    def _play_block(
        self,
        rows: Any,
        labels: Integers,
        ask: Callable[[int], int],
        number: int,
        blocks: list[GateRounds],
    ) -> None:
        """Play the rows of a block from row `number` on, and append the results."""
        made = self.prepare(rows, labels)
        at = 0
        try:
            while at < len(labels):
                begun, most = at, self._labels_to_learn()
                at = play(self.constants, self.totals, made, at, most)
                is_missing = at < len(labels) and self.totals.sums[1] < most
                self._buy(_cut(made, slice(begun, at)), part_of(rows, slice(begun, at)))
                if is_missing:
                    labels[at] = ask(number + at)
                elif at < len(labels):  # models were refitted
                    made.decisions[at:] = self._decided(part_of(rows, slice(at, None)))
        finally:
            self.uniforms = self.uniforms[at:]
            blocks.append(_cut(made, slice(0, at)))

    def _decided(self, rows: Any) -> Decisions:
        found = np.ascontiguousarray(self.pool.decide(rows))
        explores = (found == ASKS).any(axis=1)
        if not explores.all():
            raise DataError(
                f"at least one expert must ask in every round, got none for row "
                f"{int(np.argmin(explores))}"
            )
        return found

    # -- files -------------------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """Return the rounds, and the bought labels with their rows, but no models.

        A file without code cannot contain all kinds of classifiers, so models are refitted when it
        is read. They are the same if they are deterministic, or have a `random_state`.
        """
        state: dict[str, Any] = dict(self.rng.bit_generator.state)
        if state["bit_generator"] not in _GENERATORS:
            raise ParameterError(
                "random_state must be an int or a generator of PCG64 for a gate that is saved, got "
                f"{state['bit_generator']}"
            )
        rows = np.concatenate(self._rows) if self._rows else np.zeros((0, 0))
        return {
            "losses": self.totals.losses,
            "sums": self.totals.sums,
            "uniforms": self.uniforms,
            "rng": state,
            "n_learned": self.n_learned,
            "rows": rows,
            "kind": rows.dtype.kind,
            "labels": np.concatenate([np.zeros(0, np.int64), *self._labels]),
        }

    def restore(self, record: Mapping[str, Any], n_classes: int, width: int) -> None:
        """Restore a stream from a record, and refit models to its rows (n, width)."""
        losses = read_array(record, "losses", self.totals.losses.shape)
        sums = read_array(record, "sums", self.totals.sums.shape)
        uniforms = read_array(record, "uniforms", (None, 2))
        n_learned, n = record["n_learned"], len(record["labels"])
        rows = read_array(record, "rows", (n, width), _KINDS[record["kind"]])
        labels = read_array(record, "labels", (n,), np.int64)
        is_whole = type(n_learned) is int and 0 <= n_learned <= n
        if not is_whole or (n and not 0 <= labels.min() <= labels.max() < n_classes):
            raise ModelFileError(
                "a saved gate's labels must be of its classes, and as many as learned"
            )
        is_sound = sums[0] == int(sums[0]) >= sums[1] == int(sums[1]) >= 0 < sums[4]
        if not is_sound or (uniforms.size and not 0 <= uniforms.min() <= uniforms.max() < 1):
            raise ModelFileError("a saved gate's rounds must be counts, and its uniforms in [0, 1)")
        self.totals, self.uniforms = RoundSums(losses, sums, np.zeros_like(losses)), uniforms
        bits = _GENERATORS[record["rng"]["bit_generator"]]()
        bits.state = dict(record["rng"])
        self.rng = np.random.Generator(bits)
        if n_learned:
            self._rows, self._labels = [rows], [labels]
            self.pool.learn(rows[:n_learned], labels[:n_learned])
            self.n_learned = n_learned

    @property
    def _n_known(self) -> int:
        return sum(map(len, self._labels))

    def _labels_to_learn(self) -> float:
        if not self.learns:
            return np.inf
        missing = np.ceil(_GROWTH * self.n_learned) - self._n_known
        return float(self.totals.sums[1] + missing)

    def _buy(self, made: GateRounds, rows: Any) -> None:
        """Keep rows with bought labels, and refit models if it is time."""
        if not self.learns or not made.asked.any():
            return
        self._rows.append(rows[made.asked])
        self._labels.append(made.answers[made.asked])
        if self._n_known >= np.ceil(_GROWTH * self.n_learned):
            self._learn()

    def _learn(self) -> None:
        self._rows, self._labels = [np.concatenate(self._rows)], [np.concatenate(self._labels)]
        self.pool.learn(self._rows[0], self._labels[0])
        self.n_learned = self._n_known


def part_of(rows: Any, part: slice) -> Any:
    """Return some rows of a frame or an array."""
    return rows.iloc[part] if hasattr(rows, "iloc") else rows[part]


_TYPES: Sequence[Any] = (np.int16, np.int64, np.float64, np.int64, np.bool_, np.float64)


def _cut(made: GateRounds, part: slice) -> GateRounds:
    cut: Any = [each[part] for each in made]
    return GateRounds(*cut)
