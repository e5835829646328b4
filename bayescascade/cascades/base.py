"""What both cascades do beside any density estimator: trees, their leaves and their columns."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

import samplers
from bayescascade.cascades.counted_tree import CountedTree
from bayescascade.cascades.density import DensityTree
from bayescascade.cascades.models import CascadeModel, empirical_probabilities
from bayescascade.cascades.posterior import CascadePosterior
from bayescascade.cascades.tree import Tree
from bayescascade.estimator import DENSITIES, DensityEstimator
from bayescascade.report.inference_data import PosteriorRun
from bayescascade.table import Table
from bayescascade.validation import check_choice, check_integer

__all__ = ["Cascade"]


class Cascade(DensityEstimator[Tree, CountedTree, DensityTree]):
    """What both cascades do; the subclasses document the parameters."""

    learned_name: ClassVar[str] = "tree"
    size_name: ClassVar[str] = "n_leaves"

    max_branches: int | None
    posterior_: CascadePosterior

    @property
    def tree_(self) -> DensityTree:
        """The most probable tree found, with counts, volumes and probabilities."""
        return self.learned_

    @abstractmethod
    def _model(self) -> CascadeModel:
        """Return the model that the parameters describe; raises ParameterError if they are bad."""

    @abstractmethod
    def _make_posterior(self, table: Table) -> CascadePosterior:
        """Return the model's posterior given a table."""

    def _check_model(self) -> None:
        self._model()
        if self.max_branches is not None:
            check_integer("max_branches", self.max_branches, minimum=2)

    def _canonical(self, state: Tree) -> Tree:
        return self.posterior_.canonical(state)

    def _describe_run(
        self, run: samplers.Run[Tree], settings: Mapping[str, Any]
    ) -> PosteriorRun[Tree]:
        columns = self.posterior_.schema.names
        return PosteriorRun.of(
            run,
            size=self.size_name,
            columns=columns,
            columns_of=_columns_of,
            labels={"first_feature": columns.__getitem__},
            settings=settings,
        )

    def _count(self, state: Tree) -> CountedTree:
        return CountedTree(state, self.posterior_.node_statistics(state)[0])

    def _readable(self, counted: CountedTree) -> DensityTree:
        check_choice("density", self.density, DENSITIES)
        if self.density == "empirical":
            probabilities = empirical_probabilities(counted.tree, counted.counts)
        else:
            probabilities = self._model().probabilities(counted.tree, counted.counts)
        return DensityTree(self.schema_, counted.tree, counted.counts, probabilities, {})

    def _read_counted(self, record: Mapping[str, Any]) -> CountedTree:
        return CountedTree.from_record(record, self.schema_)

    def _log_density(self, counted: CountedTree) -> float:
        tree, counts = counted.tree, counted.counts
        log_volumes = DensityTree(self.schema_, tree, counts, np.ones(tree.n_nodes), {}).log_volumes
        model = self._model()
        log_prior = model.log_prior(tree, self.schema_.n_columns)
        return log_prior + model.log_likelihood(tree, counts, -counts * log_volumes)


def _columns_of(tree: Tree) -> Sequence[int]:
    columns: list[int] = tree.features_used.tolist()
    return columns
