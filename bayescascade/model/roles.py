"""Abilities of models, as protocols: commands check for a role, never for a class.

Estimators implement the methods of their roles, and inherit nothing from this module.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Codes, Flags, Floats
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.schema import Schema
from bayescascade.model.conditionals import PredictedColumn
from bayescascade.model.decisions import Decision
from bayescascade.model.density_parts import DensityParts
from bayescascade.report.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayescascade.model.near_best import NearBest


@runtime_checkable
class Shown(Protocol):
    """A printable object: every model, and its results."""

    def page(self) -> Page:
        """Return it as text."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return it as plain data, at full precision."""


@runtime_checkable
class Reporting(Protocol):
    """A model that writes a report."""

    def report(
        self, path: "str | PathLike[str]", *, held_out: Any = None, near_best: Any = None
    ) -> None:
        """Write it into an HTML file."""


@runtime_checkable
class HasPicture(Protocol):
    """An object with a picture, such as a tree or a list."""

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw it, by default in a new figure of sufficient size."""


@runtime_checkable
class Joining(Protocol):
    """A density with joined columns in each of its parts."""

    def plot_joined(self, ax: "Axes | None" = None) -> "Axes":
        """Draw them."""


@runtime_checkable
class Graphed(Protocol):
    """A tree that is also drawn as a graph."""

    def to_dot(self) -> str:
        """Return Graphviz source."""


@runtime_checkable
class HasTrees(Protocol):
    """A model of trees that can also be drawn one by one."""

    forest_: Any

    def plot(self, ax: "Axes | None" = None, tree: int | None = None) -> "Axes":
        """Draw the model, or one tree."""

    def to_dot(self, tree: int = 0) -> str:
        """Return a tree as Graphviz source."""


@runtime_checkable
class Typical(Protocol):
    """A density that shows the best tree or the typical posterior draw, by `tree`."""

    tree: str


@runtime_checkable
class NearBestListing(Protocol):
    """A model that lists the models that are nearly as good."""

    def near_best(self, nats: float = 3.0, most: int = 1000) -> "NearBest[Any]":
        """Return them, the most probable first."""


@runtime_checkable
class Conditional(Protocol):
    """A density that can be conditioned."""

    schema_: Schema

    def condition(self, conditions: Mapping[str, object]) -> Shown:
        """Return the density given values, levels or intervals of columns."""


@runtime_checkable
class Density(Conditional, Protocol):
    """A density over the rows of a schema."""

    learned_: DensityParts

    def encode(self, X: Any, *, first_row: int = 1, unknown: UnknownCells | None = None) -> Codes:
        """Return the codes of rows, (n_columns, n_rows); `first_row` is the number of the first.

        Rows with unknown cells are appended to `unknown`, here and below; without it there is a
        warning.
        """

    def score_codes(self, codes: Codes) -> Floats:
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
        """Predict a column for each row, given the row's other cells."""


class Predicted(NamedTuple):
    """The predictions for a block of rows."""

    columns: Mapping[str, Sequence[object]]  # columns to read, such as the rule that applies
    probabilities: Floats | None = None  # (n_rows, n_classes), for a classifier
    values: Floats | None = None  # (n_rows,), for a model that predicts numbers
    intervals: Floats | None = None  # (n_rows, n_classes, 2), 95 % intervals
    costs: Floats | None = None  # (n_rows,) >= 0, costs of features, if there are any
    used: Flags | None = None  # (n_rows, n_features), the features that are acquired


@runtime_checkable
class Predictor(Protocol):
    """A model that predicts each row of a file from the columns `feature_texts`."""

    # whether it reads the texts of a file block by block; otherwise it needs columns
    # in the types of pandas for the whole file
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
        """Predict rows; `first_row` is the number of the first.

        If requested, the result has intervals, if the model has them, and reasons. Rows with
        unknown cells are appended to `unknown`; without it there is a warning. DataError names
        column, value and row of a cell that cannot be read.
        """


@runtime_checkable
class Classifier(Predictor, Protocol):
    """A predictor of labels; `target_`, if it exists, names their column."""

    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes)."""

    def decision(self, threshold: Any = None, class_costs: Any = None) -> Decision:
        """Return the rule that chooses a class by these probabilities."""


@runtime_checkable
class Explaining(Protocol):
    """A model that explains its predictions for many rows at once."""

    def explain_rows(self, X: Any, *, first_row: int = 1) -> pd.DataFrame:
        """Return the prediction for each row, with the reason `because`; see `LabeledFiles`."""


@runtime_checkable
class Regressor(Predictor, Protocol):
    """A predictor of numbers, the values of the column `target_`."""

    target_: str

    def predict(self, X: Any) -> Floats:
        """Return the expected value for each row, (n_rows,)."""


@runtime_checkable
class EffectEstimator(Predictor, Protocol):
    """A predictor of the effect of a treatment on each row."""

    def effect(self, X: Any) -> Floats:
        """Return the expected outcome with treatment minus that without, (n_rows,)."""


@runtime_checkable
class ManyBudgets(Protocol):
    """Classifiers for several budgets."""

    budgets: Sequence[float]

    def within(self, budget: float) -> Any:
        """Return the classifier for a budget; ParameterError if it is below all of them."""


@runtime_checkable
class OnlineLearner(Protocol):
    """A model that can continue learning."""

    def partial_fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from more rows."""


ROLE_WORDS: Mapping[type, str] = {
    HasPicture: "a model that has a picture",
    Joining: "a tree of dependent leaves",
    Graphed: "a tree or a forest",
    HasTrees: "a forest",
    Typical: "a density tree with draws",
    Reporting: "a model that makes reports",
    NearBestListing: "a cascade or a rule list",
    Conditional: "a density",
    Density: "a density",
    Predictor: "a model that predicts",
    Classifier: "a classifier",
    Explaining: "a density or a classifier",
    Regressor: "a regressor",
    EffectEstimator: "an effect estimator",
    ManyBudgets: "the classifiers of several budgets",
    OnlineLearner: "a model that learns on",
}
"""Names of roles in messages."""
