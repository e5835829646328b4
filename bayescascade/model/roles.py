"""What a model can do, as protocols: commands ask for a role, never for a class.

A family gives its estimators the methods of the roles that they have, and inherits nothing from
here.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayescascade.data.schema import Schema
from bayescascade.data.unknown import UnknownCells
from bayescascade.model.conditionals import PredictedColumn
from bayescascade.model.density_parts import DensityParts
from bayescascade.report.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@runtime_checkable
class Shown(Protocol):
    """Whatever is printed: every model, and what is made of one."""

    def page(self) -> Page:
        """Return it as text."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return it as plain data, at full precision."""


@runtime_checkable
class Reporting(Protocol):
    """What makes a report, to be read by anyone."""

    def report(self, path: "str | PathLike[str]", *, held_out: Any = None) -> None:
        """Write it into an HTML file."""


@runtime_checkable
class HasPicture(Protocol):
    """What has a picture, such as a tree or a list."""

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw it, by default in a new figure of pyplot that is large enough."""


@runtime_checkable
class Joining(Protocol):
    """A density that knows which columns are joined in each of its parts."""

    def plot_joined(self, ax: "Axes | None" = None) -> "Axes":
        """Draw them."""


@runtime_checkable
class Graphed(Protocol):
    """What is drawn as a graph: a tree."""

    def to_dot(self) -> str:
        """Return Graphviz source."""


@runtime_checkable
class HasTrees(Protocol):
    """What has trees that are drawn one by one, as well as together."""

    forest_: Any

    def plot(self, ax: "Axes | None" = None, tree: int | None = None) -> "Axes":
        """Draw all of it, or a tree."""

    def to_dot(self, tree: int = 0) -> str:
        """Return a tree as Graphviz source."""


@runtime_checkable
class Typical(Protocol):
    """A density that is shown as the best `tree` or the typical one of those drawn."""

    tree: str


@runtime_checkable
class Conditional(Protocol):
    """A density that conditions narrow."""

    schema_: Schema

    def condition(self, conditions: Mapping[str, object]) -> Shown:
        """Return the density given values, levels or intervals of columns."""


@runtime_checkable
class Density(Conditional, Protocol):
    """A density over the rows of a schema."""

    learned_: DensityParts

    def encode(
        self, X: Any, *, first_row: int = 1, unknown: UnknownCells | None = None
    ) -> NDArray[np.int32]:
        """Return the codes of rows, (n_columns, n_rows), of which the first has that number.

        Those with unknown cells are appended to `unknown`, here as below; else a warning says so.
        """

    def score_codes(self, codes: NDArray[np.int32]) -> Floats:
        """Return the log density of coded rows, nats."""

    def sample(self, n_samples: int = 1, random_state: Any = None) -> pd.DataFrame:
        """Draw rows."""

    def impute(
        self,
        X: Any,
        how: str = "mode",
        random_state: Any = None,
        *,
        first_row: int = 1,
        unknown: UnknownCells | None = None,
    ) -> pd.DataFrame:
        """Return rows with their missing cells filled."""

    def predict_column(
        self,
        X: Any,
        target: str,
        how: str = "mode",
        *,
        first_row: int = 1,
        unknown: UnknownCells | None = None,
    ) -> PredictedColumn:
        """Return what a column is in each row, given the row's other cells."""


class Predicted(NamedTuple):
    """What a model says of a block of rows."""

    told: Mapping[str, Sequence[object]]  # for people, by heading: such as the rule that fires
    probabilities: Floats | None = None  # (n_rows, n_classes), of a classifier
    values: Floats | None = None  # (n_rows,), of a model that predicts numbers
    intervals: Floats | None = None  # (n_rows, n_classes, 2), of 95 % probability
    costs: Floats | None = None  # (n_rows,) >= 0, of finding this out, where that is not nothing


@runtime_checkable
class Predictor(Protocol):
    """A model that predicts something of each row of a file from the columns `feature_texts`."""

    # whether it reads a text file's cells as they stand, block by block; else it takes columns
    # typed as pandas types a whole file
    takes_texts: bool

    @property
    def feature_texts(self) -> list[str]: ...  # noqa: D102 - see the class

    def predict_block(
        self,
        cells: pd.DataFrame,
        first_row: int,
        *,
        intervals: bool = False,
        explain: bool = False,
        unknown: UnknownCells | None = None,
    ) -> Predicted:
        """Return what is predicted of rows, the first of which has number `first_row`.

        If asked for, it comes with how sure it is, where the model knows, and with the reasons.
        Rows with unknown cells are appended to `unknown`; else a warning says so. DataError if a
        cell cannot be read; it names column, value and row.
        """


@runtime_checkable
class Classifier(Predictor, Protocol):
    """A predictor of labels; a `target_`, where there is one, names their column."""

    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes)."""


@runtime_checkable
class Explaining(Protocol):
    """What says of many rows at once why they get what it says of them."""

    def explain_rows(self, X: Any, *, first_row: int = 1) -> pd.DataFrame:
        """Return what is said of each row, and what that is `because` of; see `LabeledFiles`."""


@runtime_checkable
class Regressor(Predictor, Protocol):
    """A predictor of numbers, the values of the column `target_`."""

    target_: str

    def predict(self, X: Any) -> Floats:
        """Return the expected value for each row, (n_rows,)."""


@runtime_checkable
class EffectEstimator(Predictor, Protocol):
    """A predictor of what a treatment does to each row."""

    def effect(self, X: Any) -> Floats:
        """Return the expected outcome if treated, less that if not, (n_rows,)."""


@runtime_checkable
class OnlineLearner(Protocol):
    """A model that goes on learning; what it had learned stays."""

    def partial_fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from more rows."""


ROLE_WORDS: Mapping[type, str] = {
    HasPicture: "a model that has a picture",
    Joining: "a tree of dependent leaves",
    Graphed: "a tree or a forest",
    HasTrees: "a forest",
    Typical: "a density tree with draws",
    Reporting: "a model that makes reports",
    Conditional: "a density",
    Density: "a density",
    Predictor: "a model that predicts",
    Classifier: "a classifier",
    Explaining: "a density or a classifier",
    Regressor: "a regressor",
    EffectEstimator: "an effect estimator",
    OnlineLearner: "a model that learns on",
}
"""What roles are called in messages."""
