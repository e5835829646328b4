"""The trees near the best: all, in order, by the exact search; otherwise those among the draws.

`cascade` is a fitted `Cascade`, which imports this module.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.methods.density.trees.counted_tree import CountedTree, split_shares
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.models import LeafModel
from bayescascade.methods.density.trees.tree import leaf_boxes
from bayescascade.model.near_best import Alternative, Alternatives
from bayescascade.report.numbers import share_text
from bayescascade.report.page import count_of

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.exact import SummedPosterior


class Without(NamedTuple):
    """The best tree that does not split a column, and what it loses, in nats."""

    model: LearnedDensityTree
    log_posterior: float  # of the best tree of all, minus that of this one, >= 0
    log_likelihood: float  # the same for the likelihood alone; negative if the prior is against it


def alternatives(cascade: Any, nats: float) -> Alternatives[Any, LearnedDensityTree]:
    """Return the trees of a fitted cascade, the best first, at least to `nats` below it."""
    schema, exact = cascade.schema_, summed_of(cascade)
    has_sets = isinstance(cascade._model(), LeafModel) and not cascade._model().is_generative

    def counted_of(state: Any) -> CountedTree:  # a `RankedTree` or a draw
        if not isinstance(state, CountedTree):
            state = cascade._count(cascade.posterior_.canonical(state.tree))
        counted: CountedTree = state
        return counted

    def gains_of(state: Any) -> Floats:
        counted = counted_of(state)
        volumes = cascade._readable(counted).log_volumes
        return split_shares(schema, counted, volumes, cascade._model().leaf_concentration)

    def predictions(models: Sequence[LearnedDensityTree], X: Any) -> Floats:
        codes = cascade.encode(X)
        return np.array([model.score_codes(codes) for model in models])

    states: Iterable[Alternative[Any]]
    nouns = ("tree", "trees")
    if exact is None:
        drawn = _drawn(cascade)
        states = list(_near(drawn, cascade))
        log_sum = None if has_sets else _sum_of_shallow(cascade)
        found, is_proved = f"among {count_of(len(drawn), 'drawn tree')}", False
        if log_sum is not None:
            densities = [state.log_posterior for state in states]
            listed = exp(logsumexp(densities) - log_sum[1])
            is_proved = 1.0 - listed < exp(densities[0] - nats - log_sum[1])
            if not cascade.exact_.is_complete:
                depth = f"of depth up to {cascade.exact_.max_depth}"
                nouns = (f"tree {depth}", f"trees {depth}")
    else:
        states, found, is_proved = _in_order(exact, has_sets), "", True
        log_sum = (exact.log_normalizer - exact.error, exact.log_normalizer + exact.error)
    return Alternatives(
        states=states,
        is_proved=is_proved,
        log_sum=log_sum,
        found=found,
        nouns=nouns,
        same="trees with the same leaves" if exact and has_sets else "",
        readable=lambda state: cascade._readable(counted_of(state)),
        importances=gains_of,
        parts=_parts,
        predictions=predictions,
    )


def without(cascade: Any, column: str) -> Without:
    """Return the best tree that does not split a column; ParameterError without a proof."""
    exact = summed_of(cascade)
    if exact is None:
        raise ParameterError(
            'search must be "exact", over all trees, for the best tree without a '
            f"column, got {cascade.summary_.method}"
        )
    tree, log_density = exact.best_without(column)
    best, likelihood = exact.tree, cascade.posterior_.log_likelihood
    lost = likelihood(best) - likelihood(tree)
    readable = cascade._readable(cascade._count(tree))
    return Without(readable, max(0.0, exact.log_density - log_density), lost)


def summed_of(cascade: Any) -> "SummedPosterior | None":
    """Return the sum over all trees that can list them in order; None if there is none."""
    from bayescascade.methods.density.trees.exact import SummedPosterior

    exact = cascade.__dict__.get("exact_")
    is_tied = getattr(cascade._model(), "feature_inclusion", None) is not None
    return exact if isinstance(exact, SummedPosterior) and not is_tied else None


def _sum_of_shallow(cascade: Any) -> tuple[float, float] | None:
    """Return bounds on the log sum over all trees of a depth, nats; None if it is not known.

    The draws are of these trees. A tree that was not drawn is at most as probable as all that were
    not drawn together, so often none of them can be near the best.
    """
    from bayescascade.methods.density.trees.shallow_trees import ShallowTrees

    exact = cascade.__dict__.get("exact_")
    if not isinstance(exact, ShallowTrees) or exact.temper is not None or not exact.max_depth:
        return None  # without splits there is one tree, so a proof would say nothing
    return exact.log_normalizer - exact.rounding, exact.log_normalizer + exact.rounding


def _in_order(exact: "SummedPosterior", has_sets: bool) -> Iterator[Alternative[Any]]:
    """Yield the trees; those of equal leaves are one model if their densities are equal."""
    for rank, ranked in enumerate(exact.in_order()):
        yield Alternative(ranked, ranked.log_density, ranked.leaves if has_sets else rank)


def _drawn(cascade: Any) -> list[CountedTree]:
    """Return the best tree and the other draws; of those with equal leaves, one is enough."""
    if not cascade._draws.times:
        raise ParameterError(
            'search must be "exact", or draw trees, for the trees near the best, got '
            f"{cascade.summary_.method}"
        )
    found = {counted.tree.key(): counted for counted in (cascade._best, *cascade._draws.counted)}
    return list(found.values())


def _near(drawn: Sequence[CountedTree], cascade: Any) -> Iterator[Alternative[Any]]:
    densities = np.array([cascade._log_density(tree) for tree in drawn])
    seen = set()
    for i in np.argsort(-densities, kind="stable").tolist():
        boxes = leaf_boxes(cascade.schema_, drawn[i].tree)
        key: Any = frozenset(map(bytes, boxes)) if isinstance(cascade._model(), LeafModel) else i
        if key not in seen:
            seen.add(key)
            yield Alternative(drawn[i], float(densities[i]), key)


def _parts(learned: LearnedDensityTree) -> dict[str, str]:
    """Return the share of each leaf, by its conditions."""
    shares = {}
    for leaf in learned.tree.leaves.tolist():
        boxes = zip(learned.schema.columns, learned.boxes[leaf], learned.boxes[0], strict=True)
        words = [
            box.condition_words(left, is_full=True) for box, left, all_ in boxes if left != all_
        ]
        shares[" and ".join(words) or "any row"] = share_text(float(learned.probabilities[leaf]))
    return shares
