"""Small runs of the real samplers on a toy target, described as a rule list is."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import samplers
from bayescascade.model.draws import PosteriorRun, TraceLegend

COLUMNS = ("sex", "age")


class Step:
    """A step of one, up or down."""

    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        return samplers.Proposal(state + 2 * int(rng.integers(2)) - 1, 0.0)


class Toy:
    """Integers, normal; the number stands for rules, its parity for the column used."""

    def log_density(self, state: int) -> float:
        return -0.5 * (state / 2.0) ** 2

    def initial_state(self, rng: np.random.Generator) -> int:
        return int(rng.integers(3))

    def moves(self) -> Mapping[str, Step]:
        return {"grow": Step(), "prune": Step()}

    def describe(self, state: int) -> Mapping[str, float]:
        return {
            "n_rules": float(abs(state)),
            "n_conditions": 2.0 * abs(state),
            "n_features": float(state != 0),
            "first_rule": 1000.0 + state % 2 if state else -1.0,
            "log_prior": -abs(state),
        }


def toy_run(engine: str = "metropolis", **options: Any) -> PosteriorRun[int]:
    """Return a run of the toy target as one of rule lists."""
    options = {"n_steps": 800, "n_chains": 3, "seed": 0} | options
    return PosteriorRun.of(
        getattr(samplers, engine)(Toy(), **options),
        legend=TraceLegend(
            size="n_rules",
            columns=COLUMNS,
            columns_of=_columns_of,
            labels={"first_rule": lambda code: f"{COLUMNS[int(code) - 1000]} is high"},
        ),
        settings={
            "model": "rules",
            "search": "metropolis",
            "source": "toy.csv",
            "expected_rules": 3.0,
        },
        title="density rule list",
        parameter_words="expected_rules 3",
    )


def _columns_of(state: int) -> list[int]:
    return [state % 2] if state else []
