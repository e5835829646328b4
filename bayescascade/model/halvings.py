"""The experiment of `compare`: densities learn a random half of a table and score the other.

The halves are the same for all densities, so differences between densities are not differences
between halves. The schema, with the edges of bins, is that of the whole table, so levels that occur
only in the other half are known.
"""

import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from sklearn.base import clone

from bayescascade.base.errors import DataError
from bayescascade.base.threads import n_threads_of
from bayescascade.base.validation import check_integer
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.data.table import Table
from bayescascade.model.listed import ListedDensity
from bayescascade.model.readable_density import ReadableDensity
from samplers.cluster import results_of_workers, shared_on_cluster
from samplers.parameters import check_n_jobs

N_FOLDS = 2

WORTH_WORKERS = 4.0  # expected seconds of one process; other processes take two seconds to start

Estimator = TypeVar("Estimator", bound=ReadableDensity[Any])


class Learned(NamedTuple):
    """A density that was learned."""

    model: ReadableDensity[Any]
    settings: Mapping[str, float | str] = {}  # of the parameters in which candidates differ


Learner: TypeAlias = Callable[[Table, int, int | None], Learned]
"""Learns from a table, given a seed and the number of parallel chains."""


class Contender(NamedTuple):
    """A density that is compared."""

    title: str  # its name
    learn: Learner

    @classmethod
    def of(cls, listed: ListedDensity) -> "Contender":
        """Return a contender that chooses among a family's candidates."""
        return cls(listed.made().title, partial(_learn_listed, listed))

    @classmethod
    def like(cls, title: str, model: ReadableDensity[Any]) -> "Contender":
        """Return a contender for a user's density, which is not changed."""
        return cls(title, partial(_learn_like, model))


def _learn_listed(listed: ListedDensity, table: Table, seed: int, n_jobs: int | None) -> Learned:
    run = {"random_state": seed, "n_jobs": n_jobs}
    candidates = [listed.made(**settings, **run) for settings in listed.among]
    if len(candidates) == 1:
        return Learned(fit_whole(candidates[0], table))
    model = best_of(candidates, table, seed)
    differ = [
        name for name in listed.among[0] if len({settings[name] for settings in listed.among}) > 1
    ]
    return Learned(model, {name: getattr(model, name) for name in differ})


def _learn_like(
    model: ReadableDensity[Any], table: Table, seed: int, n_jobs: int | None
) -> Learned:
    run = {"random_state": seed, "n_jobs": n_jobs}
    known = {name: value for name, value in run.items() if name in model.get_params()}
    return Learned(fit_whole(clone(model).set_params(**known), table))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one density for one halving."""

    halving: int  # >= 0
    model: str  # its name
    log_likelihood: float  # mean over the rows of the other half, nats a row
    n_parts: float  # leaves, rules including the else, classes or cells; infinite above 1.8e308
    seconds: float  # to choose settings and learn
    settings: Mapping[str, float | str]  # settings that the learned half chose


def outcomes_of(
    table: Table,
    contenders: Mapping[str, Contender],
    *,
    repeats: int = 5,
    seed: int = 0,
    n_jobs: int | None = 1,
) -> Iterator[Outcome]:
    """Yield the outcome of each density in each halving as soon as it is known, halving by halving.

    The smaller half of an odd number of rows is learned from. repeats >= 1 counts halvings. An
    outcome depends on seed >= 0, but not on the other densities, `repeats` or `n_jobs`, the number
    of parallel processes; these may be workers of joblib's Dask cluster.
    """
    check_integer("repeats", repeats, minimum=1)
    check_integer("seed", seed, minimum=0)
    check_n_jobs(n_jobs)
    if np.floor(table.weights).sum() < 2:
        raise DataError(
            f"{table.source or 'the table'} must have at least two rows to be halved, "
            f"got {table.total_weight:g}"
        )
    experiment = _Experiment(table, contenders, seed)
    fits = deque((halving, model) for halving in range(repeats) for model in contenders)
    shared = None if n_jobs == 1 else shared_on_cluster(experiment)
    if shared is not None:
        yield from shared.map(_Experiment.outcome, [(*fit, 1) for fit in fits])
        return
    n_threads, n_done, spent = n_threads_of(n_jobs), 0, 0.0
    while fits and (n_threads == 1 or n_done == 0 or spent / n_done * len(fits) < WORTH_WORKERS):
        outcome = experiment.outcome(*fits.popleft(), n_threads)
        n_done, spent = n_done + 1, spent + outcome.seconds
        yield outcome
    if fits:
        n_workers = min(n_threads, len(fits))
        calls = ((experiment, *fit, n_threads // n_workers) for fit in fits)
        yield from results_of_workers(_Experiment.outcome, calls, n_workers)


@dataclass(frozen=True)
class _Experiment:
    """The common inputs of all outcomes."""

    table: Table
    contenders: Mapping[str, Contender]
    seed: int

    def outcome(self, halving: int, model: str, n_jobs: int | None) -> Outcome:
        """Return the outcome of one density for one halving."""
        rng = np.random.default_rng(_seed(self.seed, halving, "halves"))
        split = split_rows(self.table.weights, 2, rng)
        seen, held_out = (with_weights(self.table, weights) for weights in split)
        started = perf_counter()
        found, settings = self.contenders[model].learn(
            seen, _seed(self.seed, halving, model), n_jobs
        )
        seconds = perf_counter() - started
        score = found.score(held_out) / held_out.total_weight
        settings = {**settings, **found._decided()}
        return Outcome(halving, model, score, found._n_parts, seconds, settings)


def best_of(candidates: Sequence[Estimator], table: Table, seed: int) -> Estimator:
    """Return the fitted candidate with the best settings for the table; the first of equals.

    The evidence decides if the exact search computes it for every candidate; otherwise the log
    likelihood in folds, as in the thesis. `seed` >= 0 gives the same folds for all candidates.
    KeyboardInterrupt if Ctrl-C ended the search of one, because its result would not be the best.
    """
    fitted = [fit_whole(candidate, table) for candidate in candidates]
    evidences = [_log_evidence(model) for model in fitted]
    scores = [evidence for evidence in evidences if evidence is not None]
    if len(scores) < len(fitted):
        scores = _scores_in_folds(candidates, table, seed)
    return fitted[int(np.argmax(scores))]


def _log_evidence(model: Estimator) -> float | None:
    certificate = model.summary_.certificate
    return None if certificate is None else certificate.log_evidence


def _scores_in_folds(candidates: Sequence[Estimator], table: Table, seed: int) -> list[float]:
    """Return each candidate's log likelihood of the held-out folds, nats."""
    scores = [0.0] * len(candidates)
    for held_out in split_rows(table.weights, N_FOLDS, np.random.default_rng(seed)):
        others = table.weights - held_out
        if held_out.any() and others.any():
            learned_from, scored = with_weights(table, others), with_weights(table, held_out)
            for number, candidate in enumerate(candidates):
                scores[number] += fit_whole(clone(candidate), learned_from).score(scored)
    return scores


def fit_whole(model: Estimator, table: Table) -> Estimator:
    """Fit a model; raise KeyboardInterrupt if Ctrl-C ended its search."""
    model.fit(table)
    summary = getattr(model, "summary_", None)  # of models that search
    if summary is not None and summary.interrupted:
        raise KeyboardInterrupt
    return model


def _seed(seed: int, halving: int, purpose: str) -> int:
    """Return a seed for one purpose, independent of other purposes."""
    sequence = np.random.SeedSequence(seed, spawn_key=(halving, zlib.crc32(purpose.encode())))
    return int(sequence.generate_state(1, np.uint64)[0])
