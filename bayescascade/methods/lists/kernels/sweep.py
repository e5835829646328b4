"""A block of Metropolis-Hastings steps on a list in the work space.

Parts before the first changed rule are not computed again. After it, up to the last part that can
have changed, each part takes a pass over the bits of all distinct rows, 64 at a time. This is
cheaper than visiting the remaining rows, unless these are fewer than one in 64.
"""

from math import exp, lgamma, log

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.lists.kernels import layout
from bayescascade.methods.lists.kernels.bits import capture, count
from bayescascade.methods.lists.kernels.layout import BEST, CURRENT, TRIAL, Array
from bayescascade.methods.lists.kernels.proposals import propose
from bayescascade.methods.lists.kernels.volumes import are_disjoint, first_log_volume, reset_box

PROBABILITY, TRIED, ACCEPTED = range(3)  # rows of `swaps`


_workspace_of = inner_kernel(layout.workspace_of)


@inner_kernel
def _log_gamma(table, count, alpha):
    """lnG(count + alpha), from a table if weights are whole."""
    index = np.int64(count)
    if index < table.shape[0]:
        return table[index]
    return lgamma(count + alpha)


@inner_kernel
def log_prior(candidates, model, rules, n_rules, used):
    """Log prior of a list, apart from volumes; used (H + 1,) int64 is scratch."""
    used[:] = 0
    for position in range(n_rules):
        used[candidates.sizes[rules[position]]] += 1
    value, has_left = model.log_length[n_rules] - n_rules * model.log_norm, True
    for size in range(1, used.shape[0]):
        value += model.log_rules[size, used[size]]
        n_of_size = candidates.starts[size + 1] - candidates.starts[size]
        has_left &= used[size] == 0 or used[size] < n_of_size
    return value if has_left else _log_prior_in_order(candidates, model, rules, n_rules, used)


@inner_kernel
def _log_prior_in_order(candidates, model, rules, n_rules, used):
    """Log prior of a list that may use up the candidates of a size."""
    used[:] = 0
    value = model.log_length[n_rules]
    log_norm = _log_norm(candidates, model, used)
    for position in range(n_rules):
        size = candidates.sizes[rules[position]]
        n_of_size = candidates.starts[size + 1] - candidates.starts[size]
        value += model.log_size[size] - log_norm - log(n_of_size - used[size])
        used[size] += 1
        if used[size] == n_of_size:
            log_norm = _log_norm(candidates, model, used)
    return value


@inner_kernel
def _log_norm(candidates, model, used):
    """Log of the summed weights of the sizes with candidates left."""
    log_norm = -np.inf
    for size in range(1, model.log_size.shape[0]):
        if candidates.starts[size + 1] - candidates.starts[size] > used[size]:
            log_norm = np.logaddexp(log_norm, model.log_size[size])
    return log_norm


@inner_kernel
def part_value(model, counts, log_volume):
    """Contribution of a part to the log likelihood, apart from `shape_value`."""
    value = 0.0
    for label in range(counts.shape[0]):
        if counts[label] > 0.0:
            value += _log_gamma(model.log_gamma, counts[label], model.alpha)
            value -= _log_gamma(model.log_gamma, 0.0, model.alpha)
    if model.kind == layout.DENSITY:
        return value - counts[0] * log_volume
    total = 0.0
    for label in range(counts.shape[0]):
        total += counts[label]
    all_alpha = counts.shape[0] * model.alpha
    value += _log_gamma(model.log_gamma_all, 0.0, all_alpha)
    return value - _log_gamma(model.log_gamma_all, total, all_alpha)


@inner_kernel
def shape_value(model, n_rules):
    """Contribution of the number of parts to the log likelihood."""
    if model.kind != layout.DENSITY:
        return 0.0
    all_alpha = (n_rules + 1) * model.alpha
    return lgamma(all_alpha) - lgamma(model.total + all_alpha)


@inner_kernel
def measure(candidates, work, first, last, gone, new):
    """Write the log volumes of parts first .. last of the proposed list; False if one has no cell.

    Among the earlier rules, `gone` may have been removed and `new` added (-1: none); a part that is
    disjoint from both keeps its volume.
    """
    rules, n_rules = work.rules[TRIAL], work.sizes[TRIAL]
    shift = work.sizes[TRIAL] - work.sizes[CURRENT]
    for part in range(first, last + 1):
        rule = rules[part] if part < n_rules else np.int64(-1)
        before = part - shift
        if (
            rule >= 0
            and rule != gone
            and rule != new
            and 0 <= before < work.sizes[CURRENT]
            and work.rules[CURRENT, before] == rule
            and (gone < 0 or are_disjoint(candidates, gone, rule))
            and (new < 0 or are_disjoint(candidates, new, rule))
        ):
            work.log_volumes[TRIAL, part] = work.log_volumes[CURRENT, before]
            continue
        log_volume = first_log_volume(candidates, rules, part, rule, work.space)
        if log_volume == -np.inf:
            return False
        work.log_volumes[TRIAL, part] = log_volume
    return True


@inner_kernel
def tally(candidates, rows, model, work, first, last):
    """Write rows and terms of parts first .. last of the proposed list."""
    n_rules, before = work.sizes[TRIAL], work.slots[CURRENT, first]
    for part in range(first, last + 1):
        if part == n_rules:
            count(rows, work.remaining[before], work.counts)
        else:
            after = work.slots[TRIAL, part + 1]
            left, rule = work.remaining[before], work.rules[TRIAL, part]
            capture(candidates, rows, rule, left, work.captured, work.remaining[after])
            count(rows, work.captured, work.counts)
            before = after
        log_volume = model.log_domain + work.log_volumes[TRIAL, part]
        work.terms[TRIAL, part] = part_value(model, work.counts, log_volume)


@inner_kernel
def keep(work, first, last):
    """Make the proposed list the current one; parts first .. last differ."""
    n_rules = work.sizes[TRIAL]
    work.sizes[CURRENT] = n_rules
    for part in range(first, n_rules):
        work.rules[CURRENT, part] = work.rules[TRIAL, part]
    for part in range(first, last + 1):
        work.log_volumes[CURRENT, part] = work.log_volumes[TRIAL, part]
        work.terms[CURRENT, part] = work.terms[TRIAL, part]
        if part < n_rules:
            slot = work.slots[CURRENT, part + 1]
            work.slots[CURRENT, part + 1] = work.slots[TRIAL, part + 1]
            work.slots[TRIAL, part + 1] = slot


@inner_kernel
def log_likelihood(model, work, first, last):
    """Log likelihood of the proposed list; its parts first .. last differ from the current list."""
    n_rules = work.sizes[TRIAL]
    value = shape_value(model, n_rules)
    for part in range(n_rules + 1):
        value += work.terms[TRIAL if first <= part <= last else CURRENT, part]
    return value


@inner_kernel
def note_best(work):
    """Make the current list the best one."""
    n_rules = work.sizes[CURRENT]
    work.sizes[BEST] = n_rules
    for position in range(n_rules):
        work.rules[BEST, position] = work.rules[CURRENT, position]


@inner_kernel
def load(candidates, rows, model, work, rules):
    """Load a list, rules (m,) int64, into the work space; return its log density, nats.

    It is -inf, and rows are not counted, if a part of a density list captures no cell.
    """
    for slot in range(layout.MAX_RULES + 1):
        work.slots[CURRENT, slot] = slot
        work.slots[TRIAL, slot] = layout.MAX_RULES + 1 + slot
    for w in range(rows.everyone.shape[0]):
        work.remaining[0, w] = rows.everyone[w]
    reset_box(candidates, work.space.box)
    n_rules = rules.shape[0]
    work.sizes[CURRENT], work.sizes[TRIAL] = 0, n_rules
    for position in range(n_rules):
        work.rules[TRIAL, position] = rules[position]
    if model.kind == layout.DENSITY and not measure(candidates, work, 0, n_rules, -1, -1):
        return -np.inf
    tally(candidates, rows, model, work, 0, n_rules)
    prior = log_prior(candidates, model, work.rules[TRIAL], n_rules, work.used)
    value = prior + log_likelihood(model, work, 0, n_rules)
    keep(work, 0, n_rules)
    return value


@inner_kernel
def run_steps(rng, candidates, rows, model, work, n_steps, beta, levels, move_cdf, counts):
    """Run steps; levels (3,): log density and log prior of the list, log density of the best."""
    hot, cold = min(beta, 1.0), max(beta, 1.0)
    kept = layout.PRIOR_KEPT * (1.0 - hot)
    current, base, best = levels[0], levels[1], levels[2]
    for _ in range(n_steps):
        u = rng.random()
        move = 0
        while u >= move_cdf[move]:
            move += 1
        counts[0, move] += 1
        log_ratio, first, last, gone, new = propose(rng, candidates, model, work, move)
        if np.isnan(log_ratio):
            continue
        if model.kind == layout.DENSITY and not measure(candidates, work, first, last, gone, new):
            continue
        tally(candidates, rows, model, work, first, last)
        prior = log_prior(candidates, model, work.rules[TRIAL], work.sizes[TRIAL], work.used)
        value = prior + log_likelihood(model, work, first, last)
        log_u = log(rng.random())
        gain = hot * (value - current) + kept * (prior - base)
        if log_u < cold * gain + log_ratio:
            keep(work, first, last)
            counts[1, move] += 1
            current, base = value, prior
            if current > best:
                best = current
                note_best(work)
    levels[0], levels[1], levels[2] = current, base, best


@inner_kernel
def begin(candidates, model, work, start, levels):
    """Write the levels of a loaded list, which is the best one so far."""
    n_rules = work.sizes[CURRENT]
    levels[0] = levels[2] = start
    levels[1] = log_prior(candidates, model, work.rules[CURRENT], n_rules, work.used)
    note_best(work)


@kernel
def exchange(
    rng: np.random.Generator,
    candidates: layout.CandidateArrays,
    rows: layout.RowArrays,
    model: layout.RuleListArrays,
    works: layout.RuleListWorkspace,
    rules: Array,
    sizes: Array,
    n_steps: int,
    between: int,
    betas: Array,
    n_rounds: int,
    levels: Array,
    holders: Array,
    move_cdf: Array,
    counts: Array,
    swaps: Array,
) -> None:
    """Run steps of K lists, each at its inverse temperature, and swap every `between` steps.

    The target of a list at beta is exp(beta * log density), for beta below 1 times exp((1 - beta) *
    PRIOR_KEPT * log prior), so that hot lists do not get long and useless.

    works: `layout.new_workspaces` of K lists; rules (K, R) and sizes (K,) int64: the lists at the
    start; betas (K,) float64, coldest first; n_rounds: number of earlier rounds of swaps, which
    determines the pairs of a round; levels (K, 3) float64: output, log density and log prior of
    each list, and the log density of the best list that it has visited, including the first;
    holders (K,) int64: output, the list at each temperature; move_cdf (6,) float64: cumulative
    selection probabilities of MOVES; counts (2, 2, 6) int64: proposed and accepted steps of the
    coldest list and of all others are added; swaps (3, K - 1) float64: for each pair of neighbors,
    the swap probabilities of all rounds, the tried and the accepted swaps are added.
    """
    n_lists = betas.shape[0]
    for k in range(n_lists):
        holders[k] = k
        work = _workspace_of(works, k)
        start = load(candidates, rows, model, work, rules[k, : sizes[k]])
        begin(candidates, model, work, start, levels[k])
    done = 0
    while done < n_steps:
        n_now = min(between, n_steps - done)
        done += n_now
        for k in range(n_lists):
            one = holders[k]
            work, tried = _workspace_of(works, one), counts[0 if k == 0 else 1]
            run_steps(
                rng, candidates, rows, model, work, n_now, betas[k], levels[one], move_cdf, tried
            )
        for pair in range(n_lists - 1):
            cold, hot = holders[pair], holders[pair + 1]
            gain = levels[hot, 0] - levels[cold, 0]
            gain -= layout.PRIOR_KEPT * (levels[hot, 1] - levels[cold, 1])
            probability = exp(min(0.0, (betas[pair] - betas[pair + 1]) * gain))
            swaps[PROBABILITY, pair] += probability
            if pair % 2 == n_rounds % 2:
                swaps[TRIED, pair] += 1.0
                if rng.random() < probability:
                    swaps[ACCEPTED, pair] += 1.0
                    holders[pair], holders[pair + 1] = hot, cold
        n_rounds += 1
