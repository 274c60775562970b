"""Integers from floats, in every place that converts them."""

import numpy as np
import pytest

import dilim
from dilim import dtypes

FLOATS = [1e30, -1e30, np.nan, np.inf, -np.inf, 127.9, 128.0, -128.9, -129.0, 255.5, -0.9, 2.0**31]
INTEGERS = [pytest.param(d, id=d.name) for d in sorted(dtypes.INTEGER, key=lambda d: d.name)]


def expected(value, dtype):
    limits = np.iinfo(dtype.numpy)
    if value != value:
        return 0
    return int(min(max(value, limits.min), limits.max)) if abs(value) != np.inf else (
        limits.max if value > 0 else limits.min
    )  # fmt: skip


@pytest.mark.parametrize("source", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("target", INTEGERS)
def test_they_stop_at_the_ends_of_their_range(source, target):
    def convert(x):
        return x.astype(target)

    def convert_a_constant():
        return dilim.full((len(FLOATS),), 1e30, dtype=source).astype(target)

    x = dilim.asarray(FLOATS, dtype=source)
    wanted = [expected(value, target) for value in x.tolist()]
    assert convert(x).tolist() == wanted
    for backend in ("reference", "llvm"):
        compiled = dilim.compile(convert, backend=backend, compile_after=0)
        assert compiled(x).tolist() == wanted
        folded = dilim.compile(convert_a_constant, backend=backend, compile_after=0)
        assert folded().tolist() == [expected(1e30, target)] * len(FLOATS)
