"""The estimator of densities by rule lists, Goh's Model III; `classifier` has that of labels.

Goh (2018), section 3.2.3; `models` has the formulas. Fitting anneals for the most probable list and
then, by default, runs Metropolis-Hastings chains from where the annealing chains ended, for how
sure one can be.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import samplers
from bayescascade.base.constructor import Continuous, Names, Ordinal, store_parameters
from bayescascade.base.errors import ModelFileError
from bayescascade.base.validation import check_choice
from bayescascade.data.table import Table
from bayescascade.methods.rules.base import RuleListEstimator
from bayescascade.methods.rules.density_list import DensityList
from bayescascade.methods.rules.models import density_log_likelihood, density_probabilities
from bayescascade.methods.rules.parts import log_first_volumes
from bayescascade.methods.rules.posterior import DensityListPosterior
from bayescascade.methods.rules.rule_list import CountedRules, RuleList
from bayescascade.model.estimator import DENSITIES, DensityEstimator
from bayescascade.model.search import Seed

__all__ = ["DensityRuleList"]

_FEW_COLUMNS = 4


class DensityRuleList(
    RuleListEstimator[DensityList], DensityEstimator[RuleList, CountedRules, DensityList]
):
    """Density as a list of rules, "if ..., else if ..., else" (Goh 2018, Model III).

    Parameters
    ----------
    expected_rules : float in (0, 10,000]
        Mean of the Poisson on the number of rules.
    expected_size : float in (0, 10,000]
        Mean of the Poisson on the number of conditions of a rule.
    concentration : float > 0
        Dirichlet parameter of every part: as if that many rows had been seen in each.
    max_size : int >= 1
        Most conditions of a rule; no more than there are columns are ever used. All conjunctions up
        to that size are candidates: their number grows quickly with it.
    density : {"posterior_mean", "empirical"}
        Probability of a part: ``(n_l + alpha) / (n + K alpha)``, or ``n_l / n``, which is zero on
        an empty part.
    predictive : {"map", "average"}
        Score and draw from the most probable list, or from the average over posterior draws.
    search : {"exact", "anneal+metropolis", "anneal", "metropolis", "tempering"}
        Anneal for the best list and sample from there; only anneal; or only sample, by plain
        chains or by replica exchange. "exact" anneals and then, by branch and bound, proves that no
        list is more probable, or finds a better one; it draws nothing.
    n_steps : int >= 1 or None
        Proposals per chain in each of annealing and sampling; a quarter of the sampling is
        discarded as warm-up. None: 1,000,000, and for more than 4 columns or 200,000 distinct rows
        fewer, so that it does not take too long; half of that for "tempering", per temperature.
    n_chains : int >= 1
        Independent chains.
    n_jobs : int or None
        Chains run in parallel, as joblib counts workers; the result does not depend on it.
    random_state : int, SeedSequence, Generator or None
        Seed of everything random.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    memory_limit : float > 0
        Gigabytes that the candidates may take, and those of an exact search its unfinished lists.
    time_limit : float > 0 or None
        Seconds after which an exact search stops, with a bound on how much more probable another
        list may be; None for no limit: only Ctrl-C ends it early. They begin with `fit`, and up to
        half of what finding the candidates leaves of them is the annealing's. What is begun of
        finding candidates, or laying out the cells of the domain, is finished.
    checkpoint : path, optional
        File to save the run to every few seconds, so that it can go on after a crash.
    resume : bool
        Go on with the run in `checkpoint`; the result is that of a run never interrupted.
    progress : callable, optional
        Called with a `samplers.Progress` about twice a second.

    Attributes
    ----------
    rules_ : DensityList
        The most probable list found.
    n_candidates_ : (min(max_size, n_columns) + 1,) int64
        Number of candidates for rules of 0 (none), 1, .. conditions.
    log_posterior_ : float
        Log posterior density of `rules_`, nats, unnormalized.
    posterior_ : DensityListPosterior
        The posterior; not there in a model read from a file, which holds no data.
    run_ : PosteriorRun
        Draws, traces, acceptance; see `PosteriorRun.to_inference_data`. Not in a loaded model.
    summary_ : FitSummary
        What is printed and saved: data, convergence, posterior of rules and columns.
    schema_ : Schema
        Columns and levels.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import DensityRuleList
    >>> frame = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 10, "wind": ["yes", "no"] * 20})
    >>> model = DensityRuleList(n_steps=2000, random_state=0).fit(frame)
    >>> model.rules_.n_rules
    1
    >>> model.explain({"sky": "grey", "wind": "no"})
    'anything else: 30 of 40 rows, probability 0.7381, density 0.369, 1.48 x uniform'
    """

    model_name: ClassVar[str] = "rules"
    title: ClassVar[str] = "density rule list"

    posterior_: DensityListPosterior

    def __init__(
        self,
        expected_rules: float = 3.0,
        expected_size: float = 1.0,
        concentration: float = 1.0,
        max_size: int = 2,
        *,
        density: str = "posterior_mean",
        predictive: str = "map",
        search: str = "anneal+metropolis",
        n_steps: int | None = None,
        n_chains: int = 4,
        n_jobs: int | None = 1,
        random_state: Seed = None,
        columns: Names = None,
        drop: Names = None,
        nominal: Names = None,
        ordinal: Ordinal = None,
        continuous: Continuous = None,
        missing: str = "error",
        memory_limit: float = 2.0,
        time_limit: float | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[samplers.Progress], object] | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _make_posterior(self, table: Table) -> DensityListPosterior:
        return DensityListPosterior(
            table,
            self.expected_rules,
            self.expected_size,
            self.concentration,
            self.max_size,
            self.memory_limit,
        )

    def _most_steps_of(self, table: Table) -> float:
        # in more columns lists are longer, and it takes ever longer to count what a rule captures
        return 1_000_000 * min(1.0, (_FEW_COLUMNS / table.schema.n_columns) ** 3)

    def _count(self, state: RuleList) -> CountedRules:
        return CountedRules(self._rules_of(state), self.posterior_.counts(state))

    def _readable(self, counted: CountedRules) -> DensityList:
        check_choice("density", self.density, DENSITIES)
        counts = counted.counts
        if self.density == "empirical":
            probabilities = counts / counts.sum()
        else:
            probabilities = density_probabilities(counts, self.concentration)
        return DensityList(self.schema_, counted.rules, counts, probabilities)

    def _read_counted(self, record: Mapping[str, Any]) -> CountedRules:
        counted = CountedRules.from_record(record, self.schema_, self._n_candidates)
        if np.isneginf(log_first_volumes(self.schema_, counted.rules)).any():
            raise ModelFileError("every part of a saved density list must capture a cell")
        return counted

    def _log_likelihood(self, counted: CountedRules) -> float:
        log_volumes = log_first_volumes(self.schema_, counted.rules)
        return density_log_likelihood(counted.counts, log_volumes, self.concentration)
