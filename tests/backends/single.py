"""Graphs of one node, and comparison by bits, for the tests of back ends."""

import numpy as np
from hypothesis import strategies as st

from dilim import dtypes
from dilim.ir.graph import GraphBuilder
from dilim.ir.types import Type
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS

FLOATS = (np.float32, np.float64)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e-42, 3e38, 1.0)


def one_node(name, *arrays, **params):
    """The graph that applies one operation to inputs of these arrays' types."""
    builder = GraphBuilder()
    values = [builder.input(Type(x.shape, dtypes.from_numpy(x.dtype))) for x in arrays]
    result = Type(*OPERATIONS[name].infer(*values, **params))
    graph = builder.build([builder.add(name, values, params, result)])
    verify(graph, OPERATIONS)
    return graph


def assert_same_bits(got, want):
    """Equal as integers; NaNs are equal whatever their payload."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind == "f":
        unsigned = f"u{got.dtype.itemsize}"
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        numbers = ~np.isnan(got)
        np.testing.assert_array_equal(
            got[numbers].view(unsigned), want[numbers].view(unsigned), strict=True
        )
    else:
        np.testing.assert_array_equal(got, want)


@st.composite
def numbers(draw, shape, dtype, special=True):
    """An array of numbers of many magnitudes, with a few special ones when wanted."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    with np.errstate(all="ignore"):
        x = np.asarray(rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape), dtype)
        if special and draw(st.booleans()):
            places = rng.random(shape) < 0.1
            x = np.where(places, rng.choice(SPECIAL, shape).astype(dtype), x)
    return np.ascontiguousarray(x).reshape(shape)
