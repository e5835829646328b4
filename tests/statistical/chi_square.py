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

    Values expected fewer than 5 times are taken together.
    """
    n = len(indices)
    counts = np.bincount(np.asarray(indices, np.int64), minlength=probabilities.shape[0])
    if counts.shape[0] > probabilities.shape[0] or (counts[probabilities == 0] > 0).any():
        return False
    expected = n * probabilities / probabilities.sum()
    is_rare = expected < 5
    if is_rare.any():
        counts = np.append(counts[~is_rare], counts[is_rare].sum())
        expected = np.append(expected[~is_rare], expected[is_rare].sum())
    if expected[-1] == 0:
        counts, expected = counts[:-1], expected[:-1]
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic < float(scipy.stats.chi2.isf(p_value, max(1, len(expected) - 1)))


def independent_steps(matrix: np.ndarray, probabilities: np.ndarray) -> int:
    """Return after how many steps of a reversible chain draws are as good as independent."""
    root = np.sqrt(probabilities)
    symmetric = root[:, None] * matrix / root
    eigenvalues = np.sort(np.abs(np.linalg.eigvalsh((symmetric + symmetric.T) / 2)))
    return max(1, math.ceil(math.log(CORRELATION) / math.log(eigenvalues[-2])))
