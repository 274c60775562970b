"""What expansions share: the two float formats, polynomials, powers of two, rounding by adding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.primitives import Expr, bitcast, cast, constant, prim, select


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """How IEEE 754 lays out a float.

    Attributes:
        bits: signed integer dtype of the same size.
        mantissa: stored bits of the significand.
        bias: of the exponent.
    """

    bits: DType
    mantissa: int
    bias: int

    @property
    def sign(self) -> int:
        """The sign bit, as a signed integer: the lowest one."""
        return -(1 << (8 * self.bits.itemsize - 1))

    @property
    def magic(self) -> float:
        """Added to a small number it rounds to an integer, which the low bits then hold."""
        return 1.5 * 2.0**self.mantissa

    @property
    def half_digits(self) -> int:
        """So many lowest binary digits are half of all."""
        return (self.mantissa + 2) // 2

    @property
    def exponent_unit(self) -> float:
        """As which float `fraction_and_exponent` gives an exponent of 1.

        An exponent left in its bits and converted to a float saves an operation, but only AVX-512
        converts int64.
        """
        return 2.0**self.mantissa if self.bits is dtypes.int32 else 1.0


FORMATS: Final[Mapping[DType, FloatFormat]] = MappingProxyType(
    {
        dtypes.float32: FloatFormat(dtypes.int32, 23, 127),
        dtypes.float64: FloatFormat(dtypes.int64, 52, 1023),
    }
)


ROOT_HALF: Final[Mapping[DType, int]] = MappingProxyType(
    {dtypes.float32: 0x3F3504F3, dtypes.float64: 0x3FE6A09E667F3BCC}
)
"""sqrt(1/2), rounded down, as bits."""

LONG: Final = 6
"""Polynomials of so many terms are split."""


def bits_of(x: Expr) -> Expr:
    """A float's bits as a signed integer."""
    return bitcast(x, FORMATS[x.dtype].bits)


def polynomial(coefficients: tuple[float, ...], x: Expr) -> Expr:
    """The sum of coefficients times powers of x, the lowest power first.

    A short one goes by Horner's scheme; a long one is E(x**2) + x O(x**2), two chains of half the
    length that a processor can follow at the same time.
    """
    if len(coefficients) < LONG:
        return _horner(coefficients, x)
    square = x * x
    return _horner(coefficients[::2], square) + x * _horner(coefficients[1::2], square)


def _horner(coefficients: tuple[float, ...], x: Expr) -> Expr:
    total = constant(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def rounded(x: Expr) -> tuple[Expr, Expr]:
    """The integer nearest to a float of less than 2**(mantissa - 1), as a float and as bits.

    Only the low bits of the second are the integer's; above them is a constant.
    """
    magic = FORMATS[x.dtype].magic
    shifted = x + magic
    return shifted - magic, bits_of(shifted)


def power_of_two(n: Expr, dtype: DType) -> Expr:
    """2**n for n from the exponents of normal numbers; only the low bits of the integer count."""
    layout = FORMATS[dtype]
    return bitcast((n + layout.bias) << layout.mantissa, dtype)


def scaled(x: Expr, n: Expr) -> Expr:
    """x times 2**n for a normal x near 1: in two halves, so that the result may be denormal.

    Only the low bits of n count.
    """
    half = n >> 1
    return x * power_of_two(half, x.dtype) * power_of_two(n - half, x.dtype)


def high_part(x: Expr, dropped: int) -> Expr:
    """x without its lowest bits: products of two such numbers can be exact."""
    return bitcast(bits_of(x) & -(1 << dropped), x.dtype)


def fraction_and_exponent(x: Expr) -> tuple[Expr, Expr]:
    """m and e of x = 2**e m with sqrt(1/2) <= m < sqrt(2), as floats, e in its format's unit.

    At the ends e is what makes a logarithm right: -inf for 0, inf for inf, NaN for negative numbers
    and NaN; m is finite there.
    """
    layout, dtype = FORMATS[x.dtype], x.dtype
    digits = layout.mantissa + 1
    denormal = x < 2.0 ** (1 - layout.bias)  # or zero or negative
    fraction, biased, bias = _biased(select(denormal, x * 2.0**digits, x))
    lower = bits_of(constant(bias + digits * layout.exponent_unit, dtype))
    negative = bits_of(x) >> (8 * dtype.itemsize - 1)  # all ones, which are a NaN
    offset = select(denormal, lower | negative, bits_of(constant(bias, dtype)))
    offset = select(prim("equal", x, 0.0), math.inf, bitcast(offset, dtype))
    return fraction, select(x < math.inf, biased - offset, x)


def fraction_and_exponent_of_normal(x: Expr) -> tuple[Expr, Expr]:
    """The same for a positive normal number; for others the results mean nothing."""
    fraction, biased, bias = _biased(x)
    return fraction, biased - bias if bias else biased


def _biased(x: Expr) -> tuple[Expr, Expr, float]:
    """m, e plus a bias, and the bias."""
    layout = FORMATS[x.dtype]
    # Moves the border between two exponents from 1 to sqrt(1/2).
    shifted = bits_of(x) - ROOT_HALF[x.dtype]
    if layout.exponent_unit > 1:
        exponent = shifted & -(1 << layout.mantissa)
        return bitcast(bits_of(x) - exponent, x.dtype), cast(exponent, x.dtype), 0.0
    fraction = (shifted & ((1 << layout.mantissa) - 1)) + ROOT_HALF[x.dtype]
    biased = (shifted >> layout.mantissa) + bits_of(constant(layout.magic, x.dtype))
    return bitcast(fraction, x.dtype), bitcast(biased, x.dtype), layout.magic
