"""The base of rule list estimators, and the density, Goh's Model III; labels: `classifier`.

Goh (2018), section 3.2.3; `models` has the formulas. Fitting searches for the most probable list by
annealing. By default, Metropolis-Hastings chains then start where the annealing chains ended, to
measure the uncertainty.

If the Dirichlet parameter of each class is not given, it is 1 for two classes. A parameter of 1 for
each of C classes adds C rows to every part of a list, which hides the information of few rows if
there are many classes. For more than two classes, it is the ``1 / 2^k >= 1 / C`` with the largest
probability of the labels, given a list from a short annealing; list and parameter are found in
turn.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from math import inf, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ModelFileError, TooLargeError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_choice
from bayescascade.base.watch import OutOfTime
from bayescascade.data.table import Table
from bayescascade.methods.lists import models
from bayescascade.methods.lists.antecedents import Antecedent
from bayescascade.methods.lists.density_list import LearnedDensityList
from bayescascade.methods.lists.draws import alternatives
from bayescascade.methods.lists.models import label_log_likelihood
from bayescascade.methods.lists.parameters import DensityListParameters, ListParameters
from bayescascade.methods.lists.posterior import (
    DensityListPosterior,
    LabelListPosterior,
    RuleListPosterior,
)
from bayescascade.methods.lists.rule_list import (
    ListedRules,
    RuleList,
    read_rules,
)
from bayescascade.model.density_estimator import DENSITIES, DensityEstimator
from bayescascade.model.estimator import PosteriorEstimator
from bayescascade.model.near_best import Alternatives, HasNearBest
from bayescascade.model.rounds import WORK, Rounds
from bayescascade.model.search import MOST_BLOCKS, Search
from bayescascade.model.solution import Certificate, Solution

if TYPE_CHECKING:
    from bayescascade.methods.lists.exact import BoundPoint

L = TypeVar("L", bound=ListedRules)

_START_SHARE = 10  # divisor of the steps before an exact search
_MOST_STEPS, _LEAST_STEPS = 1_000_000, 5_000  # of density lists
# Operations of all chains, and shares of the first round and of all rounds in them. Most of the
# work is for annealing, as in cascades: its steps are cheaper, as lists are short at first.
_WORK, _OF_ROUND, _OF_ROUNDS, _ANNEALING = 1e10, 0.2, 0.5, 5.0
_RULES, _RULES_OF_COLUMN = 10.0, 1.5  # approximate size of a list

_OF_SUM, _MORE = 1e9, 5  # operations of a sum over all lists, and times that for "exact"
_SUM_SHARE = 0.25  # of the time
OF_PROOF = 6e10  # operations of an exact search
_OF_PREFIX = 40.0  # for each candidate and word of rows

_ROUNDS = 3
_STEPS, _BLOCKS = 20_000, 125  # of an annealing


@dataclass(eq=False, repr=False)
class RuleListEstimator(HasNearBest, PosteriorEstimator[RuleList, L, L]):
    """The common part of both rule list estimators; the subclasses document the parameters."""

    learned_name: ClassVar[str] = "rules"
    learned_word: ClassVar[str] = "list"
    size_name: ClassVar[str] = "n_rules"
    size_words: ClassVar[tuple[str, str]] = ("rule", "rules")
    printed: ClassVar[tuple[str, ...]] = (
        "expected_rules", "expected_size", "concentration", "max_size", "min_support",
    )  # fmt: skip

    # fewer do not reach lists of other rules that are nearly as good, and steps are cheap
    _n_replicas: ClassVar[int] = 12
    _draws_of_sum = MOST_BLOCKS  # at most, for each chain that they replace
    _least_steps: ClassVar[int]  # by default

    expected_rules: float = ListParameters.expected_rules.default
    expected_size: float = ListParameters.expected_size.default
    concentration: float = ListParameters.concentration.default
    max_size: int = ListParameters.max_size.default
    _: KW_ONLY
    search: str = ListParameters.search.default
    memory_limit: float = ListParameters.memory_limit.default

    posterior_: RuleListPosterior = field(init=False)
    _n_candidates: Integers = field(init=False)  # for a model without its posterior

    @property
    def rules_(self) -> L:
        """The most probable list that was found."""
        return self.learned_

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the gains of the rules of `rules_`, (n_features_in_,) float64.

        The gain of a rule is a difference of log likelihoods of the rows that reach it: divided by
        the rule, minus undivided. It is shared equally by the columns of its conditions. The sum is
        1, or 0 for a list without rules.
        """
        return self.learned_.column_shares

    @property
    def n_candidates_(self) -> Integers:
        """Number of candidate rules with 0 (none), 1, 2, ... conditions, int64."""
        if "posterior_" in self.__dict__:
            return self.posterior_.antecedents.n_of_size
        check_is_fitted(self, "_best")
        return self._n_candidates

    @abstractmethod
    def _make_posterior(self, table: Table) -> RuleListPosterior:
        """Return the model's posterior given a table."""

    @abstractmethod
    def _most_steps_of(self, table: Table) -> float:
        """Return the default number of steps of plain chains."""

    def _default_steps(self, table: Table) -> int:
        most = self._most_steps_of(table)
        if self.search == "tempering":  # steps are per temperature
            most /= 2
        return int(max(self._least_steps, most))

    @property
    def _work_of_proof(self) -> float:
        """Operations of an exact search."""
        return OF_PROOF

    def _solve(self, posterior: RuleListPosterior, search: Search) -> Solution[RuleList]:
        """Sum over all lists; if they are too many, only search the best, or refuse if "auto"."""
        is_sure = search.search == "exact"
        work = WORK[search.effort] * _OF_SUM * (_MORE if is_sure else 1)
        try:
            with search.watch.part(_SUM_SHARE), search.watch.watching():
                return self._summed(posterior, search, work)
        except (TooLargeError, OutOfTime):
            if not is_sure or self.predictive == "average":
                raise
            return self._proved(posterior, search)
        except KeyboardInterrupt:
            none = RuleList()
            log_density = posterior.log_density(none)
            return Solution(None, none, log_density, None, seconds=0.0, interrupted=True)

    def _summed(
        self, posterior: RuleListPosterior, search: Search, work: float
    ) -> Solution[RuleList]:
        from bayescascade.methods.lists.exact import sum_over_lists

        started = perf_counter()
        found = sum_over_lists(posterior, most_work=work, memory_limit=self.memory_limit * 1e9)
        n_draws = min(self._n_blocks(posterior.table), self._draws_of_sum)
        drawn = found.draws(search.rng(), n_draws * int(search.n_chains))
        is_rounding = found.is_optimal and found.gap > 0
        return Solution(
            result=found,
            state=found.state,
            log_density=found.log_density,
            certificate=Certificate(
                found.gap, found.extent, found.log_evidence, is_rounding=is_rounding
            ),
            seconds=perf_counter() - started,
            draws=[drawn[i : i + n_draws] for i in range(0, len(drawn), n_draws)],
        )

    def _proved(self, posterior: RuleListPosterior, search: Search) -> Solution[RuleList]:
        from bayescascade.methods.lists.exact import best_list

        def report(point: "BoundPoint") -> None:
            if search.progress is not None:
                found = {"gap": point.upper_bound - point.log_density}
                search.progress(
                    samplers.Progress("proof", 0, 0, point.log_density, nan, nan, found)
                )

        started = perf_counter()
        with search.watch.part(0.5):
            annealed = replace(search, search="anneal").run(
                posterior,
                default_steps=max(1, self._default_steps(posterior.table) // _START_SHARE),
                rounds=self._rounds(posterior.table),
            )
        left = 0.0 if annealed.interrupted else search.watch.left  # 0: only a bound, no search
        a_prefix = _OF_PREFIX * len(posterior.antecedents) * posterior.rows.everyone.size
        most = max(1, int(WORK[search.effort] * self._work_of_proof / max(a_prefix, 1)))
        found = best_list(
            posterior,
            start=annealed.best_state,
            time_limit=None if left == inf else left,
            memory_limit=self.memory_limit * 1e9,
            progress=report,
            max_visited=most,
        )
        extent = f"searched {found.n_visited:,} prefixes"
        if not found.is_optimal and found.n_visited >= most:
            extent += ", the limit of the search"
        is_rounding = found.is_optimal and found.gap > 0
        is_interrupted = annealed.interrupted or found.interrupted
        return Solution(
            result=found,
            state=found.state,
            log_density=found.log_density,
            certificate=Certificate(found.gap, extent, None, is_rounding=is_rounding),
            seconds=perf_counter() - started,
            interrupted=is_interrupted,
            timed_out=not (found.is_optimal or is_interrupted) and found.n_visited < most,
        )

    @abstractmethod
    def _list(self, rules: tuple[Antecedent, ...], counts: Floats) -> L:
        """Return the list with these rules and these weights of its parts."""

    def _alternatives(self, nats: float) -> Alternatives[Any, L]:
        del nats  # all are listed
        return alternatives(self)

    def _count(self, state: RuleList) -> L:
        rules = tuple(self.posterior_.antecedents[rule] for rule in state.rules)
        return self._list(rules, self.posterior_.counts(state))

    def _readable(self, counted: L) -> L:
        return self._list(counted.rules, counted.counts)

    def _log_density(self, counted: L) -> float:
        sizes = [len(rule) for rule in counted.rules]
        prior = models.ListPrior(self.expected_rules, self.expected_size)
        has_rows = "posterior_" in self.__dict__
        n_candidates = self.n_candidates_ if has_rows else self._n_candidates
        return prior.log_prior(sizes, n_candidates) + self._log_likelihood(counted)

    @abstractmethod
    def _log_likelihood(self, counted: L) -> float:
        """Return the log likelihood of a list, nats, given its weights."""

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "n_candidates": self.n_candidates_.tolist()}

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        super()._read_columns(record)
        given: int | str = self.max_size  # "auto" is 2 or 3
        most = min(len(record["n_candidates"]) - 1, 3) if isinstance(given, str) else given
        shape = (min(most, self.schema_.n_columns) + 1,)
        limits = {"least": 0, "most": 1 << 53}
        self._n_candidates = read_array(record, "n_candidates", shape, np.int64, **limits)
        if self._n_candidates[0] != 0:
            raise ValueError("a saved model's candidates must have conditions")


@dataclass(eq=False, repr=False)
class DensityRuleList(
    RuleListEstimator[LearnedDensityList],
    DensityEstimator[RuleList, LearnedDensityList, LearnedDensityList],
):
    """A density by a list of rules, "if ..., else if ..., else" (Goh 2018, Model III).

    Parameters
    ----------
    expected_rules
        Mean of the Poisson on the number of rules.
    expected_size
        Mean of the Poisson on the number of conditions of a rule.
    concentration
        Dirichlet parameter of each part: the number of pseudo-rows in each part.
    max_size
        Maximum number of conditions per rule. All conjunctions up to this size are candidate rules,
        so their number grows quickly.
    search
        "auto": sums over all lists if this takes about a second (few distinct rows, or few
        candidates), and otherwise does the next. "anneal+metropolis" searches the best list by
        annealing, and then samples from there. "anneal" only anneals; "metropolis" (plain chains)
        and "tempering" (replica exchange) only sample. "exact" sums over all lists with much more
        work: the most probable list, the log evidence and independent draws, all but a proved share
        below 1e-6. If the lists are still too many, it anneals, and then proves by branch and bound
        that no list is more probable, or finds a better one, without posterior draws.
    n_steps
        Proposals per chain, both in annealing and in sampling; a quarter of the sampling is
        discarded as warm-up. None: the number that `effort` allows, most of them for annealing.
        Sampling may continue after these steps; see `until`.
    until
        When to stop sampling if `n_steps` is None. "steps": after the default number of steps.
        "agreed": when R-hat is at most 1.01 and the effective sample size at least 400, or when the
        work of the `effort` is done; see `bayescascade.explore`.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    memory_limit
        Limit in gigabytes, for the candidate rules and, in an exact search, also for the prefixes
        that are not yet searched.
    progress : callable, optional
        Called with a `samplers.Progress` about twice a second.
    time_limit
        Seconds, from its beginning, after which `fit` stops with the best result so far, which
        `summary_` reports. The result may then depend on the machine. An exact search returns its
        best list and a bound on how much more probable another list may be. Listing the candidate
        rules is not interrupted, nor is compiling at the first fit. Annealing gets up to half of
        the remaining time.

    Attributes
    ----------
    rules_ : LearnedDensityList
        The most probable list that was found.
    n_candidates_ : (min(max_size, n_columns) + 1,) int64
        Number of candidate rules with 0 (none), 1, 2, ... conditions.
    log_posterior_ : float
        Log posterior density of `rules_`, nats, unnormalized.
    exact_ : ListSum or CertifiedList
        Result of an exact search; see `bayescascade.methods.lists.exact`.
    posterior_ : DensityListPosterior
        The posterior. A model read from a file does not have it, because files contain no rows.
    run_ : PosteriorRun
        Draws, traces, acceptance; see `PosteriorRun.to_inference_data`. Not in a loaded model.
    summary_ : FitSummary
        The summary that is printed and saved: data, convergence, posterior of rules and columns.
    schema_ : Schema
        Columns and levels.
    feature_importances_ : (n_features_in_,) float64
        Share of each column in the log likelihood that the rules of `rules_` gain.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import DensityRuleList
    >>> sky = ["grey"] * 30 + ["blue", "red"] * 5
    >>> frame = pd.DataFrame({"sky": sky, "wind": ["yes", "no"] * 20})
    >>> model = DensityRuleList(n_steps=200, random_state=0).fit(frame)
    >>> model.rules_.n_rules
    1
    >>> model.explain({"sky": "grey", "wind": "no"})
    'sky is grey: 30 of 40 rows, probability 0.7381, density 0.369, 2.21 x uniform'
    """

    model_name: ClassVar[str] = "DensityRuleList"
    title: ClassVar[str] = "density rule list"
    purpose: ClassVar[str] = (
        "Which groups of rows are common and which are rare, as a list of rules. Read it from "
        "the top."
    )

    declares = DensityListParameters

    _least_steps: ClassVar[int] = _LEAST_STEPS

    posterior_: DensityListPosterior = field(init=False)

    def _make_posterior(self, table: Table) -> DensityListPosterior:
        self.posterior_ = DensityListPosterior(
            table, self.expected_rules, self.expected_size, self.concentration, self.max_size,
            self.memory_limit,
        )  # fmt: skip
        return self.posterior_

    def _rounds(self, table: Table) -> Rounds:
        del table
        return Rounds(plain=7, most=_OF_ROUNDS * _WORK, annealing=_ANNEALING)

    def _most_steps_of(self, table: Table) -> float:
        # with more columns, lists are longer, and their volumes take longer and longer
        n_rules = _RULES + _RULES_OF_COLUMN * table.schema.n_columns
        a_step = self.n_chains * self.posterior_.operations(n_rules)
        return min(_MOST_STEPS, _OF_ROUND * _WORK / a_step)

    def _list(self, rules: tuple[Antecedent, ...], counts: Floats) -> LearnedDensityList:
        check_choice("density", self.density, DENSITIES)
        if self.density == "empirical":
            probabilities = counts / counts.sum()
        else:
            probabilities = models.part_probabilities(counts, self.concentration)
        return LearnedDensityList(self.schema_, rules, counts, probabilities)

    def _read_counted(self, record: Mapping[str, Any]) -> LearnedDensityList:
        listed = self._list(*read_rules(record, self.schema_, self._n_candidates))
        if np.isneginf(listed.log_volumes).any():
            raise ModelFileError("every part of a saved density list must capture a cell")
        return listed

    def _log_likelihood(self, counted: LearnedDensityList) -> float:
        return models.density_log_likelihood(
            counted.counts, counted.log_volumes, self.concentration
        )


def with_chosen_concentration(posterior: LabelListPosterior) -> LabelListPosterior:
    """Return the posterior with the concentration chosen by the rows; the given one must have 1."""
    n_classes = posterior.class_weights.size
    if n_classes == 2:
        return posterior
    values = [0.5**k for k in range(int(math.log2(n_classes)) + 1)]
    search = Search("anneal", _STEPS, 1, 1, 0, None, resume=False, progress=None)
    for _ in range(_ROUNDS):
        found = search.run(posterior, default_steps=_STEPS, n_blocks=_BLOCKS)
        counts = posterior.counts(found.best_state)
        best = int(np.argmax([label_log_likelihood(counts, value) for value in values]))
        if values[best] == posterior.concentration:
            break
        posterior = posterior.with_concentration(values[best])
    return posterior
