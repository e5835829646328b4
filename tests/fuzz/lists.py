"""Certificates of rule lists and prunings on random problems, against enumeration.

``python -m tests.fuzz.lists --minutes 5 --seed 0``
"""

import numpy as np

from tests.fuzz.running import Found, Problem, main
from tests.methods.rules import large

__all__ = ["try_list"]

_MOST_CANDIDATES = 5


def try_list(rng: np.random.Generator) -> str | None:
    """Draw one rule-list problem and check its proof; return what is wrong, None if nothing."""
    return _list_flaw(Problem(rng))


def _list_flaw(problem: Problem) -> str | None:
    rng = problem.rng
    is_density = bool(rng.random() < 0.35)
    most = int(rng.integers(3, _MOST_CANDIDATES + 1))
    posterior, words = large.draw_posterior(rng, is_density, most)
    weights = posterior.table.weights
    problem.note(
        kind="densities" if is_density else "labels",
        total_weight=float(weights.sum()),
        least_weight=float(weights.min()),
        concentration=posterior.concentration,
        expected_rules=posterior.prior.expected_rules,
        candidates=len(posterior.antecedents),
    )
    flaw = next(large.flaws(posterior, rng), None)
    return None if flaw is None else f"{words}: {flaw}"


def check_list(problem: Problem) -> None:
    """Raise Found if a list's certificate is wrong."""
    flaw = _list_flaw(problem)
    if flaw is not None:
        raise Found(flaw)


if __name__ == "__main__":
    main({"lists": check_list}, "Certificates of rule lists and prunings")
