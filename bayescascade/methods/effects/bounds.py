"""How far risks of rows seen may be from those of a population: Goh (2018), Theorem 3.

With probability 1 - delta, for all h of a class at once and losses in [0, M],

    E l_1 <= max(R_T, R_C) + M max(Delta_T(delta / 2), Delta_C(delta / 2)),
    Delta_T(d) = 2 sqrt(2 (log S(2 n_T) + log(4 / d)) / n_T),
    Delta_C(d) = 2^(5/4) sqrt(d_2) ((p log(2 e n_C / p) + log(4 / d)) / n_C)^(3/8).

d_2 = E_{mu_T}[mu_T / mu_C] is the exponentiated Renyi divergence of order 2, as in Cortes, Mansour
and Mohri (2010), on whose Theorem 3 it rests; the thesis prints 2 to the Kullback-Leibler
divergence, which is less, so that the bound as printed is not proved; its root is a power of 3/8.
"""

from math import e, log, sqrt

from bayescascade.base.validation import check_integer, check_probability, check_real


def effect_bound(
    risks: tuple[float, float],
    n_rows: tuple[int, int],
    *,
    log_growth: float,
    pseudo_dimension: float,
    divergence: float,
    largest_loss: float = 1.0,
    delta: float = 0.05,
) -> float:
    """Return a bound on the expected conditional-difference loss in the treated population.

    Parameters
    ----------
    risks : (float, float)
        R_T and R_C on the rows, with known weights mu_T / mu_C.
    n_rows : (int, int)
        Numbers of treated and of untreated rows.
    log_growth : float >= 0
        Logarithm of the growth function at twice the number of treated rows.
    pseudo_dimension : float > 0
        Pseudo-dimension of the class of functions.
    divergence : float >= 1
        d_2, the mean of mu_T / mu_C over the treated population.
    largest_loss : float > 0
        M, the maximum of the surrogate loss.
    delta : float in (0, 1)
        Probability that the bound does not hold.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Examples
    --------
    >>> from bayescascade import effect_bound
    >>> given = {"log_growth": 20.0, "pseudo_dimension": 3.0, "divergence": 1.0}
    >>> round(effect_bound((0.2, 0.25), (10**6, 10**6), **given), 3)
    0.307
    """
    treated, others = (check_real("risks", risk, minimum=0.0) for risk in risks)
    n_treated, n_others = (check_integer("n_rows", n, 1) for n in n_rows)
    log_growth = check_real("log_growth", log_growth, minimum=0.0)
    dimension = check_real("pseudo_dimension", pseudo_dimension, above=0.0, maximum=n_others)
    divergence = check_real("divergence", divergence, minimum=1.0)
    largest = check_real("largest_loss", largest_loss, above=0.0)
    doubt = log(4.0 / (check_probability("delta", delta, strict=True) / 2.0))
    of_treated = 2.0 * sqrt(2.0 * (log_growth + doubt) / n_treated)
    size = dimension * log(2.0 * e * n_others / dimension) + doubt
    of_others = 2.0**1.25 * sqrt(divergence) * (size / n_others) ** 0.375
    return float(max(treated, others) + largest * max(of_treated, of_others))
