"""The summary of a fit: data, convergence and uncertainty."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from bayescascade.base.errors import ModelFileError
from bayescascade.base.store import As, Saved, Share, Within, restored, stored
from bayescascade.model.diagnostics import (
    ESS_FLOOR,
    RHAT_CEILING,
    Diagnostic,
    convergence_advice,
    fallen_chains,
)
from bayescascade.model.draws import PosteriorRun
from bayescascade.model.held_out import HeldOut
from bayescascade.model.solution import NO_POSTERIOR, Certificate, Solution
from bayescascade.model.trace import trace_words
from bayescascade.report.numbers import diagnostic_text, nats_text
from bayescascade.report.page import count_of

_SEARCHES = {
    "anneal+metropolis": "annealing and {chains}",
    "anneal+tempering": "annealing and {chains} with replica exchange",
    "anneal": "annealing in {chains}",
    "metropolis": "{chains}",
    "metropolis+tempering": "{chains} with replica exchange",
    "tempering": "{chains} with replica exchange",
    "langevin": "{chains} along the gradient",
    "ascent": "gradient ascent in {chains}",
    "exact": "an unfinished exact search",
    "greedy": "greedy growth",
    "ascent+langevin": "gradient ascent and {chains} along the gradient",
}
_AT_BOUNDS = "best found, and its bounds did not meet"  # no time limit, no Ctrl-C
_FELL = "annealing ended at a less probable state than a chain had at the first temperature"
_NOTHING = "the best result only, no posterior draws"


class DataFacts(Protocol):
    """Facts on the rows of a posterior; a `Table` has them."""

    source: str
    n_rows: int
    n_distinct: int
    total_weight: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The facts that are printed with a model and saved in its file.

    Parameters
    ----------
    source : str
        Name of the data file; empty if there is none.
    n_rows, n_distinct : int
        Numbers of rows and of distinct rows.
    total_weight : float
        Sum of the weights of the rows.
    notes : tuple of str
        Notes on the data, such as on a constant column.
    method : str
        The search that was run.
    n_chains, n_draws : int
        Number of chains, and of draws per chain; 0 draws if nothing was sampled.
    interrupted : bool
        Whether Ctrl-C ended the search.
    acceptance : mapping of str to float
        Acceptance rate of each move during sampling, for moves with proposals.
    diagnostics : mapping of str to Diagnostic
        Diagnostics of "log_posterior" and of the size, such as "n_leaves"; empty without sampling.
    shares : mapping of str to mapping of str to float
        Shares of the draws by title and label, most probable first, such as
        ``{"leaves": {"9": 0.7, "8": 0.3}, "first split": {"sex": 1.0}, ...}``; empty if nothing was
        sampled.
    certificate : Certificate or None
        The proof of an exact search.
    reason : str
        Why there was no complete exact search; empty if there was one, or if none was requested.
    fallen : int
        Number of chains whose annealing ended at a lower density than a chain had at the first
        temperature.
    stopped_after : float or None
        The time limit in seconds, if it ended the search.
    held_out : HeldOut or None
        Measures on held-out rows, if there are any.
    n_rounds : int
        Number of rounds of sampling. The draws are those of the last round; see `model.rounds`.
    as_best : mapping of str to float
        Shares of the draws that agree with the most probable state, in part or completely; see
        `PosteriorRun.shares_as_best`. Empty if states do not have parts.
    """

    source: str
    n_rows: Annotated[int, Within(0)]
    n_distinct: Annotated[int, Within(0)]
    total_weight: Annotated[float, Within(0)]
    notes: tuple[str, ...]
    method: str
    n_chains: Annotated[int, Within(0)]
    n_draws: Annotated[int, Within(0)]
    interrupted: bool
    acceptance: Mapping[str, float]
    diagnostics: Mapping[str, Diagnostic]
    shares: Mapping[str, Mapping[str, Share]]
    certificate: Certificate | None = None
    reason: str = ""
    fallen: Annotated[int, Within(0)] = 0
    stopped_after: float | None = None
    held_out: Annotated[HeldOut | None, Saved("held_out", is_optional=True)] = None
    n_rounds: Annotated[int, Within(0)] = 1
    as_best: Annotated[Mapping[str, Share], Saved("as_best", is_optional=True)] = field(
        default_factory=dict
    )

    @property
    def is_partial(self) -> bool:
        """Whether Ctrl-C or the time limit ended the search early."""
        return self.interrupted or self.stopped_after is not None

    @property
    def is_tempered(self) -> bool:
        """Whether draws and shares are those of a tempered distribution."""
        return self.certificate is not None and self.certificate.is_tempered

    @property
    def drawn_from(self) -> str:
        """The distribution of draws and shares, in words."""
        return f"a tempered distribution, {NO_POSTERIOR}" if self.is_tempered else "the posterior"

    @property
    def ending(self) -> str:
        """What ended the search early, in words; empty if it was not ended early."""
        if self.interrupted:
            return "interrupted"
        if self.stopped_after is None:
            return ""
        return f"stopped at the time limit of {self.stopped_after:g} s"

    @property
    def warnings(self) -> list[str]:
        """The problems that the diagnostics show, and then what to do; empty if there are none."""
        found = [f"{self.fallen} of {count_of(self.n_chains, 'chain')}: {_FELL}"][: self.fallen]
        for name, diagnostic in self.diagnostics.items():
            bad = []  # the figures that are not as they should be
            if not diagnostic.r_hat <= RHAT_CEILING:
                bad.append(f"R-hat {diagnostic.r_hat:.3f} (should be at most 1.01)")
            if not diagnostic.ess >= ESS_FLOOR:
                should = "" if bad else "should be "
                bad.append(f"ESS {diagnostic.ess:,.0f} ({should}at least 400)")
            if bad:
                found.append(f"{trace_words(name)}: {', '.join(bad)}")
        return [*found, convergence_advice(self.method, self.n_chains)] if found else []

    @property
    def objection(self) -> str:
        """Text of the warning, without figures that differ between fits; "" if there is none.

        Readers and filters can treat equal texts as one; the figures are in `warnings`.
        """
        if not self.warnings:
            return ""
        if all(diagnostic.is_fine for diagnostic in self.diagnostics.values()):
            return f"{_FELL}; {convergence_advice(self.method, self.n_chains)}"
        return (
            "chains do not agree yet, or gave too few draws: "
            f"R-hat must be at most {RHAT_CEILING:g} and ESS at least {ESS_FLOOR:g}, see summary_; "
            f"{convergence_advice(self.method, self.n_chains)}"
        )

    def found_words(self, learned: str) -> str:
        """Return the search for the learned object, such as a "tree", and its proof, in words."""
        certificate = self.certificate
        if certificate is None:
            chains = count_of(self.n_chains, "chain")
            how = _SEARCHES.get(self.method, "{chains}").format(chains=chains)
            found = f"{self.ending}: best found so far" if self.ending else "best found"
            return f"{found} by {how}"
        which = f"no {learned} {certificate.scope}".rstrip()
        stopped = f"{self.ending}; " if self.ending else ""
        if certificate.gap == 0:
            return f"{stopped}exact: {which} is more probable"
        open_gap = f"{which} is more probable by more than {certificate.gap:,.2f} nats"
        if certificate.is_rounding:
            return f"{stopped}complete search, up to rounding: {open_gap}"
        found = f"{self.ending}: best found so far" if self.ending else _AT_BOUNDS
        return f"{found}; {open_gap}"

    @property
    def convergence_pieces(self) -> list[str]:
        """Convergence of the chains, and the number of draws."""
        reason = [self.reason] if self.reason else []
        if self.certificate is not None:
            log_evidence = self.certificate.log_evidence
            n_draws = self.n_chains * self.n_draws
            reason = [] if log_evidence is None else [f"log evidence {nats_text(log_evidence)}"]
            reason.append(self.certificate.extent)
            if not self.diagnostics:
                how = f"{n_draws:,} independent draws" if n_draws else _NOTHING
                return [*reason, how]
        if not self.diagnostics:
            return [*reason, _NOTHING]
        found = self.diagnostics.items()
        r_hats = [f"{trace_words(name)} {diagnostic_text(d.r_hat, 3)}" for name, d in found]
        return [
            *reason,
            f"R-hat: {', '.join(r_hats)}",
            f"ESS: {', '.join(diagnostic_text(d.ess, 0) for _, d in found)}",
            f"{self.n_chains} x {self.n_draws:,} draws{self.of_rounds}",
        ]

    @property
    def of_rounds(self) -> str:
        """The further rounds of sampling, in words; empty if the first round sufficed."""
        last = f", from the last of {self.n_rounds} rounds" if self.n_rounds > 1 else ""
        if not self.method.endswith("+tempering"):
            return last
        return f"{last or ','} after chains without replica exchange did not agree"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        record: dict[str, Any] = stored(self)
        return {**record, "drawn_from": self.drawn_from} if self.is_tempered else record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "FitSummary":
        """Rebuild from the result of `to_dict`, which may be damaged."""
        summary: FitSummary = restored(cls, record, {}, "summary")
        if summary.as_best and not {"every part", "every word"} <= set(summary.as_best):
            raise ModelFileError("a saved summary must have the draws with every part and word")
        return summary


SUMMARY = As(FitSummary.to_dict, FitSummary.from_dict)
"""How a summary is saved."""


def summarize(
    run: PosteriorRun[Any],
    method: str,
    data: DataFacts | None = None,
    solution: Solution[Any] | None = None,
    reason: str = "",
    time_limit: float | None = None,
) -> FitSummary:
    """Return the summary of a run; `method` is the search, and time_limit its limit, seconds.

    Independent draws of a solution need no diagnostics. reason: why the search was not exact.
    """
    is_sampled = any(run.draws)
    is_diagnosed = is_sampled and (solution is None or solution.chains is not None)
    shares = run.trace.shares() if is_sampled else {}
    return FitSummary(
        source=data.source if data else "",
        n_rows=data.n_rows if data else 0,
        n_distinct=data.n_distinct if data else 0,
        total_weight=float(data.total_weight) if data else 0.0,
        notes=data.notes if data else (),
        method=method,
        n_chains=len(run.final_states),
        n_draws=run.trace.n_draws if is_sampled else 0,
        interrupted=run.interrupted,
        acceptance={name: share for name, share in run.acceptance.items() if share == share},
        diagnostics=run.diagnostics() if is_diagnosed else {},
        shares=shares if solution is None else {**shares, **solution.shares},
        certificate=None if solution is None else solution.certificate,
        reason=reason,
        fallen=int(run.extras.get("fallen", fallen_chains(run.traces))),
        stopped_after=time_limit if run.timed_out else None,
        n_rounds=int(run.extras.get("n_rounds", 1)),
        as_best=run.shares_as_best() if is_sampled else {},
    )
