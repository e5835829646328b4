"""Conditions on a row: the codes that its columns may have."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from bayescascade.base.arrays import Codes, Flags, Floats
from bayescascade.base.errors import DataError
from bayescascade.data.schema import Schema

Conditions: TypeAlias = Mapping[int, tuple[int, ...]]
"""The allowed codes of a column, ascending, by its index."""


def conditions_words(schema: Schema, known: Conditions) -> str:
    """Return conditions in words, such as "sex is male and grade is 1, 2"; empty if none."""
    columns = schema.columns
    return " and ".join(columns[j].condition_words(left, is_full=True) for j, left in known.items())


def narrow_conditions(
    schema: Schema, known: Conditions, conditions: Mapping[str, object]
) -> dict[int, tuple[int, ...]]:
    """Return the allowed codes by column number, given more conditions."""
    narrowed = dict(known)
    for j, codes in schema.encode_conditions(conditions).items():
        column = schema.columns[j]
        left = tuple(code for code in known.get(j, range(column.n_levels)) if code in codes)
        if not left:
            raise DataError(
                f'conditions on "{column.name}" must agree with the conditions given before, '
                f"{conditions_words(schema, known)}"
            )
        if column.kind != "nominal" and left[-1] - left[0] >= len(left):
            raise DataError(
                f'conditions on {column.kind} column "{column.name}" must be neighboring levels, '
                f"got {column.describe_codes(left)}"
            )
        narrowed[j] = left
    return narrowed


def subtract_widths(scores: Floats, schema: Schema, known: Conditions, codes: Codes) -> None:
    """Turn log probabilities of coded rows into log densities, in place; -inf without agreement."""
    for column, of_column in zip(schema.columns, codes, strict=True):
        log_widths = np.append(np.log(column.widths), 0.0)  # the last one is for -1, missing
        scores -= log_widths[of_column]
    scores[~agrees(known, codes)] = -np.inf


def agrees(known: Conditions, codes: Codes) -> Flags:
    """Return whether each row of codes (n_columns, n_rows), -1 for missing, may meet conditions."""
    may_be_true = np.ones(codes.shape[1], np.bool_)
    for j, allowed in known.items():
        may_be_true &= (codes[j] < 0) | np.isin(codes[j], allowed)
    return may_be_true
