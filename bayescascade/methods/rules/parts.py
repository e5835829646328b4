"""Which part of a list each row is in: that of the first rule it satisfies, else the last."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.rules.antecedents import Antecedent

__all__ = ["parts_of_codes"]


def parts_of_codes(codes: NDArray[np.int32], rules: Sequence[Antecedent]) -> NDArray[np.int64]:
    """Return the part of each row, (n_rows,) int64 from 0 to ``len(rules)``, the `else`.

    Parameters
    ----------
    codes : (n_columns, n_rows) int32
        A cell coded -1 satisfies no condition.
    rules : sequence of Antecedent
    """
    from bayescascade.methods.rules.kernels.scoring import first_parts

    conditions = [condition for antecedent in rules for condition in antecedent]
    parts = np.empty(codes.shape[1], np.int64)
    first_parts(
        np.ascontiguousarray(codes, np.int32),
        np.array(conditions, np.int64).reshape(-1, 3),
        np.cumsum([0, *(len(antecedent) for antecedent in rules)]),
        parts,
    )
    return parts
