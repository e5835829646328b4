"""The classifier by Fast Boxes; `fast` has the formulas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from bayescascade.methods.boxes.base import BoxesClassifier
from bayescascade.methods.boxes.fast import choose, cluster, draw_boxes
from bayescascade.methods.boxes.learned import LearnedBoxes
from bayescascade.methods.boxes.parameters import FastBoxParameters
from bayescascade.methods.boxes.union import BoxUnion
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.report.page import Page, Pieces, count_of


@dataclass(eq=False, repr=False, kw_only=True)
class FastBoxes(BoxesClassifier):
    """Fast classifier by boxes around clusters of a rare class; `fast` has the formulas.

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

    starting_: BoxUnion = field(init=False)
    revised_: BoxUnion = field(init=False)
    clusters_: NDArray[np.int64] = field(init=False)
    n_clusters_: int = field(init=False)
    expansion_: float = field(init=False)
    _best: LearnedBoxes = field(init=False)

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
        self._best = LearnedBoxes.of(drawn.final, *training, 1.0)
        return self

    def _how_made(self) -> Page:
        how = "chosen by cross-validation" if "cv" in (self.n_clusters, self.expansion) else "given"
        clusters = count_of(self.n_clusters_, "cluster")
        return (Pieces([f"{clusters}, expansion {self.expansion_:g}, {how}"]),)

    def _fields(self) -> dict[str, Any]:
        return {
            **self._encoding_fields(),
            **self._own_record(),
            "best": self._best.to_record(),
            "starting": self.starting_.to_record(),
            "revised": self.revised_.to_record(),
            "clusters": self.clusters_.tolist(),
            "chosen": {"n_clusters": self.n_clusters_, "expansion": self.expansion_},
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._read_encoding(record)
        self._read_own(record)
        n_columns = len(self._encoder.source)
        chosen = FastBoxParameters.declared()
        self.n_clusters_ = chosen["n_clusters"].check(record["chosen"]["n_clusters"])
        self.expansion_ = chosen["expansion"].check(record["chosen"]["expansion"])
        self.starting_ = BoxUnion.from_record(record["starting"], n_columns)
        self.revised_ = BoxUnion.from_record(record["revised"], n_columns)
        self.clusters_ = np.array(record["clusters"], np.int64)
        self._best = LearnedBoxes.from_record(record["best"], n_columns, 1.0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # its boxes hold all positives, whatever the others
        return tags
