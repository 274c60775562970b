"""Identities replace what they may, and leave alone what changes a bit of some input."""

import pytest

from dilim import dtypes
from dilim.passes.identities import exact_inverse, identities
from passes.graphs import becomes, body, ops

NUMBER = "%c: float32[] = full[shape=(), value={value}, dtype=float32]()\n"


def with_number(value, call):
    return NUMBER.format(value=value) + f"%y: float32[3] = {call}\nreturn %y"


GONE = {
    "x * 1": (1.0, "multiply(%x, %c)"),
    "1 * x": (1.0, "multiply(%c, %x)"),
    "1 * x without NaN": (1.0, "multiply_no_nan(%c, %x)"),
    "x / 1": (1.0, "divide(%x, %c)"),
    "x - 0": (0.0, "subtract(%x, %c)"),
    "x + -0": (-0.0, "add(%x, %c)"),
    "-0 + x": (-0.0, "add(%c, %x)"),
}


@pytest.mark.parametrize("name", GONE)
def test_an_operation_that_gives_its_input_goes(name):
    value, call = GONE[name]
    becomes(identities, with_number(value, call), NUMBER.format(value=value) + "return %x")


KEPT = {
    "x + 0": (0.0, "add(%x, %c)"),
    "x - -0": (-0.0, "subtract(%x, %c)"),
    "0 - x": (0.0, "subtract(%c, %x)"),
    "x * 0": (0.0, "multiply(%x, %c)"),
    "x * 2": (2.0, "multiply(%x, %c)"),
    "x / 3": (3.0, "divide(%x, %c)"),
    "x / 0": (0.0, "divide(%x, %c)"),
    "a product without NaN by infinity": ("inf", "multiply_no_nan(%x, %c)"),
    "a product without NaN of zero": (0.0, "multiply_no_nan(%c, %x)"),
    "x ** 1": (1.0, "pow(%x, %c)"),
}


@pytest.mark.parametrize("name", KEPT)
def test_an_operation_that_may_change_a_bit_stays(name):
    text = with_number(*KEPT[name])
    becomes(identities, text, text)


TWICE = {
    "negative": "%a: float32[3] = negative(%x)\n%b: float32[3] = negative(%a)",
    "wider and back": "%a: float64[3] = astype[dtype=float64](%x)\n"
    "%b: float32[3] = astype[dtype=float32](%a)",
}


@pytest.mark.parametrize("name", TWICE)
def test_there_and_back(name):
    first = TWICE[name].splitlines()[0]
    becomes(identities, f"{TWICE[name]}\nreturn %b", f"{first}\nreturn %x")


def test_a_cast_that_loses_digits_stays():
    text = """
        %a: int32[3] = astype[dtype=int32](%x)
        %b: float32[3] = astype[dtype=float32](%a)
        return %b"""
    becomes(identities, text, text)


@pytest.mark.parametrize("op", ["relu", "abs"])
def test_the_second_time_does_nothing(op):
    once = f"%a: float32[3] = {op}(%x)\n"
    becomes(identities, f"{once}%b: float32[3] = {op}(%a)\nreturn %b", f"{once}return %a")


def test_a_choice_that_is_known():
    inputs = "%x: float32[3], %y: float32[3], %b: bool[3]"
    becomes(identities, "%r: float32[3] = where(%b, %y, %y)\nreturn %r", "return %y", inputs)
    chosen = "%c: bool[] = full[shape=(), value=False, dtype=bool]()\n"
    before = chosen + "%r: float32[3] = where(%c, %x, %y)\nreturn %r"
    becomes(identities, before, chosen + "return %y", inputs)


def test_an_identity_that_broadcasts_stays():
    text = """
        %c: float32[2,3] = full[shape=(2, 3), value=1.0, dtype=float32]()
        %y: float32[2,3] = multiply(%x, %c)
        return %y"""
    becomes(identities, text, text)


def test_division_by_a_power_of_two():
    after = identities(body(with_number(32.0, "divide(%x, %c)")))
    assert ops(after) == ["full", "full", "multiply"]
    assert after.nodes[1].params["value"] == 0.03125


def test_inverses_are_exact():
    assert exact_inverse(-0.125, dtypes.float32) == -8.0
    for number in (3.0, 0.0, float("inf"), float("nan"), 2.0**-140, 2.0**127):
        assert exact_inverse(number, dtypes.float32) is None
    assert exact_inverse(2.0**-140, dtypes.float64) == 2.0**140


def test_the_mask_of_a_relu_is_taken_from_its_result():
    before = """
        %r: float32[3] = relu(%x)
        %c: float32[] = full[shape=(), value=0.0, dtype=float32]()
        %m: bool[3] = greater(%x, %c)
        return %r, %m"""
    becomes(identities, before, before.replace("greater(%x", "greater(%r"))


def test_a_relu_of_one_branch_is_not_known_in_the_other():
    inputs = "%x: float32[3], %b: bool[]"
    text = """
        %c: float32[] = full[shape=(), value=0.0, dtype=float32]()
        %r: bool[3] = if(%b) {
          %a: float32[3] = relu(%x)
          %d: bool[3] = less(%a, %c)
          yield %d
        } else {
          %e: bool[3] = greater(%x, %c)
          yield %e
        }
        return %r"""
    becomes(identities, text, text, inputs)


def test_parts_without_elements_are_not_joined():
    inputs = "%x: float32[3], %e: float32[0], %y: float32[2]"
    becomes(identities, "%r: float32[3] = concat[axis=0](%e, %x)\nreturn %r", "return %x", inputs)
    before = "%r: float32[5] = concat[axis=0](%x, %e, %y)\nreturn %r"
    becomes(identities, before, before.replace("%x, %e, %y", "%x, %y"), inputs)
