"""What both estimators of rule lists do: rules, candidates and their prior."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.validation import check_integer, check_real
from bayescascade.data.table import Table
from bayescascade.methods.rules.antecedents import Antecedent
from bayescascade.methods.rules.models import ListPrior
from bayescascade.methods.rules.posterior import (
    DensityListPosterior,
    LabelListPosterior,
    RuleListPosterior,
)
from bayescascade.methods.rules.rule_list import CountedRules, RuleList, read_numbers_of_candidates
from bayescascade.model.estimator import PosteriorEstimator
from bayescascade.model.learned import Readable
from bayescascade.model.search import SAMPLED, Search
from bayescascade.model.solution import Certificate, Solution

if TYPE_CHECKING:
    from bayescascade.methods.rules.exact import BoundPoint

__all__ = ["RuleListEstimator"]

L = TypeVar("L", bound=Readable)

_START_SHARE = 10  # an exact search starts from the best list that so many times fewer steps find


class RuleListEstimator(PosteriorEstimator[RuleList, CountedRules, L]):
    """What both estimators of rule lists do; the subclasses document the parameters."""

    learned_name: ClassVar[str] = "rules"
    learned_word: ClassVar[str] = "list"
    size_name: ClassVar[str] = "n_rules"
    size_words: ClassVar[tuple[str, str]] = ("rule", "rules")
    printed: ClassVar[tuple[str, ...]] = (
        "expected_rules", "expected_size", "concentration", "max_size", "min_support",
    )  # fmt: skip

    _later_parameters: ClassVar[frozenset[str]] = frozenset(("memory_limit",))

    # fewer do not reach across where lists of other rules are nearly as good, and steps are cheap
    _n_replicas: ClassVar[int] = 16

    # "auto" would have to foretell how long a proof takes, which nobody can
    _searches: ClassVar[Sequence[str]] = ("exact", *SAMPLED)
    _drawless_searches: ClassVar[Sequence[str]] = ("anneal", "exact")

    expected_rules: float
    expected_size: float
    time_limit: float | None
    max_size: int
    memory_limit: float
    posterior_: RuleListPosterior
    _n_candidates: NDArray[np.int64]  # of a model read from a file, which has no posterior

    @property
    def rules_(self) -> L:
        """The most probable list found."""
        return self.learned_

    @property
    def n_candidates_(self) -> NDArray[np.int64]:
        """Number of candidates for rules of 0 (none), 1, .. conditions, int64."""
        check_is_fitted(self, "_best")
        if "posterior_" in self.__dict__:
            return self.posterior_.antecedents.n_of_size
        return self._n_candidates

    @abstractmethod
    def _make_posterior(self, table: Table) -> RuleListPosterior:
        """Return the model's posterior given a table."""

    @abstractmethod
    def _most_steps_of(self, table: Table) -> float:
        """Return the default steps, if the table has at most 200,000 distinct rows."""

    def _default_steps(self, table: Table) -> int:
        most = self._most_steps_of(table)
        if self.search == "tempering":  # which takes that many at each temperature
            most /= 2
        return int(max(50_000, min(most, most * 200_000 / max(table.n_distinct, 1))))

    def _check_model(self) -> None:
        self._prior()
        check_real("concentration", self.concentration, above=0.0)
        check_integer("max_size", self.max_size, minimum=1)
        check_real("memory_limit", self.memory_limit, above=0.0)
        if self.time_limit is not None:
            check_real("time_limit", self.time_limit, above=0.0)

    def check_parameters(self) -> Search:
        """Return how to search, from now on; raises ParameterError if a parameter is bad."""
        search = super().check_parameters()
        if self.time_limit is None or self.search != "exact":
            return search
        return replace(search, deadline=perf_counter() + self.time_limit)

    def _solve(
        self, posterior: DensityListPosterior | LabelListPosterior, search: Search
    ) -> Solution[RuleList]:
        from bayescascade.methods.rules.exact import best_list

        started = perf_counter()
        annealed = replace(search, search="anneal", deadline=(started + search.deadline) / 2).run(
            posterior, default_steps=self._default_steps(posterior.table) // _START_SHARE
        )
        time_left = None
        if annealed.interrupted:  # a bound, and no search
            time_left = 0.0
        elif self.time_limit is not None:
            time_left = max(0.0, search.deadline - perf_counter())
        found = best_list(
            posterior,
            start=annealed.best_state,
            time_limit=time_left,
            memory_limit=self.memory_limit * 1e9,
            progress=_reporter(search.progress),
        )
        return Solution(
            result=found,
            state=found.state,
            log_density=found.log_density,
            certificate=Certificate(
                gap=found.gap,
                extent=f"{found.n_visited:,} beginnings of lists",
                log_evidence=None,
            ),
            seconds=perf_counter() - started,
            interrupted=annealed.interrupted or found.interrupted,
        )

    def _prior(self) -> ListPrior:
        return ListPrior(self.expected_rules, self.expected_size)

    def _rules_of(self, state: RuleList) -> tuple[Antecedent, ...]:
        """Return the conditions of a list's rules, by `posterior_`."""
        return tuple(self.posterior_.antecedents[rule] for rule in state.rules)

    def _log_density(self, counted: CountedRules) -> float:
        log_prior = self._prior().log_prior(counted.sizes, self._n_candidates)
        return log_prior + self._log_likelihood(counted)

    @abstractmethod
    def _log_likelihood(self, counted: CountedRules) -> float:
        """Return the log likelihood of a list, nats, by its weights."""

    def _own_record(self) -> dict[str, Any]:
        return {"n_candidates": self.n_candidates_.tolist()}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        most = min(self.max_size, self.schema_.n_columns)
        self._n_candidates = read_numbers_of_candidates(record["n_candidates"], most)


def _reporter(
    progress: Callable[[samplers.Progress], object] | None,
) -> "Callable[[BoundPoint], None] | None":
    """Return what tells `progress`, which hears of samplers, how far a proof is."""
    if progress is None:
        return None
    nan = float("nan")

    def report(point: "BoundPoint") -> None:
        gap = point.upper_bound - point.log_density
        progress(samplers.Progress("proof", 0, 0, point.log_density, nan, nan, {"gap": gap}))

    return report
