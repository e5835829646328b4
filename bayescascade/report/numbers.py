"""Numbers in print: few digits, thousands separators, and no small probability rounded to 0.

Volumes and densities are given as logarithms, because a table of 2,000 binary columns has more
cells than floats can hold. Very large and small numbers are printed as in 1.2e40.
"""

import math
from collections.abc import Sequence

_LARGEST_PLAIN = 1e9  # larger counts are printed as in 1.2e40
_MOST_DECIMALS = 4  # decimals of the ends of an interval
_MOST_NINES = 9  # decimals of a probability near 1
_NARROW = 0.01  # width of an interval, below which it has two significant digits
_MOST_DIGITS = 17  # decimals of an end that is near 0 or 1
_LARGEST_EXPONENT = 700.0  # digits of floats
_LOG_OF_TEN = math.log(10.0)


def count_texts(counts: Sequence[float]) -> list[str]:
    """Return weights of rows, >= 0, all with the decimals that fractional ones need."""
    is_whole = all(float(count).is_integer() for count in counts)
    decimals = 0 if is_whole else 1 if max(counts) >= 1000 else 2
    return [_count_text(float(count), decimals) for count in counts]


def _count_text(count: float, decimals: int) -> str:
    if count >= 1000 * _LARGEST_PLAIN:
        return _scientific(math.log(count), 3)
    if 0 < count < 0.5 * 10.0**-decimals:
        return significant_text(math.log(count), 2)
    return f"{count:,.{decimals}f}"


def cost_texts(costs: Sequence[float]) -> list[str]:
    """Return costs, finite and >= 0, all with the decimals that the smallest need."""
    least = min((cost for cost in costs if cost > 0), default=1.0)
    is_whole = all(float(cost).is_integer() for cost in costs)
    decimals = 0 if is_whole else 2 if least >= 0.1 else 4
    return [
        significant_text(math.log(cost), 2)
        if cost >= _LARGEST_PLAIN or 0 < cost < 0.5 * 10.0**-decimals
        else f"{cost:,.{decimals}f}"
        for cost in costs
    ]


def share_text(probability: float) -> str:
    """Return a probability in [0, 1] as a percentage: "45.2 %", "0.0031 %"."""
    percentage = 100.0 * probability
    if percentage == 0.0 or percentage >= 0.05:
        return f"{percentage:.1f} %"
    return f"{significant_text(math.log(percentage), 2)} %"


def share_with_error(share: float, error: float, decimals: int = 1) -> str:
    """Return a share in [0, 1] with its standard error in percent: "45.2 ± 1.3 %"."""
    text = f"{100.0 * share:.{decimals}f}"
    if share > 0.0 and float(text) == 0.0:
        text = significant_text(math.log(100.0 * share), 2)
    return with_error(text, 100.0 * error, decimals, " %")


def with_error(text: str, error: float, decimals: int, unit: str = "") -> str:
    """Return a number with its standard error, "0.783 ± 0.009"; alone if that is 0 or NaN.

    The error has `decimals`, or as many as its first digit needs: it is never "0.0".
    """
    if not error > 0.0:
        return f"{text}{unit}"
    if error < 0.5 * 10.0**-decimals or error >= _LARGEST_PLAIN:
        return f"{text} ± {significant_text(math.log(error), 1)}{unit}"
    return f"{text} ± {error:,.{decimals}f}{unit}"


def probability_text(probability: float) -> str:
    """Return a probability in [0, 1] as a number: "0.93", "0.0003", "0.9997"; "0" and "1" exact."""
    if probability in (0.0, 1.0):
        return f"{probability:.0f}"
    if probability < 0.005:
        return significant_text(math.log(probability), 1)
    decimals = 2
    while decimals < _MOST_NINES and float(f"{probability:.{decimals}f}") == 1.0:
        decimals += 1
    return f"{probability:.{decimals}f}"


def interval_text(interval: Sequence[float]) -> str:
    """Return an interval: "0.96-0.99", with four decimals near 0 or 1.

    A width below 0.01 has two significant digits: "0.8412-0.8441".
    """
    width, apart = abs(interval[-1] - interval[0]), 2
    if 0.0 < width < _NARROW:
        apart = min(1 - math.floor(math.log10(width)), _MOST_DIGITS)
    texts = []
    for end in interval:
        decimals = apart
        while decimals < _MOST_DECIMALS and float(f"{end:.{decimals}f}") in (0.0, 1.0):
            decimals += 1
        texts.append(f"{end:.{decimals}f}")
    return "-".join(texts)


def interval_texts(probability: float, interval: Sequence[float]) -> tuple[str, str]:
    """Return texts of a probability and its interval; the printed probability is inside."""
    text, ends = probability_text(probability), interval_text(interval)
    low, _, high = ends.partition("-")
    if not float(low) <= float(text) <= float(high):
        text = f"{probability:.{len(low.partition('.')[2])}f}"
    return text, ends


def estimate_text(probability: float, low: float, high: float) -> str:
    """Return a probability and its 95 % interval for a sentence: "0.95 (95% 0.84-1.00)".

    The probability has as many decimals as in tables: "0.003 (95% 0.00-0.01)". The interval has
    two, unless both ends look equal: "0.0005 (95% 0.0000-0.0018)".
    """
    text, ends = probability_text(probability), f"{low:.2f}-{high:.2f}"
    if len(set(ends.split("-"))) == 1:
        text, ends = interval_texts(probability, (low, high))
    return f"{text} (95% {ends})"


def density_text(
    count: float,
    total: float,
    probability: float,
    log_density: float,
    relative: float,
    *,
    is_average: bool = False,
    is_of_row: bool = False,
) -> str:
    """Return a leaf or part in words, as in "30 of 40 rows, probability 0.73, ..".

    `log_density` is in nats, `relative` is the density as a multiple of the uniform one;
    `is_average` if the density varies in the leaf; `is_of_row` if it is that of the row.
    """
    is_plain = abs(log_density) < _LARGEST_EXPONENT
    density = f"{math.exp(log_density):.4g}" if is_plain else significant_text(log_density, 4)
    if is_average:  # not that of the row, which may be printed beside it
        words = f"average density in this group {density} ({relative:.3g} x uniform)"
    else:
        of_row = " of this row" if is_of_row else ""
        words = f"density{of_row} {density}, {relative:.3g} x uniform"
    return f"{count:,.10g} of {total:,.10g} rows, probability {probability:.4g}, {words}"


def cells_text(log_cells: float) -> str:
    """Return a number of cells, from its logarithm in nats: "1,234" or "1.2e40"."""
    if log_cells < math.log(_LARGEST_PLAIN):
        return f"{round(math.exp(log_cells)):,}"
    return _scientific(log_cells, 2)


def significant_text(log_value: float, digits: int = 3) -> str:
    """Return a number by its log, nats, in `digits` or more: "0.0625", "1,234", "1.23e-40"."""
    if log_value == -math.inf:
        return "0"
    if not math.log(1e-4) <= log_value < math.log(1e6):
        return _scientific(log_value, digits)
    value = math.exp(log_value)
    decimals = max(0, digits - 1 - math.floor(math.log10(value)))
    return f"{value:,.{decimals}f}"


def ratio_text(log_ratio: float) -> str:
    """Return a ratio to the uniform density, from its logarithm: "0.43", "1,234.50", "0"."""
    if math.log(0.005) <= log_ratio < math.log(1e6):
        return f"{math.exp(log_ratio):,.2f}"
    return significant_text(log_ratio, 2)


def common_text(log_ratio: float) -> str:
    """Return in words how common a part is, from the log of its density over the uniform one."""
    if log_ratio == -math.inf:
        return "not seen at all"
    if abs(log_ratio) < math.log(1.05):
        return "as common as on average"
    if log_ratio > 0:
        return f"{_times(log_ratio)} times as common"
    return f"{_times(-log_ratio)} times rarer"


def _times(log_ratio: float) -> str:
    """Return a ratio above 1 with two or three digits."""
    if log_ratio < math.log(100.0):
        return f"{math.exp(log_ratio):.1f}"
    text = ratio_text(log_ratio)
    return text if "e" in text else text.partition(".")[0]


def nats_text(log_density: float) -> str:
    """Return a log density: "-4,144.58"."""
    text = f"{log_density:,.2f}"
    return "0.00" if text == "-0.00" else text


def diagnostic_text(value: float, decimals: int) -> str:
    """Return an R-hat or effective sample size; "unknown" for NaN."""
    return "unknown" if math.isnan(value) else f"{value:,.{decimals}f}"


def _scientific(log_value: float, digits: int) -> str:
    exponent = math.floor(log_value / _LOG_OF_TEN)
    mantissa = f"{math.exp(log_value - exponent * _LOG_OF_TEN):.{digits - 1}f}"
    if mantissa.startswith("10"):  # 9.96 was rounded up
        exponent += 1
        mantissa = f"{1:.{digits - 1}f}"
    return f"{mantissa}e{exponent}"
