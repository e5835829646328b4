"""Candidate cascades for a table: their settings, evidences, and scores on held-out rows.

A candidate is fitted to four fifths of the rows and scored on the rest. Random fifths follow until
2,000 rows, or all, have been scored. The score is for the average over trees: over all trees if
they can be summed over, with each temper for dependent leaves; otherwise over draws of short
chains. A tree that is only shown is scored alone. If scoring takes long, only a sample of the
held-out rows is scored.

A candidate's log evidence uses the normalized prior over its trees. It is the prior predictive log
density of the rows, per cell of nominal and ordinal columns and per unit of continuous ones. So it
is comparable between all candidates, with any leaves, splits and priors.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from scipy.special import logsumexp

import samplers
from bayescascade.base.arrays import Floats
from bayescascade.base.errors import TooLargeError
from bayescascade.base.store import SKIPPED, As, MaybeNaN, Words
from bayescascade.base.watch import OutOfTime, check_time, watch_in_use
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.cascade import Cascade
from bayescascade.methods.density.trees.density import can_be_read
from bayescascade.methods.density.trees.estimators import BranchCascade, LeafCascade
from bayescascade.methods.density.trees.exact import (
    ExactCost,
    ExactPosterior,
    certificate_of,
    solve,
)
from bayescascade.methods.density.trees.shallow_extent import extent_of, fitting_trees, steps_a_row
from bayescascade.methods.density.trees.shallow_trees import TEMPERS, ShallowTrees
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.methods.density.trees.tree_posterior import operations_of_step
from bayescascade.model.draws import thinned
from bayescascade.model.solution import TEMPERED

_N_FOLDS, _MOST_HELD = 5, 2_000.0  # folds; no more folds after this many rows
_N_CHAINS, _N_AVERAGED = 2, 40  # chains of short searches, and draws in an average
_N_BLOCKS = 60  # blocks of each chain; each starts with the work of some steps
_OF_FIT = 2.5e9  # operations of a short search in addition to its steps
_REDRAWN = 8e6  # bytes of redraws; a redraw of a larger subtree takes as long as the chain
_FEWEST_STEPS, _MOST_STEPS = 2_000, 30_000
_FEWEST_SCORED, _MOST_SCORED = 200, 2_000  # sampled rows of a fold with more distinct rows
_FEWEST_AFFORDED = 500  # such rows if scoring takes too long
_MOST_SCORING = 3e8  # such rows times columns to the third power


FOR_READING = {"search": "anneal", "n_steps": 5_000, "n_chains": 2, "memory_limit": 0.01}
"""The search for a tree that is only shown, if not all trees can be summed over."""

_CLASSES = {"leaf": LeafCascade, "branch": BranchCascade}
# Operations; the shares of the effort and `choosing.EFFORTS` are in the same unit.
_OF_PAIR = 0.8  # for a step of dependent leaves
_OF_SCORED = 3.5  # for a step of scoring a row by dependent leaves with all tempers
_OF_SCORED_SUBSET = 4e3  # for a set of fixed columns and a scored row
_OF_CELL = 8.0  # for a row and column of other shallow leaves
_OF_SUBSET = 8e5  # for a set of fixed columns of those
_OF_TERM = {"leaf": 6e3, "branch": 1e2}  # for a box's term
_OF_ANY = 4e6  # for any candidate


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate cascade for a table."""

    model: Annotated[str, Words(*_CLASSES)]  # the prior over trees
    # parameters that are not the defaults
    settings: Annotated[Mapping[str, Any], As(dict, dict)] = field(default_factory=dict)
    log_evidence: MaybeNaN = nan  # nats; NaN if not all trees can be summed over
    held_out: MaybeNaN = nan  # mean log density of held-out rows, nats a row; NaN if not computed
    n_leaves: int = 0  # of the best tree; 0 if none was searched for
    seconds: Annotated[float, SKIPPED] = nan  # seconds to weigh it; NaN in a model from a file
    operations: float = 0.0  # of its sum over trees

    def cascade(self, **run: Any) -> Cascade:
        """Return the estimator, with additional parameters for its run."""
        return _CLASSES[self.model](**{**self.settings, **run})

    def is_of(self, cascade: Cascade) -> bool:
        """Whether a cascade has this kind and these settings."""
        own = cascade.get_params().items()
        return type(cascade) is _CLASSES[self.model] and self.settings.items() <= own

    def changed(self, **settings: Any) -> "Candidate":
        """Return a candidate with other settings and without results."""
        return Candidate(self.model, {**self.settings, **settings})

    def of_any_depth(self, model: str, partitions: str) -> "Candidate":
        """Return trees of any depth with the same leaves and prior."""
        own = {k: v for k, v in self.untempered.settings.items() if k != "max_depth"}
        return Candidate(model, {**own, "partitions": partitions})

    @property
    def untempered(self) -> "Candidate":
        """The same candidate without temper and results."""
        own = {k: v for k, v in self.settings.items() if k != "temper"}
        return Candidate(self.model, own)

    @property
    def key(self) -> tuple[object, ...]:
        """Its identity: the model, and the settings that are not the defaults."""
        usual = _CLASSES[self.model]
        record = {k: v for k, v in self.settings.items() if v != getattr(usual, k)}
        if self.is_shallow:  # even if None
            record["max_depth"] = self.settings["max_depth"]
        return (self.model, *sorted(record.items()))

    @property
    def kind(self) -> tuple[str, str]:
        """Leaves and partitions."""
        own = self.settings
        return str(own.get("leaf", "uniform")), str(own.get("partitions", "subsets"))

    @property
    def is_readable(self) -> bool:
        """Whether its best tree has a few leaves, but more than one."""
        return can_be_read(self.n_leaves)

    @property
    def is_summed(self) -> bool:
        """Whether all its trees can be summed over."""
        return self.is_shallow or not isnan(self.log_evidence)

    @property
    def is_shallow(self) -> bool:
        """Whether its trees have limited depth."""
        return "max_depth" in self.settings

    @property
    def words(self) -> str:
        """Its description, such as "branch model, dependent leaves, depth 2, concentration 4"."""
        own = self.settings
        leaf, depth = own.get("leaf", "uniform"), own.get("max_depth")
        texts = [f"{self.model} model", f"{leaf} leaves"]
        if own.get("prior") == "generative":
            texts[0] += f", generative prior, stop {own.get('stop', 0.5):g}"
        if self.is_shallow and depth == 0:
            texts = ["columns independent" if leaf == "independent" else f"one {leaf} leaf"]
        elif self.is_shallow:
            texts.append("depth 3 of some columns" if depth is None else f"depth {depth}")
        else:
            texts.append(own.get("partitions", "subsets"))
        if leaf != "uniform":
            texts.append(f"concentration {own.get('leaf_concentration', 1.0):g}")
        elif "concentration" in own:
            texts.append(f"concentration {own['concentration']:g}")
        if own.get("temper") is not None:
            texts.append(f"{TEMPERED} {own['temper']:g} rows")
        return ", ".join(texts)

    def counted(self, table: Table, memory_limit: float) -> float:
        """Return the operations of its sum over trees; infinity if it needs more memory."""
        posterior = self.cascade()._make_posterior(table)
        if self.is_shallow:
            depth = self.settings["max_depth"]
            steps, n_bytes, n_subsets = extent_of(posterior, depth)
            if n_bytes > memory_limit:
                return inf
            if posterior.model.leaf == "dependent":
                return _OF_ANY + _OF_PAIR * steps
            each = table.n_distinct * table.schema.n_columns * _OF_CELL + _OF_SUBSET
            return _OF_ANY + n_subsets * each
        try:
            cost = ExactCost.of(posterior)
        except TooLargeError:
            return inf
        if cost.memory_bytes > memory_limit:
            return inf
        return _OF_ANY + _OF_TERM[self.model] * cost.n_terms

    def row_operations(self, table: Table) -> float:
        """Return the operations to score a row if they are many, otherwise 0."""
        if not (self.is_shallow and self.kind[0] == "dependent"):
            return 0.0
        posterior = self.cascade()._make_posterior(table)
        _, _, n_subsets = extent_of(posterior, self.settings["max_depth"])
        return _OF_SCORED * steps_a_row(table.schema, n_subsets) + _OF_SCORED_SUBSET * n_subsets


def weighed(
    candidate: Candidate, table: Table, memory_limit: float, n_jobs: int | None
) -> Candidate | None:
    """Return the candidate with its log evidence, and the number of leaves of its best tree.

    It is None if the sum over all trees is not known to two decimals.
    """
    started, posterior = perf_counter(), candidate.cascade()._make_posterior(table)
    if candidate.is_shallow:
        depth, columns = fitting_trees(posterior, candidate.settings["max_depth"], memory_limit)
        shallow = ShallowTrees(posterior, depth, columns=columns)
        log_evidence, n_leaves = shallow.log_evidence, shallow.n_leaves
    else:
        exact = solve(posterior, memory_limit=memory_limit, n_jobs=n_jobs)
        if certificate_of(exact).log_evidence is None:
            return None
        log_evidence, n_leaves = exact.log_evidence, exact.tree.n_leaves
    seconds = perf_counter() - started
    return replace(candidate, log_evidence=log_evidence, n_leaves=n_leaves, seconds=seconds)


@dataclass(frozen=True)
class HeldOutSplits:
    """One or a few splits into training rows and held-out rows."""

    folds: Sequence[tuple[Table, Table]]
    seed: int
    n_jobs: int | None
    memory_limit: float  # bytes
    # log densities of held-out rows in each candidate's last scoring, by its key
    rows: dict[tuple[object, ...], Floats] = field(default_factory=dict)

    @classmethod
    def of(
        cls, table: Table, seed: int, n_jobs: int | None, memory_limit: float
    ) -> "HeldOutSplits":
        """Split a table's rows; no folds if there are too few."""
        folds, n_held, weights = list[tuple[Table, Table]](), 0.0, table.weights
        rng, p = np.random.default_rng(seed), table.schema.n_columns
        most = min(max(_FEWEST_SCORED, int(_MOST_SCORING / p**3)), _MOST_SCORED)
        for held in split_rows(weights, _N_FOLDS, rng):
            learned = weights - held
            if held.any() and learned.any() and n_held < _MOST_HELD:
                n_held += float(held.sum())
                scored = _sample(with_weights(table, held), most, rng)
                folds.append((with_weights(table, learned), scored))
        return cls(folds, seed, n_jobs, memory_limit)

    def cut(self, n_folds: int) -> "HeldOutSplits":
        """Return the first of the folds."""
        return replace(self, folds=self.folds[:n_folds])

    def affordable(self, summed: Sequence[Candidate], operations: float) -> "HeldOutSplits":
        """Return as many folds as these operations allow, or one with fewer rows."""
        learned, held = self.folds[0]
        of_sums = sum(candidate.operations for candidate in summed)
        of_row = sum(candidate.row_operations(learned) for candidate in summed)
        n_folds = int(operations / max(of_sums + of_row * held.n_distinct, 1.0))
        if n_folds > 0 or of_row == 0.0:
            return self.cut(max(n_folds, 1))
        most = max(int((operations - of_sums) / of_row), _FEWEST_AFFORDED)
        sampled = _sample(held, most, np.random.default_rng(self.seed))
        return replace(self, folds=[(learned, sampled)], rows={})

    def enough(self, n_rows: int) -> "HeldOutSplits":
        """Return the first folds with this number of distinct held-out rows, or all."""
        n_held = np.cumsum([held.n_distinct for _, held in self.folds])
        return self.cut(int(np.searchsorted(n_held, n_rows)) + 1)

    def within(
        self, searched: Sequence[Candidate], operations: float
    ) -> tuple["HeldOutSplits", int]:
        """Return the folds that fit, and the steps of each short chain; 0 if none fit."""
        of_steps = [operations_of_step(self.folds[0][0], one.kind[0]) for one in searched]
        each = 2 * _N_CHAINS * sum(of_steps)
        for n_folds in range(len(self.folds), 0, -1):
            n_fits = 1 + n_folds if n_folds > 1 else 1  # the first fold comes first
            n_steps = int((operations / n_fits - _OF_FIT * len(searched)) / each)
            if n_steps >= _FEWEST_STEPS:
                return self.cut(n_folds), min(n_steps, _MOST_STEPS)
        return self.cut(1), 0

    def scored(self, candidate: Candidate, n_steps: int) -> list[Candidate]:
        """Return the candidate with its score, and for dependent leaves the best tempered one.

        Folds in which it was scored before are not scored again.
        """
        started = perf_counter()
        tempers = TEMPERS if candidate.is_shallow and candidate.kind[0] == "dependent" else (None,)
        if candidate.settings.get("max_depth") == 0:
            tempers = (None,)  # a single leaf has no choices to temper
        elif "temper" in candidate.settings:
            tempers = (candidate.settings["temper"],)
        keys = [(candidate if c is None else candidate.changed(temper=c)).key for c in tempers]
        known = np.array([self.rows.get(key, np.empty(0)) for key in keys])
        n_held = np.cumsum([0, *(held.n_distinct for _, held in self.folds)])
        n_known = int(np.searchsorted(n_held, known.shape[1], "right")) - 1  # folds
        of_folds, n_leaves = [known[:, : n_held[n_known]]], candidate.n_leaves
        for learned, held in self.folds[n_known:]:
            check_time()
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
            own_leaves = n_leaves if temper is None else 0  # its best tree is another
            own = replace(own, held_out=mean, n_leaves=own_leaves, seconds=seconds)
            self.rows[own.key] = of_temper
            found.append(own)
        return found[:1] + sorted(found[1:], key=lambda scores: -scores.held_out)[:1]

    def of_best_tree(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the score of its best tree alone, in the first fold."""
        learned, held = self.folds[0]
        left = watch_in_use().left
        model = candidate.cascade(
            **FOR_READING, n_jobs=self.n_jobs, random_state=self.seed,
            time_limit=None if left == inf else max(left, 0.1),
        )  # fmt: skip
        if candidate.is_shallow:
            trees = self._shallow_trees(candidate, learned)
            model.posterior_ = trees.posterior
            model._set_features(learned.schema)
            read = model._readable(model._count(trees.tree))
        else:
            read = model.fit(learned).tree_
        scores = read.score_codes(held.codes.astype(np.int32))
        score = float(np.average(scores, weights=held.weights))
        return replace(candidate, held_out=score, n_leaves=candidate.n_leaves or read.n_leaves)

    def _shallow_trees(self, candidate: Candidate, learned: Table) -> ShallowTrees:
        posterior = candidate.cascade()._make_posterior(learned)
        extent = fitting_trees(posterior, candidate.settings["max_depth"], self.memory_limit)
        return ShallowTrees(posterior, extent[0], columns=extent[1])

    def _by_shallow_trees(
        self, candidate: Candidate, learned: Table, held: Table, tempers: Sequence[float | None]
    ) -> Floats:
        """Return log densities of rows with each temper."""
        trees = self._shallow_trees(candidate, learned)
        if tempers != (None,):
            return trees.score_tempers(held, tempers)
        return trees.log_predictive(held.codes.astype(np.int32))[np.newaxis]

    def _by_sums(self, candidate: Candidate, learned: Table, held: Table) -> Floats:
        """Return log densities of rows averaged over all trees, or over draws if necessary."""
        posterior, codes = candidate.cascade()._make_posterior(learned), held.codes.astype(np.int32)
        exact = solve(posterior, memory_limit=self.memory_limit, n_jobs=self.n_jobs)
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
        if posterior.redraws is not None:
            posterior.redraws.most_polished = 0  # draws are averaged, and none needs to be the best
        search = model.check_parameters()
        run: samplers.Run[Tree] = search.run(posterior, default_steps=n_steps, n_blocks=_N_BLOCKS)
        if run.interrupted:
            raise KeyboardInterrupt
        codes = held.codes.astype(np.int32)
        drawn = thinned(run.draws, _N_AVERAGED)
        if not drawn:  # time was up before the first draw
            raise OutOfTime
        read = [model._readable(model._count(tree)) for tree in drawn]
        scores = [tree.score_codes(codes) for tree in read]
        return logsumexp(scores, axis=0, b=1 / len(scores))[np.newaxis], run.best_state.n_leaves


def _sample(table: Table, most: int, rng: np.random.Generator) -> Table:
    """Return a table; if it has more than `most` distinct rows, a sample of `most` rows."""
    if table.n_distinct <= most:
        return table
    shares = table.weights / table.weights.sum()
    return with_weights(table, rng.multinomial(most, shares).astype(np.float64))
