"""Numbers are short, and never say 0 of something that is not."""

import math

import pytest
from hypothesis import given, strategies as st

from bayescascade.report.numbers import (
    cells_text,
    count_texts,
    density_text,
    diagnostic_text,
    estimate_text,
    nats_text,
    probability_text,
    ratio_text,
    share_text,
    significant_text,
)


@pytest.mark.parametrize(
    ("probability", "expected"),
    [
        (1.0, "100.0 %"),
        (0.4519, "45.2 %"),
        (0.0005, "0.1 %"),
        (0.0004, "0.040 %"),
        (1e-9, "1.0e-7 %"),
        (0.0, "0.0 %"),
    ],
)
def test_shares(probability: float, expected: str) -> None:
    assert share_text(probability) == expected


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (1.0, "1.00"),
        (0.0144, "0.01"),
        (0.0049, "0.0049"),
        (0.00031, "0.00031"),
        (2e-7, "2.0e-7"),
        (1234.5, "1,234.50"),
        (3.2e40, "3.2e40"),
    ],
)
def test_ratios_to_uniform(ratio: float, expected: str) -> None:
    assert ratio_text(math.log(ratio)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0625, "0.0625"),
        (2.5, "2.50"),
        (1234.4, "1,234"),
        (9.996e5, "999,600"),
        (1.23e-40, "1.23e-40"),
        (9.999e20, "1.00e21"),
    ],
)
def test_volumes_and_densities(value: float, expected: str) -> None:
    assert significant_text(math.log(value)) == expected


@given(st.floats(-5000, 5000))
def test_printed_logarithms_read_back(log_value: float) -> None:
    """Even what no float can hold keeps its digits."""
    mantissa, _, exponent = significant_text(log_value).replace(",", "").partition("e")
    found = math.log(float(mantissa)) + int(exponent or 0) * math.log(10)
    assert found == pytest.approx(log_value, abs=0.006)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([2201.0, 470.0], ["2,201", "470"]),
        ([1721.5, 3.0, 0.01], ["1,721.5", "3.0", "0.010"]),
        ([0.25, 0.0], ["0.25", "0.00"]),
        ([2.5e18, 1.0], ["2.50e18", "1"]),
    ],
)
def test_counts_share_their_decimals(counts: list[float], expected: list[str]) -> None:
    """Aligned columns need equal decimals, but a small weight is not 0.0."""
    assert count_texts(counts) == expected


def test_other_numbers() -> None:
    assert nats_text(-4144.584) == "-4,144.58"
    assert cells_text(math.log(16)) == "16"
    assert cells_text(math.log(999_999_998)) == "999,999,998"
    assert cells_text(300 * math.log(2)) == "2.0e90"
    assert diagnostic_text(math.nan, 3) == "unknown"
    assert diagnostic_text(1.0049, 3) == "1.005"
    assert significant_text(-math.inf) == "0"


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (0.0, "0"), (1.0, "1"), (0.93, "0.93"), (0.5, "0.50"), (0.005, "0.01"), (0.004, "0.004"),
        (3e-4, "0.0003"), (2e-7, "2e-7"), (0.994, "0.99"), (0.9997, "0.9997"), (0.996, "0.996"),
        (1 - 1e-12, "1.000000000"),
    ],
)  # fmt: skip
def test_probabilities_are_never_rounded_to_certainty(probability: float, text: str) -> None:
    assert probability_text(probability) == text


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        ((0.95, 0.84, 0.999), "0.95 (95% 0.84-1.00)"),
        ((0.003, 0.0001, 0.011), "0.003 (95% 0.00-0.01)"),
        ((0.0005, 1e-5, 0.0018), "0.0005 (95% 0.0000-0.002)"),
        ((0.0003, 0.0002, 0.0004), "0.0003 (95% 0.0002-0.0004)"),
        ((0.996, 0.98, 0.9999), "0.996 (95% 0.98-1.00)"),
        ((0.9995, 0.9982, 0.9999), "0.9995 (95% 0.998-0.9999)"),
    ],
)
def test_estimates_in_sentences(estimate: tuple[float, float, float], text: str) -> None:
    """As many decimals as in tables; two for the interval, unless they would say certainty."""
    assert estimate_text(*estimate) == text


@pytest.mark.parametrize(
    ("log_density", "told"),
    [
        (math.log(0.36364), "0.3636"),
        (-math.inf, "0"),
        (math.log(2.5) + 400 * math.log(10), "2.500e400"),
        (math.log(2.5) - 400 * math.log(10), "2.500e-400"),
    ],
)
def test_densities_in_sentences(log_density: float, told: str) -> None:
    """A hundred narrow bins have a density that no float holds, and it is no error."""
    found = density_text(30, 1200, 0.72727, log_density, 1.4545)
    assert found == f"30 of 1,200 rows, probability 0.7273, density {told}, 1.45 x uniform"
    assert "average density" in density_text(1, 1, 1, 0, 1, is_average=True)
