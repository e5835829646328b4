"""How statistical tests judge frequencies, and when draws are as good as independent."""

import math
from collections.abc import Sequence

import numpy as np
import scipy.stats

# about 100 tests judge by it: all together fail by chance once in 10,000 choices of seeds
P_VALUE = 1e-6

CORRELATION = 0.03  # of successive draws, at most: inflates a chi-square by 6 %


def fits(indices: Sequence[int], probabilities: np.ndarray, p_value: float = P_VALUE) -> bool:
    """Whether independent draws pass a chi-square test against exact probabilities.

    The rarest values are taken together, as many as it takes to expect them 5 times: below that
    the statistic is not distributed as chi-square, and one draw of a rare value could decide.
    """
    n = len(indices)
    counts = np.bincount(np.asarray(indices, np.int64), minlength=probabilities.shape[0])
    if counts.shape[0] > probabilities.shape[0] or (counts[probabilities == 0] > 0).any():
        return False
    expected = n * probabilities / probabilities.sum()
    order = np.argsort(expected)
    n_pooled = int(np.searchsorted(np.cumsum(expected[order]), 5.0)) + 1
    pooled, alone = order[:n_pooled], order[n_pooled:]
    counts = np.append(counts[alone], counts[pooled].sum())
    expected = np.append(expected[alone], expected[pooled].sum())
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic < float(scipy.stats.chi2.isf(p_value, max(1, len(expected) - 1)))


def independent_steps(matrix: np.ndarray, probabilities: np.ndarray) -> int:
    """Return after how many steps of a reversible chain draws are as good as independent."""
    possible = probabilities > 0
    root = np.sqrt(probabilities[possible])
    symmetric = root[:, None] * matrix[np.ix_(possible, possible)] / root
    eigenvalues = np.sort(np.abs(np.linalg.eigvalsh((symmetric + symmetric.T) / 2)))
    return max(1, math.ceil(math.log(CORRELATION) / math.log(eigenvalues[-2])))
