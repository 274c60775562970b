"""Tensors on a second device: the seam for every accelerator to come."""

import copy
import threading

import numpy as np
import pytest
from memory_device import MemoryDevice

import dilim
from dilim.errors import DeviceError, GradientError
from dilim.runtime import devices
from dilim.runtime.devices import CPU, as_device, register_device


@pytest.fixture
def device():
    device = MemoryDevice()
    register_device(device)
    return device


def test_unknown_device_names_the_known_ones():
    with pytest.raises(DeviceError, match=r"'cpu'.*received 'abacus'"):
        dilim.zeros(2, device="abacus")


def test_to_copies_and_leaves_the_original(device):
    x = dilim.tensor([[1.0, 2.0], [3.0, 4.0]], name="x")
    y = x.to("memory")
    assert (y.device, y.name, x.device) == (device, "x", CPU)
    assert (device.uploads, device.downloads) == (1, 0)
    assert y.tolist() == x.tolist()
    assert y.to("memory") is y
    assert y.to("cpu").device is CPU
    assert as_device("memory") is device


def test_operations_run_on_the_device_without_transfers(device):
    x = dilim.tensor([[1.0, 2.0], [3.0, 4.0]], device="memory")
    device.uploads = device.downloads = 0
    y = dilim.tanh(x @ x.T).sum(axis=1) * 2.0
    assert (y.device, device.uploads, device.downloads) == (device, 0, 0)
    assert device.executed >= 5
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(y.tolist(), 2 * np.tanh(a @ a.T).sum(1), rtol=1e-6)


def test_views_share_the_device_buffer(device):
    x = dilim.arange(12.0).reshape(3, 4).to("memory")
    row = x[1]
    assert row._storage is x._storage
    assert row.T if row.ndim == 2 else row.strides == (1,)
    assert x.permute(1, 0).strides == (1, 4)
    row.fill_(7.0)
    assert x.tolist()[1] == [7, 7, 7, 7]
    x[0, 1:3] = dilim.tensor([8.0, 9.0], device="memory")
    assert x.tolist()[0] == [0, 8, 9, 3]


def test_gradients_flow_on_the_device_and_across(device):
    w = dilim.tensor([1.0, 2.0], requires_grad=True)
    moved = w.to("memory")
    loss = (moved * moved * 3.0).sum()
    assert loss.device is device
    loss.backward()
    assert w.grad.device is CPU
    assert w.grad.tolist() == [6, 12]
    v = dilim.tensor([1.0, 2.0], device="memory", requires_grad=True)
    (v / 2.0).mean().backward()
    assert (v.grad.device, v.grad.tolist()) == (device, [0.25, 0.25])


def test_mixed_devices_are_refused(device):
    x, y = dilim.ones(2), dilim.ones(2, device="memory")
    with pytest.raises(DeviceError, match=r"add: expected tensors on one device.*x\.to\("):
        x + y
    with pytest.raises(DeviceError, match="expected a tensor on 'cpu'"):
        y.__dlpack__()


def test_a_write_from_another_device_is_refused(device):
    x = dilim.zeros(2)
    with pytest.raises(DeviceError, match=r"'cpu'.*'memory'.*value\.to\('cpu'\)"):
        x[...] = dilim.ones(2, device="memory")
    with pytest.raises(DeviceError, match="one device"):
        x.add_(dilim.ones(2, device="memory"))
    assert x.tolist() == [0, 0]


def test_move_frees_the_old_side(device):
    x = dilim.tensor([1.0, 2.0], requires_grad=True)
    assert x.move_("memory") is x
    assert (x.device, x._data.__class__.__name__) == (device, "Handle")
    assert x.tolist() == [1, 2]
    x.move_("cpu")
    assert isinstance(x._data, np.ndarray)
    assert x.requires_grad


def test_move_of_shared_memory_is_refused(device):
    x = dilim.tensor([1.0, 2.0])
    view = x[:1]
    with pytest.raises(DeviceError, match="another tensor shares this memory"):
        x.move_("memory")
    with pytest.raises(DeviceError, match="shares this memory"):
        view.move_("memory")
    y = dilim.tensor([1.0], requires_grad=True) * 2.0
    with pytest.raises(GradientError, match="on the tape"):
        y.move_("memory")


def test_copies_stay_on_their_device(device):
    x = dilim.tensor([1.0, 2.0], device="memory", requires_grad=True, name="w")
    y = copy.deepcopy(x)
    assert (y.device, y.requires_grad, y.name, y.tolist()) == (device, True, "w", [1, 2])
    assert y.uid != x.uid
    with dilim.no_grad():
        y.add_(1.0)
    assert x.tolist() == [1, 2]


# --- mirrored tensors -----------------------------------------------------------------------


def mirrored(data):
    return dilim.Tensor(data, device="memory", mirrored=True)


def counts(x):
    return x._storage.uploads, x._storage.downloads


def test_mirrored_copies_only_the_stale_side(device):
    x = mirrored([1.0, 2.0, 3.0])
    assert counts(x) == (0, 0)
    on_device = dilim.ones(3, device="memory")
    for _ in range(3):
        y = x + on_device
    assert (y.device, counts(x)) == (device, (1, 0))
    assert x.tolist() == [1, 2, 3]
    assert counts(x) == (1, 0)  # the host side was still valid
    x.add_(on_device)
    assert not x._storage.host_valid
    assert x.tolist() == [2, 3, 4]
    assert x.tolist() == [2, 3, 4]
    assert counts(x) == (1, 1)


def test_mirrored_follows_the_other_operand(device):
    x = mirrored([1.0, 2.0])
    assert (x + dilim.ones(2)).device is CPU
    assert counts(x) == (0, 0)
    assert (x + dilim.ones(2, device="memory")).device is device
    assert (x + x).device is device
    other = MemoryDevice("other")
    register_device(other)
    with pytest.raises(DeviceError, match="'cpu' or 'memory', asked for 'other'"):
        x + dilim.ones(2, device="other")


def test_editing_the_host_side_makes_the_device_stale(device):
    x = mirrored([1.0, 2.0])
    x + dilim.zeros(2, device="memory")
    with dilim.host_edit(x) as array:
        array[0] = 5.0
    assert not x._storage.device_valid
    assert (x + dilim.zeros(2, device="memory")).tolist() == [5, 2]
    assert counts(x) == (2, 0)


def test_dropping_a_side(device):
    x = mirrored([1.0, 2.0])
    x._storage.drop_host()
    assert x._storage.host is None
    assert x.tolist() == [1, 2]
    assert counts(x) == (1, 1)
    x._storage.drop_device()
    assert x._storage.buffer is None
    assert (x * dilim.ones(2, device="memory")).tolist() == [1, 2]
    assert counts(x) == (2, 1)


def test_mirrored_needs_a_second_device():
    with pytest.raises(DeviceError, match="other than 'cpu'"):
        dilim.Tensor([1.0], mirrored=True)


def test_host_edit_needs_a_host_side(device):
    x = dilim.ones(2, device="memory")
    with pytest.raises(DeviceError, match="mirrored=True"), dilim.host_edit(x):
        pass


def test_memory_is_marked_only_while_somebody_traces():
    """Threads begin and end to trace in any order."""
    first, second = devices.epoch(), devices.epoch()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert dilim.zeros(2)._storage.version > 0
    second.__exit__(None, None, None)
    assert dilim.zeros(2)._storage.version == 0


def test_a_thread_does_not_end_the_epoch_of_another():
    made = []

    def other():
        with devices.no_epoch():
            made.append(dilim.zeros(2)._storage.version)

    with devices.epoch():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with devices.no_epoch():
            made.append(dilim.zeros(2)._storage.version)
    assert made[0] > 0
    assert made[1] == 0
