"""All trees of a problem in 45 digits, box by box: what exact solutions must say of any weights.

Nothing here imports the packages under test, and nothing takes a logarithm of what it adds up. The
sums over the trees below a box are numbers by the number of leaves (leaf model), by the set of
columns used (branch model with `feature_inclusion`), or one alone, as are their maxima.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cache, cached_property, wraps
from math import comb

from tests.exact_reference import log_gamma
from tests.reference import partitions, runs

DIGITS = Context(prec=45, Emax=MAX_EMAX, Emin=MIN_EMIN)


def precisely(function):
    """Have a function compute with many digits, of numbers of any size."""

    @wraps(function)
    def within(*arguments):
        with localcontext(DIGITS):
            return function(*arguments)

    return within


@cache
def log(x):
    return x.ln()


@dataclass(frozen=True, eq=False)
class AllTrees:
    """Every tree of a problem.

    `record` has n_levels, nominal, widths, rows and weights, as `tests.reference` takes them;
    parameters are those of `LeafPosterior` or `BranchPosterior` by name.
    """

    record: dict
    parameters: dict
    partitions: str
    max_branches: int
    _counts: dict = field(default_factory=dict)
    _worths: dict = field(default_factory=dict)
    _sums: dict = field(default_factory=dict)
    _n_ways: dict = field(default_factory=dict)

    @cached_property
    def is_leaf_model(self):
        return "expected_leaves" in self.parameters

    @cached_property
    def rate(self):
        name = "expected_leaves" if self.is_leaf_model else "expected_branches"
        return Decimal(float(self.parameters[name]))

    @cached_property
    def alpha(self):
        return Decimal(float(self.parameters["concentration"]))

    @cached_property
    def stop(self):
        """Probability of a leaf under the generative prior; None with the other."""
        if self.parameters.get("prior") != "generative":
            return None
        return Decimal(float(self.parameters["stop"]))

    def n_ways(self, box):
        """Return in how many ways a box can be split."""
        if box not in self._n_ways:
            self._n_ways[box] = sum(1 for _ in self.ways(box))
        return self._n_ways[box]

    @cached_property
    def whole(self):
        return tuple(tuple(range(q)) for q in self.record["n_levels"])

    @cached_property
    def rows(self):
        record = self.record
        pairs = zip(record["rows"], record["weights"], strict=True)
        return [(row, Decimal(float(w))) for row, w in pairs]

    @cached_property
    def total(self):
        return self.count(self.whole)

    def without_rows(self):
        """Return the same problem with no data: the prior."""
        record = {**self.record, "rows": [], "weights": []}
        return AllTrees(record, self.parameters, self.partitions, self.max_branches)

    # -- boxes -------------------------------------------------------------------------------------

    def count(self, box):
        """Return the weight of the rows in a box."""
        if box not in self._counts:
            inside = (w for row, w in self.rows if all(c in b for c, b in zip(row, box)))  # noqa: B905
            self._counts[box] = sum(inside, Decimal(0))
        return self._counts[box]

    def log_leaf(self, box):
        """Return the log of what a box is worth as a leaf, but for what the whole tree counts."""
        if box not in self._worths:
            count = self.count(box)
            value = Decimal(0) if self.is_leaf_model else -self.rate
            if self.stop is not None:
                value = log(self.stop) if self.n_ways(box) else Decimal(0)
            if self.is_leaf_model:
                value += log_gamma(count + self.alpha) - log_gamma(self.alpha)
            self._worths[box] = value + self._log_inside(box, count)
        return self._worths[box]

    def _log_inside(self, box, count):
        widths = [[Decimal(float(w)) for w in each] for each in self.record["widths"]]
        if self.parameters.get("leaf", "uniform") == "uniform":
            volumes = (sum(widths[j][c] for c in codes) for j, codes in enumerate(box))
            return -count * sum(log(v) for v in volumes)
        a, value = Decimal(float(self.parameters["leaf_concentration"])), Decimal(0)
        for j, codes in enumerate(box):
            value += log_gamma(a * len(codes)) - log_gamma(count + a * len(codes))
            for code in codes:
                inside = self.count((*box[:j], (code,), *box[j + 1 :]))
                value += log_gamma(inside + a) - log_gamma(a) - inside * log(widths[j][code])
        return value

    def ways(self, box):
        """Yield every way to split a box: the column, and the boxes of the branches."""
        for j, codes in enumerate(box):
            if len(codes) < 2:
                continue
            if self.partitions == "levels":
                if codes != self.whole[j]:
                    continue
                found = [tuple((c,) for c in codes)]
            else:
                found = (partitions if self.record["nominal"][j] else runs)(codes)
            most = len(codes) if self.partitions == "levels" else self.max_branches
            for blocks in found:
                if 2 <= len(blocks) <= most:
                    yield j, [(*box[:j], block, *box[j + 1 :]) for block in blocks]

    def log_split(self, box, branches):
        """Return the log of what a split is worth, but for its branches."""
        b, alpha, value = len(branches), self.alpha, Decimal(0)
        if self.stop is not None:
            value = log(1 - self.stop) - log(Decimal(self.n_ways(box)))
        elif not self.is_leaf_model:
            value = -self.rate + b * log(self.rate) - log_gamma(Decimal(b + 1))
        if self.is_leaf_model:
            return value
        value += log_gamma(b * alpha) - b * log_gamma(alpha)
        value -= log_gamma(b * alpha + self.count(box))
        return value + sum(log_gamma(alpha + self.count(branch)) for branch in branches)

    # -- sums and maxima ---------------------------------------------------------------------------

    def below(self, box, join):
        """Return what the trees below a box come to, by key: see the module; `join` is sum or max.

        Keys are numbers of leaves, or sets of columns as bits, or always 0.
        """
        key = join, box
        if key not in self._sums:
            terms = defaultdict(list)
            terms[int(self.is_leaf_model)].append(self.log_leaf(box).exp())
            for j, branches in self.ways(box):
                products = {0: self.log_split(box, branches).exp()}
                for branch in branches:
                    mixed = defaultdict(list)
                    for one, worth in products.items():
                        for other, more in self.below(branch, join).items():
                            mixed[self._joined(one, other)].append(worth * more)
                    products = {k: join(each) for k, each in mixed.items()}
                for k, worth in products.items():
                    terms[self._joined(k, 1 << j) if self._by_sets else k].append(worth)
            self._sums[key] = {k: join(each) for k, each in terms.items()}
        return self._sums[key]

    @property
    def _by_sets(self):
        return self.parameters.get("feature_inclusion") is not None

    def _joined(self, one, other):
        if self.is_leaf_model:
            return one + other
        return one | other if self._by_sets else 0

    def log_weight(self, key):
        """Return the log of what a whole tree counts beside its parts, by its key."""
        if self.is_leaf_model:
            if key > (self.parameters.get("max_leaves") or key):
                return Decimal("-Infinity")
            k, alpha = Decimal(key), self.alpha
            value = -self.rate + k * log(self.rate) - log_gamma(k + 1)
            value = value if self.stop is None else Decimal(0)
            return value + log_gamma(k * alpha) - log_gamma(self.total + k * alpha)
        if not self._by_sets:
            return Decimal(0)
        gamma, p = Decimal(float(self.parameters["feature_inclusion"])), len(self.whole)
        d = key.bit_count()
        return Decimal(comb(p, d)).ln() + d * log(gamma) + (p - d) * log(1 - gamma)

    def _over_trees(self, join):
        found = self.below(self.whole, join)
        return join([self.log_weight(k).exp() * worth for k, worth in found.items()]).ln()

    @cached_property
    @precisely
    def log_normalizer(self):
        return self._over_trees(sum)

    @cached_property
    @precisely
    def log_best(self):
        """The log density of the most probable tree."""
        return self._over_trees(max)

    @cached_property
    @precisely
    def log_evidence(self):
        return self.log_normalizer - self.without_rows().log_normalizer

    @precisely
    def log_density(self, nested):
        """Return the log density of a tree, nested as in `tests.reference`."""

        def walk(node, box):
            if node is None:
                return self.log_leaf(box), int(self.is_leaf_model)
            column, children = node
            boxes = [(*box[:column], tuple(codes), *box[column + 1 :]) for codes, _ in children]
            value, key = self.log_split(box, boxes), 1 << column if self._by_sets else 0
            for (_, child), inside in zip(children, boxes, strict=True):
                more, other = walk(child, inside)
                value, key = value + more, self._joined(key, other)
            return value, key

        value, key = walk(nested, self.whole)
        return value + self.log_weight(key)
