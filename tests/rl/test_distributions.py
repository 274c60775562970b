"""Probabilities and entropies against closed forms in NumPy float64."""

import math

import numpy as np
import pytest

import dilim
from dilim.rl.distributions import Categorical, Gaussian, SquashedGaussian

RANDOM = np.random.default_rng(0)


def exact(array):
    return dilim.asarray(array, dtype=dilim.float64)


def normal_density(x, mean, std):
    return np.exp(-((x - mean) ** 2) / (2 * std**2)) / (std * math.sqrt(2 * math.pi))


def test_one_of_several():
    scores = RANDOM.normal(size=(5, 3))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    actions = np.array([0, 2, 1, 1, 0])
    found = Categorical().log_probability(exact(scores), dilim.asarray(actions))
    np.testing.assert_allclose(found.numpy(), np.log(p[np.arange(5), actions]), rtol=1e-12)
    entropy = Categorical().entropy(exact(scores)).numpy()
    np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(axis=1), rtol=1e-12)
    assert Categorical().best(exact(scores)).tolist() == p.argmax(axis=1).tolist()
    drawn = Categorical().draw(exact(np.tile(scores[:1], (4000, 1))), dilim.Generator(0)).numpy()
    np.testing.assert_allclose(np.bincount(drawn) / 4000, p[0], atol=0.03)


def test_numbers_that_are_normal():
    mean, log_std = RANDOM.normal(size=(2, 4, 3))
    actions = RANDOM.normal(size=(4, 3))
    scores = exact(np.concatenate([mean, log_std], axis=1))
    found = Gaussian().log_probability(scores, exact(actions)).numpy()
    expected = np.log(normal_density(actions, mean, np.exp(log_std))).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    entropy = (0.5 * np.log(2 * math.pi * math.e * np.exp(2 * log_std))).sum(axis=1)
    np.testing.assert_allclose(Gaussian().entropy(scores).numpy(), entropy, rtol=1e-12)
    assert Gaussian().best(scores).tolist() == mean.tolist()
    many = exact(np.tile(np.concatenate([mean, log_std], axis=1)[:1], (20_000, 1)))
    drawn = Gaussian().draw(many, dilim.Generator(0)).numpy()
    np.testing.assert_allclose(drawn.mean(axis=0), mean[0], atol=0.03 * np.exp(log_std[0]).max())
    np.testing.assert_allclose(drawn.std(axis=0), np.exp(log_std[0]), rtol=0.03)


def test_numbers_that_are_squashed():
    mean, log_std = RANDOM.normal(size=(2, 6, 2)) * 0.5
    scores = exact(np.concatenate([mean, log_std], axis=1))
    actions, logp = SquashedGaussian().draw(scores, dilim.Generator(3))
    a = actions.numpy()
    inner = normal_density(np.arctanh(a), mean, np.exp(log_std))
    np.testing.assert_allclose(logp.numpy(), np.log(inner / (1 - a**2)).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(SquashedGaussian().best(scores).numpy(), np.tanh(mean), rtol=1e-12)


def test_the_squashed_density_has_the_mass_and_the_entropy_that_it_should():
    mean, log_std = 0.4, -0.3
    scores = exact(np.tile([[mean, log_std]], (200_000, 1)))
    actions, logp = (x.numpy() for x in SquashedGaussian().draw(scores, dilim.Generator(1)))
    # numerical integration over u, where a = tanh(u): p(a) da = N(u) du
    u = np.linspace(-8.0, 8.0, 200_001)
    weight = normal_density(u, mean, math.exp(log_std)) * (u[1] - u[0])
    density = np.log(normal_density(u, mean, math.exp(log_std)) / (1 - np.tanh(u) ** 2))
    assert weight.sum() == pytest.approx(1.0, abs=1e-9)
    assert -logp.mean() == pytest.approx(-(weight * density).sum(), abs=0.005)
    inside = (actions[:, 0] > 0.2) & (actions[:, 0] < 0.7)
    assert np.where(inside, np.exp(-logp), 0.0).mean() == pytest.approx(0.5, abs=0.01)  # width


def test_a_squashed_number_at_the_bound_has_a_finite_probability_and_slope():
    scores = dilim.tensor([[20.0, -1.0], [-20.0, -1.0], [0.0, 2.0]], requires_grad=True)
    actions, logp = SquashedGaussian().draw(scores, dilim.Generator(0))
    assert np.abs(actions.numpy()).max() == 1.0
    assert np.isfinite(logp.numpy()).all()
    (logp.sum() + actions.sum()).backward()
    assert np.isfinite(scores.grad.numpy()).all()


def test_gradients_flow_to_mean_and_deviation():
    start = np.array([[0.3, -0.4, -0.2, 0.1]])

    def mean_logp(scores):
        actions, logp = SquashedGaussian().draw(scores, dilim.Generator(5))
        return (logp + actions.sum(axis=1)).sum()

    found = dilim.grad(mean_logp)(exact(start)).numpy()
    for k in range(4):
        step = np.zeros((1, 4))
        step[0, k] = 1e-6
        change = float(mean_logp(exact(start + step))) - float(mean_logp(exact(start - step)))
        assert found[0, k] == pytest.approx(change / 2e-6, rel=1e-6)
