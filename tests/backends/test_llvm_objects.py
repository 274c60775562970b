"""Builtins that make objects, and that see whether objects are unchanged."""

import gc
import sys
from types import MemberDescriptorType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dilim
from dilim import dtypes
from dilim.backends.llvm.calls import fast_calls
from dilim.backends.llvm.calls_objects import Watch, can_watch
from dilim.runtime import devices
from dilim.runtime.build import load_function
from dilim.tensors.fast_calls import tensor_maker
from dilim.tensors.tensor import Tensor

pytestmark = pytest.mark.skipif(not fast_calls(), reason="another Python")


def slots(x):
    """All that an object has in its slots."""
    kinds = type(x).__mro__
    names = [n for k in kinds for n, v in vars(k).items() if isinstance(v, MemberDescriptorType)]
    return {name: getattr(x, name, "nothing") for name in names}


def state(x):
    found = slots(x)
    storage = slots(found.pop("_storage"))
    assert storage.pop("buffer") is found["_data"]
    array = found.pop("_data")
    return found, storage, array.tolist(), array.flags.c_contiguous, array.flags.writeable


@given(
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.sampled_from([dilim.float32, dilim.float64, dilim.int64, dtypes.bool_]),
)
def test_a_made_tensor_is_as_python_makes_it(shape, dtype):
    array = (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype.numpy).reshape(shape)
    made = tensor_maker(shape, dtype)(array)
    assert state(made) == state(Tensor._from_array(array.copy()))
    assert not np.may_share_memory(made._data, array)
    empty = tensor_maker(shape, dtype)()
    assert state(empty)[:2] == state(made)[:2]
    assert type(empty) is Tensor
    assert empty._data.dtype == dtype.numpy
    assert empty.shape == shape


def test_a_made_tensor_holds_nothing_twice():
    make = tensor_maker((3,), dilim.float32)
    make()
    made = make()
    counts = sys.getrefcount(made._storage), sys.getrefcount(made._data)
    assert counts == (2, 3)  # the tensor, the storage, and the argument
    assert gc.is_tracked(made)
    shared = [None, dilim.float32, devices.CPU, Tensor, devices.Storage]
    before = list(map(sys.getrefcount, shared))
    for _ in range(10_000):
        make()
    after = list(map(sys.getrefcount, shared))
    assert all(abs(a - b) < 1000 for a, b in zip(before, after, strict=True))


def test_a_made_tensor_belongs_to_its_epoch():
    with devices.epoch() as is_new:
        assert is_new(tensor_maker((3,), dilim.float32)()._storage)
    assert tensor_maker((3,), dilim.float32)()._storage.version == 0


class Plain:
    pass


def watching(*, tables=(), lists=(), tensors=()):
    watch = Watch(load_function)
    for table in tables:
        watch.table(table)
    for items in lists:
        watch.items(items)
    for x in tensors:
        watch.slot(x, "_requires_grad")
    watch.begin()
    return watch


CHANGES = {
    "set": lambda x: setattr(x, "a", 3),
    "new": lambda x: setattr(x, "b", 3),
    "deleted": lambda x: delattr(x, "a"),
    "in the dict": lambda x: vars(x).update(a=4),
    "cleared": lambda x: vars(x).clear(),
    "past the class": lambda x: object.__setattr__(x, "a", 5),
    "list grows": lambda x: x.items.append(1),
    "list shrinks": lambda x: x.items.pop(),
    "item": lambda x: x.items.__setitem__(1, "other"),
    "order": lambda x: x.items.reverse(),
    "slice": lambda x: x.items.__setitem__(slice(0, 2), ["x", "y", "z"]),
    "flag": lambda x: x.tensor.requires_grad_(),
}


@pytest.mark.skipif(not can_watch(), reason="another Python")
@pytest.mark.parametrize("change", CHANGES)
def test_a_watch_sees(change):
    x = Plain()
    x.a, x.items, x.tensor = 1, ["one", "two", "three"], dilim.zeros(3)
    watch = watching(tables=[vars(x)], lists=[x.items], tensors=[x.tensor])
    assert watch.same() is True
    x.a, len(x.items), x.tensor + 1, list(vars(x).values()), "one" in x.items
    assert watch.same() is True
    CHANGES[change](x)
    assert watch.same() is False


@pytest.mark.skipif(not can_watch(), reason="another Python")
def test_a_watch_takes_dicts_anew_and_nothing_else():
    table, items = {"a": 1}, [1]
    watch = watching(tables=[table], lists=[items])
    table["a"] = 2
    assert not watch.same()
    watch.renew()
    assert watch.same()
    items[0] = 2
    watch.renew()
    assert not watch.same()


@pytest.mark.skipif(not can_watch(), reason="another Python")
def test_a_watch_outlives_what_it_looks_at():
    items = [object() for _ in range(50)]
    watch = watching(tables=[{"a": 1}], lists=[items], tensors=[dilim.zeros(2)])
    items.clear()
    items += [object() for _ in range(5000)]
    assert not watch.same()
    del items
    gc.collect()
    assert not watch.same()
