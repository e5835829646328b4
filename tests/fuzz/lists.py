"""Certificates of rule lists and prunings on random problems, against enumeration.

``python -m tests.fuzz.lists --minutes 5 --seed 0``
"""

from collections.abc import Callable

from tests.fuzz.running import Check, Found, Problem, main
from tests.methods.budget.pruning import large as prunings
from tests.methods.lists import large

_MOST_CANDIDATES = 5


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


def _pruning_flaw(problem: Problem) -> str | None:
    listed, words = prunings.draw_listed(problem.rng)
    program = listed.program
    problem.note(
        splits=program.n_splits,
        uses=program.n_uses,
        prunings=len(listed.prunings),
        cost_of_all=float(listed.costs.max()),
    )
    flaw = next(prunings.flaws(listed, problem.rng), None)
    return None if flaw is None else f"{words}: {flaw}"


def _check(find: Callable[[Problem], str | None]) -> Check:
    def check(problem: Problem) -> None:
        flaw = find(problem)
        if flaw is not None:
            raise Found(flaw)

    return check


CHECKS = {"lists": _check(_list_flaw), "prunings": _check(_pruning_flaw)}


if __name__ == "__main__":
    main(CHECKS, "Certificates of rule lists and prunings")
