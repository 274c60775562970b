import copy

import numpy as np
import pytest

import dilim
from dilim import nn
from dilim.errors import DeviceError, DtypeError, GradientError, ShapeError, StateError
from dilim.tensors.tape import mode


def parameter(*shape):
    return dilim.ones(shape, requires_grad=True)


class Tree(nn.Module):
    """Parameters in every place where they may stand; no super().__init__()."""

    def __init__(self):
        self.scale = parameter(2)
        self.layers = [nn.Dense(2, 3), (nn.ReLU(), nn.Dense(3, 1, bias=False))]
        self.heads = {"value": nn.Dense(3, 1), "raw": parameter(4)}
        self.running_mean = dilim.zeros(2)
        self.shared = self.layers[0]
        self.count = 3

    def forward(self, x):
        return self.heads["value"](self.layers[0](x * self.scale))


NAMES = [
    "scale",
    "layers.0.weight",
    "layers.0.bias",
    "layers.1.1.weight",
    "heads.value.weight",
    "heads.value.bias",
    "heads.raw",
]


# ----- what is found ------------------------------------------------------------------------------


def test_parameters_are_found_by_attribute_list_tuple_and_dict_in_order():
    model = Tree()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert [x.shape for x in model.parameters()] == [
        (2,), (2, 3), (3,), (3, 1), (3, 1), (1,), (4,),
    ]  # fmt: skip
    assert model.parameters()[1] is model.layers[0].weight
    assert [name for name, _ in model.named_buffers()] == ["running_mean"]
    assert [name for name, _ in model.named_modules()] == [
        "", "layers.0", "layers.1.0", "layers.1.1", "heads.value",
    ]  # fmt: skip


def test_a_forgotten_super_init_loses_nothing():
    model = Tree()
    assert model.training
    model.eval()
    assert not any(module.training for _, module in model.named_modules())
    assert model(dilim.ones((5, 2))).shape == (5, 1)


def test_frozen_tensors_are_buffers_and_results_are_neither():
    model = nn.Dense(2, 1)
    model.weight.requires_grad_(False)
    model.last = model.bias * 2.0
    assert [name for name, _ in model.named_parameters()] == ["bias"]
    assert [name for name, _ in model.named_buffers()] == ["weight"]
    assert list(model.state_dict()) == ["weight", "bias"]


def test_cycles_end():
    parent, child = nn.Module(), nn.Dense(1, 1)
    parent.child, child.parent = child, parent
    parent.loop = [parent]
    parent.loop.append(parent.loop)
    assert [name for name, _ in parent.named_parameters()] == ["child.weight", "child.bias"]


def test_what_cannot_be_named_is_an_error():
    model = nn.Module()
    model.layers = {nn.Dense(1, 1)}
    with pytest.raises(TypeError, match=r"'layers' is a set of modules or tensors; .* use a list"):
        model.parameters()
    model.layers = {1: parameter(1), "1": parameter(2)}
    with pytest.raises(ValueError, match=r"two tensors have the name 'layers.1'"):
        model.parameters()
    model.layers = {1, 2}
    assert model.parameters() == []


def test_forward_must_be_defined():
    with pytest.raises(NotImplementedError, match=r"Module does not define forward\(\)"):
        nn.Module()(1)


# ----- modes and places ---------------------------------------------------------------------------


def test_train_and_eval_reach_everything():
    model = nn.Sequential(nn.Dense(1, 1), nn.Sequential(nn.Dropout(0.5)))
    inner = model[1][0]
    assert model.eval() is model
    assert (model.training, inner.training) == (False, False)
    model.train()
    assert (model.training, inner.training) == (True, True)


def test_zero_grad_forgets_gradients():
    model = nn.Dense(2, 1)
    model(dilim.ones((3, 2))).sum().backward()
    assert model.weight.grad.tolist() == [[3.0], [3.0]]
    model.zero_grad()
    assert model.weight.grad is None


def test_to_casts_in_place():
    model = nn.Sequential(nn.Dense(2, 1))
    model.steps = dilim.zeros((), dtype="int64")
    weight = model[0].weight
    before = weight.tolist()
    model(dilim.ones((1, 2))).sum().backward()
    assert model.to("float64") is model
    assert model[0].weight is weight
    assert (weight.dtype, weight.grad.dtype) == (dilim.float64, dilim.float64)
    assert weight.tolist() == before
    assert weight.requires_grad
    assert model.steps.dtype is dilim.int64
    assert model(dilim.ones((1, 2), dtype="float64")).dtype is dilim.float64
    with pytest.raises(DtypeError, match="expected a floating dtype, received int64"):
        model.to("int64")
    with pytest.raises(DeviceError, match="expected one of 'cpu'"):
        model.to("gpu9")
    assert model.to("cpu") is model


def test_to_refuses_shared_memory():
    model = nn.Dense(2, 1)
    view = model.weight[:1]
    with pytest.raises(DeviceError, match="cast: another tensor shares this memory"):
        model.to(dilim.float64)
    assert view.dtype is dilim.float32


# ----- state --------------------------------------------------------------------------------------


def test_state_is_a_copy_and_comes_back_in_place():
    model = Tree()
    weight = model.layers[0].weight
    state = model.state_dict()
    assert list(state) == [*NAMES, "running_mean"]
    assert not any(x.requires_grad for x in state.values())
    saved = weight.tolist()
    with dilim.no_grad():
        weight.fill_(9.0)
    assert state["layers.0.weight"].tolist() == saved
    model.load_state_dict(state)
    assert model.layers[0].weight is weight
    assert weight.tolist() == saved
    assert weight.requires_grad


def test_arrays_are_taken_too():
    model = nn.Dense(2, 1)
    model.load_state_dict(
        {"weight": np.full((2, 1), 3.0, np.float32), "bias": np.zeros(1, np.float32)}
    )
    assert model.weight.tolist() == [[3.0], [3.0]]


def test_all_that_does_not_fit_is_named_and_nothing_is_written():
    model = nn.MLP(2, [3, 1])
    state = model.state_dict()
    before = model.layers[1].weight.tolist()
    state["layers.1.weight"] = dilim.zeros((3, 1))
    state["layers.0.weight"] = dilim.zeros((4, 3))
    state["layers.1.bias"] = dilim.zeros(1, dtype="float64")
    del state["layers.0.bias"]
    state["head.weight"] = dilim.zeros(7)
    with pytest.raises(StateError) as caught:
        model.load_state_dict(state)
    assert str(caught.value) == (
        "MLP.load_state_dict: the state does not fit: missing: layers.0.bias (3,); "
        "unexpected: head.weight (7,); "
        "layers.0.weight: expected float32 (2, 3), received float32 (4, 3); "
        "layers.1.bias: expected float32 (1,), received float64 (1,)"
    )
    assert model.layers[1].weight.tolist() == before
    with pytest.raises(StateError, match=r"weight: expected float32 .*, received a list"):
        nn.Dense(1, 1, bias=False).load_state_dict({"weight": [[1.0]]})


def test_without_strict_only_common_entries_are_taken():
    model = nn.MLP(2, [3, 1])
    kept = model.layers[1].weight.tolist()
    model.load_state_dict({"layers.0.bias": dilim.ones(3), "other": dilim.ones(1)}, strict=False)
    assert model.layers[0].bias.tolist() == [1.0] * 3
    assert model.layers[1].weight.tolist() == kept
    with pytest.raises(StateError, match=r"expected float32 \(3,\), received float32 \(2,\)"):
        model.load_state_dict({"layers.0.bias": dilim.ones(2)}, strict=False)


def test_deep_copy_keeps_ties_and_is_independent():
    model = Tree()
    twin = copy.deepcopy(model)
    assert twin.shared is twin.layers[0]
    with dilim.no_grad():
        twin.layers[0].weight.fill_(0.0)
        twin.running_mean.fill_(1.0)
    assert model.layers[0].weight.tolist() != twin.layers[0].weight.tolist()
    assert model.running_mean.tolist() == [0.0, 0.0]
    assert [name for name, _ in twin.named_parameters()] == NAMES


# ----- updates by hand ----------------------------------------------------------------------------


def test_update_takes_returned_values_and_writes_in_place():
    model = nn.Dense(2, 1, init="zeros")
    weight = model.weight
    model(dilim.tensor([[1.0, 2.0]])).sum().backward()
    model.update(lambda p, g: p + 0.5 * g)
    assert model.weight is weight
    assert (weight.tolist(), model.bias.tolist()) == ([[0.5], [1.0]], [0.5])

    def ascend(p, g):
        p += 0.5 * g

    model.update(ascend)
    assert (weight.tolist(), weight.requires_grad) == ([[1.0], [2.0]], True)
    assert mode.recording
    with pytest.raises(GradientError, match=r"Dense.update: no parameter has a gradient"):
        nn.Dense(1, 1).update(ascend)


def test_gradient_ascent_of_the_likelihood_by_pairs():
    # W = W + a X^T (label - h), the classical logistic regression, gradients made by hand
    x = dilim.tensor([[1.0, -2.0], [1.0, 1.0], [1.0, 3.0]])
    label = dilim.tensor([[0.0], [1.0], [1.0]])
    model = nn.Dense(2, 1, bias=False, init="zeros")
    weight = np.zeros((2, 1))
    for _ in range(50):
        with dilim.no_grad():
            gradient = x.T @ (label - model(x).sigmoid())
        model.update_parameters([gradient], lambda p, g: p + 0.1 * g)
        h = 1.0 / (1.0 + np.exp(-x.numpy() @ weight))
        weight = weight + 0.1 * x.numpy().T.astype(np.float64) @ (label.numpy() - h)
    np.testing.assert_allclose(model.weight.numpy(), weight, rtol=1e-5)


def test_update_parameters_by_name_and_its_errors():
    model = nn.Dense(2, 1, init="zeros")
    model.update_parameters({"bias": dilim.tensor([3.0])}, lambda p, g: p - g)
    assert (model.bias.tolist(), model.weight.tolist()) == ([-3.0], [[0.0], [0.0]])
    with pytest.raises(ShapeError, match="expected 2 gradients, one per parameter, received 1"):
        model.update_parameters([dilim.ones(1)], lambda p, g: g)
    with pytest.raises(ShapeError, match="there is no parameter 'biass'"):
        model.update_parameters({"biass": dilim.ones(1)}, lambda p, g: g)
    with pytest.raises(ShapeError, match=r"of shape \(1,\) for 'bias', received \(2,\)"):
        model.update_parameters({"bias": dilim.ones(2)}, lambda p, g: g)


# ----- looks --------------------------------------------------------------------------------------


def test_repr_shows_what_is_inside():
    assert repr(nn.MLP(4, [64, 64, 2])) == "MLP(4 -> 64 -> 64 -> 2, relu, 4,610 parameters)"
    assert repr(Tree()) == (
        "Tree(\n"
        "  layers.0: Dense(2 -> 3)\n"
        "  layers.1.0: ReLU()\n"
        "  layers.1.1: Dense(3 -> 1, bias=False)\n"
        "  heads.value: Dense(3 -> 1)\n"
        ")"
    )
    outer = nn.Sequential(nn.Sequential(nn.Tanh()))
    assert repr(outer).splitlines()[2] == "    layers.0: Tanh()"
    assert repr(nn.Conv2d(1, 2, 3, stride=2, padding="same", bias=False)) == (
        "Conv2d(1 -> 2, 3, stride=2, padding='same', bias=False)"
    )


def test_summary_with_output_shapes():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.5), nn.Dense(128, 2),
    )  # fmt: skip
    model.seen = dilim.zeros(3)
    assert model.summary((1, 3, 8, 8)) == (
        "layer                                        output shape  parameters\n"
        "---------------------------------------------------------------------\n"
        "Sequential                                   (1, 2)                 -\n"
        "layers.0: Conv2d(3 -> 8, 3, padding='same')  (1, 8, 8, 8)         224\n"
        "layers.1: ReLU()                             (1, 8, 8, 8)           -\n"
        "layers.2: MaxPool2d(2)                       (1, 8, 4, 4)           -\n"
        "layers.3: Flatten()                          (1, 128)               -\n"
        "layers.4: Dropout(0.5)                       (1, 128)               -\n"
        "layers.5: Dense(128 -> 2)                    (1, 2)               258\n"
        "---------------------------------------------------------------------\n"
        "482 parameters (1.9 kB), 3 in buffers (12 bytes)"
    )
    assert model.training
    assert model[4].training


def test_summary_without_a_pass_and_for_integers():
    assert nn.Dense(1000, 1000).summary().splitlines()[-1] == "1,001,000 parameters (4.0 MB)"
    text = nn.Sequential(nn.Embedding(5, 4), nn.Dense(4, 2)).summary((7, 3), dtype="int64")
    assert "layers.0: Embedding(5 -> 4)  (7, 3, 4)" in text
    with pytest.raises(ShapeError, match="expected inputs of size 4"):
        nn.Dense(4, 2).summary((1, 3))
