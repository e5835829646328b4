"""The posteriors of rule lists, of densities and of labels; `models` has the formulas.

They apply the formulas to the data: what each part captures, and the compiled sweep that samplers
call by `advance`.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import astuple
from functools import cached_property, partial
from hashlib import blake2b
from math import cbrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_real
from bayescascade.data.levels import level_text
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import mine_antecedents
from bayescascade.methods.lists.kernels import layout
from bayescascade.methods.lists.kernels.sweep import exchange
from bayescascade.methods.lists.models import (
    ListPrior,
    density_log_likelihood,
    density_rounding,
    label_log_likelihood,
    label_rounding,
    prior_sizes,
)
from bayescascade.methods.lists.parts import log_first_volumes
from bayescascade.methods.lists.rule_list import RuleList
from bayescascade.model.compiled import CompiledPosterior, whole_weights
from bayescascade.model.draws import TraceLegend
from samplers.types import Exchanged, StepCounts

if TYPE_CHECKING:
    from bayescascade.data.table import Table


MOVE_WEIGHTS = dict(zip(layout.MOVES, (0.2, 0.2, 0.15, 0.15, 0.15, 0.15), strict=True))
"""Probability of each move; add and remove are each other's reverse, so they are equal."""

_START_RULES = 4  # a random start has fewer rules

_START_TRIES = 50


class RuleListPosterior(CompiledPosterior[RuleList]):
    """The common part of both posteriors: candidates, prior and table."""

    moves_compiled = layout.MOVES
    tries: ClassVar[Mapping[str, float]] = MOVE_WEIGHTS
    state_name = "rule list"
    _parameter_names: ClassVar[tuple[str, ...]] = (
        "expected_rules", "expected_size", "concentration", "max_size",
    )  # fmt: skip
    kind: int
    schema: Schema  # the columns that rules may use

    def __init__(
        self,
        table: "Table",
        features: NDArray[np.intp],
        labels: NDArray[np.integer],
        n_classes: int,
        expected_rules: float,
        expected_size: float,
        concentration: float,
        max_size: int,
        min_support: float,
        memory_limit: float,
    ) -> None:
        self._codes, self._labels = table.codes[features], labels
        self._n_classes = n_classes
        self.prior = ListPrior(expected_rules, expected_size)
        self.expected_rules, self.expected_size = astuple(self.prior)
        self.concentration = check_real("concentration", concentration, above=0.0)
        self.table = table
        self.schema = Schema(tuple(table.schema.columns[j] for j in features))
        self.antecedents, self.rows = mine_antecedents(
            self.schema, self._codes, table.weights, labels, n_classes,
            max_size=max_size, min_support=min_support, memory_limit=memory_limit,
        )  # fmt: skip
        self.max_size, self.min_support = int(max_size), float(min_support)

    # -- the contract ------------------------------------------------------------------------------

    def log_prior(self, state: RuleList) -> float:
        """Return the log prior of a list, nats."""
        if state.problem(len(self.antecedents)) is not None:
            return -np.inf
        sizes = self.antecedents.sizes[list(state.rules)].tolist()
        return self.prior.log_prior(sizes, self.antecedents.n_of_size)

    @abstractmethod
    def rounding(self, state: RuleList) -> float:
        """Return a bound on the rounding error of a list's log density, nats."""

    def _prior_sizes(self, state: RuleList) -> float:
        return prior_sizes(self.prior, self.antecedents.n_of_size, state.n_rules + 1)

    def initial_state(self, rng: np.random.Generator) -> RuleList:
        """Return a list of zero to three random rules, drawn without looking at the rows."""
        state = RuleList()
        n_wanted = int(rng.integers(_START_RULES))
        for _ in range(_START_TRIES):
            if state.n_rules >= min(n_wanted, len(self.antecedents)):
                break
            position = int(rng.integers(state.n_rules + 1))
            longer = state.inserted(position, self.draw_candidate(rng))
            if self.log_prior(longer) > -np.inf:
                state = longer
        return state

    def draw_candidate(self, rng: np.random.Generator) -> int:
        """Draw a number of conditions by its prior weight, then a candidate rule of this size."""
        size = rng.choice(self.log_size_proposal.size, p=np.exp(self.log_size_proposal))
        start = int(self.antecedents.n_of_size[:size].sum())
        return start + int(rng.integers(self.antecedents.n_of_size[size]))

    def describe(self, state: RuleList) -> Mapping[str, float]:
        """Return rules, conditions, columns used, first candidate (-1: none), and log prior."""
        return {
            "n_rules": float(state.n_rules),
            "n_conditions": float(self.antecedents.sizes[list(state.rules)].sum()),
            "n_features": float(len(self.columns_of(state))),
            "first_rule": float(state.rules[0]) if state.rules else -1.0,
            # all parts are known to have cells
            "log_prior": RuleListPosterior.log_prior(self, state),
        }

    def advance(
        self, rng: np.random.Generator, state: RuleList, n_steps: int, inverse_temperature: float
    ) -> tuple[RuleList, StepCounts[RuleList]]:
        """Run compiled steps, with moves drawn by `move_weights`; see `kernels.sweep`."""
        found = self.exchange(rng, [state], n_steps, n_steps, [float(inverse_temperature)], 0)
        return found.states[0], found.counts

    def exchange(
        self,
        rng: np.random.Generator,
        states: Sequence[RuleList],
        n_steps: int,
        between: int,
        inverse_temperatures: Sequence[float],
        n_rounds: int,
    ) -> Exchanged[RuleList]:
        """Run compiled steps of replica exchange; see `kernels.sweep`."""
        n_lists = len(states)
        works = layout.new_workspaces(self.antecedents.arrays, self.rows, n_lists)
        levels, holders = np.zeros((n_lists, 3)), np.zeros(n_lists, np.int64)
        sizes = np.array([state.n_rules for state in states])
        rules = np.zeros((n_lists, layout.MAX_RULES), np.int64)
        for k, state in enumerate(states):
            rules[k, : state.n_rules] = state.rules
        counts = np.zeros((2, 2, len(layout.MOVES)), np.int64)  # of the coldest list, and others
        swaps = np.zeros((3, n_lists - 1))
        exchange(
            rng, self.antecedents.arrays, self.rows, self.model_arrays, works, rules, sizes,
            n_steps, between, np.array(inverse_temperatures), n_rounds, levels, holders,
            self.move_cdf, counts, swaps,
        )  # fmt: skip
        best = _list_in(works, int(levels[:, 2].argmax()), layout.BEST)
        own = self.step_counts(counts[0], levels[holders[0], 0], best, levels[:, 2].max())
        lists = tuple(_list_in(works, k, layout.CURRENT) for k in holders.tolist())
        log_densities = tuple(levels[holders, 0].tolist())
        return Exchanged(lists, log_densities, own, *map(tuple, swaps.tolist()))

    def encode_state(self, state: RuleList) -> object:
        """Return a list as JSON-ready data."""
        return {"rules": list(state.rules)}

    def _read_state(self, encoded: Any) -> RuleList:
        return RuleList(tuple(encoded["rules"]))

    def _problem(self, state: RuleList) -> str | None:
        problem = state.problem(len(self.antecedents))
        is_possible = problem is not None or self.log_prior(state) > -np.inf
        return problem if is_possible else "its prior is zero"

    def _identity(self) -> tuple[list[Any], tuple[()]]:
        return [self.parameters(), self.table.fingerprint()], ()

    def legend(self) -> TraceLegend:
        """Return the legend of the traces; outer bins of labeled rows are open."""
        words = partial(self.antecedents.words, is_open=self.kind == layout.LABELS)
        return TraceLegend(
            size="n_rules",
            columns=self.schema.names,
            columns_of=self.columns_of,
            labels={"first_rule": words},
            parts_of=self.parts_of,
        )

    def parts_of(self, state: RuleList) -> dict[str, Hashable]:
        """Return the rows of each part of a list, by name of the part; None if it is empty."""
        names = [*(f"rule {number}" for number in range(1, state.n_rules + 1)), "else"]
        return dict(zip(names, self._held(state), strict=True))

    def _held(self, state: RuleList) -> list[Hashable]:
        """Return a digest of the distinct rows of each part, None if it has no row."""
        bits, left = self.rows.bits, self.rows.everyone.copy()
        held: list[Hashable] = []
        for members in self.antecedents.members[list(state.rules)]:
            captured = left & np.bitwise_and.reduce(bits[members[members >= 0]], axis=0)
            left &= ~captured
            held.append(_digest(captured))
        return [*held, _digest(left)]

    def canonical(self, state: RuleList) -> RuleList:
        """Return the list itself: no other list has the same density everywhere."""
        return state

    # -- for samplers and estimators ---------------------------------------------------------------

    def columns_of(self, state: RuleList) -> list[int]:
        """Return the indices of the columns that a list has conditions on, ascending."""
        members = self.antecedents.members[list(state.rules)]
        return sorted(set(self.antecedents.items[members[members >= 0], 0].tolist()))

    def counts(self, state: RuleList) -> Floats:
        """Return the weight of each part, by class if there are classes, the `else` part last."""
        part = np.full(self._labels.size, state.n_rules)
        for position in range(state.n_rules - 1, -1, -1):
            holds = np.ones(part.size, np.bool_)
            for column, low, high in self.antecedents[state.rules[position]]:
                holds &= (self._codes[column] >= low) & (self._codes[column] < high)
            part[holds] = position
        n_cells = (state.n_rules + 1) * self._n_classes
        cells = part * self._n_classes + self._labels
        # without rows, bincount returns integers
        counts = np.bincount(cells, self.table.weights, n_cells).astype(np.float64)
        return counts.reshape(-1, self._n_classes)

    @property
    def class_weights(self) -> Floats:
        """Weight of the rows of each class, (n_classes,) float64; for a density, of all rows."""
        return np.bincount(self._labels, self.table.weights, self._n_classes).astype(np.float64)

    @cached_property
    def log_size_proposal(self) -> Floats:
        """Log probability of proposing a specific candidate of each size, as in the prior."""
        weights = self.prior.log_sizes(self.antecedents.max_size).copy()
        weights[self.antecedents.n_of_size == 0] = -np.inf
        with np.errstate(invalid="ignore"):  # if there is no candidate
            shares: Floats = weights - np.logaddexp.reduce(weights)
        return shares

    @cached_property
    def model_arrays(self) -> layout.RuleListArrays:
        """The model, as arrays for the kernels."""
        n_of_size = self.antecedents.n_of_size
        log_length = self.prior.log_lengths(len(self.antecedents))
        log_proposal = self.log_size_proposal - np.log(np.maximum(n_of_size, 1))
        cdf = np.cumsum(np.exp(self.log_size_proposal))
        cdf[np.flatnonzero(n_of_size)[-1:]] = np.inf
        log_size = self.prior.log_sizes(self.antecedents.max_size)
        left = n_of_size[:, np.newaxis] - np.arange(layout.MAX_RULES)
        log_left = np.cumsum(log_size[:, np.newaxis] - np.log(np.maximum(left, 1)), axis=1)
        whole = whole_weights(self.table.weights)
        all_alpha = self.rows.n_classes * self.concentration
        return layout.RuleListArrays(
            kind=self.kind,
            alpha=self.concentration,
            total=float(self.table.weights.sum()),
            log_domain=self.schema.log_cells,
            max_rules=log_length.size - 1,
            log_length=log_length,
            log_size=log_size,
            log_norm=float(np.logaddexp.reduce(log_size[n_of_size > 0])) if left.max() > 0 else 0.0,
            log_rules=np.pad(log_left, ((0, 0), (1, 0))),
            log_proposal=log_proposal,
            size_cdf=cdf,
            log_gamma=gammaln(whole + self.concentration),
            log_gamma_all=gammaln(whole + all_alpha),
        )


def _digest(words: NDArray[np.uint64]) -> bytes | None:
    return blake2b(words.tobytes(), digest_size=16).digest() if words.any() else None


def _list_in(works: layout.RuleListWorkspace, k: int, which: int) -> RuleList:
    return RuleList(tuple(works.rules[k, which, : works.sizes[k, which]].tolist()))


_DECIMALS = 9  # for log volumes: equal ones may differ in later digits by rounding
_OF_VOLUME = 150.0  # operations; see `DensityListPosterior.operations`


class DensityListPosterior(RuleListPosterior):
    """The posterior of density rule lists (Goh 2018, Model III).

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    expected_rules, expected_size, concentration, max_size, memory_limit
        As in `DensityRuleList`.
    """

    kind = layout.DENSITY

    def __init__(
        self,
        table: "Table",
        expected_rules: float = 3.0,
        expected_size: float = 1.0,
        concentration: float = 1.0,
        max_size: int = 2,
        memory_limit: float = 2.0,
    ) -> None:
        features, labels = np.arange(table.schema.n_columns), np.zeros(table.n_distinct, np.int64)
        super().__init__(
            table, features, labels, 1, expected_rules, expected_size, concentration, max_size,
            min_support=0.0, memory_limit=memory_limit,
        )  # fmt: skip

    def log_prior(self, state: RuleList) -> float:
        """Return the log prior of a list, nats; -inf if a part contains no cell."""
        log_prior = super().log_prior(state)
        if log_prior == -np.inf or np.isneginf(self.log_volumes(state)).any():
            return -np.inf
        return log_prior

    def log_likelihood(self, state: RuleList) -> float:
        """Return the log likelihood of a list, nats; -inf if a part contains no cell."""
        log_volumes = self.log_volumes(state)
        if np.isneginf(log_volumes).any():
            return -np.inf
        return density_log_likelihood(self.counts(state), log_volumes, self.concentration)

    def log_density(self, state: RuleList) -> float:
        """Return log prior plus log likelihood, nats; volumes are computed only once."""
        log_prior = super().log_prior(state)
        return log_prior if log_prior == -np.inf else log_prior + self.log_likelihood(state)

    def rounding(self, state: RuleList) -> float:
        """Return a bound on the rounding error of a list's log density, nats."""
        n_conditions = int(self.antecedents.sizes[list(state.rules)].sum())
        return density_rounding(
            n_conditions, state.n_rules + 1, self.table.weights, self.schema, self.concentration,
            self._prior_sizes(state),
        )  # fmt: skip

    def operations(self, n_rules: float) -> float:
        """Return the operations of a step at a list of this size, a nanosecond each, about.

        Most are for volumes. On nine tables of 4 to 21 columns a step took 120 to 190 ns a rule for
        each unit of the cube root of the number of candidates, as columns of more levels are cut
        into more pieces.
        """
        of_volumes = _OF_VOLUME * n_rules * cbrt(len(self.antecedents))
        return 100.0 + (0.5 * n_rules + 1.0) * self.rows.everyone.size + of_volumes

    def counts(self, state: RuleList) -> Floats:
        """Return the weight of the rows in each part, (m + 1,) float64."""
        return super().counts(state)[:, 0]

    def _held(self, state: RuleList) -> list[Hashable]:
        """Return the rows of each part and its volume, which determine its density."""
        log_volumes = self.log_volumes(state).round(_DECIMALS).tolist()
        return list(zip(super()._held(state), log_volumes, strict=True))

    def log_volumes(self, state: RuleList) -> Floats:
        """Return the log volume of each part, (m + 1,) float64 nats, -inf if it is empty."""
        rules = [self.antecedents[rule] for rule in state.rules]
        return log_first_volumes(self.schema, rules)


class LabelListPosterior(RuleListPosterior):
    """The posterior of rule lists with labels (Letham, Rudin, McCormick and Madigan 2015).

    Parameters
    ----------
    table : Table
        Distinct rows, labels included, and their weights.
    target : str
        Name of the column of labels. Its levels are the classes. Rules may use all other columns.
    expected_rules, expected_size, concentration, max_size, min_support, memory_limit
        As in `RuleListClassifier`.
    """

    kind = layout.LABELS
    n_temperatures = 125  # of an annealing; each costs as much as some hundred steps
    _parameter_names = (*RuleListPosterior._parameter_names, "min_support")

    def __init__(
        self,
        table: "Table",
        target: str,
        expected_rules: float = 3.0,
        expected_size: float = 1.0,
        concentration: float = 1.0,
        max_size: int = 2,
        min_support: float = 0.05,
        memory_limit: float = 2.0,
    ) -> None:
        names = table.schema.names
        if target not in names:
            raise DataError(
                f'the target must be a column, got "{target}"; columns: {", ".join(names)}'
            )
        index = names.index(target)
        column = table.schema.columns[index]
        if column.kind == "continuous":
            raise DataError(f'labels must be levels, got the continuous column "{target}"')
        if column.has_missing_level:
            raise DataError(f'labels must not be missing, got missing cells in column "{target}"')
        if len(names) == 1:
            raise DataError(f'rules need a column besides the labels, got only "{target}"')
        present = np.unique(table.codes[index])
        if table.n_distinct and present.size < 2:
            only = level_text(column.levels[int(present[0])])
            raise DataError(f'labels must be of at least two classes, got only the class "{only}"')
        features, labels = np.delete(np.arange(len(names)), index), table.codes[index]
        super().__init__(
            table, features, labels.astype(np.int64), column.n_levels, expected_rules,
            expected_size, concentration, max_size, min_support, memory_limit,
        )  # fmt: skip
        self.target = target

    def with_concentration(self, concentration: float) -> "LabelListPosterior":
        """Return the posterior with another concentration and the same candidate rules."""
        other = copy(self)
        other.__dict__.pop("model_arrays", None)  # only these depend on it
        other.concentration = check_real("concentration", concentration, above=0.0)
        return other

    def log_likelihood(self, state: RuleList) -> float:
        """Return the log likelihood of the labels, nats."""
        return label_log_likelihood(self.counts(state), self.concentration)

    def operations(self, n_rules: float) -> float:
        """Return the operations of a step at a list of this size, a nanosecond each, about."""
        a_part = 17.0 + 0.7 * self.rows.everyone.size + 2.2 * self._n_classes
        return 100.0 + (0.5 * n_rules + 1.0) * a_part  # half of the parts are counted again

    def rounding(self, state: RuleList) -> float:
        """Return a bound on the rounding error of a list's log density, nats."""
        weights, counts = self.table.weights, self.counts(state)
        return label_rounding(counts, weights, self.concentration, self._prior_sizes(state))
