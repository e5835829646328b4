"""The rule lists' posteriors, of densities and of labels."""

from bayescascade.methods.rules.density_posterior import DensityListPosterior
from bayescascade.methods.rules.label_posterior import LabelListPosterior
from bayescascade.methods.rules.list_posterior import RuleListPosterior

__all__ = ["DensityListPosterior", "LabelListPosterior", "RuleListPosterior"]
