"""Slow, obvious twins of the rule lists. Nothing here imports the packages under test.

A column is ``(kind, number of codes, whether the last code is the missing level)``. A condition is
``(column, low, high)``, a half-open range of codes; an antecedent is a tuple of conditions, and a
list a tuple of antecedents, its first rule first. Rows are tuples of codes with weights; labels are
codes of classes. Part ``len(rules)`` is what no rule captures.
"""

import math
from itertools import combinations, pairwise, permutations, product

MAX_RULES = 62


def ranges_of(column):
    """Return the half-open ranges of codes that one condition on a column may ask for."""
    kind, n_codes, has_missing = column
    ordered = [code for code in range(n_codes) if not (has_missing and code == n_codes - 1)]
    if kind == "nominal":
        asked = [{code} for code in range(n_codes)]
    else:
        ends = combinations(range(len(ordered) + 1), 2)
        asked = [set(ordered[first:last]) for first, last in ends]
        asked += [{n_codes - 1}] * has_missing
    proper = [codes for codes in asked if len(codes) < n_codes]
    return sorted((min(codes), max(codes) + 1) for codes in proper)


def candidates(columns, max_size):
    """Return every antecedent of 1 to `max_size` conditions, by size, then in order."""
    found = []
    for size in range(1, max_size + 1):
        for chosen in combinations(range(len(columns)), size):
            for ranges in product(*(ranges_of(columns[j]) for j in chosen)):
                found.append(tuple((j, *ends) for j, ends in zip(chosen, ranges, strict=True)))
    return sorted(found, key=lambda antecedent: (len(antecedent), antecedent))


def satisfies(row, antecedent):
    return all(low <= row[j] < high for j, low, high in antecedent)


def supported(found, rows, weights, min_support):
    """Return the antecedents that a share of at least `min_support` of the weight satisfies."""
    least = min_support * math.fsum(weights) * (1 - 1e-9)  # sums are rounded
    return [a for a in found if captured([a], rows, weights)[0] >= least]


def part_of(row, rules):
    """Return the number of the first rule that a row satisfies, or how many rules there are."""
    for number, antecedent in enumerate(rules):
        if satisfies(row, antecedent):
            return number
    return len(rules)


def captured(rules, rows, weights):
    """Return the weight of the rows of each part."""
    counts = [[] for _ in range(len(rules) + 1)]
    for row, weight in zip(rows, weights, strict=True):
        counts[part_of(row, rules)].append(weight)
    return [math.fsum(part) for part in counts]


def captured_by_class(rules, rows, weights, labels, n_classes):
    """Return the weight of the rows of each part and class."""
    columns = []
    for one in range(n_classes):
        chosen = [weight * (label == one) for weight, label in zip(weights, labels, strict=True)]
        columns.append(captured(rules, rows, chosen))
    return [list(part) for part in zip(*columns, strict=True)]


def first_volumes(rules, widths, evidence=None):
    """Return the volume of the cells of each part, by a walk over all cells."""
    evidence = evidence or {}
    allowed = [evidence.get(j, range(len(width))) for j, width in enumerate(widths)]
    volumes = [[] for _ in range(len(rules) + 1)]
    for cell in product(*allowed):
        volume = math.prod(widths[j][code] for j, code in enumerate(cell))
        volumes[part_of(cell, rules)].append(volume)
    return [math.fsum(part) for part in volumes]


def first_volumes_of_binary(rules, n_columns):
    """Return the number of cells of each part over binary columns, an int: inclusion-exclusion."""

    def union(count):
        """Return how many cells satisfy at least one of the first `count` rules."""

        def intersections(start, fixed, sign):
            total = 0
            for number in range(start, count):
                both = dict(fixed)
                if all(both.setdefault(j, low) == low for j, low, _ in rules[number]):
                    total += sign * 2 ** (n_columns - len(both))
                    total += intersections(number + 1, both, -sign)
            return total

        return intersections(0, {}, 1)

    covered = [union(count) for count in range(len(rules) + 1)]
    first = [after - before for before, after in pairwise(covered)]
    return [*first, 2**n_columns - covered[-1]]


def all_lists(found, max_length):
    """Return every list of at most `max_length` different candidates, as indices."""
    lengths = range(min(max_length, len(found)) + 1)
    return [chosen for length in lengths for chosen in permutations(range(len(found)), length)]


def splitting_lists(found, widths):
    """Return every list of which each part, that after the last rule included, has a cell."""
    cells = list(product(*(range(len(width)) for width in widths)))
    lists = []

    def extend(chosen, left):
        lists.append(chosen)
        for number, antecedent in enumerate(found):
            after = [cell for cell in left if not satisfies(cell, antecedent)]
            if 0 < len(after) < len(left):
                extend((*chosen, number), after)

    extend((), cells)
    return sorted(lists, key=lambda chosen: (len(chosen), chosen))


def log_poisson(value, mean, support):
    """Return the log probability of a value under a Poisson distribution cut to a support."""
    terms = [mean**k / math.factorial(k) for k in support]
    return math.log(mean**value / math.factorial(value)) - math.log(math.fsum(terms))


def log_prior(chosen, sizes, expected_rules, expected_size):
    """Return the log prior of a list of candidates, the way it is generated, step by step.

    Its length first, then for each rule the size, out of those left, then the rule, out of those
    of its size that are left. `sizes` has the size of each candidate.
    """
    longest = min(len(sizes), MAX_RULES)
    if len(chosen) > longest:
        return -math.inf
    value = log_poisson(len(chosen), expected_rules, range(longest + 1))
    left = list(sizes)
    for number in chosen:
        size = sizes[number]
        value += log_poisson(size, expected_size, sorted(set(left)))
        value -= math.log(left.count(size))
        left.remove(size)
    return value


def draw_list(rng, sizes, expected_rules, expected_size):
    """Return a list drawn from the prior, likewise step by step."""
    longest = min(len(sizes), MAX_RULES)
    lengths = [math.exp(log_poisson(m, expected_rules, range(longest + 1)))
               for m in range(longest + 1)]  # fmt: skip
    left = dict(enumerate(sizes))
    chosen = []
    for _ in range(rng.choice(len(lengths), p=lengths)):
        available = sorted(set(left.values()))
        shares = [math.exp(log_poisson(size, expected_size, available)) for size in available]
        size = rng.choice(available, p=shares)
        number = int(rng.choice([i for i, other in left.items() if other == size]))
        del left[number]
        chosen.append(number)
    return tuple(chosen)


def density_log_likelihood(counts, volumes, alpha):
    """Return the log likelihood of rows in parts with these counts and volumes."""
    k = len(counts)
    value = math.lgamma(k * alpha) - k * math.lgamma(alpha)
    value -= math.lgamma(math.fsum(counts) + k * alpha)
    for count, volume in zip(counts, volumes, strict=True):
        value += math.lgamma(count + alpha) - count * math.log(volume)
    return value


def label_log_likelihood(counts, alpha):
    """Return the log likelihood of labels in parts with these counts per class."""
    value = 0.0
    for part in counts:
        c = len(part)
        value += math.lgamma(c * alpha) - c * math.lgamma(alpha)
        value += math.fsum(math.lgamma(count + alpha) for count in part)
        value -= math.lgamma(math.fsum(part) + c * alpha)
    return value


def density_log_density(chosen, problem, expected_rules, expected_size, alpha):
    """Return the log posterior of a density list: -inf if a part has no cell."""
    found = problem["candidates"]
    rules = [found[number] for number in chosen]
    volumes = first_volumes(rules, problem["widths"])
    if min(volumes) == 0.0:
        return -math.inf
    counts = captured(rules, problem["rows"], problem["weights"])
    value = log_prior(chosen, [len(one) for one in found], expected_rules, expected_size)
    return value + density_log_likelihood(counts, volumes, alpha)


def label_log_density(chosen, problem, expected_rules, expected_size, alpha):
    """Return the log posterior of a classification list; parts may be empty."""
    found = problem["candidates"]
    rules = [found[number] for number in chosen]
    counts = captured_by_class(
        rules, problem["rows"], problem["weights"], problem["labels"], problem["n_classes"]
    )
    value = log_prior(chosen, [len(one) for one in found], expected_rules, expected_size)
    return value + label_log_likelihood(counts, alpha)
