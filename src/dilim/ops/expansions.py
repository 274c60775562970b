"""Transcendental primitives written in exact ones, so that every back end gives the same bits.

An expansion uses only what IEEE 754 and integer arithmetic fix: ``+ - * /``, comparison and choice,
bit operations and `bitcast`. A back end that has those needs nothing else, and the interpreter can
run an expansion too, which makes it the test of every back end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from dilim.ops.expansions_angle import atan2
from dilim.ops.expansions_exp import exp, expm1, tanh
from dilim.ops.expansions_log import log, log1p
from dilim.ops.expansions_pow import pow_
from dilim.ops.expansions_remainder import floor_divide, remainder
from dilim.ops.expansions_rounding import ceil, floor, nextafter, round_, trunc
from dilim.ops.expansions_sigmoid import erf, sigmoid
from dilim.ops.expansions_sine import cos, sin
from dilim.ops.primitives import Expr
from dilim.ops.recipe import Recipe

EXPANSIONS: Final[Mapping[str, Callable[..., Expr]]] = MappingProxyType(
    {
        "atan2": atan2,
        "ceil": ceil,
        "cos": cos,
        "erf": erf,
        "exp": exp,
        "expm1": expm1,
        "floor": floor,
        "floor_divide": floor_divide,
        "log": log,
        "log1p": log1p,
        "nextafter": nextafter,
        "pow": pow_,
        "remainder": remainder,
        "round": round_,
        "sigmoid": sigmoid,
        "sin": sin,
        "tanh": tanh,
        "trunc": trunc,
    }
)
"""Name of a primitive -> from its operands to an expression of exact primitives and others here."""
EXACT_ON_INTEGERS: Final = frozenset({"floor_divide", "remainder"})
"""These have an expansion on floats only."""


def expanded(recipe: Recipe) -> Recipe:
    """The recipe with every primitive that has an expansion replaced by it."""
    return replace(recipe, body=_expand(recipe.body, {}))


def has_expansion(expr: Expr) -> bool:
    """Whether the outermost primitive of an expression has an expansion on its dtype."""
    return expr.op in EXPANSIONS and (
        expr.args[-1].dtype.is_floating or expr.op not in EXACT_ON_INTEGERS
    )


def _expand(expr: Expr, done: dict[int, Expr]) -> Expr:
    """Shared parts stay shared; an expansion is expanded in turn, but for its finished operands."""
    if id(expr) not in done:
        args = tuple(_expand(arg, done) for arg in expr.args)
        if has_expansion(expr):
            finished = {id(arg): arg for arg in args}
            done[id(expr)] = _expand(EXPANSIONS[expr.op](*args), finished)
        else:
            changed = any(a is not b for a, b in zip(args, expr.args, strict=True))
            done[id(expr)] = replace(expr, args=args) if changed else expr
    return done[id(expr)]
