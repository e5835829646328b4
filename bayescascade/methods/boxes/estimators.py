"""The classifier by boxes, averaged or exact; `posterior` has the formulas."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, nan
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Saved, restored
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.boxes.base import BoxesClassifier, RareRows
from bayescascade.methods.boxes.exact.levels import Costs, LevelRows
from bayescascade.methods.boxes.exact.search import best_union, solve_program
from bayescascade.methods.boxes.measures import WEIGHTS, BoxPath, generalization_bound
from bayescascade.methods.boxes.parameters import BoxParameters
from bayescascade.methods.boxes.posterior import BoxPosterior, BoxState
from bayescascade.methods.boxes.union import BoxUnion, LearnedBoxes
from bayescascade.model.draws import thinned
from bayescascade.model.matrix_explorer import MatrixExplorer
from bayescascade.model.rounds import WORK
from bayescascade.model.search import Search, most_blocks, seed_sequence
from bayescascade.model.solution import Certificate, Solution
from bayescascade.model.summary import FitSummary
from bayescascade.model.view import View
from bayescascade.report.page import Pieces, count_of

_MOST_STEPS, _LEAST_STEPS, _ROW_STEPS = 200_000, 20_000, 3e8  # steps of each chain and phase
_OF_SEARCH = 0.8  # share of the time; the rest is for the halves of sides and their uncertainty
_MOST_BLOCKS, _OF_FOLD = 500, 125  # draws of a chain; each takes as long as some hundred steps
# Of the steps, in folds. On six tables, F1, balanced accuracy and log loss with an eighth, a
# quarter, half and all of the steps differ by chance alone.
_FOLD_SHARE = 0.25
_ALL_CUTS = 32_767  # for an exact search, whose sides are at values of rows
_MOST_WORK = 1.5e9  # for an exact search without a time limit: about five seconds
_STEPS_OF_START, _BLOCKS_OF_START = 100_000, 125  # for the start of an exact search


@dataclass(eq=False, repr=False, kw_only=True)
class BoxClassifier(MatrixExplorer[BoxState, LearnedBoxes], BoxesClassifier):
    """Classifier of a rare class by an average over unions of boxes, or by the best union.

    Parameters
    ----------
    positive : label or None
        The rare class.
    likelihood : {"pooled", "gibbs", "beta"}
        See `BoxPosterior`. "pooled": half of the chains sample each of the other two, rates are
        averaged, and the printed union is that of "beta".
    n_boxes, negative_weight, box_cost, side_cost, temperature, max_cuts, prior_weight
        See `BoxPosterior`. A single union is hardly more accurate than a decision tree. For a short
        description with one to five sides, use one box and a low `side_cost`.
    predictive : {"map", "average"}
        Predict with the printed union (map), or with the average over 1,000 draws (average).
    search : str
        "exact" searches the best union by the objective of "gibbs", with a proof or a bound. If a
        proof for all boxes together is too expensive, each box is proved to be the best given the
        others. Its work is limited by `effort`, or else by the `time_limit`. For the others, see
        `explore`.
    solver : {"branch", "program"}
        Algorithm of an exact search. "program" uses HiGHS, whose proofs have a tolerance, so its
        results are not called exact.

    Attributes
    ----------
    boxes_ : BoxUnion
        The union that is printed.
    positive_ : label
        The rare class.
    threshold_ : float
        Probability of the rare class from which `predict` names it: w / (1 + w) for the
        `negative_weight` w, and the share of the rare class if it is "balanced".
    objective_ : float or None
        Objective of the union of an exact search; see `exact.levels`. None without one.
    exact_ : CertifiedUnion
        Result of an exact search. A `gap` of 0 proves that no union is better. Not in saved models.

    All other attributes are those of `MatrixExplorer` and `MatrixClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BoxClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = (X[:, 0] > 1) & (X[:, 1] < 0.5)
    >>> model = BoxClassifier(n_boxes=1, likelihood="gibbs", side_cost=0.5, search="exact")
    >>> model.fit(X, y).exact_.gap, model.boxes_.n_sides
    (0.0, 2)
    """

    model_name: ClassVar[str] = "BoxClassifier"
    title: ClassVar[str] = "boxes"
    learned_word: ClassVar[str] = "union"
    declares = BoxParameters
    printed: ClassVar[tuple[str, ...]] = (
        "likelihood", "n_boxes", "negative_weight", "box_cost", "side_cost",
    )  # fmt: skip

    _most_kept: ClassVar[int] = 1000  # AUH on pima: .829 with 100, .835 with 800

    positive: Any = BoxParameters.positive.default
    likelihood: str = BoxParameters.likelihood.default
    n_boxes: int = BoxParameters.n_boxes.default
    negative_weight: float | str = BoxParameters.negative_weight.default
    box_cost: float = BoxParameters.box_cost.default
    side_cost: float = BoxParameters.side_cost.default
    temperature: float = BoxParameters.temperature.default
    max_cuts: int = BoxParameters.max_cuts.default
    prior_weight: float = BoxParameters.prior_weight.default
    predictive: str = BoxParameters.predictive.default
    search: str = BoxParameters.search.default
    solver: str = BoxParameters.solver.default
    until: str = BoxParameters.until.default
    memory_limit: float = BoxParameters.memory_limit.default
    n_jobs: int | None = BoxParameters.n_jobs.default
    missing: str = BoxParameters.missing.default
    unknown: str = BoxParameters.unknown.default

    objective_: Annotated[float | None, Saved("objective")] = field(init=False)
    # for the second half of pooled chains
    _others: Annotated[list[FitSummary], Saved("summaries")] = field(init=False)
    _n_blocks: int = field(init=False, default=_MOST_BLOCKS)

    def _learn_from(self, training: RareRows, search: Search) -> None:
        self._others, self.objective_ = [], None
        with search.watch.part(_OF_SEARCH):
            if search.search == "exact":
                posterior = self._posterior_of("gibbs", training, max_cuts=_ALL_CUTS)
                self._explore(posterior, training, search, solve=self._solver(training))
                self.objective_ = self.exact_.objective
                shown = self.exact_.union
            elif self.likelihood == "pooled":
                shown = self._fit_pooled(training, search)
            else:
                shown = self._sample(self.likelihood, training, search)
        is_positive = training.is_positive
        positives, weights = training.rows[is_positive], training.weights[is_positive]
        found = LearnedBoxes.of(shown.halfway(training.rows), *training, self.prior_weight)
        with search.watch.watching():
            self._best = found.with_draws(self._draws, positives, weights)
        self._check_named()

    def _check_model(self) -> None:
        if self.search == "exact" and self.likelihood != "gibbs":
            raise ParameterError(
                f'likelihood must be "gibbs" for search "exact", got {self.likelihood!r}'
            )

    def _posterior_of(self, likelihood: str, training: RareRows, **changed: Any) -> BoxPosterior:
        names = (
            "n_boxes", "negative_weight", "box_cost", "side_cost", "temperature", "max_cuts",
            "prior_weight",
        )  # fmt: skip
        given = {name: getattr(self, name) for name in names} | changed
        return BoxPosterior(*training, likelihood=likelihood, **given)

    def _sample(self, likelihood: str, training: RareRows, search: Search) -> BoxUnion:
        """Return the best union of one posterior, with fewer steps and draws if rows are many."""
        posterior, n_rows = self._posterior_of(likelihood, training), len(training.rows)
        found = self._explore(
            posterior, training, search,
            default_steps=_steps_of(n_rows),
            n_blocks=min(self._n_blocks, most_blocks(n_rows)),
        )  # fmt: skip
        return posterior.union(found.state)

    def fold_model(self) -> tuple[Self, str]:
        """Return an unfitted copy with shorter chains for cross-validation, and words for them."""
        copy, text = super().fold_model()
        if self.draws_states:
            steps = self._search().steps(_steps_of(self.n_rows_ or 1))
            copy.n_steps = max(1, int(_FOLD_SHARE * steps))
            copy._n_blocks = min(self._n_blocks, _OF_FOLD)
            text = f"chains of {copy.n_steps:,} steps in folds"
        return copy, text

    def _fit_pooled(self, training: RareRows, search: Search) -> BoxUnion:
        """Sample "gibbs", then "beta", with one checkpoint, and predict from draws of both."""
        n_own, n_others = ceil(search.n_chains / 2), max(1, search.n_chains // 2)
        # seeds depend on the number of chains, so a checkpoint with another number is refused
        seeds = seed_sequence(search.random_state).spawn(search.n_chains + 2)[-2:]
        with search.watch.part(0.5):
            others = replace(search, n_chains=n_others, random_state=seeds[1], is_last=False,
                             progress=_without_densities(search.progress))  # fmt: skip
            shown = self._sample("gibbs", training, others)
        if self.run_.interrupted:
            return shown
        first, draws = dict(self.__dict__), self._draws
        own = replace(search, n_chains=n_own, random_state=seeds[0], part="beta: ",
                      resume=search.checkpoint is not None)  # fmt: skip
        try:
            self._others = [self.summary_]
            shown = self._sample("beta", training, own)
        except KeyboardInterrupt:  # before "beta" has a state: the first half is the model
            self.__dict__.update(first)
            self.run_ = replace(self.run_, interrupted=True)
            self.summary_ = replace(self.summary_, interrupted=True)
            return shown
        most = min(len(draws), len(self._draws), self._most_kept // 2)
        self._draws = [*thinned([self._draws], most), *thinned([draws], most)]
        return shown

    def _solver(self, training: RareRows) -> Callable[[Any, Search], Solution[BoxState]]:

        def solve(posterior: Any, search: Search) -> Solution[BoxState]:
            rows = LevelRows(*training, posterior.costs)
            if self.solver == "program":
                found = solve_program(rows, self.n_boxes, search.watch)
            else:
                start, is_ended = self._start(training, search)
                found = best_union(
                    rows, self.n_boxes, start=start, watch=search.watch,
                    memory_limit=self.memory_limit * 1e9, progress=self._reporting(search),
                    most_work=0.0 if is_ended else self._most_work(),
                )  # fmt: skip
                found = replace(found, interrupted=found.interrupted or is_ended)
            state = posterior.state(found.union)
            looked = f"searched {found.n_visited:,} sets of boxes"
            if not (found.is_optimal or found.interrupted) and self.time_limit is None:
                looked += " (set a time_limit to search longer)"
            certificate = Certificate(
                found.gap / self.temperature,
                "; ".join([*found.local_words, looked]),
                None,
                f"of up to {count_of(self.n_boxes, 'box', 'boxes')}",
            )
            return Solution(
                result=found,
                state=state,
                log_density=posterior.log_density(state),
                certificate=certificate if self.solver == "branch" else None,
                seconds=found.seconds,
                interrupted=found.interrupted,
                timed_out=found.timed_out,
            )

        return solve

    def _start(self, training: RareRows, search: Search) -> tuple[BoxUnion | None, bool]:
        """Return the best union of short chains (None for one box), and if Ctrl-C ended them."""
        if self.n_boxes == 1:
            return None, False
        posterior = self._posterior_of("gibbs", training)
        chains = replace(search, search="anneal", checkpoint=None, resume=False, random_state=0,
                         n_steps=None)  # fmt: skip
        with search.watch.part(0.1):
            run = chains.run(posterior, default_steps=_STEPS_OF_START, n_blocks=_BLOCKS_OF_START)
        return posterior.union(run.best_state), run.interrupted

    def _most_work(self) -> float:
        return WORK[self.effort] * _MOST_WORK if self.time_limit is None else inf

    def _learned(self, state: BoxState, training: RareRows) -> LearnedBoxes:
        """Return a union with its counts; only the printed union has `sides`."""
        del training
        union, inside = self.posterior_.union(state), self.posterior_.weights_inside(state)
        counts = np.array([self.posterior_.totals - inside, inside])[:, ::-1]
        return LearnedBoxes(union, counts, self.prior_weight)

    def _averaged_unions(self) -> Sequence[LearnedBoxes]:
        is_map = self.predictive == "map" or not self._draws  # exact search, or no draws yet
        return [self._best] if is_map else self._draws

    def path(
        self, X: Any, y: Any, weights: ArrayLike | None = None, sample_weight: Any = None
    ) -> BoxPath:
        """Return the best union for each of several negative weights, by exact searches.

        Each search starts from the union of the last weight. `time_limit` is for all searches
        together; without it, `effort` limits their work.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        weights : (n_weights,) array of float > 0, optional
            Negative weights. By default ten values from 0.01 to 1, evenly spaced on a log scale.

        Raises
        ------
        ParameterError, DataError
            As `fit`.
        """
        self.declares.check(self)
        search, training = self._search(), self._read_rows(X, y, sample_weight)
        given = WEIGHTS if weights is None else np.atleast_1d(np.asarray(weights, np.float64))
        for weight in given.tolist():
            check_real("weights", weight, above=0.0)
        watch, found, start, work = search.watch, [], None, 2.0 * self._most_work()
        costs = Costs(1.0, self.box_cost, self.side_cost)
        every = LevelRows(*training, costs)
        for left, weight in zip(range(len(given), 0, -1), given.tolist(), strict=True):
            rows = every.with_costs(replace(costs, negative_weight=weight))
            with watch.part(1.0 / left):
                certified = best_union(
                    rows, self.n_boxes, start=start, watch=watch,
                    memory_limit=self.memory_limit * 1e9, progress=self._reporting(search),
                    most_work=max(work, 0.0) / left,
                )  # fmt: skip
            found.append(certified)
            start, work = certified.union, work - certified.work
            if certified.interrupted:
                break
        unions = [union.union.halfway(training.rows) for union in found]
        return BoxPath(
            given[: len(found)], tuple(unions), tuple(found), self._place, self.classes_,
            self._reader,
        )  # fmt: skip

    @staticmethod
    def _reporting(search: Search) -> Callable[[float, float], object]:
        """Return a function that reports the progress of a search."""
        return lambda gain, bound: search.report("searching boxes", None, gain=gain, bound=bound)

    # -- what was learned --------------------------------------------------------------------------

    def bound(
        self, n_values: int | Sequence[int], delta: float = 0.05, negative_weight: float = 1.0
    ) -> float:
        """Return a bound on the weighted error rate of the printed union on new rows.

        With probability at least ``1 - delta``, the bound holds for all unions of at most `n_boxes`
        boxes at the same time, if rows are independent draws from one distribution. See
        `generalization_bound` for the formula (Proposition 3 of Goh 2018, corrected). It applies
        here for this reason: in a column with M values, a box contains one of M (M + 1) / 2 runs of
        values, or none. A run is a pair of the M + 1 gaps before, between and after the values. So
        each union is equivalent, on all rows, to a union with sides at the gaps, which do not
        depend on the rows.

        Parameters
        ----------
        n_values : int >= 1, or one for each column of the matrix
            Number of possible values of a cell, which must be known without the rows. For example,
            numbers from 0 to 10 with two decimals have 1,001.
        delta : float in (0, 1)
        negative_weight : float from 0 to 1
            Cost of a negative inside, if a positive outside costs 1. It must also be chosen without
            the rows.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        check_is_fitted(self)
        weight = check_real("negative_weight", negative_weight, minimum=0.0, maximum=1.0)
        n_columns = len(self._encoder.source)
        given = list(n_values) if isinstance(n_values, Sequence) else [n_values] * n_columns
        if len(given) != n_columns:
            raise ParameterError(f"n_values must be {n_columns} integers, got {len(given)}")
        anchors = [check_integer("n_values", count, minimum=1) + 1 for count in given]
        counts = self._best.counts
        errors = (counts[0, 1] + weight * counts[1, 0]) / counts.sum()
        return generalization_bound(float(errors), int(counts.sum()), anchors, self.n_boxes, delta)

    @property
    def draws_states(self) -> bool:
        """Whether the search samples the posterior."""
        return self.search != "exact"

    def _model_pieces(self) -> list[str]:
        return [
            *self._parameter_words(),
            *["predictive average"] * (len(self._averaged_unions()) > 1),
        ]

    def _found_pieces(self) -> list[str]:
        if self.objective_ is None:
            return super()._found_pieces()
        how = self.summary_.found_words(self.learned_word)
        found = [
            how.replace("is more probable", "has a higher objective"),
            f"objective {self.objective_:,.2f}",
        ]
        if self.solver == "program":
            found[0] = "best found by a program, to the solver's tolerance"
        return found

    def view(self) -> View:
        """Return what is shown, with the convergence of all chains."""
        view = super().view()
        others, own = self._others, self.summary_.warnings
        news = [text for other in others for text in other.warnings if text not in own]
        found, rest, *warnings = self._found_page(warnings=[f"gibbs chains: {t}" for t in news])
        of_each = [("beta", self.summary_), *(("gibbs", other) for other in others)]
        shown = [Pieces([f"{name} chains:", *each.convergence_pieces]) for name, each in of_each]
        converged = shown if others else [rest]
        return view._replace(found=(found, *converged, *warnings))

    def _read_learned(self, record: Mapping[str, Any]) -> LearnedBoxes:
        learned: LearnedBoxes = restored(LearnedBoxes, record, self._sizes())
        return learned


def _without_densities(
    progress: Callable[[samplers.Progress], object] | None,
) -> Callable[[samplers.Progress], object] | None:
    """Return a function that reports chains of "gibbs" without log posteriors.

    They are on another scale than those of "beta", which follow and are printed.
    """
    if progress is None:
        return None
    hidden: dict[str, Any] = {"best_log_density": nan, "log_density": nan, "described": {}}
    return lambda one: progress(one._replace(phase=f"gibbs: {one.phase}", **hidden))


def _steps_of(n_rows: int) -> int:
    """Return the default steps of each chain and phase: fewer for many rows."""
    return int(max(_LEAST_STEPS, min(_MOST_STEPS, _ROW_STEPS / n_rows)))
