"""Every recipe, run by the interpreter, equals the reference, element by element."""

import numpy as np
import pytest

from dilim import dtypes
from dilim.backends.reference.interpreter import interpret
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS

CASES = [(name, dtype) for name, op in OPERATIONS.items() for dtype in op.sample_dtypes]


def ulps(a, b):
    """Distance in units in the last place; equal NaNs and infinities are at distance 0."""
    same = (a == b) | ((a != a) & (b != b))
    gap = np.abs(a - b) / np.spacing(np.maximum(np.abs(a), np.abs(b)))
    return np.where(same, 0, gap)


def assert_same(got, want, tolerance):
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if tolerance == 0:
        np.testing.assert_array_equal(got, want)
        if got.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    else:
        assert np.all(ulps(got, want) <= tolerance)


def arrays_and_types(sample, dtype):
    tensors = [x for x in sample.inputs if isinstance(x, np.ndarray)]
    scalar = tensors[-1].dtype if tensors else dtype.numpy
    arrays = [
        np.asarray(x) if isinstance(x, np.ndarray) else np.asarray(x, scalar) for x in sample.inputs
    ]
    return arrays, [Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_recipe_equals_reference(name, dtype):
    op = OPERATIONS[name]
    if op.recipe is None:
        assert op.backends, f"{name} has no recipe and names no back end"
        return
    for sample in op.samples(np.random.default_rng(7), dtype):
        arrays, types = arrays_and_types(sample, dtype)
        shape, result = op.infer(*types, **sample.params)
        want = np.asarray(op.reference(*arrays, **sample.params))
        assert (want.shape, dtypes.from_numpy(want.dtype)) == (shape, result)
        got = interpret(op.recipe(*types, **sample.params), arrays)
        assert_same(got, want, op.tolerance)
