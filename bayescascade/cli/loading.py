"""Saved models as commands need them: a density, or a classifier; the other kind is an error."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bayescascade.methods.forests.base import BudgetedClassifier
    from bayescascade.model.estimator import AnyEstimator, DensityEstimator

__all__ = ["load_classifier", "load_density", "wrong_model"]


def load_density(path: str, what: str) -> "DensityEstimator[Any, Any, Any]":
    """Load a model that is a density.

    Raises
    ------
    click.ClickException
        If it is a classifier; the message begins with `what`, a command or an option.
    """
    from bayescascade.model.registry import load

    model: DensityEstimator[Any, Any, Any] = load(path)
    if model.is_classifier:
        raise wrong_model(f"{what} needs a density", path, model)
    return model


def load_classifier(path: str, what: str) -> Any:  # Any: a rule list or a budgeted forest
    """Load a model that is a classifier; see `load_density`."""
    from bayescascade.model.registry import load

    model = load(path)
    if not model.is_classifier:
        raise wrong_model(f"{what} needs a classifier", path, model, ": score tells log densities")
    return model


def wrong_model(
    rule: str, path: str, model: "AnyEstimator | BudgetedClassifier", hint: str = ""
) -> click.ClickException:
    """Return the error that a model is of another kind than `rule` says."""
    return click.ClickException(f"{rule}, got {path}, a {model.title}{hint}")
