"""A compiled scalar model trains with the bits of the interpreted one."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dilim
from dilim import scalar
from dilim.errors import ShapeError, UnsupportedError
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
    optimizer.zero_grad()
    result = loss([model(row) for row in samples], targets)
    result.backward()
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


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_transcendental_activations_differ_in_last_places_only(activation):
    loss = scalar.loss.mse
    model, optimizer, compiled = pair((3, 4, 1), activation, "sgd", loss, 1)
    samples = np.random.default_rng(0).standard_normal((9, 3))
    targets = np.ones(9)
    for _ in range(20):
        want = interpreted_step(model, optimizer, loss, samples.tolist(), targets.tolist())
        assert math.isclose(compiled.step(samples, targets), want, rel_tol=1e-12)


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

    model = scalar.MLP(2, [3, 2], seed=0)
    single = scalar.MLP(2, [1], seed=0)
    with pytest.raises(UnsupportedError, match="one output, received 2 outputs"):
        dilim.compile(model)
    with pytest.raises(UnsupportedError, match="Neuron or MLP, received Own"):
        dilim.compile(Own(2, [1]))
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
    with pytest.raises(ValueError, match="must be -1 or 1"):
        hinge.step([[1.0, 2.0]], [0.0])
