"""NumPy, DLPack, buffers and Python numbers, both ways; memory is shared where it can be."""

import array
import math

import numpy as np
import pytest

import dilim
from dilim import dtypes
from dilim.errors import DeviceError, DtypeError, GradientError, ShapeError

LAYOUTS = {
    "row-major": lambda: np.arange(12.0).reshape(3, 4),
    "column-major": lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "reversed": lambda: np.arange(12.0).reshape(3, 4)[::-1, ::-1],
    "sliced": lambda: np.arange(48.0).reshape(6, 8)[::2, 1::2],
    "no axes": lambda: np.array(5.0),
    "empty": lambda: np.zeros((0, 3)),
}


class Producer:
    """Some other library's array: nothing but DLPack."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


def share(tensor, numpy_array):
    """Whether a write to one is seen in the other, both ways."""
    if not numpy_array.size:
        return True
    place = (0,) * numpy_array.ndim
    numpy_array[place] = 41
    seen = tensor[place].item() == 41
    tensor[place] = 42
    return seen and numpy_array[place] == 42


# --- NumPy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_asarray_shares_and_tensor_copies(layout):
    source = LAYOUTS[layout]()
    shared, copied = dilim.asarray(source), dilim.Tensor(source)
    for x in (shared, copied, dilim.asarray(source, copy=True), dilim.from_numpy(source)):
        assert (x.shape, x.dtype) == (source.shape, dilim.float64)
        np.testing.assert_array_equal(x.numpy(), source)
    steps = tuple(step // 8 for step in source.strides)
    assert shared.strides == steps or not source.size
    before = copied.tolist()
    assert share(shared, source)
    assert copied.tolist() == before
    assert copied.is_contiguous


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_every_dtype_goes_out_and_in_without_a_copy(dtype):
    source = np.array([0, 1, 1], dtype.numpy)
    x = dilim.asarray(source)
    assert x.dtype is dtype
    for out in (x.numpy(), np.asarray(x), np.from_dlpack(x), dilim.from_dlpack(source).numpy()):
        assert out.dtype == dtype.numpy
        assert np.shares_memory(out, source)


def test_numpy_gives_a_read_only_view_or_a_copy():
    x = dilim.zeros(3)
    view = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    x[0] = 5
    assert view[0] == 5
    free = x.numpy(copy=True)
    free[0] = 6
    assert x[0].item() == 5
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(x), x.numpy())
    with pytest.raises(ValueError, match="needs a copy, and copy=False"):
        np.asarray(x, dtype=np.int8, copy=False)
    assert np.shares_memory(np.asarray(x, copy=False), x.numpy())


def test_asarray_copies_only_when_it_may():
    source = np.zeros(2)
    with pytest.raises(ValueError, match="copy=False"):
        dilim.asarray(source, dtype=dilim.float32, copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        dilim.asarray([1.0], copy=False)
    assert share(dilim.asarray(source, copy=False), source)
    assert dilim.asarray(np.zeros(0), copy=False).shape == (0,)
    free = dilim.asarray(source, copy=True)
    free += 1
    assert source.tolist() != free.tolist()
    x = dilim.ones(2)
    assert dilim.asarray(x) is x
    assert dilim.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="dtype or device needs a copy"):
        dilim.asarray(x, dtype=dilim.float64, copy=False)


def test_numpy_arrays_and_scalars_do_not_mix_silently():
    x = dilim.ones(2)
    for use in (
        lambda: x + np.ones(2, np.float32),
        lambda: np.ones(2, np.float32) * x,
        lambda: np.float32(2) - x,
        lambda: x < np.zeros(2),
        lambda: [1.0, 2.0] @ x,
    ):
        with pytest.raises(DtypeError, match=r"wrap it with dilim\.asarray|Python int, float"):
            use()
    with pytest.raises(TypeError, match="ufunc"):
        np.exp(x)
    assert np.mean(np.asarray(x)) == 1


def test_foreign_byte_order_is_converted():
    x = dilim.asarray(np.array([1.5, 2.5], ">f8"))
    assert x.dtype is dilim.float64
    assert x.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("data", [np.array(["a"]), np.array([None]), np.zeros(1, np.float16)])
def test_arrays_of_other_dtypes_are_refused(data):
    for make in (dilim.asarray, dilim.Tensor):
        with pytest.raises(DtypeError, match="expected one of bool, int8"):
            make(data)


def test_shared_read_only_memory_refuses_writes():
    source = np.zeros(2)
    source.flags.writeable = False
    x = dilim.asarray(source)
    for write in (
        lambda: x.__setitem__(0, 1.0),
        lambda: x.__setitem__([0], 1.0),
        lambda: x.__iadd__(1.0),
    ):
        with pytest.raises(ValueError, match=r"read-only.*write into x\.clone\(\)"):
            write()
    y = x.clone()
    y += 1
    assert (y.tolist(), source.tolist()) == ([1, 1], [0, 0])


# --- DLPack ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dlpack_shares_both_ways(layout):
    source = LAYOUTS[layout]()
    for take in (dilim.from_dlpack, dilim.asarray):
        assert share(take(Producer(source)), source)
    x = dilim.Tensor(source)
    given = np.from_dlpack(x)
    assert given.shape == x.shape
    assert np.shares_memory(given, x.numpy()) or not x.size
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_copies_on_demand():
    source = np.zeros(2)
    for x in (
        dilim.from_dlpack(source, copy=True),
        dilim.asarray(Producer(source), copy=True),
        dilim.from_dlpack(dilim.asarray(source), copy=True),
    ):
        x += 1
    assert source.tolist() == [0, 0]
    x = dilim.zeros(2)
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    assert dilim.from_dlpack(x) is x
    assert dilim.from_dlpack(source, device="cpu").device is x.device


def test_memory_with_a_gradient_to_come_is_exported_read_only():
    x = dilim.ones(2, requires_grad=True)
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match=r"read-only.*export x\.detach\(\)\.clone\(\)"):
        x.__dlpack__()
    x.__dlpack__(copy=True)
    x.detach().__dlpack__()


def test_unknown_devices_and_types_are_refused():
    with pytest.raises(DeviceError, match=r"expected one of 'cpu'.*received 'abacus'"):
        dilim.from_dlpack(np.zeros(1), device="abacus")
    with pytest.raises(DtypeError, match="complex64"):
        dilim.from_dlpack(np.zeros(1, np.complex64))
    with pytest.raises(DeviceError, match="stream"):
        dilim.zeros(1).to_device("cpu", stream=1)


# --- buffers and numbers --------------------------------------------------------------------


def test_the_buffer_protocol_shares():
    numbers = array.array("d", [1.0, 2.0])
    x = dilim.asarray(numbers)
    assert x.dtype is dilim.float64
    numbers[0] = 9.0
    assert x.tolist() == [9, 2]
    raw = bytearray(b"\x01\x02")
    y = dilim.asarray(raw)
    y[1] = 255
    assert raw == b"\x01\xff"
    assert dilim.asarray(memoryview(np.arange(4).reshape(2, 2))).tolist() == [[0, 1], [2, 3]]
    assert dilim.asarray(b"\x07").tolist() == [7]


def test_single_elements_become_python_numbers():
    assert (float(dilim.asarray([[2.5]])), int(dilim.asarray(-3)), bool(dilim.asarray(0))) == (
        2.5,
        -3,
        False,
    )
    assert complex(dilim.asarray(2)) == 2 + 0j
    assert math.sqrt(dilim.asarray(4.0)) == 2
    assert range(5)[dilim.asarray(2)] == 2
    assert dilim.asarray([True]).item() is True
    assert [type(v) for v in dilim.asarray([1, 2]).tolist()] == [int, int]
    assert f"{dilim.asarray(0.125):.2f}" == "0.12"
    with pytest.raises(TypeError, match="index: expected an integer tensor, received float32"):
        range(5)[dilim.asarray(2.0)]
    with pytest.raises(ShapeError, match=r"bool\(\): .* shape \(2,\); use x\.any\(\) or x\.all"):
        bool(dilim.ones(2))
    with pytest.raises(ShapeError, match=r"item: expected exactly one element, .*\(0,\)"):
        dilim.zeros(0).item()


def test_iteration_and_length():
    x = dilim.arange(6).reshape(3, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert len(x) == 3
    with pytest.raises(TypeError, match=r"shape \(\) cannot be iterated"):
        iter(dilim.asarray(1))
    with pytest.raises(TypeError, match=r"shape \(\) has no length"):
        len(dilim.asarray(1))


def test_writes_through_numpy_are_seen_and_own_writes_are_noticed_by_the_tape():
    source = np.ones(2)
    shared = dilim.asarray(source)
    source[0] = 3
    leaf = dilim.ones(2, dtype=dilim.float64, requires_grad=True)
    product = leaf * shared
    assert product.tolist() == [3, 1]
    with dilim.no_grad():
        shared += 1
    with pytest.raises(GradientError, match=r"multiply.*written in place"):
        product.sum().backward()


def test_memory_that_a_gradient_may_need_is_exported_read_only():
    a = dilim.tensor([1.0, 2.0], requires_grad=True)
    out = dilim.sigmoid(a)
    with pytest.raises(ValueError, match="read-only"):
        np.from_dlpack(out.detach())[:] = 0.0
    np.from_dlpack(out.detach().clone())[:] = 0.0


def test_odd_strides_are_copied():
    rows = np.zeros(4, dtype=[("a", "f4"), ("b", "i1")])
    x = dilim.asarray(rows["a"])
    assert x.strides == (1,)
    assert np.from_dlpack(x.contiguous()).strides == (4,)
