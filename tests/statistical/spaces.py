"""Tiny problems of every family as the exact tests of chains take them: all states, all moves."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import pytest

import samplers
from bayescascade.methods.budget.classifier_trees.posterior import SubmodularTreePosterior
from bayescascade.methods.budget.pruning.posterior import PruningPosterior
from bayescascade.methods.budget.single_trees.posterior import BudgetTreePosterior
from bayescascade.methods.lists.kernels import layout
from bayescascade.methods.lists.posterior import RuleListPosterior
from tests.methods.budget.classifier_trees import problems as purchase_problems
from tests.methods.budget.pruning import problems as pruning_problems, slow_moves as pruning_moves
from tests.methods.budget.single_trees import problems as tree_problems, slow_moves as tree_moves
from tests.methods.density.trees.problems import Model, Problem as TreeProblem, listed_moves
from tests.methods.lists import slow_moves as list_moves
from tests.methods.lists.problems import PARAMETERS, Problem as ListProblem, Remembered
from tests.samplers.exhaustive import transition_matrix
from tests.statistical.chi_square import independent_steps
from tests.statistical.proposals import one_step, without_hastings

_PAIRS = (("grow", "prune"), ("add", "remove"), ("buy", "sell"))
REVERSES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
"""Moves that are each other's reverse; all others are their own."""


@dataclass(frozen=True, eq=False)
class Space:
    """A posterior whose states, and plain moves among them, can all be listed.

    `log_densities` are the twin's, of each state, with parameters changed, to be read only; `wrong`
    are changes that a test must notice. `kind` has the weights of moves of a posterior that
    has no setting for them; `log_prior` is what heat leaves a part of, of lists.
    """

    name: str
    posterior: Callable[..., Any]
    all_states: Callable[[], Sequence[Any]]
    plain_moves: Callable[[float], Mapping[str, Any]]
    log_densities: Callable[..., np.ndarray]
    wrong: Mapping[str, Any]
    kind: type | None = None
    log_prior: Callable[[Any], float] | None = None
    _known: dict = field(default_factory=dict)

    @cached_property
    def states(self) -> Sequence[Any]:
        return self.all_states()

    @cached_property
    def index(self) -> dict[Any, int]:
        return {state: i for i, state in enumerate(self.states)}

    @cached_property
    def log_density(self) -> Callable[[Any], float]:
        """The posterior's own, of any state, computed once."""
        return cache(self.posterior().log_density)

    @cached_property
    def weights(self) -> Mapping[str, float]:
        return self.posterior().move_weights()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The moves in groups that are closed under reversal."""
        return sorted({tuple(sorted({n, REVERSES.get(n, n)})) for n in self.names})

    def probabilities(self, inverse_temperature: float = 1.0, **changed: Any) -> np.ndarray:
        """Return the probability of each state by the twin."""
        heated = np.array(self.log_densities(**changed))
        heated[heated > -np.inf] *= inverse_temperature
        if self.log_prior is not None and inverse_temperature < 1.0:
            kept = layout.PRIOR_KEPT * (1.0 - inverse_temperature)
            heated += [kept * self.log_prior(state) for state in self.states]
        return np.exp(heated - np.logaddexp.reduce(heated))

    def moves(self, names: Sequence[str], inverse_temperature: float = 1.0, broken: bool = False):
        """Return plain moves; broken ones claim to be symmetric."""
        if inverse_temperature not in self._known:
            self._known[inverse_temperature] = self.plain_moves(inverse_temperature)
        chosen = {name: self._known[inverse_temperature][name] for name in names}
        return without_hastings(chosen) if broken else chosen

    def step(self, state: Any, names: Sequence[str], beta: float = 1.0, broken: bool = False):
        """Return the states that a plain step leads to, and their exact probabilities."""
        moves = self.moves(names, beta, broken)
        return one_step(moves, self.weights, self.log_density, state, beta)

    def matrix(self, names: Sequence[str], beta: float = 1.0, broken: bool = False) -> np.ndarray:
        """Return the exact transition matrix of a step that selects one of these plain moves."""
        for name in names:
            if (name, beta, broken) not in self._known:
                (move,) = self.moves([name], beta, broken).values()
                matrix = transition_matrix(move, self, self.states, inverse_temperature=beta)
                self._known[name, beta, broken] = matrix
        weighed = [self.weights[name] * self._known[name, beta, broken] for name in names]
        return sum(weighed) / sum(self.weights[name] for name in names)

    @cached_property
    def thinning(self) -> int:
        """After how many steps draws are as good as independent."""
        return independent_steps(self.matrix(self.names), self.probabilities())

    def some_states(self, rng: np.random.Generator, n: int = 4) -> list[Any]:
        """Return the first state, which is the smallest, and others that have a density."""
        order = (self.states[int(i)] for i in rng.permutation(len(self.states)))
        possible = (state for state in order if self.log_density(state) > -np.inf)
        return [self.states[0], *(state for state, _ in zip(possible, range(n - 1), strict=False))]

    def restricted(self, names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> Any:
        """Return the posterior that tries these moves only, in their proportions."""
        chosen = {name: self.weights[name] * (name in names) for name in self.names}
        chosen = {name: weight / sum(chosen.values()) for name, weight in chosen.items()}
        if self.kind is None:
            return self.posterior(move_weights=chosen)
        monkeypatch.setattr(self.kind, "tries", chosen)
        posterior = self.posterior()
        assert posterior.move_weights() == chosen
        return posterior


def trees(problem: TreeProblem, model: Model) -> Space:
    """Return the space of a cascade's trees."""
    name, value = next(iter(model.parameters.items()))
    wrong = {name: 1.5 * value}
    if model.parameters.get("prior") == "generative":  # without a Poisson
        wrong = {"stop": 2 * model.parameters["stop"]}
    return Space(
        f"{problem.name}-{model.name}",
        partial(model.on, problem),
        lambda: problem.trees,
        lambda _: listed_moves(model.on(problem)),
        partial(model.reference, problem),
        wrong,
    )


@dataclass(frozen=True)
class Heated:
    """A move of lists that leaves to heat what `layout.PRIOR_KEPT` says of the prior."""

    move: Any
    log_prior: Callable[[Any], float]
    kept: float

    def proposals(self, state: Any) -> list[tuple[samplers.Proposal[Any], float]]:
        found, here = [], self.log_prior(state)
        for (other, ratio), probability in self.move.proposals(state):
            if ratio > -np.inf:
                ratio += self.kept * (self.log_prior(other) - here)
            found.append((samplers.Proposal(other, ratio), probability))
        return found


def list_moves_at(posterior: Any, beta: float) -> Mapping[str, Any]:
    """Return the moves of lists at an inverse temperature."""
    moves = list_moves.moves(Remembered(posterior))
    kept, log_prior = layout.PRIOR_KEPT * (1.0 - min(beta, 1.0)), cache(posterior.log_prior)
    return {n: Heated(move, log_prior, kept) for n, move in moves.items()} if kept else moves


def lists(problem: ListProblem, name: str = "", **settings: float) -> Space:
    """Return the space of a rule list's problem, with other parameters."""
    return Space(
        f"{problem.name}{name}",
        partial(problem.posterior, **settings),
        lambda: problem.lists,
        lambda beta: list_moves_at(problem.posterior(**settings), beta),
        cache(lambda **changed: problem.log_densities(**{**settings, **changed})),
        {"expected_rules": 1.5 * PARAMETERS["expected_rules"]},
        RuleListPosterior,
        cache(problem.posterior(**settings).log_prior),
    )


def budgets(problem: tree_problems.TreeProblem, **wrong: Any) -> Space:
    """Return the space of budgeted trees."""
    posterior = partial(problem.posterior, tree_problems.Remembered)
    return Space(
        problem.name,
        posterior,
        lambda: problem.trees,
        lambda beta: tree_moves.moves(posterior(), beta, posterior(max_leaves=99)),
        cache(problem.log_densities),
        wrong or {"concentration": 0.2},
        BudgetTreePosterior,
    )


def cuts(problem: pruning_problems.PruningProblem) -> Space:
    """Return the space of prunings."""
    return Space(
        problem.name,
        problem.posterior,
        lambda: problem.prunings,
        partial(pruning_moves.moves, problem),
        cache(lambda **changed: np.log(problem.probabilities(**changed))),
        {"temperature": 2.0 * problem.temperature},
        PruningPosterior,
    )


def bought(problem: purchase_problems.PurchaseProblem) -> Space:
    """Return the space of what the nodes of a tree of classifiers buy."""
    return Space(
        problem.name,
        problem.posterior,
        lambda: problem.states,
        lambda _: purchase_problems.moves(problem),
        cache(problem.log_densities),
        {"tradeoff": 3.0 * problem.tradeoff},
        SubmodularTreePosterior,
    )


def each(*spaces: Space, quick: Collection[Space] | None = None) -> pytest.MarkDecorator:
    """Parametrize a test over spaces; all but the `quick` ones are slow, if there are any."""
    marks = [() if quick is None or space in quick else pytest.mark.slow for space in spaces]
    chosen = [pytest.param(s, id=s.name, marks=m) for s, m in zip(spaces, marks, strict=True)]
    return pytest.mark.parametrize("space", chosen)
