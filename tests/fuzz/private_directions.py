"""Neighbors of private directions: mechanisms are asked alike, and their inputs are close.

Mechanisms are replaced by ones whose answers are drawn from public numbers alone. Then all that is
published must be the same for neighbors, and what each mechanism was asked must be within the
sensitivity that it was asked with: the proof of a composition, step by step.
"""

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import bayescascade
from bayescascade import PrivateAdditiveNoiseModel
from bayescascade.base.errors import BayesCascadeError
from bayescascade.methods.causal import private as rooms, regression
from bayescascade.privacy.accounting import Cost
from bayescascade.privacy.mechanisms import NoisyValues
from tests.fuzz.neighbors import check_alike
from tests.fuzz.running import Found, Problem


class Asked(NamedTuple):
    """What a mechanism was asked: inputs, and what must be public."""

    name: str
    values: Any
    distance: int | None
    public: tuple[Any, ...]


def direction_release(problem: Problem) -> None:
    """One row, of those that are protected."""
    rng, n = problem.rng, int(problem.rng.choice([20, 21, 40, 150]))
    given: dict[str, Any] = {
        "score": str(rng.choice(["hsic", "spearman", "kendall", "iqr"])),
        "protect": str(rng.choice(["both", "test", "train"])),
        "publish": str(rng.choice(["scores", "scores", "direction"])),
        "epsilon": float(rng.choice([0.5, 2.0, 50.0])),
        "delta": float(rng.choice([0.0, 1e-3, 0.3])),
        "x_bounds": (-1.0, 1.0), "y_bounds": (-2.0, 1.0), "noise": "simulated",
        "proposed": rng.choice([None, None, 0.3, 2.0]),
        "random_state": int(rng.integers(1 << 30)),
    }  # fmt: skip
    x, y = _pair(rng, n)
    splitting = np.random.SeedSequence(given["random_state"]).spawn(2)[0]
    is_test = rooms.split_rows(n, n, np.random.default_rng(splitting)) < n // 2  # test_share 1/2
    allowed = {"both": np.arange(n), "test": np.flatnonzero(is_test)}
    allowed["train"] = np.flatnonzero(~is_test)
    row = int(rng.choice(allowed[given["protect"]]))
    near_x, near_y = x.copy(), y.copy()
    near_x[row], near_y[row] = rng.choice([-1.0, 1.0, 0.25, 1e9, -1e300, *x[:2]], 2)
    names = ("score", "protect", "publish", "epsilon", "delta")
    problem.note(direction_rows=n, **{name: given[name] for name in names})
    asked: list[list[Asked]] = []
    said = []
    for pair in ((x, y), (near_x, near_y)):
        asked.append([])
        said.append(_told(given, pair, asked[-1], seed=n))
    check_alike(*said)
    problem.note(direction_result=said[0].get("error", ("made", ""))[0])
    _check_asked(*asked, given)
    if "loaded" in said[0] and said[0]["loaded"] != said[0]["print"]:
        raise Found(f"a saved direction must print alike, got {said[0]['loaded']}")


def _pair(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    kind = rng.integers(5)
    if kind == 0:
        return np.full(n, 0.25), np.full(n, -0.5)
    if kind == 4:  # two places, which are far apart only by a bandwidth of the rows
        return np.arange(n) % 2 * 1e-6, np.arange(n) % 2 * 1e-6
    x, y = rng.uniform(-1, 1, (2, n))
    if kind == 1:
        y = np.tanh(3 * x) + 0.2 * y
    if kind == 2:  # half of the rows are one number
        x, y = (np.where(np.arange(n) % k == 0, one, 0.25) for k, one in ((5, x), (7, y)))
    return x, y


def _told(
    given: dict[str, Any], pair: tuple[Any, Any], asked: list[Asked], seed: int
) -> dict[str, Any]:
    """Return all that a fit says where mechanisms answer by a seed."""
    answers = np.random.default_rng(seed)
    said: dict[str, Any] = {}
    with ExitStack() as stack:
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        folder = Path(stack.enter_context(TemporaryDirectory()))
        warnings.simplefilter("always")
        for room, name in (
            (rooms, "laplace"), (regression, "laplace"), (rooms, "exponential"),
            (rooms, "propose_test_release"),
        ):  # fmt: skip
            fake = _answering(getattr(room, name), name, asked, answers)
            stack.enter_context(patch.object(room, name, fake))
        try:
            model = PrivateAdditiveNoiseModel(**given).fit(*pair)
        except Exception as error:
            if not isinstance(error, BayesCascadeError):
                raise
            said["error"] = (type(error).__name__, str(error))
        else:
            model.save(folder / "m.json")
            said |= {
                "print": str(model), "repr": repr(model), "release": model.release_.to_dict(),
                "file": (folder / "m.json").read_text(), "rows": model.n_rows_,
                "loaded": str(bayescascade.load(folder / "m.json")),
            }  # fmt: skip
    said["warnings"] = [str(one.message) for one in caught]
    return said


def _answering(
    real: Callable[..., Any], name: str, asked: list[Asked], answers: np.random.Generator
) -> Callable[..., Any]:
    """Return a mechanism that answers by public numbers, and keeps what it was asked."""

    def fake(*args: Any, **options: Any) -> Any:
        at = 1 if name == "propose_test_release" else 0
        values = np.array(args[at], np.float64)
        distance = int(args[0]) if at else None
        public = tuple(one for one in args[at + 1 :] if isinstance(one, float | int))
        asked.append(Asked(name, values, distance, (*public, options.get("error"))))
        released = real(*args, **options)  # raises as it would
        if name == "exponential":
            return replace(released, index=int(answers.integers(2)))
        if at and answers.random() < 0.4:
            return None
        drawn = answers.uniform(0, 0.3 if values.size == 2 else 9, values.size)
        if isinstance(released, NoisyValues):
            return replace(released, values=drawn)
        scale = args[at + 1] / args[at + 2]
        return NoisyValues(drawn, scale, Cost(float(args[at + 2]), float(args[at + 3])), False)

    return fake


def _check_asked(one: list[Asked], other: list[Asked], given: dict[str, Any]) -> None:
    """Raise `Found` unless each mechanism was asked with close inputs, and they cost no more."""
    if [(a.name, a.public) for a in one] != [(b.name, b.public) for b in other]:
        raise Found(f"mechanisms must be asked alike, got {one} and {other}")
    spent = 0.0
    for first, second in zip(one, other, strict=True):
        sensitivity, epsilon, error = first.public[0], first.public[1], first.public[-1] or 0.0
        apart = np.abs(first.values - second.values)
        moved = float(apart.max() if first.name == "exponential" else apart.sum())
        far = first.distance is None or max(first.distance, second.distance or 0) > 0
        if first.distance is not None and abs(first.distance - (second.distance or 0)) > 1:
            raise Found(f"distances must differ by at most 1, got {first} and {second}")
        slack = 2 * error * first.values.size + 1e-12
        if far and not moved <= sensitivity + slack:
            raise Found(f"{first.name} was asked with {sensitivity}, and inputs moved by {moved}")
        if moved or (first.distance != second.distance):
            spent += epsilon
    if spent > given["epsilon"] * (1 + 1e-12):
        raise Found(f"mechanisms that a row moves must cost {given['epsilon']}, got {spent}")
