"""Parameters of gated sensors."""

from bayescascade.base.parameters import Choice, Integer, Other, Real
from bayescascade.model.parameters import EffortParameters, RunParameters, unknown_choice

SILENT = "silent"


class SensorParameters(RunParameters, EffortParameters):
    """Parameters of both estimators."""

    sensors = Other(
        None, "Columns of each sensor, by its name", none="each column is a sensor of its own"
    )
    costs = Other(None, "Cost of each sensor if it sends", none="1 each")
    budget = Real(None, "Limit on the mean cost of a row", minimum=0.0, none="smallest error")
    features = Choice(
        "linear",
        "Features for gates and predictors: a sensor's columns, also their squares, or also "
        "random Fourier features",
        words=("linear", "squared", "fourier"),
    )
    n_fourier = Integer(100, "Number of random Fourier features per sensor", minimum=1)
    tradeoff = Real(
        None,
        "Loss per row, in nats, that a unit of cost is worth",
        minimum=0.0,
        none="several are tried",
    )
    ridge = Real(
        None,
        "Weight of half the squared coefficients of predictors, relative to the loss of all rows",
        above=0.0,
        none="chosen on held-out rows",
    )
    n_steps = Integer(
        None, "Number of training steps at each tradeoff", minimum=1, none="by effort"
    )
    missing = Choice(
        SILENT,
        "A sensor with a missing cell is silent for the row, or missing cells are an error",
        words=(SILENT, "error"),
    )
    unknown = unknown_choice(ignore="counts as missing")


class SensorClassifierParameters(SensorParameters):
    """Parameters of `GatedSensorsClassifier`."""

    method = Choice(
        "straight_through",
        "How gates are trained: hard gates with the slope of soft ones (straight_through), soft "
        "gates (direct), or the relaxation of the thesis (relaxed)",
        words=("straight_through", "direct", "relaxed"),
    )
    activation = Choice(
        "sigmoid",
        'Function of the score that is a soft gate; "relu" is for method "direct"',
        words=("sigmoid", "relu"),
    )


class SensorRegressorParameters(SensorParameters):
    """Parameters of `GatedSensorsRegressor`."""

    method = Choice(
        "straight_through",
        "How gates are trained: hard gates with the slope of soft ones (straight_through), or soft "
        "gates by alternating or projected gradient descent",
        words=("straight_through", "alternating", "projected"),
    )
