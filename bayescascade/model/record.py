"""Saved models: JSON with all that an estimator needs to be printed and used without its data.

The file holds no rows. Reading it runs nothing and trusts nothing: the schema, every state and
every count are checked for consistency, and the log posterior is computed anew from the counts.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bayescascade.base.errors import BayesCascadeError, ModelFileError
from bayescascade.base.files import write_json
from bayescascade.data.schema import Schema
from bayescascade.model.learned import Draw
from bayescascade.model.summary import FitSummary

if TYPE_CHECKING:
    from bayescascade.model.estimator import AnyEstimator

__all__ = [
    "FORMAT",
    "NOT_SAVED",
    "VERSION",
    "contradictions_refused",
    "model_from_record",
    "save_model",
]

FORMAT = "bayescascade model"
VERSION = 1

NOT_SAVED = ("checkpoint", "resume", "progress", "n_jobs", "random_state")
"""Parameters of running a fit, not of the model."""

# Parameters that files of version 0.1 lack, which did what their defaults say.
_SINCE_0_1 = {"leaf", "leaf_concentration", "max_leaves", "memory_limit", "partitions", "start"}

_TOLERANCE = 1e-6  # between the stored log posterior, or total weight, and what the counts give
_MAX_TIMES = 1 << 53

E = TypeVar("E", bound="AnyEstimator")


def save_model(model: "AnyEstimator", path: str | Path) -> None:
    """Write a fitted model; see `PosteriorEstimator.save`."""
    parameters = model.get_params()
    for name in NOT_SAVED:
        parameters.pop(name)
    record = {
        "format": FORMAT,
        "version": VERSION,
        "model": model.model_name,
        "parameters": parameters,
        "schema": model.schema_.to_dict(),
        **model._own_record(),
        "log_posterior": model.log_posterior_,
        model.learned_name: model._best.to_record(),
        "summary": model.summary_.to_dict(),
        "draws": [{**draw.counted.to_record(), "times": draw.times} for draw in model._draws],
    }
    write_json(path, record)


def model_from_record(cls: type[E], record: Mapping[str, Any]) -> E:
    """Return the fitted model that a record describes.

    Raises
    ------
    ModelFileError
        If anything in the record is missing, of a wrong type, or contradicts the rest.
    """
    with contradictions_refused():
        return _restored(cls(**_parameters(cls, record)), record)


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


def _parameters(cls: "type[AnyEstimator]", record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's parameters, checked to be those of the class."""
    parameters = record.get("parameters")
    expected = set(cls._get_param_names()) - set(NOT_SAVED)
    if not isinstance(parameters, dict) or not (
        expected - _SINCE_0_1 <= set(parameters) <= expected
    ):
        raise ModelFileError(f"a saved model's parameters must be {', '.join(sorted(expected))}")
    return parameters


def _restored(model: E, record: Mapping[str, Any]) -> E:
    model.check_parameters()
    model._set_features(Schema.from_dict(record["schema"]))
    model._read_own(record)
    best = model._read_counted(record[model.learned_name])
    draws = [_read_draw(model, draw, best.total) for draw in record["draws"]]
    log_posterior = float(record["log_posterior"])
    summary = FitSummary.from_dict(record["summary"])
    with np.errstate(over="ignore", invalid="ignore"):  # of absurd counts: NaN, which is unequal
        computed = model._log_density(best)
    if not abs(computed - log_posterior) <= _TOLERANCE * (1 + abs(computed)):
        raise ModelFileError(
            f"a saved model's log posterior must follow from its counts, {computed!r}, "
            f"got {log_posterior!r}"
        )
    model._restore(best, draws, log_posterior, summary)
    return model


def _read_draw(model: "AnyEstimator", record: Mapping[str, Any], total: float) -> Draw[Any]:
    times = record["times"]
    if type(times) is not int or not 1 <= times <= _MAX_TIMES:
        raise ModelFileError(f"a draw's times must be an integer >= 1, got {times!r}")
    counted = model._read_counted(record)
    if not abs(counted.total - total) <= _TOLERANCE * total:
        raise ModelFileError(f"a draw's counts must sum up to {total!r}, got {counted.total!r}")
    return Draw(counted, times)
