"""Which moves an engine tries, and how often."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from samplers.errors import SamplerValueError
from samplers.types import Move, ProvidesAdvance, ProvidesMoves, ProvidesMoveWeights, Target

__all__ = ["MoveChoice", "choose_moves", "move_weights"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class MoveChoice(Generic[S]):
    """Which moves an engine uses, or, when `moves` is None, that it uses the target's `advance`.

    Attributes
    ----------
    moves : Mapping of str to Move, or None
    weights : Mapping of str to float > 0, or None
        The names of `moves`.
    names : tuple of str
        Names under which moves are reported, as far as the target tells them.
    """

    moves: Mapping[str, Move[S]] | None
    weights: Mapping[str, float] | None
    names: tuple[str, ...]

    def settings(self) -> object:
        """Return what a checkpoint remembers of the choice."""
        return "advance" if self.weights is None else dict(self.weights)


def choose_moves(target: Target[S], moves: Mapping[str, Move[S]] | None) -> MoveChoice[S]:
    """Return the moves given or, when there are none, those that the target offers.

    Raises
    ------
    SamplerValueError
        If the target or a move lacks its method, there are no moves, or weights are missing,
        negative, or all zero.
    """
    if not callable(getattr(target, "log_density", None)):
        raise SamplerValueError(f"target must have a log_density method, got {target!r}")
    if moves is None:
        if isinstance(target, ProvidesAdvance):
            told = target.move_weights() if isinstance(target, ProvidesMoveWeights) else {}
            return MoveChoice(None, None, tuple(told))
        if not isinstance(target, ProvidesMoves):
            raise SamplerValueError("moves must be given when the target has no moves(), got None")
        moves = target.moves()
    if not isinstance(moves, Mapping) or not moves:
        raise SamplerValueError(f"moves must be a mapping of one name or more, got {moves!r}")
    for name, move in moves.items():
        if not callable(getattr(move, "propose", None)):
            raise SamplerValueError(f"move {name!r} must have a propose method, got {move!r}")
    weights = move_weights(target, moves)
    used = {name: move for name, move in moves.items() if weights[name] > 0.0}
    return MoveChoice(used, {name: weights[name] for name in used}, tuple(used))


def move_weights(target: Target[S], moves: Mapping[str, Move[S]]) -> dict[str, float]:
    """Return the weight of each move: the target's, or 1 when it names none of them."""
    given = target.move_weights() if isinstance(target, ProvidesMoveWeights) else {}
    if not any(name in given for name in moves):
        return dict.fromkeys(moves, 1.0)
    missing = [name for name in moves if name not in given]
    if missing:
        raise SamplerValueError(f"move_weights must name every move, got none for {missing[0]!r}")
    weights = {name: float(given[name]) for name in moves}
    for name, weight in weights.items():
        if not 0.0 <= weight < math.inf:
            raise SamplerValueError(f"the weight of move {name!r} must be >= 0, got {weight}")
    if not any(weights.values()):
        raise SamplerValueError("move_weights must have one weight > 0 or more, got only zeros")
    return weights
