"""Dtypes: promotion against NumPy, refusals by name, limits, kinds, Python numbers."""

import copy
import itertools
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import dilim
from dilim import dtypes
from dilim.errors import DtypeError

PAIRS = list(itertools.product(dtypes.ALL, dtypes.ALL))
NUMBERS = {"bool": True, "int": 1, "float": 0.5}


def kind(dtype):
    return "int" if dtype.is_integer else dtype.kind


def mixes(a, b):
    signs_meet = a.kind == b.kind or dilim.uint64 not in (a, b)
    return kind(a) == kind(b) and signs_meet


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda dtype: dtype.name)
def test_promotion_is_numpys_inside_a_kind_and_an_error_across(a, b):
    x, y = dilim.zeros(2, dtype=a), dilim.zeros(2, dtype=b)
    combine = dilim.logical_or if a is b is dilim.bool else dilim.maximum
    if mixes(a, b):
        want = np.result_type(a.numpy, b.numpy)
        assert dilim.result_type(a, b).numpy == want
        assert dilim.result_type(x, b) is dilim.result_type(a, y)
        assert combine(x, y).dtype.numpy == want
        assert dilim.where(dilim.asarray(True), x, y).dtype.numpy == want
        assert dilim.concat([x, y]).dtype.numpy == want
        assert dilim.can_cast(a, b) == (want == b.numpy)
        assert (x == y).dtype is dilim.bool
        return
    cure = rf"dtypes {a.name} and {b.name} do not mix.*x\.astype\(dilim\.\w+\)"
    for refuse in (
        lambda: dilim.result_type(a, b),
        lambda: combine(x, y),
        lambda: x == y,
        lambda: dilim.where(dilim.asarray(True), x, y),
        lambda: dilim.concat([x, y]),
    ):
        with pytest.raises(DtypeError, match=cure):
            refuse()
    assert not dilim.can_cast(a, b)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_python_numbers_take_the_dtype_of_the_tensor(dtype, number):
    x = dilim.ones(2, dtype=dtype)
    operation = dilim.logical_and if dtype is dilim.bool else dilim.maximum
    taken = {"bool": {bool}, "int": {int}, "float": {int, float}}[kind(dtype)]
    if type(number) in taken:
        assert dilim.result_type(number, dtype) is dtype
        assert operation(x, number).dtype is dtype
        assert operation(number, x).dtype is dtype
        return
    name = type(number).__name__
    with pytest.raises(DtypeError, match=rf"Python {name} {number} does not mix with {dtype.name}"):
        dilim.result_type(x, number)
    with pytest.raises(
        DtypeError, match=rf"Python {name} {number} does not mix with a {dtype.name}"
    ):
        operation(number, x)


def test_the_table_in_the_documentation_is_the_table():
    page = Path(__file__).parents[2] / "docs" / "array-api.md"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| (u?int\d+)? \|", line) or line.startswith("| | int8")
    ]
    header, *body = rows
    assert header[1:] == [dtype.name for dtype in dtypes.INTEGER] == [row[0] for row in body]
    for row in body:
        for column, cell in zip(header[1:], row[1:], strict=True):
            pair = (dtypes.as_dtype(row[0]), dtypes.as_dtype(column))
            found = dtypes.PROMOTIONS.get(pair)
            assert cell == (found.name if found else "")


def test_result_type_of_several_and_of_none():
    assert dilim.result_type(dilim.int8, dilim.uint8, dilim.int32, 7) is dilim.int32
    assert dilim.result_type(1, dilim.ones(1), 0.5) is dilim.float32
    with pytest.raises(DtypeError, match="at least one tensor or dtype"):
        dilim.result_type(1, 2.0)


@pytest.mark.parametrize("dtype", dtypes.FLOATING, ids=lambda dtype: dtype.name)
def test_finfo(dtype):
    info, want = dilim.finfo(dtype), np.finfo(dtype.numpy)
    assert dilim.finfo(dilim.zeros(1, dtype=dtype)) == info
    assert (info.bits, info.dtype) == (8 * dtype.itemsize, dtype)
    for field in ("eps", "max", "min", "smallest_normal"):
        assert type(getattr(info, field)) is float
        assert getattr(info, field) == getattr(want, field)
    with pytest.raises(DtypeError, match=r"finfo: expected a floating dtype, received int8"):
        dilim.finfo(dilim.int8)


@pytest.mark.parametrize("dtype", dtypes.INTEGER, ids=lambda dtype: dtype.name)
def test_iinfo(dtype):
    info, bits = dilim.iinfo(dtype), 8 * dtype.itemsize
    low = -(2 ** (bits - 1)) if dtype.kind == "int" else 0
    assert (info.bits, info.dtype, info.min) == (bits, dtype, low)
    assert info.max == 2 ** (bits - (dtype.kind == "int")) - 1
    assert dilim.iinfo(dilim.zeros(1, dtype=dtype)) == info
    with pytest.raises(DtypeError, match=r"iinfo: expected an integer dtype, received float32"):
        dilim.iinfo(dilim.float32)


def test_isdtype():
    kinds = {
        "bool": "bool",
        "signed integer": "int8 int16 int32 int64",
        "unsigned integer": "uint8 uint16 uint32 uint64",
        "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
        "real floating": "float32 float64",
        "complex floating": "",
        "numeric": "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    }
    for name, members in kinds.items():
        got = {dtype.name for dtype in dtypes.ALL if dilim.isdtype(dtype, name)}
        assert got == set(members.split())
    assert dilim.isdtype(dilim.int8, dilim.int8)
    assert not dilim.isdtype(dilim.int8, dilim.int16)
    assert dilim.isdtype(dilim.int8, ("bool", dilim.int8))
    assert not dilim.isdtype(dilim.int8, ("bool", "real floating"))
    with pytest.raises(DtypeError, match=r"a kind among bool, .*; received 'real'"):
        dilim.isdtype(dilim.int8, "real")


def test_a_dtype_is_one_object_that_equals_nothing_else():
    for dtype in dtypes.ALL:
        assert copy.deepcopy(dtype) is dtype
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert dtypes.as_dtype(dtype.name) is dtypes.as_dtype(dtype.numpy) is dtype
        assert dtype not in (None, dtype.name, 0)
    assert len(set(dtypes.ALL)) == 11
    assert [dtypes.as_dtype(t).name for t in (bool, int, float)] == ["bool", "int64", "float32"]
    assert dtypes.as_dtype(np.dtype(">f4")) is dilim.float32
    with pytest.raises(DtypeError, match=r"expected one of bool, .*; received 'float16'"):
        dilim.zeros(1, dtype="float16")
    with pytest.raises(DtypeError, match="complex"):
        dilim.asarray(np.zeros(1, complex))


def test_dtypes_of_data():
    assert dilim.asarray(1).dtype is dilim.int64
    assert dilim.asarray(1.0).dtype is dilim.float32
    assert dilim.asarray([True]).dtype is dilim.bool
    assert dilim.asarray([1, 2.5]).dtype is dilim.float32
    assert dilim.asarray(2**64 - 1).dtype is dilim.uint64
    assert dilim.asarray(np.float64(1)).dtype is dilim.float64
    assert dilim.asarray([np.float64(1.0), 2.0]).dtype is dilim.float64
    assert dilim.asarray([dilim.ones(2, dtype=dilim.float64)] * 2).dtype is dilim.float64
    assert dilim.asarray([], dtype=dilim.int8).dtype is dilim.int8
    assert dilim.asarray([True, False], dtype=dilim.uint64).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("data", "dtype", "match"),
    [
        ([300], "uint8", r"from 0 to 255 for uint8, received 300 to 300"),
        ([1, -1], "uint64", r"from 0 to \d+ for uint64, received -1 to 1"),
        ([float("nan")], "int32", r"for int32, received nan"),
        (3e9, "int32", r"for int32, received 3000000000"),
        (["a"], None, r"expected numbers, received list"),
        ({1: 2}, None, r"expected numbers, received dict"),
    ],
)
def test_python_numbers_that_do_not_fit_are_refused(data, dtype, match):
    with pytest.raises(DtypeError, match=match):
        dilim.tensor(data, dtype=dtype)


def test_integers_wrap_and_sums_are_wide():
    x = dilim.asarray([200, 100], dtype=dilim.uint8)
    assert (x + x).tolist() == [144, 200]
    assert dilim.sum(x).dtype is dilim.uint64
    assert dilim.sum(x).item() == 300
    assert dilim.cumulative_sum(x).tolist() == [200, 300]
    assert dilim.prod(x.astype(dilim.int16)).dtype is dilim.int64
    assert dilim.sum(x, dtype=dilim.uint8).item() == 44
    assert dilim.sum(dilim.asarray([True, True])).item() == 2


def test_float_results_keep_their_width():
    for dtype in dtypes.FLOATING:
        x = dilim.ones(3, dtype=dtype)
        for function in (dilim.sum, dilim.mean, dilim.std, dilim.cumulative_prod, dilim.softmax):
            assert function(x).dtype is dtype
    assert (dilim.asarray([1, 2]) / 2).dtype is dilim.float32
