"""Small domains of every kind of column, and random rules over them."""

import itertools

import numpy as np

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import Condition
from tests import rules_reference as reference

LEVELS = Schema((Column("a", "nominal", ("x", "y", "z")), Column("b", "nominal", (0, 1))))
ORDERED = Schema(
    (
        Column("grade", "ordinal", (1, 2, 3), has_missing_level=True),
        Column("a", "nominal", ("x", "y"), has_missing_level=True),
    )
)
BINS = Schema(
    (
        Column("age", "continuous", (), (0.0, 0.5, 2.0, 8.0)),
        Column("sex", "nominal", ("female", "male")),
        Column("grade", "ordinal", (1, 2, 3, 4)),
    )
)
GAPS = Schema(
    (
        Column("sex", "nominal", ("female", "male")),
        Column("constant", "nominal", (1,)),
        Column("income", "continuous", (), (0.0, 10.0, 30.0, 100.0), has_missing_level=True),
    )
)
DOMAINS = {"levels": LEVELS, "ordered": ORDERED, "bins": BINS, "gaps": GAPS}


def cells_of(schema):
    """Return the codes of all cells, (p, n_cells) int32, and their volumes."""
    cells = np.array(list(itertools.product(*(range(q) for q in schema.n_levels))), np.int32).T
    widths = [column.widths[codes] for column, codes in zip(schema.columns, cells, strict=True)]
    return np.ascontiguousarray(cells), np.prod(widths, axis=0)


def random_rules(rng, schema, n_rules, max_size=2):
    """Return up to so many random rules, each capturing a cell and leaving one."""
    described = [(c.kind, c.n_levels, c.has_missing_level) for c in schema.columns]
    candidates = reference.candidates(described, max_size)
    widths = [column.widths.tolist() for column in schema.columns]
    rules = []
    for index in rng.permutation(len(candidates))[: 3 * n_rules]:
        longer = [*rules, candidates[index]]
        if len(rules) < n_rules and min(reference.first_volumes(longer, widths)) > 0:
            rules = longer
    return tuple(tuple(Condition(*condition) for condition in rule) for rule in rules)
