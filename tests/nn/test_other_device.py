"""Models and optimisers on a device that is not the CPU."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tensors"))

from memory_device import MemoryDevice

import dilim
from dilim import nn, optim
from dilim.errors import NonFiniteError
from dilim.nn import losses
from dilim.runtime.devices import register_device


@pytest.fixture
def device():
    device = MemoryDevice()
    register_device(device)
    return device


def train(model, optimizer, x, y, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        losses.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [p.numpy() for p in model.parameters()]


@pytest.mark.parametrize("name", sorted(optim.OPTIMIZERS))
def test_training_gives_the_same_numbers(device, name):
    x, y = dilim.Generator(0).normal((8, 3)), dilim.Generator(1).integers(0, 2, 8)
    states = []
    for place in ("cpu", "memory"):
        model = nn.MLP(3, [5, 2], generator=dilim.Generator(2))
        optimizer = optim.OPTIMIZERS[name](model, 0.01, clip_norm=0.1, clip_value=0.05)
        train(model, optimizer, x, y, 2)
        model.to(place)
        assert {p.device.name for p in model.parameters()} == {place}
        states.append(train(model, optimizer, x.to(place), y.to(place), 4))
        assert optimizer.state_dict()["steps"].tolist() == [6] * 4
    for a, b in zip(*states, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_state_moves_between_devices_and_files(device, tmp_path):
    model = nn.MLP(3, [5, 2]).to("memory")
    dilim.save(tmp_path / "m", model)
    other = nn.MLP(3, [5, 2])
    other.load_state_dict(dilim.load(tmp_path / "m"))
    other.load_state_dict(model.state_dict())
    assert other.layers[0].weight.device.name == "cpu"
    model.load_state_dict(other.state_dict())
    assert model.layers[0].weight.device is device
    assert model.layers[0].weight.tolist() == other.layers[0].weight.tolist()


def test_bad_gradients_are_named_there_too(device):
    model = nn.Dense(2, 1, name="head").to("memory")
    model.weight.grad = dilim.tensor([[1.0], [dilim.nan]]).to("memory")
    model.bias.grad = dilim.tensor([1.0]).to("memory")
    with pytest.raises(NonFiniteError, match=r"'head\.weight' \(2, 1\) has 1 NaN"):
        optim.clip_grad_norm(model.parameters(), 1.0)
