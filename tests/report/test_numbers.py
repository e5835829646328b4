"""Numbers are short, and never say 0 of something that is not."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bayescascade.methods.lists.models import label_intervals
from bayescascade.report.numbers import (
    cells_text,
    cost_texts,
    count_texts,
    density_text,
    diagnostic_text,
    estimate_text,
    interval_text,
    nats_text,
    probability_text,
    ratio_text,
    share_text,
    share_with_error,
    significant_text,
    with_error,
)


@pytest.mark.parametrize(
    ("function", "values", "text"),
    [
        (share_text, [1.0], "100.0 %"),
        (share_text, [0.4519], "45.2 %"),
        (share_text, [0.0005], "0.1 %"),
        (share_text, [0.0004], "0.040 %"),
        (share_text, [1e-9], "1.0e-7 %"),
        (share_text, [0.0], "0.0 %"),
        (share_with_error, [0.7912, 0.0091], "79.1 ± 0.9 %"),
        (share_with_error, [0.7912, math.nan, 2], "79.12 %"),
        (share_with_error, [0.0, 3e-7], "0.0 ± 3e-5 %"),
        (share_with_error, [2e-6, 3e-6], "0.00020 ± 0.0003 %"),
        (with_error, ["5", 0.0, 2, " points"], "5 points"),
        (with_error, ["1.0e12", 2e10, 2], "1.0e12 ± 2e10"),
        (ratio_text, [0.0], "1.00"),
        (ratio_text, [math.log(0.0144)], "0.01"),
        (ratio_text, [math.log(0.0049)], "0.0049"),
        (ratio_text, [math.log(2e-7)], "2.0e-7"),
        (ratio_text, [math.log(1234.5)], "1,234.50"),
        (ratio_text, [math.log(3.2e40)], "3.2e40"),
        (significant_text, [math.log(0.0625)], "0.0625"),
        (significant_text, [math.log(2.5)], "2.50"),
        (significant_text, [math.log(9.996e5)], "999,600"),
        (significant_text, [math.log(9.999e20)], "1.00e21"),
        (significant_text, [-math.inf], "0"),
        (nats_text, [-4144.584], "-4,144.58"),
        (cells_text, [math.log(16)], "16"),
        (cells_text, [math.log(999_999_998)], "999,999,998"),
        (cells_text, [300 * math.log(2)], "2.0e90"),
        (diagnostic_text, [math.nan, 3], "unknown"),
        (diagnostic_text, [1.0049, 3], "1.005"),
        # probabilities are never rounded to certainty
        (probability_text, [0.0], "0"),
        (probability_text, [1.0], "1"),
        (probability_text, [0.5], "0.50"),
        (probability_text, [0.005], "0.01"),
        (probability_text, [0.004], "0.004"),
        (probability_text, [0.994], "0.99"),
        (probability_text, [0.9997], "0.9997"),
        (probability_text, [2e-7], "2e-7"),
        (probability_text, [1 - 1e-12], "1.000000000"),
        # two decimals for an interval, unless they would say certainty
        (estimate_text, [0.95, 0.84, 0.999], "0.95 (95% 0.84-1.00)"),
        (estimate_text, [0.003, 0.0001, 0.011], "0.003 (95% 0.00-0.01)"),
        (estimate_text, [0.0005, 1e-5, 0.0018], "0.0005 (95% 0.0000-0.0018)"),
        (estimate_text, [0.9995, 0.9982, 0.9999], "0.9995 (95% 0.9982-0.9999)"),
        # narrow intervals have two digits of their width, and the probability is between the ends
        (interval_text, [(0.841, 0.844)], "0.8410-0.8440"),
        (interval_text, [(0.96, 0.99)], "0.96-0.99"),
        (interval_text, [(0.0, 3.7e-15)], "0.0000000000000000-0.0000000000000037"),
        (interval_text, [(0.5, 0.5)], "0.50-0.50"),
        (estimate_text, [0.8427, 0.841, 0.844], "0.8427 (95% 0.8410-0.8440)"),
        # aligned columns need equal decimals, but a small weight is not 0.0
        (count_texts, [[2201.0, 470.0]], ["2,201", "470"]),
        (count_texts, [[1721.5, 3.0, 0.01]], ["1,721.5", "3.0", "0.010"]),
        (count_texts, [[0.25, 0.0]], ["0.25", "0.00"]),
        (count_texts, [[2.5e18, 1.0]], ["2.50e18", "1"]),
        (cost_texts, [[]], []),
        (cost_texts, [[0, 3, 1200]], ["0", "3", "1,200"]),
        (cost_texts, [[0, 2.5, 1200]], ["0.00", "2.50", "1,200.00"]),
        (cost_texts, [[0.0374, 9.282]], ["0.0374", "9.2820"]),
        (cost_texts, [[1e-7, 1e12, 1.5]], ["1.0e-7", "1.0e12", "1.5000"]),
    ],
)
def test_numbers_are_short_and_never_0_of_something(function, values, text):
    assert function(*values) == text


@pytest.mark.parametrize("probability", [0.0, 1e-6, 0.3, 0.5, 1 - 1e-6, 1.0])
def test_intervals_of_huge_weights_have_a_width(probability):
    """Ends that read alike would say that nothing is left to learn."""
    for n in 10.0 ** np.arange(1, 16):
        (ends,) = label_intervals(np.array([[n * probability, n * (1 - probability)]]), 1.0)[:, 0]
        low, high = (float(end) for end in interval_text(ends.tolist()).split("-"))
        width = ends[1] - ends[0]
        assert abs(high - low - width) < (0.05 * width + 1e-16 if width < 0.01 else 0.01)


@given(st.floats(-5000, 5000))
def test_printed_logarithms_read_back(log_value):
    """Even what no float can hold keeps its digits."""
    mantissa, _, exponent = significant_text(log_value).replace(",", "").partition("e")
    found = math.log(float(mantissa)) + int(exponent or 0) * math.log(10)
    assert found == pytest.approx(log_value, abs=0.006)


@pytest.mark.parametrize(
    ("log_density", "told"),
    [
        (math.log(0.36364), "0.3636"),
        (-math.inf, "0"),
        (math.log(2.5) + 400 * math.log(10), "2.500e400"),
        (math.log(2.5) - 400 * math.log(10), "2.500e-400"),
    ],
)
def test_densities_in_sentences(log_density, told):
    """A hundred narrow bins have a density that no float holds, and it is no error."""
    found = density_text(30, 1200, 0.72727, log_density, 1.4545)
    assert found == f"30 of 1,200 rows, probability 0.7273, density {told}, 1.45 x uniform"
    assert "average density" in density_text(1, 1, 1, 0, 1, is_average=True)
