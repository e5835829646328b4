"""Neighbors of private sums of rows: nothing is alike but in law, and sums move as was proved."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from bayescascade import Rados
from bayescascade.base.errors import BayesCascadeError
from bayescascade.methods.rados import releases
from tests.fuzz.neighbors import (
    FORMS,
    check_alike,
    feature_neighbors,
    in_form,
    revealed,
    row_neighbors,
)
from tests.fuzz.running import Found, Problem


def feature_release(problem: Problem) -> None:
    """One row's protected feature: only its coordinate moves, by 1 in every sum."""
    frames, labels, values = feature_neighbors(problem)
    rng, form = problem.rng, str(problem.rng.choice(FORMS))
    given: dict[str, Any] = {
        "epsilon": 60.0, "delta": 0.9, "n_rados": int(rng.integers(1, 4)), "noise": "simulated",
        "truncation": float(rng.choice([0.0, 0.0, 0.2])), "values": values,
        "random_state": int(rng.integers(1 << 30)),
    }  # fmt: skip
    if form == "categorical":
        categories = sorted(values)
        frames = [frame.assign(f=pd.Categorical(frame["f"], categories)) for frame in frames]
        given["values"] = None
    elif isinstance(values[0], bool) and form in ("frame", "arrow") and rng.random() < 0.5:
        given["values"] = None
    has_names = form not in ("array", "list")
    given["feature"] = "f" if has_names else 0
    is_like = rng.random() < 0.3
    if not is_like:
        given["standardize"], given["intercept"] = (bool(rng.integers(2)) for _ in range(2))
    problem.note(form=form, like=is_like, **{"rados": given["n_rados"]})
    made: list[Rados] = []

    def call(frame: pd.DataFrame, folder: Path) -> Rados:
        X, y = in_form(form, frame, labels, folder)
        rados = Rados.sample_feature_private(X, y, **given)
        made.append(rados)
        return rados

    with TemporaryDirectory() as name:
        folder = Path(name)
        if is_like:
            public = frames[0].assign(f=[values[k % 2] for k in range(len(frames[0]))])
            if form == "categorical":
                public["f"] = pd.Categorical(public["f"], sorted(values))
            X, y = in_form(form, public, labels, folder)
            try:
                given["like"] = Rados.sample_feature_private(X, y, **given)
            except BayesCascadeError:
                return
            given["values"] = None
        said = [revealed(lambda frame=frame: call(frame, folder)) for frame in frames]
    check_alike(*said)
    problem.note(result=said[0].get("error", ("made", ""))[0])
    if not made:
        return
    place = made[0].reading.columns.index(made[0].promise.feature)
    moved = made[0].values[:, place] - made[1].values[:, place]
    if not ((moved == moved[0]).all() and abs(moved[0]) == 1.0):
        raise Found(f"the protected coordinate must move by 1 in each rado, got {moved}")


def row_release(problem: Problem) -> None:
    """One row, label included: nothing but noisy values move, and these no farther than is said."""
    frames, labels, classes = row_neighbors(problem)
    rng, form = problem.rng, str(problem.rng.choice(FORMS))
    has_levels = any(isinstance(kind, pd.CategoricalDtype) for kind in frames[0].dtypes)
    if has_levels and form in ("array", "list", "csv"):
        form = "frame"
    given: dict[str, Any] = {
        "epsilon": 1.0, "delta": 1e-5, "edge_bounds": (-1.0, 2.0), "classes": classes,
        "n_rados": int(rng.integers(1, 5)), "noise_on": str(rng.choice(["edges", "rados"])),
        "intercept": bool(rng.integers(2)), "noise": "simulated",
        "random_state": int(rng.integers(1 << 30)),
    }  # fmt: skip
    if form == "categorical":
        labels = [pd.Categorical(each, sorted(classes)) for each in labels]
        given["classes"] = None
    elif form == "frame" and isinstance(classes[0], bool):
        given["classes"] = None
    if form == "frame" and rng.random() < 0.3:  # numbers as text
        frames = [
            frame.astype({n: object for n in frame.columns if frame[n].dtype != "category"})
            for frame in frames
        ]
    is_like = rng.random() < 0.3
    problem.note(form=form, like=is_like, noise_on=given["noise_on"], columns=frames[0].shape[1])
    asked: list[tuple[np.ndarray, float]] = []
    real = releases.gaussian

    def spy(values: Any, sensitivity: float, *rest: Any) -> Any:
        asked.append((np.array(values), sensitivity))
        return real(values, sensitivity, *rest)

    def call(frame: pd.DataFrame, y: Any, folder: Path) -> Rados:
        return Rados.sample_gaussian(*in_form(form, frame, y, folder), **given)

    with TemporaryDirectory() as name, patch.object(releases, "gaussian", spy):
        folder = Path(name)
        if is_like:
            given["like"] = call(frames[0], labels[0], folder)
            given["classes"] = None
            asked.clear()
        said = [
            revealed(lambda frame=frame, y=y: call(frame, y, folder))
            for frame, y in zip(frames, labels, strict=True)
        ]
    check_alike(*said)
    problem.note(result=said[0].get("error", ("made", ""))[0])
    if len(asked) == 2:
        (one, most), (other, again) = asked
        moved = float(np.linalg.norm(one - other))
        if most != again or moved > most * (1 + 1e-12):
            raise Found(f"a row must move sums by at most {most} or {again}, got {moved}")
        problem.note(share_of_sensitivity=moved / most)


def merged_promises(problem: Problem) -> None:
    """Merge in any order: no promise is of less than what some person's releases cost."""
    rng = problem.rng
    X = rng.normal(size=(40, 2))
    y, near = np.arange(40) % 2 == 0, {"edge_bounds": (-1, 1), "noise": "simulated", "n_rados": 2}
    first = Rados.sample_gaussian(X, y, epsilon=1.0, delta=1e-3, **near)

    def release(rows: int) -> tuple[Rados, dict[int, tuple[float, float]]]:
        epsilon, delta = float(rng.choice([0.1, 0.5, 2.0])), float(rng.choice([1e-6, 1e-3, 0.3]))
        rados = Rados.sample_gaussian(
            rng.normal(size=(40, 2)), y, epsilon=epsilon, delta=delta, like=first, **near
        )
        return rados, {rows: (epsilon, delta)}

    held = [release(int(rng.integers(3))) for _ in range(int(rng.integers(2, 5)))]
    while len(held) > 1:
        (one, costs), (other, more) = held.pop(), held.pop(int(rng.integers(len(held))))
        rows = "different" if not costs.keys() & more.keys() else "same"
        try:
            merged = Rados.merge([one, other], rows=rows)
        except BayesCascadeError:
            return
        spent = {
            person: tuple(
                a + b
                for a, b in zip(costs.get(person, (0, 0)), more.get(person, (0, 0)), strict=True)
            )
            for person in costs.keys() | more.keys()
        }
        promise = merged.promise
        worst = [max(cost[k] for cost in spent.values()) for k in range(2)]
        if promise is None:
            return
        if promise.epsilon < worst[0] - 1e-12 or promise.delta < worst[1] - 1e-12:
            raise Found(f"merged rados must promise at least {worst}, got {promise}")
        held.append((merged, spent))
