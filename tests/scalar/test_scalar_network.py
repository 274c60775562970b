"""Neuron, Layer, MLP, losses and optimisers."""

import copy
import math
import pickle
import random

import numpy as np
import pytest

from dilim.errors import GradientError
from dilim.scalar import MLP, SGD, Adam, Layer, Neuron, Value, loss
from dilim.scalar.network import Module

INPUTS = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
TARGETS = [1.0, -1.0, -1.0, 1.0]


def numbers(module):
    return [parameter.data for parameter in module.parameters()]


# ---- network ------------------------------------------------------------------------------------


def test_neuron_by_hand():
    neuron = Neuron(2, "relu")
    neuron.weights[0].data, neuron.weights[1].data, neuron.bias.data = 2.0, -3.0, 0.5
    x, y = Value(4.0), Value(1.0)
    out = neuron([x, y])
    assert out.data == 5.5
    out.backward()
    assert (x.grad, y.grad) == (2.0, -3.0)
    assert [p.grad for p in neuron.parameters()] == [4.0, 1.0, 1.0]
    assert neuron([-4.0, 1.0]).data == 0.0
    assert neuron.forward([4.0, 1.0]).data == 5.5


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("linear", -2.0),
        ("relu", 0.0),
        ("tanh", math.tanh(-2.0)),
        ("sigmoid", 1 / (1 + math.exp(2.0))),
    ],
)
def test_activations(activation, expected):
    neuron = Neuron(1, activation)
    neuron.weights[0].data, neuron.bias.data = 1.0, 0.0
    assert neuron([-2.0]).data == pytest.approx(expected)
    assert repr(neuron) == f"Neuron(1, {activation})"


def test_mlp_builds_one_node_per_operation():
    model = MLP(3, [4, 4, 1], seed=0)
    assert len(model.parameters()) == 41
    out = model([1.0, 2.0, 3.0])
    ops = [node.op for node in out.graph()]
    assert ops.count("*") == ops.count("+") == 3 * 4 + 4 * 4 + 4
    assert ops.count("relu") == 8
    assert ops.count("constant") == 3
    assert ops.count("") == 41
    assert len(ops) == 2 * 32 + 8 + 3 + 41


def test_mlp_forward_by_hand():
    model = MLP(2, [3, 2], activation="tanh", seed=4)
    hidden = [
        math.tanh(n.bias.data + n.weights[0].data * 0.5 + n.weights[1].data * -2.0)
        for n in model.layers[0].neurons
    ]
    expected = [
        n.bias.data + sum(w.data * h for w, h in zip(n.weights, hidden, strict=True))
        for n in model.layers[1].neurons
    ]
    outputs = model([0.5, -2.0])
    assert [value.data for value in outputs] == pytest.approx(expected, rel=1e-14)
    assert [value.data for value in model.forward([Value(0.5), -2])] == pytest.approx(expected)


def test_one_output_is_one_value():
    assert isinstance(MLP(2, [3, 1])([1.0, 2.0]), Value)
    assert isinstance(Layer(2, 1)([1.0, 2.0]), list)


def test_parameters_and_names():
    model = MLP(3, [4, 4, 1])
    assert repr(model) == "MLP(3 -> 4 -> 4 -> 1, relu, 41 parameters)"
    assert [repr(layer) for layer in model.layers] == [
        "Layer(3 -> 4, relu)",
        "Layer(4 -> 4, relu)",
        "Layer(4 -> 1, linear)",
    ]
    first = model.layers[0].neurons[0]
    assert model.parameters()[:4] == [*first.weights, first.bias]
    with pytest.raises(NotImplementedError, match=r"Module does not define parameters"):
        Module().parameters()


def test_fan_in_init_stays_in_its_bounds():
    model = MLP(9, [40, 2], seed=3)
    inner, last = model.layers
    for layer, bound in ((inner, 1 / 3), (last, 1 / math.sqrt(40))):
        found = numbers(layer)
        assert max(map(abs, found)) <= bound
        assert max(map(abs, found)) > 0.9 * bound
        assert any(neuron.bias.data != 0.0 for neuron in layer.neurons)


def test_micrograd_init_draws_as_micrograd_does():
    model = MLP(2, [3, 1], init="micrograd", seed=7)
    generator = random.Random(7)
    expected = [[generator.uniform(-1, 1) for _ in range(n)] for n in (2, 2, 2, 3)]
    neurons = [neuron for layer in model.layers for neuron in layer.neurons]
    assert [[w.data for w in neuron.weights] for neuron in neurons] == expected
    assert [neuron.bias.data for neuron in neurons] == [0.0] * 4


def test_seed_is_the_models_own():
    random.seed(1)
    state = random.getstate()
    first, second = MLP(2, [3, 1], seed=5), MLP(2, [3, 1], seed=5)
    assert numbers(first) == numbers(second)
    assert numbers(first) != numbers(MLP(2, [3, 1], seed=6))
    assert numbers(MLP(2, [3, 1])) != numbers(MLP(2, [3, 1]))
    assert random.getstate() == state


def test_zero_grad_and_copies():
    model = MLP(2, [2, 1], seed=0)
    model([1.0, 2.0]).backward()
    assert any(p.grad != 0.0 for p in model.parameters())
    assert all(p.has_grad for p in model.parameters())
    model.zero_grad()
    assert not any(p.grad or p.has_grad for p in model.parameters())
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert numbers(twin) == numbers(model)
        assert not set(twin.parameters()) & set(model.parameters())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLP(3, [4, 1])([1.0, 2.0]), r"MLP\(3 -> 4 -> 1, .*\): expected 3 inputs, got 2"),
        (lambda: Neuron(2)([1.0]), r"Neuron\(2, relu\): expected 2 inputs, got 1"),
        (lambda: MLP(3, []), r"MLP: layer_sizes is empty, expected such as \[16, 16, 1\]"),
        (lambda: MLP(0, [1]), "Neuron: input_size must be a whole number of at least 1, got 0"),
        (lambda: MLP(2, [0]), "Layer: output_size must be a whole number of at least 1, got 0"),
        (lambda: MLP(2, [2.0]), "Layer: output_size must be .*, got 2.0"),
        (lambda: MLP(2, [1, 1], "gelu"), "expected one of linear, relu, tanh, sigmoid, got 'gelu'"),
        (lambda: MLP(2, [1], init="zero"), "init: expected one of fan_in, micrograd, got 'zero'"),
    ],
)
def test_wrong_networks(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---- losses -------------------------------------------------------------------------------------


def test_mse():
    predicted = [Value(2.0), Value(5.0), Value(-1.0)]
    error = loss.mse(predicted, [1.0, 3, Value(-1.0)])
    error.backward()
    assert error.data == pytest.approx(5 / 3)
    assert [p.grad for p in predicted] == pytest.approx([2 / 3, 4 / 3, 0.0])


def test_the_square_of_an_error_is_correctly_rounded():
    errors = [-0.75769600197873, *(random.Random(seed).gauss(0.0, 1.0) for seed in range(5000))]
    assert all(loss.mse([Value(error)], [0.0]).data == error * error for error in errors)


def test_hinge():
    predicted = [Value(0.5), Value(3.0), Value(0.25), Value(-2.0)]
    error = loss.hinge(predicted, [1, 1, -1, -1.0])
    error.backward()
    assert error.data == pytest.approx((0.5 + 0 + 1.25 + 0) / 4)
    assert [p.grad for p in predicted] == [-0.25, 0.0, 0.25, 0.0]


@pytest.mark.parametrize("function", [loss.mse, loss.hinge])
def test_wrong_losses(function):
    name = function.__name__
    with pytest.raises(ValueError, match=f"{name}: .* got 1 predictions and 2 targets"):
        function([Value(1.0)], [1.0, 1.0])
    with pytest.raises(ValueError, match=f"{name}: .* at least one, got 0 predictions"):
        function([], [])
    with pytest.raises(ValueError, match=rf"{name}: .* got one Value; write \[value\]"):
        function(Value(1.0), [1.0])


def test_hinge_refuses_other_labels():
    with pytest.raises(ValueError, match=r"must be -1 or 1, got 0; turn 0 and 1 into 2 \* target"):
        loss.hinge([Value(1.0), Value(1.0)], [1, 0])


# ---- optimisers ---------------------------------------------------------------------------------


def descend(optimizer, parameter, steps):
    """Minimise 3 p^2 and return the numbers on the way."""
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        (3 * parameter * parameter).backward()
        optimizer.step()
        path.append(parameter.data)
    return path


def test_sgd():
    p = Value(2.0)
    assert descend(SGD([p], learning_rate=0.1), p, 2) == pytest.approx([0.8, 0.32])
    assert SGD([p]).learning_rate == 0.01


def test_sgd_with_momentum():
    p = Value(2.0)
    # velocity 12, then 0.5 * 12 + 6 * 1.88 = 17.28
    path = descend(SGD([p], learning_rate=0.01, momentum=0.5), p, 2)
    assert path == pytest.approx([1.88, 1.88 - 0.1728], rel=1e-14)


def test_adam():
    p = Value(2.0)
    expected, x, mean, square = [], 2.0, 0.0, 0.0
    for t in range(1, 6):
        g = 6 * x
        mean = 0.9 * mean + 0.1 * g
        square = 0.999 * square + 0.001 * g * g
        x -= 0.05 * (mean / (1 - 0.9**t)) / (math.sqrt(square / (1 - 0.999**t)) + 1e-8)
        expected.append(x)
    assert descend(Adam([p], learning_rate=0.05), p, 5) == pytest.approx(expected, rel=1e-14)
    assert expected[0] == pytest.approx(2.0 - 0.05)
    default = Adam([p])
    assert (default.learning_rate, default.betas, default.epsilon) == (1e-3, (0.9, 0.999), 1e-8)


@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_settings_of_numpy_leave_parameters_floats(optimizer):
    results = []
    for rate in (np.float32(0.1), float(np.float32(0.1))):
        p = Value(2.0)
        results.append(descend(optimizer([p], learning_rate=rate), p, 3))
        assert type(p.data) is float
    assert results[0] == results[1]


def test_adam_without_epsilon_divides_zero_by_zero():
    parameters = [Value(1.0), Value(2.0)]
    parameters[1].grad = 1.0
    Adam(parameters, learning_rate=0.5, epsilon=0.0).step()
    assert math.isnan(parameters[0].data)
    assert parameters[1].data == 1.5


@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_step_without_gradients(optimizer):
    p = Value(1.0)
    with pytest.raises(GradientError, match=r"step: no parameter has a gradient; call loss"):
        optimizer([p]).step()
    p.grad = 2.0  # by hand is fine
    optimizer([p]).step()
    assert p.data < 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD([]), "SGD: expected parameters to train, got none"),
        (lambda: Adam([Value(1.0)], 0.0), "Adam: learning_rate must be above 0, got 0.0"),
        (lambda: SGD([Value(1.0)], math.nan), "SGD: learning_rate must be above 0, got nan"),
        (lambda: SGD([Value(1.0)], momentum=1.0), "momentum must be at least 0 and below 1, got 1"),
        (lambda: Adam([Value(1.0)], betas=(0.9, 1.0)), r"betas must be .*, got \(0.9, 1.0\)"),
    ],
)
def test_wrong_optimizers(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---- learning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("init", ["fan_in", "micrograd"])
def test_error_falls(activation, init):
    model = MLP(3, [4, 4, 1], activation=activation, init=init, seed=2)
    optimizer = SGD(model.parameters(), learning_rate=0.05)
    errors = []
    for _ in range(50):
        error = loss.mse([model(row) for row in INPUTS], TARGETS)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        errors.append(error.data)
    assert errors[-1] < 0.8 * errors[0]


def test_adam_learns_the_four_points():
    model = MLP(3, [4, 4, 1], activation="tanh", seed=0)
    optimizer = Adam(model.parameters(), learning_rate=0.05)
    for _ in range(100):
        error = loss.mse([model(row) for row in INPUTS], TARGETS)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    assert error.data < 0.01
