"""Experts of the gate: each predicts a class for a row, or asks for its label."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_integer
from bayescascade.model.posterior import GibbsPosterior
from samplers.types import Proposal

ASKS = -1
_MOST_CLASSES = 32_767

Decisions = NDArray[np.int16]  # (n_rows, n_experts), the position of a class, or ASKS


class Expert(Protocol):
    """A rule of the user that decides about rows."""

    def decide(self, X: Any) -> Any:
        """Return the position of a class for each row, or -1 to ask, (n_rows,) of integers."""


class Pool(Protocol):
    """All experts of a gate; `legend` explains their names, "" if they need no explanation."""

    legend: str

    @property
    def names(self) -> list[str]: ...  # noqa: D102 - see the class

    def decide(self, X: Any) -> Decisions:
        """Return the decisions of all experts about all rows."""

    def learn(self, X: Any, labels: Integers) -> None:
        """Learn from all rows with known labels."""


@dataclass(eq=False)
class GivenExperts:
    """Experts of the user, which are not fitted."""

    experts: Sequence[Expert]
    n_classes: int
    legend: str = field(default="", init=False)

    @property
    def names(self) -> list[str]:
        """The numbered names of their classes."""
        return [f"{i + 1} {type(expert).__name__}" for i, expert in enumerate(self.experts)]

    def decide(self, X: Any) -> Decisions:
        """Return their decisions; DataError if one is neither a class nor -1."""
        n_rows = len(X)
        found = np.empty((n_rows, len(self.experts)), np.int16)
        for i, expert in enumerate(self.experts):
            decided = np.asarray(expert.decide(X))
            if decided.shape != (n_rows,) or decided.dtype.kind not in "iu":
                raise DataError(
                    f"decide of expert {i + 1} must return {n_rows} integers, got "
                    f"{decided.dtype} of shape {decided.shape}"
                )
            if decided.size and not ASKS <= decided.min() <= decided.max() < self.n_classes:
                raise DataError(
                    f"decide of expert {i + 1} must return positions of {self.n_classes} classes "
                    f"or -1, got {decided.min()} to {decided.max()}"
                )
            found[:, i] = decided
        return found

    def learn(self, X: Any, labels: Integers) -> None:
        """Learn nothing."""


@dataclass(eq=False)
class ConfidentModels:
    """Local models, each with several thresholds on its confidence, and one that always asks.

    Thresholds are 1 - (1 - 1 / n_classes) (1 - k / n)^2, k = 0, ..., n - 1: the first is always
    reached, and they are denser for confident models.
    """

    models: Sequence[Any]
    n_thresholds: int
    n_classes: int
    fitted: list[Any] = field(default_factory=list)
    legend: str = field(
        default="MODEL from P: answers if its confidence is at least P, otherwise asks", init=False
    )

    @classmethod
    def of(cls, models: Sequence[Any], n_thresholds: int, n_classes: int) -> "ConfidentModels":
        """Check the models; `learn` fits copies of them."""
        check_integer("thresholds", n_thresholds, minimum=1, maximum=1000)
        if not len(models):
            raise ParameterError("models must be at least one classifier, got none")
        for model in models:
            if not hasattr(model, "predict_proba") or not hasattr(model, "get_params"):
                raise ParameterError(
                    f"models must be classifiers with predict_proba, got {type(model).__name__}"
                )
        return cls(list(models), n_thresholds, n_classes)

    @property
    def thresholds(self) -> Floats:
        """Minimum confidences, (n_thresholds,)."""
        away = 1.0 - np.arange(self.n_thresholds) / self.n_thresholds
        return 1.0 - (1.0 - 1.0 / self.n_classes) * away**2

    @property
    def names(self) -> list[str]:
        """Names of each model with each threshold, and of the one that asks."""
        texts = [f"{t:.3g}" for t in self.thresholds]
        return [f"{_name(model)} from {text}" for model in self.models for text in texts] + [
            "always asks"
        ]

    def decide(self, X: Any) -> Decisions:
        """Return their decisions."""
        found = np.full((len(X), len(self.models) * self.n_thresholds + 1), ASKS, np.int16)
        if not len(X):
            return found
        for i, model in enumerate(self.fitted):
            p = model.predict_proba(X)
            most = p.argmax(axis=1)
            first, confidence = i * self.n_thresholds, p[np.arange(len(p)), most]
            # the first threshold is 1 / n_classes, and rounding may give less
            answers = confidence[:, None] >= self.thresholds - 1e-12
            classes = model.classes_[most][:, None]
            found[:, first : first + self.n_thresholds] = np.where(answers, classes, ASKS)
        return found

    def learn(self, X: Any, labels: Integers) -> None:
        """Refit the models."""
        self.fitted = [clone(model).fit(X, labels) for model in self.models]


def _name(model: Any) -> str:
    """Return the name of a model's class, or of the last step of a pipeline."""
    return type(model.steps[-1][1] if hasattr(model, "steps") else model).__name__


def check_classes(classes: Any) -> NDArray[Any]:
    """Return the classes as an array; ParameterError unless there are two, and all differ."""
    found = np.asarray(classes)
    n = found.size
    if found.ndim != 1 or not 2 <= n <= _MOST_CLASSES or len(set(found.tolist())) != n:
        raise ParameterError(f"classes must be at least 2 different labels, got {classes!r}")
    return found


def posterior_of(losses: Floats, eta: float) -> GibbsPosterior[int]:
    """Return the posterior over expert indices from estimated losses, at temperature 1 / eta."""
    n_experts = len(losses)
    return GibbsPosterior(
        objective=lambda expert: float(losses[expert]),
        start=lambda rng: int(rng.integers(n_experts)),
        proposals={"expert": _OtherExpert(n_experts)},
        temperature=1.0 / eta,
        summary=lambda expert: {"expert": expert},
    )


class _OtherExpert:
    """Propose any other expert, all with the same probability."""

    def __init__(self, n_experts: int) -> None:
        self._n_experts = n_experts

    def propose(self, rng: np.random.Generator, state: int) -> Proposal[int]:
        other = int(rng.integers(max(self._n_experts - 1, 1)))
        return Proposal((other + (other >= state)) % self._n_experts, log_q_ratio=0.0)
