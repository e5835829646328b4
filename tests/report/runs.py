"""Small runs of the real samplers on a toy target, described as a cascade or a rule list is."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import samplers
from bayescascade.model.draws import PosteriorRun, TraceLegend

SETTINGS = {
    "model": "leaf",
    "search": "anneal+metropolis",
    "source": "toy.csv",
    "expected_leaves": 8.0,
    "max_branches": None,
}


COLUMNS = ("sex", "age")


class Step:
    """A step of one, up or down."""

    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        return samplers.Proposal(state + 2 * int(rng.integers(2)) - 1, 0.0)


class Toy:
    """Integers, normal; the number stands for leaves, its parity for the column used."""

    def log_density(self, state: int) -> float:
        return -0.5 * (state / 2.0) ** 2

    def initial_state(self, rng: np.random.Generator) -> int:
        return int(rng.integers(3))

    def moves(self) -> Mapping[str, Step]:
        return {"grow": Step(), "prune": Step()}

    def describe(self, state: int) -> Mapping[str, float]:
        return {
            "n_leaves": abs(state) + 1.0,
            "depth": float(abs(state)),
            "n_features": float(state != 0),
            "first_feature": float(state % 2) if state else -1.0,
            "log_prior": -abs(state),
        }


class ToyList(Toy):
    """The same integers, described as rule lists are."""

    def describe(self, state: int) -> Mapping[str, float]:
        return {
            "n_rules": float(abs(state)),
            "n_conditions": 2.0 * abs(state),
            "n_features": float(state != 0),
            "first_rule": 1000.0 + state if state else -1.0,
            "log_prior": -abs(state),
        }


def toy_run(engine: str = "metropolis", **options: Any) -> PosteriorRun[int]:
    """Return a run of the toy target."""
    run = getattr(samplers, engine)(Toy(), **({"n_steps": 800, "n_chains": 3, "seed": 0} | options))
    return PosteriorRun.of(
        run,
        TraceLegend(
            size="n_leaves",
            columns=COLUMNS,
            columns_of=_columns_of,
            labels={"first_feature": COLUMNS.__getitem__},
            words={"first_feature": "first split"},
        ),
        SETTINGS,
        "leaf cascade",
        "expected_leaves 8, any number of branches",
    )


def toy_list_run(engine: str = "metropolis", **options: Any) -> PosteriorRun[int]:
    """Return a run of the toy target as one of rule lists."""
    options = {"n_steps": 800, "n_chains": 3, "seed": 0} | options
    return PosteriorRun.of(
        getattr(samplers, engine)(ToyList(), **options),
        TraceLegend(
            size="n_rules",
            columns=COLUMNS,
            columns_of=_columns_of,
            labels={"first_rule": lambda code: f"sex is {code - 1000}"},
        ),
        {"model": "rules", "search": "metropolis", "source": "", "expected_rules": 3.0},
        "density rule list",
        "expected_rules 3",
    )


def _columns_of(state: int) -> list[int]:
    return [state % 2] if state else []
