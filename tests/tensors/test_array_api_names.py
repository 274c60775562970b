"""Every function of the Python array API standard is there, with the standard's signature."""

import inspect

import pytest

import dilim

ONE = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag
isfinite isinf isnan log log10 log1p log2 logical_not matrix_transpose negative nonzero positive
real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc unique_all unique_counts
unique_inverse unique_values
"""
TWO = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign
divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and
logical_or logical_xor matmul maximum minimum multiply nextafter not_equal pow remainder
subtract
"""
REDUCTIONS = "all any argmax argmin count_nonzero max mean min"
OTHERS = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
argsort(x, /, *, axis=-1, descending=False, stable=True)
asarray(obj, /, *, dtype=None, device=None, copy=None)
astype(x, dtype, /, *, copy=True, device=None)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
clip(x, /, min=None, max=None)
concat(arrays, /, *, axis=0)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
expand_dims(x, /, axis)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
finfo(type, /)
flip(x, /, *, axis=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
iinfo(type, /)
isdtype(dtype, kind)
isin(x1, x2, /, *, invert=False)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
moveaxis(x, source, destination, /)
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
permute_dims(x, /, axes)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis=None)
searchsorted(x1, x2, /, *, side='left', sorter=None)
sort(x, /, *, axis=-1, descending=False, stable=True)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
tensordot(x1, x2, /, *, axes=2)
tile(x, repetitions, /)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
unstack(x, /, *, axis=0)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
vecdot(x1, x2, /, *, axis=-1)
where(condition, x1, x2, /)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
"""
FUNCTIONS = [
    *(f"{name}(x, /)" for name in ONE.split()),
    *(f"{name}(x1, x2, /)" for name in TWO.split()),
    *(f"{name}(x, /, *, axis=None, keepdims=False)" for name in REDUCTIONS.split()),
    *OTHERS.strip().splitlines(),
]
BINARY_METHODS = """
add and eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv xor
"""
IN_PLACE = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"
METHODS = [
    *(f"__{name}__(self, other, /)" for name in BINARY_METHODS.split()),
    *(f"__i{name}__(self, other, /)" for name in IN_PLACE.split()),
    *(f"__r{name}__(self, other, /)" for name in IN_PLACE.split()),
    *(f"__{name}__(self, /)" for name in "abs bool complex float index int invert neg pos".split()),
    "__array_namespace__(self, /, *, api_version=None)",
    "__dlpack__(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
    "__dlpack_device__(self, /)",
    "__getitem__(self, key, /)",
    "__setitem__(self, key, value, /)",
    "to_device(self, device, /, *, stream=None)",
]
P = inspect.Parameter
OPEN = {
    P.POSITIONAL_ONLY: {P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD},
    P.POSITIONAL_OR_KEYWORD: {P.POSITIONAL_OR_KEYWORD},
    P.KEYWORD_ONLY: {P.KEYWORD_ONLY, P.POSITIONAL_OR_KEYWORD},
    P.VAR_POSITIONAL: {P.VAR_POSITIONAL},
}


def parsed(text):
    name, parameters = text.split("(", 1)
    namespace = {}
    exec(f"def f({parameters}: pass", namespace)
    return name, inspect.signature(namespace["f"]).parameters


def assert_takes(function, wanted):
    """Whatever calls the standard's signature allows, this function allows."""
    ours = dict(inspect.signature(function).parameters)
    positional = [p for p in ours.values() if p.kind is not P.KEYWORD_ONLY]
    for number, (name, standard) in enumerate(wanted.items()):
        if standard.kind is P.VAR_POSITIONAL:
            assert positional[number].kind is P.VAR_POSITIONAL
            ours.pop(positional[number].name)
            continue
        if standard.kind is P.POSITIONAL_ONLY:
            name = positional[number].name
        found = ours.pop(name)
        assert found.kind in OPEN[standard.kind], name
        if standard.kind is P.POSITIONAL_OR_KEYWORD:
            assert positional[number].name == name
        if standard.default is not P.empty:
            assert found.default == standard.default, name
    assert all(p.default is not P.empty for p in ours.values()), "an argument too many is needed"


@pytest.mark.parametrize("text", FUNCTIONS, ids=lambda text: text.split("(")[0])
def test_function(text):
    name, wanted = parsed(text)
    assert name in dilim.__all__
    function = getattr(dilim, name)
    assert function.__name__ == name
    assert_takes(function, wanted)


@pytest.mark.parametrize("text", METHODS, ids=lambda text: text.split("(")[0])
def test_method(text):
    name, wanted = parsed(text)
    assert_takes(getattr(dilim.Tensor, name), wanted)


def test_attributes_and_constants():
    x = dilim.ones((2, 3))
    assert (x.ndim, x.shape, x.size) == (2, (2, 3), 6)
    assert x.T.shape == x.mT.shape == (3, 2)
    assert (x.dtype, x.device) == (dilim.float32, dilim.zeros(1).device)
    assert abs(dilim.pi - 3.14159265) < 1e-8
    assert abs(dilim.e - 2.71828183) < 1e-8
    assert dilim.inf > 1e308
    assert dilim.nan != dilim.nan
    assert dilim.newaxis is None


def test_the_namespace_of_a_tensor():
    x = dilim.ones(2)
    assert x.__array_namespace__() is dilim
    assert x.__array_namespace__(api_version="2024.12") is dilim
    assert x.__array_namespace__(api_version=dilim.__array_api_version__) is dilim
    with pytest.raises(ValueError, match=r"api_version among 2021\.12, .*, received '2019\.01'"):
        x.__array_namespace__(api_version="2019.01")


def test_what_is_absent_is_an_attribute_error():
    for name in ("complex64", "complex128", "fft", "linalg", "float16"):
        assert not hasattr(dilim, name)


def test_inspection():
    info = dilim.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() in info.devices()
    assert dilim.zeros(1, device=info.default_device()).device == info.default_device()
    assert info.default_dtypes() == {
        "real floating": dilim.float32,
        "integral": dilim.int64,
        "indexing": dilim.int64,
    }
    assert list(info.dtypes(kind="signed integer")) == ["int8", "int16", "int32", "int64"]
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]
    assert info.dtypes(kind="complex floating") == {}
    everything = info.dtypes(device="cpu")
    assert len(everything) == 11
    assert all(getattr(dilim, name) is dtype for name, dtype in everything.items())
    with pytest.raises(dilim.errors.DeviceError, match="expected one of 'cpu'"):
        info.dtypes(device="abacus")
    with pytest.raises(dilim.errors.DtypeError, match=r"a kind among bool, .*; received 'text'"):
        info.dtypes(kind="text")
    assert dilim.ones((1,) * 64).ndim == 64


# --- special cases that the standard fixes and NumPy does not ---------------------------------


def test_floor_division_at_infinity_is_the_floor_of_the_quotient():
    inf = float("inf")
    x = dilim.asarray([inf, -inf, inf, 1.0, -1.0, 1.0, inf, 7.5])
    y = dilim.asarray([2.0, 2.0, -2.0, -inf, inf, inf, inf, -2.0])
    got = (x // y).tolist()
    assert got[:6] == [inf, -inf, -inf, 0.0, 0.0, 0.0]
    assert dilim.signbit(x // y).tolist()[3:6] == [True, True, False]
    assert got[6] != got[6]
    assert got[7] == -4.0
    assert (dilim.asarray(1.0) // 0.1).item() == 9.0  # of the exact quotient of these two floats


def test_statistics_of_nothing_are_nan():
    empty = dilim.zeros((2, 0))
    for function in (dilim.mean, dilim.var, dilim.std):
        assert dilim.all(dilim.isnan(function(empty, axis=1)))
        assert function(empty, axis=1).shape == (2,)
    assert dilim.isnan(dilim.var(dilim.ones(1), correction=1))
    assert dilim.isnan(dilim.var(dilim.asarray([1.0, 2.0]), correction=2))
    assert dilim.isnan(dilim.var(dilim.asarray([1.0, 2.0]), correction=2.5))


def test_parts_of_real_numbers():
    x = dilim.asarray([1.5, float("inf"), float("nan")])
    assert dilim.real(x).tolist()[:2] == dilim.conj(x).tolist()[:2] == [1.5, float("inf")]
    assert dilim.imag(x).tolist() == [0, 0, 0]
    assert dilim.imag(x).dtype is dilim.float32
    assert dilim.imag(dilim.asarray([1, 2], dtype=dilim.uint8)).dtype is dilim.uint8
