"""Constants are computed beforehand, with the bits of the recipes."""

import numpy as np
import pytest

from dilim.backends.reference.executor import by_recipe, execute
from dilim.passes.constant_folding import constant_folding
from passes.graphs import becomes, body, find

FOLDED = {
    "arithmetic": (
        """
        %a: float32[] = full[shape=(), value=1.0, dtype=float32]()
        %b: float32[3] = full[shape=(3,), value=3.0, dtype=float32]()
        %c: float32[3] = divide(%a, %b)
        return %c""",
        ["full", 0.3333333432674408],
    ),
    "a transcendental function by its expansion": (
        """
        %a: float32[2] = full[shape=(2,), value=1.0, dtype=float32]()
        %b: float32[2] = exp(%a)
        return %b""",
        ["full", 2.7182817459106445],
    ),
    "a sum": (
        """
        %a: float32[40] = full[shape=(40,), value=0.1, dtype=float32]()
        %b: float32[] = sum[axis=(0,), keepdims=False](%a)
        return %b""",
        ["full", 4.0],
    ),
    "views": (
        """
        %a: int8[2,3] = full[shape=(2, 3), value=-4, dtype=int8]()
        %b: int8[3,2] = permute[order=(1, 0)](%a)
        %c: int8[6] = reshape[shape=(6,)](%b)
        %d: int8[2] = slice[index=((4, 2, -3),)](%c)
        return %d""",
        ["full", -4],
    ),
    "the sign of zero": (
        """
        %a: float64[] = full[shape=(), value=0.0, dtype=float64]()
        %b: float64[] = negative(%a)
        return %b""",
        ["full", -0.0],
    ),
    "a wrapping integer": (
        """
        %a: uint8[] = full[shape=(), value=200, dtype=uint8]()
        %b: uint8[] = add(%a, %a)
        return %b""",
        ["full", 144],
    ),
    "the second of equal zeros": (
        """
        %a: float32[] = full[shape=(), value=0.0, dtype=float32]()
        %b: float32[] = full[shape=(), value=-0.0, dtype=float32]()
        %c: float32[] = maximum(%a, %b)
        return %c""",
        ["full", -0.0],
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_folded(name):
    before, (op, value) = FOLDED[name]
    graph = body(before)
    after = constant_folding(graph)
    maker = next(node for node in after.nodes if after.outputs[0] in node.results)
    assert maker.op == op
    assert repr(maker.params["value"]) == repr(value)
    x = [np.zeros(3, np.float32)]
    (got,), (want,) = execute(after, x, by_recipe), execute(graph, x, by_recipe)
    assert got.tobytes() == want.tobytes()


def test_constants_of_nan_stay_nan():
    before = """
        %a: float32[] = full[shape=(), value=-1.0, dtype=float32]()
        %b: float32[] = sqrt(%a)
        return %b"""
    (node,) = find(constant_folding(body(before)), "full")[1:]
    assert np.isnan(node.params["value"])


KEPT = {
    "an operand that is no constant": """
        %a: float32[3] = full[shape=(3,), value=1.0, dtype=float32]()
        %b: float32[3] = add(%x, %a)
        return %b""",
    "different numbers at different positions": """
        %a: float32[2] = full[shape=(2,), value=1.0, dtype=float32]()
        %b: float32[2] = full[shape=(2,), value=2.0, dtype=float32]()
        %c: float32[4] = concat[axis=0](%a, %b)
        return %c""",
    "what may raise": """
        %a: float32[2] = full[shape=(2,), value=1.0, dtype=float32]()
        %b: int64[1] = full[shape=(1,), value=7, dtype=int64]()
        %c: float32[1] = take[axis=0](%a, %b)
        return %c""",
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name):
    becomes(constant_folding, KEPT[name], KEPT[name])
