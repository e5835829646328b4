"""The posterior of the leaf model where sums by numbers of leaves would not fit."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import samplers
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.cascades.exact.cheapest import cheapest_boxes
from bayescascade.methods.cascades.exact.cost import ExactCost, number_of_cells
from bayescascade.methods.cascades.exact.lattice import Root
from bayescascade.methods.cascades.exact.pass_log import PassLog
from bayescascade.methods.cascades.exact.plan import Plan
from bayescascade.methods.cascades.exact.posterior import (
    StoppedPosterior,
    SummationStopped,
    SummedPosterior,
    solve,
)
from bayescascade.methods.cascades.exact.prior import log_prior_sum
from bayescascade.methods.cascades.exact.recursion import Progress
from bayescascade.methods.cascades.exact.tilts import BestTree, Tilts
from bayescascade.methods.cascades.models import LeafModel
from bayescascade.methods.cascades.tree import Tree
from bayescascade.model.solution import Certificate

if TYPE_CHECKING:
    from bayescascade.methods.cascades.posterior import CascadePosterior

__all__ = ["TiltedPosterior", "certificate_of", "solve_by_tilts", "solve_or_tilt"]

PassProgress = Callable[[int, float, BestTree | None], None]

_MANY_TERMS = 5e7  # of a pass: with more, the sum is as precise as a print
_ENOUGH, _PRECISE = 5e-3, 1e-9  # nats; with an error below the first, a printed evidence is right
_MOST_KEPT = 2_500  # trees of a tilt, kept for draws
_ROUNDING = 1e-14  # of a log density, as in `tail`


def solve_or_tilt(
    posterior: "CascadePosterior",
    *,
    memory_limit: float = 2e9,
    work_limit: float = 1e12,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    pass_progress: PassProgress | None = None,
    n_jobs: int | None = 1,
    n_draws: int = 0,
    scratch: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> "tuple[SummedPosterior | StoppedPosterior | TiltedPosterior, list[Tree]]":
    """Solve a posterior, by tilts where `solve` does not fit; return that, and draws from it.

    Parameters and errors are those of both; Ctrl-C ends either early once it has a tree.
    """
    rng = np.random.default_rng(rng)
    try:
        exact = solve(
            posterior, memory_limit=memory_limit, work_limit=work_limit, progress=progress,
            n_jobs=n_jobs, scratch=scratch,
        )  # fmt: skip
    except TooLargeError:
        if not isinstance(posterior.model, LeafModel) or posterior.model.max_leaves is not None:
            raise
        tilted = solve_by_tilts(
            posterior, memory_limit=memory_limit, work_limit=work_limit, rng=rng,
            progress=pass_progress, n_jobs=n_jobs, n_draws=n_draws, scratch=scratch,
            checkpoint=checkpoint, resume=resume,
        )  # fmt: skip
        return tilted, tilted.draws
    except SummationStopped as stopped:
        return stopped.found, []
    try:
        return exact, exact.sample(n_draws, rng)
    except KeyboardInterrupt:
        exact.is_interrupted = True
        return exact, []


def certificate_of(
    exact: "SummedPosterior | StoppedPosterior | TiltedPosterior",
) -> Certificate:
    """Return what is proved; its evidence is told if printed it is right."""
    most = exact.max_leaves if isinstance(exact, StoppedPosterior) else None
    is_told = exact.error < _ENOUGH and not np.isnan(exact.log_evidence)
    return Certificate(
        gap=exact.gap,
        extent=f"{exact.cost.n_boxes:,} boxes",
        log_evidence=exact.log_evidence if is_told else None,
        scope=f"of up to {most} leaves" if most is not None else "",
    )


def solve_by_tilts(
    posterior: "CascadePosterior",
    *,
    memory_limit: float = 2e9,
    work_limit: float = 1e12,
    rng: np.random.Generator | int | None = None,
    progress: PassProgress | None = None,
    n_jobs: int | None = 1,
    n_draws: int = 0,
    scratch: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> "TiltedPosterior":
    """Find the most probable tree of a leaf model, and sum over all trees, by a few dozen passes.

    Ctrl-C ends it early, from the first pass on: the best tree is then what was found, with the
    gap that is left.

    Parameters
    ----------
    posterior : LeafPosterior
        Without a bound on leaves.
    memory_limit : float > 0, bytes
    work_limit : float > 0, terms
        Of one pass over the boxes, see `ExactCost`.
    rng : numpy.random.Generator, int or None
        Or the seed of one. Nothing that is not said to be a draw depends on it but for rounding.
    progress : callable, optional
        Takes the number of passes made, the share of the next, and the best tree so far.
    n_jobs : int or None
        Threads, as joblib counts workers; the result does not depend on it.
    n_draws : int >= 0
        Independent draws to be made on the way, mostly without passes of their own.
    scratch : str or Path, optional
        Directory for boxes that do not fit `memory_limit`: in files without names, which are gone
        with the result.
    checkpoint : str or Path, optional
        File that keeps what every pass found, as soon as it is made.
    resume : bool
        Make only passes that the checkpoint does not have, and the few that draws are from. The
        result is that of a search never interrupted.

    Raises
    ------
    ParameterError
        If the model is no leaf model, or bounds the number of leaves; or a parameter is out of its
        range, or `scratch` is no directory to write to.
    TooLargeError
        If a pass takes more than is allowed; the message says what would fit.
    samplers.CheckpointError
        If the checkpoint cannot be read or written, is of another posterior, or holds an unfinished
        run that is not to be resumed.
    """
    model = posterior.model
    if not isinstance(model, LeafModel) or model.max_leaves is not None:
        raise ParameterError(
            f"posterior must be of a leaf model without max_leaves to be solved by tilts, "
            f"got {model!r}"
        )
    check_real("memory_limit", memory_limit, above=0.0)
    check_real("work_limit", work_limit, above=0.0)
    check_integer("n_draws", n_draws, minimum=0)
    plan = Plan.of(posterior, None)
    cost, boxes = cheapest_boxes(posterior, plan, memory_limit, work_limit, n_jobs, scratch=scratch)
    total = float(posterior.table.weights.sum())
    section = None
    if checkpoint is not None:  # each kind of leaves has a section, where several are compared
        section = samplers.Checkpoint(checkpoint, resume).section(f"tilts, leaf {model.leaf}")
    log = PassLog(section, posterior.fingerprint())
    log.save()  # before minutes are spent, if it cannot be written
    tilts = Tilts(boxes, Root(plan, model), total, number_of_cells(posterior), n_jobs, log=log)
    tilts.n_kept = min(n_draws + n_draws // 4, _MOST_KEPT)
    if progress is not None:
        tilts.progress = lambda share: progress(tilts.n_passes, share, tilts.best)
    return TiltedPosterior(posterior, cost, tilts, np.random.default_rng(rng), n_draws)


class TiltedPosterior:
    """The posterior of a leaf model; made by `solve_by_tilts`.

    Attributes
    ----------
    posterior : LeafPosterior
    cost : ExactCost
        What a pass took.
    tree : Tree
        The most probable tree found.
    log_density : float
        Its log density, nats.
    gap : float >= 0
        Nats by which any tree may have more; 0 if none has, up to 1e-13 of what leaves are worth.
    log_normalizer : float
        Log of the sum of ``exp(posterior.log_density(tree))`` over all trees, nats; NaN if
        interrupted before.
    error : float >= 0
        Bound on its error, nats; infinity if none was proved, and `log_normalizer` is then what all
        trees come to at most.
    log_evidence : float
        Log probability of the data under the normalized prior, nats, with the same error; NaN if
        interrupted before, or if columns have too many partitions (see `prior`).
    draws : list of Tree
        The independent draws asked for; none if interrupted.
    n_passes : int
        Passes over the boxes.
    is_interrupted : bool
        Whether Ctrl-C ended it early.
    is_resumable
        True: a checkpoint, if there is one, has what was found.
    """

    is_resumable = True

    def __init__(
        self,
        posterior: "CascadePosterior",
        cost: ExactCost,
        tilts: Tilts,
        rng: np.random.Generator,
        n_draws: int = 0,
    ) -> None:
        self.posterior = posterior
        self.cost = cost
        self._tilts, self._sum = tilts, None
        self.log_normalizer = self.log_evidence = np.nan
        self.error = np.inf
        self.is_interrupted = False
        self.draws: list[Tree] = []
        expected = int(min(posterior.model.rate, tilts.most))
        try:
            guess = tilts.maximize(expected).tree.n_leaves
            precise = _ENOUGH if cost.n_terms > _MANY_TERMS else _PRECISE
            self._sum = tilts.add_up(guess, rng, precise)
            root, plan = tilts.root, tilts.boxes.lattice.plan
            self.log_normalizer = self._sum.log_sum + root.log_common(tilts.total)
            self.error = self._sum.error + _ROUNDING * abs(self.log_normalizer)
            if plan.has_few_ways and tilts.boxes.shapes is not None:
                log_prior = log_prior_sum(tilts.boxes.shapes, posterior.model.rate, tilts.most)
                self.log_evidence = self.log_normalizer - log_prior
            self.draws = tilts.draw(self._sum, n_draws, rng)
            tilts.log.finish()
        except KeyboardInterrupt:
            if tilts.best is None:
                raise
            self.is_interrupted = True
        best = tilts.best
        assert best is not None  # at least one pass was made
        self.tree = posterior.canonical(best.tree)
        self.log_density = posterior.log_density(self.tree)
        self.gap = best.gap

    @property
    def n_passes(self) -> int:
        """Passes over the boxes so far."""
        return self._tilts.n_passes

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> list[Tree]:
        """Return independent draws from the posterior; it takes a few passes over the boxes.

        Parameters
        ----------
        n : int >= 0
        rng : numpy.random.Generator, int or None
            Or the seed of one.

        Raises
        ------
        ParameterError
            If the search was interrupted before the sum over all trees was known.
        TooLargeError
            If more than a thousand trees are drawn from tilts for each of the posterior's.
        """
        check_integer("n", n, minimum=0)
        if self._sum is None:
            raise ParameterError("sample must be asked of a search that was not interrupted")
        return self._tilts.draw(self._sum, n, np.random.default_rng(rng))
