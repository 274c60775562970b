"""Rounding to integers and stepping to the next number in exact primitives.

Rounding adds and takes away 2**mantissa, after which no place is left for a fraction; numbers that
large, infinities and NaN are integers already or stay what they are.
"""

from __future__ import annotations

from dilim.ops.expansions_float import FORMATS, bits_of
from dilim.ops.primitives import Expr, bitcast, constant, prim, select


def round_(x: Expr) -> Expr:
    """The nearest integer, halves to even; a result of 0 has the sign of x."""
    magnitude = prim("abs", x)
    return _kept_when_large(x, magnitude, _nearest(magnitude))


def trunc(x: Expr) -> Expr:
    """x without its fraction; a result of 0 has the sign of x."""
    magnitude = prim("abs", x)
    nearest = _nearest(magnitude)
    down = select(magnitude < nearest, nearest - 1.0, nearest)
    return _kept_when_large(x, magnitude, down)


def floor(x: Expr) -> Expr:
    """The largest integer that is not above x; -0 for -0."""
    nearest = round_(x)
    return select(x < nearest, nearest - 1.0, nearest)


def ceil(x: Expr) -> Expr:
    """The smallest integer that is not below x; -0 for -1 < x <= -0."""
    nearest = round_(x)
    return prim("copysign", select(nearest < x, nearest + 1.0, nearest), x)


def _nearest(magnitude: Expr) -> Expr:
    whole = 2.0 ** FORMATS[magnitude.dtype].mantissa
    return magnitude + whole - whole


def _kept_when_large(x: Expr, magnitude: Expr, result: Expr) -> Expr:
    whole = 2.0 ** FORMATS[x.dtype].mantissa
    return select(magnitude < whole, prim("copysign", result, x), x)


def nextafter(x: Expr, y: Expr) -> Expr:
    """The next number after x towards y; y itself where they are equal, NaN where either is.

    Numbers of one sign are ordered as their bits are.
    """
    layout = FORMATS[x.dtype]
    bits = bits_of(x)
    away = prim("equal", x < y, constant(0.0, x.dtype) < x)
    stepped = bitcast(select(away, bits + 1, bits - 1), x.dtype)
    smallest = bitcast((bits_of(y) & layout.sign) | 1, x.dtype)
    moved = select(prim("equal", x, 0.0), smallest, stepped)
    ordered = (x < y) | (y < x)
    return select(ordered, moved, select(prim("is_nan", x), x, y))
