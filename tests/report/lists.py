"""Lists to print: hand-made, and at random over any schema."""

from typing import Any

import numpy as np

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import Antecedent, Condition
from bayescascade.methods.lists.density_list import LearnedDensityList
from bayescascade.methods.lists.label_list import LabelList
from tests.report.trees import TITANIC

CREW_MEN = (Condition(0, 3, 4), Condition(1, 1, 2))
POOR_ADULTS = (Condition(0, 2, 3), Condition(2, 1, 2))


def titanic_list() -> LearnedDensityList:
    """Return a list of two rules."""
    counts = np.array([862.0, 627.0, 712.0])
    return LearnedDensityList(TITANIC, (CREW_MEN, POOR_ADULTS), counts, counts / 2201)


def label_list(classes: list[Any], counts: list[list[float]]) -> LabelList:
    """Return a list of up to two rules whose parts have these counts."""
    rules = (CREW_MEN, POOR_ADULTS)[: len(counts) - 1]
    return LabelList(TITANIC, np.array(classes), rules, np.array(counts, np.float64), 1.0)


def wide_schema(n_columns: int = 40) -> Schema:
    """Return columns of long, odd and wide names."""
    return Schema(
        tuple(
            Column(f"column {i} 漢字\n{'with a name ' * (i % 7)}", "nominal", tuple("abcdefgh"))
            for i in range(n_columns)
        )
    )


def random_rules(rng: np.random.Generator, schema: Schema, n_rules: int) -> tuple[Antecedent, ...]:
    """Return rules of one to four conditions, each on one level, all of which capture cells."""
    rules: tuple[Antecedent, ...] = ()
    while len(rules) < n_rules:
        columns = sorted(rng.choice(schema.n_columns, int(rng.integers(1, 5)), replace=False))
        codes = rng.integers(7, size=len(columns)).tolist()
        rule = tuple(
            Condition(int(j), code, code + 1) for j, code in zip(columns, codes, strict=True)
        )
        if not any(set(earlier) <= set(rule) for earlier in rules):
            rules += (rule,)
    return rules
