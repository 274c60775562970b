"""Views of views become one view; broadcasting moves behind the work."""

import pytest

from dilim.passes.dead_code import dead_code
from dilim.passes.layout import layout
from passes.graphs import becomes

CASES = {
    "reshape of reshape": (
        "%a: float32[6] = reshape[shape=(6,)](%x)\n%b: float32[3,2] = reshape[shape=(3, 2)](%a)",
        "%b: float32[3,2] = reshape[shape=(3, 2)](%x)",
    ),
    "permute of permute": (
        "%a: float32[3,2] = permute[order=(1, 0)](%x)\n"
        "%b: float32[2,3] = permute[order=(1, 0)](%a)",
        "",
    ),
    "flip of flip": (
        "%a: float32[2,3] = flip[axis=(0, 1)](%x)\n%b: float32[2,3] = flip[axis=(1,)](%a)",
        "%b: float32[2,3] = flip[axis=(0,)](%x)",
    ),
    "slice of slice": (
        "%a: float32[2,2] = slice[index=((0, 2, 1), (2, 2, -2))](%x)\n"
        "%b: float32[1,2] = slice[index=((1, 1, 1), (1, 2, -1))](%a)",
        "%b: float32[1,2] = slice[index=((1, 1, 1), (0, 2, 2))](%x)",
    ),
    "flip of slice": (
        "%a: float32[2,2] = slice[index=((0, 2, 1), (0, 2, 2))](%x)\n"
        "%b: float32[2,2] = flip[axis=(1,)](%a)",
        "%b: float32[2,2] = slice[index=((0, 2, 1), (2, 2, -2))](%x)",
    ),
    "slice of flip": (
        "%a: float32[2,3] = flip[axis=(1,)](%x)\n"
        "%b: float32[2,1] = slice[index=((0, 2, 1), (0, 1, 1))](%a)",
        "%b: float32[2,1] = slice[index=((0, 2, 1), (2, 1, -1))](%x)",
    ),
    "the whole as a slice": (
        "%b: float32[2,3] = slice[index=((0, 2, 1), (0, 3, 1))](%x)",
        "",
    ),
    "an expansion of an expansion": (
        "%a: float32[4,2,3] = expand[shape=(4, 2, 3)](%x)\n"
        "%b: float32[5,4,2,3] = expand[shape=(5, 4, 2, 3)](%a)",
        "%b: float32[5,4,2,3] = expand[shape=(5, 4, 2, 3)](%x)",
    ),
    "new leading axes, then an expansion": (
        "%a: float32[1,2,3] = reshape[shape=(1, 2, 3)](%x)\n"
        "%b: float32[4,2,3] = expand[shape=(4, 2, 3)](%a)",
        "%b: float32[4,2,3] = expand[shape=(4, 2, 3)](%x)",
    ),
    "work on repeated elements": (
        "%a: float32[4,2,3] = expand[shape=(4, 2, 3)](%x)\n%b: float32[4,2,3] = exp(%a)",
        "%a: float32[2,3] = exp(%x)\n%b: float32[4,2,3] = expand[shape=(4, 2, 3)](%a)",
    ),
    "a sum of repeated rows": (
        "%a: float32[4,2,3] = expand[shape=(4, 2, 3)](%x)\n"
        "%b: float32[4,2] = sum[axis=(2,), keepdims=False](%a)",
        "%c: float32[1,2,3] = expand[shape=(1, 2, 3)](%x)\n"
        "%a: float32[1,2] = sum[axis=(2,), keepdims=False](%c)\n"
        "%b: float32[4,2] = expand[shape=(4, 2)](%a)",
    ),
}


def last_only(graph):
    """Layout, without the nodes that it leaves behind."""
    return dead_code(layout(graph))


@pytest.mark.parametrize("name", CASES)
def test_layout(name):
    before, after = CASES[name]
    result = "%b" if after else "%x"
    becomes(last_only, f"{before}\nreturn %b", f"{after}\nreturn {result}", "%x: float32[2,3]")


KEPT = {
    "a sum over repeated elements": "%a: float32[2,3] = expand[shape=(2, 3)](%x)\n"
    "%b: float32[3] = sum[axis=(0,), keepdims=False](%a)",
    "a matrix product of a transposed factor": "%a: float32[3,2] = permute[order=(1, 0)](%y)\n"
    "%b: float32[3,3] = matmul(%a, %y)",
    "a permutation": "%b: float32[3,4] = permute[order=(1, 0)](%z)",
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name):
    inputs = "%x: float32[3], %y: float32[2,3], %z: float32[4,3]"
    text = f"{KEPT[name]}\nreturn %b"
    becomes(last_only, text, text, inputs)


def test_moving_axes_of_size_one_is_a_reshape():
    before = "%b: float32[2,1,3] = permute[order=(1, 0, 2)](%x)\nreturn %b"
    after = "%b: float32[2,1,3] = reshape[shape=(2, 1, 3)](%x)\nreturn %b"
    becomes(layout, before, after, "%x: float32[1,2,3]")


def test_an_operand_need_not_be_expanded_for_another():
    before = """
        %a: float32[2,3] = expand[shape=(2, 3)](%x)
        %b: float32[2,3] = add(%a, %y)
        return %b"""
    after = "%b: float32[2,3] = add(%x, %y)\nreturn %b"
    becomes(last_only, before, after, "%x: float32[3], %y: float32[2,3]")
