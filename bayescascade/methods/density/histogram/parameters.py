"""Parameters of the smoothed histogram, declared once."""

from bayescascade.base.parameters import Real
from bayescascade.model.listed import ListedDensity
from bayescascade.model.parameters import DensityParameters


class HistogramParameters(DensityParameters):
    """Parameters of `SmoothedHistogram`."""

    pseudo_count = Real(None, "Pseudo-rows in each cell", above=0.0, none="most probable")


HISTOGRAM = ListedDensity(
    "histogram",
    "SmoothedHistogram",
    HistogramParameters,
    "a probability for each cell",
    is_quick=True,
    is_fitted=False,
)
