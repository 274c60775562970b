"""Box and Muller's method on integers, with polynomials instead of a platform's log, cos and sin.

Every operation is one of ``+ - * / sqrt``, rounded to the written precision without fused
multiply-add, an integer operation, a comparison, a selection, or a look at a float's bits. So every
back end computes the same numbers, and float32 numbers need nothing wider than float32.

Source: Box and Muller, "A note on the generation of random normal deviates", 1958.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dilim.ops.special import hex_floats

Floats = npt.NDArray[Any]  # float32 or float64
Integers = npt.NDArray[Any]  # uint32 or uint64


@dataclass(frozen=True)
class Constants:
    """The constants of one precision.

    Coefficients are exact in `float_dtype`, lowest power first. ``tests/ops/fit_normal.py`` makes
    and checks them.

    Attributes:
        float_dtype: dtype of all arithmetic.
        bits_dtype: unsigned integer dtype of the same size.
        signed_dtype: signed integer dtype of the same size.
        digits: precision of the float, and of a numerator: 24 or 53.
        one_bits: the float 1.0 as an integer.
        root_half_bits: sqrt(1/2), rounded down, as an integer.
        log_two: log(2) as high + low; high times an exponent is exact.
        log: ``(log((1 + s) / (1 - s)) / s - 2) / z`` for z = s**2.
        sine: ``sin(pi/2 x) / x`` for z = x**2.
        cosine: ``(cos(pi/2 x) - 1) / z`` for z = x**2.
    """

    float_dtype: np.dtype[Any]
    bits_dtype: np.dtype[Any]
    signed_dtype: np.dtype[Any]
    digits: int
    one_bits: int
    root_half_bits: int
    log_two: tuple[float, ...]
    log: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


CONSTANTS: Final = {
    "float32": Constants(
        float_dtype=np.dtype("float32"),
        bits_dtype=np.dtype("uint32"),
        signed_dtype=np.dtype("int32"),
        digits=24,
        one_bits=0x3F800000,
        root_half_bits=0x3F3504F3,
        log_two=hex_floats("0x1.62e44p-1 -0x1.0105c6p-21"),
        log=hex_floats("0x1.55555cp-1 0x1.997c06p-2 0x1.2eeb9p-2"),
        sine=hex_floats("0x1.921fb6p+0 -0x1.4abbbap-1 0x1.465ec6p-4 -0x1.2d9bb8p-8"),
        cosine=hex_floats("-0x1.3bd3ccp+0 0x1.03c1eap-2 -0x1.55cb98p-6 0x1.db650ep-11"),
    ),
    "float64": Constants(
        float_dtype=np.dtype("float64"),
        bits_dtype=np.dtype("uint64"),
        signed_dtype=np.dtype("int64"),
        digits=53,
        one_bits=0x3FF0000000000000,
        root_half_bits=0x3FE6A09E667F3BCC,
        log_two=hex_floats("0x1.62e42fefa3a00p-1 -0x1.0ca86c3898d00p-49"),
        log=hex_floats(
            "0x1.5555555555558p-1 0x1.999999999522fp-2 0x1.2492492e02a9cp-2 0x1.c71c62d1ccb69p-3"
            " 0x1.7462b9b6f6c64p-3 0x1.39fdc7ebbd547p-3 0x1.2b5f0a346457dp-3"
        ),
        sine=hex_floats(
            "0x1.921fb54442d18p+0 -0x1.4abbce625be41p-1 0x1.466bc677587fdp-4 -0x1.32d2cce2e60e4p-8"
            " 0x1.50782fda6c2ebp-13 -0x1.e30071ff2b444p-19 0x1.e3f39e10de1cfp-25"
        ),
        cosine=hex_floats(
            "-0x1.3bd3cc9be45dep+0 0x1.03c1f081b5ac0p-2 -0x1.55d3c7e3cb243p-6"
            " 0x1.e1f5068689166p-11 -0x1.a6d1eef4b828bp-16 0x1.f9ce249428494p-22"
            " -0x1.b2f3fd835a289p-28"
        ),
    ),
}


def normal_pairs(numerators: Integers, name: str) -> Floats:
    """Two independent standard normal numbers from two uniform integers.

    ::

        radius = sqrt(-2 log((first + 1) / 2**digits))
        angle  = 2 pi second / 2**digits
        result = radius cos(angle), radius sin(angle)

    Args:
        numerators: integers in [0, 2**digits), shape (pairs, 2); uint32 for float32 (24 digits),
            uint64 for float64 (53 digits).
        name: "float32" or "float64".

    Returns:
        Array of that dtype, shape (pairs, 2), within sqrt(2 digits log 2) of zero.
    """
    radius = np.sqrt(log_unit(numerators[:, 0] + 1, name) * -2.0)
    cosine, sine = cos_sin_turn(numerators[:, 1], name)
    results = np.empty(numerators.shape, CONSTANTS[name].float_dtype)
    np.multiply(radius, cosine, out=results[:, 0])
    np.multiply(radius, sine, out=results[:, 1])
    return results


def log_unit(k: Integers, name: str) -> Floats:
    """``log(k / 2**digits)`` for integers 0 < k <= 2**digits.

    k = 2**e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); s = f / (2 + f), z = s**2, h = f**2 / 2;
    then log(1 + f) = f - (h - s (h + z P(z))).

    Args:
        k: uint32 for float32, uint64 for float64.
        name: "float32" or "float64".

    Returns:
        Array of that dtype, off by less than one unit in the last place; exactly 0 at the end.
    """
    constants = CONSTANTS[name]
    mantissa_bits = constants.digits - 1
    bits = k.astype(constants.float_dtype).view(constants.bits_dtype)
    # Moves the border between two exponents from 1 to sqrt(1/2).
    bits = bits + (constants.one_bits - constants.root_half_bits)
    biased = (bits >> mantissa_bits).view(constants.signed_dtype)
    exponent = biased - ((constants.one_bits >> mantissa_bits) + constants.digits)
    bits = (bits & ((1 << mantissa_bits) - 1)) + constants.root_half_bits
    f = bits.view(constants.float_dtype) - 1.0
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    e = exponent.astype(constants.float_dtype)
    high, low = constants.log_two
    return s * (h + z * _polynomial(constants.log, z)) + e * low - h + f + e * high


def cos_sin_turn(k: Integers, name: str) -> tuple[Floats, Floats]:
    """Cosine and sine of ``2 pi k / 2**digits`` for integers 0 <= k < 2**digits.

    k is the nearest quarter turn plus x quarters, -1/2 <= x <= 1/2, in exact integer arithmetic;
    polynomials give the cosine and sine of x quarters, the quarter swaps them and sets signs.

    Args:
        k: uint32 for float32, uint64 for float64.
        name: "float32" or "float64".

    Returns:
        Two arrays of that dtype, each off by less than two units in the last place.
    """
    constants = CONSTANTS[name]
    shift = constants.digits - 2
    quarter = (k + (1 << (shift - 1))) >> shift
    rest = (k - (quarter << shift)).view(constants.signed_dtype)  # negative ones wrapped around
    x = rest.astype(constants.float_dtype) * 2.0**-shift
    z = x * x
    sine = x * _polynomial(constants.sine, z)
    cosine = z * _polynomial(constants.cosine, z) + 1.0
    odd = (quarter & 1) != 0
    turned_cosine = np.where(odd, sine, cosine)
    turned_sine = np.where(odd, cosine, sine)
    return (
        np.where((quarter + 1 & 2) != 0, -turned_cosine, turned_cosine),
        np.where((quarter & 2) != 0, -turned_sine, turned_sine),
    )


def _polynomial(coefficients: tuple[float, ...], z: Floats) -> Floats:
    """Horner's scheme, every product and sum rounded."""
    result = np.full_like(z, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * z + coefficient
    return result
