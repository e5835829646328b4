"""Random rule-list problems of any size, their lists to 40 digits, and what is wrong with proofs.

Tables have 10 to 10,000,000 rows, real weights, or weights from 1e-6 to 1e9; priors are extreme.
"""

from collections import Counter, defaultdict
from decimal import Decimal

import numpy as np
import pandas as pd

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.table import Table
from bayescascade.methods.lists.exact.bounds import Prefix
from bayescascade.methods.lists.exact.search import best_list
from bayescascade.methods.lists.exact.sums import sum_over_lists
from bayescascade.methods.lists.kernels.layout import DENSITY, LABELS
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from tests import exact_reference as exact
from tests.rules_reference import part_of

MEMORY = 2e9

WEIGHTS = ("few", "rows", "many rows", "real", "mixed", "light", "heavy")


def draw_weights(rng, n, kind):
    """Return weights of n distinct rows."""
    if kind in ("few", "rows", "many rows"):
        most = {"few": 8, "rows": 1000, "many rows": 1e7}[kind]
        return np.floor(np.exp(rng.uniform(0.0, np.log(most), n)))
    if kind == "mixed":
        return 10.0 ** rng.uniform(-6.0, 9.0, n)
    scale = {"real": 1.0, "light": 1e-6, "heavy": 1e9}[kind]
    return scale * (1.0 + 9.0 * rng.random(n))


def draw_settings(rng):
    """Return parameters of either posterior: usual ones half of the time."""
    if rng.random() < 0.5:
        return {"concentration": 10.0 ** rng.uniform(-1, 1), "max_size": int(rng.integers(1, 3))}
    return {
        "expected_rules": 10.0 ** rng.uniform(-3, 4),
        "expected_size": 10.0 ** rng.uniform(-3, 3),
        "concentration": 10.0 ** rng.uniform(-6, 6),
        "max_size": int(rng.integers(1, 3)),
    }


def draw_posterior(rng, is_density, most, kind=None):
    """Return a random posterior with a largest number of candidates, and words that describe it."""
    while True:
        n = int(rng.integers(2, 60))
        names = "abc"[: rng.integers(1, max(2, most - 1))]
        frame = pd.DataFrame({c: rng.integers(rng.integers(2, 4), size=n) for c in names})
        if rng.random() < 0.3:
            frame["copy"] = frame["a"]
        numbers = list(frame)[:1] if is_density and rng.random() < 0.4 else []
        for name in numbers:
            frame[name] = 10.0 ** rng.uniform(-6, 6) * (frame[name] + 0.5 * rng.random(n))
        ordered = [name for name in list(frame)[: rng.integers(2)] if name not in numbers]
        chosen = WEIGHTS[rng.integers(len(WEIGHTS))] if kind is None else kind
        settings = draw_settings(rng)
        if not is_density:
            noise = rng.integers(3, size=n) * (rng.random(n) < rng.choice([0.0, 0.05, 1.0]))
            frame["label"] = (frame.iloc[:, 0] + frame.iloc[:, -1] + noise) % rng.integers(2, 4)
            settings["min_support"] = rng.choice([0.0, 0.0, 0.05, 0.3])
        try:
            table = Table.from_frame(
                frame,
                weights=draw_weights(rng, n, chosen),
                ordinal=ordered,
                nominal=[name for name in frame if name not in ordered + numbers],
                continuous=dict.fromkeys(numbers, 3),
            )
            if is_density:
                posterior = DensityListPosterior(table, **settings)
            else:
                posterior = LabelListPosterior(table, "label", **settings)
        except (DataError, ParameterError):  # one class, or no support
            continue
        if 1 <= len(posterior.antecedents) <= most:
            kinds = "densities" if is_density else "labels"
            return posterior, f"{kinds}, {n} rows, {chosen} weights, {settings}"


def lists_of(posterior, rules=()):
    """Yield every list of positive density, from one that is so, with its log density."""
    log_density = posterior.log_density(RuleList(rules))
    if log_density > -np.inf:
        yield rules, log_density
        for rule in set(range(len(posterior.antecedents))).difference(rules):
            yield from lists_of(posterior, (*rules, rule))


class ExactTwin:
    """The log density of a list to 40 digits, row by row and cell by cell."""

    def __init__(self, posterior):
        self.posterior = posterior
        table = posterior.table
        self.weights = [Decimal(w) for w in table.weights.tolist()]
        self.sizes = posterior.antecedents.sizes.tolist()
        self.alpha = Decimal(posterior.concentration)
        codes = table.codes
        if posterior.kind == LABELS:
            target = table.schema.names.index(posterior.target)
            self.labels = codes[target].tolist()
            self.n_classes = table.schema.columns[target].n_levels
            codes = np.delete(codes, target, axis=0)
        self.rows = codes.T.tolist()

    def log_density(self, rules):
        """Return it as a Decimal."""
        conditions = [self.posterior.antecedents[rule] for rule in rules]
        prior = self.posterior.prior
        value = exact.log_prior(rules, self.sizes, prior.expected_rules, prior.expected_size)
        parts = [part_of(row, conditions) for row in self.rows]
        if self.posterior.kind == DENSITY:
            counts = [self._weight(parts, part) for part in range(len(rules) + 1)]
            volumes = self._volumes(conditions)
            likelihood = exact.density_log_likelihood(counts, volumes, self.alpha)
        else:
            counts = [
                [self._weight(parts, part, label) for label in range(self.n_classes)]
                for part in range(len(rules) + 1)
            ]
            likelihood = exact.label_log_likelihood(counts, self.alpha)
        return exact.added([value, likelihood])

    def _weight(self, parts, part, label=None):
        return exact.added(
            weight
            for row, weight in enumerate(self.weights)
            if parts[row] == part and (label is None or self.labels[row] == label)
        )

    def _volumes(self, conditions):
        widths = [[Decimal(w) for w in c.widths.tolist()] for c in self.posterior.schema.columns]
        volumes = [Decimal(0)] * (len(conditions) + 1)
        for cell in np.ndindex(*map(len, widths)):
            volume = Decimal(1)
            for column, code in enumerate(cell):
                volume *= widths[column][code]
            volumes[part_of(cell, conditions)] += volume
        return volumes


def flaws(posterior, rng):
    """Yield words for each promise that a proof of the best list breaks, by enumeration.

    Log densities, what is proved, bounds of searches that were stopped, and those of prefixes.
    """
    log_densities = dict(lists_of(posterior))
    twin = ExactTwin(posterior)
    truths = {rules: twin.log_density(rules) for rules in log_densities}
    for rules, truth in truths.items():
        error, rounding = _error(log_densities[rules], truth), posterior.rounding(RuleList(rules))
        if not error <= rounding:
            yield f"{rules} is worth {truth:.20g}, off by {error:.3g}, rounding {rounding:.3g}"
    best = max(truths.values())
    start = RuleList(list(log_densities)[rng.integers(len(log_densities))])
    memory = 1.0 if posterior.kind == LABELS and rng.random() < 0.5 else MEMORY
    proof = best_list(posterior, start=start, memory_limit=memory)
    missed = float(best - truths[proof.state.rules])
    if not proof.is_optimal or not missed <= proof.rounding:
        yield f"{proof.state} is short of the best by {missed:.3g}, rounding {proof.rounding:.3g}"
    if Decimal(proof.upper_bound) < best:
        yield f"the bound {proof.upper_bound!r} is below {best:.20g}"
    stopped = best_list(posterior, max_visited=int(rng.integers(1, 9)))
    if Decimal(stopped.upper_bound) < best:
        yield f"stopped, the bound {stopped.upper_bound!r} is below {best:.20g}"
    yield from _too_low(posterior, truths)
    yield from sum_flaws(posterior, log_densities, rng)


def sum_flaws(posterior, log_densities, rng):
    """Yield words for each promise that a sum over all lists breaks, given all log densities."""
    found, all_but_few = sum_over_lists(posterior, most_lost=1e-13), sum_over_lists(posterior)
    lists, values = list(log_densities), np.array(list(log_densities.values()))
    near = 1e-9 + 2 * found.rounding + max(posterior.rounding(RuleList(r)) for r in lists)
    total = np.logaddexp.reduce(values)
    if abs(found.log_total - total) > near:
        yield f"the sum is {found.log_total!r}, not {total!r}"
    if not -near <= total - all_but_few.log_total <= np.log1p(all_but_few.lost) + near:
        yield f"the sum of all but {all_but_few.lost:.3g} is {all_but_few.log_total!r}"
    shares = np.exp(values - total)
    groups = defaultdict(list)
    averages = np.zeros((posterior.table.n_distinct, posterior.class_weights.size))
    for rules, share in zip(lists, shares, strict=True):
        contents = posterior.parts_of(RuleList(rules))
        groups[frozenset(filter(None, contents.values()))].append(rules)
        counts = posterior.counts(RuleList(rules)) + posterior.concentration
        if posterior.kind == LABELS:
            conditions = [posterior.antecedents[rule] for rule in rules]
            parts = [part_of(row, conditions) for row in posterior._codes.T.tolist()]
            averages += share * (counts / counts.sum(axis=1, keepdims=True))[parts]
    if posterior.kind != LABELS:  # a part of a density is more than its rows
        return
    if not np.allclose(found.probabilities(posterior._codes), averages, rtol=0, atol=4 * near):
        yield "averages are wrong"
    for same in groups.values():
        model = found.model_of(RuleList(same[rng.integers(len(same))]))
        own = np.array([log_densities[rules] for rules in same])
        share = float(np.exp(np.logaddexp.reduce(own) - total))
        if not model.n_lists <= own.size * (1 + 1e-9):
            yield f"{model.n_lists} lists are like {same[0]}, not {own.size}"
        if abs(model.share - share) > near:
            yield f"the lists like {same[0]} have {model.share!r} of all, not {share!r}"
        if share > 1e-9 and own.max() - log_densities[model.best.rules] > near:
            yield f"{model.best} is not the best of the lists like {same[0]}"
    drawn = Counter(state.rules for state in found.draws(rng, 500))
    unlikely = sum(shares[lists.index(rules)] < 1e-9 for rules in drawn)
    if unlikely:
        yield f"{unlikely} lists below 1e-9 were drawn"


def _too_low(posterior, truths):
    """Yield words for each bound, and each value, of a prefix that is off by more than rounding."""
    rounding = Prefix(posterior, MEMORY).rounding.bound
    for kind, rules, above in shortfalls(posterior, truths):
        if above < -(rounding if kind == "value" else 2 * rounding):
            yield f"the {kind} of {rules} is off by {-above:.3g}, rounding {rounding:.3g}"


def shortfalls(posterior, values):
    """Yield what `Prefix` says, of which list, and by how much that is above what it bounds.

    Of what is no bound, the value of a list, it is minus the error. values: log densities, floats
    or Decimals, of lists by their rules, with those of all prefixes.
    """
    prefix, best = Prefix(posterior, MEMORY), {}
    values = {rules: Decimal(value) for rules, value in values.items()}
    for rules, value in values.items():
        for length in range(len(rules)):
            best[rules[:length]] = max(best.get(rules[:length], value), value)
    for rules, value in values.items():
        sizes = posterior.antecedents.sizes[list(rules)]
        used = np.bincount(sizes, minlength=posterior.antecedents.max_size + 1)
        yield "value", rules, -_error(prefix.value(rules), value)
        prefix.enter(rules, tuple(used.tolist()))
        closed = prefix.closed()
        bounds = [("prefix", rules, prefix.bound())]
        if bounds[0][2] > -np.inf:
            children, by_stairs = prefix.children()
            longer = [(*rules, rule) for rule in children.rules.tolist()]
            bounds.append(("stairs", rules, by_stairs))
            bounds += zip(["child"] * len(longer), longer, children.bounds, strict=True)
            for one, ended in zip(longer, children.closed, strict=True):
                if one in values:
                    yield "closed", one, -abs(ended - closed - float(values[one] - value))
        for kind, one, bound in bounds:
            if one in best:
                yield kind, one, bound - closed - float(best[one] - value)


def _error(value, truth):
    return abs(exact.off(value, truth))
