"""Fast Boxes: boxes around clusters, each side moved by a loss with a closed form.

Goh (2018, section 2.3.2). Columns are scaled to [-1, 1], positives are clustered by k-means, and a
box is drawn around each cluster, with sides l_s and u_s. Of the rows at or below l_s in column j,
and those in the lower half of the box, S_+ are the cluster's positives and S_- all negatives. e_p
>= 0 is the distance of a row from the box in column p. The lower side is moved to the minimum of

    sum_{S_+} exp(-(x_j - l)) + c sum_{S_-} exp(x_j - l - sum_{p != j} e_p) + beta l,

which is (2.25), here without cancellation where beta is large::

    l_r = l_s - 1 + log(2 c R_- / (beta + sqrt(beta^2 + 4 c R_+ R_-)))
    R_+ = sum_{S_+} exp(-(x_j - l_s + 1)),  R_- = sum_{S_-} exp(x_j - l_s + 1 - sum_{p != j} e_p)

and if R_- = 0, the side is open. (2.26) is the same with all signs changed. As in the text, but not
as printed, the distance e_p reduces a row's weight; S_- are negatives, not positives of other
clusters. Finally sides move outward, never inward, to the next negative beyond both l_s and l_r
(2.29, 2.30). The side is the float next to it. Without that step, a column whose sides have crossed
keeps those of the starting box.

Ours are: clusters by ranks, so that a few far rows do not hide the others; and at last, sides that
keep no row out are opened, and others are halfway to the next row outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import Tags

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Of, Saved
from bayescascade.base.validation import check_integer
from bayescascade.methods.boxes.base import BoxesClassifier
from bayescascade.methods.boxes.parameters import FastBoxParameters
from bayescascade.methods.boxes.union import UNION, BoxUnion, LearnedBoxes
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.model.view import View
from bayescascade.report.page import Pieces, count_of

_LIMIT = "boxes hold all rows of a cluster: BoxClassifier or a decision tree is often more accurate"
N_FOLDS = 3
EXPANSIONS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Values of beta for cross-validation."""

CLUSTERS = (1, 2, 3, 4, 6, 8, 12)
"""Numbers of clusters for cross-validation, if there are enough positives."""


class Drawn(NamedTuple):
    """Boxes after each step."""

    starting: BoxUnion
    revised: BoxUnion
    final: BoxUnion


def cluster(rows: Floats, is_positive: Flags, weights: Floats, n_clusters: int, seed: int
            ) -> Integers:  # fmt: skip
    """Return the cluster of each positive, (n_positives,); ParameterError if there are too few."""
    positives = _scaled(rankdata(rows, axis=0))[is_positive]
    n_distinct = len(np.unique(positives, axis=0))
    if n_clusters > n_distinct:
        raise ParameterError(
            f"n_clusters must be at most the number of different positives, {n_distinct}, "
            f"got {n_clusters}"
        )
    found = KMeans(n_clusters, n_init=10, random_state=seed)
    labels: Integers = found.fit_predict(positives, sample_weight=weights[is_positive]).astype(
        np.int64
    )
    return labels


def draw_boxes(
    rows: Floats,
    is_positive: Flags,
    weights: Floats,
    clusters: Integers,
    expansion: float,
    negative_weight: float,
    grow: bool,
) -> Drawn:
    """Return boxes around clusters of positives; the module has the formulas."""
    scaled = _scaled(rows)
    boxes = []
    for each in np.unique(clusters):
        is_own = np.zeros(len(rows), np.bool_)
        is_own[np.flatnonzero(is_positive)[clusters == each]] = True
        low, high = scaled[is_own].min(axis=0), scaled[is_own].max(axis=0)
        excess = np.maximum(scaled - high, 0.0) + np.maximum(low - scaled, 0.0)
        lower, upper = (
            sign * _revised(sign * scaled, sign * start, sign * end, excess, is_own, ~is_positive,
                            weights, expansion, negative_weight)
            for sign, start, end in ((1.0, low, high), (-1.0, high, low))
        )  # fmt: skip
        boxes.append((rows[is_own].min(axis=0), rows[is_own].max(axis=0), lower, upper, low, high))
    start_low, start_high, lower, upper, low, high = map(np.array, zip(*boxes, strict=True))
    crossed = lower > upper
    revised = BoxUnion(
        np.where(crossed, start_low, _unscaled(rows, lower)),
        np.where(crossed, start_high, _unscaled(rows, upper)),
    )
    final = revised
    if grow:
        negatives, cells = scaled[~is_positive], rows[~is_positive]
        final = BoxUnion(
            _next(negatives, cells, np.minimum(lower, low)),
            -_next(-negatives, -cells, -np.maximum(upper, high)),
        )
    return Drawn(BoxUnion(start_low, start_high), revised, final)


def _revised(
    scaled: Floats,
    start: Floats,
    end: Floats,
    excess: Floats,
    is_own: Flags,
    is_negative: Flags,
    weights: Floats,
    expansion: float,
    negative_weight: float,
) -> Floats:
    """Return (2.25) for each column, -inf where the side is open."""
    sides = np.empty(len(start))
    outside, apart = (excess > 0.0).sum(axis=1), excess.sum(axis=1)
    for column, (side, other) in enumerate(zip(start, end, strict=True)):
        cells, own = scaled[:, column], excess[:, column]
        is_beside = (outside == (own > 0.0)) & (cells >= side) & (cells <= (side + other) / 2.0)
        is_near = (cells <= side) | is_beside
        of_own, of_negatives = is_near & is_own, is_near & is_negative
        pull = float(weights[of_own] @ np.exp(side - 1.0 - cells[of_own]))
        diagonal = (apart - own)[of_negatives]
        push = float(weights[of_negatives] @ np.exp(cells[of_negatives] - side + 1.0 - diagonal))
        root = np.sqrt(expansion**2 + 4.0 * negative_weight * pull * push)
        share = 2.0 * negative_weight * push / (expansion + root) if push > 0.0 else 0.0
        sides[column] = side - 1.0 + np.log(share) if share > 0.0 else -np.inf
    return sides


def _next(negatives: Floats, cells: Floats, sides: Floats) -> Floats:
    """Return lower sides next to the largest negative below; -inf if there is none."""
    found = np.full(sides.shape, -np.inf)
    for column in range(sides.shape[1]):
        order = np.argsort(negatives[:, column], kind="stable")
        places = np.searchsorted(negatives[order, column], sides[:, column])
        is_there = places > 0
        below = cells[order[places[is_there] - 1], column]
        found[is_there, column] = np.nextafter(below, np.inf)
    return found


def choose(
    rows: Floats,
    is_positive: Flags,
    weights: Floats,
    n_clusters: int | None,
    expansion: float | None,
    negative_weight: float,
    grow: bool,
    seed: int,
) -> tuple[int, float]:
    """Return the number of clusters and the expansion, chosen by 3-fold cross-validation.

    Values of None are chosen by the mean of the shares of positives inside and negatives outside.
    The choice is the fewest clusters within one standard error (from counts of rows) of the best,
    and then the best expansion, the least among ties. On glass0, ecoli3 and yeast3 that is as good
    as the best itself, with half of the sides. With fewer than three positives or negatives, it is
    one cluster and no expansion.
    """
    counts = list(CLUSTERS) if n_clusters is None else [n_clusters]
    betas = list(EXPANSIONS) if expansion is None else [expansion]
    n_least = min(is_positive.sum(), (~is_positive).sum())
    if len(counts) == len(betas) == 1 or n_least < N_FOLDS:
        return counts[0], betas[0]
    rights = np.full((2, N_FOLDS, len(counts), len(betas)), -np.inf)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(rows, is_positive)
    for fold, (learned, held) in enumerate(folds):
        part = rows[learned], is_positive[learned], weights[learned]
        for place, count in enumerate(counts):
            if count > len(np.unique(part[0][part[1]], axis=0)):
                continue
            clusters = cluster(*part, count, seed)
            for other, beta in enumerate(betas):
                union = draw_boxes(*part, clusters, beta, negative_weight, grow).final
                is_right = union.halfway(part[0]).contains(rows[held]) == is_positive[held]
                for kind in range(2):
                    own = weights[held] * (is_positive[held] == bool(kind))
                    rights[kind, fold, place, other] = own @ is_right / max(own.sum(), 1e-300)
    shares = rights.mean(axis=1)
    means = shares.mean(axis=0)
    best = np.unravel_index(np.argmax(means), means.shape)
    if means[best] == -np.inf:
        return counts[0], betas[0]
    of_kinds = np.bincount(is_positive.astype(int), weights)
    right = shares[:, *best]
    error = np.sqrt((right * (1.0 - right) / of_kinds).sum()) / 2.0
    fewest = int(np.argmax(means.max(axis=1) >= means[best] - error))
    return counts[fewest], betas[int(np.argmax(means[fewest]))]


def _ends(rows: Floats) -> tuple[Floats, Floats]:
    low, high = rows.min(axis=0), rows.max(axis=0)
    return low / 2 + high / 2, np.where(high > low, high / 2 - low / 2, 1.0)


def _scaled(rows: Floats) -> Floats:
    middle, half = _ends(rows)
    return np.clip((rows - middle) / half, -1.0, 1.0)


def _unscaled(rows: Floats, sides: Floats) -> Floats:
    middle, half = _ends(rows)
    return sides * half + middle


@dataclass(eq=False, repr=False, kw_only=True)
class FastBoxes(BoxesClassifier):
    """Fast classifier by boxes around clusters of a rare class.

    Parameters
    ----------
    positive : label or None
        Label of the rare class. None: the rarer one.
    n_clusters : int >= 1 or "cv"
        Number of clusters and of boxes. "cv": the smallest number, up to 12, within one standard
        error of the best in 3-fold cross-validation.
    expansion : float >= 0 or "cv"
        How far boxes expand (beta in Goh and Rudin 2014). "cv": chosen by cross-validation.

    Attributes
    ----------
    starting_, revised_, boxes_ : BoxUnion
        The boxes around clusters, the boxes after the losses are minimized, and the final boxes.
    clusters_ : (n_positives,) int64
        The cluster of each positive.
    n_clusters_, expansion_ : int, float
        Number of clusters and expansion, given or chosen.

    All other attributes are those of `MatrixClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import FastBoxes
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = FastBoxes(n_clusters=1, expansion=1.0, random_state=0)
    >>> model.fit(X, (X > 0.8).all(axis=1)).boxes_.n_boxes
    1
    """

    model_name: ClassVar[str] = "FastBoxes"
    title: ClassVar[str] = "fast boxes"
    declares = FastBoxParameters

    positive: Any = FastBoxParameters.positive.default
    n_clusters: int | str = FastBoxParameters.n_clusters.default
    expansion: float | str = FastBoxParameters.expansion.default
    negative_weight: float = FastBoxParameters.negative_weight.default
    grow: bool = FastBoxParameters.grow.default
    random_state: Seed = FastBoxParameters.random_state.default
    missing: str = FastBoxParameters.missing.default
    unknown: str = FastBoxParameters.unknown.default

    starting_: Annotated[BoxUnion, UNION, Saved("starting")] = field(init=False)
    revised_: Annotated[BoxUnion, UNION, Saved("revised")] = field(init=False)
    clusters_: Annotated[Integers, Of(None, kind=np.int64), Saved("clusters")] = field(init=False)
    n_clusters_: int = field(init=False)
    expansion_: float = field(init=False)
    _best: Annotated[LearnedBoxes, Saved("best")] = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster positives, and draw a box around each cluster.

        Parameters
        ----------
        X, y, sample_weight
            As in `BoxClassifier.fit`.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, such as more clusters than positives.
        DataError
            If rows, labels or weights cannot be used.
        """
        self.declares.check(self)
        training = self._read_rows(X, y, sample_weight)
        seed = int(seed_sequence(self.random_state).generate_state(1)[0])
        n_clusters = None if isinstance(self.n_clusters, str) else self.n_clusters
        expansion = None if isinstance(self.expansion, str) else float(self.expansion)
        self.n_clusters_, self.expansion_ = choose(
            *training, n_clusters, expansion, self.negative_weight, self.grow, seed
        )
        self.clusters_ = cluster(*training, self.n_clusters_, seed)
        drawn = draw_boxes(
            *training, self.clusters_, self.expansion_, self.negative_weight, self.grow
        )
        self.starting_, self.revised_ = drawn.starting, drawn.revised
        self._best = LearnedBoxes.of(drawn.final.halfway(training.rows), *training, 1.0)
        self._check_named()
        return self

    def _fields(self) -> dict[str, Any]:
        chosen = {"n_clusters": self.n_clusters_, "expansion": self.expansion_}
        return {**super()._fields(), "chosen": chosen}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self.n_clusters_ = check_integer("n_clusters", record["chosen"]["n_clusters"], 1)
        self.expansion_ = FastBoxParameters.expansion.check(record["chosen"]["expansion"])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # boxes contain all positives
        return tags

    def view(self) -> View:
        """Return what is shown, with the settings that were chosen."""
        view = super().view()
        how = "chosen by cross-validation" if "cv" in (self.n_clusters, self.expansion) else "given"
        text = count_of(self.n_clusters_, "cluster")
        chosen = Pieces([f"{text}, expansion {self.expansion_:g}, {how}"])
        return view._replace(made=(chosen, Pieces([_LIMIT], "dim")))
