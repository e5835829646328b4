"""Scores of candidates on rows held out: each learns from four fifths, and is scored on the rest.

Fifths are dealt at random until 2,000 rows were scored, or all. What is scored is the average over
trees: all trees where they can be summed over, and each temper of trees of dependent leaves; else
draws of short chains. Where scoring takes long, rows are drawn of those held out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, isnan
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayescascade.base.errors import TooLargeError
from bayescascade.base.watch import watch_in_use
from bayescascade.data.dealing import deal, with_weights
from bayescascade.data.table import Table
from bayescascade.methods.cascades.candidates import Candidate, chain_nanoseconds
from bayescascade.methods.cascades.exact import ExactPosterior, solve_or_tilt
from bayescascade.methods.cascades.shallow_extent import fitting_trees
from bayescascade.methods.cascades.shallow_trees import TEMPERS, ShallowTrees

_N_FOLDS, _MOST_HELD = 5, 2_000.0  # and rows after which no fold follows
_N_CHAINS, _N_AVERAGED = 2, 40  # of short searches, and draws that are averaged over
_N_BLOCKS = 60  # of each chain: each begins with as much work as some steps
_NS_FIT = 2.5e9  # nanoseconds of a short search beside its steps
_REDRAWN = 8e6  # bytes of redraws: of larger subtrees one takes as long as the chain
_FEWEST_STEPS, _MOST_STEPS = 2_000, 30_000
_FEWEST_SCORED, _MOST_SCORED = 200, 2_000  # rows drawn of a fold that has more distinct ones
_FEWEST_AFFORDED = 500  # of them where scoring takes longer than it may
_MOST_SCORING = 3e8  # of them, times columns to the third power

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Rows to learn from and rows to score, once or a few times."""

    folds: Sequence[tuple[Table, Table]]
    seed: int
    n_jobs: int | None
    memory_limit: float  # bytes
    # log densities of held-out rows, of a candidate's last scoring, by its key
    rows: dict[tuple[object, ...], Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, seed: int, n_jobs: int | None, memory_limit: float) -> "HeldOut":
        """Deal a table's rows; no folds if there are too few."""
        folds, n_held, weights = list[tuple[Table, Table]](), 0.0, table.weights
        rng, p = np.random.default_rng(seed), table.schema.n_columns
        most = min(max(_FEWEST_SCORED, int(_MOST_SCORING / p**3)), _MOST_SCORED)
        for held in deal(weights, _N_FOLDS, rng):
            learned = weights - held
            if held.any() and learned.any() and n_held < _MOST_HELD:
                n_held += float(held.sum())
                scored = _sample(with_weights(table, held), most, rng)
                folds.append((with_weights(table, learned), scored))
        return cls(folds, seed, n_jobs, memory_limit)

    def cut(self, n_folds: int) -> "HeldOut":
        """Return the first of the folds."""
        return replace(self, folds=self.folds[:n_folds])

    def affordable(self, summed: Sequence[Candidate], nanoseconds: float) -> "HeldOut":
        """Return as many folds as these can be scored on in time, or one of fewer rows."""
        learned, held = self.folds[0]
        of_sums = 1e9 * sum(one.expected_seconds for one in summed)
        of_row = sum(one.row_nanoseconds(learned) for one in summed)
        n_folds = int(nanoseconds / max(of_sums + of_row * held.n_distinct, 1.0))
        if n_folds > 0 or of_row == 0.0:
            return self.cut(max(n_folds, 1))
        most = max(int((nanoseconds - of_sums) / of_row), _FEWEST_AFFORDED)
        return replace(
            self, folds=[(learned, _sample(held, most, np.random.default_rng(self.seed)))]
        )

    def within(
        self, searched: Sequence[Candidate], n_finalists: int, nanoseconds: float
    ) -> tuple["HeldOut", int]:
        """Return as many of the folds as fit, and the steps of each short chain; 0 if none do.

        All candidates are compared by one fold, and then finalists by all if there are several.
        """
        learned, _ = self.folds[0]
        each = sorted(2 * _N_CHAINS * chain_nanoseconds(learned, one.kind[0]) for one in searched)
        for n_folds in range(len(self.folds), 0, -1):
            n_again = n_folds * n_finalists if n_folds > 1 else 0
            left = nanoseconds - _NS_FIT * (len(each) + n_again)
            n_steps = int(left / (sum(each) + n_again * each[-1]))
            if n_steps >= _FEWEST_STEPS:
                return self.cut(n_folds), min(n_steps, _MOST_STEPS)
        return self.cut(1), 0

    def scored(self, candidate: Candidate, n_steps: int) -> list[Candidate]:
        """Return the candidate with its score, and, of dependent leaves, tempered ones."""
        started = perf_counter()
        tempers = TEMPERS if candidate.is_shallow and candidate.kind[0] == "dependent" else (None,)
        if candidate.settings.get("max_depth") == 0:
            tempers = (None,)  # one leaf: nothing to decide
        of_folds, n_leaves = list[Floats](), candidate.n_leaves
        for learned, held in self.folds:
            if candidate.is_shallow:
                of_folds.append(self._by_shallow_trees(candidate, learned, held, tempers))
            elif not isnan(candidate.log_evidence):
                of_folds.append(self._by_sums(candidate, learned, held)[np.newaxis])
            else:
                of_rows, n_leaves = self._by_chains(candidate, learned, held, n_steps)
                of_folds.append(of_rows)
        scores, seconds = np.concatenate(of_folds, axis=1), perf_counter() - started
        weights = np.concatenate([held.weights for _, held in self.folds])
        found = []
        for temper, of_temper in zip(tempers, scores, strict=True):
            mean = float(of_temper @ weights / weights.sum())
            own = candidate if temper is None else candidate.changed(temper=temper)
            own = replace(own, held_out=mean, n_leaves=n_leaves, seconds=seconds)
            self.rows[own.key] = of_temper
            found.append(own)
        return found[:1] + sorted(found[1:], key=lambda one: -one.held_out)[:1]

    def _by_shallow_trees(
        self, candidate: Candidate, learned: Table, held: Table, tempers: Sequence[float | None]
    ) -> Floats:
        """Return log densities of rows with each temper."""
        posterior = candidate.cascade()._make_posterior(learned)
        extent = fitting_trees(posterior, candidate.settings["max_depth"], self.memory_limit)
        trees = ShallowTrees(posterior, extent[0], columns=extent[1])
        if len(tempers) > 1:
            return trees.score_tempers(held)
        return trees.log_predictive(held.codes.astype(np.int32))[np.newaxis]

    def _by_sums(self, candidate: Candidate, learned: Table, held: Table) -> Floats:
        """Return log densities of rows averaged over all trees, or over draws where that is all."""
        posterior, codes = candidate.cascade()._make_posterior(learned), held.codes.astype(np.int32)
        exact, _ = solve_or_tilt(posterior, memory_limit=self.memory_limit, n_jobs=self.n_jobs)
        if isinstance(exact, ExactPosterior):
            with suppress(TooLargeError):
                return exact.log_predictive(codes)
        run = {"search": "exact", "predictive": "average", "n_jobs": self.n_jobs}
        model = candidate.cascade(memory_limit=self.memory_limit / 1e9, **run)
        return model.fit(learned).score_codes(codes)

    def _by_chains(
        self, candidate: Candidate, learned: Table, held: Table, n_steps: int
    ) -> tuple[Floats, int]:
        """Return log densities of rows averaged over draws, and the leaves of the best tree."""
        left = watch_in_use().left
        model = candidate.cascade(
            search="anneal+metropolis", n_steps=n_steps, n_chains=_N_CHAINS, n_jobs=self.n_jobs,
            random_state=self.seed, time_limit=None if left == inf else max(left, 0.1),
            memory_limit=min(self.memory_limit, _REDRAWN) / 1e9,
        )  # fmt: skip
        model.posterior_ = posterior = model._make_posterior(learned)
        model._set_features(posterior.schema)
        model._prepare_chains(posterior)
        search = model.check_parameters()
        run = search.run(posterior, default_steps=n_steps, n_blocks=_N_BLOCKS)
        if run.interrupted:
            raise KeyboardInterrupt
        drawn = [tree for chain in run.draws for tree in chain]
        some = np.linspace(0, len(drawn) - 1, min(_N_AVERAGED, len(drawn))).round().astype(int)
        codes = held.codes.astype(np.int32)
        read = [model._readable(model._count(drawn[i])) for i in some.tolist()]
        scores = [one.score_codes(codes) for one in read]
        return logsumexp(scores, axis=0, b=1 / len(scores))[np.newaxis], run.best_state.n_leaves


def _sample(table: Table, most: int, rng: np.random.Generator) -> Table:
    """Return a table; if more rows are distinct, as many as `most`, drawn with replacement."""
    if table.n_distinct <= most:
        return table
    shares = table.weights / table.weights.sum()
    return with_weights(table, rng.multinomial(most, shares).astype(np.float64))
