"""The lists near the best: sums of lists of the same parts if all are summed, otherwise draws.

`fitted` is a fitted `RuleListEstimator`, which imports this module.
"""

from collections.abc import Sequence
from math import log1p
from typing import Any

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.methods.lists.rule_list import ListedRules, RuleList
from bayescascade.model.near_best import Alternative, Alternatives
from bayescascade.report.page import count_of

_N_DRAWS = 10_000


def alternatives(fitted: Any) -> Alternatives[Any, Any]:
    """Return the models of a fitted rule list, the best first."""
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
    """Return the drawn lists, the best first."""
    if not fitted._draws.times:
        raise ParameterError(
            'search must be "auto", or draw lists, for the lists near the best, got '
            f"{fitted.summary_.method}"
        )
    drawn = {counted.rules: counted for counted in (fitted._best, *fitted._draws.counted)}
    found = [Alternative(item, fitted._log_density(item), rules) for rules, item in drawn.items()]
    return sorted(found, key=lambda rule_list: -rule_list.log_posterior)
