"""Densities without a posterior, for comparison: fitted in one step, and saved."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from sklearn.utils.validation import check_is_fitted

from bayescascade.base.parameters import Parameters
from bayescascade.base.validation import check_choice
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.model.density_parts import DensityParts
from bayescascade.model.readable_density import ReadableDensity
from bayescascade.model.readable_model import plot_learned

D = TypeVar("D", bound=DensityParts)


class Baseline(ReadableDensity[D]):
    """A density without a posterior; subclasses document their parameters.

    Attributes
    ----------
    model_name, title : str
        Name in comparisons and files, and title in prints.
    """

    title: ClassVar[str]
    declares: ClassVar[type[Parameters]]

    def _check_parameters(self) -> None:
        """Raise ParameterError for a combination of parameters that is not allowed."""

    @abstractmethod
    def _fit_table(self, table: Table) -> None:
        """Learn from a table; `schema_` is set already."""

    @abstractmethod
    def _own_dict(self) -> dict[str, Any]:
        """Return the learned values as plain data."""

    def _learner(self) -> Callable[[Table], None]:
        self._check_all()
        return self._learn

    def _check_all(self) -> None:
        self.declares.check(self)
        self._check_parameters()
        check_choice("missing", self.missing, ("error", "level"))

    def _learn(self, table: Table) -> None:
        self.schema_ = table.schema
        self._fit_table(table)
        self._set_features(self.schema_)

    def _fields(self) -> dict[str, Any]:
        return {"schema": self.schema_.to_dict(), **super()._fields()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._check_all()
        super()._restore(record)

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        self._set_features(Schema.from_dict(record["schema"]))

    plot = plot_learned

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, columns and the learned density as plain data."""
        check_is_fitted(self)
        return {
            "model": self.model_name,
            "parameters": self.get_params(),
            **self.schema_.to_dict(),
            **self._own_dict(),
        }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_names_in_")
