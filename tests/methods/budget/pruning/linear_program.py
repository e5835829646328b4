"""The linear relaxation of the pruning program, for SciPy's HiGHS: an oracle of its own road."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array


def relax(program, tradeoff):
    """Return which splits are kept, (n_splits,) in [0, 1], and the optimum.

    The variables are "split is kept" and "use is paid for", relaxed to [0, 1]: the form of Nan's
    (IP) with two entries a row. By the thesis's theorem 4.3.2 it has solutions of whole numbers.
    """
    child = np.flatnonzero(program.parent >= 0)
    less = np.concatenate([child, program.edge_split])
    more = np.concatenate([program.parent[child], program.n_splits + program.edge_use])
    n_rows, n_columns = less.size, program.n_splits + program.n_uses
    if not n_columns:
        return np.zeros(0), program.base_error
    place = np.arange(n_rows)
    result = linprog(
        np.concatenate([tradeoff * program.work - program.error_gain, tradeoff * program.use_cost]),
        A_ub=csr_array((np.ones(n_rows), (place, less)), shape=(n_rows, n_columns))
        - csr_array((np.ones(n_rows), (place, more)), shape=(n_rows, n_columns)),
        b_ub=np.zeros(n_rows),
        bounds=(0.0, 1.0),
    )
    assert result.status == 0, result.message
    return result.x[: program.n_splits], float(program.base_error + result.fun)
