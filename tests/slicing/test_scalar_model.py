"""A compiled scalar model trains with the bits of the interpreted one."""

import math
import random
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dilim
from dilim import scalar
from dilim.errors import ShapeError, StateError, UnsupportedError
from dilim.slicing import scalar_code

OPTIMIZERS = {
    "sgd": lambda parameters: scalar.SGD(parameters, 0.05),
    "momentum": lambda parameters: scalar.SGD(parameters, 0.05, momentum=0.9),
    "adam": lambda parameters: scalar.Adam(parameters, 0.01),
}


def pair(sizes, activation, kind, loss, seed):
    """The same model twice: interpreted with its optimiser, and compiled."""
    model = scalar.MLP(sizes[0], sizes[1:], activation, seed=seed)
    twin = scalar.MLP(sizes[0], sizes[1:], activation, seed=seed)
    optimizer = OPTIMIZERS[kind](model.parameters())
    compiled = dilim.compile(twin, loss=loss, optimizer=OPTIMIZERS[kind](twin.parameters()))
    return model, optimizer, compiled


def interpreted_step(model, optimizer, loss, samples, targets):
    (optimizer or model).zero_grad()
    result = loss([model(row) for row in samples], targets)
    result.backward()
    if optimizer:
        optimizer.step()
    return result.data


def numbers(model):
    return [(p.data, p.grad, p.has_grad) for p in model.parameters()]


@settings(max_examples=40)
@given(
    st.sampled_from([(1, 1), (3, 4, 4, 1), (2, 5, 3, 1)]),
    st.sampled_from(sorted(OPTIMIZERS)),
    st.sampled_from([scalar.loss.mse, scalar.loss.hinge]),
    st.integers(1, 19),
    st.integers(0, 3),
)
# C's pow rounds the square of an error of the third step otherwise than a product is rounded.
@example((2, 5, 3, 1), "sgd", scalar.loss.mse, 15, 0)
def test_relu_models_have_the_same_bits_after_every_step(sizes, kind, loss, count, seed):
    model, optimizer, compiled = pair(sizes, "relu", kind, loss, seed)
    rng = np.random.default_rng(seed)
    samples = rng.standard_normal((count, sizes[0]))
    targets = np.sign(rng.standard_normal(count))
    for _ in range(4):
        want = interpreted_step(model, optimizer, loss, samples.tolist(), targets.tolist())
        assert compiled.step(samples, targets) == want
        assert numbers(compiled.model) == numbers(model)
    assert compiled.predict(samples) == [model(row).data for row in samples.tolist()]
    assert numbers(compiled.model) == numbers(model)


STEPS = {
    "": lambda parameters: None,
    "momentum": lambda parameters: scalar.SGD(parameters, 1.0, momentum=0.5),
    "fast": lambda parameters: scalar.SGD(parameters, 1e300),
    "adam": lambda parameters: scalar.Adam(parameters, 0.3, (0.0, 0.25), 1e-300),
}
EDGES = [0.0, -0.0, 5e-324, -2e-308, 1e-160, 1e160, -1.7e308, math.inf, -math.inf, math.nan]
NUMBERS = st.floats(-3, 3) | st.sampled_from(EDGES) | st.floats()


@st.composite
def programs(draw):
    """A model to make, a loss, samples, targets, and what is done one after the other."""
    size, seed = draw(st.integers(1, 5)), draw(st.integers(0, 9))
    activation = draw(st.sampled_from(["relu", "linear"]))
    init = draw(st.sampled_from(["fan_in", "micrograd"]))
    layers = draw(st.none() | st.lists(st.integers(1, 4), max_size=2))

    def make():
        if layers is None:
            return scalar.Neuron(size, activation, init=init, generator=random.Random(seed))
        return scalar.MLP(size, [*layers, 1], activation, init=init, seed=seed)

    loss = draw(st.sampled_from([scalar.loss.mse, scalar.loss.hinge]))
    count = draw(st.integers(1, 34))
    generator = random.Random(seed)
    samples = [[generator.gauss(0.0, 1.0) for _ in range(size)] for _ in range(count)]
    targets = [generator.choice([-1.0, 1.0]) for _ in range(count)]
    for row, column, number in draw(st.lists(st.tuples(*[st.integers(0, 99)] * 2, NUMBERS))):
        samples[row % count][column % size] = number
        if loss is scalar.loss.mse:
            targets[column % count] = number
    actions = st.sampled_from(["step", "train", "predict", "by hand"])
    changes = st.tuples(st.integers(0, 99), NUMBERS)
    return make, loss, samples, targets, draw(st.lists(actions | changes, min_size=1, max_size=5))


def exactly(numbers):
    """Bits of numbers; those of a NaN do not count."""
    return [b"nan" if number != number else struct.pack("d", number) for number in numbers]


def everything(model, optimizer):
    states = (getattr(optimizer, name, []) for name in ("_velocities", "_means", "_squares"))
    grads = [p.grad for p in model.parameters()]
    return exactly([*(p.data for p in model.parameters()), *grads, *(x for s in states for x in s)])


@settings(max_examples=120)
@given(programs(), st.sampled_from(sorted(STEPS)))
def test_any_model_has_the_same_bits_whatever_happens_to_it(program, kind):
    make, loss, samples, targets, actions = program
    model, twin = make(), make()
    optimizer, other = STEPS[kind](model.parameters()), STEPS[kind](twin.parameters())
    compiled = dilim.compile(twin, loss=loss, optimizer=other)
    for action in actions:
        if action == "step":
            want = interpreted_step(model, optimizer, loss, samples, targets)
            assert exactly([compiled.step(samples, targets)]) == exactly([want])
        elif action == "train":
            want = [interpreted_step(model, optimizer, loss, samples, targets) for _ in range(3)]
            assert exactly(compiled.train(samples, targets, 3)) == exactly(want)
        elif action == "predict":
            want = [model(row).data for row in samples]
            assert exactly(compiled.predict(samples)) == exactly(want)
        elif action == "by hand":
            for trained, steps in ((model, optimizer), (twin, other)):
                interpreted_step(trained, steps, loss, samples, targets)
        else:
            for trained in (model, twin):
                parameters = trained.parameters()
                parameters[action[0] % len(parameters)].data = action[1]
        assert everything(twin, other) == everything(model, optimizer)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_transcendental_activations_differ_in_last_places_only(activation):
    loss = scalar.loss.mse
    model, optimizer, compiled = pair((3, 4, 1), activation, "sgd", loss, 1)
    samples = np.random.default_rng(0).standard_normal((9, 3))
    targets = np.ones(9)
    for _ in range(20):
        want = interpreted_step(model, optimizer, loss, samples.tolist(), targets.tolist())
        assert math.isclose(compiled.step(samples, targets), want, rel_tol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_transcendental_activations_are_near_those_of_python(activation):
    neuron = scalar.Neuron(1, activation)
    neuron.weights[0].data, neuron.bias.data = 1.0, 0.0
    generator = random.Random(0)
    edges = [0.0, 5e-324, 1e-300, 22.0, 36.8, 709.9, 745.2, 1e308, math.inf]
    samples = [generator.gauss(0.0, width) for width in (1.0, 30.0) for _ in range(3000)]
    samples += [sign * edge for edge in edges for sign in (1.0, -1.0)]
    got = dilim.compile(neuron).predict([[sample] for sample in samples])
    for sample, number in zip(samples, got, strict=True):
        want = neuron([sample]).data
        assert abs(number - want) <= 4 * math.ulp(want), sample
    assert math.isnan(dilim.compile(neuron)([math.nan]))


def test_many_steps_in_one_call_are_the_same_steps():
    loss = scalar.loss.mse
    samples, targets = [[0.5, -1.0], [2.0, 0.25], [1.0, 1.0]], [1.0, -1.0, 0.5]
    for kind in OPTIMIZERS:
        model, optimizer, compiled = pair((2, 3, 1), "relu", kind, loss, 4)
        want = [interpreted_step(model, optimizer, loss, samples, targets) for _ in range(30)]
        assert compiled.train(samples, targets, steps=10) == want[:10]
        assert compiled.train(samples, targets, steps=20) == want[10:]
        assert numbers(compiled.model) == numbers(model)


def test_what_happens_between_steps_counts():
    model = scalar.MLP(2, [3, 1], seed=0)
    twin = scalar.MLP(2, [3, 1], seed=0)
    optimizer, mine = scalar.SGD(model.parameters(), 0.1), scalar.SGD(twin.parameters(), 0.1)
    compiled = dilim.compile(twin, optimizer=mine)
    samples, targets = np.array([[1.0, 2.0]]), np.array([0.5])
    for rate in (0.1, 0.01):
        for one, other in ((model, optimizer), (twin, mine)):
            other.learning_rate = rate
            one.parameters()[0].data = 1  # an int: no float object
            one.parameters()[1].data = one.parameters()[2].data
        kept = twin.parameters()[1].data
        want = interpreted_step(model, optimizer, scalar.loss.mse, samples.tolist(), [0.5])
        assert compiled.step(samples, targets) == want
        assert numbers(twin) == numbers(model)
        assert kept == kept + 0.0  # a float that somebody else holds is not changed
    samples[0, 0] = 3.0  # the array is read again
    want = interpreted_step(model, optimizer, scalar.loss.mse, samples.tolist(), [0.5])
    assert compiled.step(samples, targets) == want


def test_settings_of_the_optimizer_may_change():
    loss, samples, targets = scalar.loss.mse, [[0.5, -1.0], [2.0, 0.25]], [1.0, -1.0]
    for kind, name, values in (
        ("sgd", "momentum", (0.9, 0.0, 0.5)),
        ("sgd", "learning_rate", (np.float32(0.1), np.float64(0.1), 1)),
        ("momentum", "momentum", (0.0, np.float32(0.3), 0.7)),
        ("adam", "betas", ((0.0, 0.5), (np.float32(0.9), 0.0))),
        ("adam", "learning_rate", (np.float32(0.1), 1)),
        ("adam", "epsilon", (1.0, np.float32(0.1), 0.0)),
    ):
        model, optimizer, compiled = pair((2, 3, 1), "relu", kind, loss, 4)
        for value in values:
            for each in (optimizer, compiled.optimizer):
                setattr(each, name, value)
            for _ in range(2):
                want = interpreted_step(model, optimizer, loss, samples, targets)
                assert compiled.step(samples, targets) == want
            assert everything(compiled.model, compiled.optimizer) == everything(model, optimizer)
        assert all(type(p.data) is float for p in model.parameters())


def test_gradients_of_zero_without_epsilon():
    """0 / 0 is NaN."""
    loss = scalar.loss.mse
    model, optimizer, compiled = pair((2, 3, 1), "relu", "adam", loss, 4)
    optimizer.epsilon = compiled.optimizer.epsilon = 0.0
    want = interpreted_step(model, optimizer, loss, [[-9.0, 0.0]], [1.0])
    assert compiled.step([[-9.0, 0.0]], [1.0]) == want
    assert everything(compiled.model, compiled.optimizer) == everything(model, optimizer)
    assert any(math.isnan(p.data) for p in model.parameters())


def test_no_steps_change_nothing():
    _, _, compiled = pair((2, 3, 1), "relu", "adam", scalar.loss.mse, 0)
    before = numbers(compiled.model)
    assert compiled.train([[1.0, 2.0]], [1.0], steps=0) == []
    assert compiled.predict([]) == []
    assert numbers(compiled.model) == before
    assert compiled.optimizer._step_count == 0


def replaced_weight(model, optimizer):
    weights = model.layers[0].neurons[0].weights
    weights[1] = scalar.Value(weights[1].data)


def replaced_bias(model, optimizer):
    neuron = model.layers[1].neurons[0]
    neuron.bias = scalar.Value(neuron.bias.data)


def swapped_weights(model, optimizer):
    model.layers[0].neurons[0].weights.reverse()


def other_activation(model, optimizer):
    model.layers[0].neurons[1].activation = "linear"


def replaced_neuron(model, optimizer):
    model.layers[0].neurons[0] = scalar.Neuron(2)


def one_neuron_less(model, optimizer):
    model.layers[0].neurons.pop()


def replaced_layer(model, optimizer):
    model.layers[-1] = scalar.Layer(3, 1, "linear")


def one_layer_more(model, optimizer):
    model.layers.append(scalar.Layer(1, 1))


def frozen_parameter(model, optimizer):
    optimizer.parameters.pop()


@pytest.mark.parametrize(
    "change",
    [
        *(replaced_weight, replaced_bias, swapped_weights, other_activation, replaced_neuron),
        *(one_neuron_less, replaced_layer, one_layer_more, frozen_parameter),
    ],
    ids=lambda change: change.__name__,
)
def test_a_model_of_other_parts_is_refused(change):
    model = scalar.MLP(2, [3, 1], seed=0)
    optimizer = scalar.SGD(model.parameters(), 0.1)
    compiled = dilim.compile(model, optimizer=optimizer)
    compiled.step([[1.0, 2.0]], [0.5])
    change(model, optimizer)
    before = numbers(model)
    for use in (
        lambda: compiled.step([[1.0, 2.0]], [0.5]),
        lambda: compiled.train([[1.0, 2.0]], [0.5], steps=2),
        lambda: compiled.predict([[1.0, 2.0]]),
    ):
        with pytest.raises(StateError, match="replaced since it was compiled"):
            use()
    assert numbers(model) == before


def test_the_same_parts_in_another_list_are_no_change():
    model, optimizer, compiled = pair((2, 3, 1), "relu", "sgd", scalar.loss.mse, 4)
    twin = compiled.model
    samples, targets = [[0.5, -1.0], [2.0, 0.25]], [1.0, -1.0]
    for _ in range(2):
        twin.layers = list(twin.layers)
        twin.layers[0].neurons[1].weights = list(twin.layers[0].neurons[1].weights)
        twin.layers[0].neurons[0].activation = "".join(["re", "lu"])
        compiled.optimizer.parameters = twin.parameters()
        want = interpreted_step(model, optimizer, scalar.loss.mse, samples, targets)
        assert compiled.step(samples, targets) == want
        assert numbers(twin) == numbers(model)
    twin.layers[0].neurons[1].weights.pop()
    with pytest.raises(StateError, match="replaced since it was compiled"):
        compiled.step(samples, targets)


def test_numbers_that_are_no_floats_are_refused():
    _, _, compiled = pair((2, 3, 1), "relu", "sgd", scalar.loss.mse, 4)
    first, second, *_ = compiled.model.parameters()
    first.data, second.data = 1, np.float32(0.5)
    with pytest.raises(TypeError, match=r"expected a float .*, received a float32"):
        compiled.step([[0.5, -1.0]], [1.0])
    assert (type(first.data), type(second.data)) == (int, np.float32)


def test_a_float_that_others_hold_keeps_its_value():
    model = scalar.MLP(1, [1], seed=0)
    held = [p.data for p in model.parameters()]
    before = list(map(repr, held))
    dilim.compile(model, optimizer=scalar.SGD(model.parameters(), 0.5)).step([[1.0]], [9.0])
    assert list(map(repr, held)) == before
    assert [p.data for p in model.parameters()] != held


def test_overflow_and_nan_are_those_of_the_interpreted_model():
    loss = scalar.loss.mse
    for value in (1e200, math.inf, math.nan):
        model, optimizer, compiled = pair((1, 2, 1), "relu", "sgd", loss, 0)
        for _ in range(3):
            want = interpreted_step(model, optimizer, loss, [[value], [1.0]], [0.0, 1.0])
            got = compiled.step([[value], [1.0]], [0.0, 1.0])
            assert repr(got) == repr(want)
            assert repr(numbers(compiled.model)) == repr(numbers(model))


def test_another_order_of_samples_is_noticed(monkeypatch):
    """Adding up from the first sample on gives other bits: the comparison above can fail."""
    monkeypatch.setattr(scalar_code, "LANE_ORDER", tuple(range(scalar_code.LANES)))
    loss = scalar.loss.mse
    model, optimizer, compiled = pair((3, 4, 4, 1), "relu", "sgd", loss, 0)
    samples = np.random.default_rng(1).standard_normal((8, 3))
    targets = np.ones(8)
    interpreted_step(model, optimizer, loss, samples.tolist(), targets.tolist())
    compiled.step(samples, targets)
    assert numbers(compiled.model) != numbers(model)


def test_what_cannot_be_compiled_is_named():
    class Own(scalar.MLP):
        pass

    class OwnNeuron(scalar.Neuron):
        pass

    model = scalar.MLP(2, [3, 2], seed=0)
    single = scalar.MLP(2, [1], seed=0)
    with pytest.raises(UnsupportedError, match="one output, received 2 outputs"):
        dilim.compile(model)
    with pytest.raises(UnsupportedError, match="Neuron or MLP, received Own"):
        dilim.compile(Own(2, [1]))
    mixed = scalar.MLP(2, [3, 1], seed=0)
    mixed.layers[0].neurons[1] = OwnNeuron(2)
    with pytest.raises(UnsupportedError, match="made of Layer and Neuron, received one with Own"):
        dilim.compile(mixed)
    with pytest.raises(UnsupportedError, match=r"a model of dilim.scalar, received int"):
        dilim.compile(3)
    with pytest.raises(UnsupportedError, match="exactly model"):
        dilim.compile(single, optimizer=scalar.SGD(model.parameters(), 0.1))
    with pytest.raises(UnsupportedError, match=r"loss=dilim.scalar.loss.mse or hinge"):
        dilim.compile(single, loss=max)
    compiled = dilim.compile(single)
    with pytest.raises(ShapeError, match="samples of 2 numbers each"):
        compiled.step([[1.0]], [1.0])
    with pytest.raises(ShapeError, match="as many targets as samples"):
        compiled.step([[1.0, 2.0]], [1.0, 2.0])
    hinge = dilim.compile(single, loss=scalar.loss.hinge)
    with pytest.raises(ValueError, match=r"must be -1 or 1, got 0\.0; turn"):
        hinge.step([[1.0, 2.0]], [0.0])
