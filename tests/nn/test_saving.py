import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim import nn, optim
from dilim.errors import FileFormatError, StateError
from dilim.runtime.files import save_arrays


def bits(x):
    return x.numpy().tobytes()


def same(a, b):
    assert a.keys() == b.keys()
    for key, value in a.items():
        if isinstance(value, dilim.Tensor):
            assert (value.dtype, value.shape) == (b[key].dtype, b[key].shape)
            assert bits(value) == bits(b[key])
        else:
            assert value == b[key]
    return True


# ----- what is saved comes back -------------------------------------------------------------------


def test_module_comes_back_bit_for_bit(tmp_path):
    model = nn.MLP(4, [8, 2])
    dilim.save(tmp_path / "m.safetensors", model, step=12, note="çok iyi")
    state = dilim.load(tmp_path / "m.safetensors")
    assert same(dict(state), model.state_dict())
    assert state.metadata == {"step": 12, "note": "çok iyi"}
    other = nn.MLP(4, [8, 2])
    other.load_state_dict(state)
    x = dilim.ones((3, 4))
    assert bits(other(x)) == bits(model(x))


def test_a_dict_of_everything_comes_back(tmp_path):
    path = tmp_path / "run"
    model = nn.Dense(2, 1)
    adam = optim.Adam(model, optim.Warmup(3, optim.LinearDecay(0.1, 0.0, 10)), clip_norm=1.0)
    generator = dilim.Generator(3)
    tree = {"model": model, "optimizer": adam, "random": {"state": generator.state},
            "episode": 7, "names": ["a", None], "empty": {}, "rate": 0.1}  # fmt: skip
    dilim.save(path, tree)
    back = dilim.load(path)
    assert set(back) == set(tree)
    assert same(back["model"], model.state_dict())
    assert same(back["optimizer"], adam.state_dict())
    assert same(back["random"], {"state": generator.state})
    assert (back["episode"], back["names"], back["empty"], back["rate"]) == (
        7,
        ["a", None],
        {},
        0.1,
    )
    assert back.metadata == {}


def test_the_file_is_an_ordinary_safetensors_file(tmp_path):
    import safetensors.numpy

    model = nn.Dense(2, 1)
    dilim.save(tmp_path / "m.safetensors", {"net": model})
    arrays = safetensors.numpy.load_file(tmp_path / "m.safetensors")
    assert set(arrays) == {"net/weight", "net/bias"}


def build(seed, kind):
    model = nn.MLP(3, [5, 2], generator=dilim.Generator(seed))
    rate = optim.CosineDecay(0.05, 0.001, 12)
    options = {"clip_norm": 0.5} if kind in ("Adam", "SGD") else {"clip_value": 0.1}
    if kind == "SGD":
        options |= {"momentum": 0.9, "nesterov": True}
    return model, optim.OPTIMIZERS[kind](model, rate, **options)


def train(model, optimizer, first, last):
    for step in range(first, last):
        generator = dilim.Generator(step)
        x, y = generator.normal((4, 3)), generator.normal((4, 2))
        # every third step one bias gets no gradient
        model.layers[1].bias.requires_grad_(step % 3 != 1)
        optimizer.zero_grad()
        nn.losses.mse(model(x), y).backward()
        optimizer.step()
    model.layers[1].bias.requires_grad_(True)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 7), st.integers(0, 7), st.sampled_from(sorted(optim.OPTIMIZERS)))
def test_resumed_training_equals_uninterrupted(tmp_path_factory, before, after, kind):
    model, optimizer = build(1, kind)
    train(model, optimizer, 0, before)
    path = tmp_path_factory.mktemp("resume") / "run.safetensors"
    dilim.save(path, {"model": model, "optimizer": optimizer})
    train(model, optimizer, before, before + after)

    resumed, fresh = build(2, kind)
    state = dilim.load(path)
    resumed.load_state_dict(state["model"])
    fresh.load_state_dict(state["optimizer"])
    train(resumed, fresh, before, before + after)
    assert same(resumed.state_dict(), model.state_dict())
    assert same(fresh.state_dict(), optimizer.state_dict())


# ----- bad files load nothing ---------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    dilim.save(path, nn.Dense(2, 3))
    return path


def test_a_short_file(saved):
    data = saved.read_bytes()
    for length in (0, 5, 40, len(data) - 1):
        saved.write_bytes(data[:length])
        with pytest.raises(FileFormatError, match="cut short"):
            dilim.load(saved)


def test_a_damaged_file(saved):
    data = bytearray(saved.read_bytes())
    data[-3] ^= 0x10
    saved.write_bytes(bytes(data))
    with pytest.raises(FileFormatError, match="damaged: its checksum is wrong"):
        dilim.load(saved)


def test_a_newer_file(saved):
    data = saved.read_bytes()
    assert data.count(b'\\"format\\": 1') == 1
    saved.write_bytes(data.replace(b'\\"format\\": 1', b'\\"format\\": 9'))
    with pytest.raises(FileFormatError, match=r"format 9, .* reads up to 1.* upgrade dilim"):
        dilim.load(saved)


def test_a_file_of_another_kind(tmp_path):
    save_arrays(tmp_path / "x", {"a": np.ones(2)}, {"kind": "replay"})
    with pytest.raises(FileFormatError, match="holds 'replay', expected 'state'"):
        dilim.load(tmp_path / "x")


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        dilim.load(tmp_path / "nothing")


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(
        StateError, match="expected a module, an optimiser or a dict, received list"
    ):
        dilim.save(path, [1])
    with pytest.raises(StateError, match="str keys without '/', received 'a/b'"):
        dilim.save(path, {"a/b": 1})
    with pytest.raises(StateError, match="str keys without '/', received 3"):
        dilim.save(path, {3: 1})
    with pytest.raises(FileFormatError, match="not plain JSON"):
        dilim.save(path, {"a": object()})
    with pytest.raises(FileFormatError, match="not plain JSON"):
        dilim.save(path, {"a": float("nan")})
    assert not path.exists()


def test_loading_what_does_not_fit_changes_nothing(saved):
    model = nn.Dense(3, 3)
    before = model.state_dict()
    with pytest.raises(
        StateError, match=r"weight: expected float32 \(3, 3\), received .* \(2, 3\)"
    ):
        model.load_state_dict(dilim.load(saved))
    assert same(model.state_dict(), before)
