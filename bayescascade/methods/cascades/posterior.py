"""The posteriors of cascades, of leaves and of branches; `models` has the formulas."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bayescascade.methods.cascades.canonical import strongest_splits_first
from bayescascade.methods.cascades.models import BranchModel, LeafModel
from bayescascade.methods.cascades.tree import Tree
from bayescascade.methods.cascades.tree_posterior import CascadePosterior

if TYPE_CHECKING:
    from bayescascade.data.table import Table


class LeafPosterior(CascadePosterior):
    """The posterior of `LeafModel`.

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    expected_leaves, concentration, max_leaves, leaf, leaf_concentration, prior, stop
        As in `LeafModel`.
    max_branches, move_weights, partitions
        As in `CascadePosterior`.
    """

    def __init__(
        self,
        table: "Table",
        expected_leaves: float = 8.0,
        concentration: float = 2.0,
        max_branches: int | None = 2,
        move_weights: Mapping[str, float] | None = None,
        *,
        max_leaves: int | None = None,
        partitions: str = "subsets",
        leaf: str = "uniform",
        leaf_concentration: float = 1.0,
        prior: str = "poisson",
        stop: float = 0.5,
    ) -> None:
        model = LeafModel(
            expected_leaves, concentration, max_leaves, leaf, leaf_concentration, prior, stop
        )
        super().__init__(table, model, max_branches, move_weights, partitions=partitions)

    def canonical(self, state: Tree) -> Tree:
        """Return the tree, among those with the same leaves, whose first splits gain the most.

        Trees with the same leaves have the same posterior density under this model, so a search
        returns a random one of them. If two splits gain the same, the earlier column is taken. With
        the generative prior such trees have different densities, so the tree is returned unchanged.
        """
        if self.model.is_generative:
            return state
        counts, _ = self.node_statistics(state)
        return strongest_splits_first(state, counts, self.schema, self.max_branches)


class BranchPosterior(CascadePosterior):
    """The posterior of `BranchModel`.

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    expected_branches, concentration, feature_inclusion, leaf, leaf_concentration, prior, stop
        As in `BranchModel`.
    max_branches, move_weights, partitions, max_depth
        As in `CascadePosterior`.
    """

    def __init__(
        self,
        table: "Table",
        expected_branches: float = 2.0,
        concentration: float = 2.0,
        max_branches: int | None = None,
        feature_inclusion: float | None = None,
        move_weights: Mapping[str, float] | None = None,
        *,
        partitions: str = "subsets",
        leaf: str = "uniform",
        leaf_concentration: float = 1.0,
        prior: str = "poisson",
        stop: float = 0.5,
        max_depth: int | None = None,
    ) -> None:
        model = BranchModel(
            expected_branches, concentration, feature_inclusion, leaf, leaf_concentration, prior,
            stop,
        )  # fmt: skip
        super().__init__(
            table, model, max_branches, move_weights, partitions=partitions, max_depth=max_depth
        )
