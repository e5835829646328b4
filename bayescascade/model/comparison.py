"""The experiment: densities learn a random half of a table, and are scored on the other.

The halves are the same for all densities, so that differences between densities can be told from
differences between halves. The schema, with the edges of bins, is that of the whole table, so that
a level which only the other half has is known.
"""

import math
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from bayescascade.base.errors import DataError
from bayescascade.base.threads import n_threads_of
from bayescascade.base.validation import check_integer
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.data.table import Table
from bayescascade.model.listed import ListedDensity
from bayescascade.model.page import data_pieces
from bayescascade.model.readable_density import ReadableDensity
from bayescascade.model.score_picture import Scores, draw_scores
from bayescascade.report.axes import axes_or_new
from bayescascade.report.numbers import cells_text, significant_text
from bayescascade.report.page import (
    BLANK,
    Heading,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    count_of,
)
from bayescascade.report.printed import Printed
from samplers.cluster import results_of_workers, shared_on_cluster
from samplers.parameters import check_n_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_FOLDS = 2

WORTH_WORKERS = 4.0  # expected seconds of one process; others take two until they have begun

_SIZE = 7.5, 3.6  # of a picture, inches

Floats = NDArray[np.float64]

Estimator = TypeVar("Estimator", bound=ReadableDensity[Any])


class Learned(NamedTuple):
    """A density that was learned."""

    model: ReadableDensity[Any]
    settings: Mapping[str, float | str] = {}  # of those that candidates differ by


Learner: TypeAlias = Callable[[Table, int, int | None], Learned]
"""Learns from a table, given a seed and how many chains run at the same time."""


class Contender(NamedTuple):
    """A density that is compared."""

    title: str  # what it is called
    learn: Learner

    @classmethod
    def of(cls, listed: ListedDensity) -> "Contender":
        """Return the candidates of a family, of which the one is taken that suits the table."""
        return cls(listed.made().title, partial(_learn_listed, listed))

    @classmethod
    def like(cls, title: str, model: ReadableDensity[Any]) -> "Contender":
        """Return a density as someone set it up, which is not changed."""
        return cls(title, partial(_learn_like, model))


def _learn_listed(listed: ListedDensity, table: Table, seed: int, n_jobs: int | None) -> Learned:
    run = {"random_state": seed, "n_jobs": n_jobs}
    candidates = [listed.made(**settings, **run) for settings in listed.among]
    if len(candidates) == 1:
        return Learned(fit_whole(candidates[0], table))
    model = best_of(candidates, table, seed)
    differ = [name for name in listed.among[0] if len({one[name] for one in listed.among}) > 1]
    return Learned(model, {name: getattr(model, name) for name in differ})


def _learn_like(
    model: ReadableDensity[Any], table: Table, seed: int, n_jobs: int | None
) -> Learned:
    run = {"random_state": seed, "n_jobs": n_jobs}
    known = {name: value for name, value in run.items() if name in model.get_params()}
    return Learned(fit_whole(clone(model).set_params(**known), table))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one density made of one halving."""

    halving: int  # >= 0
    model: str  # its name
    log_likelihood: float  # mean over the rows of the other half, nats a row
    n_parts: float  # leaves, rules with the else, classes or cells; infinite if over 1.8e308
    seconds: float  # to choose settings and learn
    settings: Mapping[str, float | str]  # what was chosen by the half that was learned from


@dataclass(frozen=True)
class Comparison(Printed):
    """The result of `compare`; it prints a line for each density.

    Parameters
    ----------
    data : Table
        The rows.
    models : tuple of str
        Names of the densities.
    outcomes : tuple of Outcome
        The outcome of each model for each halving: `halving`, `model`, `log_likelihood` (mean over
        the rows of the test half, nats), `n_parts`, `seconds` to learn, and `settings` that were
        chosen on the training half. After Ctrl-C, only the finished ones.
    titles : mapping of str to str
        Titles of models, if they differ from the names.
    seed : int
        The seed of the halves.
    interrupted : bool
        Whether Ctrl-C ended the comparison.
    """

    data: Table
    models: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    interrupted: bool = False

    @property
    def table(self) -> pd.DataFrame:
        """The printed table, with a row for each density, by name.

        Columns are ``title``; ``held_out``, the mean log likelihood of held-out rows in nats per
        row; ``behind``, the difference from the best; ``parts``; ``seconds``; and
        ``held_out_error`` and ``behind_error``, standard errors over halvings, which are missing if
        there is only one halving.
        """
        whole = self.whole
        models = [model for model in self.models if whole.of(model)]
        scores = {model: whole.log_likelihoods(model) for model in models}
        behind = {model: scores[self.best_] - scores[model] for model in models}
        return pd.DataFrame(
            {
                "title": [self.titles.get(model, model) for model in models],
                "held_out": [scores[model].mean() for model in models],
                "held_out_error": [_standard_error(scores[model]) for model in models],
                "behind": [behind[model].mean() for model in models],
                "behind_error": [_standard_error(behind[model]) for model in models],
                "parts": [np.mean([outcome.n_parts for outcome in whole.of(m)]) for m in models],
                "seconds": [np.mean([outcome.seconds for outcome in whole.of(m)]) for m in models],
            },
            index=pd.Index(models),
        )

    @property
    def best_(self) -> str:
        """The name of the density with the best score. DataError if no fit was finished."""
        whole = self.whole
        models = [model for model in self.models if whole.of(model)]
        if not models:
            raise DataError("best_ needs at least one finished fit, got none")
        return max(models, key=lambda model: whole.log_likelihoods(model).mean())

    @property
    def whole(self) -> "Comparison":
        """Outcomes of the halvings that all models finished; if there are none, all outcomes."""
        n_whole = len(self.outcomes) // len(self.models)
        if n_whole == 0:
            return self
        return replace(self, outcomes=self.outcomes[: n_whole * len(self.models)])

    def of(self, model: str) -> tuple[Outcome, ...]:
        """Return the outcomes of a model, one per halving."""
        return tuple(outcome for outcome in self.outcomes if outcome.model == model)

    def log_likelihoods(self, model: str) -> Floats:
        """Return the held-out means of a model, (n_halvings,) float64, nats per row."""
        return np.array([outcome.log_likelihood for outcome in self.of(model)])

    def plot(self, ax: "Axes | None" = None, *, legend: bool = True) -> "Axes":
        """Draw the held-out score of each density and halving by its parts, and return the axes.

        A density with a higher score and fewer parts is better. Densities with more than 1.8e308
        parts are left out. The legend says which density each marker is.
        """
        ax = axes_or_new(ax, *_SIZE)
        drawn = [outcome for outcome in self.outcomes if outcome.n_parts < math.inf]
        scores = []
        for model in self.models:
            of_model = [outcome for outcome in drawn if outcome.model == model]
            label = self.titles.get(model, model)
            parts, told = [o.n_parts for o in of_model], [o.log_likelihood for o in of_model]
            scores.append(Scores(label, parts, told))
        draw_scores(ax, self.data.source, scores)
        if legend:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
        return ax

    def page(self) -> Page:
        """Return a table with a line for each density, over the halvings that all have finished.

        ``held out`` is the mean log likelihood of held-out rows, and ``behind`` the difference from
        the best. Both have standard errors over halvings.
        """
        whole = self.whole
        heading = Heading(data_pieces(self.data, self.data.schema))
        if not self.outcomes:
            return (heading, Pieces(["nothing has been learned yet"]))
        found, best = self.table, self.best_
        models = found.index.tolist()
        n_halvings = len(whole.of(best))
        held_out = map(_mean_text, found["held_out"], found["held_out_error"])
        behind = map(_mean_text, found["behind"], found["behind_error"])
        table = PrintedTable(
            found["title"].tolist(),
            [
                Numbers("held out", list(held_out), least_width=18),
                Numbers(
                    "behind best",
                    ["" if m == best else text for m, text in zip(models, behind, strict=True)],
                    least_width=18,
                ),
                Numbers("parts", [_parts_text(mean) for mean in found["parts"]], least_width=9),
                Numbers("seconds", [f"{mean:,.1f}" for mean in found["seconds"]], least_width=9),
            ],
            styles=["bold" if model == best else "" for model in models],
            least_label=24,
            gaps=(0, 0),
        )
        told = ["parts: leaves, rules (with else), cells or classes"]
        halvings = "1 random split into halves"
        if n_halvings > 1:
            halvings = f"{n_halvings} random splits into halves"
            told.insert(0, "±: standard error over the splits")
        how = f"{halvings}: learned on one half, scored on the other, nats a row"
        chosen = [words for model in models for words in whole._chosen_words(model)]
        legend = Pieces(told, "dim")
        return (heading, Pieces([how]), BLANK, table, BLANK, legend, *map(_line, chosen))

    def _chosen_words(self, model: str) -> list[str]:
        """Return such as "leaf cascade: leaf dependent in 4 of 5", of what is no number."""
        outcomes = self.of(model)
        chosen = Counter(
            f"{name} {value}"
            for outcome in outcomes
            for name, value in outcome.settings.items()
            if isinstance(value, str)
        )
        title = self.titles.get(model, model)
        of_all = count_of(len(outcomes), "split")
        return [f"{title}: {words} in {n} of {of_all}" for words, n in chosen.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return all finished outcomes as plain data."""
        data = self.data
        return {
            "source": data.source,
            "n_rows": data.n_rows,
            "n_distinct": data.n_distinct,
            "total_weight": data.total_weight,
            **data.schema.to_dict(),
            "models": list(self.models),
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }


def outcomes_of(
    table: Table,
    contenders: Mapping[str, Contender],
    *,
    repeats: int = 5,
    seed: int = 0,
    n_jobs: int | None = 1,
) -> Iterator[Outcome]:
    """Yield the outcome of each density in each halving as soon as it is known, halving by halving.

    The smaller half of an odd number of rows is learned from. repeats >= 1 counts halvings; an
    outcome depends on seed >= 0, not on the other densities, `repeats` or `n_jobs`, which are
    learned at the same time, in processes, or on the Dask cluster of joblib.
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
    """What all outcomes of a comparison depend on."""

    table: Table
    contenders: Mapping[str, Contender]
    seed: int

    def outcome(self, halving: int, model: str, n_jobs: int | None) -> Outcome:
        """Return what one density makes of one halving."""
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
    """Return the candidate whose settings suit the table best, fitted to it; the first of equals.

    It is the best by the evidence where the exact search computes that of every candidate; else by
    the log likelihood in folds, as in the thesis. `seed` >= 0 splits the same folds for all
    candidates. KeyboardInterrupt if Ctrl-C ended the search of one: it would not be the candidate's
    best.
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
    """Return the log likelihood of the rows in folds that each candidate has not seen, nats."""
    scores = [0.0] * len(candidates)
    for held_out in split_rows(table.weights, N_FOLDS, np.random.default_rng(seed)):
        others = table.weights - held_out
        if held_out.any() and others.any():
            learned_from, scored = with_weights(table, others), with_weights(table, held_out)
            for number, candidate in enumerate(candidates):
                scores[number] += fit_whole(clone(candidate), learned_from).score(scored)
    return scores


def fit_whole(model: Estimator, table: Table) -> Estimator:
    """Fit a model; Ctrl-C, of which a search makes the best, is passed on."""
    model.fit(table)
    summary = getattr(model, "summary_", None)  # of what searches
    if summary is not None and summary.interrupted:
        raise KeyboardInterrupt
    return model


def _line(words: str) -> Pieces:
    return Pieces([words])


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else math.nan


def _mean_text(mean: float, error: float) -> str:
    """Return a mean, with its standard error if there is one."""
    return f"{mean:.4f}" if math.isnan(error) else f"{mean:.4f} ± {error:.4f}"


def _parts_text(mean: float) -> str:
    if mean == math.inf:
        return "> 1e308"
    if mean.is_integer():
        return cells_text(math.log(mean))
    return f"{mean:,.1f}" if mean < 1e6 else significant_text(math.log(mean), 2)


def _seed(seed: int, halving: int, purpose: str) -> int:
    """Return a seed for one purpose, whatever others there are."""
    sequence = np.random.SeedSequence(seed, spawn_key=(halving, zlib.crc32(purpose.encode())))
    return int(sequence.generate_state(1, np.uint64)[0])
