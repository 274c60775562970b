"""All expansions: what they are made of, and the same bits from the interpreter and LLVM."""

import dataclasses

import numpy as np
import pytest
from accuracy import (
    FLOATS,
    any_bits,
    assert_same_bits,
    expression,
    largest_error,
    magnitudes,
    mp,
    native,
    own,
    pairs,
    special,
)

from dilim import dtypes
from dilim.ops import expansions_angle, expansions_exp, expansions_log, expansions_sine
from dilim.ops.expansions import EXPANSIONS, expanded, has_expansion
from dilim.ops.expansions_float import FORMATS, LONG, polynomial
from dilim.ops.primitives import PRIMITIVES, Expr, bitcast, constant, load, prim
from dilim.ops.recipe import Map

EXACT = set(
    "add subtract multiply divide negative abs copysign equal less less_equal is_nan sign_bit"
    " select bit_and bit_or bit_xor shift_left shift_right load index constant cast bitcast".split()
)


def nodes_of(expr):
    found, waiting = set(), [expr]
    while waiting:
        part = waiting.pop()
        if part not in found:
            found.add(part)
            waiting += part.args
    return found


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXPANSIONS)
def test_only_exact_primitives_remain(name, dtype):
    dtype = dtypes.as_dtype(dtype)
    body = expanded(Map((1,), expression(name, dtype))).body
    assert {node.op for node in nodes_of(body)} <= EXACT
    assert body.dtype is dtype


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXPANSIONS)
def test_machine_code_gives_the_bits_of_the_interpreter(name, dtype, vector_bytes):
    ends, rng = special(dtype), np.random.default_rng(1)
    tame = rng.normal(size=2000).astype(dtype)
    if PRIMITIVES[name].arity == 1:
        arrays = [np.concatenate([ends, tame, any_bits(dtype, 4000)])]
    else:
        first = np.concatenate([tame, any_bits(dtype, 4000)])
        both = zip(pairs(ends), (first, rng.permutation(first)), strict=True)
        arrays = [np.concatenate(parts) for parts in both]
    assert_same_bits(native(name, *arrays, vector_bytes=vector_bytes), own(name, *arrays))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32"])
def test_integers(dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(2)
    x = rng.integers(info.min, info.max, 600, dtype=dtype, endpoint=True)
    y = rng.integers(0, info.max, 600, dtype=dtype, endpoint=True)
    y[:300] %= 9
    assert_same_bits(own("pow", x, y), np.power(x, y))
    leaf = load(0, dtypes.as_dtype(dtype))
    assert not has_expansion(leaf % 3)
    assert not has_expansion(leaf // 3)


def test_an_expansion_keeps_sharing_and_everything_else():
    x = Expr("load", (), dtypes.float32, 0)
    total = x + 1.0
    body = expanded(Map((), prim("exp", total) * total)).body
    assert body.args[1] is total
    assert [node for node in nodes_of(body) if node.op == "load"] == [x]
    assert expanded(Map((), total)).body is total


def test_a_bitcast_needs_equal_sizes():
    with pytest.raises(TypeError, match="float32 and int64 differ in size"):
        bitcast(constant(1.0, dtypes.float32), dtypes.int64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_formats(dtype):
    info, layout = np.finfo(dtype), FORMATS[dtypes.as_dtype(dtype)]
    assert (layout.mantissa, layout.bias) == (info.nmant, info.maxexp - 1)
    assert layout.bits.itemsize == info.bits // 8
    assert layout.sign == np.array(-0.0, dtype).view(layout.bits.numpy)


@pytest.mark.parametrize("count", [1, 2, LONG - 1, LONG, LONG + 1])
def test_polynomials(count):
    coefficients = tuple(float(n + 1) for n in range(count))
    body = polynomial(coefficients, load(0, dtypes.float64))
    x = np.array([-2.0, 0.0, 3.0])
    names = {"add": np.add, "multiply": np.multiply}

    def value(part):
        if part.op in names:
            return names[part.op](*map(value, part.args))
        return x if part.op == "load" else part.value

    np.testing.assert_array_equal(value(body) + 0 * x, np.polyval(coefficients[::-1], x))


# --- the checks are checked -----------------------------------------------------------------

CONTROLS = {
    "sin": (expansions_sine, "SINE", "sine", mp.sin),
    "cos": (expansions_sine, "SINE", "cosine", mp.cos),
    "atan2": (expansions_angle, "ATAN", None, mp.atan2),
    "exp": (expansions_exp, "EXP", "quotient", mp.exp),
    "tanh": (expansions_exp, "EXP", "tanh", mp.tanh),
    "log": (expansions_log, "LOG", None, lambda x: mp.log(abs(x))),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CONTROLS)
def test_a_wrong_coefficient_is_caught(name, dtype, monkeypatch):
    module, table, field, function = CONTROLS[name]
    arrays = [magnitudes(dtype, 60, seed, -2, 1) for seed in range(PRIMITIVES[name].arity)]
    if name == "log":
        arrays = [np.abs(arrays[0])]
    before = largest_error(own(name, *arrays), function, *arrays, digits=200)
    stored = dict(getattr(module, table))
    kind = dtypes.as_dtype(dtype)
    numbers = stored[kind] if field is None else getattr(stored[kind], field)
    wrong = (numbers[0] * (1 + 1000 * float(np.finfo(dtype).eps)), *numbers[1:])
    changed = wrong if field is None else dataclasses.replace(stored[kind], **{field: wrong})
    monkeypatch.setattr(module, table, stored | {kind: changed})
    after = largest_error(own(name, *arrays), function, *arrays, digits=200)
    assert before <= 2 < after
