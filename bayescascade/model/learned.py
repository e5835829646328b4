"""What an estimator learns: states with their weights, and densities that a person can read."""

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.data.schema import Schema

__all__ = ["Counted", "Density", "Draw"]


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


class Density(Protocol):
    """A density over a schema's rows that a person can read."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        ...

    def score_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log density of (n_columns, n_rows) coded rows, nats; -1 is integrated out."""
        ...

    def sample_codes(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw (n_columns, n) codes."""
        ...

    def condition(self, evidence: Mapping[str, object]) -> Self:
        """Return the density given evidence."""
        ...

    def explain(self, row: Mapping[str, object] | pd.Series) -> str:
        """Return in words why a row has the density that it has."""
        ...
