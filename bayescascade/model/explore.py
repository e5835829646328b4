"""From a posterior and a search to a result: all methods use this function.

`explore` needs what `samplers` needs: a log density, a start, and moves or a compiled block of
steps. Optional methods of a posterior are used if they exist: ``describe`` (traces), ``legend``
(what these mean), ``table`` (the rows), ``parameters``, ``canonical``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from sklearn.exceptions import ConvergenceWarning

import samplers
from bayescascade.base.errors import ParameterError, TooLargeError, warn_user
from bayescascade.base.watch import OutOfTime
from bayescascade.model.draws import PosteriorRun, TraceLegend
from bayescascade.model.rounds import OF_CHAINS, Rounds
from bayescascade.model.search import DEFAULT_STEPS, MOST_BLOCKS, Search, Seed
from bayescascade.model.solution import Certificate, Solution, state_run
from bayescascade.model.summary import FitSummary, summarize
from bayescascade.report.numbers import nats_text
from bayescascade.report.page import BLANK, Page, Pieces
from bayescascade.report.printed import Printed

S = TypeVar("S")

_OF_STARTS = 0.25  # share of the time for the starts of chains

Solver = Callable[[Any, Search], Solution[S]]
"""Finds the best state of a posterior with a proof; raises TooLargeError beyond the limits."""


@dataclass(frozen=True, eq=False)
class SearchResult(Printed, Generic[S]):
    """The result of `explore`.

    Attributes
    ----------
    state : S
        The most probable state that was found; among equivalent states, the canonical one of the
        posterior.
    log_density : float
        Its log density, nats, unnormalized.
    run_ : PosteriorRun
        Draws, traces, acceptance.
    summary_ : FitSummary
        Convergence (R-hat, effective sample size), acceptance, shares of the draws.
    posterior : Posterior
    solution : Solution or None
        Result of an exact search, with its proof.
    """

    state: S
    log_density: float
    run_: PosteriorRun[S] = field(repr=False)
    summary_: FitSummary = field(repr=False)
    posterior: Any = field(repr=False)  # Any: the posterior of the search
    solution: Solution[S] | None = field(default=None, repr=False)

    @property
    def certificate(self) -> Certificate | None:
        """The proof, or None."""
        return None if self.solution is None else self.solution.certificate

    def to_inference_data(self) -> Any:  # Any: InferenceData or DataTree, by ArviZ's version
        """Return the draws for ArviZ; see `Trace.to_inference_data`."""
        return self.run_.to_inference_data()

    def save_trace(self, path: str | Path) -> None:
        """Write the draws as netCDF; ``bayescascade diagnose`` and ArviZ read it."""
        self.run_.save_trace(path)

    def page(self) -> Page:
        """Return the state and the diagnostics."""
        found = self.summary_.found_words("state")
        state = " ".join(f"state {self.state!r}".split())
        value = f"log density {nats_text(self.log_density)}"
        return (Pieces([found, value, state]), BLANK, *self.run_.trace.page())


def explore(
    posterior: Any,  # Any: the contract is structural, for users' own classes
    search: str = "anneal+metropolis",
    *,
    n_steps: int | None = None,
    n_chains: int = 4,
    n_draws: int = MOST_BLOCKS,
    n_jobs: int | None = 1,
    random_state: Seed = None,
    starts: Sequence[S] | None = None,
    n_replicas: int = 6,
    solve: Solver[S] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[samplers.Progress], object] | None = None,
    time_limit: float | None = None,
    until: str = "agreed",
    effort: str = "normal",
) -> SearchResult[S]:
    """Find the most probable state of a posterior, and sample it.

    Parameters
    ----------
    posterior : Posterior or GibbsPosterior
        Of a class of this package or of your own: ``log_density(state)`` (nats, -inf off the
        support), ``initial_state(rng)`` unless `starts` are given, and ``moves()`` or ``advance``,
        or for searches by gradient ``log_density_and_gradient(state)`` of a (d,) float64 state.
    search : {"anneal+metropolis", "anneal", "metropolis", "tempering", "ascent+langevin", \
"ascent", "langevin", "auto", "exact"}
        "anneal+metropolis": look for the best state by annealing, and sample from there. "anneal"
        and "metropolis" do only one of these; "tempering" samples by replica exchange. For
        densities over vectors with a gradient: "ascent+langevin" climbs from each start to a local
        maximum and samples from there along the gradient; "ascent" and "langevin" do only one of
        these. "exact" needs `solve`. "auto" is exact if that is cheap.
    n_steps : int >= 1, optional
        Proposals per chain, both in annealing and in sampling; a quarter of the sampling is
        discarded as warm-up. Default: 50,000 for annealing, and for sampling see `until`; and see
        `effort`.
    n_chains : int >= 1
    n_draws : int >= 1
        Number of draws to keep per chain, and of temperatures of an annealing.
    n_jobs : int or None
        Chains run in parallel, as joblib counts workers; the result does not depend on it.
    random_state : int, SeedSequence, Generator or None
    starts : sequence of states, one per chain, optional
    n_replicas : int >= 2
        Temperatures of a replica exchange.
    solve : callable, optional
        ``solve(posterior, search)`` returns a `Solution`.
    checkpoint : path, optional
        File to which the run is saved every few seconds, so that it can continue after a crash.
    resume : bool
        Continue the run in `checkpoint`. The result is the same as that of an uninterrupted run.
    progress : callable, optional
        Called with a `samplers.Progress` about twice a second.
    time_limit : float > 0 or None
        Seconds after which the search stops with the best result so far, which then depends on the
        machine. Annealing or climbing before sampling takes at most half of the time. Steps that
        have started are finished, such as a step of your own posterior, or compiling at first use.
    until : {"agreed", "steps"}
        How long chains run if `n_steps` is not given. "agreed": until R-hat is at most 1.01 and the
        effective sample size is at least 400. After a first round of 50,000 steps there are up to
        three more, with the same number, twice and four times this number. Each round discards
        earlier draws. There is no further round if even the last one would give too few effective
        draws. "steps": 50,000 in any case.
    effort : {"normal", "quick", "thorough"}
        If `n_steps` is not given: a quarter of these steps and one round ("quick"), or five times
        as many steps ("thorough").

    Returns
    -------
    Found
        The result; printing it shows a page. If Ctrl-C or the time limit ends the search early, it
        is the best result so far, and `summary_` says so.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, if search "exact" lacks `solve`, or if a search by
        gradient lacks the gradient of the posterior.
    samplers.SamplerError
        If the posterior breaks its contract, such as by a log density that is NaN.
    samplers.CheckpointError
        If the checkpoint belongs to another posterior, is damaged, or cannot be written.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If chains do not agree (R-hat above 1.01) or give too few draws (effective sample size below
        400). The warning says what to do; the figures are in ``summary_``.

    Examples
    --------
    >>> import samplers
    >>> from bayescascade import GibbsPosterior, explore
    >>> class Step:
    ...     def propose(self, rng, state):
    ...         return samplers.Proposal(state + int(rng.choice([-1, 1])), 0.0)
    >>> posterior = GibbsPosterior(
    ...     objective=lambda state: (state - 3) ** 2,
    ...     start=lambda rng: int(rng.integers(10)),
    ...     proposals={"step": Step()},
    ...     temperature=2.0,
    ... )
    >>> found = explore(posterior, n_steps=4_000, n_chains=2, random_state=0)
    >>> found.state, found.log_density
    (3, -0.0)
    """
    how = Search(
        search, n_steps, n_chains, n_jobs, random_state, checkpoint, resume, progress, time_limit,
        until, effort,
    )  # fmt: skip
    if search == "exact" and solve is None:
        raise ParameterError('solve must be given for search "exact", got None')
    return explore_by(
        how, posterior, solve=solve, starts=starts, n_blocks=n_draws, n_replicas=n_replicas
    )


def explore_by(
    search: Search,
    posterior: Any,
    *,
    solve: Solver[S] | None = None,
    starts: Sequence[S] | Callable[[Any], Sequence[S] | None] | None = None,
    prepare: Callable[[Any], None] | None = None,
    quickly: Callable[[Any], S | None] | None = None,
    default_steps: int = DEFAULT_STEPS,
    n_blocks: int = MOST_BLOCKS,
    n_replicas: int = 6,
    rounds: Rounds = OF_CHAINS,
    title: str = "",
    parameter_words: str = "",
    settings: Mapping[str, Any] | None = None,
) -> SearchResult[S]:
    """Explore for estimators, by a `Search` and under their own name.

    `title` names the model, and `parameter_words` has its parameters in words; a trace file has
    `settings`. Before chains, `prepare` is called with the posterior; `starts` has their starts, or
    returns them. If Ctrl-C comes before `solve` has a state, `quickly` returns one at once, or None
    for KeyboardInterrupt.
    """
    solution, reason = None, ""
    guess: samplers.Run[S] | None = None
    if solve is not None and search.search in ("auto", "exact"):
        try:
            solution = solve(posterior, search)
        except TooLargeError as error:
            if search.search == "exact":
                raise
            reason = f"an exact search needs {error.needed}"
        except OutOfTime:  # the rest of the time is for chains
            reason = f"the exact search did not finish in its part of {search.time_limit:g} s"
        except KeyboardInterrupt:
            state = None if quickly is None else quickly(posterior)
            if state is None:
                raise
            guess, reason = state_run(posterior, state), "the exact search did not finish"
    if solution is None and search.search in ("auto", "exact"):
        search = search.sampled()
    if solution is not None:
        try:
            run = solution.as_run(posterior, search.report)
        except KeyboardInterrupt:  # there is a result, but no draws
            solution = replace(solution, draws=(), interrupted=True)
            run = solution.as_run(posterior)
    elif guess is not None:
        run = guess
    else:
        if prepare is not None:
            prepare(posterior)
        with search.watch.part(_OF_STARTS), search.watch.watching():
            begun = starts(posterior) if callable(starts) else starts
        run = search.run(
            posterior,
            default_steps=default_steps,
            n_blocks=n_blocks,
            n_replicas=n_replicas,
            rounds=rounds,
            starts=begun,
        )
    data = getattr(posterior, "table", None)
    sampled_by = search.search
    if run.method == "tempering":  # replica exchange may have followed
        first = "metropolis" if sampled_by == "metropolis" else "anneal"
        sampled_by = sampled_by if sampled_by == "tempering" else f"{first}+tempering"
    trace_settings = {
        **({"model": type(posterior).__name__} if settings is None else settings),
        "search": "exact" if solution is not None else "greedy" if guess else sampled_by,
        "source": data.source if data is not None else "",
        **(posterior.parameters() if hasattr(posterior, "parameters") else {}),
    }
    legend = posterior.legend() if hasattr(posterior, "legend") else TraceLegend()
    title = title or type(posterior).__name__
    run_ = PosteriorRun.of(
        run, legend=legend, settings=trace_settings, title=title, parameter_words=parameter_words
    )
    method = trace_settings["search"]
    summary = summarize(run_, method, data, solution, reason, search.time_limit)
    if summary.objection:
        warn_user(ConvergenceWarning(summary.objection))
    state, log_density = run.best_state, run.best_log_density
    if hasattr(posterior, "canonical"):
        state = posterior.canonical(state)
    if run.method != "ascent":  # which has computed it; chains add up differences
        log_density = float(posterior.log_density(state))
    return SearchResult(
        state=state,
        log_density=log_density,
        run_=run_,
        summary_=summary,
        posterior=posterior,
        solution=solution,
    )
