"""Averages of label lists over posterior draws, and the lists near the best.

A class's probability has a Beta distribution in each part of each draw. Over the draws it has a
mixture of these, whose mean and quantiles are computed here. Drawn lists are similar, so there are
few different components: a mixture is a row of a sparse matrix of weights over them.

`alternatives` gives the lists near the best: sums of lists of the same parts if all are summed,
otherwise draws.
"""

from collections.abc import Sequence
from math import log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import elementwise
from scipy.sparse import csr_array
from scipy.special import betainc

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_probability
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.methods.lists.models import label_beta_parameters
from bayescascade.methods.lists.rule_list import ListedRules, RuleList
from bayescascade.model.near_best import Alternative, Alternatives
from bayescascade.report.page import count_of

Indices = NDArray[np.intp]

_MOST_PARTS = 1 << 26  # rows times draws, held at once
_TOLERANCES = {"xatol": 1e-10, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0}
_MOST_BETAS = 1 << 20  # Betas evaluated at once


def average_probabilities(draws: Sequence[LabelList], times: Floats, codes: Codes) -> Floats:
    """Return mean class probabilities, (n_rows, n_classes), over draws weighted by `times`."""
    total = np.zeros((codes.shape[1], draws[0].n_classes))
    for labels, n in zip(draws, times, strict=True):
        total += n * labels.probabilities[labels.part_of_codes(codes)]
    averaged: Floats = total / times.sum()
    return averaged


def average_intervals(
    draws: Sequence[LabelList], times: Floats, codes: Codes, level: float
) -> Floats:
    """Return equal-tailed credible intervals over draws, (n_rows, n_classes, 2) float64.

    `level`, in (0, 1), is separate for each class; all draws must have the same concentration.
    """
    level = check_probability("level", level, strict=True)
    columns = sorted({c.column for labels in draws for rule in labels.rules for c in rule})
    _, first, position = np.unique(codes[columns], axis=1, return_index=True, return_inverse=True)
    intervals = np.empty((first.size, draws[0].n_classes, 2))
    at_once = max(1, _MOST_PARTS // len(draws))
    for start in range(0, first.size, at_once):
        chosen = slice(start, start + at_once)
        intervals[chosen] = _intervals(draws, times, codes[:, first[chosen]], level)
    return intervals[position.reshape(-1)]


def _intervals(draws: Sequence[LabelList], times: Floats, codes: Codes, level: float) -> Floats:
    """Return the result of `average_intervals`, computed once for rows in the same parts."""
    parts = np.array([labels.part_of_codes(codes) for labels in draws], np.uint8)
    first, position = _different_columns(parts)
    counts, weights = _mixtures(draws, times / times.sum(), parts[:, first])
    of_class, of_others = label_beta_parameters(counts, draws[0].concentration)
    tails = ((1 - level) / 2, (1 + level) / 2)
    if draws[0].n_classes > 2:
        return mixture_quantiles(of_class, of_others, weights, tails)[position]
    second = mixture_quantiles(of_class[:, 1:], of_others[:, 1:], weights, tails)
    return np.concatenate([1.0 - second[..., ::-1], second], axis=1)[position]


def _mixtures(
    draws: Sequence[LabelList], shares: Floats, parts: NDArray[np.uint8]
) -> tuple[Floats, csr_array]:
    """Return the distinct counts (n_counts, n_classes) and their weights (n_rows, n_counts)."""
    counts, which = np.unique(
        np.concatenate([labels.counts for labels in draws]), axis=0, return_inverse=True
    )
    first_part = np.cumsum([0, *(len(labels.counts) for labels in draws[:-1])])
    components = which.reshape(-1)[first_part[:, np.newaxis] + parts]
    n_draws, n_rows = parts.shape
    entries = (np.repeat(shares, n_rows), (np.tile(np.arange(n_rows), n_draws), components.ravel()))
    # parts with equal counts in different draws are one component: their shares are summed
    return counts, csr_array(entries, shape=(n_rows, len(counts)))


def _different_columns(values: NDArray[np.uint8]) -> tuple[Indices, Indices]:
    """Return the index of one column of each distinct value, and each column's value number."""
    rows = np.ascontiguousarray(values.T)
    # whole rows as single values: comparing byte by byte sorts them several times faster
    whole = rows.view(np.dtype((np.void, rows.shape[1]))).reshape(-1)
    _, first, position = np.unique(whole, return_index=True, return_inverse=True)
    return first, position


def mixture_quantiles(
    of_class: Floats, of_others: Floats, weights: csr_array, levels: Sequence[float]
) -> Floats:
    """Return the quantiles of each mixture at each level, in (0, 1).

    of_class, of_others (n_components, n_classes) > 0: parameters of each component's Betas; weights
    (n_mixtures, n_components) >= 0 with sum 1; result (n_mixtures, n_classes, n_levels), to 1e-10.
    """
    n_mixtures, n_classes = weights.shape[0], of_class.shape[1]
    quantiles = np.empty((n_mixtures, n_classes, len(levels)))
    n_components = np.diff(weights.indptr)
    at_once = max(1, _MOST_BETAS // (int(n_components.max()) * n_classes * len(levels)))

    def excess(x: Floats, mixture: Indices, label: Indices, level: Floats) -> Floats:
        return _cdf(x, mixture, label, of_class, of_others, weights) - level

    for start in range(0, n_mixtures, at_once):
        chosen = np.arange(start, min(start + at_once, n_mixtures))
        wanted = np.meshgrid(chosen, np.arange(n_classes), levels, indexing="ij")
        args = tuple(share.ravel() for share in wanted)
        find_root = elementwise.find_root
        found = find_root(excess, (0.0, 1.0), args=args, tolerances=_TOLERANCES)
        quantiles[chosen] = found.x.reshape(wanted[0].shape)
    return quantiles


def _cdf(
    x: Floats,
    mixture: Indices,
    label: Indices,
    of_class: Floats,
    of_others: Floats,
    weights: csr_array,
) -> Floats:
    """Return the distribution function of a class in a mixture at each point; all arrays (n,)."""
    n_components = np.diff(weights.indptr)[mixture]
    ends = np.cumsum(n_components)
    starts = ends - n_components
    # entries of the components of all these mixtures, one mixture after the other
    entries = np.arange(ends[-1]) + np.repeat(weights.indptr[mixture] - starts, n_components)
    components, labels = weights.indices[entries], np.repeat(label, n_components)
    below = betainc(
        of_class[components, labels], of_others[components, labels], np.repeat(x, n_components)
    )
    return np.add.reduceat(weights.data[entries] * below, starts)


_N_DRAWS = 10_000


def alternatives(fitted: Any) -> Alternatives[Any, Any]:
    """Return the models of a fitted `RuleListEstimator`, which imports this module, best first."""
    from bayescascade.methods.lists.exact import ListSum

    def readable(state: Any) -> Any:  # a `RuleList` or a draw
        counted = fitted._count(state) if isinstance(state, RuleList) else state
        return fitted._readable(counted)

    def parts(learned: ListedRules) -> dict[str, str]:
        sizes = learned.counts.reshape(learned.n_rules + 1, -1).sum(axis=1).tolist()
        return {label: f"{n:,.4g}" for label, n in zip(learned.labels, sizes, strict=True)}

    def predictions(models: Sequence[Any], X: Any) -> Floats:
        codes = fitted.encode(X)
        if hasattr(fitted, "classes_"):
            return np.array([model.probabilities[model.part_of_codes(codes)] for model in models])
        return np.array([model.score_codes(codes) for model in models])

    known: dict[str, Any] = {"readable": readable, "parts": parts, "predictions": predictions}
    known["importances"] = lambda state: readable(state).column_shares
    exact = fitted.__dict__.get("exact_")
    if not isinstance(exact, ListSum):
        return Alternatives(
            states=_drawn(fitted), is_proved=False, log_sum=None, nouns=("list", "lists"), same="",
            found=f"among {count_of(len(fitted._draws.times), 'drawn list')}", **known,
        )  # fmt: skip
    models = exact.models(np.random.default_rng(0), _N_DRAWS)
    low, high = exact.log_total - exact.rounding, exact.log_total + exact.rounding
    return Alternatives(
        states=[
            Alternative(model.best, model.log_mass, i, model.n_lists)
            for i, model in enumerate(models)
        ],
        is_proved=True,
        log_sum=(low, high + log1p(exact.lost)),
        found="",
        nouns=("list", "lists"),
        same="lists of the same parts",
        **known,
    )


def _drawn(fitted: Any) -> list[Alternative[Any]]:
    if not fitted._draws.times:
        raise ParameterError(
            'search must be "auto", or draw lists, for the lists near the best, got '
            f"{fitted.summary_.method}"
        )
    drawn = {counted.rules: counted for counted in (fitted._best, *fitted._draws.counted)}
    found = [Alternative(item, fitted._log_density(item), rules) for rules, item in drawn.items()]
    return sorted(found, key=lambda rule_list: -rule_list.log_posterior)
