"""Parameters of gated sensors, declared once."""

from bayescascade.base.parameters import Choice, Integer, Other, Real
from bayescascade.model.parameters import RunParameters, unknown_choice

SILENT = "silent"


class SensorParameters(RunParameters):
    """Of both estimators."""

    sensors = Other(
        None, "Columns of each sensor, by its name", none="each column is a sensor of its own"
    )
    costs = Other(None, "Cost of speaking, for each sensor", none="1 each")
    budget = Real(None, "Limit on the mean cost of a row", minimum=0.0, none="the least error")
    features = Choice(
        "linear",
        "Features for gates and predictors: a sensor's columns, also their squares, or also "
        "random Fourier features",
        words=("linear", "squared", "fourier"),
    )
    n_fourier = Integer(100, "Random Fourier features of a sensor", minimum=1)
    tradeoff = Real(
        None,
        "Loss of a row, nats, that a unit of cost is worth",
        minimum=0.0,
        none="several are tried",
    )
    ridge = Real(
        None,
        "Weight of half the squares of the predictors' coefficients, of all rows together",
        above=0.0,
        none="chosen on held-out rows",
    )
    n_steps = Integer(800, "Steps of the training at each tradeoff", minimum=1)
    missing = Choice(
        SILENT,
        "A sensor with a missing cell is silent for the row, or it is an error",
        words=(SILENT, "error"),
    )
    unknown = unknown_choice(ignore="counts as missing")


class SensorClassifierParameters(SensorParameters):
    """Of `GatedSensorsClassifier`."""

    method = Choice(
        "straight_through",
        "How gates are trained: hard, with the slope of soft ones; as soft ones; or by the "
        "thesis's relaxation",
        words=("straight_through", "direct", "relaxed"),
    )
    activation = Choice(
        "sigmoid",
        'What a soft gate is of its score; "relu" is for method "direct"',
        words=("sigmoid", "relu"),
    )


class SensorRegressorParameters(SensorParameters):
    """Of `GatedSensorsRegressor`."""

    method = Choice(
        "straight_through",
        "How gates are trained: hard, with the slope of soft ones; or soft ones, by least squares "
        "inside Levenberg-Marquardt, by alternating or by projected gradient descent",
        words=("straight_through", "smooth", "alternating", "projected"),
    )
    n_starts = Integer(20, "Random starts of smooth gates, at most", minimum=1)
