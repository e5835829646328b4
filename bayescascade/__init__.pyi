# The public names and their homes: the one list that a new family adds its names to.

from .base.errors import (
    BayesCascadeError as BayesCascadeError,
    DataError as DataError,
    InternalError as InternalError,
    MissingExtraError as MissingExtraError,
    ModelFileError as ModelFileError,
    ParameterError as ParameterError,
    PrivacyError as PrivacyError,
    TooLargeError as TooLargeError,
    UnknownLevelError as UnknownLevelError,
    UnknownLevelWarning as UnknownLevelWarning,
)
from .costs.acquisition import AcquisitionError as AcquisitionError
from .costs.budget_path import BudgetPath as BudgetPath
from .costs.curve import (
    CostAccuracyCurve as CostAccuracyCurve,
    cost_accuracy_curve as cost_accuracy_curve,
)
from .costs.feature_costs import FeatureCosts as FeatureCosts
from .data.read_as import ReadAs as ReadAs
from .data.schema import Schema as Schema
from .data.table import Table as Table
from .methods.boxes.estimators import BoxClassifier as BoxClassifier
from .methods.boxes.fast_estimator import FastBoxes as FastBoxes
from .methods.boxes.measures import (
    generalization_bound as generalization_bound,
    hull_area as hull_area,
)
from .methods.boxes.posterior import BoxPosterior as BoxPosterior
from .methods.boxes.union import BoxUnion as BoxUnion
from .methods.budget.auto.estimators import AutoBudgetClassifier as AutoBudgetClassifier
from .methods.budget.classifier_trees.cost_sensitive import (
    CostSensitiveTreeClassifier as CostSensitiveTreeClassifier,
)
from .methods.budget.classifier_trees.cost_sensitive_posterior import (
    CostSensitiveTreePosterior as CostSensitiveTreePosterior,
)
from .methods.budget.classifier_trees.cost_weighted import (
    CostWeightedLogisticClassifier as CostWeightedLogisticClassifier,
)
from .methods.budget.classifier_trees.estimators import (
    SubmodularTreeClassifier as SubmodularTreeClassifier,
)
from .methods.budget.classifier_trees.posterior import (
    SubmodularTreePosterior as SubmodularTreePosterior,
)
from .methods.budget.forests.budgeted_forest import (
    BudgetedForestClassifier as BudgetedForestClassifier,
)
from .methods.budget.forests.forest import Forest as Forest
from .methods.budget.forests.impurities import PolynomialImpurity as PolynomialImpurity
from .methods.budget.gated.estimators import AdaptiveClassifier as AdaptiveClassifier
from .methods.budget.gated.greedy_miser import GreedyMiserClassifier as GreedyMiserClassifier
from .methods.budget.gated.posterior import AdaptivePosterior as AdaptivePosterior
from .methods.budget.neighbors.estimators import (
    MarginNeighborsClassifier as MarginNeighborsClassifier,
)
from .methods.budget.pruning.budget_prune import BudgetPruneClassifier as BudgetPruneClassifier
from .methods.budget.pruning.near_optimal import NearOptimalPrunings as NearOptimalPrunings
from .methods.budget.pruning.path import PruningPath as PruningPath
from .methods.budget.pruning.posterior import PruningPosterior as PruningPosterior
from .methods.budget.single_trees.estimators import BudgetTreeClassifier as BudgetTreeClassifier
from .methods.budget.single_trees.posterior import BudgetTreePosterior as BudgetTreePosterior
from .methods.budget.single_trees.tree import BudgetTree as BudgetTree
from .methods.causal.estimators import AdditiveNoiseModel as AdditiveNoiseModel
from .methods.causal.posterior import DirectionPosterior as DirectionPosterior
from .methods.causal.private import PrivateAdditiveNoiseModel as PrivateAdditiveNoiseModel
from .methods.comparing_classifiers import (
    ClassifierComparison as ClassifierComparison,
    compare_classifiers as compare_classifiers,
)
from .methods.compress.estimators import (
    NeighborCompressionClassifier as NeighborCompressionClassifier,
)
from .methods.compress.posterior import PrototypePosterior as PrototypePosterior
from .methods.density.auto.auto_cascade import AutoCascade as AutoCascade
from .methods.density.cascade_mixtures.estimators import CascadeMixture as CascadeMixture
from .methods.density.comparing import compare as compare
from .methods.density.histogram.estimators import SmoothedHistogram as SmoothedHistogram
from .methods.density.mixtures.density import MixtureDensity as MixtureDensity
from .methods.density.trees.density import LearnedDensityTree as LearnedDensityTree
from .methods.density.trees.det import DensityEstimationTree as DensityEstimationTree
from .methods.density.trees.estimators import (
    BranchCascade as BranchCascade,
    LeafCascade as LeafCascade,
)
from .methods.density.trees.evidence_grid import EvidenceGrid as EvidenceGrid, evidence as evidence
from .methods.density.trees.posterior import (
    BranchPosterior as BranchPosterior,
    LeafPosterior as LeafPosterior,
)
from .methods.effects.causal_svm import CausalSVM as CausalSVM
from .methods.effects.estimators import EffectModel as EffectModel
from .methods.effects.losses import (
    conditional_difference_loss as conditional_difference_loss,
    effect_bound as effect_bound,
)
from .methods.effects.posterior import EffectPosterior as EffectPosterior
from .methods.effects.rules import EffectRules as EffectRules
from .methods.lists.classifier import RuleListClassifier as RuleListClassifier
from .methods.lists.density_list import LearnedDensityList as LearnedDensityList
from .methods.lists.estimators import DensityRuleList as DensityRuleList
from .methods.lists.label_list import LabelList as LabelList
from .methods.lists.posterior import (
    DensityListPosterior as DensityListPosterior,
    LabelListPosterior as LabelListPosterior,
)
from .methods.online.exp3g import Exp3G as Exp3G
from .methods.online.gate import OnlineGate as OnlineGate
from .methods.rados.estimators import RadoBoostClassifier as RadoBoostClassifier
from .methods.rados.posterior import (
    LogisticPosterior as LogisticPosterior,
    RadoPosterior as RadoPosterior,
)
from .methods.rados.rados import Rados as Rados
from .methods.sensors.estimators import (
    GatedSensorsClassifier as GatedSensorsClassifier,
    GatedSensorsRegressor as GatedSensorsRegressor,
)
from .methods.sensors.posterior import GatePosterior as GatePosterior
from .model.comparison import Comparison as Comparison
from .model.draws import PosteriorRun as PosteriorRun
from .model.explore import SearchResult as SearchResult, explore as explore
from .model.near_best import NearBest as NearBest
from .model.posterior import GibbsPosterior as GibbsPosterior, Posterior as Posterior
from .model.record import load as load
from .model.solution import Certificate as Certificate
from .model.summary import FitSummary as FitSummary
from .model.trace import Trace as Trace
from .privacy.accounting import PrivacyLedger as PrivacyLedger
from .privacy.audits import audit_privacy as audit_privacy

__version__: str
