"""Saved models: JSON with all that an estimator needs to be printed and used without its data.

The file holds no rows. Reading it runs nothing and trusts nothing: every field is checked for
consistency, by the class that wrote it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import BayesCascadeError, ModelFileError
from bayescascade.base.files import read_json, write_json
from bayescascade.base.texts import shortened

FORMAT = "bayescascade model"
VERSION = 1

NOT_SAVED = (
    "checkpoint", "resume", "progress", "n_jobs", "random_state", "scratch", "time_limit",
    "until",
)  # fmt: skip
"""Parameters of running a fit, not of the model."""

_NAMES_OF_0_1 = {
    "leaf": "LeafCascade",
    "branch": "BranchCascade",
    "rules": "DensityRuleList",
    "rule_classifier": "RuleListClassifier",
    "budget_prune": "BudgetPrune",
    "budgeted_forest": "BudgetedForestClassifier",
    "det": "DensityEstimationTree",
    "histogram": "SmoothedHistogram",
}
"""Public names by the `model_name` that version 0.1 gave; what came later is saved by its own."""


class Saved(BaseEstimator, ABC):  # type: ignore[misc] # untyped base
    """An estimator that can be saved and, by `bayescascade.load`, read back without its data.

    Attributes
    ----------
    model_name : str
        What files call the class: its public name, or one that version 0.1 gave it.
    """

    model_name: ClassVar[str]

    _unlisted: ClassVar[tuple[str, ...]] = ("from_record", "model_name", "to_record")

    _not_saved: ClassVar[tuple[str, ...]] = NOT_SAVED
    _later_parameters: ClassVar[Mapping[str, Any]] = {}
    """What models did before there were these parameters, which older files lack."""
    _former_parameters: ClassVar[tuple[str, ...]] = ()
    """What older files have, and means nothing any more."""

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """Return what a file holds beside the parameters, as plain JSON types."""

    @abstractmethod
    def _restore(self, record: Mapping[str, Any]) -> None:
        """Become fitted as a record says, of which nothing is sure.

        Any BayesCascadeError, KeyError, TypeError or ValueError says that the file is bad.
        """

    def _parameter_fields(self) -> dict[str, Any]:
        """Return the parameters that are saved, as plain JSON types."""
        parameters = self.get_params(deep=False)
        return {k: v for k, v in parameters.items() if k not in self._not_saved}

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the constructor takes, given a record whose parameters have the right names.

        Those of `_not_saved` may be among it.
        """
        return dict(record["parameters"])

    def to_record(self) -> dict[str, Any]:
        """Return the fitted model as plain JSON types, at full precision."""
        check_is_fitted(self)
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model_name,
            "parameters": self._parameter_fields(),
            **self._fields(),
        }

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `bayescascade.load` reads it back.

        The file holds what was learned and counted, never rows. Writing is atomic: on any error the
        old file stays as it was.
        """
        write_json(path, self.to_record())

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the model that a saved file's record describes; see `bayescascade.load`.

        Raises
        ------
        ModelFileError
            If anything in the record is missing, of a wrong type, or contradicts the rest.
        """
        with contradictions_refused():
            parameters = record["parameters"]
            if isinstance(parameters, dict):
                parameters = {
                    k: v for k, v in parameters.items() if k not in cls._former_parameters
                }
                record = {**record, "parameters": parameters}
            expected = set(cls._get_param_names()) - set(cls._not_saved)
            later = {k: v for k, v in cls._later_parameters.items() if k in expected}
            least = expected - set(later)
            if not isinstance(parameters, dict) or not least <= set(parameters) <= expected:
                raise ModelFileError(
                    f"a saved model's parameters must be {', '.join(sorted(expected))}"
                )
            model = cls(**{**later, **cls._read_parameters(record)})
            model._restore(record)
            return model


def load(path: str | Path) -> Any:  # Any: each family has its own estimators
    """Read a model that was saved with its `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Fitted, of the class that was saved; it holds no data, so `posterior_` and `run_` are not
        there.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is cut short, of another format, or contradicts itself. Nothing
        in the file is ever executed.
    """
    record = read_json(path, FORMAT, VERSION)
    found = model_class(record.get("model"))
    if found is None:
        raise ModelFileError(
            f"{path}: model must be a kind that can be saved, "
            f"got {shortened(repr(record.get('model')))}"
        )
    try:
        return found.from_record(record)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {shortened(str(error))}") from None


def model_class(name: object) -> Any:  # Any: a subclass of Saved, or None
    """Return the estimator that files call by a name, None if there is none."""
    package = import_module("bayescascade")  # its table of names is the registry
    public = _NAMES_OF_0_1.get(name, name) if isinstance(name, str) else ""
    found = getattr(package, public) if public in package.__all__ else None
    is_saved = isinstance(found, type) and issubclass(found, Saved) and found.model_name == name
    return found if is_saved else None


@contextmanager
def contradictions_refused() -> Iterator[None]:
    """Raise ModelFileError for whatever reading a record raises that does not fit together."""
    try:
        yield
    except ModelFileError:
        raise
    except KeyError as error:
        raise ModelFileError(f"a saved model must have the field {error}") from None
    except (
        BayesCascadeError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        LookupError,
        RecursionError,
    ) as error:
        raise ModelFileError(f"a saved model's fields must fit together: {error}") from None
