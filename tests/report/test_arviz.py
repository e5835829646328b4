"""ArviZ, 0.x and 1.x alike, draws and summarizes the draws of whatever is sampled, and files them.

The newest ArviZ needs a newer Python than the oldest that is allowed here, so that these tests run
once in each.
"""

from functools import cache

import arviz as az
import numpy as np
import pytest
from matplotlib import pyplot as plt

from bayescascade import explore
from bayescascade.model.trace import read_trace
from tests.contracts.listed import POSTERIORS, fitted
from tests.report.runs import toy_run

FITTED = ("leaf", "leaf exact", "rules", "neighbors")
EXPLORED = ("gibbs", "plane")
RUNS = {
    **{name: lambda name=name: fitted(name).run_ for name in FITTED},
    **{
        name: lambda name=name: explore(POSTERIORS[name](), n_steps=400, random_state=0).run_
        for name in EXPLORED
    },
    "toy": toy_run,
    "path": lambda: toy_run("anneal"),
}

run_of = cache(lambda name: RUNS[name]())
QUICK = ("leaf", "toy")  # the others are for the slow tests
runs = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in RUNS]
)
constants = pytest.mark.filterwarnings(  # of which ArviZ says that there is nothing to see
    "ignore:Your data appears to have a single value", "ignore:invalid value:RuntimeWarning"
)


def panels():
    """Return the panels of the only figure that have something drawn into them."""
    (number,) = plt.get_fignums()
    figure = plt.figure(number)
    figure.canvas.draw()
    return [ax for ax in figure.axes if ax.lines or ax.patches or ax.collections]


@pytest.mark.slow
@runs
@constants
@pytest.mark.filterwarnings("ignore::matplotlib.MatplotlibDeprecationWarning")  # of ArviZ's own
@pytest.mark.parametrize("plot", [az.plot_trace, az.plot_rank])
def test_arviz_draws_everything(name, plot):
    """With no names given, although some quantities never vary and others are whole numbers."""
    data = run_of(name).to_inference_data()
    plot(data)
    assert len(panels()) >= len(data["posterior"].data_vars)


@runs
@constants
def test_arviz_summarizes_everything(name):
    """Means, and effective sizes and R-hat that agree with those that are printed."""
    trace = run_of(name).trace
    data = trace.to_inference_data()
    result, ess, r_hat = az.summary(data, round_to="none"), az.ess(data), az.rhat(data)
    assert set(data["posterior"].data_vars) == set(result.index)
    for quantity, own in trace.diagnostics().items():
        if quantity in result.index and own.sd > 0 and own.r_hat < 100:  # else chains stand still
            assert float(result["mean"][quantity]) == pytest.approx(own.mean)
            assert float(ess[quantity]) == pytest.approx(own.ess)
            assert float(r_hat[quantity]) == pytest.approx(own.r_hat)


@runs
def test_what_arviz_files_is_read_again(name, tmp_path):
    """By ArviZ and here, whoever wrote the file."""
    run = run_of(name)
    data = run.to_inference_data()
    data.to_netcdf(str(tmp_path / "arviz.nc"))
    trace = read_trace(tmp_path / "arviz.nc")
    assert trace.to_dict() == run.trace.to_dict()
    assert str(trace) == str(run.trace)
    run.save_trace(tmp_path / "own.nc")
    read = az.from_netcdf(str(tmp_path / "own.nc"))
    for group in ("posterior", "sample_stats"):
        assert set(read[group].data_vars) == set(data[group].data_vars)
        for quantity, draws in data[group].data_vars.items():
            np.testing.assert_array_equal(read[group][quantity].values, draws.values)
    read.close()


def test_whole_numbers_are_integers():
    """Of floats ArviZ draws curves, and takes ties for chains that differ."""
    posterior = toy_run().to_inference_data()["posterior"]
    kinds = {name: draws.dtype.kind for name, draws in posterior.data_vars.items()}
    assert kinds == dict.fromkeys(("n_rules", "n_conditions", "n_features", "first_rule"), "i")
    constant = np.full((3, 600), 2.0)  # which ArviZ cannot rank as integers
    run = toy_run()
    run.traces["n_rules"][:] = constant
    assert run.to_inference_data()["posterior"]["n_rules"].dtype.kind == "f"


def test_columns_are_beside_the_posterior():
    """Of a table of a hundred columns a picture of all would have as many panels more."""
    data = toy_run().to_inference_data()
    assert "feature_used" not in data["posterior"]
    assert data["sample_stats"]["feature_used"].dims == ("chain", "draw", "feature")
    assert data["sample_stats"]["feature"].values.tolist() == ["sex", "age"]


@pytest.mark.parametrize("name", ["leaf", "toy"])
def test_leaving_rows_out_is_refused(name):
    """The log likelihood of all rows together was taken for that of a single row."""
    data = run_of(name).to_inference_data()
    assert "total_log_likelihood" in data["sample_stats"]
    with pytest.raises(TypeError, match="log likelihood not found"):
        az.loo(data)
    with pytest.raises(TypeError, match="ELPD"):
        az.compare({"one": data, "other": data})
