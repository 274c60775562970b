import functools
import math

import numpy as np
import pytest

import dilim
from dilim import nn
from dilim.errors import ShapeError
from dilim.nn import init

SHAPE = (200, 100)
COUNT = SHAPE[0] * SHAPE[1]
BOUNDS = {
    "fan_in": 1.0 / math.sqrt(200),
    "xavier": math.sqrt(6.0 / 300),
    "kaiming": math.sqrt(6.0 / 200),
    "micrograd": 1.0,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_uniform_initializers_fill_their_interval(name):
    layer = nn.Dense(*SHAPE, init=name, generator=dilim.Generator(1))
    weight, bound = layer.weight.numpy().astype(np.float64), BOUNDS[name]
    assert np.abs(weight).max() <= bound * (1 + 1e-6)
    # of 20,000 draws the largest is below 0.999 bound with probability 2e-9
    assert np.abs(weight).max() > 0.999 * bound
    deviation = bound / math.sqrt(3.0)
    assert abs(weight.mean()) < 5.0 * deviation / math.sqrt(COUNT)
    assert abs(weight.std() / deviation - 1.0) < 0.02


def test_bias_follows_fan_in_and_is_zero_otherwise():
    for name in init.INITIALIZERS:
        bias = nn.Dense(*SHAPE, init=name, generator=dilim.Generator(2)).bias.numpy()
        if name == "fan_in":
            assert 0.9 * BOUNDS["fan_in"] < np.abs(bias).max() <= BOUNDS["fan_in"]
        else:
            assert not bias.any()


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (3, 2, 2, 2)])
def test_orthogonal_has_orthonormal_rows_or_columns(shape):
    weight = init.orthogonal(shape, generator=dilim.Generator(0), dtype="float64")
    matrix = weight.numpy().reshape(shape[0], -1)
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    np.testing.assert_allclose(small @ small.T, np.eye(len(small)), atol=1e-12)


def test_orthogonal_matrices_have_no_preferred_sign():
    corners = [
        init.orthogonal((2, 2), generator=generator).tolist()[0][0]
        for generator in dilim.Generator(0).split(200)
    ]
    assert 60 < sum(corner > 0.0 for corner in corners) < 140


def test_orthogonal_gain_as_a_function():
    layer = nn.Dense(4, 4, init=functools.partial(init.orthogonal, gain=2.0), dtype="float64")
    np.testing.assert_allclose(
        layer.weight.numpy() @ layer.weight.numpy().T, 4.0 * np.eye(4), atol=1e-12
    )
    assert not layer.bias.numpy().any()


@pytest.mark.parametrize("name", init.INITIALIZERS)
def test_every_initializer_repeats_with_its_generator(name):
    make = init.INITIALIZERS[name]
    first, second = (make((4, 3), generator=dilim.Generator(5)).tolist() for _ in range(2))
    assert first == second
    other = make((4, 3), generator=dilim.Generator(6)).tolist()
    assert (first == other) == (name == "zeros")
    assert make((4, 3), dtype="float64").dtype.name == "float64"


def test_fan_in_of_a_convolution_counts_its_window():
    layer = nn.Conv2d(8, 16, 5, generator=dilim.Generator(0))
    bound = 1.0 / math.sqrt(8 * 25)
    assert 0.99 * bound < np.abs(layer.weight.numpy()).max() <= bound
    assert np.abs(layer.bias.numpy()).max() <= bound
    assert init.fans_of((16, 8, 5, 5)) == (200, 400)
    with pytest.raises(ShapeError, match="2 or 4 axes, received shape"):
        init.fans_of((3,))
    with pytest.raises(ShapeError, match="at least 2 axes"):
        init.orthogonal((3,))


def test_mlp_passes_init_and_generator_on():
    model = nn.MLP(3, [50, 50, 1], init="micrograd", generator=dilim.Generator(0))
    for layer in model.layers:
        assert 0.9 < np.abs(layer.weight.numpy()).max() <= 1.0
        assert not layer.bias.numpy().any()
    twin = nn.MLP(3, [50, 50, 1], init="micrograd", generator=dilim.Generator(0))
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_mlp_outputs_have_the_scale_that_fan_in_gives():
    # PyTorch's Linear: weight and bias have variance 1 / (3 F); through two relu layers of a
    # 4-64-64-2 network this gives outputs of standard deviation about 0.2
    x = dilim.Generator(0).normal((500, 4))
    spread = [
        nn.MLP(4, [64, 64, 2], generator=generator)(x).numpy().std()
        for generator in dilim.Generator(1).split(20)
    ]
    assert 0.05 < np.mean(spread) < 0.25


def test_the_default_generator_serves_where_none_is_given():
    dilim.seed(8)
    first = nn.MLP(2, [3, 1]).state_dict()
    dilim.seed(8)
    second = nn.MLP(2, [3, 1]).state_dict()
    assert all(first[name].tolist() == second[name].tolist() for name in first)
