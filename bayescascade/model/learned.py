"""What an estimator learns: states with their weights, and what a person reads of them."""

from abc import abstractmethod
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from bayescascade.report.printed import Printed

__all__ = ["Counted", "Draw", "Readable"]


class Counted(Protocol):
    """A state with the weights of the rows in its parts: what is kept of it without the data."""

    @property
    def total(self) -> float:
        """Weight of all rows."""
        ...

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types, without the key "times"."""
        ...


C = TypeVar("C", bound=Counted)


class Draw(NamedTuple, Generic[C]):
    """A state drawn from the posterior, and how often it was drawn."""

    counted: C
    times: int


class Readable(Printed):
    """What a user reads of a state."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return it at full precision as plain data."""
