"""Float functions that never raise: outside its domain a function gives inf or nan, as in PyTorch.

Python's own `1.0 / 0.0`, `math.log(0.0)`, `math.exp(710.0)` and `(-8.0) ** 0.5` raise an error or
turn complex. A training run is better served by the IEEE 754 answer, which shows up in the result.
"""

import math

INFINITY = math.inf
NAN = math.nan


def divide(numerator: float, denominator: float) -> float:
    """Return `numerator / denominator`; a / 0 is a signed infinity, 0 / 0 is nan."""
    try:
        return numerator / denominator
    except ZeroDivisionError:
        if numerator == 0.0 or numerator != numerator:
            return NAN
        return math.copysign(INFINITY, numerator) * math.copysign(1.0, denominator)


def power(base: float, exponent: float) -> float:
    """Return `base ** exponent`: 0 ** 0 is 1, a negative base with a fractional exponent is nan."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return _signed_infinity(base, exponent)
    except ValueError:
        return _signed_infinity(base, exponent) if base == 0.0 else NAN


def _signed_infinity(base: float, exponent: float) -> float:
    is_odd = math.fmod(exponent, 2.0) in (1.0, -1.0)
    return math.copysign(INFINITY, base) if is_odd else INFINITY


def exp(x: float) -> float:
    """Return e ** x; inf above 709.78."""
    try:
        return math.exp(x)
    except OverflowError:
        return INFINITY


def log(x: float) -> float:
    """Return the natural logarithm; -inf at 0, nan below."""
    if x > 0.0:
        return math.log(x)
    return -INFINITY if x == 0.0 else NAN


def sqrt(x: float) -> float:
    """Return the square root; nan below 0."""
    return math.sqrt(x) if x >= 0.0 else NAN


def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x)), computed so that nothing overflows on either side."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    small = math.exp(x)
    return small / (1.0 + small)


def sin(x: float) -> float:
    """Return the sine of x in radians; nan at an infinity."""
    return math.sin(x) if -INFINITY < x < INFINITY else NAN


def cos(x: float) -> float:
    """Return the cosine of x in radians; nan at an infinity."""
    return math.cos(x) if -INFINITY < x < INFINITY else NAN
