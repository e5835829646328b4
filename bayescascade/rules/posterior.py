"""The rule lists' posteriors, of densities and of labels."""

from bayescascade.rules.density_posterior import DensityListPosterior
from bayescascade.rules.label_posterior import LabelListPosterior
from bayescascade.rules.list_posterior import RuleListPosterior

__all__ = ["DensityListPosterior", "LabelListPosterior", "RuleListPosterior"]
