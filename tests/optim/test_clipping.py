import math

import numpy as np
import pytest

import dilim
from dilim import nn, optim
from dilim.errors import NonFiniteError


def with_gradients(*gradients, dtype="float64"):
    parameters = []
    for g in gradients:
        p = dilim.zeros(np.shape(g), dtype=dtype, requires_grad=True)
        p.grad = dilim.tensor(g, dtype=dtype)
        parameters.append(p)
    return parameters


def test_norm_is_returned_and_all_gradients_scaled():
    parameters = with_gradients([3.0, 0.0], [[4.0]])
    parameters.append(dilim.ones(2, requires_grad=True))
    norm = optim.clip_grad_norm(parameters, 2.0)
    assert norm.item() == 5.0
    np.testing.assert_allclose(parameters[0].grad.numpy(), [1.2, 0.0], rtol=1e-12)
    np.testing.assert_allclose(parameters[1].grad.numpy(), [[1.6]], rtol=1e-12)
    assert parameters[2].grad is None
    assert optim.clip_grad_norm(parameters, 2.0 + 1e-9).item() == pytest.approx(2.0, rel=1e-12)
    assert parameters[0].grad.tolist()[0] == pytest.approx(1.2, rel=1e-12)


def test_gradients_within_the_limit_keep_their_bits():
    parameters = with_gradients([0.1, 0.2], dtype="float32")
    before = parameters[0].grad.tolist()
    optim.clip_grad_norm(parameters, 1.0)
    assert parameters[0].grad.tolist() == before


def test_a_norm_whose_squares_overflow_is_right():
    parameters = with_gradients([3e30, 4e30], dtype="float32")
    assert optim.clip_grad_norm(parameters, 1.0).item() == pytest.approx(5e30, rel=1e-6)
    np.testing.assert_allclose(parameters[0].grad.numpy(), [0.6, 0.8], rtol=1e-6)


def test_zero_gradients_stay_zero():
    parameters = with_gradients([0.0, 0.0])
    assert optim.clip_grad_norm(parameters, 1.0).item() == 0.0
    assert parameters[0].grad.tolist() == [0.0, 0.0]
    assert optim.clip_grad_norm([dilim.ones(1, requires_grad=True)], 1.0).item() == 0.0


def test_values_are_limited_on_both_sides():
    parameters = with_gradients([-5.0, -0.5, 0.5, 5.0, math.inf, -math.inf])
    optim.clip_grad_value(parameters, 1.0)
    assert parameters[0].grad.tolist() == [-1.0, -0.5, 0.5, 1.0, 1.0, -1.0]


def test_nan_is_refused_by_name_and_nothing_changes():
    model = nn.Dense(2, 1, name="critic")
    model(dilim.ones((1, 2))).sum().backward()
    model.bias.grad[0] = math.nan
    text = r"the gradient of 'critic.bias' \(1,\) has 1 NaN and 0 infinities of 1 elements"
    with pytest.raises(NonFiniteError, match=f"clip_grad_norm: {text}; .*detect_anomaly"):
        optim.clip_grad_norm(model.parameters(), 0.1)
    assert model.weight.grad.tolist() == [[1.0], [1.0]]
    with pytest.raises(NonFiniteError, match=f"clip_grad_value: {text}"):
        optim.clip_grad_value(model.parameters(), 0.1)
    with pytest.raises(NonFiniteError, match=r"'parameter 1' .* has 0 NaN and 1 infinities"):
        optim.clip_grad_norm(with_gradients([1.0], [math.inf]), 1.0)


def test_limits_must_be_above_zero():
    with pytest.raises(ValueError, match="clip_grad_norm: limit: expected a number above 0"):
        optim.clip_grad_norm([], 0.0)
    with pytest.raises(ValueError, match=r"clip_grad_value: limit: .* received nan"):
        optim.clip_grad_value([], math.nan)
